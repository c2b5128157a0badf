"""A lower bound of ε for shuffled fixed batches, from one dataset and one event.

N records are put into an order anew in each of E epochs and cut into t = ⌊N/B⌋ batches of B, the
r = N − tB last ones being dropped or in a smaller batch. All gradients lie on a line, in units of
the clipping norm: that of one record is 1 under P and 0 under Q, all others are −1. A full batch
sum is −B, and in the record's batch −B + 2 under P, −B + 1 under Q. With noise N(0, σ²) and

    A = {some full batch has a noisy sum above c − B},
    1 − P(A) = (1 − r/N) Φ((c − 2)/σ) Φ(c/σ)^{t−1} + (r/N) Φ(c/σ)^t,

and the same with c − 1 for Q, epochs being independent, S = {A in at least k of E epochs} has
binomial tails. A guarantee (ε, δ) demands P(S) ≤ e^ε Q(S) + δ, that is, ε ≥ ln((P(S) − δ)/Q(S));
and as much for the complement of S with P and Q exchanged. (A record that is replaced, or added,
may have 2 and 0 for 2 and 1.) (For E = 1 this is the bound of Chua,
Ghazi, Kamath, Kumar, Manurangsi, Sinha and Zhang 2024.) c and k are chosen by floats, and the bound
is a ball for whatever they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from flint import arb
from numpy.typing import NDArray

from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball, enclose
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.gaussian import normal_cdf

_PRECISION = 192
"""Bits of sums whose terms cancel."""
_GRID = 400
"""Values of c that are tried, twice: over all of them, and beside the best one."""
_MOST_VALUES = 4_000_000
"""Values of c and k together: memory."""
_CERTAIN = 1e-15
"""How near to 1 a probability may be in floats, so that its logarithm is finite."""


@final
@dataclass(frozen=True)
class ShuffledBatches:
    """E epochs of batches of B of N records, each in an order of its own, with noise σ."""

    sigma: ExactReal
    batch: int
    size: int
    epochs: int
    full: int | None = None
    """The full batches that are looked at; None for all."""
    moves: tuple[int, int] = (2, 1)
    """By how much more than another record the one adds to a sum, under P and under Q."""

    @property
    def _looked_at(self) -> int:
        return self.size // self.batch if self.full is None else self.full

    def lower(self, delta: ExactReal) -> tuple[arb, str]:
        """Return a lower bound of ε(δ), at least ln(1 − δ), and the event that gives it."""
        c, k, added = self._chosen(float(delta))
        with ctx.workprec(_PRECISION):
            p, q = (self._tail(self._exceeds(Fraction(c), x), k, below=added) for x in self.moves)
            first, second = (q, p) if added else (p, q)
            ratio = (first - delta.ball()).lower() / second.upper()
            least = ball(Fraction(enclose(lambda: arb.log1p(-delta.ball())).lower))
            found = (ratio.log().max(least) if ratio > 0 else least).lower()
        often = f"fewer than {k}" if added else f"at least {k}"
        times = (
            f"{often} of {self.epochs} epochs have"
            if self.epochs > 1
            else ("no" if added else "some")
        )
        event = f"{times} batch with a noisy sum above {c - self.batch:.6g}*C"
        return found, event.replace("have batch", "have a batch")

    def _exceeds(self, c: Fraction, shift: int) -> arb:
        """Return the probability of A where the record adds `shift` to the sum of its batch."""
        t, sigma = self._looked_at, self.sigma.ball()
        rest = ball(1 - Fraction(t * self.batch, self.size))
        other, own = (normal_cdf((ball(c) - x) / sigma) for x in (0, shift))
        return 1 - other ** (t - 1) * ((1 - rest) * own + rest * other)

    def _tail(self, each: arb, k: int, *, below: bool) -> arb:
        """Return the probability of at least k, or of fewer, events of E."""
        most = self.epochs
        if below:
            return (1 - each).beta_lower(most - k + 1, k, regularized=True)
        return each.beta_lower(k, most - k + 1, regularized=True)

    def _chosen(self, delta: float) -> tuple[float, int, bool]:
        """Return c, k and whether the complement is taken, by floats."""
        sigma = float(self.sigma)
        reach = sigma * (math.sqrt(-2 * math.log(max(delta, 1e-300))) + 3)
        low, high = 2 - reach, 2 + reach
        count = max(16, min(_GRID, _MOST_VALUES // (self.epochs + 1)))
        best = (-math.inf, high, 1, False)
        for _ in range(2):
            grid = np.linspace(low, high, count)
            best = max(best, *self._on(grid, delta))
            low, high = best[1] - 2 * (high - low) / count, best[1] + 2 * (high - low) / count
        return best[1:]

    def _on(self, grid: NDArray[Any], delta: float) -> list[tuple[float, float, int, bool]]:
        """Return the best (ε, c, k, complement) of a grid, for S and for its complement."""
        most, t, sigma = self.epochs, self._looked_at, float(self.sigma)
        rest = 1 - t * self.batch / self.size
        k = np.arange(most + 1)
        factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])
        choose = factorials[-1] - factorials - factorials[::-1]
        laws = []
        for shift in self.moves:
            other, own = (_normals((grid - x) / sigma) for x in (0, shift))
            none = np.clip(
                other ** (t - 1) * ((1 - rest) * own + rest * other), 1e-300, 1 - _CERTAIN
            )
            logs = choose[:, None] + np.outer(k, np.log1p(-none))
            laws.append(np.exp(logs + np.outer(most - k, np.log(none))))
        over_p, over_q = (np.cumsum(law[::-1], axis=0)[::-1][1:] for law in laws)
        under_p, under_q = (np.cumsum(law, axis=0)[:-1] for law in laws)
        found = []
        for first, second, added in ((over_p, over_q, False), (under_q, under_p, True)):
            gain = np.maximum(first - delta, 1e-300) / np.maximum(second, 1e-300)
            row, column = np.unravel_index(int(gain.argmax()), gain.shape)
            found.append((math.log(gain.max()), float(grid[column]), int(row) + 1, added))
        return found


def _normals(x: NDArray[Any]) -> NDArray[Any]:
    return np.array([math.erfc(-each / math.sqrt(2)) / 2 for each in x.tolist()])

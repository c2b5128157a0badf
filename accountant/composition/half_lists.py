"""Lists of partial sums of tilted losses, with bounds of what is left out and of all rounding.

Of n draws of one loss with tilted masses t_k, of sum 1, the numbers m_k of draws of value k are
independent Poisson variables of means n t_k, conditioned on Σ m_k = n: their probability is
Π Pois(m_k; n t_k)/Pois(n; n). A `Half` lists the sums over some of the values k, by the number u of
draws that they use; the tilted probability of a state before any others are known is its weight
times Pois(n − u; n·rest)/Pois(n; n), rest being the mass of all other values. So a state is left
out knowing exactly what is lost.

Values of little mass s in all are not listed: then Σ t_k = 1 − s, and each of their m_k is 0 in a
sum of listed values, for which Π Pois(0; n t_k) = e^{−ns} is left to be multiplied with. Whoever
uses the weights does (`accountant.composition.tilted_lists`).

Losses are multiples of 2^−bits, rounded once each, and their sums are exact 64-bit integers. All
weights are positive floats: with u = 2^−53, a product adds u to a relative error, and a sum of m
numbers, in any order, (m − 1)u.

*The ledger of one value.* A kept weight is at least budget/(2^23·3√n) > 10^−112, and all factors
are at most 1, so that nothing in it has lost digits to underflow. It is a product (u) with a
Poisson probability that was computed in 128 bits, from a mean of forty digits, and rounded (u; the
former is m·10^−39 of it at most, far below u), and one of at most `most` numbers that are added up
((most − 1)u): (most + 1)u in all, of which (most + 3)u is counted; the products of these errors are
below u for less than 10^6 of them. The values of `left`, rounded in the same way, only tell what is
lost: a mean that is off by x changes a Poisson probability by at most x, the distance in total
variation, so that with means known to 10^−40 of n, and 1/Pois(n; n) ≤ 3√n, the weights, of sum ≤ 1,
lose less than n^{1.5} 10^−39 unseen, and less than 10^−290 to underflow: below `_UNSEEN` for
n ≤ 10^6, which is asked for.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from flint import arb

from accountant.composition.joint import UnsuitedError
from accountant.precision import ctx

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"

MAX_STATES = 1 << 21
"""Most entries of one list, before equal sums are merged."""
UNIT = 2.0**-53
SLACK = 1 + 1e-6  # covers the rounding of bounds
MOST_DRAWS = 10**6
_UNSEEN = 1e-29
_ACCURATE = 1e-42
_LEAST = 1e-100


class TooLongError(UnsuitedError):
    """A list has more entries, or larger exponents, than it may have."""

    def __init__(self) -> None:
        super().__init__(
            "The partial sums of these losses are too many for lists. Ask with another method."
        )


@final
@dataclass(frozen=True)
class Draws:
    """How often a loss is drawn, and its distinct values with their tilted masses, of sum ≤ 1.

    What the sum lacks belongs to values that are not listed.
    """

    count: int
    losses: tuple[int, ...]
    """Multiples of 2^−bits."""
    masses: tuple[arb, ...]


@final
@dataclass
class Half:
    """Partial sums, sorted by the draws used and then by the loss."""

    used: Array
    losses: Array
    weights: Array
    error: float
    """Bound of the relative errors of the weights."""
    dropped: float
    """Bound of the tilted mass that was left out."""

    @staticmethod
    def empty() -> Half:
        """Return the sum of nothing."""
        return Half(np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1), 0.0, 0.0)

    def add(self, loss: int, mass: arb, count: int, rest: arb, budget: float) -> None:
        """Let any number of the `count` draws have one more value of the loss.

        `rest` is the mass of all values that are not listed yet here, without this one; at most
        about `budget` of tilted mass is left out. Raises TooLongError.
        """
        if count > MOST_DRAWS or budget < _LEAST or not float(rest.rad()) < _ACCURATE:
            raise TooLongError
        self.dropped += _UNSEEN
        own = _poisson(mass * count, count)
        left = _poisson(rest * count, count) / _poisson(arb(count), count)[count]
        least = budget / (2 * len(self.weights) + 100)
        used, losses, weights = [], [], []
        total, mean = 0, float(mass) * count
        for m in range(count + 1):
            fits = self.used <= count - m
            there = self.weights[fits] * own[m]
            lost = there * left[count - m - self.used[fits]]
            kept = lost > least
            self.dropped += float(lost[~kept].sum()) * SLACK
            if kept.any():
                used.append(self.used[fits][kept] + m)
                losses.append(self.losses[fits][kept] + m * loss)
                weights.append(there[kept])
                total += len(weights[-1])
                if total > MAX_STATES:
                    raise TooLongError
            # beyond twice its mean Pois(m) halves with every m: all others are less than this one
            most = float(own[m] * left.max() * self.weights.sum()) * SLACK
            if m > 2 * mean and most < least:
                self.dropped += most
                break
        self._merge(np.concatenate(used), np.concatenate(losses), np.concatenate(weights))

    def _merge(self, used: Array, losses: Array, weights: Array) -> None:
        order = np.lexsort((losses, used))
        used, losses, weights = used[order], losses[order], weights[order]
        new = np.ones(len(used), dtype=bool)
        new[1:] = (np.diff(used) != 0) | (np.diff(losses) != 0)
        first = np.flatnonzero(new)
        most = int(np.diff(np.append(first, len(used))).max())
        self.used, self.losses = used[first], losses[first]
        self.weights = np.add.reduceat(weights, first)
        self.error += (most + 3) * UNIT

    def finish(self, count: int) -> None:
        """Keep the sums that use all draws, which the next loss does not count."""
        kept = self.used == count
        self.used, self.losses = self.used[kept] * 0, self.losses[kept]
        self.weights = self.weights[kept] / _poisson(arb(count), count)[count]
        self.error += 3 * UNIT


@functools.lru_cache(maxsize=256)
def _poisson_cached(mean: str, count: int) -> Array:
    with ctx.workprec(128):
        value = arb(mean)
        term = (-value).exp()
        found = [float(term.mid())]
        for m in range(1, count + 1):
            term = term * value / m
            found.append(float(term.mid()))
        return np.array(found)


def _poisson(mean: arb, count: int) -> Array:
    """Return Pois(m; mean) for m ≤ count, rounded to floats."""
    return _poisson_cached(mean.str(40, radius=False), count)


@final
@dataclass(frozen=True)
class Halves:
    """Two halves: draws of the last loss are shared between them, u and count − u.

    The tilted mass of a sum of listed values is the product of its two weights over Pois(n; n), n
    being the last count, times e^{−ns} for each loss, with its own count n and s = 1 − Σ t_k.
    """

    first: Half
    second: Half
    count: int
    dropped: float

    @staticmethod
    def of(draws: Sequence[Draws], budget: float) -> Halves:
        """List the sums, each value on the side that is shorter so far.

        The draws of all losses but the last belong to one side. Raises TooLongError.
        """
        sides = Half.empty(), Half.empty()
        stages = sum(len(each.losses) for each in draws)
        for number, each in enumerate(draws):
            shared = number == len(draws) - 1
            whole = min(sides, key=lambda side: len(side.weights))
            rest = [arb(1), arb(1)]
            for group in _mirrored(each):
                side = min(sides, key=lambda half: len(half.weights)) if shared else whole
                index = 0 if side is sides[0] else 1
                for k in group:
                    rest[index] = (rest[index] - each.masses[k]).max(arb(0))
                    side.add(
                        each.losses[k], each.masses[k], each.count, rest[index], budget / stages
                    )
            if not shared:
                whole.finish(each.count)
        dropped = sides[0].dropped + sides[1].dropped
        return Halves(*sides, draws[-1].count, dropped * SLACK)


def _mirrored(draws: Draws) -> list[list[int]]:
    """Return the values in groups of equal size but for the sign, the heaviest first."""
    groups: dict[int, list[int]] = {}
    for k, loss in enumerate(draws.losses):
        groups.setdefault(abs(loss), []).append(k)
    return sorted(groups.values(), key=lambda ks: -sum(float(draws.masses[k]) for k in ks))

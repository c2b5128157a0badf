"""The laws of single losses on a line Re z = c: moments, and characteristic functions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
from flint import arb

from accountant.composition import node_values
from accountant.composition.listed import Listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HALF = 0.5


@final
@dataclass(frozen=True)
class Taken:
    """What the cut of a law takes away (`accountant.composition.decisive`): p_i, q_i and u_i."""

    p: arb
    q: arb
    below: arb
    """A bound of the mass under Q that is taken from losses below the threshold."""


@final
@dataclass(frozen=True)
class Small:
    """The part of a law with small losses alone (`accountant.composition.decisive`)."""

    law: Law
    above: arb
    """A bound of the mass under P that this law has above the threshold."""
    beyond: Callable[[arb, float], float]
    """The bound of `Law.beyond` for the rest of the law, relative to the moment of the whole."""


class Law(ABC):
    """One loss and how often it is released."""

    count: int
    missing = arb(0)
    taken: Taken | None = None
    """Where the law is cut: what it lacks."""

    @abstractmethod
    def moment(self, z: arb) -> arb:
        """Return E_P[e^{zL}] over the listed finite losses, z real."""

    @abstractmethod
    def mean(self, c: arb) -> arb:
        """Return any number near the mean of the loss tilted by e^{cL}."""

    @abstractmethod
    def log_moment(self, c: float) -> float:
        """Return ln E_P[e^{cL}], nearly."""

    def beyond(self, c: arb, omega: float) -> float:
        """Return an upper bound of |E[e^{(c + iω')L}]|/E[e^{cL}] for all |ω'| ≥ ω > 0."""
        return 1.0

    @abstractmethod
    def factor(self, c: arb, step: float, rows: int) -> node_values.Factor:
        """Return the characteristic function of the tilted loss minus `mean`."""

    def cut(self, threshold: float, width: float, room: float) -> Law | None:
        """Return the law without (most) losses above a threshold, None where none is or is known.

        Smooth ends have a width of about `width`, and take e^{−room} from losses below.
        """
        return None

    def log_falling(self, s: arb) -> arb | None:
        """Return an upper bound of ln E_P[e^{−sL}] of the whole law, s > 1, None for none known.

        For laws that are cut sharply alone: what is taken is counted.
        """
        return None

    def small(self, threshold: float, room: float) -> Small | None:
        """Return the part of a law up to about a threshold, with e^{−room} above it, or None.

        It is the whole law where all its losses are bounded.
        """
        return None

    def _bounded(self) -> Small:
        """Return the whole law as its part."""
        return Small(self, arb(0), lambda c, omega: 0.0)


@final
class ListedLaw(Law):
    """A list of values, and perhaps a lower bound of all losses, listed or not."""

    def __init__(self, law: Listed, count: int, least: arb | None = None) -> None:
        self._law, self.count, self.missing, self._least = law, count, law.missing_p, least
        self._losses = np.array([float(loss) for loss in law.losses])
        self._logs = np.array([float(p.log()) for p in law.p])

    def moment(self, z: arb) -> arb:
        """Return Σ p e^{zl}."""
        terms = (
            p * (z * loss).exp() for p, loss in zip(self._law.p, self._law.losses, strict=True)
        )
        return sum(terms, start=arb(0))

    def cut(self, threshold: float, width: float, room: float) -> ListedLaw | None:
        """Return the values up to the threshold; None where none exceeds it, or one is not told."""
        law, p, q = self._law, arb(0), arb(0)
        kept: tuple[list[arb], list[arb]] = [], []
        for loss, mass in zip(law.losses, law.p, strict=True):
            if loss <= threshold:
                kept[0].append(loss)
                kept[1].append(mass)
            elif loss > threshold:
                p += mass
                q += mass * (-loss).exp()
            else:
                return None
        if p.is_zero() or not kept[0]:
            return None
        found = ListedLaw(replace(law, losses=kept[0], p=kept[1]), self.count, self._least)
        found.taken = Taken(p, q, arb(0))
        return found

    def log_falling(self, s: arb) -> arb | None:
        """Return the sum; what is taken is above all values that are left, what lacks above all."""
        if self._least is None:
            return None
        total = self.moment(-s) + self._law.missing_p * (-s * self._least).exp()
        if self.taken is not None:
            total += self.taken.p * (-s * max(self._law.losses)).exp()
        return total.log().upper()

    def small(self, threshold: float, room: float) -> Small | None:
        """Return the values up to the threshold; what is beyond does not fall."""
        found = self.cut(threshold, 0.0, room)
        if found is not None:
            return Small(found, arb(0), lambda c, omega: 1.0)
        return self._bounded() if all(loss <= threshold for loss in self._law.losses) else None

    def _shares(self, c: float) -> tuple[NDArray[Any], float]:
        weights = self._logs + c * self._losses
        top = float(weights.max())
        return np.exp(weights - top), top

    def log_moment(self, c: float) -> float:
        """Return the logarithm of the sum."""
        shares, top = self._shares(c)
        return top + math.log(float(shares.sum()))

    def mean(self, c: arb) -> arb:
        """Return the mean in floats."""
        shares, _ = self._shares(float(c))
        return arb(float((shares * self._losses).sum() / shares.sum()))

    def rise(self, c: arb, omega: float) -> float:
        """Return E min(|l − m|ω, 2) under the tilt, m the mean: φ changes by no more within ω.

        Rounding l and m moves every |l − m| by at most 4u max |l|.
        """
        shares, _ = self._shares(float(c))
        shares /= shares.sum()
        away = np.abs(self._losses - float((shares * self._losses).sum()))
        away += 4 * node_values.UNIT * float(np.abs(self._losses).max())
        return float((shares * np.minimum(away * omega, 2.0)).sum()) * (1 + 1e-6)

    def spacing(self, c: arb, rise: float) -> float:
        """Return about the largest distance of frequencies half of which |φ| rises by so much."""
        low, high = 0.0, 1.0
        while self.rise(c, high) < rise and high < 2.0**100:
            high *= 2
        for _ in range(20):
            middle = (low + high) / 2
            low, high = (middle, high) if self.rise(c, middle) < rise else (low, middle)
        return 2 * low

    def factor(
        self, c: arb, step: float, rows: int, *, left_out: float = 0.0
    ) -> node_values.Factor:
        """Return the sum over the values, but for a share `left_out` that its error counts."""
        moment, centre = self.moment(c), self.mean(c)
        pairs = list(zip(self._law.p, self._law.losses, strict=True))
        terms = [(p * (c * loss).exp() / moment, loss) for p, loss in pairs]
        lost = 0.0
        if left_out:
            terms.sort(key=lambda term: -float(term[0]))
            while terms and lost + float(terms[-1][0]) < left_out:
                lost += float(terms.pop()[0])
        turns = [(loss - centre) * arb(step) / (2 * arb.pi()) for _, loss in terms]
        weights = [weight for weight, _ in terms]
        return node_values.Atoms(weights, turns, self.count, rows, lost)


@final
class LaplaceLaw(Law):
    """Laplace noise at distance t: e^{−t/2} (cosh(ts) + sinh(ts)/(2s)), s = z + ½."""

    def __init__(self, t: arb, count: int) -> None:
        self._t, self.count = t, count

    def moment(self, z: arb) -> arb:
        """Return the closed form."""
        s = z + arb(_HALF)
        if s.is_zero():
            return (-self._t / 2).exp() * (1 + self._t / 2)
        ts = self._t * s
        return (-self._t / 2).exp() * (ts.cosh() + ts.sinh() / (2 * s))

    def log_moment(self, c: float) -> float:
        """Return its logarithm."""
        s, t = abs(c + _HALF), float(self._t)
        ratio = -math.expm1(-2 * t * s) / (2 * s) if s > 1e-9 else t
        return t * (s - _HALF) + math.log((1 + math.exp(-2 * t * s) + ratio) / 2)

    def mean(self, c: arb) -> arb:
        """Return 0: the law is symmetric but for the tilt."""
        return arb(0)

    def small(self, threshold: float, room: float) -> Small | None:
        """Return the law, which is bounded."""
        return self._bounded()

    def factor(self, c: arb, step: float, rows: int) -> node_values.Factor:
        """Return the closed form on the line."""
        return node_values.LaplaceLoss(self._t, c + arb(_HALF), step, self.count, rows)


@final
class GaussianLaw(Law):
    """Gaussian noise: e^{μ² z(z + 1)/2}."""

    def __init__(self, square: arb) -> None:
        self._square, self.count = square, 1

    def moment(self, z: arb) -> arb:
        """Return the closed form."""
        return (self._square * z * (z + 1) / 2).exp()

    def log_moment(self, c: float) -> float:
        """Return its logarithm."""
        return float(self._square) * c * (c + 1) / 2

    def mean(self, c: arb) -> arb:
        """Return μ² (c + ½)."""
        return self._square * (c + arb(_HALF))

    def beyond(self, c: arb, omega: float) -> float:
        """Return e^{−μ² ω²/2}."""
        return float((-self._square * arb(omega) ** 2 / 2).exp().upper())

    def factor(self, c: arb, step: float, rows: int) -> node_values.Factor:
        """Return e^{−μ² ω²/2}."""
        return node_values.GaussianLoss(self._square, step)

"""A worst pair with two ends: pairs that neighbours have, and one that bounds all."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, final

from flint import arb

from accountant.composition.invert import inverse_by_values
from accountant.core.pair import Pair, ProfileOnly
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import Interval, narrowed
from accountant.numbers.precision import ctx
from accountant.pairs.two_ends import narrow_enough

_BITS, _WIDTH = 64, Fraction(1, 10**9)
"""Precision and relative width of ends, which are farther apart."""
_FINE = Fraction(1, 10**6)
"""Relative width of the ε of each end."""


@lru_cache(maxsize=256)
def _value(pair: Pair, epsilon: ExactReal) -> arb:
    with ctx.workprec(_BITS), narrowed(_WIDTH):
        return pair.hockey_stick(epsilon)


@final
@dataclass(frozen=True)
class Between(ProfileOnly):
    """H is at least that of each of some pairs, and at most that of another one."""

    least: tuple[Pair, ...]
    most: Pair
    unknown: str
    """What is not known closer."""

    only_bounded: ClassVar = True

    def estimate_epsilon(self, log_delta: float) -> float | None:
        """Return that of the larger end."""
        return self.most.estimate_epsilon(log_delta)

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return a ball around both ends, whatever the precision."""
        return self._low(epsilon).union(_value(self.most, epsilon))

    def _low(self, epsilon: ExactReal) -> arb:
        first, *others = (_value(pair, epsilon) for pair in self.least)
        for other in others:
            first = first.max(other)
        return first

    def inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Enclose the ε with H(ε) = δ; UndecidedError, with both ends, where they are too wide."""
        fine = min(relative_width, _FINE)
        low = max(inverse_by_values([pair], delta, fine).lower for pair in self.least)
        high = inverse_by_values([self.most], delta, fine).upper
        found = Interval(low, max(low, high))
        return narrow_enough(found, relative_width, f"{self.unknown} is not known closer")

    @property
    def refusal(self) -> str:
        """Say what is known."""
        return (
            f"A Rényi divergence is not known: {self.unknown} is only enclosed. Ask for delta or "
            "epsilon, which have two ends."
        )

    def max_loss(self) -> arb:
        """Return a ball around both ends."""
        first, *others = (pair.max_loss() for pair in self.least)
        for other in others:
            first = first.max(other)
        most = self.most.max_loss()
        return most if not first.is_finite() else first.union(most)

    def attained(self, epsilon: ExactReal) -> Pair:
        """Return what the pair of `least` with the largest H has there."""
        most = max(self.least, key=lambda pair: float(_value(pair, epsilon).mid()))
        return most.attained(epsilon)

    def bound(self, epsilon: ExactReal) -> arb:
        """Return the larger end."""
        return _value(self.most, epsilon).upper()

    def reverse(self) -> Between:
        """Return the pair of the reversed ends."""
        return Between(
            tuple(pair.reverse() for pair in self.least), self.most.reverse(), self.unknown
        )

    def law(self) -> dict[str, object]:
        """Return {"law": "between", "factors"}: the laws of `least`, and then that of `most`."""
        laws = (pair.law() for pair in (*self.least, self.most))
        return {"law": "between", "factors": [json.dumps(law) for law in laws]}

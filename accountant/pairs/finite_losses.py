"""Losses with finitely many values, as finite laws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar, final

from dpassay.accountant.core.pair import Pair
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.pairs.discrete_laplace import DiscreteLaplacePair
from dpassay.accountant.pairs.finite import Balls, FiniteLaws, FinitePair

T = TypeVar("T")

MAX_VALUES = 1 << 12
"""Most values of the loss of one discrete Laplace release that are listed."""


def finite(pair: Pair) -> FinitePair | None:
    """Return a pair on finitely many outcomes with the same law of the loss, None without one."""
    if isinstance(pair, FinitePair):
        return pair
    if isinstance(pair, DiscreteLaplacePair) and pair.shift < MAX_VALUES:
        return FinitePair(DiscreteLaplaceLosses(pair), 0)
    return None


@final
@dataclass(frozen=True)
class DiscreteLaplaceLosses(FiniteLaws):
    """Two discrete Laplace laws at distance s, their outcomes merged where the loss is the same.

    With r = e^{−1/b} the value (2j − s)/b of the loss, j = 0, …, s, has under Q the mass 1/(1 + r)
    for j = 0, tanh(1/2b) r^j for 0 < j < s and r^s/(1 + r) for j = s; under P that of s − j.
    """

    pair: DiscreteLaplacePair

    def outcomes(self, index: int) -> Sequence[object]:
        """Name j by the outcomes min(max(z, 0), s) = j, counted from the true answer under Q."""
        return range(self.pair.shift + 1)

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Return the masses of the values of the loss."""
        rate, s = 1 / self.pair.scale.ball(), self.pair.shift
        outer, centre = 1 + (-rate).exp(), (rate / 2).tanh()
        q = [centre * (-rate * j).exp() for j in range(s + 1)]
        q[0], q[s] = 1 / outer, (-rate * s).exp() / outer
        return q[::-1], q

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return (2j − s)/b."""
        s = self.pair.shift
        return [ExactReal.of_rational(2 * j - s) / self.pair.scale for j in range(s + 1)]


@final
@dataclass(frozen=True)
class SubsampledLaws(FiniteLaws):
    """A finite pair (P, Q) with one side mixed: ((1−q)Q + qP, Q), or (P, (1−q)P + qQ).

    The loss of an outcome with loss l is ln(1 − q + q e^l), or −ln(1 − q + q e^{−l}). Where l and q
    are algebraic it is no algebraic number unless it is 0 (Lindemann and Weierstrass), so that a
    sufficient precision tells it from every ε ≠ 0.
    """

    pair: FinitePair
    sampling_prob: ExactReal
    mixed_first: bool

    def outcomes(self, index: int) -> Sequence[object]:
        """Return the outcomes of the pair."""
        return self.pair.source.outcomes(self.pair.index)

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Mix the masses."""
        p, q = self._ordered(self.pair.source.masses(self.pair.index))
        share = self.sampling_prob.ball()
        rest = 1 - share
        if self.mixed_first:
            return [rest * b + share * a for a, b in zip(p, q, strict=True)], q
        return p, [rest * a + share * b for a, b in zip(p, q, strict=True)]

    def rational_masses(self, index: int) -> tuple[list[Fraction], list[Fraction]] | None:
        """Mix the masses where they and q are rational."""
        exact = self.pair.source.rational_masses(self.pair.index)
        share = self.sampling_prob.rational
        if exact is None or share is None:
            return None
        p, q = self._ordered((list(exact[0]), list(exact[1])))
        mixed = [
            (1 - share) * b + share * a
            for a, b in zip(*((p, q) if self.mixed_first else (q, p)), strict=True)
        ]
        return (mixed, q) if self.mixed_first else (p, mixed)

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return 0 where the loss of the pair is 0."""
        known = self.pair.source.exact_losses(self.pair.index)
        return [loss if loss is not None and not loss.sign else None for loss in known]

    def _ordered(self, laws: tuple[T, T]) -> tuple[T, T]:
        return laws[::-1] if self.pair.flipped else laws

"""Batches of B draws with replacement: how often a record is in a batch, and what that shows.

Each of the B places of a batch takes one of N records, uniformly, independently. A person with k
of them has J ~ Bin(B, p) places, p = k/N; T batches are independent. Gradients have norm at most 1.
Given what stands at each place where it is none of these k records, let A_0 be the law of the noisy
sum without them, A_j (j ≥ 1) that with them at some j places, w_j = P(J = j), η = P(J ≥ 1).

**Add-remove, exactly.** Without the person a batch has the law A_0, with it Σ w_j A_j, whose means
are at distance at most 2j from that of A_0: a `MixtureOfGaussians` of sensitivities 2j, for both
orders. All others −u, the person's u attain it. J is cut at m: that it is larger in any step costs
T P(J > m) of δ, and J given J ≤ m is stochastically no larger. Tails of J are rounded to few digits
up, or down: a larger J is no more private, as every shift may be made longer.

**Replace-one, above.** Let A'_j be the laws with the other records: both A_j and A'_j are at
distance at most 2j from A_0, so that this is a `MixtureOfGaussians` where records are replaced.
**Below**: all others and the new records −u, the old ones u, which is the pair of add-remove.

**Zero-out** is a replacement by the gradient 0: above as before; below the sensitivities are j,
where all others are 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import final

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.mechanisms.additive.mixture_of_gaussians import MixtureOfGaussians
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval, ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.training.groups import times
from dpassay.accountant.training.loops import enclosed, rational_below
from dpassay.accountant.training.truncated_batches import binomial_tail

_BITS = 96
"""Leading bits to which tails are rounded: far more than answers have digits."""
_CUT = Fraction(1, 10**12)
"""The part of δ that P(J > m) in any step may take: answers have about ten digits."""

_USUAL = Fraction(1, 10**9)
"""A usual δ."""


@final
@dataclass(frozen=True)
class WithReplacement:
    """T batches of B places; a person has each place with probability p, 0 < p < 1."""

    sigma: ExactReal
    batch: int
    share: Fraction
    steps: int

    def tail(self, j: int) -> Fraction:
        """Return an upper bound of P(J ≥ j)."""
        return _rounded(binomial_tail(self.batch, self.share, j), up=True)

    def cut(self, delta: ExactReal) -> tuple[int, Fraction]:
        """Return m, and an upper bound of the probability that J is larger in any step."""
        room = rational_below(delta) * _CUT / self.steps
        m = 1
        while binomial_tail(self.batch, self.share, m + 1) > room:
            m += 1
        return m, self.steps * self.tail(m + 1)

    @property
    def usual(self) -> int:
        """Where J is cut for δ of 1e-9 or so."""
        return self.cut(ExactReal.of_rational(_USUAL))[0]

    def mixed(self, moves: int, most: int, *, up: bool) -> Mechanism:
        """Return T mixtures of sensitivities `moves`·j, j ≤ most, with tails of J rounded."""
        return self._mixture([moves * j for j in range(most + 1)], up=up)

    def _mixture(self, moves: list[int], *, up: bool) -> Mechanism:
        """Return T mixtures that move by entry j of a list where J is j, or more for the last."""
        tails = [Fraction(1)]
        for j in range(1, len(moves)):
            tails.append(min(tails[-1], self.tail(j) if up else self._least(j)))
        law = [a - b for a, b in pairwise([*tails, Fraction(0)])]
        return times(MixtureOfGaussians(self.sigma, moves, law), self.steps)

    @property
    def whole(self) -> Mechanism:
        """Return T mixtures that are no better at any δ: J counts as B where it is large."""
        most = min(self.usual, self.batch - 1)
        return self._mixture([*range(0, 2 * most + 1, 2), 2 * self.batch], up=True)

    def _least(self, j: int) -> Fraction:
        """Return a lower bound of P(J ≥ j)."""
        with ctx.workprec(_BITS):
            found = ball(self.share).beta_lower(j, self.batch - j + 1, regularized=True)
            low = Interval.of_ball(found).lower if found.is_finite() else Decimal(0)
        return _rounded(max(Fraction(low), Fraction(0)), up=False)

    def lower(
        self, delta: ExactReal, moves: int = 2, relative_width: Fraction | None = None
    ) -> Decimal:
        """Return a lower bound of ε(δ): that of sensitivities `moves`·j."""
        if delta.sign == 0:
            return Decimal("Infinity")
        run = self.mixed(moves, self.cut(delta)[0], up=False)
        return enclosed(run, Adjacency.ADD_REMOVE, delta, relative_width).lower

    def upper(
        self, delta: ExactReal, relation: Adjacency, relative_width: Fraction | None = None
    ) -> Decimal:
        """Return an upper bound of ε(δ) for records that are added or removed, or replaced."""
        if delta.sign == 0:
            return Decimal("Infinity")
        most, beyond = self.cut(delta)
        left = ExactReal.of_rational(rational_below(delta) - beyond)
        return enclosed(self.mixed(2, most, up=True), relation, left, relative_width).upper


def _rounded(value: Fraction, *, up: bool) -> Fraction:
    """Return a fraction of few bits that is not less, or not more."""
    if value in {0, 1}:
        return value
    unit = 1 << (_BITS + value.denominator.bit_length() - value.numerator.bit_length())
    return Fraction(math.ceil(value * unit) if up else math.floor(value * unit), unit)

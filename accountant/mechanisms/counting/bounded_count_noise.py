"""Bounded, unbiased noise for counts, as Definition 2 of its paper prints it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any

from flint import arb, fmpq

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.validate import Integer, NonNegative, Probability
from dpassay.accountant.mechanisms.additive.added_integers import integer_quantile
from dpassay.accountant.mechanisms.counting.count_noise_law import CountNoise, Value
from dpassay.accountant.numbers import interval
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.pairs.finite import Balls, FiniteLaws, FinitePair
from dpassay.accountant.release import sampling


@declared
class BoundedCountNoise(Mechanism, FiniteLaws):
    """Release a count n ≥ support plus Z in −D..D, P(Z = 0) = η, P(Z = ±i) = α_i(1 − η)/2.

    Sadeghi, Asoodeh and Calmon, "Differentially Private Mechanisms for Count Queries",
    Definition 2 as printed; the formulas are in `count_noise_law`. It is a law for all of its
    parameters, but meets the paper's optimum only for C ≥ P_{D−1}/A_D.

    Parameters
    ----------
    epsilon
        The ε ≥ 0 that the law is made for.
    eta
        The probability, in (0, 1), that the count is released unchanged.
    support
        D ≥ 1, the largest error. Counts below D need other noise (the released value must not
        be negative); for n ≥ D the noise does not depend on the count.
    """

    example = "BoundedCountNoise(epsilon=1, eta='1/3', support=3)"

    epsilon: NonNegative = NonNegative()
    eta: Probability = Probability(interior=True)
    support: Integer = Integer(least=1)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the laws of Z + 1 and Z."""
        return WorstCase.symmetric(
            FinitePair(self, 1),
            "The noise is the same for every count n ≥ support and symmetric, and neighbours "
            "differ by one: every pair is Z + 1 against Z or its mirror image.",
        )

    def outcomes(self, index: int) -> Sequence[object]:
        """Return the released values, relative to the smaller of the two counts."""
        return range(-self.support, self.support + index + 1)

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Return the laws of Z + index and of Z."""
        law, padding = [arb(mass) for mass in self._law()], [arb(0)] * index
        return padding + law, law + padding

    def rational_masses(self, index: int) -> tuple[Sequence[Fraction], Sequence[Fraction]] | None:
        """Return the two laws where they are rational: for ε = 0, or where only α_1 is not 0.

        Elsewhere no two neighbouring masses have an algebraic loss, so that balls decide: their
        ratio is a rational function of the transcendental number E = e^ε, and none of those that
        occur is a power of E.
        """
        if self.eta.rational is None:
            return None
        if self._is_three_points():
            side = (1 - self.eta.rational) / 2
            zeros = [Fraction(0)] * (self.support - 1)
            law = [*zeros, side, self.eta.rational, side, *zeros]
        elif self.epsilon.sign == 0:
            law = [_fraction(mass) for mass in self._law()]
        else:
            return None
        padding = [Fraction(0)] * index
        return padding + law, law + padding

    def is_mirrored(self, index: int) -> bool:
        """Return True: the law is symmetric, so reflection exchanges Z + index and Z."""
        return True

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the integer noise of `size` releases, exactly."""

        def cumulative() -> Balls:
            return list(accumulate(arb(mass) for mass in self._law()[:-1]))

        return sampling.indices_by_inversion(cumulative, size, rng=rng) - self.support

    def worst_shift(self) -> Any:
        """Return one person."""
        return 1

    @property
    def is_symmetric(self) -> bool:
        """True: of the law of large counts."""
        return True

    def mean_absolute_error(self) -> arb:
        """Return E|Z|."""
        masses = enumerate(self._law(), start=-self.support)
        return sum((abs(z) * arb(mass) for z, mass in masses), start=arb(0))

    def probability_exact(self) -> arb:
        """Return P(Z = 0) = η."""
        return self.eta.ball()

    def variances(self) -> list[arb]:
        """Return [(1 − η) Σ α_i i²]."""
        return [self._noise().variance]

    def quantile(self, probability: ExactReal) -> arb:
        """Return the least integer x with P(Z ≤ x) ≥ probability, −∞ at 0.

        P(Z < 0) = (1 − η)/2 and P(Z ≤ 0) = (1 + η)/2 are compared exactly.
        """
        if probability.sign == 0:
            return arb.neg_inf()
        rational = self.rational_masses(0)
        if rational is not None:
            reached = (ExactReal.of_rational(p) >= probability for p in accumulate(rational[0]))
            return arb(next(index for index, yes in enumerate(reached) if yes) - self.support)
        if self.eta.rational is not None:
            below, upto = (1 - self.eta.rational) / 2, (1 + self.eta.rational) / 2
            if probability.rational == below:
                return arb(-1)
            if below < (probability.rational or 0) <= upto:
                return arb(0)
        if probability.rational == 1:
            return self._largest_outcome()
        return integer_quantile(self._at_most, lambda x: self._at_most(-x - 1), probability)

    def _largest_outcome(self) -> arb:
        """Return the largest i with α_i > 0; a ball where the precision does not decide it."""
        masses = [arb(mass) for mass in self._law()[self.support :]]
        certain = max(i for i, mass in enumerate(masses) if mass > 0)
        possible = max(i for i, mass in enumerate(masses) if not mass.is_zero())
        return arb(certain).union(arb(possible))

    def _at_most(self, x: int) -> arb:
        law = [arb(mass) for mass in self._law()]
        return sum(law[: max(x + self.support + 1, 0)], start=arb(0))

    def _noise(self) -> CountNoise:
        return CountNoise.of(self.epsilon, self.eta, self.support)

    def _law(self) -> list[Value]:
        """Return P(Z = −D), …, P(Z = D)."""
        noise = self._noise()
        side = [noise.mass(i) for i in range(1, self.support + 1)]
        return [*reversed(side), noise.mass(0), *side]

    def _is_three_points(self) -> bool:
        """Whether α_1 = 1 and the others vanish: D = 1, or C > C_1 = 1 + E (regime 1)."""
        if self.support == 1:
            return True

        def excess() -> arb:
            noise = self._noise()
            return arb(noise.c - 1 - noise.ratio)

        return interval.sign(excess) == 1


def _fraction(mass: Value) -> Fraction:
    if not isinstance(mass, fmpq):
        raise TypeError("Expected rational arithmetic at epsilon = 0 and rational eta.")
    return Fraction(int(mass.p), int(mass.q))

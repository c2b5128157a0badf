"""Bounded noise for counts."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any, TypeAlias, final

from flint import arb, fmpq

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.validate import Integer, NonNegative, Probability, declared
from dpassay.accountant.errors import expected
from dpassay.accountant.mechanisms.additive.integers import integer_quantile
from dpassay.accountant.numbers import interval
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import cached_property
from dpassay.accountant.pairs.finite import Balls, FiniteLaws, FinitePair
from dpassay.accountant.release import sampling

# --- Formulas of bounded, unbiased noise for counts (Sadeghi, Asoodeh and Calmon) -----------------
# In the paper's notation the released value is n + Z with Z in −D..D, P(Z = 0) = η, E = e^ε,
# B = 2/(1 − η), C = 2η/(1 − η), and P(Z = i) = P(Z = −i) = α_i/B for 1 ≤ i ≤ D = support
# (Proposition 3). The sums that occur are P_m = Σ_{j<m} E^j, S_m = Σ_{j<m} (j + 1) E^j and
# A_m = Σ_{j<m} (m − j) E^j.
#
# Every method works at flint's current precision and returns the rational itself, or a ball that
# contains the value. An argument is an exact number or a ball. The paper's formulas are not always
# correct: `delta` and `mass` are those printed; `optimal_delta` is proved here.

Real: TypeAlias = ExactReal | Fraction | int | arb
Value: TypeAlias = arb | fmpq
"""A rational if ε = 0 and η is rational; only then do ties occur, and they are decided exactly."""


@final
@dataclass(frozen=True)
class CountNoise:
    """E, η and D, with the partial sums of the powers of E."""

    ratio: Value
    eta: Value
    support: int

    @staticmethod
    def of(epsilon: Real, eta: Real, support: int) -> CountNoise:
        """Convert the parameters: ε ≥ 0, η in (0, 1), support ≥ 1.

        Raises
        ------
        InvalidInputError
            If a parameter is certainly outside its range.
        """
        loss, share = _value(epsilon), _value(eta)
        if loss < 0:
            raise expected("epsilon", epsilon, "≥ 0", "Give 0 or a positive number.")
        if share <= 0 or share >= 1:
            raise expected("eta", eta, "in (0, 1)", "Give the probability of no noise.")
        if support < 1:
            raise expected("support", support, "≥ 1", "Give the largest size of the noise.")
        ratio = fmpq(1) if isinstance(loss, fmpq) and loss == 0 else arb(loss).exp()
        return CountNoise(ratio, share, support)

    @property
    def b(self) -> Value:
        """B = 2/(1 − η)."""
        return 2 / (1 - self.eta)

    @property
    def c(self) -> Value:
        """C = 2η/(1 − η)."""
        return 2 * self.eta / (1 - self.eta)

    @cached_property
    def powers(self) -> list[Value]:
        """E^0, …, E^D."""
        powers: list[Value] = [fmpq(1)]
        for _ in range(self.support):
            powers.append(powers[-1] * self.ratio)
        return powers

    @cached_property
    def plain(self) -> list[Value]:
        """P_0, …, P_{D+1}."""
        return list(itertools.accumulate(self.powers, initial=fmpq(0)))

    @cached_property
    def ascending(self) -> list[Value]:
        """S_0, …, S_D."""
        terms = (k * power for k, power in enumerate(self.powers[:-1], start=1))
        return list(itertools.accumulate(terms, initial=fmpq(0)))

    @cached_property
    def descending(self) -> list[Value]:
        """A_0, …, A_D; A_m = P_1 + … + P_m."""
        return list(itertools.accumulate(self.plain[1:-1], initial=fmpq(0)))

    def bound(self, k: int) -> Value:
        """Return δ_k, of Lemma 1 for k in 1..D, and of Lemma 2 for k = D + 1."""
        if k == self.support + 1:
            return 1 / (self.b * self.descending[self.support])
        excess = self.c * self.plain[k] - self.powers[k]
        return excess / (self.b * self.ascending[k])

    def missing_bound(self, m: int) -> Value:
        """Return (1 − C(E + … + E^m))/(B(A_m + A_{D−m})), a bound missing from the paper."""
        head = self.c * (self.plain[m + 1] - 1)
        tail = self.descending[m] + self.descending[self.support - m]
        return (1 - head) / (self.b * tail)

    @cached_property
    def delta(self) -> Value:
        """δ* = max over k in 1..D + 1 of δ_k, the optimum as Theorems 1 to 3 print it.

        It is a lower bound on max p(z) − E p(z ± 1) for every law, and is attained if and only if
        C ≥ P_{D−1}/A_D. The reason is that the condition p(1) ≤ E p(0) + δ is missing from the
        paper's program (Proposition 4). If C > C_D, it holds, as α_1 = (C − Bδ*)/E < C. If C ≤ C_D,
        where α_1 = P_D/A_D and Bδ* = 1/A_D, it reads P_D − 1 ≤ E C A_D, that is, C ≥ P_{D−1}/A_D.
        """
        return _largest(self.bound(k) for k in range(1, self.support + 2))

    @property
    def optimal_delta(self) -> Value:
        """The minimum, over all laws on −D..D, of the maximum of p(z) − E p(z ± 1) over z and sign.

        The laws have P(Z = 0) = η and do not depend on the count. Theorem 3 states this minimum as
        δ*. It is the maximum of δ_1, …, δ_D (Lemma 1) and, for 0 ≤ m ≤ D/2, of
        (1 − C(E + … + E^m))/(B(A_m + A_{D−m})), where m = 0 is Lemma 2. *It is a lower bound*:
        α_i ≤ Bδ P_{D+1−i} (from outside inwards), and α_i ≤ E^i C + Bδ P_i (from 0 outwards, by the
        condition missing from the paper); sum these, with the second for i ≤ m. *It is attained*:
        the conditions x_i ≤ E x_j + Bδ define a lattice. Its least element has Σα ≤ 1 by Lemma 1,
        its greatest Σα ≥ 1 by the other bounds, so a point between them has Σα = 1.
        """
        lemma_one = (self.bound(k) for k in range(1, self.support + 1))
        others = (self.missing_bound(m) for m in range(self.support // 2 + 1))
        return _largest([*lemma_one, *others])

    def crossover(self, k: int) -> Value:
        """Return C_k = P_{k+1}/A_k of eq. (34), k in 1..D."""
        return self.plain[k + 1] / self.descending[k]

    def weight(self, j: int) -> Value:
        """Return α_j of Definition 2, for j in 1..D.

        If C ≤ C_D it is P_{D+1−j}/A_D. Otherwise, with k the regime, eqs. (37) to (39) give
        (C − Bδ*P_j)/E^j for j ≤ k, and 0 for j > k. The regime is not needed: (C − Bδ*P_j)/E^j is
        ≥ 0 for j ≤ k, and ≤ 0 for j > k, since α_k ≤ Bδ* there.
        """
        low = self.plain[self.support + 1 - j] / self.descending[self.support]
        high = (self.c - self.b * self.delta * self.plain[j]) / self.powers[j]
        high = _largest([high, fmpq(0)])
        if self.c <= self.crossover(self.support):
            return low
        return high if self.c > self.crossover(self.support) else arb(low).union(arb(high))

    def mass(self, z: int) -> Value:
        """Return P(Z = z)."""
        if z == 0:
            return self.eta
        return self.weight(abs(z)) / self.b if abs(z) <= self.support else fmpq(0)

    @property
    def variance(self) -> arb:
        """The variance (1 − η) Σ α_i i² of Definition 2 as printed."""
        squares = (arb(2 * i * i * self.mass(i)) for i in range(1, self.support + 1))
        return sum(squares, start=arb(0))


def _value(number: Real) -> Value:
    if isinstance(number, arb):
        return number
    if isinstance(number, ExactReal):
        if number.rational is None:
            return number.ball()
        number = number.rational
    number = Fraction(number)
    return fmpq(number.numerator, number.denominator)


def _largest(values: Iterable[Value]) -> Value:
    def larger(x: Value, y: Value) -> Value:
        if isinstance(x, fmpq) and isinstance(y, fmpq):
            return x if x >= y else y
        return arb(x).max(arb(y))

    return functools.reduce(larger, values)


# --- Bounded, unbiased noise for counts, by Definition 2 of the paper as printed ------------------


@declared
class BoundedCountNoise(Mechanism, FiniteLaws):
    """Release a count n ≥ support plus Z in −D..D, P(Z = 0) = η, P(Z = ±i) = α_i(1 − η)/2.

    Sadeghi, Asoodeh and Calmon, "Differentially Private Mechanisms for Count Queries",
    Definition 2 as printed; `CountNoise` has its formulas. It is a probability law for all
    parameters, but attains the paper's optimum only if C ≥ P_{D−1}/A_D.

    Parameters
    ----------
    epsilon
        The ε ≥ 0 that the law is designed for.
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
        """Return the two laws if they are rational: if ε = 0, or if only α_1 is not 0.

        Otherwise no two neighbouring masses have an algebraic loss, so balls decide comparisons:
        the ratio of masses is a rational function of the transcendental number E = e^ε, and none of
        those that occur is a power of E.
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
        """Return the change by one person."""
        return 1

    @property
    def is_symmetric(self) -> bool:
        """True: the law is symmetric for every count n ≥ support."""
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
        """Return the largest i with α_i > 0; a ball if the precision does not decide it."""
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

"""The formulas of bounded, unbiased noise for counts (Sadeghi, Asoodeh and Calmon).

Notation of the paper: the released value is n + Z with Z in −D..D, P(Z = 0) = η, E = e^ε,
B = 2/(1 − η), C = 2η/(1 − η), and P(Z = i) = P(Z = −i) = α_i/B for 1 ≤ i ≤ D = support
(Proposition 3). The sums that occur are P_m = Σ_{j<m} E^j, S_m = Σ_{j<m} (j + 1) E^j and
A_m = Σ_{j<m} (m − j) E^j.

Every method works at flint's current precision and returns a ball that contains the value, or the
rational itself. An argument is a number (exact) or a ball. What the paper prints and what is true
differ: `delta` and `mass` are printed, `optimal_delta` is proved here.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

from flint import arb, fmpq

from dpassay.accountant.errors import expected
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import cached_property

Real: TypeAlias = ExactReal | Fraction | int | arb
Value: TypeAlias = arb | fmpq
"""Rational where ε = 0 and η is rational, so that ties, which occur only there, are decided."""


@final
@dataclass(frozen=True)
class CountNoise:
    """E, η and D, with the partial sums of the powers of E."""

    ratio: Value
    eta: Value
    support: int

    @staticmethod
    def of(epsilon: Real, eta: Real, support: int) -> CountNoise:
        """Read the parameters: ε ≥ 0, η in (0, 1), support ≥ 1.

        Raises
        ------
        InvalidInputError
            For a parameter that is certainly outside its range.
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
        """Return δ_k of Lemma 1 for k in 1..D, of Lemma 2 for k = D + 1."""
        if k == self.support + 1:
            return 1 / (self.b * self.descending[self.support])
        excess = self.c * self.plain[k] - self.powers[k]
        return excess / (self.b * self.ascending[k])

    def missing_bound(self, m: int) -> Value:
        """Return (1 − C(E + … + E^m))/(B(A_m + A_{D−m})), a bound the paper leaves out."""
        head = self.c * (self.plain[m + 1] - 1)
        tail = self.descending[m] + self.descending[self.support - m]
        return (1 - head) / (self.b * tail)

    @cached_property
    def delta(self) -> Value:
        """δ* = max over k in 1..D + 1 of δ_k, the optimum that Theorems 1 to 3 print.

        It is a lower bound of every law's largest p(z) − E p(z ± 1), attained if and only if
        C ≥ P_{D−1}/A_D. For the condition p(1) ≤ E p(0) + δ is missing from the paper's program
        (Proposition 4). For C > C_D it holds, as α_1 = (C − Bδ*)/E < C. For C ≤ C_D, where
        α_1 = P_D/A_D and Bδ* = 1/A_D, it reads P_D − 1 ≤ E C A_D, that is C ≥ P_{D−1}/A_D.
        """
        return _largest(self.bound(k) for k in range(1, self.support + 2))

    @property
    def optimal_delta(self) -> Value:
        """The least max over z and sign of p(z) − E p(z ± 1), over all laws on −D..D.

        For P(Z = 0) = η and noise that does not depend on the count; what Theorem 3 states as δ*.
        The maximum of δ_1, …, δ_D (Lemma 1) and, for 0 ≤ m ≤ D/2, of
        (1 − C(E + … + E^m))/(B(A_m + A_{D−m})), where m = 0 is Lemma 2. That nothing is smaller:
        α_i ≤ Bδ P_{D+1−i} (from outside inward) and α_i ≤ E^i C + Bδ P_i (from 0 outward, through
        the condition that the paper leaves out); sum these, with the second for i ≤ m. That it is
        attained: x_i ≤ E x_j + Bδ defines a lattice, its least element has Σα ≤ 1 by Lemma 1 and
        its greatest Σα ≥ 1 by the other bounds, so that some point between them has Σα = 1.
        """
        lemma_one = (self.bound(k) for k in range(1, self.support + 1))
        others = (self.missing_bound(m) for m in range(self.support // 2 + 1))
        return _largest([*lemma_one, *others])

    def crossover(self, k: int) -> Value:
        """Return C_k = P_{k+1}/A_k of eq. (34), k in 1..D."""
        return self.plain[k + 1] / self.descending[k]

    def weight(self, j: int) -> Value:
        """Return α_j of Definition 2, j in 1..D.

        For C ≤ C_D it is P_{D+1−j}/A_D. Else, with k the regime, eqs. (37) to (39) unroll to
        (C − Bδ*P_j)/E^j for j ≤ k and 0 beyond. No regime is needed: (C − Bδ*P_j)/E^j ≥ 0 for
        j ≤ k, and ≤ 0 for j > k, since α_k ≤ Bδ* there.
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

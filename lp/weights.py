"""The α's: a law of the noise as the mixture of two-point laws that the printed program weighs.

Proposition 1 of Sadeghi, Asoodeh and Calmon has for i1 < 0 < i2 the law with mean 0 on i1, 0, i2
and P(Z = 0) = η. Equation (3) is the mixture of these laws with weights α_{i1,i2,n}, the variables
of Proposition 2. A law p with mean 0 and p(0) = η is the mixture with

    α_{i1,i2} = p(i1) p(i2) (i2 + |i1|)/((1 − η) m),   m = Σ_{i>0} i p(i) = Σ_{i<0} |i| p(i).

For the two-point law gives i1 the mass (1 − η) i2/(i2 + |i1|), and Σ_{i2} p(i1) p(i2) i2/m = p(i1);
likewise for i2. The sum of the weights is m ((1 − η)/((1 − η) m)) = 1. Other weights may give the
same law: a law does not determine them. Proposition 3 and Definition 2 write a symmetric law as
p(±j) = α_j (1 − η)/2; these α_j are unique.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

from lp.laws import Law

Weights: TypeAlias = dict[tuple[int, int], Fraction]
"""α_{i1,i2} by (i1, i2), without those that are 0."""


def mixture_weights(law: Law) -> Weights:
    """Return α_{i1,i2} ≥ 0 with sum 1, whose mixture of two-point laws is the law, exactly."""
    masses = dict(zip(law.values, law.fractions(), strict=True))
    gains = sum((z * mass for z, mass in masses.items() if z > 0), start=Fraction(0))
    others = 1 - masses.get(0, Fraction(0))
    return {
        (i1, i2): masses[i1] * masses[i2] * (i2 - i1) / (others * gains)
        for i1 in law.values
        for i2 in law.values
        if i1 < 0 < i2 and masses[i1] and masses[i2]
    }


def symmetric_weights(law: Law, support: int) -> tuple[Fraction, ...]:
    """Return α_1, …, α_D of Proposition 3, of the mean of the law and its mirror image."""
    masses = dict(zip(law.values, law.fractions(), strict=True))
    none = Fraction(0)
    return tuple(
        (masses.get(j, none) + masses.get(-j, none)) / (1 - masses[0])
        for j in range(1, support + 1)
    )

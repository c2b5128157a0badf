"""Laws on a few integers with exact probabilities, and their weights α.

For i1 < 0 < i2, Proposition 1 of Sadeghi, Asoodeh and Calmon defines the law on {i1, 0, i2} with
mean 0 and P(Z = 0) = η. Equation (3) is the mixture of these two-point laws with weights
α_{i1,i2,n}, the variables of Proposition 2. Every law p with mean 0 and p(0) = η is such a mixture,
with

    α_{i1,i2} = p(i1) p(i2) (i2 + |i1|)/((1 − η) m),   m = Σ_{i>0} i p(i) = Σ_{i<0} |i| p(i).

Proof: the two-point law gives i1 the mass (1 − η) i2/(i2 + |i1|), and Σ_{i2} p(i1) p(i2) i2/m =
p(i1); likewise for i2. The weights sum to (Σ p(i1) m + m Σ p(i2))/((1 − η) m) = 1, since the two
sums over i1 < 0 and i2 > 0 add up to 1 − η. The weights are not unique. Proposition 3 and
Definition 2 write a symmetric law as p(±j) = α_j (1 − η)/2; these α_j are unique.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

from flint import fmpq

from dpassay.accountant.errors import UndecidedError
from dpassay.lp.certificate import rounded
from dpassay.lp.problem import Value, to_fraction

Weights: TypeAlias = dict[tuple[int, int], Fraction]
"""Maps (i1, i2) to α_{i1,i2}; zero weights are omitted."""


@final
@dataclass(frozen=True)
class Law:
    """A law with the exact probabilities P(Z = lowest + i) = probabilities[i], of sum 1."""

    lowest: int
    probabilities: tuple[fmpq, ...]

    def at(self, value: int) -> fmpq:
        """Return P(Z = value)."""
        index = value - self.lowest
        inside = 0 <= index < len(self.probabilities)
        return self.probabilities[index] if inside else fmpq(0)

    @property
    def values(self) -> range:
        """The range of values for which a probability is stored."""
        return range(self.lowest, self.lowest + len(self.probabilities))

    def fractions(self) -> list[Fraction]:
        """Return the probabilities as Python fractions."""
        return [to_fraction(probability) for probability in self.probabilities]

    def excess(self, other: Law, shift: int, ratio: fmpq) -> fmpq:
        """Return the maximum of P(Z = z) − E·P(Z' = z − shift) over the stored values z.

        With Z at a count n and Z' ~ `other` at n + shift, this is the δ that single outcomes need.
        """
        return max((self.at(z) - ratio * other.at(z - shift) for z in self.values), default=fmpq(0))


def nearest_law(
    weights: Mapping[int, Value], eta: Fraction, values: Iterable[int], digits: int | None
) -> Law:
    """Return a law with exactly P(Z = 0) = η and mean 0, close to given probabilities.

    Each probability is rounded to `digits` decimal places (None keeps rational ones). The missing
    mass and mean are then added to two probabilities: those of −1 and 1, or, if one of these would
    become negative, two of the largest.

    Raises
    ------
    UndecidedError
        If no pair of probabilities can absorb the difference.
    """
    zero = fmpq(0)
    entries: dict[int, fmpq] = {}
    for z in values:
        if z != 0:
            entries[z] = max(rounded(weights.get(z, zero), digits), zero)
    mass = 1 - fmpq(eta.numerator, eta.denominator) - sum(entries.values(), start=zero)
    mean = -sum((z * value for z, value in entries.items()), start=zero)
    if mass != 0 or mean != 0:
        _repair(entries, mass, mean)
    entries[0] = fmpq(eta.numerator, eta.denominator)
    low, high = min(entries), max(entries)
    return Law(low, tuple(entries.get(z, zero) for z in range(low, high + 1)))


def _repair(entries: dict[int, fmpq], mass: fmpq, mean: fmpq) -> None:
    """Change two entries by `mass` in total and `mean` in first moment, keeping both ≥ 0."""
    largest = sorted(entries, key=lambda z: entries[z], reverse=True)[:8]
    pairs: list[Sequence[int]] = [(-1, 1)]
    pairs += [(a, b) for a in largest for b in largest if a < b]
    for first, second in pairs:
        change = (mean - first * mass) / (second - first)
        if entries[second] + change >= 0 and entries[first] + mass - change >= 0:
            entries[second] += change
            entries[first] += mass - change
            return
    raise UndecidedError("The solver's result is too far from a law of mean 0 to be repaired.")


def mixture_weights(law: Law) -> Weights:
    """Return weights α_{i1,i2} ≥ 0 of sum 1 whose mixture of two-point laws is exactly the law."""
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
    """Return α_1, …, α_D of Proposition 3 for the average of the law and its mirror image."""
    masses = dict(zip(law.values, law.fractions(), strict=True))
    none = Fraction(0)
    return tuple(
        (masses.get(j, none) + masses.get(-j, none)) / (1 - masses[0])
        for j in range(1, support + 1)
    )

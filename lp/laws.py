"""Laws on a few integers with exact probabilities: rounded, repaired, compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import fmpq

from accountant.errors import UndecidedError
from lp.certificate import rounded
from lp.problem import Value, to_fraction


@final
@dataclass(frozen=True)
class Law:
    """P(Z = lowest + i) = probabilities[i], exactly; the sum is 1."""

    lowest: int
    probabilities: tuple[fmpq, ...]

    def at(self, value: int) -> fmpq:
        """Return P(Z = value)."""
        index = value - self.lowest
        inside = 0 <= index < len(self.probabilities)
        return self.probabilities[index] if inside else fmpq(0)

    @property
    def values(self) -> range:
        """The values that may have a probability."""
        return range(self.lowest, self.lowest + len(self.probabilities))

    def fractions(self) -> list[Fraction]:
        """Return the probabilities."""
        return [to_fraction(probability) for probability in self.probabilities]

    def excess(self, other: Law, shift: int, ratio: fmpq) -> fmpq:
        """Return max over z of P(Z = z) − E·P(Z' = z − shift), at least 0.

        For Z at a count n and Z' ~ `other` at n + shift this is the largest excess of a single
        outcome.
        """
        return max((self.at(z) - ratio * other.at(z - shift) for z in self.values), default=fmpq(0))


def nearest_law(
    weights: Mapping[int, Value], eta: Fraction, values: Iterable[int], digits: int | None
) -> Law:
    """Return a law with P(0) = η and mean 0 exactly, near the given probabilities.

    Every probability is rounded to `digits` decimal places (None: it is rational and stays);
    what is then missing of mass and mean is put on −1 and 1, or on the two largest
    probabilities where those are too small for it.

    Raises
    ------
    UndecidedError
        If no pair of values can take the difference.
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
    """Add `mass` and `mean` to two entries so that both stay ≥ 0."""
    largest = sorted(entries, key=lambda z: entries[z], reverse=True)[:8]
    pairs: list[Sequence[int]] = [(-1, 1)]
    pairs += [(a, b) for a in largest for b in largest if a < b]
    for first, second in pairs:
        change = (mean - first * mass) / (second - first)
        if entries[second] + change >= 0 and entries[first] + mass - change >= 0:
            entries[second] += change
            entries[first] += mass - change
            return
    raise UndecidedError("The solver's guess is too far from a law of mean 0 to be repaired.")

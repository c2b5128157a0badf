"""Any finite integer law, added to a count."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import Integer, Probabilities
from dpassay.accountant.mechanisms.additive.added_integers import AddedIntegers
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.pairs.finite import FiniteLaws, FinitePair
from dpassay.accountant.release import sampling


@declared
class IntegerNoise(AddedIntegers, FiniteLaws):
    """Release a true integer plus Z, P(Z = lowest + i) = probabilities[i].

    Parameters
    ----------
    probabilities
        Rational numbers ≥ 0 whose sum is exactly 1.
    lowest
        The outcome of the first probability.
    sensitivity
        The largest distance, an integer ≥ 1, between the true answers on two neighbours (for
        whichever relation it was computed). A record may raise the answer or lower it.

    Notes
    -----
    Nothing is assumed of the shape of the law. Without log-concavity a smaller shift may be
    worse than a larger one, and of a lopsided law a shift up differs from a shift down. A record
    may change the answer by any integer d with |d| ≤ sensitivity, so that Z + d is compared with Z
    for every d = ±1, …, ±sensitivity, whether the record is added or removed; those of −d are the
    reverse of those of d, and of a symmetric law the same.
    """

    example = "IntegerNoise(probabilities=['1/4', '1/2', '1/4'], lowest=-1)"

    probabilities: Probabilities = Probabilities()
    lowest: Integer = Integer()
    sensitivity: Integer = Integer(1, least=1)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the law shifted by ±1, …, ±sensitivity against itself."""
        sides = (False,) if self.probabilities == self.probabilities[::-1] else (False, True)
        shifts = range(1, self.sensitivity + 1)
        pairs = tuple(FinitePair(self, shift, side) for shift in shifts for side in sides)
        return WorstCase(
            pairs,
            pairs,
            "The noise does not depend on the data, so a pair of neighbours is a shift of the law; "
            "a record may raise or lower the answer, so every shift from 1 to sensitivity is "
            "listed, in both directions.",
        )

    def outcomes(self, index: int) -> Sequence[object]:
        """Return the released values for true answers 0 and `index`."""
        return range(self.lowest, self.highest + index + 1)

    def rational_masses(self, index: int) -> tuple[Sequence[Fraction], Sequence[Fraction]]:
        """Return the laws of Z + index and of Z."""
        law, padding = self.probabilities, (Fraction(0),) * index
        return padding + law, law + padding

    @property
    def highest(self) -> int:
        """The outcome of the last probability."""
        return self.lowest + len(self.probabilities) - 1

    def mean(self) -> Fraction:
        """Return E[Z], exactly."""
        return self._moment(1)

    def sample(self, size: int, *, rng: Randomness) -> Array:
        """Draw the integer noise of `size` releases, exactly."""
        cumulative = list(accumulate(self.probabilities))[:-1]
        indices = sampling.indices_by_inversion(
            lambda: [ball(value) for value in cumulative], size, rng=rng
        )
        return self.lowest + indices

    @property
    def is_symmetric(self) -> bool:
        """Whether P(Z = z) = P(Z = −z) for every z."""
        law = self.probabilities
        return self.lowest + self.highest == 0 and law == law[::-1]

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return every shift: without a shape of the law each may be the worst."""
        return [(0, shift) for shift in range(1, self.sensitivity + 1)]

    def mean_absolute_error(self) -> arb:
        """Return E|Z|."""
        masses = enumerate(self.probabilities, start=self.lowest)
        return ball(sum((abs(z) * p for z, p in masses), start=Fraction(0)))

    def probability_exact(self) -> arb:
        """Return P(Z = 0)."""
        inside = self.lowest <= 0 <= self.highest
        return ball(self.probabilities[-self.lowest]) if inside else arb(0)

    def variances(self) -> list[arb]:
        """Return [E[Z²] − E[Z]²]."""
        return [ball(self._moment(2) - self.mean() ** 2)]

    def mean_squared_error(self) -> arb:
        """Return E[Z²], which exceeds the variance where E[Z] ≠ 0."""
        return ball(self._moment(2))

    def quantile(self, probability: ExactReal) -> arb:
        """Return the least integer x with P(Z ≤ x) ≥ probability, −∞ at 0."""
        if probability.sign == 0:
            return arb.neg_inf()
        reached = (
            index
            for index, value in enumerate(accumulate(self.probabilities))
            if ExactReal.of_rational(value) >= probability
        )
        return arb(self.lowest + next(reached))

    def _moment(self, power: int) -> Fraction:
        terms = (
            p * Fraction(z) ** power for z, p in enumerate(self.probabilities, start=self.lowest)
        )
        return sum(terms, start=Fraction(0))

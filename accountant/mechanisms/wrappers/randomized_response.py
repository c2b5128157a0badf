"""Randomised response."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import Any

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency, refuse_added
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import Integer, NonNegative
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.pairs.finite import FiniteLaws, FinitePair
from dpassay.accountant.release import sampling
from dpassay.accountant.release.lattice import release_integers


class CategoryReport(Mechanism, FiniteLaws, ABC):
    """A report of one person's category, of k, with the privacy losses ε, 0 and −ε."""

    noise_argument = "epsilon"
    noise_grows = False

    categories: Integer

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the reports on two different categories. Raises AdjacencyError for add/remove."""
        refuse_added(adjacency, self)
        return WorstCase.symmetric(
            FinitePair(self, 0),
            "Renaming the categories maps every pair of different true categories to every other.",
        )

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return ε, 0, −ε."""
        epsilon: ExactReal = self.epsilon  # all but Rappor
        return [epsilon, ExactReal.of_rational(0), -epsilon]

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return two categories: all pairs are alike."""
        return [(0, 1)]


@declared
class RandomizedResponse(CategoryReport):
    """Report one person's category truthfully with odds e^ε against each other category.

    The true category is reported with probability e^ε/(e^ε + k − 1) and each of the others with
    probability 1/(e^ε + k − 1) (Warner 1965 for k = 2; Kairouz, Bonawitz and Ramage 2016).

    Parameters
    ----------
    epsilon
        ε ≥ 0, the largest privacy loss.
    categories
        k ≥ 2, the number of categories.

    Notes
    -----
    The input is one record, so neighbours replace it: the add/remove relation does not fit.
    """

    example = "RandomizedResponse(epsilon=1, categories=4)"

    epsilon: NonNegative = NonNegative()
    categories: Integer = Integer(2, least=2)

    def outcomes(self, index: int) -> Sequence[object]:
        """Name the reports by what they say."""
        return "the true category under P", "another category", "the true category under Q"

    def masses(self, index: int) -> tuple[list[arb], list[arb]]:
        """Return the probabilities of the three kinds of reports."""
        true, other = self._probabilities()
        rest = (self.categories - 2) * other
        return [true, rest, other], [other, rest, true]

    def error_probability(self) -> arb:
        """Return the probability (k − 1)/(e^ε + k − 1) that the report is not the truth."""
        return (self.categories - 1) * self._probabilities()[1]

    def sample(self, size: int, *, rng: Randomness) -> Array:
        """Draw (report − truth) mod k for `size` reports, exactly."""
        lies = sampling.indices_by_inversion(lambda: [self._probabilities()[0]], size, rng=rng)
        return lies * rng.integers(1, self.categories, size)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Report every entry of an answer, categories 0..k − 1, exactly."""
        reports = release_integers(lambda count: self.sample(count, rng=rng), value, times)
        return reports % self.categories

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw reports of a true category."""
        reports: Array = (self.sample(size, rng=rng) + int(answer)) % self.categories
        return reports

    def variances(self) -> list[arb]:
        """Return [p(1 − p)] of a reported bit.

        Raises NotApplicableError for more than two categories, which are names and not numbers.
        """
        self._require_bit("variance")
        true, other = self._probabilities()
        return [true * other]

    def mean_squared_error(self) -> arb:
        """Return the probability of a wrong bit: the report, unlike the truth, is biased.

        Raises NotApplicableError for more than two categories.
        """
        self._require_bit("mean squared error")
        return self.error_probability()

    def _probabilities(self) -> tuple[arb, arb]:
        """Return the probability of the true category, and of each other one."""
        odds = (-self.epsilon.ball()).exp()
        true = 1 / (1 + (self.categories - 1) * odds)
        return true, odds * true

    def _require_bit(self, question: str) -> None:
        if self.categories > 2:
            raise NotApplicableError(
                f"RandomizedResponse over {self.categories} categories has no {question}: its "
                "reports are names. Ask for error_probability()."
            )

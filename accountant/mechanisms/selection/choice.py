"""What the selections of one of several candidates share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from flint import arb

from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.errors import NotApplicableError, expected
from dpassay.accountant.numbers.exact import ExactReal, exact

WITHIN = 1 - 1e-12
"""Scores in floats move by this share of the sensitivity, lest they move by more."""
_LEAST_CANDIDATES = 2
"""A selection is among two candidates at least."""


class Choice(Mechanism, ABC):
    """A mechanism that reports one of several candidates, by their scores."""

    @abstractmethod
    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Select a candidate by its index, exactly: no rounding changes a probability.

        The value: the scores, one for each candidate.
        """

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw selections among candidates of the same score, two where any number is possible."""
        return self.release([0] * getattr(self, "candidates", 2), size, rng=rng)

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw selections with some scores."""
        return self.release(answer, size, rng=rng)

    def variances(self) -> list[arb]:
        """Raise NotApplicableError: candidates are names."""
        raise NotApplicableError(f"{type(self).__name__} selects a candidate: it has no variance.")


def read_scores(scores: ArrayLike) -> list[ExactReal]:
    """Return the scores exactly; raise InvalidInputError for one, or one that is not finite."""
    given = list(scores) if isinstance(scores, (list, tuple)) else _listed(scores)
    if len(given) < _LEAST_CANDIDATES:
        raise expected("scores", given, "to be a list of at least two numbers")
    return [exact(value, f"scores[{i}]") for i, value in enumerate(given)]


def _listed(scores: ArrayLike) -> list[Any]:
    array = np.asarray(scores)
    if array.ndim != 1:
        raise expected("scores", scores, "to be a list of at least two numbers")
    values: list[Any] = array.tolist()
    return values

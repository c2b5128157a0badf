"""Any randomiser of finitely many inputs, as a matrix of probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, permutations
from typing import TYPE_CHECKING, Any, TypeAlias, final

from flint import arb

from accountant.core.adjacency import Adjacency
from accountant.core.mechanism import Mechanism
from accountant.core.pair import WorstCase
from accountant.core.randomness import SECURE
from accountant.core.validate import Field, exact_list, rational
from accountant.errors import AdjacencyError, InvalidInputError, NotApplicableError, expected
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import ball
from accountant.numbers.precision import cached_property
from accountant.pairs.finite import FiniteLaws, FinitePair

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from accountant.core.randomness import Randomness

Rows: TypeAlias = tuple[tuple[Fraction, ...], ...]
_MOST_INPUTS = 100
"""Inputs: 9,900 ordered pairs of rows, each of which every question looks at."""


@final
class Stochastic(Field[Rows, Sequence[Sequence[Any]]]):
    """Two or more rows of rational numbers ≥ 0, of one length, each of sum exactly 1."""

    def read(self, value: Sequence[Sequence[Any]]) -> Rows:
        """Convert every row, naming the entry or the row that is wrong."""
        name = self._name
        listed = value.tolist() if hasattr(value, "tolist") else value
        if isinstance(listed, (str, bytes)) or not isinstance(listed, Sequence):
            raise expected(name, value, "to be a list of rows", 'Write [["3/4", "1/4"], …].')
        if not 2 <= len(listed) <= _MOST_INPUTS:
            raise InvalidInputError(
                f"Expected {name} of 2 to {_MOST_INPUTS} rows, not {len(listed)}."
            )
        rows = tuple(self._row(f"{name}[{i}]", row) for i, row in enumerate(listed))
        for i, row in enumerate(rows):
            if len(row) != len(rows[0]):
                raise expected(
                    f"{name}[{i}]", list(listed[i]), f"to have {len(rows[0])} entries, as the first"
                )
        return rows

    @staticmethod
    def _row(name: str, given: Sequence[Any]) -> tuple[Fraction, ...]:
        row = tuple(
            rational(f"{name}[{j}]", entry, least=0)
            for j, entry in enumerate(exact_list(name, given))
        )
        if (total := sum(row, start=Fraction(0))) != 1:
            raise InvalidInputError(
                f"Expected {name} of sum 1, not {ExactReal.of_rational(total)}. Write the entries "
                'as exact fractions, such as "1/3", or divide each by the sum.'
            )
        return row


@final
@dataclass(frozen=True, repr=False)
class Channel(Mechanism, FiniteLaws):
    """Report an outcome j of an input i with probability matrix[i][j].

    Parameters
    ----------
    matrix
        A row for each input, a column for each outcome: rational numbers ≥ 0, each row of sum
        exactly 1.

    Notes
    -----
    The input is one record, so neighbours replace it, and every two inputs are neighbours (local
    differential privacy). The profile is the maximum over all ordered pairs of rows. A pair with
    the same entries (p, q) as another one, in another order, has the same profile, and is listed
    once.
    """

    example = "Channel(matrix=[['2/3', '1/3'], ['1/4', '3/4']])"

    matrix: Stochastic = Stochastic()

    @cached_property
    def _different(self) -> list[int]:
        """The numbers i·inputs + j of ordered pairs of rows, one of each profile."""
        found: dict[tuple[tuple[Fraction, Fraction], ...], int] = {}
        for i, j in permutations(range(len(self.matrix)), 2):
            entries = sorted(zip(self.matrix[i], self.matrix[j], strict=True))
            found.setdefault(tuple(entries), i * len(self.matrix) + j)
        return list(found.values())

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the ordered pairs of rows. Raises AdjacencyError for add/remove."""
        if adjacency is Adjacency.ADD_REMOVE:
            raise AdjacencyError(
                "Channel takes exactly one record, which cannot be added or removed. "
                "Name adjacency='replace-one', or none."
            )
        pairs = tuple(FinitePair(self, index) for index in self._different)
        return WorstCase(
            pairs,
            pairs,
            "Every two inputs are neighbours: all ordered pairs of rows are listed, those with "
            "the same entries in another order once.",
        )

    def outcomes(self, index: int) -> Sequence[object]:
        """Return the numbers of the columns."""
        return range(len(self.matrix[0]))

    def rational_masses(self, index: int) -> tuple[Sequence[Fraction], Sequence[Fraction]]:
        """Return two rows."""
        i, j = divmod(index, len(self.matrix))
        return self.matrix[i], self.matrix[j]

    @property
    def dimension(self) -> int:
        """One."""
        return 1

    def sample(self, size: int, *, rng: np.random.Generator) -> NDArray[Any]:
        """Draw `size` reports of the input 0, exactly."""
        return self.outputs(0, size, rng=rng)

    def release(
        self, value: ArrayLike, size: int | None = None, *, rng: Randomness = SECURE
    ) -> NDArray[Any]:
        """Report every entry of an array of inputs 0, …, n − 1, exactly."""
        import numpy as np

        from accountant.release.lattice import integers

        inputs = integers(value)
        for place, entry in enumerate(inputs.flat):
            if not 0 <= entry < len(self.matrix):
                raise expected(f"value[{place}]", entry, f"in 0..{len(self.matrix) - 1}")
        shape = inputs.shape if size is None else (size, *inputs.shape)
        every = np.broadcast_to(inputs, shape)
        reports = np.empty(shape, dtype=np.int64)
        for entry in np.unique(inputs):
            here = every == entry
            reports[here] = self.outputs(int(entry), int(here.sum()), rng=rng)
        return reports

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return the pairs of inputs, one of each profile."""
        return [divmod(index, len(self.matrix)) for index in self._different]

    def outputs(self, answer: Any, size: int, *, rng: Randomness) -> NDArray[Any]:
        """Draw `size` reports of an input."""
        from accountant.release import sampling

        cumulative = list(accumulate(self.matrix[int(answer)]))[:-1]
        return sampling.indices_by_inversion(
            lambda: [ball(value) for value in cumulative], size, rng=rng
        )

    def variances(self) -> list[arb]:
        """Raise NotApplicableError: the outcomes are names, and no answer is the true one."""
        raise NotApplicableError(
            "Channel has no variance: its outcomes are names, not answers with an error. "
            "Ask for delta, epsilon or the trade-off function."
        )

"""Any randomiser of finitely many inputs, as a matrix of probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate, combinations
from pathlib import Path
from typing import Any, TypeAlias, final

from dpassay.accountant.core.adjacency import Adjacency, refuse_added
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import Field, integer
from dpassay.accountant.errors import InvalidInputError, expected
from dpassay.accountant.mechanisms.wrappers.entries import (
    Entry,
    TableLaws,
    balls,
    law,
)
from dpassay.accountant.numbers.precision import cached_property
from dpassay.accountant.pairs.finite import FinitePair
from dpassay.accountant.release import sampling
from dpassay.accountant.release.lattice import release_reports

Rows: TypeAlias = tuple[tuple[Entry, ...], ...]
Edges: TypeAlias = tuple[tuple[int, int], ...]
_MOST_INPUTS = 100
"""Inputs: 9,900 ordered pairs of rows, each of which every question looks at."""
_MOST_BYTES = 10_000_000
"""Of a file: a larger one is no table of so few inputs."""


@final
class Stochastic(Field[Rows, Any]):
    """Two or more rows of numbers ≥ 0, of one length, each of sum exactly 1.

    Given as a list of rows, as an array, or as the name of a file, .csv or .npy, that has it.
    """

    def read(self, value: Any) -> Rows:
        """Convert every row, naming the entry or the row that is wrong."""
        name = self._name
        if isinstance(value, (str, Path)):
            value = self._file(Path(value))
        listed = value.tolist() if hasattr(value, "tolist") else value
        if isinstance(listed, (str, bytes)) or not isinstance(listed, Sequence):
            raise expected(name, value, "to be a list of rows", 'Write [["3/4", "1/4"], …].')
        if not 2 <= len(listed) <= _MOST_INPUTS:
            raise InvalidInputError(
                f"Expected {name} of 2 to {_MOST_INPUTS} rows, not {len(listed)}."
            )
        rows = tuple(law(f"{name}[{i}]", row) for i, row in enumerate(listed))
        for i, row in enumerate(rows):
            if len(row) != len(rows[0]):
                size = f"to have {len(rows[0])} entries, as the first"
                raise expected(f"{name}[{i}]", list(listed[i]), size)
        return rows

    def _file(self, path: Path) -> Any:
        """Read a table of numbers: the text of each cell of a .csv, or the array of an .npy."""
        import csv

        kind = path.suffix.lower()
        if kind not in (".csv", ".npy") or not path.is_file():
            raise expected(
                self._name, str(path), "to be rows, or a file of them that ends in .csv or .npy"
            )
        if path.stat().st_size > _MOST_BYTES:
            raise expected(self._name, str(path), f"to be a file of at most {_MOST_BYTES} bytes")
        try:
            if kind == ".csv":
                with path.open(newline="", encoding="utf-8-sig") as file:
                    return [[cell.strip() for cell in row] for row in csv.reader(file) if row]
            return np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError, csv.Error):
            raise expected(self._name, str(path), "to be a table of numbers") from None


@final
class Graph(Field[Edges | None, Any]):
    """Pairs of different whole numbers ≥ 0; None for all."""

    def read(self, value: Any) -> Edges | None:
        """Convert every pair, naming the one that is wrong."""
        if value is None:
            return None
        listed = value.tolist() if hasattr(value, "tolist") else value
        if isinstance(listed, (str, bytes)) or not isinstance(listed, Sequence) or not listed:
            raise expected(self._name, value, "to be a list of pairs", "Write [[0, 1], [1, 2]].")
        found = []
        for index, pair in enumerate(listed):
            name = f"{self._name}[{index}]"
            if isinstance(pair, (str, bytes)) or not isinstance(pair, Sequence) or len(pair) != 2:
                raise expected(name, pair, "to be a pair of inputs", "Write [0, 1].")
            i, j = (integer(f"{name}[{k}]", entry, least=0) for k, entry in enumerate(pair))
            if i == j:
                raise expected(name, pair, "to be two different inputs")
            found.append((i, j))
        return tuple(found)


@declared
class Channel(Mechanism, TableLaws):
    """Report an outcome j of an input i with probability matrix[i][j].

    Parameters
    ----------
    matrix
        A row for each input, a column for each outcome: rational numbers ≥ 0, or formulas with
        + - * / **, exp and sqrt such as "exp(1)/(exp(1)+1)", each row of sum exactly 1. A list of
        rows, an array, or a file that ends in .csv or .npy.
    neighbours
        Pairs [i, j] of inputs, counted from 0; without it every two inputs are neighbours.

    Notes
    -----
    Without `neighbours` the input is one record, so neighbours replace it (local differential
    privacy). With it the inputs may be datasets, and the pairs are the relation, whatever its name.
    The profile is the maximum over all pairs of rows, in both orders. A pair with the same entries
    (p, q) as another one, in another order, has the same profile, and is listed once.
    """

    every_pair_listed = True
    example = "Channel(matrix=[['2/3', '1/3'], ['1/4', '3/4']])"
    no_variance = (
        "Channel has no variance: its outcomes are names, not answers with an error. "
        "Ask for delta, epsilon or the trade-off function."
    )

    matrix: Stochastic = Stochastic()
    neighbours: Graph = Graph(None)

    def __post_init__(self) -> None:
        for pair in self.neighbours or ():
            if max(pair) >= len(self.matrix):
                raise expected("neighbours", list(pair), f"to be in 0..{len(self.matrix) - 1}")

    def __hash__(self) -> int:
        """Hash once: every pair of rows asks."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.matrix, self.neighbours))

    @cached_property
    def _different(self) -> list[int]:
        """The numbers i·inputs + j of ordered pairs of rows, one of each profile."""
        found: dict[tuple[tuple[int, int], ...], int] = {}
        names: dict[Entry, int] = {}
        named = [[names.setdefault(entry, len(names)) for entry in row] for row in self.matrix]
        edges = self.neighbours or combinations(range(len(self.matrix)), 2)
        for i, j in sorted({way for a, b in edges for way in ((a, b), (b, a))}):
            entries = sorted(zip(named[i], named[j], strict=True))
            found.setdefault(tuple(entries), i * len(self.matrix) + j)
        return list(found.values())

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the ordered pairs of rows. Raises AdjacencyError for a record that is added."""
        if self.neighbours is None:
            refuse_added(adjacency, self)
        pairs = tuple(FinitePair(self, index) for index in self._different)
        return WorstCase(
            pairs,
            pairs,
            "All ordered pairs of rows of neighbours are listed, those with the same entries in "
            "another order once.",
        )

    def outcomes(self, index: int) -> Sequence[object]:
        """Return the numbers of the columns."""
        return range(len(self.matrix[0]))

    def rows(self, index: int) -> tuple[Sequence[Entry], Sequence[Entry]]:
        """Return two rows."""
        i, j = divmod(index, len(self.matrix))
        return self.matrix[i], self.matrix[j]

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw `size` reports of the input 0, exactly."""
        return self.outputs(0, size, rng=rng)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Report every entry of an array of inputs 0, …, n − 1, exactly."""
        draw = partial(self.outputs, rng=rng)
        return release_reports(draw, value, times, inputs=len(self.matrix))

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return the pairs of inputs, one of each profile."""
        return [divmod(index, len(self.matrix)) for index in self._different]

    def outputs(self, answer: Any, size: int, *, rng: Randomness) -> Array:
        """Draw `size` reports of an input."""
        row = self.matrix[int(answer)]
        return sampling.indices_by_inversion(
            lambda: list(accumulate(balls(row)))[:-1], size, rng=rng
        )

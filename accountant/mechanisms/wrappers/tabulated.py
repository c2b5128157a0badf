"""Any finite pair of laws."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.validate import Read
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.mechanisms.wrappers.entries import Entry, TableLaws, balls, law
from dpassay.accountant.pairs.finite import FinitePair
from dpassay.accountant.release import sampling


@declared
class Tabulated(Mechanism, TableLaws):
    """A mechanism known by its laws on one pair of neighbours: outcomes 0, …, n − 1.

    Parameters
    ----------
    p, q
        Probabilities of the outcomes, of sum exactly 1, in the same order: rational, or formulas
        with + - * / **, exp and sqrt. REMOVE compares p with q, ADD compares q with p.

    Notes
    -----
    A guarantee holds for these two datasets, under any relation; that no other neighbours
    are worse is for whoever made the table to say. `sample` draws outcomes from p.
    """

    example = "Tabulated(p=['3/4', '1/4'], q=['1/4', '3/4'])"
    no_variance = (
        "Tabulated has no variance: its outcomes are names, not answers with an error. "
        "Ask for delta, epsilon or the trade-off function."
    )

    p: Read[tuple[Entry, ...], Any] = Read(law)
    q: Read[tuple[Entry, ...], Any] = Read(law)

    def __post_init__(self) -> None:
        if len(self.p) != len(self.q):
            raise InvalidInputError(
                f"Expected p and q to list the same outcomes, not {len(self.p)} and "
                f"{len(self.q)}. Write 0 where an outcome is impossible."
            )

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pair of tables, in both directions."""
        pair = FinitePair(self, 0)
        return WorstCase((pair,), (pair.reverse(),), "The pair is given as it is.")

    def outcomes(self, index: int) -> Sequence[object]:
        """Return 0, …, n − 1."""
        return range(len(self.p))

    def rows(self, index: int) -> tuple[Sequence[Entry], Sequence[Entry]]:
        """Return p and q."""
        return self.p, self.q

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw `size` outcomes from p, exactly."""
        return sampling.indices_by_inversion(
            lambda: list(accumulate(balls(self.p)))[:-1], size, rng=rng
        )

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return the two datasets: 0 has the law p, 1 the law q."""
        return [(0, 1)]

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw outcomes from p for the answer 0, else from q."""
        law = self if answer == 0 else Tabulated(self.q, self.p)
        return law.sample(size, rng=rng)

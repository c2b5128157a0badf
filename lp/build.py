"""Programs of optimal count noise, from their problems.

The α's of Proposition 2 are not needed: the vertices of {p ≥ 0 on [−A:D] without 0, Σ p = 1 − η,
Σ z p = 0} are the two-point laws of Proposition 1, so mixing those laws gives every law with
P1 to P3, and the laws p(z | n) themselves are the variables. Which laws have to be distinguished
is said by a `Layout`; which layout is enough is proved afterwards, by the certificate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, final

from dpassay.lp.problem import CountNoiseProblem
from dpassay.lp.program import ONE, ZERO, Coefficient, Program, Row


class Comparison(NamedTuple):
    """Law `first` at a count n against law `second` at n + shift, shift = ±1."""

    first: int
    second: int
    shift: int


@final
@dataclass(frozen=True)
class Layout:
    """Which laws are variables and which of them are compared.

    Parameters
    ----------
    lowest
        The least value of the noise, law by law.
    comparisons
        The pairs of neighbours, each in one direction.
    """

    lowest: tuple[int, ...]
    comparisons: tuple[Comparison, ...]

    @staticmethod
    def first_counts(problem: CountNoiseProblem, counts: int) -> Layout:
        """Laws for so many counts and nothing beyond: a relaxation if there are more."""
        return Layout(
            tuple(problem.lowest(problem.min_count + n) for n in range(counts)),
            tuple(
                comparison
                for n in range(counts - 1)
                for comparison in (Comparison(n, n + 1, 1), Comparison(n + 1, n, -1))
            ),
        )

    @staticmethod
    def shared_tail(problem: CountNoiseProblem, counts: int) -> Layout:
        """Laws for so many counts, the last of them used for every larger count as well."""
        own = Layout.first_counts(problem, counts)
        last = counts - 1
        return Layout(
            own.lowest, (*own.comparisons, Comparison(last, last, 1), Comparison(last, last, -1))
        )

    @staticmethod
    def one_law(problem: CountNoiseProblem) -> Layout:
        """One law for every n ≥ D."""
        return Layout((-problem.support,), (Comparison(0, 0, 1), Comparison(0, 0, -1)))


@final
@dataclass(frozen=True)
class CountProgram:
    """The linear program of a layout, and the names of its rows and columns.

    Column 0 is δ; `entries[j − 1]` is the (law, z) of column j. Rows 0, 2, 4, … say that the
    masses of the laws are 1 − η, rows 1, 3, 5, … that their means are 0; `flows[i]` is the
    (comparison, z) of the row after those, p(z | n) ≤ E p(z − shift | n + shift) + δ.
    """

    layout: Layout
    program: Program
    entries: tuple[tuple[int, int], ...]
    flows: tuple[tuple[Comparison, int], ...]

    @property
    def equalities(self) -> int:
        """Number of rows that are equalities; they come first."""
        return 2 * len(self.layout.lowest)


def count_program(
    problem: CountNoiseProblem, layout: Layout, *, magnitude: int, log_ratio: float
) -> CountProgram:
    """Write down the program of a layout.

    Parameters
    ----------
    magnitude
        A guess of log₂ δ, for the scaling.
    log_ratio
        log₂ E, for the scaling.
    """
    entries = [(law, z) for law, low in enumerate(layout.lowest) for z in _values(problem, low)]
    column = {entry: index for index, entry in enumerate(entries, start=1)}
    rows: list[Row] = []
    for law, low in enumerate(layout.lowest):
        columns = [(column[law, z], z) for z in _values(problem, low)]
        mass = tuple((index, ONE) for index, _ in columns)
        mean = tuple((index, Coefficient(z)) for index, z in columns)
        rows += [Row(mass, Coefficient(1 - problem.eta), True), Row(mean, ZERO, True)]
    flows: list[tuple[Comparison, int]] = []
    for comparison in layout.comparisons:
        for z in range(layout.lowest[comparison.first], problem.support + 1):
            flows.append((comparison, z))
            rows.append(_comparison(problem, comparison, z, column))
    exponents = [max(magnitude, -round(abs(z) * log_ratio)) for _, z in entries]
    program = Program({0: Fraction(1)}, tuple(rows), (magnitude, *exponents))
    return CountProgram(layout, program, tuple(entries), tuple(flows))


def _values(problem: CountNoiseProblem, low: int) -> Iterator[int]:
    """Yield the noise values whose probability is a variable: low..D without 0."""
    return (z for z in range(low, problem.support + 1) if z != 0)


def _comparison(
    problem: CountNoiseProblem, comparison: Comparison, z: int, column: dict[tuple[int, int], int]
) -> Row:
    """Return δ + E p(z − shift | second) − p(z | first) ≥ 0, with η in the place of p(0)."""
    further = z - comparison.shift
    terms: dict[int, Coefficient] = {0: ONE}
    constant, slope = Fraction(0), Fraction(0)
    if z == 0:
        constant = problem.eta
    else:
        terms[column[comparison.first, z]] = Coefficient(-1)
    if further == 0:
        slope = -problem.eta
    elif (comparison.second, further) in column:
        terms[column[comparison.second, further]] = Coefficient(0, 1)
    return Row(tuple(terms.items()), Coefficient(constant, slope))

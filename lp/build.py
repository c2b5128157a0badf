"""The linear programs of optimal count noise.

The variables are the probabilities p(z | n), not the weights α of Proposition 2. This is
equivalent: the vertices of {p ≥ 0 on [−A:D] without 0, Σ p = 1 − η, Σ z p = 0} are the two-point
laws of Proposition 1, so their mixtures are exactly the laws with (P1) to (P3). A `Layout` says
which counts share a law. That a layout suffices is proved afterwards, by the certificate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, final

from dpassay.lp.problem import CountNoiseProblem
from dpassay.lp.program import ONE, ZERO, Coefficient, Program, Row


class Comparison(NamedTuple):
    """The constraint between law `first` at a count n and law `second` at n + shift, shift = ±1."""

    first: int
    second: int
    shift: int


@final
@dataclass(frozen=True)
class Layout:
    """The laws that are variables of a program, and the pairs of laws that it constrains.

    Parameters
    ----------
    lowest
        The least value of the noise under each law.
    comparisons
        The pairs of neighbouring laws, with direction.
    """

    lowest: tuple[int, ...]
    comparisons: tuple[Comparison, ...]

    @staticmethod
    def first_counts(problem: CountNoiseProblem, counts: int) -> Layout:
        """Return a law for each of the first `counts` counts; a relaxation if there are more."""
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
        """Return the same laws, the last of which serves all larger counts: a restriction."""
        own = Layout.first_counts(problem, counts)
        last = counts - 1
        return Layout(
            own.lowest, (*own.comparisons, Comparison(last, last, 1), Comparison(last, last, -1))
        )

    @staticmethod
    def one_law(problem: CountNoiseProblem) -> Layout:
        """Return a single law for all counts n ≥ D."""
        return Layout((-problem.support,), (Comparison(0, 0, 1), Comparison(0, 0, -1)))


@final
@dataclass(frozen=True)
class CountProgram:
    """The linear program of a layout, with the meaning of its rows and columns.

    Column 0 is δ, and column j ≥ 1 is p(z) of a law, where (law, z) = `entries[j − 1]`. Of the
    first rows, those with even index say that a law has mass 1 − η, those with odd index that its
    mean is 0. After them, row i is p(z | n) ≤ E p(z − shift | n + shift) + δ for the (comparison,
    z) = `flows[i]`.
    """

    layout: Layout
    program: Program
    entries: tuple[tuple[int, int], ...]
    flows: tuple[tuple[Comparison, int], ...]

    @property
    def equalities(self) -> int:
        """Number of equalities, which are the first rows."""
        return 2 * len(self.layout.lowest)


def count_program(
    problem: CountNoiseProblem, layout: Layout, *, magnitude: int, log_ratio: float
) -> CountProgram:
    """Return the program of a layout.

    Parameters
    ----------
    problem, layout
        The problem, and the laws to distinguish.
    magnitude
        An estimate of log₂ δ, used for the scaling.
    log_ratio
        log₂ E, used for the scaling.
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
    """Return the noise values whose probability is a variable: low..D without 0."""
    return (z for z in range(low, problem.support + 1) if z != 0)


def _comparison(
    problem: CountNoiseProblem, comparison: Comparison, z: int, column: dict[tuple[int, int], int]
) -> Row:
    """Return the row δ + E p(z − shift | second) − p(z | first) ≥ 0, with p(0) = η inserted."""
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

"""Proposition 1's two-point laws and what they give: Example 1, eqs. (4) to (6).

For a count n, i1 in −min(n, D)..−1 and i2 in 1..D the two-point law of Sadeghi, Asoodeh and
Calmon is, eq. (2),

    P(Z = i1) = (1 − η) i2/(i2 − i1),   P(Z = 0) = η,   P(Z = i2) = −(1 − η) i1/(i2 − i1).

Every law that satisfies P1 to P3 is a mixture of these, eq. (3): they are the vertices of
{p ≥ 0 : Σ p = 1 − η, Σ z p = 0}. An entry of a channel matrix is therefore a linear form in the
weights α_{i1,i2,n} with rational coefficients, which is how it is kept here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

from dpassay.accountant.core.validate import integer, rational
from dpassay.accountant.errors import expected
from dpassay.accountant.numbers.exact import Number

Pair: TypeAlias = tuple[int, int]
"""(i1, i2) with i1 < 0 < i2."""


@final
@dataclass(frozen=True)
class Entry:
    """One entry of a channel matrix: constant + Σ coefficients[i1, i2]·α_{i1,i2,count}."""

    count: int
    constant: Fraction
    coefficients: Mapping[Pair, Fraction]

    def at(self, weights: Mapping[Pair, Fraction]) -> Fraction:
        """Return the probability for given weights; a weight that is not given is 0."""
        terms = (value * weights.get(pair, 0) for pair, value in self.coefficients.items())
        return sum(terms, start=self.constant)

    def __str__(self) -> str:
        """Return the entry as the paper prints it, such as 1/4 α[-1,1,1] + 1/3 α[-1,2,1]."""
        parts = [str(self.constant)] if self.constant else []
        parts += [
            f"{value} α[{first},{second},{self.count}]"
            for (first, second), value in self.coefficients.items()
        ]
        return " + ".join(parts) or "0"


def two_point_pairs(count: int, support: int) -> list[Pair]:
    """Return the pairs (i1, i2) of Proposition 1: min(n, D)·D of them."""
    lowest = -min(integer("count", count, least=1), integer("support", support, least=1))
    return [(i1, i2) for i1 in range(lowest, 0) for i2 in range(1, support + 1)]


def two_point_law(eta: Number, i1: int, i2: int) -> dict[int, Fraction]:
    """Return P(Z = i1), P(Z = 0), P(Z = i2) of eq. (2)."""
    share = _error_free(eta)
    if not i1 < 0 < i2:
        raise expected("i1", i1, "< 0", f"And i2={i2} has to be > 0.")
    width = i2 - i1
    return {i1: (1 - share) * i2 / width, 0: share, i2: (1 - share) * -i1 / width}


def noise_column(eta: Number, support: int, count: int) -> dict[int, Entry]:
    """Return p_Z(z | n) of eq. (3) for z in −D..D: a column of (5)."""
    share = _error_free(eta)
    pairs = two_point_pairs(count, support)
    laws = {pair: two_point_law(share, *pair) for pair in pairs}
    return {
        z: Entry(count, share, {})
        if z == 0
        else Entry(count, Fraction(0), {pair: law[z] for pair, law in laws.items() if z in law})
        for z in range(-support, support + 1)
    }


def noise_matrix(eta: Number, support: int, max_count: int) -> list[list[Entry]]:
    """Return p_Z(z | n), rows z = −D..D and columns n = 1..N: eq. (5) for (1/2, 2, 3)."""
    columns = [noise_column(eta, support, n) for n in range(1, max_count + 1)]
    return [[column[z] for column in columns] for z in range(-support, support + 1)]


def output_matrix(eta: Number, support: int, max_count: int) -> list[list[Entry]]:
    """Return p_Y(y | n), rows y = 0..N + D and columns n = 1..N: eq. (6) for (1/2, 2, 3)."""
    columns = [noise_column(eta, support, n) for n in range(1, max_count + 1)]
    return [
        [column.get(y - n, Entry(n, Fraction(0), {})) for n, column in enumerate(columns, start=1)]
        for y in range(max_count + support + 1)
    ]


def matrix_text(matrix: Sequence[Sequence[Entry]], first: int) -> str:
    """Return a matrix as a table with the counts above and the outcomes, from `first`, beside."""
    cells = [["", *(f"n={n}" for n in range(1, len(matrix[0]) + 1))]]
    cells += [[str(first + i), *(str(entry) for entry in row)] for i, row in enumerate(matrix)]
    widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
    lines = (
        [row[0].rjust(widths[0]), *(c.ljust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
        for row in cells
    )
    return "\n".join("  ".join(line).rstrip() for line in lines)


def _error_free(eta: Number) -> Fraction:
    share = rational("eta", eta, least=0, strict=True)
    if share >= 1:
        raise expected("eta", eta, "in (0, 1)", "It is P(Z = 0).")
    return share

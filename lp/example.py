"""Proposition 1's two-point laws and what they give: Example 1, eqs. (4) to (6), and Figure 1.

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

from flint import arb

from accountant.core.validate import integer, rational
from accountant.errors import expected
from accountant.mechanisms.counting.count_noise_law import count_noise_mass, count_noise_variance
from accountant.numbers.exact import ExactReal, Number, exact
from accountant.numbers.interval import Interval, enclose
from accountant.numbers.solve import bracket, root
from accountant.pairs import theta

Pair: TypeAlias = tuple[int, int]
"""(i1, i2) with i1 < 0 < i2."""

_DIGITS = 30
"""Digits of the law's numbers, which are rounded inward."""
_WIDTH = Fraction(1, 10**30)


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


@final
@dataclass(frozen=True)
class NoiseTable:
    """The three laws of Figure 1 at z = 0..D.

    Parameters
    ----------
    law
        Definition 2 as printed.
    by_parameter
        The discrete Gaussian whose *parameter* σ² is the variance of that law: what the paper
        plots as "identical variance".
    by_variance
        The discrete Gaussian that has this variance.
    variance
        The variance of Definition 2's law.
    parameter
        The parameter of the discrete Gaussian of that variance.
    """

    law: tuple[Interval, ...]
    by_parameter: tuple[Interval, ...]
    by_variance: tuple[Interval, ...]
    variance: Interval
    parameter: Interval

    def text(self, digits: int = 5) -> str:
        """Return the table, rounded to significant digits."""
        head = ["z", "Definition 2", "parameter = variance", "same variance"]
        rows = [head]
        for z, masses in enumerate(zip(self.law, self.by_parameter, self.by_variance, strict=True)):
            rows.append([str(z), *(f"{float(mass.lower):.{digits}g}" for mass in masses)])
        widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows
        )


def noise_table(epsilon: Number, eta: Number, support: int) -> NoiseTable:
    """Return the laws that Figure 1 compares; there ε = 2.18, η = 0.8, D = 6.

    The parameters of the two discrete Gaussians are rounded to 30 digits; the masses are those
    of the rounded parameters.
    """
    loss, share = exact(epsilon, "epsilon"), exact(eta, "eta")

    def shortfall(parameter: ExactReal) -> arb:
        return count_noise_variance(loss, share, support) - theta.variance(parameter)

    spread = enclose(lambda: count_noise_variance(loss, share, support), relative_width=_WIDTH)
    same = _rounded(spread)
    parameter = root(shortfall, bracket(shortfall, same, floor=same), relative_width=_WIDTH)
    return NoiseTable(
        tuple(_law_mass(loss, share, support, z) for z in range(support + 1)),
        tuple(_gaussian_mass(same, z) for z in range(support + 1)),
        tuple(_gaussian_mass(_rounded(parameter), z) for z in range(support + 1)),
        spread,
        parameter,
    )


def _law_mass(epsilon: ExactReal, eta: ExactReal, support: int, z: int) -> Interval:
    return enclose(lambda: count_noise_mass(z, epsilon, eta, support), relative_width=_WIDTH)


def _gaussian_mass(parameter: Fraction, z: int) -> Interval:
    """Enclose e^{−z²/2v}/Σ_k e^{−k²/2v}."""
    v = ExactReal.of_rational(parameter)
    exponent = ExactReal.of_rational(-z * z) / v
    return enclose(lambda: (exponent.ball() / 2).exp() / theta.theta(v), relative_width=_WIDTH)


def _rounded(interval: Interval) -> Fraction:
    return Fraction(f"{interval.lower:.{_DIGITS}g}")


def _error_free(eta: Number) -> Fraction:
    share = rational("eta", eta, least=0, strict=True)
    if share >= 1:
        raise expected("eta", eta, "in (0, 1)", "It is P(Z = 0).")
    return share

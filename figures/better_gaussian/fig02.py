"""Figure 2: the parameter C between the accuracy of the queries and that of the size."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from dpassay.accountant.mechanisms import CorrelatedGaussian
from dpassay.figures import quantities, style
from dpassay.figures.description import Description, Settings
from dpassay.figures.table import Table, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DESCRIPTION = Description(
    number="Figure 2",
    title="The parameter C at d = 10000",
    plotted="The variance (A + B)/4 of a query and the variance A of the released size against C, "
    "with A = d/C² + 1 and B = d + C², at μ = 1; beside them the covariance matrix.",
    says="The query variance is least at C = d^(1/4) = 10; at C = 100 it is 5000.5, roughly half "
    "of the standard mechanism's 10000, and the size has variance 2.",
    quote="The plot depicts the value of (A + B)/4 as a function of C.",
    where="Figure 2",
    alt="Left: a flat curve with its least value 2550.25 at C = 10 that reaches 5000.5 at C = 100 "
    "and crosses the line 10000 of the standard mechanism at C = 173. Middle: the variance of the "
    "size falling from 626 at C = 4 towards 1. Right: the matrix with (A+B)/4 on the diagonal, A/4 "
    "beside it, A/2 in the last row and column and A in the corner.",
    claims=(
        "figure-2/curve", "figure-2/covariance", "section-3-1/c-100/half",
        "section-3-1/still-outperforms",
    ),
    assumptions=("The range of C, 4 to 200, is not in the text.",),
    differs="The variance of the size is plotted too. d = 10000 is a perfect square, so every "
    "C ≥ 10 is on the boundary of what any Gaussian can do for the two variances together.",
)  # fmt: skip
_D = 10_000
"""Dimension: counts that are answered, as in the paper."""


def compute(settings: Settings) -> Table:
    """Tabulate the three different entries of the covariance matrix against C."""
    grid = {
        Fraction(round(c, 3)).limit_denominator(1000)
        for c in quantities.geometric(4, 200, settings.pick(31, 121))
    }
    rows: list[tuple[object, ...]] = []
    for c in sorted({*grid, Fraction(10), Fraction(100)}):
        noise = CorrelatedGaussian(dimension=_D, mu=1, c=c)
        query = quantities.variance(noise, 0)
        size = quantities.variance(noise, -1)
        shared, cross = Fraction(size.lower) / 4, Fraction(size.lower) / 2
        rows.append((c, query, shared, cross, size))
    columns = (
        number("C", "records"), number("query", "records²"), number("shared", "records²"),
        number("cross", "records²"), number("size", "records²"),
    )  # fmt: skip
    return Table.of(columns, rows, d=_D, mu=1, standard=_D)


def draw(table: Table) -> style.Figure:
    """Draw the two curves and the matrix."""
    with style.panels(1, 3, height=2.5) as (figure, grid):
        left, middle, right = grid
        xs, ys = table.points("C", "query")
        left.plot(xs, ys, label="(A + B)/4", **style.CURVES[0].options())
        left.axhline(_D, label="standard, d", **style.CURVES[1].options())
        for c, place in ((10.0, (4, -11)), (100.0, (-44, 4))):
            y = table.value("query", C=c)
            left.plot([c], [y], "o", color="black", markersize=3.5)
            left.annotate(f"{y:g}", (c, y), textcoords="offset points", xytext=place)
        left.set(ylim=(0, 12_500), ylabel="variance of a query (records²)")
        left.legend(loc="upper left", bbox_to_anchor=(0, 0.8))
        xs, ys = table.points("C", "size")
        middle.plot(xs, ys, label="A", **style.CURVES[3].options())
        for c, place in ((10.0, (5, 2)), (100.0, (-4, 7))):
            y = table.value("size", C=c)
            middle.plot([c], [y], "o", color="black", markersize=3.5)
            middle.annotate(f"{y:g}", (c, y), textcoords="offset points", xytext=place)
        middle.set(yscale="log", ylabel="variance of the size (records²)")
        for axes in (left, middle):
            axes.set_xscale("log")
            axes.set_xticks([5, 10, 20, 50, 100, 200], ["5", "10", "20", "50", "100", "200"])
            axes.minorticks_off()
            axes.set_xlabel("C (records)")
        _matrix(right, table)
        style.letter(grid, ("queries", "released size", "covariance at μ = 1"))
        least, wide = (table.value("query", C=c) for c in (10.0, 100.0))
        style.finding(
            figure,
            f"Algorithm 1 answers {_D} counts with variance {least:g} instead of {_D}; C = 100 "
            f"gives {wide:g}, and {table.value('size', C=100.0):g} for the number of records",
        )
        return figure


def _matrix(axes: Axes, table: Table) -> None:
    """Write the matrix, with its numbers at two values of C."""
    symbols = [
        ["(A+B)/4", "A/4", "⋯", "A/2"],
        ["A/4", "(A+B)/4", "⋯", "A/2"],
        ["⋮", "⋮", "⋱", "⋮"],
        ["A/2", "A/2", "⋯", "A"],
    ]
    axes.set_axis_off()
    axes.set(xlim=(0, 4), ylim=(8.2, -1))
    for i, row in enumerate(symbols):
        for j, text in enumerate(row):
            axes.text(j + 0.5, i, text, ha="center", va="center", fontsize=7.5)
    for x, inner in ((0.0, 0.12), (4.0, 3.88)):
        axes.plot([inner, x, x, inner], [-0.6, -0.6, 3.6, 3.6], color="black", linewidth=0.9)
    axes.text(0, 4.6, "A = d/C² + 1,  B = d + C²", fontsize=7.5)
    for line, c in enumerate((10.0, 100.0)):
        query, shared = table.value("query", C=c), table.value("shared", C=c)
        cross, size = table.value("cross", C=c), table.value("size", C=c)
        axes.text(
            0,
            5.7 + 1.6 * line,
            f"C = {c:g}: (A+B)/4 = {query:g},\nA/4 = {shared:g}, A/2 = {cross:g}, A = {size:g}",
            va="center",
            fontsize=6.8,
        )

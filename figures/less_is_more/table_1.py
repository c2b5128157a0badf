"""Table 1: expected losses and stability of the four mechanisms, printed and true."""

from __future__ import annotations

import math

from dpassay.figures import style
from dpassay.figures.description import Description, Settings
from dpassay.figures.less_is_more import calibrations
from dpassay.figures.table import Table, label, number

DESCRIPTION = Description(
    number="Table 1",
    title="Expected loss and stability of four mechanisms, printed and true",
    plotted="E‖n‖² at Δ = 1, ε = 1/(2M), δ = 1e-5 for M = 3, 100 and 7921 (3×1, 10×10, 89×89), by "
    "the table's formulas and by the least noise that is really (ε, δ)-DP; Var(L)/(E L)² of the "
    "accuracy loss L = ‖n‖².",
    says="R1SMG has by far the least expected loss, and it is stable; the other mechanisms are "
    "unstable.",
    quote="stable, i.e., unlikely to generate noise with large magnitude",
    where="Table 1",
    alt="A table with a line for each mechanism and M. In every line of R1SMG the true loss is the "
    "largest of its M, and its relative variance is 2; that of the others falls like 2/M.",
    claims=(
        "abstract/lower-order/classic/finite", "abstract/lower-order/analytic/finite",
        "table-1", "abstract/lower-order/mvg/finite", "abstract/kurtosis-stability",
        "abstract/kurtosis-stability/corrected", "theorem-4/analytic/corrected",
    ),
    differs="The table prints formulas; the numbers, the true losses and the relative variances "
    "are added. With the ℓ2 sensitivity alone no covariance does better than equal variances, so "
    "the true line of MVG is that of Gaussian noise.",
)  # fmt: skip
_DELTA = "1e-5"
_SHAPES = ((3, 1), (10, 10), (89, 89))
_MECHANISMS = ("classic Gaussian", "analytic Gaussian", "MVG", "R1SMG")
_STABLE = "R1SMG"
_WRITTEN_OUT = 1e4
"""Sizes from which on a number is written with a power of ten."""


def compute(settings: Settings) -> Table:
    """Tabulate the formulas of the table and the exact values."""
    rows: list[tuple[object, ...]] = []
    for height, width in settings.pick(_SHAPES[:2], _SHAPES):
        m = height * width
        eps = f"1/{2 * m}"
        epsilon, delta = 1 / (2 * m), float(_DELTA)
        gaussian = calibrations.analytic_deviation(eps, _DELTA) ** 2
        printed = (
            m * calibrations.classic_deviation(epsilon, delta) ** 2,
            m * (_quantile(delta) ** 2 + epsilon) / epsilon**2,
            m * (5 * _harmonic(width, 1) + _harmonic(width, 0.5)) / (8 * epsilon),
            calibrations.sigma_star_of_theorem_5(m, epsilon, delta),
        )
        true = (*(3 * [m * gaussian]), calibrations.exact_sigma_star(m, eps, _DELTA))
        for name, claimed, least in zip(_MECHANISMS, printed, true, strict=True):
            spread = 2.0 if name == _STABLE else 2 / m
            rows.append((name, m, claimed, least, spread))
    columns = (
        label("mechanism"), number("M", "coordinates"), number("printed", "Δ²", relative=1e-8),
        number("true", "Δ²", relative=1e-5), number("spread", "1"),
    )  # fmt: skip
    return Table.of(columns, rows, delta=_DELTA)


def _quantile(probability: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(probability))


def _harmonic(terms: int, power: float) -> float:
    """Return H_{r,p} = Σ_{i ≤ r} i^{−p}."""
    return math.fsum(i**-power for i in range(1, terms + 1))


def _shown(size: float) -> str:
    return f"{size:,.4g}" if size < _WRITTEN_OUT else f"{size:.2e}"


def draw(table: Table) -> style.Figure:
    """Write the table; the largest true loss of each M is bold."""
    from matplotlib.transforms import Bbox

    heads = [
        "M",
        "mechanism",
        "E L by Table 1 (Δ²)",
        "least E L (Δ²)",
        "Table 1 says",
        "Var L/(E L)²",
    ]
    lines, bold = [], []
    for m in table.distinct("M"):
        worst = max(table.numbers("true", M=m))
        for name in table.distinct("mechanism"):
            where = {"M": m, "mechanism": name}
            least, spread = (table.value(key, **where) for key in ("true", "spread"))
            lines.append(
                [
                    f"{m:g}" if name == _MECHANISMS[0] else "",
                    str(name),
                    _shown(table.value("printed", **where)),
                    _shown(least),
                    "stable" if name == _STABLE else "unstable",
                    f"{spread:.3g}",
                ]
            )
            bold.append(least == worst)
    with style.panels(height=0.6 + 0.2 * len(lines)) as (figure, (axes,)):
        axes.axis("off")
        drawn = axes.table(
            [heads, *lines], loc="center", edges="horizontal", cellLoc="right", bbox=Bbox.unit()
        )
        for (row, column), cell in drawn.get_celld().items():
            cell.set_linewidth(0.4)
            if row == 0 or (bold[row - 1] and column in (3, 5)):
                cell.set_text_props(fontweight="bold")
        where = {"M": _SHAPES[1][0] * _SHAPES[1][1], "mechanism": _STABLE}
        printed, true = (table.value(key, **where) for key in ("printed", "true"))
        times = true / table.value("true", M=where["M"], mechanism=_MECHANISMS[1])
        style.finding(
            figure,
            f"By Table 1 R1SMG is stable and loses least, {printed:,.0f} Δ² at M = {where['M']}. "
            f"Privacy takes {true:.2g} Δ² there, {times:,.0f} times Gaussian noise, and no loss "
            "varies more, whatever M is",
            f"E L for ε = 1/(2M), which Remark 1 allows, and δ = {_DELTA}",
        )
        return figure

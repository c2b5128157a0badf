"""Figures of Lebeda, Better Gaussian Mechanism using Correlated Noise."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.mechanisms import CorrelatedGaussian, CountEllipse, Gaussian, OptimalEllipse
from dpassay.figures import quantities, style
from dpassay.figures.description import Plots, Settings
from dpassay.figures.table import Table, columns_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_PANELS = ("replacement", "add or remove", "add, half the size", "Algorithm 1")
_BOXES = {
    "replacement": [(-1.0, -1.0, 2.0)],
    "add or remove": [(0.0, 0.0, 1.0), (-1.0, -1.0, 1.0)],
    "add, half the size": [(0.0, 0.0, 1.0)],
    "Algorithm 1": [(0.0, 0.0, 1.0), (-1.0, -1.0, 1.0)],
}


def _compute_1(settings: Settings) -> Table:
    points = settings.pick(61, 181)
    standard = Gaussian(standard_deviation="sqrt(2)", l2_sensitivity="sqrt(2)")
    better = CorrelatedGaussian(dimension=2, mu=1, release_size=False)
    best = OptimalEllipse(dimension=2, sparsity=2, mu=1)
    radius = math.sqrt(float(quantities.value(standard.mean_squared_error).lower))
    circle = [[radius**2, 0.0], [0.0, radius**2]]
    half = [[radius**2 / 4, 0.0], [0.0, radius**2 / 4]]
    rows: list[tuple[object, ...]] = []
    for panel, boxes in _BOXES.items():
        for index, (x, y, side) in enumerate(boxes):
            corners = [(x, y), (x + side, y), (x + side, y + side), (x, y + side)]
            rows += [(panel, f"box {index + 1}", *corner) for corner in corners]
    rows += _boundary("replacement", "standard", circle, 0.0, points)
    rows += _boundary("add or remove", "standard", circle, 0.0, points)
    rows += _boundary("add, half the size", "half", half, 0.5, points)
    rows += [("add, half the size", "diagonal", x, x) for x in (-1.0, 1.5)]
    rows += _boundary("Algorithm 1", "Algorithm 1", _covariance(better), 0.0, points)
    rows += _boundary("Algorithm 1", "optimal", _covariance(best), 0.0, points)
    columns = columns_of("panel", "curve", x="records", y="records")
    return Table.of(columns, rows, d=2, mu=1, mechanisms=[repr(m) for m in (better, best)])


def _covariance(mechanism: Mechanism) -> list[list[float]]:
    def entry(i: int, j: int) -> float:
        return float(quantities.value(lambda: mechanism.covariance_matrix()[i][j]).lower)

    return [[entry(i, j) for j in range(2)] for i in range(2)]


def _boundary(
    panel: str, curve: str, covariance: list[list[float]], centre: float, points: int
) -> list[tuple[object, ...]]:
    """Return points of the ellipse L·(cos t, sin t), L the Cholesky factor of the covariance."""
    a = math.sqrt(covariance[0][0])
    b = covariance[1][0] / a
    c = math.sqrt(covariance[1][1] - b * b)
    angles = [2 * math.pi * i / (points - 1) for i in range(points)]
    return [
        (panel, curve, centre + a * math.cos(t), centre + b * math.cos(t) + c * math.sin(t))
        for t in angles
    ]


def _draw_1(table: Table) -> style.Figure:
    looks = {
        "standard": style.CURVES[0].options(),
        "half": style.CURVES[1].options(),
        "diagonal": {"color": "#b59a00", "linestyle": (0, (1, 1.5)), "linewidth": 2.0},
        "Algorithm 1": style.CURVES[0].options(),
        "optimal": style.CURVES[3].options(),
    }
    names = {"standard": "N(0, 2I)", "half": "noise, half as large", "diagonal": "shared noise"}
    with style.panels(1, 4, height=2.9, share_y=True) as (figure, grid):
        for axes, panel in zip(grid, _PANELS, strict=True):
            for curve in table.distinct("curve", panel=panel):
                xs, ys = table.points("x", "y", panel=panel, curve=curve)
                if str(curve).startswith("box"):
                    axes.fill(xs, ys, facecolor="0.85", edgecolor="0.4", linewidth=0.8)
                else:
                    name = names.get(str(curve), str(curve))
                    axes.plot(xs, ys, label=name, **looks[str(curve)])
            axes.plot([0], [0], "x", color="#c00000", markersize=6, markeredgewidth=1.6)
            style.tag(axes, (0, 0), "f(X)", shift=(4, -9))
            axes.set_aspect("equal")
            axes.set(xlim=(-1.8, 1.8), ylim=(-1.8, 2.6), xticks=[-1, 0, 1], yticks=[-1, 0, 1])
            axes.set_xlabel("change of count 1 (records)")
            axes.legend(loc="upper left", borderpad=0.1)
        grid[0].set_ylabel("change of count 2 (records)")
        style.letter(grid, _PANELS)
        variance = {
            str(curve): max(table.numbers("x", panel=panel, curve=curve)) ** 2
            for panel in (_PANELS[1], _PANELS[3])
            for curve in table.distinct("curve", panel=panel)
        }
        style.finding(
            figure,
            f"Two counts: Algorithm 1's ellipse has variance {variance['Algorithm 1']:.4g} per "
            f"count, the circle {variance['standard']:.4g}; the best ellipse "
            f"{variance['optimal']:.4g} is not in the paper",
        )
        return figure


_D = 10_000
"""Dimension, the number of counts, as in the paper."""


def _compute_2(settings: Settings) -> Table:
    grid = {
        Fraction(round(c, 3)).limit_denominator(1000)
        for c in quantities.geometric(4, 200, settings.pick(31, 121))
    }
    rows: list[tuple[object, ...]] = []
    for c in sorted({*grid, Fraction(10), Fraction(100)}):
        noise = CorrelatedGaussian(dimension=_D, mu=1, c=c)
        query, size = (quantities.variance(noise, place) for place in (0, -1))
        rows.append((c, query, Fraction(size.lower) / 4, Fraction(size.lower) / 2, size))
    units = dict.fromkeys(("query", "shared", "cross", "size"), "records²")
    return Table.of(columns_of(C="records", **units), rows, d=_D, mu=1, standard=_D)


def _draw_2(table: Table) -> style.Figure:
    with style.panels(1, 3, height=2.5) as (figure, grid):
        left, middle, right = grid
        left.plot(*table.points("C", "query"), label="(A + B)/4", **style.CURVES[0].options())
        left.axhline(_D, label="standard, d", **style.CURVES[1].options())
        left.set(ylim=(0, 12_500), ylabel="variance of a query (records²)")
        left.legend(loc="upper left", bbox_to_anchor=(0, 0.8))
        middle.plot(*table.points("C", "size"), label="A", **style.CURVES[3].options())
        middle.set(yscale="log", ylabel="variance of the size (records²)")
        places = {"query": ((4, -11), (-44, 4)), "size": ((5, 2), (-4, 7))}
        for axes, (name, shifts) in zip((left, middle), places.items(), strict=True):
            for c, shift in zip((10.0, 100.0), shifts, strict=True):
                y = table.value(name, C=c)
                axes.plot([c], [y], "o", color="black", markersize=3.5)
                style.tag(axes, (c, y), f"{y:g}", shift=shift)
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
    """Show the covariance matrix, with its entries at two values of C."""
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
            axes.text(j + 0.55, i, text, ha="center", va="center", fontsize=7)
    for x, inner in ((0.0, 0.12), (4.0, 3.88)):
        axes.plot([inner, x, x, inner], [-0.6, -0.6, 3.6, 3.6], color="black", linewidth=0.9)
    axes.text(0, 4.6, "A = d/C² + 1,  B = d + C²", fontsize=7.5)
    for line, c in enumerate((10.0, 100.0)):
        query, shared, cross, size = (
            table.value(name, C=c) for name in ("query", "shared", "cross", "size")
        )
        text = f"C = {c:g}: (A+B)/4 = {query:g},\nA/4 = {shared:g}, A/2 = {cross:g}, A = {size:g}"
        axes.text(0, 5.7 + 1.6 * line, text, va="center", fontsize=6.8)


_D_3 = 1000
"""Dimension, the number of counts, as in the paper."""
_BOUND = 2 * math.sqrt(3) / 4


def _compute_3(settings: Settings) -> Table:
    algorithm = CorrelatedGaussian(dimension=_D_3, mu=1, release_size=False)
    constant = _variance(algorithm)
    rows: list[tuple[object, ...]] = []
    for k in settings.thinned(range(1, _D_3 + 1), 9):
        best = _variance(OptimalEllipse(dimension=_D_3, sparsity=k, mu=1))
        count = _variance(CountEllipse(dimension=_D_3, sparsity=k, mu=1)) if 2 * k <= _D_3 else None
        ours = constant if 2 * k >= _D_3 else None
        found = (count, ours, best)
        ratios = [None if variance is None else variance / k for variance in found]
        rows.append((k, k, *found, *ratios, None if ours is None else ours - best))
    names = ("count_ellipse", "algorithm_1", "optimal")
    columns = columns_of(
        k="entries", standard="records²", **dict.fromkeys(names, "records²"),
        **{f"{name}_ratio": "1" for name in names}, gap="records²",
    )  # fmt: skip
    return Table.of(columns, rows, d=_D_3, mu=1, lemma_4_4=_BOUND)


def _variance(mechanism: Mechanism) -> Fraction:
    found = quantities.value(lambda: mechanism.variances()[0])
    return (Fraction(found.lower) + Fraction(found.upper)) / 2


def _draw_3(table: Table) -> style.Figure:
    blue, orange, black, red = style.CURVES[:4]
    with style.panels(1, 3, height=3.2) as (figure, grid):
        left, right, gap = grid
        lines = {
            "optimal": ("optimal ellipse", style.BEHIND),
            "standard": ("ℓ₂ ball (standard)", orange.options()),
            "count_ellipse": ("Count ellipse", blue.options()),
            "algorithm_1": ("Algorithm 1", red.options()),
        }
        for name, (text, look) in lines.items():
            right.plot(*table.points("k", name), label=text, **look)
            if name == "standard":
                left.axhline(1, label=text, **look)
            else:
                left.plot(*table.points("k", f"{name}_ratio"), label=text, **look)
        left.set(ylim=(0, 1.08), ylabel="variance relative to standard")
        right.set(ylim=(0, 1050), ylabel="variance of a query (records²)")
        gap.plot(*table.points("k", "gap"), label="Algorithm 1 − optimum", **red.options())
        gap.axhline(_BOUND, label="bound of Lemma 4.4", **black.options())
        gap.set(yscale="log", ylim=(1e-5, 10), ylabel="gap in variance (records²)")
        style.key(figure, grid, 3)
        for axes in grid:
            axes.set_xlabel("k (non-zero entries per record)")
        style.letter(grid, ("relative", "absolute", "distance from the optimum"))
        last = float(_D_3)
        style.finding(
            figure,
            f"If a record has all {_D_3} entries, Algorithm 1 needs "
            f"{table.value('algorithm_1_ratio', k=last):.0%} of the standard variance and is "
            f"{table.value('gap', k=last):.1g} above the optimum; Lemma 4.4 proves {_BOUND:.2g}",
        )
        return figure


PLOTS: Plots = {"1": (_compute_1, _draw_1), "2": (_compute_2, _draw_2), "3": (_compute_3, _draw_3)}

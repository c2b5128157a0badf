"""Figure 1: sensitivity spaces and the shapes of noise around them, for two counts."""

from __future__ import annotations

import math

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.mechanisms import CorrelatedGaussian, Gaussian, OptimalEllipse
from dpassay.figures import quantities, style
from dpassay.figures.description import Description, Settings
from dpassay.figures.table import Table, label, number

DESCRIPTION = Description(
    number="Figure 1",
    title="Shapes of noise for two counts",
    plotted="Where the answer of a neighbouring data set can be, relative to f(X), and the set "
    "{x : xᵀΣ⁻¹x ≤ 1} of the noise's own covariance Σ at μ = 1, for d = 2. The last panel adds "
    "the optimal ellipse.",
    says="Under replacement all four corners touch the circle of radius √2, under add/remove only "
    "two do; the ellipse of Algorithm 1 contains the add/remove boxes, with a small gap.",
    quote="In general, there are 2^d possible values for f(X′) that touch the hypersphere under "
    "replacement, but only 2 such values under add/remove for any d.",
    where="Figure 1",
    alt="Four planes. A grey square of side 2 with all corners on a circle of radius √2; two unit "
    "squares along the diagonal inside the same circle; one unit square inside a circle of radius "
    "√2/2 around (½, ½); the two unit squares inside an ellipse along the diagonal and a slightly "
    "smaller dashed one that touches all corners.",
    claims=(
        "figure-1/replacement-corners", "figure-1/add-remove-corners", "figure-1/circles",
        "figure-1/ellipse",
    ),
    differs="Drawn in the coordinates of f(X') − f(X). The optimal ellipse for d = k = 2 is added: "
    "variance 4/3 per count instead of 1.457.",
)  # fmt: skip
_PANELS = ("replacement", "add or remove", "add, half the size", "Algorithm 1")
_BOXES = {
    "replacement": [(-1.0, -1.0, 2.0)],
    "add or remove": [(0.0, 0.0, 1.0), (-1.0, -1.0, 1.0)],
    "add, half the size": [(0.0, 0.0, 1.0)],
    "Algorithm 1": [(0.0, 0.0, 1.0), (-1.0, -1.0, 1.0)],
}


def compute(settings: Settings) -> Table:
    """Tabulate the boxes, by their corners, and the boundaries of the ellipses."""
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
    columns = (label("panel"), label("curve"), number("x", "records"), number("y", "records"))
    return Table.of(columns, rows, d=2, mu=1, mechanisms=[repr(m) for m in (better, best)])


def _covariance(mechanism: Mechanism) -> list[list[float]]:
    def entry(i: int, j: int) -> float:
        return float(quantities.value(lambda: mechanism.covariance_matrix()[i][j]).lower)

    return [[entry(i, j) for j in range(2)] for i in range(2)]


def _boundary(
    panel: str, curve: str, covariance: list[list[float]], centre: float, points: int
) -> list[tuple[object, ...]]:
    """Return the points L·(cos t, sin t) with L the Cholesky factor of a covariance."""
    a = math.sqrt(covariance[0][0])
    b = covariance[1][0] / a
    c = math.sqrt(covariance[1][1] - b * b)
    angles = [2 * math.pi * i / (points - 1) for i in range(points)]
    return [
        (panel, curve, centre + a * math.cos(t), centre + b * math.cos(t) + c * math.sin(t))
        for t in angles
    ]


def draw(table: Table) -> style.Figure:
    """Draw the four panels."""
    looks = {
        "standard": style.CURVES[0].options(),
        "half": style.CURVES[1].options(),
        "diagonal": {"color": "#b59a00", "linestyle": (0, (1, 1.5)), "linewidth": 2.0},
        "Algorithm 1": style.CURVES[0].options(),
        "optimal": style.CURVES[3].options(),
    }
    names = {"standard": "N(0, 2I)", "half": "half as large", "diagonal": "shared noise"}
    with style.panels(1, 4, height=3.1, share_y=True) as (figure, grid):
        for axes, panel in zip(grid, _PANELS, strict=True):
            for curve in table.distinct("curve", panel=panel):
                xs, ys = table.points("x", "y", panel=panel, curve=curve)
                if str(curve).startswith("box"):
                    axes.fill(xs, ys, facecolor="0.85", edgecolor="0.4", linewidth=0.8)
                else:
                    name = names.get(str(curve), str(curve))
                    axes.plot(xs, ys, label=name, **looks[str(curve)])
            axes.plot([0], [0], "x", color="#c00000", markersize=6, markeredgewidth=1.6)
            axes.set_aspect("equal")
            axes.set(
                xlim=(-1.8, 1.8),
                ylim=(-1.8, 2.6),
                xticks=[-1, 0, 1],
                yticks=[-1, 0, 1],
                xlabel="change of count 1 (records)",
            )
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

"""Figure 2: whether two noises can hide the difference of two answers."""

from __future__ import annotations

import math

from dpassay.figures import quantities, style
from dpassay.figures.description import Description, Settings
from dpassay.figures.less_is_more import geometry
from dpassay.figures.table import Table

DESCRIPTION = Description(
    number="Figure 2",
    title="Triangles of noise and the size of ε",
    plotted="(a) to (d): noises n and n' that form a triangle with v = f(x') − f(x), or are too "
    "short to; with full-rank noise and with noise along the directions h and g. (e) The "
    "probability erfc(Δ/√(8σ))² that both noises of R1SMG reach Δ/2, at the σ of Theorem 5.",
    says="Beyond an upper bound of ε the noises are too small to form a triangle; so ε is bounded.",
    quote="when ϵ is beyond the upper bound n, n′, and v cannot form a triangle",
    where="Remark 1",
    alt="Four drawings of two answers on a line: arrows from them meet above the line in the first "
    "and the last, and end apart in the second and third. A plot of the probability against ε: it "
    "falls, but is positive for every ε, with no threshold.",
    claims=("remark-1/triangle", "remark-1/triangle/wording", "remark-1/one-over-M"),
    assumptions=("The drawing is not in the text at hand.", "δ = 10⁻⁵ in panel (e)."),
    differs="Panel (e) is added: a Gaussian length is unbounded, so the triangle is possible for "
    "every ε, and Remark 1 gives no bound.",
)
_DRAWN = {
    "classic, small ε": (1.0, 62.0, None),
    "classic, large ε": (0.36, 62.0, None),
    "R1SMG, large ε": (0.36, 48.0, 128.0),
    "R1SMG, small ε": (1.0, 48.0, 128.0),
}
_DIMENSIONS = (10, 100, 10_000)
_DELTA = 1e-5
"""δ of the drawing."""


def compute(settings: Settings) -> Table:
    """Tabulate the drawings and the probabilities."""
    rows: list[geometry.Row] = []
    for panel, (share, left, right) in _DRAWN.items():
        rows += _pair(panel, share, left, 180 - left if right is None else right, right is not None)
    for dimension in _DIMENSIONS:
        for eps in quantities.geometric(1e-6, 100, settings.pick(33, 121)):
            value = probability(dimension, eps)
            rows.append(("probability", "line", f"M = {dimension}", eps, value))
    return Table.of(geometry.COLUMNS, rows, delta=_DELTA, dimensions=list(_DIMENSIONS))


def probability(dimension: int, epsilon: float) -> float:
    """Return erfc(Δ/√(8σ))² with σ = 2Δ²/(εψ), that is erfc(√(εψ)/4)²."""
    lengths = math.lgamma(dimension / 2) - math.lgamma((dimension - 1) / 2)
    log_psi = 2 * (math.log(_DELTA) - lengths - math.log(math.pi) / 2) / (dimension - 2)
    return math.erfc(math.sqrt(epsilon) * math.exp(log_psi / 2) / 4) ** 2


def _pair(
    panel: str, share: float, left: float, right: float, directed: bool
) -> list[geometry.Row]:
    """Return two arrows from (−½, 0) and (½, 0) that go a share of the way to where they meet."""
    slope_left, slope_right = math.tan(math.radians(left)), math.tan(math.radians(right))
    x = (slope_left + slope_right) / 2 / (slope_right - slope_left)
    meet = (x, slope_left * (x + 0.5))
    rows = geometry.rows(panel, "line", "v", [(-0.5, 0), (0.5, 0)])
    for letter, direction, start in (("n", "h", -0.5), ("n'", "g", 0.5)):
        end = (start + share * (meet[0] - start), share * meet[1])
        if directed:
            far = (start + 1.5 * (meet[0] - start), 1.5 * meet[1])
            rows += geometry.rows(panel, "line", direction, [(start, 0), far])
            rows.append(geometry.name(panel, direction, (far[0] - 0.2 * start, far[1] + 0.06)))
        rows += geometry.rows(panel, "arrow", letter, [(start, 0), end])
        near = (start * 1.35 + 0.3 * share * (meet[0] - start), 0.45 * share * meet[1] + 0.06)
        rows.append(geometry.name(panel, letter, near))
    rows += [
        geometry.name(panel, "f(x)", (-0.5, -0.12)),
        geometry.name(panel, "f(x')", (0.5, -0.12)),
        geometry.name(panel, "v", (0, -0.1)),
    ]
    if share == 1:
        rows.append(geometry.name(panel, "s", (meet[0], meet[1] + 0.14)))
    return rows


def draw(table: Table) -> style.Figure:
    """Draw the arrows and the probabilities."""
    with style.panels(1, 5, height=2.5) as (figure, grid):
        for axes, panel in zip(grid[:4], _DRAWN, strict=True):
            geometry.draw(axes, table, panel)
            axes.set(xlim=(-0.8, 0.8), ylim=(-0.25, 1.25))
        axes = grid[4]
        style.curves(axes, table, "x", "y", marks=4, panel="probability")
        axes.set(
            xscale="log",
            xticks=[1e-6, 1e-3, 1],
            ylim=(0, 1.05),
            xlabel="ε (nats)",
            ylabel="probability",
        )
        style.key(figure, grid[4:])
        name = f"M = {_DIMENSIONS[-1]}"
        xs, ys = table.points("x", "y", panel="probability", curve=name)
        place = max(i for i, x in enumerate(xs) if x <= 1)
        style.finding(
            figure,
            f"No ε is too large for the triangle of Remark 1: its probability is {ys[place]:.2f} "
            f"at ε = {xs[place]:.2g} and {ys[-1]:.1g} at ε = {xs[-1]:g} ({name}, δ = {_DELTA:g})",
        )
        style.letter(grid, [*_DRAWN, "P(triangle)"])
        return figure

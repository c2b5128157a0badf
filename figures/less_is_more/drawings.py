"""Figures 1 to 3 of Ji and Li, Less is More: geometric drawings."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dpassay.figures import quantities, style
from dpassay.figures.description import Plots, Settings
from dpassay.figures.less_is_more.losses import log_inverse_psi
from dpassay.figures.table import Table, columns_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Point = tuple[float, float]
Row = tuple[object, ...]

COLUMNS = columns_of(
    *("panel", "kind", "curve"),
    x="units of Δ, or of the axis", y=("units of Δ, or of the axis", 1e-9, 1e-11),
)  # fmt: skip
"""The kind of a row is line, back (a hidden line), arrow or name."""

_LOOKS: dict[str, dict[str, Any]] = {
    "n": {"color": style.CURVES[3].colour, "linestyle": "solid"},
    "n'": {"color": style.CURVES[0].colour, "linestyle": "solid"},
    "v": {"color": "black", "linestyle": "solid"},
    "h": {"color": style.CURVES[3].colour, "linestyle": (0, (4, 2))},
    "g": {"color": style.CURVES[0].colour, "linestyle": (0, (4, 2))},
}
_OTHER = {"color": "0.45", "linestyle": "solid"}


def traced(panel: str, kind: str, curve: str, points: Iterable[Point]) -> list[Row]:
    """Return the rows of one line."""
    return [(panel, kind, curve, x, y) for x, y in points]


def named(panel: str, names: dict[str, Point]) -> list[Row]:
    """Return the rows of texts with their positions."""
    return [(panel, "name", text, *at) for text, at in names.items()]


def polar(length: float, degrees: float) -> Point:
    """Return the Cartesian coordinates of a point in polar coordinates."""
    angle = math.radians(degrees)
    return length * math.cos(angle), length * math.sin(angle)


def circled(centre: Point, radius: float, points: int = 121) -> list[Point]:
    """Return points on a circle."""
    x, y = centre
    angles = [2 * math.pi * i / (points - 1) for i in range(points)]
    return [(x + radius * math.cos(t), y + radius * math.sin(t)) for t in angles]


def draw(axes: Axes, table: Table, panel: str) -> None:
    """Draw the lines, arrows and names of a panel, without axes."""
    style.schematic(axes)
    for kind in ("line", "back", "arrow"):
        for curve in table.distinct("curve", panel=panel, kind=kind):
            xs, ys = table.points("x", "y", panel=panel, kind=kind, curve=curve)
            look = _LOOKS.get(str(curve).split()[0], _OTHER)
            if kind == "back":
                look = look | {"linestyle": (0, (1, 2))}
            axes.plot(xs, ys, **look)
            if kind == "arrow":
                arrow = {"arrowstyle": "-|>", "color": look["color"], "linewidth": 1.3}
                arrow |= {"shrinkA": 0, "shrinkB": 0}
                axes.annotate("", (xs[-1], ys[-1]), (xs[0], ys[0]), arrowprops=arrow)
    for text in table.distinct("curve", panel=panel, kind="name"):
        xs, ys = table.points("x", "y", panel=panel, kind="name", curve=text)
        for x, y in zip(xs, ys, strict=True):
            axes.text(x, y, str(text), ha="center", va="center", fontsize=8)
    axes.margins(0.08)


_ANGLES = {"acute": 50.0, "obtuse": 125.0}


def _compute_1(settings: Settings) -> Table:
    rows = _noises()
    for panel, degrees in _ANGLES.items():
        rows += _triangle(panel, degrees)
    for degrees in quantities.spaced(10, 179, settings.pick(53, 170)):
        theta = math.radians(degrees)
        rows.append(("bounds", "line", "bound (14), 2/sin θ", degrees, 2 / math.sin(theta)))
        rows.append(("bounds", "line", "largest sum, 1/sin(θ/2)", degrees, 1 / math.sin(theta / 2)))
    return Table.of(COLUMNS, rows, angles=list(_ANGLES.values()))


def _noises() -> list[Row]:
    panel = "noises"
    first, second = polar(1.5, 78), polar(1.25, 28)
    rows = traced(panel, "line", "h", [(0, 0), polar(1.95, 78)])
    rows += traced(panel, "line", "g", [(0, 0), polar(2.1, 28)])
    rows += traced(panel, "arrow", "n", [(0, 0), first])
    rows += traced(panel, "arrow", "n'", [(0, 0), second])
    rows += traced(panel, "line", "v", [first, second])
    rows += traced(panel, "line", "angle", [polar(0.35, a) for a in range(28, 79)])
    names = {
        "n": (0.1, 0.95),
        "n'": (0.72, 0.2),
        "v": (0.85, 1.15),
        "θ": polar(0.5, 53),
        "h": polar(1.95, 71),
        "g": polar(2.25, 28),
    }
    return rows + named(panel, names)


def _triangle(panel: str, degrees: float) -> list[Row]:
    """Return a triangle with base from (−½, 0) to (½, 0) and a given apex angle, and its circle."""
    theta = math.radians(degrees)
    radius = 0.5 / math.sin(theta)
    centre = (0.0, radius * math.cos(theta))
    x, y = polar(radius, 70)
    apex = (centre[0] + x, centre[1] + y)
    ends = [(-0.5, 0.0), (0.5, 0.0)]
    rows = traced(panel, "line", "circle", circled(centre, radius))
    rows += traced(panel, "line", "n", [apex, ends[0]])
    rows += traced(panel, "line", "n'", [apex, ends[1]])
    rows += traced(panel, "line", "v", ends)
    rows += traced(panel, "back", "radius", [centre, (centre[0], centre[1] - radius)])
    names = {
        "s": (apex[0] * 1.1, apex[1] + 0.08 * radius * 2),
        "f(x)": (-0.5 - 0.24 * radius, -0.06),
        "f(x')": (0.5 + 0.26 * radius, -0.06),
        "d/2": (centre[0] + 0.2 * radius, centre[1] - 0.3 * radius),
    }
    return rows + named(panel, names)


def _draw_1(table: Table) -> style.Figure:
    with style.panels(1, 4, height=2.7) as (figure, grid):
        for axes, panel in zip(grid[:3], ("noises", "acute", "obtuse"), strict=True):
            draw(axes, table, panel)
        axes = grid[3]
        style.curves(axes, table, "x", "y", marks=4, panel="bounds")
        axes.set(ylim=(0, 15), xticks=[0, 90, 180])
        axes.set(xlabel="θ (degrees)", ylabel="sum of two sides (‖v‖)")
        style.key(figure, grid[3:])
        at = max(table.numbers("x", panel="bounds"))
        bound, largest = table.values(
            "y", "curve", table.distinct("curve", panel="bounds"), panel="bounds", x=at
        )
        style.finding(
            figure,
            f"The proof of Theorem 5 bounds the sum of the two sides by 2‖v‖/sin θ: "
            f"{bound / largest:.0f} times the largest possible sum at θ = {at:g}°",
        )
        style.letter(grid, ("|ρ₁| + |ρ₂|", "θ < π/2", "θ > π/2", "bounds"))
        return figure


_DRAWN = {
    "classic, small ε": (1.0, 62.0, None),
    "classic, large ε": (0.36, 62.0, None),
    "R1SMG, large ε": (0.36, 48.0, 128.0),
    "R1SMG, small ε": (1.0, 48.0, 128.0),
}
_DIMENSIONS = (10, 100, 10_000)
_DELTA = 1e-5
"""The δ of Figure 2."""


def _compute_2(settings: Settings) -> Table:
    rows: list[Row] = []
    for panel, (share, left, right) in _DRAWN.items():
        rows += _pair(panel, share, left, 180 - left if right is None else right, right is not None)
    for dimension in _DIMENSIONS:
        for eps in quantities.geometric(1e-6, 100, settings.pick(33, 121)):
            value = probability(dimension, eps)
            rows.append(("probability", "line", f"M = {dimension}", eps, value))
    return Table.of(COLUMNS, rows, delta=_DELTA, dimensions=list(_DIMENSIONS))


def probability(dimension: int, epsilon: float) -> float:
    """Return erfc(Δ/√(8σ))² with σ = 2Δ²/(εψ), that is erfc(√(εψ)/4)²."""
    root = math.exp(-log_inverse_psi(dimension, _DELTA) / 2)
    return math.erfc(math.sqrt(epsilon) * root / 4) ** 2


def _pair(panel: str, share: float, left: float, right: float, directed: bool) -> list[Row]:
    """Return arrows from (−½, 0) and (½, 0) that cover a fraction of the way to their meeting."""
    slope_left, slope_right = math.tan(math.radians(left)), math.tan(math.radians(right))
    x = (slope_left + slope_right) / 2 / (slope_right - slope_left)
    meet = (x, slope_left * (x + 0.5))
    rows = traced(panel, "line", "v", [(-0.5, 0), (0.5, 0)])
    for letter, direction, start in (("n", "h", -0.5), ("n'", "g", 0.5)):
        end = (start + share * (meet[0] - start), share * meet[1])
        if directed:
            far = (start + 1.5 * (meet[0] - start), 1.5 * meet[1])
            rows += traced(panel, "line", direction, [(start, 0), far])
            rows += named(panel, {direction: (far[0] - 0.2 * start, far[1] + 0.06)})
        rows += traced(panel, "arrow", letter, [(start, 0), end])
        near = (start * 1.35 + 0.3 * share * (meet[0] - start), 0.45 * share * meet[1] + 0.06)
        rows += named(panel, {letter: near})
    names = {"f(x)": (-0.5, -0.12), "f(x')": (0.5, -0.12), "v": (0, -0.1)}
    rows += named(panel, names)
    if share == 1:
        rows += named(panel, {"s": (meet[0], meet[1] + 0.14)})
    return rows


def _draw_2(table: Table) -> style.Figure:
    with style.panels(mosaic="abee;cdee", height=3.9) as (figure, (a, b, e, c, d)):
        grid = [a, b, c, d, e]
        for axes, panel in zip(grid[:4], _DRAWN, strict=True):
            draw(axes, table, panel)
            axes.set(xlim=(-0.8, 0.8), ylim=(-0.2, 1.1))
        axes = grid[4]
        style.curves(axes, table, "x", "y", marks=4, panel="probability")
        axes.set(xscale="log", ylim=(0, 1.05))
        axes.set(xlabel="ε (nats)", ylabel="probability of a triangle")
        style.key(figure, grid[4:])
        name = f"M = {_DIMENSIONS[-1]}"
        xs, ys = table.points("x", "y", panel="probability", curve=name)
        place = max(i for i, x in enumerate(xs) if x <= 1)
        style.finding(
            figure,
            f"The triangle of Remark 1 can occur at every ε: its probability is {ys[place]:.2f} "
            f"at ε = {xs[place]:.2g} and {ys[-1]:.1g} at ε = {xs[-1]:g} ({name}, δ = {_DELTA:g})",
        )
        style.letter(grid, [*_DRAWN, "probability of a triangle"])
        return figure


_FIRST = (-1 / math.sqrt(5), 2 / math.sqrt(5))
_SECOND = (1 / math.sqrt(3), -1 / math.sqrt(3), 1 / math.sqrt(3))
_AZIMUTH, _ELEVATION = 15.0, 10.0
_DIMENSIONS_3 = (3, 100, 7921)
_LIKELY = 0.5
"""The title names the first width with at least this probability."""

Vector = tuple[float, float, float]


def _compute_3(settings: Settings) -> Table:
    rows = _plane() + _sphere(settings.pick(61, 181))
    for dimension in _DIMENSIONS_3:
        for w in quantities.geometric(1e-6, 1, settings.pick(25, 97)):
            rows.append(("mass", "line", f"M = {dimension}", w, mass(dimension, w)))
    return Table.of(
        COLUMNS, rows, azimuth=_AZIMUTH, elevation=_ELEVATION, dimensions=list(_DIMENSIONS_3)
    )


def mass(dimension: int, width: float) -> float:
    """Return P(|⟨u, v⟩| ≤ w) = I_{w²}(½, (M − 1)/2), the regularised incomplete beta function."""
    from scipy.special import betainc

    return float(betainc(0.5, (dimension - 1) / 2, width * width))


def _plane() -> list[Row]:
    panel = "circle"
    x, y = _FIRST
    rows = traced(panel, "line", "circle", circled((0, 0), 1))
    rows += traced(panel, "line", "n null", [(-1.35 * y, 1.35 * x), (1.35 * y, -1.35 * x)])
    rows += traced(panel, "arrow", "v", [(0, 0), _FIRST])
    return rows + named(panel, {"v₁": (1.22 * x, 1.2 * y), "Null(v₁)": (1.12, 0.86)})


def _sphere(points: int) -> list[Row]:
    """Return projections of the sphere's outline, a vector and its orthogonal great circle."""
    panel = "sphere"
    rows = traced(panel, "line", "circle", circled((0, 0), 1))
    a, b = (
        (1 / math.sqrt(2), 1 / math.sqrt(2), 0.0),
        (-1 / math.sqrt(6), 1 / math.sqrt(6), 2 / math.sqrt(6)),
    )
    angles = [2 * math.pi * i / (points - 1) for i in range(points)]
    circle = [_seen(_sum(math.cos(t), a, math.sin(t), b)) for t in angles]
    start = next(i for i in range(points) if circle[i][2] >= 0 > circle[i - 1][2])
    turned = [circle[(start + i) % (points - 1)] for i in range(points)]
    split = next(i for i in range(1, points) if turned[i][2] < 0)
    rows += traced(panel, "line", "n null", [(x, y) for x, y, _ in turned[: split + 1]])
    rows += traced(panel, "back", "n hidden", [(x, y) for x, y, _ in turned[split:]])
    x, y, _ = _seen(_SECOND)
    rows += traced(panel, "arrow", "v", [(0, 0), (x, y)])
    for axis, text in (((1.0, 0.0, 0.0), "1"), ((0.0, 1.0, 0.0), "2"), ((0.0, 0.0, 1.0), "3")):
        end_x, end_y, _ = _seen(axis)
        rows += traced(panel, "back", f"axis {text}", [(0, 0), (end_x, end_y)])
        rows += named(panel, {text: (1.13 * end_x, 1.13 * end_y)})
    return rows + named(panel, {"v₂": (x - 0.14, y + 0.1), "Null(v₂)": (1.0, -1.0)})


def _sum(s: float, a: Vector, t: float, b: Vector) -> Vector:
    return s * a[0] + t * b[0], s * a[1] + t * b[1], s * a[2] + t * b[2]


def _seen(point: Vector) -> Vector:
    """Project a point: return its coordinates in the viewing plane and its distance in front."""
    azimuth, elevation = math.radians(_AZIMUTH), math.radians(_ELEVATION)
    x, y, z = point
    ahead = x * math.cos(azimuth) + y * math.sin(azimuth)
    right = -x * math.sin(azimuth) + y * math.cos(azimuth)
    up = z * math.cos(elevation) - ahead * math.sin(elevation)
    return right, up, ahead * math.cos(elevation) + z * math.sin(elevation)


def _draw_3(table: Table) -> style.Figure:
    with style.panels(1, 3, height=2.9) as (figure, grid):
        for axes, panel in zip(grid[:2], ("circle", "sphere"), strict=True):
            draw(axes, table, panel)
        axes = grid[2]
        style.curves(axes, table, "x", "y", panel="mass")
        axes.set(
            xscale="log",
            yscale="log",
            xlabel="w (share of the length of v)",
            ylabel="P(|⟨u, v⟩| ≤ w)",
        )
        style.key(figure, grid[2:])
        name = f"M = {_DIMENSIONS_3[-1]}"
        xs, ys = table.points("x", "y", panel="mass", curve=name)
        place = min(i for i, y in enumerate(ys) if y >= _LIKELY)
        style.finding(
            figure,
            f"The noise in a given direction is 0 with probability 0 (Section 5.4), but nearly 0 "
            f"with probability {ys[place]:.2f}: |⟨u, v⟩| ≤ {xs[place]:.1g} at {name}",
        )
        style.letter(grid, ("M = 2", "M = 3", "near the null space"))
        return figure


PLOTS: Plots = {"1": (_compute_1, _draw_1), "2": (_compute_2, _draw_2), "3": (_compute_3, _draw_3)}

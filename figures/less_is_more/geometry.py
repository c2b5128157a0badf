"""Lines, arrows and names in a plane: what the geometric figures are made of."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dpassay.figures import style
from dpassay.figures.table import Column, Table, label, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Point = tuple[float, float]
Row = tuple[object, ...]

COLUMNS: tuple[Column, ...] = (
    label("panel"), label("kind"), label("curve"), number("x", "units of Δ, or of the axis"),
    number("y", "units of Δ, or of the axis", absolute=1e-11),
)  # fmt: skip
"""The kind is line, back (a hidden line), arrow, or name."""

_LOOKS: dict[str, dict[str, Any]] = {
    "n": {"color": style.CURVES[3].colour, "linestyle": "solid"},
    "n'": {"color": style.CURVES[0].colour, "linestyle": "solid"},
    "v": {"color": "black", "linestyle": "solid"},
    "h": {"color": style.CURVES[3].colour, "linestyle": (0, (4, 2))},
    "g": {"color": style.CURVES[0].colour, "linestyle": (0, (4, 2))},
}
_OTHER = {"color": "0.45", "linestyle": "solid"}


def rows(panel: str, kind: str, curve: str, points: Iterable[Point]) -> list[Row]:
    """Return the rows of one line."""
    return [(panel, kind, curve, x, y) for x, y in points]


def name(panel: str, text: str, at: Point) -> Row:
    """Return the row of a text."""
    return panel, "name", text, *at


def polar(length: float, degrees: float) -> Point:
    """Return the point at a length and an angle."""
    angle = math.radians(degrees)
    return length * math.cos(angle), length * math.sin(angle)


def circle(centre: Point, radius: float, points: int = 121) -> list[Point]:
    """Return points around a circle."""
    x, y = centre
    angles = [2 * math.pi * i / (points - 1) for i in range(points)]
    return [(x + radius * math.cos(t), y + radius * math.sin(t)) for t in angles]


def draw(axes: Axes, table: Table, panel: str) -> None:
    """Draw a panel without axes: its lines, arrows and names."""
    style.schematic(axes)
    for kind in ("line", "back", "arrow"):
        for curve in table.distinct("curve", panel=panel, kind=kind):
            xs, ys = table.points("x", "y", panel=panel, kind=kind, curve=curve)
            look = _LOOKS.get(str(curve).split()[0], _OTHER)
            if kind == "back":
                look = look | {"linestyle": (0, (1, 2))}
            axes.plot(xs, ys, **look)
            if kind == "arrow":
                axes.annotate(
                    "",
                    (xs[-1], ys[-1]),
                    (xs[0], ys[0]),
                    arrowprops={"arrowstyle": "-|>", "color": look["color"], "shrinkA": 0,
                                "shrinkB": 0, "linewidth": 1.3},
                )  # fmt: skip
    for text in table.distinct("curve", panel=panel, kind="name"):
        xs, ys = table.points("x", "y", panel=panel, kind="name", curve=text)
        for x, y in zip(xs, ys, strict=True):
            axes.text(x, y, str(text), ha="center", va="center", fontsize=8)
    axes.margins(0.08)

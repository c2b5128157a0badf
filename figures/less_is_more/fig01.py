"""Figure 1: the triangle of two noises and the distance of two answers."""

from __future__ import annotations

import math

from dpassay.figures import quantities, style
from dpassay.figures.description import Description, Settings
from dpassay.figures.less_is_more import geometry
from dpassay.figures.table import Table

DESCRIPTION = Description(
    number="Figure 1",
    title="Two noises that give the same output",
    plotted="(a) n = s − f(x) and n' = s − f(x') along the directions h and g; v = n − n'. (b), "
    "(c) The triangle with ‖v‖ = 1 and its circumscribed circle, of diameter 1/sin θ, for θ = 50° "
    "and θ = 125°. (d) The bound 2/sin θ of (14) on the sum of the two sides, and the largest sum.",
    says="Each side is at most the diameter, so the sum is at most 2‖v‖/sin θ; the bound is tight.",
    quote="the length of each edge of a triangle is upper bounded by the diameter of the "
    "circumscribed circle of the triangle",
    where="Section 5.2",
    alt="Three triangles: two arrows from one point with the angle θ between them and the side v "
    "across; two triangles inscribed in circles. A plot of two curves against θ: the bound 2/sin θ "
    "lies above the largest sum 1/sin(θ/2), and grows again beyond 90° where the sum falls to 1.",
    claims=(
        "theorem-5/proof/tight/wording",
        "theorem-5/proof/equation-14",
        "theorem-5/proof/event",
    ),
    assumptions=("The drawing is not in the text at hand: angles 50° and 125°.",),
    differs="Panel (d) is added: the bound is not tight, and there is no need for sin θ.",
)
_ANGLES = {"acute": 50.0, "obtuse": 125.0}


def compute(settings: Settings) -> Table:
    """Tabulate the drawings, and the two bounds."""
    rows = _noises()
    for panel, degrees in _ANGLES.items():
        rows += _triangle(panel, degrees)
    for degrees in quantities.spaced(10, 179, settings.pick(53, 170)):
        theta = math.radians(degrees)
        rows.append(("bounds", "line", "bound (14), 2/sin θ", degrees, 2 / math.sin(theta)))
        rows.append(("bounds", "line", "largest sum, 1/sin(θ/2)", degrees, 1 / math.sin(theta / 2)))
    return Table.of(geometry.COLUMNS, rows, angles=list(_ANGLES.values()))


def _noises() -> list[geometry.Row]:
    panel = "noises"
    first, second = geometry.polar(1.5, 78), geometry.polar(1.25, 28)
    rows = geometry.rows(panel, "line", "h", [(0, 0), geometry.polar(1.95, 78)])
    rows += geometry.rows(panel, "line", "g", [(0, 0), geometry.polar(2.1, 28)])
    rows += geometry.rows(panel, "arrow", "n", [(0, 0), first])
    rows += geometry.rows(panel, "arrow", "n'", [(0, 0), second])
    rows += geometry.rows(panel, "line", "v", [first, second])
    rows += geometry.rows(panel, "line", "angle", [geometry.polar(0.35, a) for a in range(28, 79)])
    rows += [
        geometry.name(panel, "n", (0.1, 0.95)),
        geometry.name(panel, "n'", (0.72, 0.2)),
        geometry.name(panel, "v", (0.85, 1.15)),
        geometry.name(panel, "θ", geometry.polar(0.5, 53)),
        geometry.name(panel, "h", geometry.polar(1.95, 71)),
        geometry.name(panel, "g", geometry.polar(2.25, 28)),
    ]
    return rows


def _triangle(panel: str, degrees: float) -> list[geometry.Row]:
    """Return a triangle on the side from (−½, 0) to (½, 0) with an angle across, and its circle."""
    theta = math.radians(degrees)
    radius = 0.5 / math.sin(theta)
    centre = (0.0, radius * math.cos(theta))
    x, y = geometry.polar(radius, 70)
    apex = (centre[0] + x, centre[1] + y)
    ends = [(-0.5, 0.0), (0.5, 0.0)]
    rows = geometry.rows(panel, "line", "circle", geometry.circle(centre, radius))
    rows += geometry.rows(panel, "line", "n", [apex, ends[0]])
    rows += geometry.rows(panel, "line", "n'", [apex, ends[1]])
    rows += geometry.rows(panel, "line", "v", ends)
    rows += geometry.rows(panel, "back", "radius", [centre, (centre[0], centre[1] - radius)])
    rows += [
        geometry.name(panel, "s", (apex[0] * 1.1, apex[1] + 0.08 * radius * 2)),
        geometry.name(panel, "f(x)", (-0.5 - 0.24 * radius, -0.06)),
        geometry.name(panel, "f(x')", (0.5 + 0.26 * radius, -0.06)),
        geometry.name(panel, "d/2", (centre[0] + 0.2 * radius, centre[1] - 0.72 * radius)),
    ]
    return rows


def draw(table: Table) -> style.Figure:
    """Draw the triangles and the bounds."""
    with style.panels(1, 4, height=2.7) as (figure, grid):
        for axes, panel in zip(grid[:3], ("noises", "acute", "obtuse"), strict=True):
            geometry.draw(axes, table, panel)
        axes = grid[3]
        style.curves(axes, table, "x", "y", marks=4, panel="bounds")
        axes.set(
            ylim=(0, 15), xticks=[0, 90, 180], xlabel="θ (degrees)", ylabel="sum of two sides (‖v‖)"
        )
        style.key(figure, grid[3:])
        at = max(table.numbers("x", panel="bounds"))
        bound, largest = table.values(
            "y", "curve", table.distinct("curve", panel="bounds"), panel="bounds", x=at
        )
        style.finding(
            figure,
            f"The proof of Theorem 5 bounds the two sides by 2/sin θ; it is {bound / largest:.0f} "
            f"times too large at θ = {at:g}°, where their sum is at most {largest:.2f}‖v‖",
        )
        style.letter(grid, ("|ρ₁| + |ρ₂|", "θ < π/2", "θ > π/2", "bounds"))
        return figure

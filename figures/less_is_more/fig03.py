"""Figure 3: the directions in which noise of rank one is absent."""

from __future__ import annotations

import math

from dpassay.figures import quantities, style
from dpassay.figures.description import Description, Settings
from dpassay.figures.less_is_more import geometry
from dpassay.figures.table import Table

DESCRIPTION = Description(
    number="Figure 3",
    title="The null space of the noise",
    plotted="(a) The unit circle, v₁ = (−1, 2)/√5 and the line orthogonal to it. (b) The unit "
    "sphere, v₂ = (1, −1, 1)/√3 and the great circle of the plane orthogonal to it, seen from "
    "above. (c) The probability that a random unit vector v has |⟨u, v⟩| ≤ w for a fixed u.",
    says="The probability that a fixed direction lies in the null space of the random v is 0, so "
    "nothing leaks.",
    quote="by generating v randomly, the R1SMG mechanism will cause privacy leakage of using the "
    "vectors in the null space of v to have probability zero",
    where="Section 5.4",
    alt="A circle with an arrow and the line at right angles to it; a sphere with an arrow and a "
    "tilted circle around it. A plot of probabilities against w on logarithmic axes: straight "
    "lines that tend to 0 with w, but reach 0.7 at w = 1/√M.",
    claims=("section-5/toy-vectors", "section-5/null-space", "section-5/null-space-leak"),
    assumptions=("The view of the sphere is not stated.",),
    differs="Panel (c) is added: exact orthogonality has probability 0, but nearly orthogonal "
    "directions do not, and along them there is nearly no noise.",
)
_FIRST = (-1 / math.sqrt(5), 2 / math.sqrt(5))
_SECOND = (1 / math.sqrt(3), -1 / math.sqrt(3), 1 / math.sqrt(3))
_AZIMUTH, _ELEVATION = 15.0, 10.0
_DIMENSIONS = (3, 100, 7921)
_LIKELY = 0.5
"""The probability of the strip that the title is about."""

Vector = tuple[float, float, float]


def compute(settings: Settings) -> Table:
    """Tabulate the two drawings and the probabilities."""
    rows = _plane() + _sphere(settings.pick(61, 181))
    for dimension in _DIMENSIONS:
        for w in quantities.geometric(1e-6, 1, settings.pick(25, 97)):
            rows.append(("mass", "line", f"M = {dimension}", w, mass(dimension, w)))
    return Table.of(
        geometry.COLUMNS, rows, azimuth=_AZIMUTH, elevation=_ELEVATION, dimensions=list(_DIMENSIONS)
    )


def mass(dimension: int, width: float) -> float:
    """Return P(|⟨u, v⟩| ≤ w) = I_{w²}(½, (M − 1)/2), the regularised incomplete beta function."""
    from scipy.special import betainc

    return float(betainc(0.5, (dimension - 1) / 2, width * width))


def _plane() -> list[geometry.Row]:
    panel = "circle"
    x, y = _FIRST
    rows = geometry.rows(panel, "line", "circle", geometry.circle((0, 0), 1))
    rows += geometry.rows(panel, "line", "n null", [(-1.35 * y, 1.35 * x), (1.35 * y, -1.35 * x)])
    rows += geometry.rows(panel, "arrow", "v", [(0, 0), _FIRST])
    rows.append(geometry.name(panel, "v₁", (1.22 * x, 1.2 * y)))
    rows.append(geometry.name(panel, "Null(v₁)", (0.95, 0.98)))
    return rows


def _sphere(points: int) -> list[geometry.Row]:
    """Return the outline, the vector and the great circle orthogonal to it, projected."""
    panel = "sphere"
    rows = geometry.rows(panel, "line", "circle", geometry.circle((0, 0), 1))
    a, b = (
        (1 / math.sqrt(2), 1 / math.sqrt(2), 0.0),
        (-1 / math.sqrt(6), 1 / math.sqrt(6), 2 / math.sqrt(6)),
    )
    angles = [2 * math.pi * i / (points - 1) for i in range(points)]
    circle = [_seen(_sum(math.cos(t), a, math.sin(t), b)) for t in angles]
    start = next(i for i in range(points) if circle[i][2] >= 0 > circle[i - 1][2])
    turned = [circle[(start + i) % (points - 1)] for i in range(points)]
    split = next(i for i in range(1, points) if turned[i][2] < 0)
    rows += geometry.rows(panel, "line", "n null", [(x, y) for x, y, _ in turned[: split + 1]])
    rows += geometry.rows(panel, "back", "n hidden", [(x, y) for x, y, _ in turned[split:]])
    x, y, _ = _seen(_SECOND)
    rows += geometry.rows(panel, "arrow", "v", [(0, 0), (x, y)])
    for axis, text in (((1.0, 0.0, 0.0), "1"), ((0.0, 1.0, 0.0), "2"), ((0.0, 0.0, 1.0), "3")):
        end_x, end_y, _ = _seen(axis)
        rows += geometry.rows(panel, "back", f"axis {text}", [(0, 0), (end_x, end_y)])
        rows.append(geometry.name(panel, text, (1.13 * end_x, 1.13 * end_y)))
    rows.append(geometry.name(panel, "v₂", (x - 0.14, y + 0.1)))
    rows.append(geometry.name(panel, "Null(v₂)", (1.0, -1.0)))
    return rows


def _sum(s: float, a: Vector, t: float, b: Vector) -> Vector:
    return s * a[0] + t * b[0], s * a[1] + t * b[1], s * a[2] + t * b[2]


def _seen(point: Vector) -> Vector:
    """Return a point in the plane of view, and how far it is in front of it."""
    azimuth, elevation = math.radians(_AZIMUTH), math.radians(_ELEVATION)
    x, y, z = point
    ahead = x * math.cos(azimuth) + y * math.sin(azimuth)
    right = -x * math.sin(azimuth) + y * math.cos(azimuth)
    up = z * math.cos(elevation) - ahead * math.sin(elevation)
    return right, up, ahead * math.cos(elevation) + z * math.sin(elevation)


def draw(table: Table) -> style.Figure:
    """Draw circle, sphere, and probabilities."""
    with style.panels(1, 3, height=2.9) as (figure, grid):
        for axes, panel in zip(grid[:2], ("circle", "sphere"), strict=True):
            geometry.draw(axes, table, panel)
        axes = grid[2]
        style.curves(axes, table, "x", "y", panel="mass")
        axes.set(xscale="log", yscale="log", xlabel="w", ylabel="P(|⟨u, v⟩| ≤ w)")
        style.key(figure, grid[2:])
        name = f"M = {_DIMENSIONS[-1]}"
        xs, ys = table.points("x", "y", panel="mass", curve=name)
        place = min(i for i, y in enumerate(ys) if y >= _LIKELY)
        style.finding(
            figure,
            f"A given direction has no noise with probability 0 (Section 5.4), and nearly none "
            f"with probability {ys[place]:.2f}: |⟨u, v⟩| ≤ {xs[place]:.1g} at {name}",
        )
        style.letter(grid, ("M = 2", "M = 3", "near the null space"))
        return figure

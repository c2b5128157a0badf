"""Elliptical against spherical noise, by the skew of the sensitivities."""

from __future__ import annotations

import math
from fractions import Fraction

from dpassay.accountant.budget.calibrate import EpsilonDelta, calibrate
from dpassay.accountant.mechanisms import EllipticalGaussian
from dpassay.figures import quantities, style
from dpassay.figures.description import Description, Settings
from dpassay.figures.table import Table, label, number

DESCRIPTION = Description(
    number="Sections 2 and 3",
    title="Elliptical against spherical noise by skew",
    plotted="The total variance of spherical noise over that of elliptical noise with the same μ, "
    "for sensitivities Δⱼ = j⁻ˢ against s, and for one sensitivity t times the others against "
    "t. Right: the variance of each coordinate at d = 10, s = 1, (ε, δ) = (½, 10⁻⁵), with the "
    "note's Theorem 1 and with the least noise.",
    says="The Gaussian mechanism introduces the same variance in all dimensions; the elliptical "
    "mechanism is for coordinates with bounds of their own.",
    quote="Does introduce the same variance for all dimensions regardless of individual variance"
,
    where="Section 2.1",
    alt="Left and middle: curves that begin at 1 for equal sensitivities and rise with the skew, "
    "higher for more dimensions, never above d. Right: spherical noise has the same variance in "
    "every coordinate; elliptical noise has more in the first and less in all others; the "
    "formula of Theorem 1 lies 1.9 times above the least noise in both cases.",
    claims=(
        "elliptical/guarantee", "elliptical/optimal", "elliptical/improvement", "theorem-1",
        "theorem-1/smaller", "section-2/same-variance",
    ),
    assumptions=(
        "The note states no sensitivities: power laws and one large coordinate.",
        "Replace-one adjacency, data in the box, (ε, δ) = (½, 10⁻⁵).",
    ),
    differs="The note prints no plot.",
)  # fmt: skip
_DIMENSIONS = (2, 10, 100)
_EPSILON, _DELTA = "0.5", "1e-5"
_POWER, _LARGE, _EACH = "power", "one large", "coordinates"


def compute(settings: Settings) -> Table:
    """Tabulate the ratios, and the variances of the coordinates."""
    points = settings.pick(13, 41)
    rows: list[tuple[object, ...]] = []
    for d in _DIMENSIONS:
        rows += [
            (_POWER, f"d = {d}", s, _ratio([j**-s for j in range(1, d + 1)]))
            for s in quantities.spaced(0, 4, points)
        ]
        rows += [
            (_LARGE, f"d = {d}", t, _ratio([t] + [1.0] * (d - 1)))
            for t in quantities.geometric(1, 1000, points)
        ]
    harmonic = [Fraction(1, j) for j in range(1, 11)]
    squares = sum(x * x for x in harmonic)
    least = Fraction(calibrate("Gaussian", EpsilonDelta(_EPSILON, _DELTA)).least.upper)
    elliptical = EllipticalGaussian(sensitivities=harmonic, mu=1 / least)
    theorem = 2 * math.log(1.25 / float(_DELTA)) / float(_EPSILON) ** 2
    for j in range(10):
        own = quantities.variance(elliptical, j)
        share = Fraction(own.lower) / least**2
        rows.append((_EACH, "spherical", j + 1, squares * least**2))
        rows.append((_EACH, "elliptical", j + 1, own))
        rows.append((_EACH, "spherical, Theorem 1", j + 1, float(squares) * theorem))
        rows.append((_EACH, "elliptical, Theorem 1", j + 1, float(share) * theorem))
    columns = (label("panel"), label("curve"), number("x", "1"), number("y", "1 or data units²"))
    return Table.of(columns, rows, epsilon=_EPSILON, delta=_DELTA, dimensions=list(_DIMENSIONS))


def _ratio(sensitivities: list[float]) -> Fraction:
    """Return d·ΣΔ², over the total variance of the elliptical mechanism, at μ = 1."""
    exact = [Fraction(x) for x in sensitivities]
    noise = EllipticalGaussian(sensitivities=exact, mu=1)
    mean = quantities.value(noise.mean_squared_error)
    return sum((x * x for x in exact), Fraction(0)) / Fraction(mean.lower)


def draw(table: Table) -> style.Figure:
    """Draw the three panels."""
    with style.panels(1, 3, height=3.2) as (figure, grid):
        for axes, panel in zip(grid, (_POWER, _LARGE, _EACH), strict=True):
            if panel != _EACH:
                style.curves(axes, table, "x", "y", panel=panel)
            axes.set_yscale("log")
        for look, curve in zip(
            style.CURVES[3:], table.distinct("curve", panel=_EACH), strict=False
        ):  # coordinates are discrete: no line joins them
            xs, ys = table.points("x", "y", panel=_EACH, curve=curve)
            grid[2].plot(xs, ys, label=str(curve), **look.dots())
        for axes in grid[:2]:
            axes.set(ylim=(0.9, 130), ylabel="variance, spherical over elliptical")
        grid[0].set_xlabel("s in Δⱼ = j⁻ˢ")
        grid[1].set(xscale="log", xlabel="t, largest over other Δⱼ")
        grid[2].set(
            xlabel="coordinate j",
            xticks=range(1, 11),
            ylabel="variance of the noise (data units²)",
            ylim=(10, 500),
        )
        style.key(figure, grid)
        saved = max(table.numbers("y", panel=_POWER, curve="d = 100"))
        formula, least = table.values(
            "y", "curve", ("elliptical, Theorem 1", "elliptical"), panel=_EACH, x=1.0
        )
        style.finding(
            figure,
            f"Elliptical noise saves more the more the sensitivities differ: {saved:.0f}-fold at "
            f"d = 100, s = 4. Theorem 1 asks for {formula / least:.1f} times the variance needed",
        )
        style.letter(grid, ("power law", "one large", "d = 10, Δⱼ = 1/j"))
        return figure

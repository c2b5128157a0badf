"""Figures about Poulsen's note on elliptical Gaussian noise."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from dpassay.accountant.budget.calibrate import EpsilonDelta, calibrate
from dpassay.accountant.mechanisms import EllipticalGaussian
from dpassay.figures import quantities, style
from dpassay.figures.description import Plots, Settings
from dpassay.figures.table import Table, columns_of

if TYPE_CHECKING:
    from numpy.random import Generator


_DIMENSIONS = (2, 10, 100)
_EPSILON, _DELTA = "0.5", "1e-5"
_POWER, _LARGE, _EACH = "power", "one large", "coordinates"


def _compute_1(settings: Settings) -> Table:
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
        found = {
            "spherical": squares * least**2,
            "elliptical": own,
            "spherical, Theorem 1": float(squares) * theorem,
            "elliptical, Theorem 1": float(Fraction(own.lower) / least**2) * theorem,
        }
        rows += [(_EACH, name, j + 1, value) for name, value in found.items()]
    columns = columns_of("panel", "curve", x="1", y="1 or data units²")
    return Table.of(columns, rows, epsilon=_EPSILON, delta=_DELTA, dimensions=list(_DIMENSIONS))


def _ratio(sensitivities: list[float]) -> Fraction:
    """Return the variance of spherical noise, d·ΣΔⱼ², over that of elliptical noise, at μ = 1."""
    exact = [Fraction(x) for x in sensitivities]
    noise = EllipticalGaussian(sensitivities=exact, mu=1)
    mean = quantities.value(noise.mean_squared_error)
    return sum((x * x for x in exact), Fraction(0)) / Fraction(mean.lower)


def _draw_1(table: Table) -> style.Figure:
    with style.panels(1, 3, height=3.2) as (figure, grid):
        for axes, panel in zip(grid, (_POWER, _LARGE, _EACH), strict=True):
            if panel != _EACH:
                style.curves(axes, table, "x", "y", panel=panel)
            axes.set_yscale("log")
        for look, curve in zip(
            style.CURVES[3:], table.distinct("curve", panel=_EACH), strict=False
        ):  # a line if all coordinates have the same variance, else markers
            xs, ys = table.points("x", "y", panel=_EACH, curve=curve)
            drawn = look.options() if str(curve).startswith("spherical") else look.dots()
            grid[2].plot(xs, ys, label=str(curve), **drawn)
        for axes in grid[:2]:
            axes.set(ylim=(0.9, 130), ylabel="variance, spherical over elliptical")
        grid[0].set_xlabel("s in Δⱼ = j⁻ˢ")
        grid[1].set(xscale="log", xlabel="t, largest over other Δⱼ")
        grid[2].set(xlabel="coordinate j", xticks=range(1, 11), ylim=(10, 500))
        grid[2].set_ylabel("variance of the noise (data units²)")
        style.key(figure, grid)
        saved = max(table.numbers("y", panel=_POWER, curve="d = 100"))
        formula, least = table.values(
            "y", "curve", ("elliptical, Theorem 1", "elliptical"), panel=_EACH, x=1.0
        )
        style.finding(
            figure,
            f"Elliptical noise saves more the more the sensitivities differ: {saved:.0f}-fold at "
            f"d = 100, s = 4. Theorem 1 requires {formula / least:.1f} times the variance needed",
        )
        style.letter(grid, ("power law", "one large", "d = 10, Δⱼ = 1/j"))
        return figure


_BATCH = 20
"""Number of trials simulated at a time."""
_D, _N = 10, 1000
_SHIFT = 0.5
"""Mean of a coordinate, in units of its standard deviation."""
_PARTS = ("bias²", "clipping", "noise", "total")
_BOTH = ("elliptical", "spherical")


def _compute_2(settings: Settings) -> Table:
    deviations = [1 / j for j in range(1, _D + 1)]
    means = [_SHIFT * s for s in deviations]
    unit = quantities.gaussian_deviation(_EPSILON, _DELTA) ** 2
    rows: list[tuple[object, ...]] = []
    widths = quantities.geometric(0.5, 8, settings.pick(25, 81))
    for noise in _BOTH:
        for c in widths:
            parts = _parts(c, means, deviations, unit=unit, noise=noise)
            rows += [(noise, p, "theory", c, value) for p, value in zip(_PARTS, parts, strict=True)]
    marked = quantities.geometric(0.5, 8, 9)
    found = simulate(
        means, deviations, marked, records=_N, trials=settings.pick(50, 400, 4000),
        unit=unit, rng=settings.rng("clipped normal data"),
    )  # fmt: skip
    for noise in _BOTH:
        for c, parts in zip(marked, found[noise], strict=True):
            rows += [(noise, p, "simulation", c, v) for p, v in zip(_PARTS, parts, strict=True)]
    wide = quantities.geometric(0.2, 12, settings.pick(61, 241))
    for noise in _BOTH:
        for n in map(round, quantities.geometric(100, 10**6, settings.pick(9, 17))):
            totals = [
                _parts(c, means, deviations, unit=unit, noise=noise, records=n)[-1] for c in wide
            ]
            rows.append((noise, "least", "theory", n, min(totals)))
    columns = columns_of(
        "noise", "part", "route", x="standard deviations, or records", error=("data units²", 1e-6)
    )
    about = {"epsilon": _EPSILON, "delta": _DELTA, "seed": settings.seed}
    return Table.of(columns, rows, d=_D, n=_N, **about)


def _parts(
    c: float,
    means: list[float],
    deviations: list[float],
    *,
    unit: float,
    noise: str,
    records: int = _N,
) -> tuple[float, float, float, float]:
    """Return squared bias, variance of clipping, variance of noise, and their sum."""
    moments = [clipped(m, s, c * s) for m, s in zip(means, deviations, strict=True)]
    bias = records**2 * math.fsum(bias**2 for bias, _ in moments)
    variance = records * math.fsum(own for _, own in moments)
    sensitivities = [2 * c * s for s in deviations]
    if noise == "elliptical":
        added = unit * math.fsum(sensitivities) ** 2
    else:
        added = unit * len(deviations) * math.fsum(x * x for x in sensitivities)
    return bias, variance, added, bias + variance + added


def _draw_2(table: Table) -> style.Figure:
    with style.panels(1, 3, height=3.4) as (figure, grid):
        for axes, noise in zip(grid[:2], _BOTH, strict=True):
            for look, part in zip(style.CURVES, _PARTS, strict=False):
                where = {"noise": noise, "part": part}
                xs, ys = table.points("x", "error", route="theory", **where)
                axes.plot(xs, ys, label=part, **look.options())
                xs, ys = table.points("x", "error", route="simulation", **where)
                axes.plot(xs, ys, **look.dots())
            axes.set(xscale="log", yscale="log")
            axes.set_xticks([0.5, 1, 2, 4, 8], ["0.5", "1", "2", "4", "8"])
            axes.minorticks_off()
            axes.set(ylim=(1e-3, 1e6), xlabel="half-width of the box, c (sⱼ)")
            axes.set_ylabel("squared error (data units²)")
        for look, noise in zip(style.CURVES[4:], _BOTH, strict=False):
            xs, ys = table.points("x", "error", noise=noise, part="least")
            grid[2].plot(xs, ys, label=noise, **look.marked(len(xs)))
        grid[2].set(xscale="log", yscale="log", xlabel="n (records)")
        errors = [2000, 5000, 10_000, 20_000, 50_000]
        grid[2].set_yticks(errors, [f"{error:,}" for error in errors])
        grid[2].minorticks_off()
        grid[2].set_ylabel("least total error over c (data units²)")
        style.key(figure, grid, 6)
        style.letter(grid, ("elliptical", "spherical", "best box"))
        n = max(table.numbers("x", part="least"))
        ours, same = (table.value("error", noise=z, part="least", x=n) for z in _BOTH)
        style.finding(
            figure,
            "Normal data are unbounded, so clipping is biased. In its best box elliptical noise "
            f"has {same / ours:.1f} times less error than spherical noise at n = {n:,.0f}",
            "Data: simulated normal records; lines: theory, marks: simulation",
        )
        return figure


def clipped(mean: float, deviation: float, bound: float) -> tuple[float, float]:
    """Return mean and variance of the clipping error of one coordinate."""
    above, above_square = _excess((bound - mean) / deviation)
    below, below_square = _excess((bound + mean) / deviation)
    bias = deviation * (below - above)
    return bias, deviation**2 * (above_square + below_square) - bias**2


def _excess(u: float) -> tuple[float, float]:
    """Return E[(z − u)⁺] and E[((z − u)⁺)²] for z ~ N(0, 1)."""
    density = math.exp(-u * u / 2) / math.sqrt(2 * math.pi)
    tail = math.erfc(u / math.sqrt(2)) / 2
    return density - u * tail, (1 + u * u) * tail - u * density


def simulate(
    means: list[float],
    deviations: list[float],
    widths: list[float],
    *,
    records: int,
    trials: int,
    unit: float,
    rng: Generator,
) -> dict[str, list[tuple[float, float, float, float]]]:
    """Simulate many releases of the clipped sum of normal records with correlations 0.5^|i−j|.

    For each kind of noise and each half-width of the box, returns the squared bias and the variance
    of the clipping over the trials, the mean square of the noise and the mean squared error, all
    summed over coordinates.
    """
    import numpy as np

    d = len(means)
    index = np.arange(d)
    root = np.linalg.cholesky(0.5 ** np.abs(index[:, None] - index[None, :]))
    s, m = np.array(deviations), np.array(means)
    errors = np.zeros((len(widths), trials, d))
    for start in range(0, trials, _BATCH):
        size = min(_BATCH, trials - start)
        data = m + s * (rng.standard_normal((size, records, d)) @ root.T)
        for place, c in enumerate(widths):
            shift = np.clip(data, -c * s, c * s) - data
            errors[place, start : start + size] = shift.sum(axis=1)
    found: dict[str, list[tuple[float, float, float, float]]] = {"elliptical": [], "spherical": []}
    for place, c in enumerate(widths):
        bounds = 2 * c * s
        own = np.sqrt(unit * bounds * bounds.sum())
        same = np.full(d, math.sqrt(unit * float(bounds @ bounds)))
        bias = errors[place].mean(axis=0)
        squared = float(bias @ bias)
        variance = float(((errors[place] - bias) ** 2).sum(axis=1).mean())
        for kind, spread in (("elliptical", own), ("spherical", same)):
            drawn = rng.standard_normal((trials, d)) * spread
            noise = float((drawn**2).sum(axis=1).mean())
            total = float(((errors[place] + drawn) ** 2).sum(axis=1).mean())
            found[kind].append((squared, variance, noise, total))
    return found


PLOTS: Plots = {"1": (_compute_1, _draw_1), "2": (_compute_2, _draw_2)}

"""Multivariate normal data: the bias of clipping against the variance of the noise.

Normal data clipped to a box: exact moments, and a simulation of the whole release.

For x ~ N(m, s²) and the projection onto [−a, a] the error clip(x) − x is −(x − a)⁺ + (−a − x)⁺.
With u = (a − m)/s, E[(x − a)⁺] = s(φ(u) − u·Φ(−u)) and
E[((x − a)⁺)²] = s²((1 + u²)Φ(−u) − u·φ(u)); the lower end is the upper one of N(−m, s²).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from dpassay.accountant.budget.calibrate import EpsilonDelta, calibrate
from dpassay.figures import quantities, style
from dpassay.figures.description import Description, Settings
from dpassay.figures.table import Table, label, number

if TYPE_CHECKING:
    from numpy.random import Generator

_BATCH = 20
"""Trials that are drawn at once."""
DESCRIPTION = Description(
    number="The title: the case of multivariate normal data",
    title="Clipped normal data under elliptical and spherical noise",
    plotted="The squared error of the sum of 1000 records N(m, S) in 10 dimensions, clipped to "
    "|xⱼ| ≤ c·sⱼ, summed over the coordinates: squared bias and variance of the clipping, "
    "variance of the noise, total; lines by theory, marks by simulation. Right: the least total "
    "over c against the number of records.",
    says="Elliptical noise is for data in a box; the note's title asks for normal data, which are "
    "in no box, and the note ends before it treats them.",
    quote="Elliptical Gaussian Noise in the case of multivariate normal data",
    where="the title",
    alt="Two panels with a falling bias curve, a falling clipping variance and a noise curve that "
    "rises with the width of the box; their total is a valley. It is lower and wider for "
    "elliptical noise. The simulated marks lie on the lines. Right: the least total error grows "
    "with the number of records and is up to 1.8 times smaller for elliptical noise.",
    claims=("title/multivariate-normal", "elliptical/guarantee", "elliptical/improvement"),
    assumptions=(
        "d = 10, standard deviations sⱼ = 1/j, means m_j = sⱼ/2, correlations 0.5^|i−j|.",
        "The box is centred at 0 and proportional to the standard deviations, which are public.",
        "n = 1000, (ε, δ) = (½, 10⁻⁵), replace-one, the least Gaussian noise.",
    ),
    differs="The note prints no plot.",
)
_D, _N = 10, 1000
_EPSILON, _DELTA = "0.5", "1e-5"
_SHIFT = 0.5
"""Mean of a coordinate, in its standard deviations."""
_PARTS = ("bias²", "clipping", "noise", "total")
_BOTH = ("elliptical", "spherical")


def compute(settings: Settings) -> Table:
    """Tabulate theory, simulation, and the least total error."""
    deviations = [1 / j for j in range(1, _D + 1)]
    means = [_SHIFT * s for s in deviations]
    unit = float(calibrate("Gaussian", EpsilonDelta(_EPSILON, _DELTA)).least.upper) ** 2
    rows: list[tuple[object, ...]] = []
    widths = quantities.geometric(0.5, 8, settings.pick(25, 81))
    for noise in _BOTH:
        for c in widths:
            parts = _parts(_moments(c, means, deviations), c, deviations, unit=unit, noise=noise)
            rows += [
                (noise, part, "theory", c, value) for part, value in zip(_PARTS, parts, strict=True)
            ]
    marked = quantities.geometric(0.5, 8, 9)
    found = simulate(
        means, deviations, marked, records=_N, trials=settings.pick(50, 400, 4000),
        unit=unit, rng=settings.rng("clipped normal data"),
    )  # fmt: skip
    for noise in _BOTH:
        for c, parts in zip(marked, found[noise], strict=True):
            rows += [
                (noise, part, "simulation", c, value)
                for part, value in zip(_PARTS, parts, strict=True)
            ]
    wide = quantities.geometric(0.2, 12, settings.pick(61, 241))
    for noise in _BOTH:
        for n in quantities.geometric(100, 10**6, settings.pick(9, 17)):
            n = round(n)  # noqa: PLW2901
            least = min(
                _parts(
                    _moments(c, means, deviations), c, deviations, unit=unit, noise=noise, records=n
                )[-1]
                for c in wide
            )
            rows.append((noise, "least", "theory", n, least))
    columns = (
        label("noise"), label("part"), label("route"),
        number("x", "standard deviations, or records"),
        number("error", "data units²", relative=1e-6),
    )  # fmt: skip
    return Table.of(columns, rows, d=_D, n=_N, epsilon=_EPSILON, delta=_DELTA, seed=settings.seed)


def _moments(c: float, means: list[float], deviations: list[float]) -> list[Moments]:
    return [clipped(m, s, c * s) for m, s in zip(means, deviations, strict=True)]


def _parts(
    moments: list[Moments],
    c: float,
    deviations: list[float],
    *,
    unit: float,
    noise: str,
    records: int = _N,
) -> tuple[float, float, float, float]:
    """Return squared bias, variance of clipping, variance of noise, and their sum."""
    bias = records**2 * math.fsum(m.bias**2 for m in moments)
    variance = records * math.fsum(m.variance for m in moments)
    sensitivities = [2 * c * s for s in deviations]
    if noise == "elliptical":
        added = unit * math.fsum(sensitivities) ** 2
    else:
        added = unit * len(deviations) * math.fsum(x * x for x in sensitivities)
    return bias, variance, added, bias + variance + added


def draw(table: Table) -> style.Figure:
    """Draw the parts for both noises, and the least totals."""
    with style.panels(1, 3, height=3.3) as (figure, grid):
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
            axes.set(
                ylim=(1e-3, 1e6),
                xlabel="half-width of the box, c (sⱼ)",
                ylabel="squared error; mark: simulated (data units²)",
            )
        for look, noise in zip(style.CURVES[4:], _BOTH, strict=False):
            xs, ys = table.points("x", "error", noise=noise, part="least")
            grid[2].plot(xs, ys, label=noise, **look.marked(len(xs)))
        grid[2].set(
            xscale="log",
            yscale="log",
            xlabel="n (records)",
            ylabel="least total error over c (data units²)",
        )
        style.key(figure, grid, 6)
        style.letter(grid, ("elliptical", "spherical", "best box"))
        n = max(table.numbers("x", part="least"))
        ours, same = (table.value("error", noise=z, part="least", x=n) for z in _BOTH)
        style.finding(
            figure,
            f"Normal data fit no box: clipping biases. In its best box elliptical noise has "
            f"{same / ours:.1f} times less error than spherical noise at n = {n:,.0f}",
            "Data: simulated normal records",
        )
        return figure


@final
@dataclass(frozen=True, slots=True)
class Moments:
    """Mean and variance of clip(x) − x."""

    bias: float
    variance: float


def clipped(mean: float, deviation: float, bound: float) -> Moments:
    """Return the moments of the clipping error of one coordinate."""
    above, above_square = _excess((bound - mean) / deviation)
    below, below_square = _excess((bound + mean) / deviation)
    bias = deviation * (below - above)
    return Moments(bias, deviation**2 * (above_square + below_square) - bias**2)


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
    """Release the clipped sum of correlated normal records many times.

    Returns, for each kind of noise and each width of the box, the squared bias and the variance
    of the clipping over the trials, the mean square of the noise, and the mean square of the
    whole error, each summed over the coordinates. Correlations are 0.5^|i−j|.
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

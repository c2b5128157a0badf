"""The picture of an event that refutes a claim: the laws P and Q, and the outcomes in the event."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np

from dpassay.accountant.errors import DpassayError
from dpassay.accountant.numbers.exact import exact
from dpassay.figures import style
from dpassay.figures.tradeoff import HEIGHT, WIDTH

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    LogDensity: TypeAlias = Callable[[Floats], Floats]

_POINTS = 401
"""Number of points at which a density is drawn."""
_FAR = 1e6
"""Limit of the search for the ends of a density, in the unit of the pair."""
_DROP = 1e-7
"""Densities are drawn down to this fraction of their largest value."""
_RARE = 0.02
"""An event of smaller probability is drawn on a logarithmic scale."""
_MOST = 200
"""Number of outcomes of a law on the integers that are drawn."""


@final
@dataclass(frozen=True, slots=True)
class Table:
    """Masses or densities of both laws at some outcomes, and which of these are in the event S."""

    outcomes: tuple[float, ...]
    p: tuple[float, ...]
    q: tuple[float, ...]
    inside: tuple[bool, ...]
    discrete: bool
    rare: bool
    names: tuple[str, ...] = ()
    """Names of the outcomes, if they are not numbers."""


def compute(law: dict[str, Any], loss_above: str) -> Table | None:
    """Tabulate the two laws of a finding; None if they are not laws on a line."""
    try:
        epsilon = float(exact(loss_above))
        if law["law"] == "finite":
            return _finite(law, epsilon)
        if (noise := _on_lattice(law)) is not None:
            outcomes = np.arange(-_MOST // 2, _MOST // 2 + 1)
            return _on_integers(outcomes, noise(outcomes - law["shift"]), noise(outcomes), epsilon)
        found = _densities(law)
        return None if found is None else _on_the_line(*found, epsilon)
    except (DpassayError, ValueError, OverflowError):
        return None


def _finite(law: dict[str, Any], epsilon: float) -> Table:
    """Tabulate two finite laws, whose outcomes are integers or have names."""
    sides = ([_number(mass) for mass in law[side]] for side in "pq")
    rows = [row for row in zip(law["outcomes"], *sides, strict=True) if max(row[1:]) > 0]
    outcomes, *masses = zip(*rows, strict=True)
    p, q = np.array(masses)
    if all(type(outcome) is int for outcome in outcomes):
        return _on_integers(np.array(outcomes), p, q, epsilon)
    names = tuple(str(outcome) for outcome in outcomes)
    return _on_integers(np.arange(len(names)), p, q, epsilon, names)


def _number(value: str | dict[str, str]) -> float:
    """Return a parameter of a law as a float; of an enclosure, the lower end."""
    return float(value["lower"] if isinstance(value, dict) else exact(value))


def _on_lattice(law: dict[str, Any]) -> Callable[[Any], Floats] | None:
    """Return the probability mass function of integer noise; None for any other law."""
    from scipy import special

    match law["law"]:
        case "discrete-laplace":
            rate = 1 / _number(law["scale"])
            return lambda z: math.tanh(rate / 2) * np.exp(-rate * abs(z))
        case "discrete-gaussian":
            double = 2 * _number(law["parameter"])
            reach = math.ceil(40 * math.sqrt(double) + 1)
            total = np.exp(-(np.arange(-reach, reach + 1) ** 2) / double).sum()
            return lambda z: np.exp(-(z**2) / double) / total
        case "skellam":
            variance = _number(law["variance"])
            return lambda z: np.asarray(special.ive(abs(z), variance))
    return None


_NOISES = {
    "gaussian": ("norm", "mu"),
    "laplace": ("laplace", "distance"),
    "noisy-maximum": ("laplace", "distance"),
    "logistic": ("logistic", "distance"),
    "bounded-range": ("logistic", "distance"),
}
"""Maps a law to its name in scipy.stats and the key of its shift."""


def _densities(law: dict[str, Any]) -> tuple[LogDensity, LogDensity, Sequence[float]] | None:
    """Return ln p, ln q and points where one of them is large; None if there are no densities."""
    from scipy import special, stats

    if law["law"] in _NOISES:
        name, key = _NOISES[law["law"]]
        noise, place = getattr(stats, name), _number(law[key])
        return noise(place).logpdf, noise(0).logpdf, (0.0, place)
    if law["law"] == "truncated-laplace":
        place, end = _number(law["distance"]), _number(law["end"])

        def truncated(x: Floats) -> Floats:
            return np.where(abs(x) <= end, -abs(x) - math.log(-2 * math.expm1(-end)), -math.inf)

        return truncated, lambda x: truncated(x - place), (0.0, place)
    if law["law"] == "gaussian-mixture":
        p, q = (
            np.array([[_number(x) for x in row] for row in json.loads(law[side])]) for side in "pq"
        )

        def mixed(rows: Floats, x: Floats) -> Floats:
            parts = stats.norm.logpdf(np.subtract.outer(x, rows[:, 1]))
            return np.asarray(special.logsumexp(parts, axis=-1, b=rows[:, 0]))

        places = [*p[:, 1].tolist(), *q[:, 1].tolist()]
        return lambda x: mixed(p, x), lambda x: mixed(q, x), places
    return None


def _on_the_line(
    log_p: LogDensity, log_q: LogDensity, places: Sequence[float], epsilon: float
) -> Table:
    def larger(x: float) -> float:
        at = np.array([x])
        return math.exp(max(log_p(at)[0], log_q(at)[0]))

    least = max(larger(place) for place in places) * _DROP
    left, right = _end(larger, min(places), -1, least), _end(larger, max(places), 1, least)
    grid = np.linspace(left, right, _POINTS)
    first, second = log_p(grid), log_q(grid)
    inside = first > epsilon + second
    p, q, step = np.exp(first), np.exp(second), (right - left) / _POINTS
    return _table(grid, p, q, inside, step=step)


def _end(larger: Callable[[float], float], start: float, way: int, least: float) -> float:
    """Return a point in direction `way` where both densities have fallen to `least`."""
    step = 0.25
    while larger(start + way * step) > least and step < _FAR:
        step *= 1.2
    return start + way * step


def _on_integers(
    outcomes: Any, p: Floats, q: Floats, epsilon: float, names: tuple[str, ...] = ()
) -> Table:
    if len(outcomes) > 2 * _MOST:
        raise ValueError(f"{len(outcomes)} outcomes are too many to draw")
    return _table(outcomes, p, q, p > math.exp(epsilon) * q, names=names)


def _table(
    outcomes: Any, p: Floats, q: Floats, inside: Any, *, step: float | None = None, names: Any = ()
) -> Table:
    """Return the table of both laws, without ends that are invisible on a linear scale.

    `step` is the width of the grid of densities, None for masses.
    """
    rare = float(p[inside].sum()) * (step or 1) < _RARE
    if not (rare or names):
        larger = np.maximum(p, q)
        kept = np.flatnonzero(larger >= larger.max() / 300)
        part = slice(kept[0], kept[-1] + 1)
        outcomes, p, q, inside = outcomes[part], p[part], q[part], inside[part]
    x, above, below = (tuple(map(float, values)) for values in (outcomes, p, q))
    return Table(x, above, below, tuple(map(bool, inside)), step is None, rare, names)


def draw(table: Table) -> Figure:
    """Draw both laws, with the event shaded."""
    from matplotlib.ticker import MaxNLocator

    with style.sheet(WIDTH, HEIGHT) as (figure, axes):
        floor = max(*table.p, *table.q) * _DROP if table.rare else 0.0
        marked = style.CURVES[3].colour
        for values, label, curve in ((table.q, "Q", 2), (table.p, "P", 0)):
            look = style.CURVES[curve]
            if table.discrete:
                shift = 0.12 if label == "P" else -0.12
                pairs = zip(table.outcomes, values, strict=True)
                at, tops = zip(*((x + shift, y) for x, y in pairs if y > 0), strict=True)
                axes.vlines(at, floor, tops, color=look.colour, linewidth=1.2)
                axes.plot(at, tops, label=label, markersize=4, **look.dots())
            else:
                axes.plot(table.outcomes, values, label=label, **look.options())
        for left, right in _runs(table):
            axes.axvspan(left, right, color=marked, alpha=0.15, linewidth=0)
        if table.discrete:
            axes.set_xlim(table.outcomes[0] - 0.5, table.outcomes[-1] + 0.5)
        else:
            under: dict[str, Any] = {"where": list(table.inside), "color": marked, "alpha": 0.35}
            axes.fill_between(table.outcomes, floor, table.p, linewidth=0, **under)
        axes.plot([], [], color=marked, alpha=0.5, linewidth=7, label="the event S")
        axes.set_yscale("log" if table.rare else "linear")
        axes.set_ylim(bottom=floor)
        if table.names:
            names = [textwrap.fill(name, 14) for name in table.names]
            axes.set_xticks(table.outcomes, names, fontsize=8)
        else:
            axes.set_xlabel("outcome" if table.discrete else "outcome, in units of the noise")
            if table.discrete:
                axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_ylabel("probability" if table.discrete else "density")
        figure.legend(loc="outside upper center", ncols=3)
        return figure


def _runs(table: Table) -> Sequence[tuple[float, float]]:
    """Return the intervals of outcomes in S; an integer z stands for [z − ½, z + ½]."""
    found: list[tuple[float, float]] = []
    half = 0.5 if table.discrete else 0.0
    last = -math.inf  # the outcome before this one, if it is in S
    for x, inside in zip(table.outcomes, table.inside, strict=True):
        if inside:
            joined = last == x - 1 if table.discrete else last > -math.inf
            start = found.pop()[0] if joined else x - half
            found.append((start, x + half))
        last = x if inside else -math.inf
    return found

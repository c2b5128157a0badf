"""Plots of the trade-off function of a mechanism and of the one that a claim requires.

A table has the power 1 − β of tests at false positive rates α. The power of a mechanism with the
claimed guarantee is at most the claimed one. Curves are floating-point estimates; the point of an
event that refutes a claim is proved.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import DpassayError
from dpassay.accountant.numbers.interval import few
from dpassay.accountant.questions.estimate import estimate_power
from dpassay.accountant.questions.tradeoff import power
from dpassay.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 4.0, 3.1
"""Inches; small enough for the text to be readable on a phone."""
_POINTS = 33
"""Number of points of a curve."""
_PEAK = (0.5, 0.6, 0.75, 0.9, 1.15, 1.35, 1.6, 1.8, 2.0, 2.2, 2.4, 2.6)
"""Additional points near the maximum of the excess, as multiples of the event's α."""
_LEAST, _NEAR, _USUAL = 1e-250, 1e-3, 1e-6
"""The least number drawn; the lower end of a logarithmic axis, relative to the event's α or to δ;
the lower end if there is neither."""


@final
@dataclass(frozen=True, slots=True)
class Table:
    """True and claimed power at false positive rates α, and the point of an event."""

    rows: tuple[tuple[float, float, float], ...]
    """(α, true, claimed) from α = 0 to α = 1."""
    near: tuple[tuple[float, float, float], ...]
    """The same at small α, for logarithmic axes."""
    claim: str
    epsilon: float | None = None
    """ε, if the claim is (ε, δ)-DP with δ > 0."""
    delta: float = 0.0
    point: tuple[float, float] | None = None
    """(Q(S), P(S)) of the event S that refutes the claim."""


def compute(
    mechanism: Mechanism,
    claimed: Mapping[str, str],
    *,
    adjacency: str | None = None,
    point: tuple[float, float] | None = None,
) -> Table | None:
    """Tabulate both powers; None if the claim implies no trade-off function or none is known."""
    bound, words = _claimed(claimed)
    if bound is None:
        return None
    delta = float(claimed.get("delta", 0))
    least = point[0] * _NEAR if point is not None else delta * _NEAR or _USUAL
    least = min(max(least, _LEAST), _NEAR)
    steps = [index / (_POINTS - 1) for index in range(_POINTS)]
    corners = [point[0]] if point is not None else []
    if "epsilon" in claimed:
        corners.append((1 - delta) / (1 + math.exp(min(float(claimed["epsilon"]), 700.0))))
    even = sorted({*steps[1:-1], *(alpha for alpha in corners if 0 < alpha < 1)})
    peak = [point[0] * factor for factor in _PEAK] if point is not None else []
    small = sorted({*(least ** (1 - step) for step in steps[:-1]), *corners, *peak})
    small = [alpha for alpha in small if least <= alpha < 1]
    try:
        true = powers(mechanism, [*even, *small], adjacency)
    except DpassayError:
        return None
    rows = [(alpha, y, bound(alpha)) for alpha, y in zip([*even, *small], true, strict=True)]
    return Table(
        ((0.0, 0.0, bound(0.0)), *rows[: len(even)], (1.0, 1.0, bound(1.0))),
        tuple(rows[len(even) :]),
        words,
        float(claimed["epsilon"]) if delta > 0 and "epsilon" in claimed else None,
        delta,
        point,
    )


def powers(mechanism: Mechanism, alphas: list[float], adjacency: str | None) -> list[float]:
    """Estimate the power of the best test, or return a proved upper end if there is no estimate."""
    try:
        found = np.asarray(estimate_power(mechanism, alphas, adjacency=adjacency))
        return [float(value) for value in found]
    except DpassayError:
        proved = [power(mechanism, a, adjacency=adjacency, relative_width="1e-3") for a in alphas]
        return [float(value.upper) for value in proved]


def _claimed(claimed: Mapping[str, str]) -> tuple[Callable[[float], float] | None, str]:
    """Return the largest power that a claim allows as a function of α, and the claim as text."""
    if "epsilon" in claimed and "order" not in claimed:
        epsilon, delta = float(claimed["epsilon"]), float(claimed.get("delta", 0))

        def allowed(alpha: float) -> float:
            rising = delta + alpha * math.exp(min(epsilon, 700.0))
            return min(1.0, rising, 1 - math.exp(-epsilon) * (1 - delta - alpha))

        short = f"({epsilon:.4g}, {few(delta, 3)})-DP" if delta else f"{epsilon:.4g}-DP"
        return allowed, short
    if "mu" in claimed:
        from dpassay.accountant.mechanisms import Gaussian

        noise = Gaussian(standard_deviation=1, l2_sensitivity=claimed["mu"])
        return (
            lambda alpha: alpha if alpha in (0, 1) else powers(noise, [alpha], None)[0],
            f"{float(claimed['mu']):.4g}-GDP",
        )
    return None, ""


def draw(table: Table, ax: Axes | None = None) -> Figure:
    """Draw the trade-off function, β = 1 − power against α."""
    lines = tuple(zip(*((alpha, 1 - x, 1 - y) for alpha, x, y in table.rows), strict=True))
    point = None if table.point is None else (table.point[0], 1 - table.point[1])
    axes = {"xlim": (0, 1), "ylim": (0, 1.02), "ylabel": "β: false negatives"}
    return _drawn(table, lines, point, axes, worse=operator.lt, legend="upper right", ax=ax)


def excess(table: Table) -> list[tuple[float, float]]:
    """Return points (α, 1 − β − e^ε·α), whose ordinates are at most δ under (ε, δ)-DP.

    Points far below δ are omitted.
    """
    if table.epsilon is None:
        return []
    factor = math.exp(min(table.epsilon, 700.0))
    rows = [(alpha, true - factor * alpha) for alpha, true, _ in table.near]
    return [row for row in rows if row[1] > max(_LEAST, table.delta * _NEAR)]


def draw_excess(table: Table) -> Figure:
    """Draw `excess` and the claimed δ."""
    alphas, values = zip(*excess(table), strict=True)
    point = None
    if table.point is not None and table.epsilon is not None:
        factor = math.exp(min(table.epsilon, 700.0))
        point = table.point[0], table.point[1] - factor * table.point[0]
    axes = {**_LOGARITHMIC, "ylabel": "1 − β − e$^ε$·α"}
    lines = (alphas, values, [table.delta] * len(alphas))
    return _drawn(table, lines, point, axes, worse=operator.gt, legend="best")


def guesses(table: Table) -> list[tuple[float, float, float]]:
    """Return (prior, true success, claimed success) of membership inference.

    The success is the probability that the best test in the table guesses correctly whether the
    record is in the data. `dpassay.accountant.questions.attack.membership` encloses it exactly.
    """
    tests = (*table.rows, *table.near)
    rows = []
    for index in range(_POINTS):
        prior = index / (_POINTS - 1)
        true, claimed = (
            max(prior * test[side] + (1 - prior) * (1 - test[0]) for test in tests)
            for side in (1, 2)
        )
        rows.append((prior, true, claimed))
    return rows


def draw_guesses(table: Table) -> Figure:
    """Draw the success of membership inference against the prior, with and without the release."""
    lines = tuple(zip(*guesses(table), strict=True))
    about = {"xlim": (0, 1), "ylim": (0.48, 1.02), "ylabel": "best guess is right"}
    about["xlabel"] = "prior: the record is in the data"
    figure = _drawn(table, lines, None, about, worse=operator.gt, legend="upper center")
    axes = figure.axes[0]
    blind = [max(prior, 1 - prior) for prior in lines[0]]
    axes.plot(lines[0], blind, ":", color="black", linewidth=1, label="without the release")
    axes.legend(loc="upper center")
    return figure


def draw_near(table: Table) -> Figure:
    """Draw power against small α, both on logarithmic axes."""
    rows = [row for row in table.near if min(row) > _LEAST]
    point = table.point if table.point is not None and min(table.point) > _LEAST else None
    axes = {**_LOGARITHMIC, "xlim": (rows[0][0], 1), "ylabel": "1 − β: true positives"}
    lines = tuple(zip(*rows, strict=True))
    return _drawn(table, lines, point, axes, worse=operator.gt, legend="lower right")


_LOGARITHMIC = {"xscale": "log", "yscale": "log"}


def _drawn(
    table: Table,
    lines: Sequence[Sequence[float]],
    point: tuple[float, float] | None,
    about: Mapping[str, Any],
    *,
    worse: Callable[[float, float], bool],
    legend: Any,
    ax: Axes | None = None,
) -> Figure:
    """Draw the true and the claimed line, shade where the true one is worse, and mark the event."""
    x, true, claimed = lines
    with style.sheet(WIDTH, HEIGHT, ax) as (figure, axes):
        axes.plot(x, true, label="true", **style.CURVES[0].options())
        look = style.CURVES[3]
        axes.plot(x, claimed, label=f"claimed {table.claim}", **look.options())
        beyond = [worse(a, b) for a, b in zip(true, claimed, strict=True)]
        axes.fill_between(x, true, claimed, beyond, color=look.colour, alpha=0.25, linewidth=0)
        if point is not None:
            axes.plot(*point, "o", color="black", markersize=5, zorder=3, label="the event S")
        axes.set(**{"xlabel": "α: false positives", **about})
        axes.legend(loc=legend)
        return figure

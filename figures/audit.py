"""The plot of an audit: histograms of both datasets, and the trade-off function.

The upper panel shows the fraction of runs in each cell of the tested score, for both datasets, with
the event shaded. The lower panel shows the errors of the best attack. With the confidence of the
audit, the trade-off function lies on or below the certified line, simultaneously at all α; for an
audit of one run it lies below this line at some α. The trade-off function of a mechanism with the
claimed guarantee lies on or above the claimed line.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any, final

import numpy as np

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.errors import DpassayError
from dpassay.figures import style
from dpassay.figures.tradeoff import powers
from dpassay.verifier.audit.result import AuditResult, bins

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 6.0, 6.6
"""Inches."""
_POINTS = 65
"""Number of points of a claimed or exact line; they are denser near 0 and 1."""
_MOST_ROWS = 16
"""Maximal number of categories in the histogram."""
_LETTERS = 46
"""Characters per line of the title; a longer name of a target is cut."""
Line = tuple[tuple[float, ...], tuple[float, ...]]
"""Errors of the first kind, and of the second kind."""


@final
@dataclass(frozen=True, slots=True)
class Table:
    """The histogram of the tested score, and the lines of the trade-off function."""

    finding: str
    where: str
    score: str
    edges: tuple[float, ...]
    """Edges of the cells; empty for categories."""
    labels: tuple[str, ...]
    shares: tuple[tuple[float, ...], tuple[float, ...]]
    marks: tuple[int, ...]
    estimated: Line
    certified: Line
    exact: Line
    """Empty if it is not known."""
    claimed: Line
    """Empty if nothing is claimed."""
    confidence: float
    of_one_run: bool
    """Whether the certified line holds only at some α, not at all of them."""


def compute(result: AuditResult) -> Table:
    """Tabulate the histograms and the lines of an audit."""
    rule, curve = result.rule, result.curve()
    partition = rule.partition
    if partition.edges is None:
        labels, shares, marks = bins(rule, result.histogram, _MOST_ROWS)
        edges: tuple[float, ...] = ()
    else:
        labels, marks = [], rule.marks
        shares = result.histogram / result.histogram.sum(axis=1, keepdims=True)
        inner = [float(edge) for edge in partition.edges]
        edges = _finite(
            [min(partition.ends[0], inner[0]), *inner, max(partition.ends[1], inner[-1])]
        )
    below = zip(*curve.tradeoff(), strict=True)
    seen = zip(*curve.tradeoff_estimate(), strict=True)
    said = f"ε({result.bounded_at:.3g}) ≥ {result.epsilon:.4g}"
    claim = f"{result.verdict}: {result.guarantee.description}, " if result.claimed else ""
    return Table(
        f"{claim}{said} with confidence {1 - result.significance:.7g}",
        "\n".join([_cut(result.target, _LETTERS), *[result.size] * (result.guesses is None)]),
        rule.name,
        edges,
        tuple(labels),
        (tuple(shares[0].tolist()), tuple(shares[1].tolist())),
        tuple(int(mark) for mark in marks),
        tuple(tuple(line) for line in seen),  # type: ignore[arg-type]  # two lines
        tuple(tuple(line) for line in below),  # type: ignore[arg-type]  # two lines
        _exact(result),
        _claimed(result) if result.claimed else ((), ()),
        1 - result.significance,
        result.guesses is not None,
    )


def _cut(text: str, letters: int) -> str:
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def _finite(edges: list[float]) -> tuple[float, ...]:
    """Replace infinite edges, and NaN, by points slightly beyond the finite ones."""
    known = [edge for edge in edges if np.isfinite(edge)] or [0.0]
    margin = 0.05 * ((known[-1] - known[0]) or 1.0)
    return tuple(float(np.clip(edge, known[0] - margin, known[-1] + margin)) for edge in edges)


def _alphas() -> Any:
    return (1 - np.cos(np.linspace(0, np.pi, _POINTS))) / 2


def _exact(result: AuditResult) -> Line:
    """Return the exact trade-off function, if the target is a mechanism of this package."""
    if result.mechanism is None:
        return (), ()
    alphas = _alphas()[1:-1].tolist()
    relation = Adjacency.read(result.adjacency)
    try:
        found = powers(result.mechanism, alphas, None if relation is None else relation.value)
    except DpassayError:
        return (), ()
    return tuple(alphas), tuple(1 - power for power in found)


def _claimed(result: AuditResult) -> Line:
    """Return the least errors that the claim allows."""
    alphas = _alphas()
    least = np.zeros(_POINTS)
    for point in result.guarantee.candidates():
        factor, delta = float(np.exp(float(point.epsilon))), float(point.delta)
        for bound in (1 - delta - factor * alphas, (1 - delta - alphas) / factor):
            least = np.maximum(least, bound)
    return tuple(alphas.tolist()), tuple(least.tolist())


def draw(table: Table) -> Figure:
    """Draw the histograms, with the trade-off function below them."""
    with style.sheet(WIDTH, HEIGHT) as (figure, whole):
        whole.remove()
        above, below = figure.subplots(2, 1, height_ratios=(2, 3))
        _histogram(table, above)
        into(table, below)
        lines = [*wrap(table.finding, _LETTERS), *table.where.splitlines()]
        figure.suptitle("\n".join(lines), fontsize=8.5, fontweight="bold", x=0.01, ha="left")
        figure.set_label(table.finding)
        return figure


def into(table: Table, axes: Axes) -> None:
    """Draw the trade-off function into given axes."""
    certified, estimated, exact, claimed = style.CURVES[:4]
    where = "somewhere <" if table.of_one_run else "≤"
    said = f"certified: {where} (at {table.confidence:.7g})"
    axes.plot(*table.certified, label=said, **certified.options())
    if not table.of_one_run:
        axes.fill_between(*table.certified, color=certified.colour, alpha=0.12, linewidth=0)
    if table.exact[0]:
        axes.plot(*table.exact, label="exact", **exact.options())
    if table.claimed[0]:
        axes.plot(*table.claimed, label="claimed: ≥", **claimed.options())
    axes.plot(*table.estimated, label="estimated", **estimated.options())
    axes.set(
        xlim=(0, 1),
        ylim=(0, 1),
        xlabel="α (errors of the first kind)",
        ylabel="β (errors of the second kind)",
    )
    axes.legend(loc="upper right", fontsize=8)


def _shading(table: Table) -> str:
    return "dark: the event, light: its opposite" if -1 in table.marks else "shaded: the event"


def _histogram(table: Table, axes: Axes) -> None:
    """Draw the densities of both datasets, or their shares of categories."""
    sides = ("included", "excluded") if table.of_one_run else ("first dataset", "second dataset")
    looks = zip(sides, table.shares, style.CURVES, strict=False)
    colours = {1: "0.85", -1: "0.94"}
    if table.edges:
        with np.errstate(over="ignore", invalid="ignore"):
            widths = np.diff(table.edges)
        for mark, low, high in zip(table.marks, table.edges[:-1], table.edges[1:], strict=True):
            if mark:
                axes.axvspan(low, high, color=colours[mark], linewidth=0)
        for name, shares, look in looks:
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                density = np.where(widths > 0, np.array(shares) / widths, np.nan)
            axes.stairs(density, table.edges, label=name, **look.options())
        axes.set(xlabel=table.score, ylabel="density")
    else:
        places = np.arange(len(table.labels))
        for place, mark in zip(places, table.marks, strict=True):
            if mark:
                axes.axvspan(place - 0.5, place + 0.5, color=colours[mark], linewidth=0)
        for shift, (name, shares, look) in zip((-0.2, 0.2), looks, strict=False):
            axes.bar(places + shift, shares, 0.4, label=name, color=look.colour)
        names = [_cut(label, _LETTERS // 3) for label in table.labels]
        axes.set_xticks(places, names, rotation=30 if sum(map(len, names)) > _LETTERS else 0)
        axes.set(xlabel=table.score, ylabel="share of the runs")
    axes.legend(loc="best", fontsize=8, title=_shading(table), title_fontsize=8)

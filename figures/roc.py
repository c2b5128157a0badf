"""What an audit saw, what it certifies and what was claimed, as true against false positives.

The best attack has at each false positive rate at least the power of the certified line, at all
rates at once with the confidence of the audit; a mechanism with the claimed guarantee has at most
the claimed one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from dpassay.figures import style
from dpassay.verifier.audit.kinds.result import AuditResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 4.6, 4.2
"""Inches: both rates have about the same scale."""
_POINTS = 129
"""False positive rates at which the claim is drawn: they close in on 0 and 1."""
Line = tuple[tuple[float, ...], tuple[float, ...]]
"""False and true positive rates."""


@final
@dataclass(frozen=True, slots=True)
class Table:
    """Three lines, and the event that was tested."""

    title: str
    seen: Line
    """Of the runs that were tested, at the cuts of the feature."""
    certified: Line
    claimed: Line
    event: tuple[float, float]
    confidence: float


def compute(result: AuditResult) -> Table:
    """Tabulate an audit."""
    below, above = zip(*result.curve().tradeoff(), strict=True)
    alphas = (1 - np.cos(np.linspace(0, np.pi, _POINTS))) / 2
    allowed = np.ones(_POINTS)
    for point in result.guarantee.candidates():
        factor, delta = float(np.exp(float(point.epsilon))), float(point.delta)
        for most in (factor * alphas + delta, 1 - (1 - delta - alphas) / factor):
            allowed = np.minimum(allowed, most)
    shares = result.histogram / np.maximum(result.histogram.sum(axis=1, keepdims=True), 1)
    hit = result.rule.marks == (1 if (result.rule.marks == 1).any() else -1)
    first, second = (float(side[hit].sum()) for side in shares)
    return Table(
        str(result).partition("\n")[0],
        _seen(result, shares),
        (tuple(below), tuple(1 - beta for beta in above)),
        (tuple(alphas.tolist()), tuple(allowed.tolist())),
        (second, first) if first >= second else (1 - second, 1 - first),
        1 - result.significance,
    )


def _seen(result: AuditResult, shares: np.ndarray) -> Line:
    """Return the rates of all cuts, in the direction that favours the first dataset."""
    if result.rule.feature.discrete:
        shares = shares[:, np.argsort(-result.rule.marks, kind="stable")]
    first, second = np.cumsum(np.column_stack([np.zeros(2), shares]), axis=1)
    if np.trapezoid(first, second) < 1 / 2:
        first, second = 1 - first[::-1], 1 - second[::-1]
    return tuple(second.tolist()), tuple(first.tolist())


def draw(table: Table) -> Figure:
    """Draw true against false positives, both from 0 to 1."""
    with style.sheet(WIDTH, HEIGHT) as (figure, axes):
        certified, claimed = style.CURVES[0], style.CURVES[3]
        axes.plot(*table.seen, label="seen", **style.CURVES[2].options())
        said = f"certified ({table.confidence:.7g})"
        axes.plot(*table.certified, label=said, **certified.options())
        axes.fill_between(
            *table.certified, table.certified[0], color=certified.colour, alpha=0.15, linewidth=0
        )
        axes.plot(*table.claimed, label="most that is claimed", **claimed.options())
        axes.plot(*table.event, "o", color="black", markersize=5, label="the tested event")
        axes.set(
            xlim=(0, 1),
            ylim=(0, 1.01),
            aspect="equal",
            xlabel="false positives",
            ylabel="true positives",
        )
        axes.set_title(table.title, fontsize=9, loc="left")
        axes.legend(loc="lower right", fontsize=8)
        return figure

"""ε against epochs, by how batches are made: bands where two ends are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.training import Schemes
from dpassay.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINTS = 7
"""Numbers of epochs: each takes up to a second for each sampling."""
_LEAST_LAST = 10
"""Epochs that are shown at least."""
_THIN = 1.01
"""Upper over lower end of ε up to which a curve is a line: no band would be seen."""


@final
@dataclass(frozen=True, slots=True)
class Table:
    """What is drawn."""

    title: str
    epochs: tuple[int, ...]
    rows: tuple[tuple[str, tuple[Interval, ...]], ...]
    """Each sampling, and ε at these numbers of epochs."""


def compute(schemes: Schemes) -> Table:
    """Ask for ε from one epoch to those of the table, with the noise that each row has."""
    last = max(_LEAST_LAST, round(schemes.epochs))
    epochs = sorted({round(last ** (i / (_POINTS - 1))) for i in range(_POINTS)})
    rows = tuple(
        (run.sampling, tuple(schemes.again(run, each).epsilon for each in epochs))
        for run in schemes.runs
    )
    return Table(schemes.title, tuple(epochs), rows)


def draw(table: Table, ax: Axes | None = None) -> Figure:
    """Draw a table, both axes logarithmic."""
    with style.sheet(ax=ax) as (figure, axes):
        for curve, (sampling, epsilons) in zip(style.CURVES, table.rows, strict=False):
            low = [float(epsilon.lower) for epsilon in epsilons]
            high = [float(epsilon.upper) for epsilon in epsilons]
            options = curve.marked(len(high))
            if any(b > _THIN * a for a, b in zip(low, high, strict=True)):
                axes.fill_between(table.epochs, low, high, color=curve.colour, alpha=0.2)
                axes.plot(table.epochs, low, **options)
                options.pop("marker")
            axes.plot(table.epochs, high, label=sampling, **options)
        axes.set(xscale="log", yscale="log", xlabel="epochs", ylabel="ε (nats)")
        axes.set_title(table.title, fontsize=9, loc="left")
        axes.legend()
        return figure

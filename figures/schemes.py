"""ε against epochs, by how batches are made: bands where two ends are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from accountant.numbers.interval import Interval
from accountant.training import Schemes
from figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POINTS = 7
"""Numbers of epochs: each takes up to a second for each sampling."""
_LEAST_LAST = 10
"""Epochs that are shown at least."""
_THIN = 1.01
"""Upper over lower end of ε up to which a curve is a line: no band would be seen."""


@final
@dataclass(frozen=True, slots=True)
class Row:
    """ε of one sampling at some numbers of epochs."""

    sampling: str
    epsilons: tuple[Interval, ...]


@final
@dataclass(frozen=True, slots=True)
class Table:
    """What is drawn."""

    title: str
    epochs: tuple[int, ...]
    rows: tuple[Row, ...]


def compute(schemes: Schemes) -> Table:
    """Ask for ε from one epoch to those of the table, with the noise that each row has."""
    last = max(_LEAST_LAST, round(schemes.epochs))
    epochs = sorted({round(last ** (i / (_POINTS - 1))) for i in range(_POINTS)})
    rows = tuple(
        Row(run.sampling, tuple(schemes.again(run, each).epsilon for each in epochs))
        for run in schemes.runs
    )
    return Table(schemes.title, tuple(epochs), rows)


def draw(table: Table) -> Figure:
    """Draw a table, both axes logarithmic."""
    with style.sheet() as (figure, axes):
        for curve, row in zip(style.CURVES, table.rows, strict=False):
            low = [float(epsilon.lower) for epsilon in row.epsilons]
            high = [float(epsilon.upper) for epsilon in row.epsilons]
            options = curve.marked(len(high))
            if any(b > _THIN * a for a, b in zip(low, high, strict=True)):
                axes.fill_between(table.epochs, low, high, color=curve.colour, alpha=0.2)
                axes.plot(table.epochs, low, **options)
                options.pop("marker")
            axes.plot(table.epochs, high, label=row.sampling, **options)
        axes.set(xscale="log", yscale="log", xlabel="epochs", ylabel="ε (nats)")
        axes.set_title(table.title, fontsize=9, loc="left")
        axes.legend()
        return figure

"""The plot of ε against epochs by sampling scheme, with a band if only bounds are known."""

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
"""Number of points of a curve; each takes up to a second."""
_LEAST_LAST = 10
"""Least number of epochs at which the axis ends."""
_THIN = 1.01
"""If the upper end of ε is at most this multiple of the lower one, a line is drawn, not a band."""


@final
@dataclass(frozen=True, slots=True)
class Table:
    """ε at some numbers of epochs, by sampling scheme."""

    title: str
    epochs: tuple[int, ...]
    rows: tuple[tuple[str, tuple[Interval, ...]], ...]
    """Each sampling scheme with ε at these numbers of epochs."""


def compute(schemes: Schemes) -> Table:
    """Enclose ε from one epoch to the number in `schemes`, for the noise of each row."""
    last = max(_LEAST_LAST, round(schemes.epochs))
    epochs = sorted({round(last ** (i / (_POINTS - 1))) for i in range(_POINTS)})
    rows = tuple(
        (run.sampling, tuple(schemes.again(run, each).epsilon for each in epochs))
        for run in schemes.runs
    )
    return Table(schemes.title, tuple(epochs), rows)


def draw(table: Table, ax: Axes | None = None) -> Figure:
    """Draw a table with logarithmic axes."""
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

"""Plots of comparisons: the metric that ranks, and a metric along a parameter."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from dpassay.figures import style
from dpassay.verifier.compare import output

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpassay.verifier.compare import Comparison, Sweep

_WIDE = 7.0
"""Inches."""
_NARROW = 5.0
"""On a page, where the letters of a phone's figure have to be read."""
_TALL = 4.2
"""Inches."""
_BAR = 0.35
"""Inches for each candidate."""
_TITLE = 75
"""Letters in a line of the title."""
_MANY_DECADES = 20.0
"""Ratio of values from which on an axis is logarithmic."""


def bars(found: Comparison, *, titled: bool = True) -> Figure:
    """Draw the metric that ranks for every candidate, the best on top; hollow is struck out."""
    name = found.ranked_by.name
    rows = [(row, value) for row in found.rows if (value := row.value(name)) is not None]
    with style.sheet(_WIDE if titled else _NARROW, 1.2 + _BAR * len(rows)) as (figure, axes):
        colour = style.CURVES[0].colour
        for place, (row, value) in enumerate(rows):
            size = float(value.upper)
            axes.barh(
                place,
                size,
                color=colour if row.is_private else "none",
                edgecolor=colour,
                height=0.6,
            )
            axes.annotate(
                f" {size:.4g}" if row.is_private else f" {size:.4g}, not private",
                (size, place),
                va="center",
                fontsize=8,
            )
        axes.set_yticks(range(len(rows)), [row.candidate.name for row, _ in rows])
        axes.invert_yaxis()
        axes.margins(x=0.15)
        if _spans([float(value.upper) for _, value in rows]):
            axes.set_xscale("log")
        axes.set_xlabel(_axis(found, name))
        if titled:
            title = "\n".join(textwrap.wrap(output.headline(found), _TITLE))
            axes.set_title(title, fontsize=9, loc="left")
        return figure


def along(found: Sweep) -> Figure:
    """Draw a metric of every private candidate along the parameter, with the crossovers."""
    with style.sheet(_WIDE, _TALL) as (figure, axes):
        positions = [_position(value) for value in found.values]
        heights = []
        for index, (name, entries) in enumerate(found.series().items()):
            points = [
                (x, float(entry.upper))
                for x, entry in zip(positions, entries, strict=True)
                if entry is not None
            ]
            if not points:
                continue
            heights += [y for _, y in points]
            axes.plot(
                [x for x, _ in points],
                [y for _, y in points],
                label=name,
                **style.CURVES[index % len(style.CURVES)].marked(len(points), start=index),
            )
        for crossing in found.crossovers:
            axes.axvline(_position(crossing.above), color="0.6", linewidth=0.8, zorder=0)
        if _spans(positions):
            axes.set_xscale("log")
        if _spans(heights):
            axes.set_yscale("log")
        axes.set(xlabel=found.parameter, ylabel=found.metric)
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=8)
        return figure


def _spans(values: list[float]) -> bool:
    """Whether positive values need a logarithmic axis."""
    return bool(values) and min(values) > 0 and max(values) > _MANY_DECADES * min(values)


def _position(value: str) -> float:
    from dpassay.accountant.numbers.exact import exact

    return float(exact(value))


def _axis(found: Comparison, name: str) -> str:
    meaning = next(entry.meaning for entry in found.metrics if entry.name == name)
    return f"{name}: {meaning}" if len(meaning) < 45 else name

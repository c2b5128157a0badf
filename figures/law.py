"""Laws on a few integers, on a logarithmic scale."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dpassay.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Series = tuple[str, Sequence[float], Sequence[float]]
"""Label, places, and values."""
_ROOM = 3.0
"""Empty space below the least probability, as a factor."""
_LEAST_SHOWN = 1e-300
"""A smaller probability is no normal float, and is left out."""


def plot(series: Sequence[Series], path: Path, *, title: str) -> None:
    """Draw laws into a .png, .pdf or .svg file."""
    style.save(draw(series, title=title), path)


def draw(series: Sequence[Series], *, title: str) -> Figure:
    """Draw laws; what is 0 lies below every scale and is left out."""
    with style.sheet() as (figure, axes):
        least = 1.0
        for index, (label, places, values) in enumerate(series):
            points = [p for p in zip(places, values, strict=True) if p[1] >= _LEAST_SHOWN]
            least = min([least, *(y for _, y in points)])
            look = style.CURVES[index % len(style.CURVES)]
            axes.plot(
                [place for place, _ in points],
                [y for _, y in points],
                markersize=4,
                label=label,
                **look.dots(),
            )
        axes.set(yscale="log", ylim=(least / _ROOM, 1))
        if len(series) > 1:
            axes.legend()
        axes.set(xlabel="error z", ylabel="P(Z = z)")
        axes.set_title(title, fontsize=9, loc="left")
        return figure

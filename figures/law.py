"""Laws on a few integers: probabilities on a logarithmic scale, one series for each law."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dpassay.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ROOM = 3.0
"""Empty space below the least probability, as a factor."""
_LEAST_SHOWN = 1e-300
"""A smaller probability is no normal float, and is left out."""


def plot(laws: Sequence[tuple[str, int, Sequence[float]]], path: Path, *, title: str) -> None:
    """Draw (label, least value, probabilities) of each law into a .png, .pdf or .svg file."""
    style.save(draw(laws, title=title), path)


def draw(laws: Sequence[tuple[str, int, Sequence[float]]], *, title: str) -> Figure:
    """Draw laws; what has probability 0 lies below every scale and is left out."""
    with style.sheet() as (figure, axes):
        least = 1.0
        for index, (label, lowest, law) in enumerate(laws):
            points = [(z, p) for z, p in enumerate(law, start=lowest) if p >= _LEAST_SHOWN]
            least = min([least, *(p for _, p in points)])
            axes.plot(
                [z for z, _ in points],
                [p for _, p in points],
                markersize=4,
                label=label,
                **style.CURVES[index % len(style.CURVES)].dots(),
            )
        axes.set(yscale="log", ylim=(least / _ROOM, 1))
        if len(laws) > 1:
            axes.legend()
        axes.set(xlabel="error z", ylabel="P(Z = z)")
        axes.set_title(title, fontsize=9, loc="left")
        return figure

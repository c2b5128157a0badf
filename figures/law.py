"""Plots of laws on a few integers, on a logarithmic scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpassay.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpassay.verifier.cli.optimal import Laws

_ROOM = 3.0
"""Factor between the least probability and the lower end of the axis."""
_LEAST_SHOWN = 1e-300
"""Smaller probabilities, which are hardly normal floats, are not drawn."""


def draw(found: Laws, ax: Axes | None = None) -> Figure:
    """Draw laws; probabilities that are 0 are omitted."""
    with style.sheet(ax=ax) as (figure, axes):
        least = 1.0
        for index, (label, lowest, values) in enumerate(found.laws):
            points = [point for point in enumerate(values, lowest) if point[1] >= _LEAST_SHOWN]
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
        if len(found.laws) > 1:
            axes.legend()
        axes.set(xlabel="error z", ylabel="P(Z = z)")
        axes.set_title(found.title, fontsize=9, loc="left")
        return figure

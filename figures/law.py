"""Laws on a few integers, on a logarithmic scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpassay.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpassay.verifier.cli.optimal import Laws

_ROOM = 3.0
"""Empty space below the least probability, as a factor."""
_LEAST_SHOWN = 1e-300
"""A smaller probability is no normal float, and is left out."""


def draw(found: Laws, ax: Axes | None = None) -> Figure:
    """Draw laws; what is 0 lies below every scale and is left out."""
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

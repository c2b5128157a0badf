"""The house style of figures: colours told apart by everyone and in grey, labelled axes.

Every curve has its own colour, lightness and dash pattern, so that no two are told apart by
colour alone. Nothing here changes matplotlib's global state, and the same table gives the same
file, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 6.0, 4.0
"""Inches."""
_DOTS_PER_INCH = 200
_PARAMETERS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "svg.hashsalt": "dpassay",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}


@final
@dataclass(frozen=True, slots=True)
class Curve:
    """How one curve of a figure looks."""

    colour: str
    dashes: tuple[int, tuple[float, ...]] | str

    def options(self) -> dict[str, Any]:
        """Return keyword arguments for `Axes.plot`."""
        return {"color": self.colour, "linestyle": self.dashes}


CURVES = (
    Curve("#0072b2", "solid"),
    Curve("#e69f00", (0, (5, 2))),
    Curve("#000000", (0, (1, 1.5))),
    Curve("#d55e00", (0, (6, 2, 1, 2))),
    Curve("#56b4e9", (0, (3, 1, 1, 1, 1, 1))),
)
"""In the order of use: the colours of Okabe and Ito, neighbours of different lightness."""


@contextmanager
def sheet(width: float = WIDTH, height: float = HEIGHT) -> Iterator[tuple[Figure, Axes]]:
    """Open a figure with one pair of axes, in the house style while it is open."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_PARAMETERS):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, figure.add_subplot()


def save(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the suffix, without a date."""
    from matplotlib import rc_context

    from accountant.errors import InvalidInputError

    dates = {".png": {"Software": None}, ".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
    suffix = path.suffix.lower()
    if suffix not in dates:
        raise InvalidInputError(
            f"Expected the figure {path} to end in {', '.join(dates)}. Change its name."
        )
    with rc_context(_PARAMETERS):
        figure.savefig(path, dpi=_DOTS_PER_INCH, metadata=dates[suffix])

"""The common style of figures.

Curves differ in colour, lightness, dash pattern and marker, so that they can be distinguished
without colour. matplotlib's global state is not changed, and equal tables give identical files.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, final

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Figure  # noqa: PLC0414 (style.Figure elsewhere)

    from dpassay.figures.table import Table, Value

WIDTH, HEIGHT = 6.0, 4.0
"""Inches."""
PAGE = 7.0
"""Width of the text of a two-column paper, in inches."""
COLUMN = 3.4
"""Width of a column of such a paper, in inches."""
_TILES, _TILE, _PANEL = 2, 1.75, 1.85
"""In a column: panels with equal aspect per row, their height, and the height of other panels."""
_LETTERS_BESIDE, _LETTERS_ABOVE = 26, 46
"""In a column: characters per line of a vertical axis label, and of a panel's title."""
_TINY = 5.0
"""Font size of a table in a column, in points."""
_SMALL = 7.5
"""Font size of figures of the papers, in points."""
_DOTS_PER_INCH = 200
"""Resolution of bitmaps."""
_LETTERS_PER_INCH = 13.0
"""Characters per inch of the bold title, which determine its line breaks."""
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
_PRINTED: dict[Any, Any] = _PARAMETERS | {
    "font.size": _SMALL,
    "axes.titlesize": 8,
    "axes.labelsize": _SMALL,
    "axes.linewidth": 0.7,
    "legend.fontsize": 7,
    "legend.handlelength": 2.6,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.5,
}


@final
@dataclass(frozen=True, slots=True)
class Curve:
    """The style of a curve."""

    colour: str
    dashes: tuple[int, tuple[float, ...]] | str
    marker: str

    def options(self) -> dict[str, Any]:
        """Return keyword arguments for `Axes.plot`."""
        return {"color": self.colour, "linestyle": self.dashes}

    def marked(self, points: int, *, marks: int = 8, start: int = 0) -> dict[str, Any]:
        """Return keyword arguments for a curve with markers at about `marks` of its points."""
        step = max(1, -(-points // marks))
        every = (min(start, max(points - 1, 0)) % step, step)
        return self.options() | {"marker": self.marker, "markevery": every}

    def dots(self) -> dict[str, Any]:
        """Return keyword arguments for markers without a line."""
        return {"color": self.colour, "linestyle": "none", "marker": self.marker}


CURVES = (
    Curve("#0072b2", "solid", "o"),
    Curve("#e69f00", (0, (5, 2)), "s"),
    Curve("#000000", (0, (1, 1.5)), "^"),
    Curve("#d55e00", (0, (6, 2, 1, 2)), "D"),
    Curve("#56b4e9", (0, (3, 1, 1, 1, 1, 1)), "v"),
    Curve("#009e73", (0, (8, 2)), "P"),
    Curve("#4d4d4d", (0, (3, 2)), "X"),
    Curve("#cc79a7", (0, (10, 2, 2, 2)), "*"),
    Curve("#7f3c8d", (0, (2, 2)), "<"),
)
"""The styles in order of use: the palette of Okabe and Ito and a violet, ordered so that successive
colours differ in lightness."""

BEHIND: dict[str, Any] = {"color": "0.75", "linestyle": "solid", "linewidth": 4.0}
"""A wide grey line, for a curve that coincides with others."""


@contextmanager
def sheet(
    width: float = WIDTH, height: float = HEIGHT, ax: Axes | None = None
) -> Iterator[tuple[Figure, Axes]]:
    """Return a new figure with one pair of axes, or those of `ax`, in the common style."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_PARAMETERS):
        if ax is not None:
            yield cast("Figure", ax.get_figure(root=True)), ax
            return
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, figure.add_subplot()


@contextmanager
def panels(
    rows: int = 1,
    columns: int = 1,
    *,
    width: float = PAGE,
    height: float = 2.6,
    share_y: bool = False,
    mosaic: str = "",
) -> Iterator[tuple[Figure, list[Axes]]]:
    """Return a new figure of a paper's width with a grid of axes, in the common style.

    A mosaic such as "aabb;cdef", with a letter for each panel, replaces rows and columns.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_PRINTED):
        figure = Figure(figsize=(width, height), layout="constrained")
        if mosaic:
            grid = list(figure.subplot_mosaic(mosaic).values())
        else:
            grid = list(figure.subplots(rows, columns, squeeze=False, sharey=share_y).flat)
        for axes in grid:
            axes.tick_params(which="both", labelsize=_SMALL - 0.5, width=0.6)
        yield figure, grid


def narrow(figure: Figure) -> None:
    """Rearrange a drawn figure for the width of a column.

    Panels are stacked; those with equal aspect are placed in pairs. Font sizes are kept, and
    titles, labels and legends are wrapped again.
    """
    from matplotlib import rc_context
    from matplotlib.gridspec import GridSpec

    grid = [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]
    grid.sort(key=lambda axes: axes.get_title("left")[:3])
    rows: list[list[Axes]] = []
    for axes in grid:
        if not (_tile(axes) and rows and _tile(rows[-1][0]) and len(rows[-1]) < _TILES):
            rows.append([])
        rows[-1].append(axes)
    heights = [_TILE if _tile(row[0]) else _PANEL for row in rows]
    heights = heights if len(grid) > 1 else [figure.get_figheight() - 1]
    spec = GridSpec(len(rows), _TILES, figure, height_ratios=heights)
    for place, row in enumerate(rows):
        for index, axes in enumerate(row):
            axes.set_subplotspec(spec[place, index if _tile(axes) else slice(None)])
            _relabel(axes, grid[0], first=index == 0)
    keys = 0
    with rc_context(_PRINTED):
        for legend in list(figure.legends):
            names = [text.get_text() for text in legend.get_texts()]
            found: dict[str, Any] = dict(zip(names, legend.legend_handles, strict=True))
            for axes in grid:  # legend_handles lack the markers of error bars
                own = zip(*axes.get_legend_handles_labels(), strict=True)
                found |= {powers(name): handle for handle, name in own if powers(name) in found}
            legend.remove()
            columns = 1 if max(map(len, names)) > _LETTERS_BESIDE else 2
            figure.legend([*found.values()], names, loc="outside lower center", ncols=columns)
            keys += -(-len(names) // columns)
    text = " ".join(figure.get_suptitle().replace("\u00a0", " ").split())
    figure.set_size_inches(COLUMN, 1)
    said = str(figure.get_label())
    finding(figure, said, text.removeprefix(said).strip())
    lines = figure.get_suptitle().count("\n") + 1
    figure.set_size_inches(COLUMN, sum(heights) + 0.15 * (lines + keys) + 0.3)


def _tile(axes: Axes) -> bool:
    """Whether a panel has equal aspect."""
    return axes.get_aspect() != "auto"


def _relabel(axes: Axes, top: Axes, *, first: bool) -> None:
    """Wrap the title and label of a stacked panel, and restore a label that it shared."""
    title = [textwrap.fill(line, _LETTERS_ABOVE) for line in axes.get_title("left").split("\n")]
    axes.set_title("\n".join(title), loc="left", fontsize=axes.title.get_fontsize())
    for text in axes.texts:  # rotated text labels a whole row
        text.set_visible(first or text.get_rotation() == 0)
    for cells in axes.tables:
        cells.set_fontsize(_TINY)
    if axes.axison and first:
        shared = axes.get_shared_y_axes().joined(axes, top)
        axes.tick_params(labelleft=bool(axes.get_yticks().size))
        label = axes.get_ylabel() or (top.get_ylabel() if shared else "")
        axes.set_ylabel(textwrap.fill(label.replace(" = ", _TIED), _LETTERS_BESIDE))


def schematic(axes: Axes) -> None:
    """Give a geometric drawing equal aspect and remove its frame."""
    axes.set_aspect("equal")
    axes.grid(visible=False)
    axes.set_axis_off()


def curves(
    axes: Axes,
    table: Table,
    x: str,
    y: str,
    *,
    marks: int = 6,
    looks: Mapping[str, Curve] | None = None,
    **where: Value,
) -> None:
    """Draw the curves of a table, in the order of the table."""
    for place, name in enumerate(table.distinct("curve", **where)):
        look = CURVES[place] if looks is None else looks[str(name)]
        xs, ys = table.points(x, y, curve=name, **where)
        axes.plot(xs, ys, label=str(name), **look.marked(len(xs), marks=marks))


def fall(
    axes: Axes, table: Table, x: str, y: str, *, looks: Mapping[str, Curve], **where: Value
) -> None:
    """Continue each curve down to the axis, with an arrow, where its next value is 0."""
    bottom = axes.get_ylim()[0]
    for name in table.distinct("curve", **where):
        xs, ys = table.points(x, y, curve=name, **where)
        grid = table.numbers(x, curve=name, **where)
        for place, step in ((0, -1), (-1, 1)):
            if xs[place] != grid[place] and ys[place] > bottom:
                at, line = grid[grid.index(xs[place]) + step], looks[str(name)].options()
                axes.plot([xs[place], at], [ys[place], bottom], **line)
                axes.plot([at], [bottom], "v", color=line["color"], clip_on=False, zorder=5)
                axes.annotate(
                    "0", (at, bottom), xytext=(3 * step, 2),
                    textcoords="offset points", ha="left" if step > 0 else "right",
                )  # fmt: skip


_TIED = "\u00a0=\u00a0"
"""An equals sign with no-break spaces."""


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def powers(text: str) -> str:
    """Write the numbers in a text with powers of ten.

    >>> powers("δ = 5e-07 at 1e-05, 2e+10 times")
    'δ = 5·10⁻⁷ at 10⁻⁵, 2·10¹⁰ times'
    """

    def raised(number: re.Match[str]) -> str:
        front, exponent = number.groups()
        power = f"10{str(int(exponent)).translate(_RAISED)}"
        return power if front == "1" else f"{front}·{power}"

    return re.sub(r"(?<![\w.])([0-9.]+)e([-+]?[0-9]+)\b", raised, text)


def finding(figure: Figure, text: str, note: str = "") -> None:
    """Set the title of a figure, the main finding, with a note on the data.

    The text is also stored as the figure's label, for the gallery.
    """
    text, note = powers(text), powers(note)
    figure.set_label(text)
    width = round(_LETTERS_PER_INCH * figure.get_figwidth())
    lines = [
        line for part in (text, note) for line in textwrap.wrap(part.replace(" = ", _TIED), width)
    ]
    figure.suptitle("\n".join(lines), fontsize=8.5, fontweight="bold", x=0.01, ha="left")


def key(figure: Figure, axes: Sequence[Axes], columns: int = 4) -> None:
    """Place one legend for all curves below the panels."""
    found: dict[str, Any] = {}
    for one in axes:
        for handle, name in zip(*one.get_legend_handles_labels(), strict=True):
            found.setdefault(powers(name), handle)
    figure.legend(list(found.values()), list(found), loc="outside lower center", ncols=columns)


def decades(axes: Axes) -> None:
    """Label a vertical axis that shows log₁₀ with powers of ten."""
    from matplotlib.ticker import MultipleLocator

    axes.yaxis.set_major_locator(MultipleLocator(2))
    axes.yaxis.set_major_formatter(lambda exponent, _: f"$10^{{{exponent:g}}}$")


def tag(axes: Axes, at: tuple[float, float], text: str, *, shift: tuple[float, float]) -> None:
    """Write text next to a point."""
    axes.annotate(text, at, textcoords="offset points", xytext=shift, annotation_clip=False)


def letter(axes: Sequence[Axes], titles: Iterable[str]) -> None:
    """Set the title of each panel, with (a), (b), … in front."""
    for place, (one, title) in enumerate(zip(axes, titles, strict=True)):
        one.set_title(f"({chr(ord('a') + place)}) {title}", loc="left")


def watermark(figure: Figure, text: str) -> None:
    """Write a watermark across a figure."""
    figure.text(
        0.5, 0.5, text, ha="center", va="center", rotation=20, fontsize=22, color="0.5", alpha=0.3
    )


@contextmanager
def drawn() -> Iterator[None]:
    """Apply the common style while a figure is written."""
    from matplotlib import rc_context

    with rc_context(_PARAMETERS):
        yield


def save(figure: Figure, path: Path) -> None:
    """Write a figure in the format given by the suffix, without a date."""
    from dpassay.accountant.errors import InvalidInputError

    dates = {".png": {"Software": None}, ".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
    suffix = path.suffix.lower()
    if suffix not in dates:
        raise InvalidInputError(
            f"Expected the figure {path} to end in {', '.join(dates)}. Change its name."
        )
    with drawn():
        figure.savefig(path, dpi=_DOTS_PER_INCH, metadata=dates[suffix])

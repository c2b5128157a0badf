"""A comparison on a terminal: within its width, in colour, what is not private struck out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from dpassay.verifier.compare import output
from dpassay.verifier.compare.comparison import Comparison
from dpassay.verifier.report import STYLES
from dpassay.verifier.tables import console

_SIMULATED = "simulated rmse"


def show(
    found: Comparison,
    facts: Sequence[tuple[str, str]],
    table: Sequence[Sequence[str]],
    notes: Sequence[str],
    stream: TextIO,
) -> None:
    """Print the decision, what it is about, the table and the notes.

    Parameters
    ----------
    facts
        Names and texts.
    table
        The head and a line for each row of `output.collapsed`; the simulations are left out where
        the terminal is too narrow for them.
    """
    from rich.table import Table
    from rich.text import Text

    screen = console(stream)
    screen.soft_wrap = False
    screen.print(Text(output.headline(found), style="bold"))
    screen.print()
    for name, text in facts:  # code in one piece: what is copied has no line ends of ours
        screen.print(Text.assemble((f"{name:8}  ", "dim"), text), soft_wrap=True)
    screen.print()
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    shown = [
        name != _SIMULATED or sum(widths) + 2 * len(widths) <= screen.width for name in table[0]
    ]
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for index, name in enumerate(table[0]):
        if shown[index]:
            number = index >= output.NUMBERS_FROM
            grid.add_column(name, justify="right" if number else "left", no_wrap=index > 0)
    for line, (row, _) in zip(table[1:], output.collapsed(found), strict=True):
        cells = [Text(cell) for cell in line]
        if not row.is_private:
            for cell in cells:
                cell.stylize("dim strike")
        cells[1] = Text(line[1], style=STYLES[row.verdict])
        grid.add_row(*(cell for cell, wanted in zip(cells, shown, strict=True) if wanted))
    screen.print(grid)
    screen.print()
    for note in notes:
        head, colon, rest = note.partition(": ")
        screen.print(Text(f"{head}{colon}", style="dim") + Text(rest))

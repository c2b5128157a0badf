"""Figure 1: a k-ary tree and the vertices that make up a prefix sum."""

from __future__ import annotations

from dpassay.figures import style
from dpassay.figures.count_on_your_elders import pictures
from dpassay.figures.description import Description, Settings
from dpassay.figures.table import Table

DESCRIPTION = Description(
    number="Figure 1",
    title="A prefix sum in a k-ary tree",
    plotted="A ternary tree of height 3 and the vertices that Algorithm 1 adds for the prefix of "
    "23 inputs, 23 = 2·9 + 1·3 + 2.",
    says="The k-ary digits of the time step say how many vertices are added on each level.",
    quote="expressing a time step … as a …-ary number … gives a direct means of computing which "
    "vertices contribute to a given prefix sum",
    where="Section 1.2",
    alt="A tree with 27 leaves. Marked are two vertices of level 2, one of level 1 and two leaves: "
    "together they lie above the inputs 1 to 23.",
    claims=("proposition-4-1", "figures-1-and-2"),
    assumptions=("The drawing is not in the text at hand: arity 3, height 3, time step 23.",),
)
_ARITY, _HEIGHT, _STEP = 3, 3, 23
_PANEL = "without subtraction"


def compute(settings: Settings) -> Table:
    """Tabulate the vertices."""
    del settings
    tree = pictures.tree(_ARITY, _ARITY**_HEIGHT - 1, signed=False)
    rows = pictures.rows(_PANEL, tree, _HEIGHT, _STEP)
    return Table.of(pictures.COLUMNS, rows, arity=_ARITY, height=_HEIGHT, step=_STEP)


def draw(table: Table) -> style.Figure:
    """Draw the tree."""
    with style.panels(height=2.4) as (figure, (axes,)):
        pictures.draw(axes, table, _PANEL, _STEP)
        used = sum(sign != 0 for sign in table.numbers("sign"))
        style.finding(
            figure,
            f"The sum of {_STEP} inputs takes {used} noisy vertices of the tree, at most "
            f"k − 1 = {_ARITY - 1} on a level",
        )
        return figure

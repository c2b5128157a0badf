"""Figure 2: fewer vertices by subtraction."""

from __future__ import annotations

from dpassay.figures import style
from dpassay.figures.count_on_your_elders import pictures
from dpassay.figures.description import Description, Settings
from dpassay.figures.table import Table

DESCRIPTION = Description(
    number="Figure 2",
    title="The same prefix sum with and without subtraction",
    plotted="The vertices that make up the prefix of 9 inputs in a tree of arity 5 and height 2: "
    "9 = 1·5 + 4 without subtraction, 9 = 2·5 − 1 with it.",
    says="Instead of k − 1 leftmost children one may add the parent and subtract the rightmost "
    "child: at most (k − 1)/2 vertices per level instead of k − 1.",
    quote="if you need to add … left-children for an estimate, you might as well add the parent "
    "and subtract the … right-most children",
    where="Section 3.3",
    alt="Two trees with 25 leaves. On the left one vertex of level 1 and four leaves are added, on "
    "the right two vertices of level 1 are added and one leaf is subtracted.",
    claims=("section-3-3/half-vertices", "proposition-4-1", "figures-1-and-2"),
    assumptions=("The drawing is not in the text at hand: arity 5, height 2, time step 9.",),
)
_ARITY, _HEIGHT, _STEP = 5, 2, 9
_PANELS = {"without subtraction": False, "with subtraction": True}


def compute(settings: Settings) -> Table:
    """Tabulate the vertices of both trees."""
    del settings
    steps = (_ARITY**_HEIGHT - 1) // 2
    rows = [
        row
        for panel, signed in _PANELS.items()
        for row in pictures.rows(panel, pictures.tree(_ARITY, steps, signed=signed), _HEIGHT, _STEP)
    ]
    return Table.of(pictures.COLUMNS, rows, arity=_ARITY, height=_HEIGHT, step=_STEP)


def draw(table: Table) -> style.Figure:
    """Draw both trees."""
    with style.panels(1, 2, height=2.4, share_y=True) as (figure, grid):
        for axes, panel in zip(grid, _PANELS, strict=True):
            pictures.draw(axes, table, panel, _STEP)
        style.letter(grid, list(_PANELS))
        plain, signed = (
            sum(sign != 0 for sign in table.numbers("sign", panel=panel)) for panel in _PANELS
        )
        style.finding(
            figure,
            f"Subtraction: {signed} noisy vertices instead of {plain} for the same {_STEP} inputs",
        )
        return figure

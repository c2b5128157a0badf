"""Trees and the vertices that make up a prefix sum: tables and drawings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dpassay.accountant.counting.tree import Digits, Tree
from dpassay.figures import style
from dpassay.figures.table import Column, Table, label, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS: tuple[Column, ...] = (
    label("panel"), number("level", "levels above the leaves"), number("first", "inputs"),
    number("last", "inputs"), number("parent_middle", "inputs"), number("sign", "1"),
)  # fmt: skip


def rows(panel: str, tree: Tree, height: int, step: int) -> Iterator[tuple[object, ...]]:
    """Yield every vertex with the inputs below it and the sign with which a prefix has it.

    The sign is 1 if the vertex is added, −1 if it is subtracted, 0 if it is not used.
    """
    signs = {
        (min(before, after), max(before, after)): 1 if after > before else -1
        for at, before, after in tree.moves()
        if at == step
    }
    k = tree.arity
    for level in range(height + 1):
        size = k**level
        for index in range(k ** (height - level)):
            first, last = index * size, (index + 1) * size
            above = None if level == height else (index // k + 0.5) * size * k
            yield panel, level, first, last, above, signs.get((first, last), 0)


def tree(arity: int, steps: int, *, signed: bool) -> Tree:
    """Return the tree with or without subtraction."""
    return Tree(arity, steps, Digits.SIGNED if signed else Digits.PLAIN)


def draw(axes: Axes, table: Table, panel: str, step: int) -> None:
    """Draw a tree with the used vertices marked, and the prefix below the leaves."""
    names = ("level", "first", "last", "sign")
    cells = zip(*(table.numbers(name, panel=panel) for name in names), strict=True)
    top = max(table.numbers("level", panel=panel))
    marks = {
        1.0: ("o", style.CURVES[0].colour, 6.5, "added"),
        -1.0: ("X", style.CURVES[3].colour, 7.5, "subtracted"),
        0.0: ("o", "0.8", 3.0, None),
    }
    named: set[str | None] = {None}
    above = table.column("parent_middle", panel=panel)
    for (level, first, last, sign), parent in zip(cells, above, strict=True):
        middle = (first + last) / 2
        if isinstance(parent, float):
            axes.plot([middle, parent], [level, level + 1], color="0.8", linewidth=0.6, zorder=1)
        marker, colour, size, name = marks[sign]
        text = None if name in named else name
        named.add(name)
        look: dict[str, Any] = {"color": colour, "markersize": size, "markeredgewidth": 0}
        axes.plot([middle], [level], marker, label=text, zorder=3, linestyle="none", **look)
        if sign:
            shade: dict[str, Any] = {"color": colour, "alpha": 0.25, "linewidth": 0}
            axes.fill_between([first + 0.1, last - 0.1], level - 0.3, level - 0.16, **shade)
    axes.plot([0, step], [-0.7, -0.7], color="black", linewidth=2, solid_capstyle="butt")
    axes.text(step / 2, -1.15, f"prefix of {step} inputs", ha="center", va="center")
    axes.set(
        ylim=(-1.5, top + 0.3),
        yticks=range(int(top) + 1),
        xlabel="inputs (time steps)",
        ylabel="level",
    )
    axes.grid(visible=False)
    axes.legend(loc="upper left", title="vertices")

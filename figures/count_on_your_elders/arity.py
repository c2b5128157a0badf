"""Mean squared error against the arity of the tree."""

from __future__ import annotations

import math

from dpassay.figures import style
from dpassay.figures.count_on_your_elders import errors
from dpassay.figures.description import Description, Settings
from dpassay.figures.table import Table, label, number

DESCRIPTION = Description(
    number="Corollary 4.9, Section 3.2 and Appendix C",
    title="Error against the arity k",
    plotted="Left: the leading constants (k−1)/lg(k)³ without subtraction, k(1−1/k²)/(2 lg(k)³) "
    "for odd and k/(2 lg(k)³) for even k with it. Right: the exact mean squared error with "
    "subtraction for three lengths of the stream, relative to the best arity.",
    says="The constants are least at k = 17, k = 19 (0.1236) and k = 20; even k performs worse.",
    quote="Algorithm 2 achieves a mean squared error that scales as …, and which is minimized "
    "for … yielding …",
    where="Corollary 4.9",
    alt="Left: three flat valleys, without subtraction with its minimum at 17, with subtraction "
    "half as high with minima at 19 and 20, marked. Right: the exact errors jump between 1 and "
    "several times the best; the best odd k and the best k of all are marked in the title.",
    claims=(
        "section-3-2/k-17", "corollary-4-9/k-19", "corollary-c-3/k-20",
        "corollary-4-9/k-19/finite", "claim-1/worse/finite", "claim-1/worse/million",
        "appendix-c/scaling-worse",
    ),
    differs="The paper has no such plot. The exact error at a given n is least at other arities, "
    "and often at an even one.",
)  # fmt: skip
_LARGEST = 48
"""Largest arity that is drawn: the best one is far below."""
_STEPS = (1000, 10_000, 1_000_000)


def compute(settings: Settings) -> Table:
    """Tabulate the constants and the exact errors."""
    del settings
    arities = range(2, _LARGEST + 1)
    rows: list[tuple[object, ...]] = []
    for k in arities:
        cube = math.log2(k) ** 3
        rows.append(("constant", "without subtraction", k, (k - 1) / cube))
        if k % 2:
            rows.append(("constant", "odd k, subtraction", k, k * (1 - 1 / k**2) / (2 * cube)))
        else:
            rows.append(("constant", "even k, subtraction", k, k / (2 * cube)))
    for n in _STEPS:
        found = {k: errors.tree_error(k, n, signed=True) for k in arities}
        least = min(found.values())
        rows += [("exact", f"n = {n}", k, error / least) for k, error in found.items()]
    columns = (label("panel"), label("curve"), number("k", "children"), number("error", "1"))
    return Table.of(columns, rows, n=list(_STEPS))


def draw(table: Table) -> style.Figure:
    """Draw both panels, with the minima marked."""
    with style.panels(1, 2, height=2.8) as (figure, (left, right)):
        for axes, panel in ((left, "constant"), (right, "exact")):
            for look, curve in zip(
                style.CURVES, table.distinct("curve", panel=panel), strict=False
            ):
                xs, ys = table.points("k", "error", panel=panel, curve=curve)
                axes.plot(xs, ys, label=str(curve), markersize=3, **look.dots())
                lowest = ys.index(min(ys))
                axes.plot([xs[lowest]], [ys[lowest]], look.marker, color=look.colour, markersize=7)
                if panel == "constant":
                    text = f"k = {xs[lowest]:g}: {ys[lowest]:.4f}"
                    offset = (-30, -14 if "odd" in str(curve) else 8)
                    axes.annotate(
                        text, (xs[lowest], ys[lowest]), textcoords="offset points", xytext=offset
                    )
            axes.set_xlabel("k (children per vertex)")
        left.set(ylim=(0.05, 0.5), ylabel="leading constant of MSE·ε²/lg(n)³")
        right.set(ylim=(0.9, 4), ylabel="mean squared error over the least")
        left.legend(loc="upper right")
        right.legend(loc="upper right", title="large mark: best k")
        style.letter((left, right), ("constants", "exact, with subtraction"))
        best = []
        for curve in table.distinct("curve", panel="exact"):
            points = list(zip(*table.points("k", "error", panel="exact", curve=curve), strict=True))
            odd = min((p for p in points if p[0] % 2), key=lambda p: p[1])[0]
            best.append(f"{odd:g} ({min(points, key=lambda p: p[1])[0]:g}) at {curve}")
        style.finding(
            figure,
            "Of odd k, 19 has the least leading constant (Corollary 4.9). The exact error is least "
            f"at other odd k (of all k): {', '.join(best)}",
        )
        return figure

"""Figure 2: the DP parameter against ε."""

from __future__ import annotations

from dpassay.figures import quantities, style
from dpassay.figures.count_queries import laws
from dpassay.figures.description import Description, Settings
from dpassay.figures.table import Table, label, number

DESCRIPTION = Description(
    number="Figure 2",
    title="δ against ε at η = 0.5",
    plotted="(a) As printed: (2D + 1)δ* against ε for several D. (b) The exact δ of the same "
    "mechanisms. (c) At D = 8: the printed number, the exact one, the least true δ of any law on "
    "−8..8 with the same η, and the geometric law with P(Z = 0) = η.",
    says="(2D + 1)δ* is at most 0.001 for D = 8 and ε > 1.1.",
    quote="(2D + 1)δ* is no greater than 0.001 for D = 8 and ε > 1.1",
    where="Section IV",
    alt="Left: curves falling with ε, steeper for larger D, that pass 0.001 near ε = 1.1 for "
    "D = 8. Middle: the exact δ, about half as large there. Right: the exact δ is below the "
    "printed one, the optimum still lower, and the geometric law's δ ends at ε = ln 3 = 1.0986.",
    claims=(
        "figure-2", "figure-2/d-8", "figure-2/d-8/end", "figure-2/within-3",
        "section-1/epsilon-monotone", "section-1/support-monotone", "remark-2/guarantee/corrected",
    ),
    assumptions=("D = 2, 4, 6, 8, 10: the text names D = 8 only.", "ε from 0 to 4."),
    differs="(2D + 1)δ* is a valid bound here, about twice the exact δ; the mechanism that the "
    "paper compares least with, the geometric law, is (ln 3, 0)-DP at the same η.",
)  # fmt: skip
SUPPORTS = (2, 4, 6, 8, 10)
_ETA, _SHOWN_SUPPORT = "1/2", 8


def compute(settings: Settings) -> Table:
    """Tabulate the printed and the exact numbers, the optimum and the geometric law."""
    grid = [f"{eps:.4f}" for eps in quantities.spaced(0, 4, settings.pick(17, 81))]
    rows: list[tuple[object, ...]] = []
    for support in SUPPORTS:
        for eps in grid:
            printed = laws.claimed(eps, _ETA, support)
            exact = laws.delta(laws.bounded(eps, _ETA, support), eps)
            rows.append(("printed", f"D = {support}", eps, printed))
            rows.append(("exact", f"D = {support}", eps, exact))
            if support == _SHOWN_SUPPORT:
                best = laws.optimum(eps, _ETA, support)[0]
                other = laws.delta(laws.geometric(0.5), eps)
                rows.append(("compared", "printed, (2D + 1)δ*", eps, printed))
                rows.append(("compared", "exact δ", eps, exact))
                rows.append(("compared", "least true δ", eps, best))
                rows.append(("compared", "geometric", eps, laws.shown(other)))
    columns = (
        label("panel"), label("curve"), number("epsilon", "nats"),
        number("delta", "probability", relative=1e-8),
    )  # fmt: skip
    rows.sort(key=lambda row: ("printed", "exact", "compared").index(str(row[0])))
    return Table.of(columns, rows, eta=_ETA, supports=list(SUPPORTS))


def draw(table: Table) -> style.Figure:
    """Draw the three panels."""
    panels = ("printed", "exact", "compared")
    with style.panels(1, 3, height=3.3, share_y=True) as (figure, grid):
        for axes, panel in zip(grid, panels, strict=True):
            looks = laws.LOOKS if panel == "compared" else None
            style.curves(axes, table, "epsilon", "delta", looks=looks, panel=panel)
            axes.set_xlabel("ε (nats)")
        grid[0].set(yscale="log", ylim=(1e-13, 1), ylabel="δ")
        style.fall(grid[2], table, "epsilon", "delta", looks=laws.LOOKS, panel="compared")
        style.letter(grid, ("printed: (2D + 1)δ*, up to 1", "exact δ", "D = 8"))
        grid[0].legend(loc="lower left")
        style.key(figure, grid[2:])
        known = table.numbers("epsilon", panel="compared", curve="exact δ")
        near = min(known, key=lambda epsilon: abs(epsilon - 1.1))
        printed, exact = (
            table.value("delta", panel="compared", epsilon=near, curve=curve)
            for curve in ("printed, (2D + 1)δ*", "exact δ")
        )
        style.finding(
            figure,
            f"Printed (Section IV): (2D + 1)δ* is no greater than 0.001 for D = 8 and ε > 1.1. At "
            f"ε = {near:g} it is {printed:.2g}, the exact δ {exact:.2g}; from ln 3 = 1.0986 on the "
            "geometric law with the same η has δ = 0",
        )
        return figure

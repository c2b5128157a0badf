"""Figure 3: the DP parameter against the probability of a correct count."""

from __future__ import annotations

from dpassay.figures import quantities, style
from dpassay.figures.count_queries import laws
from dpassay.figures.count_queries.fig02 import SUPPORTS
from dpassay.figures.description import Description, Settings
from dpassay.figures.table import Table, label, number

DESCRIPTION = Description(
    number="Figure 3",
    title="δ against η at ε = 1.1 and ε = 2.2",
    plotted="Above, as printed: (2D + 1)δ* against η for several D. Below, at D = 8: the printed "
    "number, the exact δ, the least true δ of any law on −8..8 with the same η, and the "
    "geometric law with P(Z = 0) = η.",
    says="Above a threshold of η the parameter grows fast to one; for D = 8 the mechanism is "
    "(1.1, 10⁻³)-DP at η = 0.5 and (2.2, 5·10⁻⁷)-DP at η = 0.8.",
    quote="assuming D = 8, our mechanism provides (1.1, 10⁻³)-DP and (2.2, 5×10⁻⁷)-DP guarantee "
    "while presenting η = 0.5 and η = 0.8, respectively",
    where="Section IV",
    alt="Above: curves that fall slowly in η to a knee near 0.5 and 0.8 and then rise steeply to "
    "2D + 1. Below: the exact δ is about half the printed number around the knee, but far above it "
    "for small η: 0.27 against 0.0017 at η = 0.02, ε = 1.1; the optimum is lower everywhere.",
    claims=(
        "figure-3/threshold", "figure-3/left", "figure-3/right", "figure-3/knees",
        "figure-3/small-eta", "section-1/eta-threshold", "section-1/support-9-13",
        "remark-2/guarantee", "remark-2/below-threshold",
    ),
    assumptions=("D = 2, 4, 6, 8, 10: the text names D = 8 only.", "η from 0.01 to 0.99."),
    differs="For small η the printed number is no DP parameter of the mechanism: a constraint is "
    "missing from the paper's program. Without the minimum with 1 it grows to 2D + 1.",
)  # fmt: skip
_EPSILONS = ("1.1", "2.2")
_SHOWN_SUPPORT = 8
"""Support of the laws that are drawn."""


def compute(settings: Settings) -> Table:
    """Tabulate the printed and the exact numbers, the optimum and the geometric law."""
    grid = [f"{eta:.4f}" for eta in quantities.spaced(0.01, 0.99, settings.pick(15, 99))]
    rows: list[tuple[object, ...]] = []
    for eps in _EPSILONS:
        for support in SUPPORTS:
            rows += [
                (f"printed {eps}", f"D = {support}", eta, laws.claimed(eps, eta, support))
                for eta in grid
            ]
    for eps in _EPSILONS:
        panel = f"compared {eps}"
        for eta in grid:
            noise = laws.bounded(eps, eta, _SHOWN_SUPPORT)
            best = laws.optimum(eps, eta, _SHOWN_SUPPORT)[0]
            other = laws.delta(laws.geometric(float(eta)), eps)
            printed = laws.claimed(eps, eta, _SHOWN_SUPPORT)
            rows.append((panel, "printed, (2D + 1)δ*", eta, printed))
            rows.append((panel, "exact δ", eta, laws.delta(noise, eps)))
            rows.append((panel, "least true δ", eta, laws.shown(best)))
            rows.append((panel, "geometric", eta, laws.shown(other)))
    columns = (
        label("panel"), label("curve"), number("eta", "probability"),
        number("delta", "probability", relative=1e-8),
    )  # fmt: skip
    return Table.of(columns, rows, epsilons=list(_EPSILONS), supports=list(SUPPORTS))


def draw(table: Table) -> style.Figure:
    """Draw the four panels."""
    with style.panels(2, 2, height=4.9) as (figure, grid):
        for axes, panel in zip(grid, table.distinct("panel"), strict=True):
            looks = laws.LOOKS if str(panel).startswith("compared") else None
            style.curves(axes, table, "eta", "delta", looks=looks, panel=panel)
            axes.set(
                yscale="log",
                ylim=(1e-9 if "2.2" in str(panel) else 1e-5, 1),
                xlabel="η, probability of a correct count",
                ylabel="δ" if looks else "(2D + 1)δ*, up to 1",
            )
            if looks:
                style.fall(axes, table, "eta", "delta", looks=looks, panel=panel)
        grid[0].legend(loc="lower right")
        style.key(figure, grid[2:3])
        least = min(table.numbers("eta"))
        printed, exact = table.values(
            "delta", "curve", ("printed, (2D + 1)δ*", "exact δ"), panel="compared 1.1", eta=least
        )
        style.finding(
            figure,
            f"For small η (2D + 1)δ* is no guarantee: at ε = 1.1, η = {least:g}, "
            f"D = {_SHOWN_SUPPORT} it is {printed:.1g}, the exact δ is {exact:.2g}",
        )
        titles = ("printed, ε = 1.1", "printed, ε = 2.2", "D = 8, ε = 1.1", "D = 8, ε = 2.2")
        style.letter(grid, titles)
        return figure

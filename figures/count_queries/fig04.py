"""Figure 4: the mechanism and the discrete Gaussian with the same variance."""

from __future__ import annotations

import math

from dpassay.figures import quantities, style
from dpassay.figures.count_queries import laws
from dpassay.figures.description import Description, Settings
from dpassay.figures.table import Table, label, number

DESCRIPTION = Description(
    number="Figure 4",
    title="Against the discrete Gaussian of the same variance: η = 0.5, D = 6",
    plotted="(a) As printed: (2D + 1)δ* and equation (45) with the mechanism's variance as the "
    "parameter σ². (b) The exact δ of the mechanism, of the discrete Gaussian of truly identical "
    "variance, the least true δ of any law on −6..6 with the same η, and the geometric law with "
    "P(Z = 0) = η; the variances depend on ε.",
    says="For a wide range of ε the mechanism is superior; both perform poorly for ε < 1.1.",
    quote="the (ε, δ)-DP performance of our proposed scheme is superior to that of the discrete "
    "Gaussian mechanism with the same variance for a wide range of privacy parameters (both "
    "mechanisms perform rather poorly for ε < 1.1, resulting in quite high δ)",
    where="Section IV",
    alt="Left: the two curves cross near ε = 1.06; beyond, the mechanism falls fast and the "
    "discrete Gaussian slowly. Right: the exact curves cross near 0.29 and 0.81, the mechanism is "
    "lower from there on; the geometric law ends at ε = 1.0986.",
    claims=(
        "figure-4", "figure-4/superiority", "figure-4/superiority/exact",
        "figure-4/superiority/reversed", "figure-4/same-variance", "figure-4/same-utility/wording",
        "equation-45", "figure-4/poor-below-1.1/wording", "abstract/superiority/wording",
    ),
    assumptions=("ε from 0 to 4.",),
    differs="Equal variance is not equal utility: P(Z = 0) of the discrete Gaussian is not 0.5.",
)  # fmt: skip
_ETA, _SUPPORT = "1/2", 6


def compute(settings: Settings) -> Table:
    """Tabulate the printed and the exact curves."""
    rows: list[tuple[object, ...]] = []
    for point in quantities.spaced(0, 4, settings.pick(17, 81)):
        eps = f"{point:.4f}"
        noise = laws.bounded(eps, _ETA, _SUPPORT)
        spread = laws.variance(noise)
        printed = laws.claimed(eps, _ETA, _SUPPORT)
        rows.append(("printed", "mechanism, (2D + 1)δ*", eps, printed))
        rows.append(("printed", "discrete Gaussian, eq. (45)", eps, equation_45(point, spread)))
        rows.append(("exact", "mechanism", eps, laws.delta(noise, eps)))
        same = laws.delta(laws.same_variance(spread), eps)
        rows.append(("exact", "discrete Gaussian, same variance", eps, same))
        best = laws.optimum(eps, _ETA, _SUPPORT)[0]
        rows.append(("exact", "least true δ", eps, best))
        other = laws.delta(laws.geometric(0.5), eps)
        rows.append(("exact", "geometric, same P(Z = 0)", eps, laws.shown(other)))
    columns = (
        label("panel"), label("curve"), number("epsilon", "nats"),
        number("delta", "probability", relative=1e-8),
    )  # fmt: skip
    return Table.of(columns, rows, eta=_ETA, support=_SUPPORT)


def equation_45(epsilon: float, square: float) -> float:
    """Return P(Z > εσ² − ½) − e^ε P(Z > εσ² + ½) for the discrete Gaussian of parameter σ²."""
    ends = 40 + 20 * math.ceil(math.sqrt(square))
    weights = {z: math.exp(-z * z / (2 * square)) for z in range(-ends, ends + 1)}
    total = math.fsum(weights.values())
    upper = math.fsum(w for z, w in weights.items() if z > epsilon * square - 0.5)
    lower = math.fsum(w for z, w in weights.items() if z > epsilon * square + 0.5)
    return (upper - math.exp(epsilon) * lower) / total


def _superior_from(table: Table, panel: str) -> float:
    """Return the least ε of the grid from which on the mechanism has the smaller δ."""
    ours, other = (
        table.points("epsilon", "delta", panel=panel, curve=curve)
        for curve in table.distinct("curve", panel=panel)[:2]
    )
    last = max(x for x, a, b in zip(*ours, other[1], strict=True) if a >= b)
    return min(x for x in ours[0] if x > last)


def draw(table: Table) -> style.Figure:
    """Draw both panels."""
    with style.panels(1, 2, height=3.5, share_y=True) as (figure, grid):
        for axes, panel in zip(grid, ("printed", "exact"), strict=True):
            style.curves(axes, table, "epsilon", "delta", looks=laws.LOOKS, panel=panel)
            axes.set_xlabel("ε (nats)")
        grid[0].set(yscale="log", ylim=(1e-10, 1), ylabel="δ")
        style.fall(grid[1], table, "epsilon", "delta", looks=laws.LOOKS, panel="exact")
        style.letter(grid, ("as printed", "exact δ"))
        style.key(figure, grid, 3)
        printed, exact = (_superior_from(table, panel) for panel in ("printed", "exact"))
        shown = table.points("epsilon", "delta", panel="exact", curve="geometric, same P(Z = 0)")[0]
        zero = min(x for x in table.numbers("epsilon", panel="exact") if x > max(shown))
        style.finding(
            figure,
            f"By (2D + 1)δ* and (45) the mechanism has less δ than the discrete Gaussian from "
            f"ε = {printed:g} on, by the exact δ from {exact:g} on; from {zero:g} on the geometric "
            "law with the same η has δ = 0",
        )
        return figure

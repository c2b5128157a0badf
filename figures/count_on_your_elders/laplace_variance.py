"""Variance of Laplace noise calibrated to ℓ2 sensitivity, over that of Gaussian noise."""

from __future__ import annotations

import math

from dpassay.accountant.budget.calibrate import EpsilonDelta, calibrate
from dpassay.figures import quantities, style
from dpassay.figures.description import Description, Settings
from dpassay.figures.table import Table, label, number

DESCRIPTION = Description(
    number="Lemma 5.4 and Corollary 5.5",
    title="Price of Laplace noise for ℓ2 sensitivity",
    plotted="The variance 2λ² of Lemma 5.4's Laplace noise over that of the classic Gaussian "
    "mechanism σ² = 2 ln(1.25/δ)/ε² and over that of the analytic one, against δ.",
    says="The ratio tends to 2 as ε/ln(1/δ) → 0: only a constant factor higher.",
    quote="The variance needed for using Laplace noise instead of Gaussian noise for …-DP is "
    "only a constant factor higher whenever …, and the constant approaches … as … approaches "
    "zero.",
    where="before Corollary 5.5",
    alt="Left: the ratio to the classic mechanism stays below 2.9 and tends to 2 for small δ. "
    "Right: the ratio to the analytic mechanism is between 2 and 4 for ε = 1 and δ below 10⁻⁵, but "
    "12 for ε = 0.001 there, and grows to millions for large δ; for small δ it falls towards 2.",
    claims=(
        "lemma-5-4", "lemma-5-4/loose", "corollary-5-5/variance", "corollary-5-5/limit",
        "corollary-5-5/ratio-2", "corollary-5-5/ratio-2/wording",
        "corollary-5-5/ratio-2/corrected",
        "abstract/gaussian-replaceable", "abstract/gaussian-replaceable/small-epsilon",
    ),
    assumptions=("ε = 1, 0.1, 0.01 and 0.001.",),
    differs="The paper has no such plot. For fixed δ the ratio to the classic mechanism tends to "
    "2 ln(1/δ)/ln(1.25/δ), and to the analytic one it has no bound as ε → 0.",
)  # fmt: skip
_PRACTICAL = 1e-5
"""The δ that the title is about."""
_EPSILONS = ("1", "0.1", "0.01", "0.001")


def compute(settings: Settings) -> Table:
    """Tabulate both ratios against δ."""
    decades = quantities.spaced(0.1, 30, settings.pick(31, 121))
    rows: list[tuple[object, ...]] = []
    for eps in _EPSILONS:
        for decade in decades:
            text = f"{10**-decade:.6e}"
            delta, loss = float(text), math.log(1 / float(text))
            number_of = float(eps)
            laplace = ((math.sqrt(loss + number_of) + math.sqrt(loss)) / number_of) ** 2
            classic = 2 * math.log(1.25 / delta) / number_of**2
            found = calibrate("Gaussian", EpsilonDelta(eps, text)).least
            analytic = float(found.lower) ** 2
            rows.append((f"ε = {eps}", delta, laplace / classic, laplace / analytic))
    columns = (
        label("curve"), number("delta", "probability"), number("over_classic", "1"),
        number("over_analytic", "1"),
    )  # fmt: skip
    return Table.of(columns, rows, epsilons=list(_EPSILONS), l2_sensitivity=1)


def draw(table: Table) -> style.Figure:
    """Draw the two ratios."""
    with style.panels(1, 2, height=3.1) as (figure, grid):
        for axes, name in zip(grid, ("over_classic", "over_analytic"), strict=True):
            style.curves(axes, table, "delta", name)
            axes.axhline(2, color="0.5", linewidth=0.8, zorder=1)
            axes.set(
                xscale="log", xlim=(1e-30, 1), xlabel="δ (probability)", ylabel="variance ratio"
            )
        grid[0].set_ylim(0, 3)
        grid[1].set_yscale("log")
        style.key(figure, grid[:1])
        practical = [d for d in table.numbers("delta", curve="ε = 0.001") if d <= _PRACTICAL]
        ratio = table.value("over_analytic", curve="ε = 0.001", delta=max(practical))
        style.finding(
            figure,
            f"Laplace noise costs up to twice the variance of the classic formula in the limit of "
            f"Corollary 5.5; at ε = 0.001, δ = {max(practical):.0e} it costs {ratio:.1f} times the "
            "variance that Gaussian noise needs",
        )
        style.letter(grid, ("over the classic Gaussian", "over the analytic Gaussian"))
        return figure

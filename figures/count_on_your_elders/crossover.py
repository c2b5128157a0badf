"""The δ below which Laplace noise counts better than Gaussian noise."""

from __future__ import annotations

import math

from dpassay.accountant.mechanisms import Gaussian
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.questions import profile
from dpassay.figures import quantities, style
from dpassay.figures.count_on_your_elders import errors
from dpassay.figures.description import Description, Settings
from dpassay.figures.table import Table, label, number

DESCRIPTION = Description(
    number="Theorem 1.2 and Lemma 5.1",
    title="Where Laplace overtakes Gaussian",
    plotted="The largest δ for which the tree with subtraction (k = 19, and the best k for each n) "
    "has no larger error than the square-root factorisation: measured by the printed bound of "
    "Henzinger, Upadhyay and Upadhyay, and with its exact error under the least Gaussian noise "
    "that is (ε, δ)-DP. Dashed: the orders n^(−0.92) of the paper and n^(−1.83).",
    says="Laplace noise improves on the bound whenever δ = O(n^(−0.92)).",
    quote="improves on the mean squared error bound given in [24], up to lower-order "
    "asymptotically vanishing terms, whenever …",
    where="Theorem 1.2",
    alt="Curves of δ falling with n on logarithmic axes. The two for the printed bound lie near "
    "the line n^(−0.92); those for exactly calibrated noise fall about twice as fast, near the "
    "line n^(−1.83).",
    claims=(
        "theorem-1-2", "theorem-1-2/two-digits", "theorem-1-2/capacity", "theorem-1-2/finite",
        "lemma-5-1", "proof-5-3/0.92", "section-1-1/huu-constant/exponent",
        "abstract/strictly-better",
    ),
    assumptions=("ε = 1 and ε = 0.1 for exactly calibrated noise; the bound does not need one.",),
    differs="The paper has no such plot, and compares with the bound only. The constant of the "
    "bound is nearly twice that of the Gaussian mechanism, and the exponent doubles without it.",
)  # fmt: skip
_ASYMPTOTIC = (0.92, 1.83)
_ARITIES = range(2, 65)


def compute(settings: Settings) -> Table:
    """Tabulate lg₁₀ δ against n."""
    last = settings.pick(10**5, 10**6, 10**7)
    grid = quantities.geometric(10, last, settings.pick(25, 61))
    rows: list[tuple[object, ...]] = []
    for n in sorted({round(n) for n in grid}, reverse=True):
        nineteen = errors.tree_error(19, n, signed=True)
        best = min(errors.tree_error(k, n, signed=True) for k in _ARITIES)
        for name, error in (("k = 19", nineteen), ("best k", best)):
            loss = errors.printed_threshold(n, error)
            rows.append((f"printed bound, {name}", n, -loss / math.log(10)))
        for eps in ("1", "0.1"):
            variance = best / errors.root_factor(n) / float(eps) ** 2
            noise = Gaussian(standard_deviation=exact(math.sqrt(variance)))
            found = profile.log_delta(noise, eps, relative_width=quantities.WIDTH)
            rows.append((f"exact, best k, ε = {eps}", n, float(found.lower) / math.log(10)))
        rows += [(f"n^(−{power})", n, -power * math.log10(n)) for power in _ASYMPTOTIC]
    columns = (label("curve"), number("n", "inputs"), number("lg_delta", "decades"))
    return Table.of(columns, rows, epsilons=["1", "0.1"], arities="2 to 64", largest_n=last)


def draw(table: Table) -> style.Figure:
    """Draw δ against n."""
    with style.panels(height=4.0, width=5.2) as (figure, (axes,)):
        for look, curve in zip(style.CURVES, table.distinct("curve"), strict=False):
            xs, ys = table.points("n", "lg_delta", curve=curve)
            if str(curve).startswith("n^"):
                axes.plot(xs, ys, label=str(curve), color="0.6", linestyle=look.dashes, zorder=1)
            else:
                axes.plot(xs, ys, label=str(curve), **look.marked(len(xs), marks=6))
        axes.set(xscale="log", xlabel="n (inputs)", ylabel="lg₁₀ of the largest δ (decades)")
        style.key(figure, [axes], 3)
        n = max(table.numbers("n"))
        bound, least = table.values(
            "lg_delta", "curve", ("printed bound, k = 19", "exact, best k, ε = 1"), n=n
        )
        style.finding(
            figure,
            f"At n = {n:,.0f} Laplace noise beats the bound of Theorem 1.2 below "
            f"δ = {10**bound:.0e}, and the Gaussian noise that is needed below {10**least:.0e}",
        )
        return figure

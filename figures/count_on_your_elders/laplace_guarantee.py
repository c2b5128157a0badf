"""The guarantee of Laplace noise for ℓ2 sensitivity beside its exact profile."""

from __future__ import annotations

import math

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.mechanisms import Gaussian, LaplaceVector
from dpassay.accountant.questions import profile
from dpassay.figures import quantities, style
from dpassay.figures.description import Description, Settings
from dpassay.figures.table import Table, label, number

DESCRIPTION = Description(
    number="Theorem 1.3 and Lemma 5.4",
    title="Laplace noise for ℓ2 sensitivity 1: claimed and exact",
    plotted="δ against ε for Lap(5.35) noise on d coordinates that each move by 1/√d: the claim "
    "δ = exp(−(ελ − 1/(2λ))²/2) of Theorem 1.3, the exact profile for several d, and those of "
    "Gaussian noise of the same variance and of half of it, the limit of large d.",
    says="The mechanism is (ε, δ)-DP for ε = (Δ₂/λ)(Δ₂/(2λ) + √(2 ln(1/δ))); λ = 5.35 is made for "
    "(1, 10⁻⁶).",
    quote="the resulting … is never worse than what simple composition gives, while also being "
    "competitive with the Gaussian mechanism in the regime where it is advantageous",
    where="after Theorem 1.3",
    alt="On a logarithmic scale the claimed curve is highest and passes 10⁻⁶ at ε = 1. The exact "
    "profiles fall much faster, each to 0 at ε = √d/5.35, and approach that of the Gaussian of "
    "half the variance as d grows.",
    claims=("theorem-1-3", "lemma-5-4", "theorem-1-3/never-worse", "theorem-1-3/largest-loss"),
    assumptions=("λ = 5.35, Lemma 5.4's value for (1, 10⁻⁶) in three digits; equal shifts.",),
    differs="The paper has no such plot.",
)
_SCALE = "5.35"
_DIMENSIONS = (1, 4, 16, 64, 256)
_LEAST = -14.0
"""log₁₀ δ below which nothing is drawn."""


def compute(settings: Settings) -> Table:
    """Tabulate lg δ against ε, where δ is not 0."""
    grid = quantities.spaced(0, 1.8, settings.pick(19, 73))
    scale = float(_SCALE)
    rows: list[tuple[object, ...]] = []
    for eps in grid:
        excess = eps * scale - 1 / (2 * scale)
        claimed = -(max(0.0, excess) ** 2) / 2 / math.log(10)
        rows.append(("claimed", eps, claimed))
    same = Gaussian(standard_deviation=f"sqrt({2 * scale**2:.4f})")
    limit = Gaussian(standard_deviation=_SCALE)
    exact: list[tuple[str, Mechanism]] = [
        ("Gaussian, same variance", same),
        ("Gaussian, half the variance", limit),
    ] + [
        (f"exact, d = {d}", LaplaceVector(scale=_SCALE, shifts=[f"1/{math.isqrt(d)}"] * d))
        for d in _DIMENSIONS
    ]
    for name, mechanism in exact:
        for eps in grid:
            delta = profile.delta(mechanism, f"{eps:.6f}", relative_width=quantities.WIDTH)
            least = float(delta.lower)
            rows.append((name, eps, math.log10(least) if least > 0 else None))
    columns = (label("curve"), number("epsilon", "nats"), number("lg_delta", "decades"))
    return Table.of(columns, rows, scale=_SCALE, l2_sensitivity=1, dimensions=list(_DIMENSIONS))


def draw(table: Table) -> style.Figure:
    """Draw the profiles."""
    exact: list[float] = []
    with style.panels(height=3.8, width=5.2) as (figure, (axes,)):
        for look, curve in zip(style.CURVES, table.distinct("curve"), strict=False):
            xs, ys = table.points("epsilon", "lg_delta", curve=curve)
            axes.plot(xs, ys, label=str(curve), **look.marked(len(xs), marks=6))
            if str(curve).startswith("exact"):
                exact.append(
                    max((y for x, y in zip(xs, ys, strict=True) if x >= 1), default=_LEAST)
                )
        axes.plot([1], [-6], "o", color="black", markersize=5, zorder=4)
        axes.annotate("(1, 10⁻⁶)", (1, -6), textcoords="offset points", xytext=(6, 3))
        axes.set(
            xlabel="ε (nats)", ylabel="lg₁₀ δ (decades)", xlim=(-0.05, 1.6), ylim=(_LEAST, 0.4)
        )
        looks = dict(zip(map(str, table.distinct("curve")), style.CURVES, strict=False))
        style.fall(axes, table, "epsilon", "lg_delta", looks=looks)
        style.key(figure, [axes], 3)
        style.finding(
            figure,
            f"Lap({_SCALE}) noise is (1, 10⁻⁶)-DP by Theorem 1.3; for every d drawn its exact δ is "
            f"{10 ** max(exact):.1e} or less",
        )
        return figure

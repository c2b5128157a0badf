"""Figure 1: the law of Definition 2 beside other integer noise."""

from __future__ import annotations

import math

from dpassay.figures import quantities, style
from dpassay.figures.count_queries import laws
from dpassay.figures.description import Description, Settings
from dpassay.figures.table import Table, label, number

DESCRIPTION = Description(
    number="Figure 1",
    title="Noise for a count: ε = 2.18, η = 0.8, D = 6",
    plotted="(a) As printed: P(Z = z) of Definition 2 and of the discrete Gaussian whose parameter "
    "is the mechanism's variance. (b) The same on a logarithmic scale with the discrete Gaussian "
    "of truly identical variance, the law on −6..6 whose exact δ is least at ε = 2.18, and the "
    "geometric law with the same P(Z = 0). (c) The exact δ(ε) of all of them; marks: the least ε "
    "at which P(Z = 1) ≤ e^ε P(Z = 2) + 0.0049, the comparison of the paper.",
    says="The discrete Gaussian of identical variance has p(1) = 0.11685 and p(2) = 0.000416; it "
    "needs ε = 5.6 at δ = 0.0049 where the mechanism needs 2.18: the more graceful transition from "
    "1 to 2 improves the privacy.",
    quote="in the discrete Gaussian mechanism the smallest ε such that … for δ̃ = 0.0049 is ε = "
    "5.6, while for our mechanism ε = 2.18 is sufficient",
    where="Section III-B",
    alt="Left: two laws that fall from 0.8 and 0.77 at 0 to 0.09 and 0.12 at 1 and nearly 0 at 2. "
    "Middle: on the logarithmic scale the mechanism has 0.0096 at 2, the discrete Gaussians "
    "0.0004 and 0.0007, the geometric law a straight line. Right: the exact profiles; the "
    "geometric law's falls to 0 at ε = 2.197, the mechanism's is far below the Gaussians' there; "
    "marks on the line 0.0049 at ε = 2.18, 5.17 and 5.60.",
    claims=(
        "figure-1/delta-3", "figure-1/p-1", "figure-1/p-2", "figure-1/ratio",
        "figure-1/identical-variance", "figure-1/identical-variance/corrected",
        "figure-1/gaussian-p-1", "figure-1/gaussian-p-1/corrected", "figure-1/gaussian-p-2",
        "figure-1/gaussian-ratio", "figure-1/gaussian-epsilon",
        "figure-1/gaussian-epsilon/corrected", "figure-1/mechanism-epsilon", "figure-1/improves",
        "figure-1/graceful",
    ),
    differs="The printed Gaussian numbers belong to the parameter 0.2660, whose variance is "
    "0.2370, 11 % less than the mechanism's.",
)  # fmt: skip
_EPSILON, _ETA, _SUPPORT = "2.18", "4/5", 6
_TILDE = 0.0049
"""δ̃ as the paper rounds it."""
_BESIDE = 0.12
"""Between the points of two laws, in records."""


def compute(settings: Settings) -> Table:
    """Tabulate the masses and the profiles."""
    noise = laws.bounded(_EPSILON, _ETA, _SUPPORT)
    spread = laws.variance(noise)
    compared = {
        "Definition 2": noise,
        "discrete Gaussian, as printed": laws.parameter(spread),
        "discrete Gaussian, same variance": laws.same_variance(spread),
        f"least δ at ε = {_EPSILON}": laws.optimum(_EPSILON, _ETA, _SUPPORT)[1],
        "geometric, same P(Z = 0)": laws.geometric(0.8),
    }
    rows: list[tuple[object, ...]] = []
    for name, mechanism in compared.items():
        rows += [("law", name, z, mass) for z, mass in enumerate(laws.masses(mechanism, _SUPPORT))]
    for name, mechanism in compared.items():
        for eps in quantities.spaced(0, 6, settings.pick(13, 61)):
            found = laws.delta(mechanism, f"{eps:.6f}")
            rows.append(("profile", name, eps, laws.shown(found)))
    for name in list(compared)[:3]:
        one, two = laws.masses(compared[name], 2)[1:]
        rows.append(("needed", name, math.log((one - _TILDE) / two), _TILDE))
    columns = (
        label("panel"), label("curve"), number("x", "records, or nats"),
        number("y", "probability", relative=1e-8),
    )  # fmt: skip
    variances = {name: laws.variance(mechanism) for name, mechanism in compared.items()}
    rounded = {name: float(f"{value:.8g}") for name, value in variances.items()}
    return Table.of(columns, rows, epsilon=_EPSILON, eta=_ETA, support=_SUPPORT, variances=rounded)


def draw(table: Table) -> style.Figure:
    """Draw the laws and the profiles."""
    names = table.distinct("curve")
    with style.panels(1, 3, height=3.3) as (figure, (plain, log, profile)):
        for axes, shown in ((plain, names[:2]), (log, names)):
            for place, name in enumerate(shown):  # side by side: each law is on the integers
                shift = _BESIDE * (place - (len(shown) - 1) / 2)
                xs, ys = table.points("x", "y", panel="law", curve=name)
                there = [(x + shift, y) for x, y in zip(xs, ys, strict=True) if y > 0]
                axes.plot(*zip(*there, strict=True), label=name, **laws.LOOKS[str(name)].dots())
        style.curves(profile, table, "x", "y", looks=laws.LOOKS, panel="profile")
        log.set(yscale="log", ylim=(1e-8, 2))
        profile.set(yscale="log", ylim=(1e-6, 1))
        style.fall(profile, table, "x", "y", looks=laws.LOOKS, panel="profile")
        for name in table.distinct("curve", panel="needed"):
            xs, ys = table.points("x", "y", panel="needed", curve=name)
            profile.plot(xs, ys, "o", color=laws.LOOKS[str(name)].colour, markeredgecolor="black")
        profile.axhline(_TILDE, color="0.5", linewidth=0.8, zorder=1)
        profile.axvline(float(_EPSILON), color="0.5", linewidth=0.8, zorder=1)
        style.tag(profile, (float(_EPSILON), 0.6), f"ε = {_EPSILON}", shift=(3, 0))
        for axes in (plain, log):
            axes.set(xlabel="noise z (records)", ylabel="P(Z = z)")
        profile.set(xlabel="ε (nats)", ylabel="exact δ(ε)")
        style.letter((plain, log, profile), ("as printed", "with others", "exact δ(ε)"))
        style.key(figure, [log], 3)
        ours, wrong, same = table.values("x", "curve", names[:3], panel="needed")
        style.finding(
            figure,
            f"Printed (Section III-B): for δ̃ = {_TILDE} the discrete Gaussian needs "
            f"ε = {wrong:.1f}, the mechanism ε = {ours:.2f}. The discrete Gaussian of the same "
            f"variance needs {same:.2f}: the mechanism is better all the same",
        )
        return figure

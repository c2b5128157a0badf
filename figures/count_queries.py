"""Figures of Sadeghi, Asoodeh and Calmon, mechanisms for count queries."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.counting.count_noise import CountNoise
from dpassay.accountant.mechanisms import (
    BoundedCountNoise,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
)
from dpassay.accountant.mechanisms.additive.integers import IntegerNoise
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.solve import halved
from dpassay.accountant.questions import profile
from dpassay.figures import quantities, style
from dpassay.figures.description import Plots, Settings
from dpassay.figures.table import Table, columns_of
from dpassay.lp.count_noise import optimal_count_noise
from dpassay.lp.problem import CountNoiseProblem

_MECHANISM, _GAUSSIAN, _PRINTED, _BEST, _GEOMETRIC = style.CURVES[:5]
LOOKS = {
    "Definition 2": _MECHANISM,
    "mechanism": _MECHANISM,
    "exact δ": _MECHANISM,
    "discrete Gaussian, same variance": _GAUSSIAN,
    "discrete Gaussian, as printed": _PRINTED,
    "discrete Gaussian, eq. (45)": _PRINTED,
    "mechanism, (2D + 1)δ*": style.CURVES[5],
    "printed, (2D + 1)δ*": style.CURVES[5],
    "least true δ": _BEST,
    "least δ at ε = 2.18": _BEST,
    "least δ of one at ε = 1.1": _BEST,
    "geometric": _GEOMETRIC,
    "geometric, same P(Z = 0)": _GEOMETRIC,
}
"""The style of each noise in all figures."""
LEAST = 1e-15
"""Smaller values of δ are not plotted."""
_RELATION = Adjacency.ADD_REMOVE
"""Neighbouring counts differ by one."""
_LP_WIDTH = Fraction(1, 10**10)
_PROBABILITY = ("probability", 1e-8)
"""Unit and tolerance."""


def claimed(epsilon: str, eta: str, support: int) -> float:
    """Return the printed (2D + 1)δ*, which can exceed 1."""
    star = quantities.value(lambda: arb(CountNoise.of(exact(epsilon), exact(eta), support).delta))
    return (2 * support + 1) * float(star.lower)


def bounded(epsilon: str, eta: str, support: int) -> BoundedCountNoise:
    """Return the mechanism of Definition 2."""
    return BoundedCountNoise(epsilon=epsilon, eta=eta, support=support)


def delta(mechanism: Mechanism, epsilon: str) -> float:
    """Return the exact δ(ε)."""
    return quantities.middle(
        profile.delta(mechanism, epsilon, adjacency=_RELATION, relative_width=quantities.WIDTH)
    )


def shown(value: float) -> float | None:
    """Return the value, or None if it is too small for the logarithmic axis."""
    return value if value >= LEAST else None


def variance(mechanism: Mechanism) -> float:
    """Return the variance of the noise."""
    return quantities.middle(quantities.variance(mechanism, 0))


def geometric(eta: float) -> DiscreteLaplace:
    """Return the geometric law with P(Z = 0) = η, whose ratio is (1 − η)/(1 + η)."""
    loss = math.log1p(eta) - math.log1p(-eta)
    return DiscreteLaplace(scale=f"{1 / loss:.15g}")


@lru_cache(maxsize=256)
def same_variance(target: float) -> DiscreteGaussian:
    """Return the discrete Gaussian with a given variance (not parameter)."""
    low, high = target / 2, 4 * target + 1
    while variance(DiscreteGaussian(parameter=f"{low:.17g}")) > target:
        low /= 2

    def is_less(parameter: float) -> bool:
        return variance(DiscreteGaussian(parameter=f"{parameter:.17g}")) < target

    return DiscreteGaussian(parameter=f"{halved(is_less, low, high)[0]:.17g}")


def parameter(value: float) -> DiscreteGaussian:
    """Return the discrete Gaussian with a given number as its parameter."""
    return DiscreteGaussian(parameter=f"{value:.17g}")


@lru_cache(maxsize=1024)
def optimum(epsilon: str, eta: str, support: int) -> tuple[float, IntegerNoise]:
    """Return the least δ(ε) of all unbiased laws on −D..D with P(Z = 0) = η, and an optimal law."""
    problem = CountNoiseProblem(eta=eta, support=support, epsilon=epsilon, objective="true-delta")
    found = optimal_count_noise(problem, relative_width=_LP_WIDTH)
    law = found.mechanism()
    assert law is not None  # the problem asks for one law for all counts
    return quantities.middle(found.delta), law


def masses(mechanism: Mechanism, up_to: int) -> list[float]:
    """Return P(Z = z) for z = 0, …, up_to."""
    if isinstance(mechanism, BoundedCountNoise):
        law, middle = mechanism.masses(0)[0], mechanism.support
    elif isinstance(mechanism, IntegerNoise):
        law, middle = mechanism.masses(0)[0], -mechanism.lowest
    elif isinstance(mechanism, DiscreteGaussian):
        square = float(mechanism.parameter.ball())
        weights = [math.exp(-z * z / (2 * square)) for z in range(200)]
        total = weights[0] + 2 * math.fsum(weights[1:])
        return [weight / total for weight in weights[: up_to + 1]]
    else:
        assert isinstance(mechanism, DiscreteLaplace)
        ratio = math.exp(-1 / float(mechanism.scale.ball()))
        return [(1 - ratio) / (1 + ratio) * ratio**z for z in range(up_to + 1)]
    padded = [*law[middle:], *[arb(0)] * (up_to + 1)]
    return [float(mass.mid()) for mass in padded[: up_to + 1]]


_EPSILON, _ETA, _SUPPORT = "2.18", "4/5", 6
_TILDE = 0.0049
"""The paper's rounded δ̃."""
_OFFSET = 0.12
"""Horizontal offset between the points of two laws."""


def _compute_1(settings: Settings) -> Table:
    noise = bounded(_EPSILON, _ETA, _SUPPORT)
    spread = variance(noise)
    compared = {
        "Definition 2": noise,
        "discrete Gaussian, as printed": parameter(spread),
        "discrete Gaussian, same variance": same_variance(spread),
        f"least δ at ε = {_EPSILON}": optimum(_EPSILON, _ETA, _SUPPORT)[1],
        "geometric, same P(Z = 0)": geometric(0.8),
    }
    rows: list[tuple[object, ...]] = []
    for name, mechanism in compared.items():
        rows += [("law", name, z, mass) for z, mass in enumerate(masses(mechanism, _SUPPORT))]
    for name, mechanism in compared.items():
        for eps in quantities.spaced(0, 6, settings.pick(13, 61)):
            found = delta(mechanism, f"{eps:.6f}")
            rows.append(("profile", name, eps, shown(found)))
    for name in list(compared)[:3]:
        one, two = masses(compared[name], 2)[1:]
        rows.append(("needed", name, math.log((one - _TILDE) / two), _TILDE))
    columns = columns_of("panel", "curve", x="records, or nats", y=_PROBABILITY)
    variances = {name: variance(mechanism) for name, mechanism in compared.items()}
    rounded = {name: float(f"{value:.8g}") for name, value in variances.items()}
    return Table.of(columns, rows, epsilon=_EPSILON, eta=_ETA, support=_SUPPORT, variances=rounded)


def _draw_1(table: Table) -> style.Figure:
    names = table.distinct("curve")
    with style.panels(1, 3, height=3.3) as (figure, (plain, log, profile)):
        for axes, shown in ((plain, names[:2]), (log, names)):
            for place, name in enumerate(shown):  # all laws are on the integers: offset them
                shift = _OFFSET * (place - (len(shown) - 1) / 2)
                xs, ys = table.points("x", "y", panel="law", curve=name)
                there = [(x + shift, y) for x, y in zip(xs, ys, strict=True) if y > 0]
                axes.plot(*zip(*there, strict=True), label=name, **LOOKS[str(name)].dots())
        style.curves(profile, table, "x", "y", looks=LOOKS, panel="profile")
        log.set(yscale="log", ylim=(1e-8, 2))
        profile.set(yscale="log", ylim=(1e-6, 1), xlim=(-0.3, 7.4))
        style.fall(profile, table, "x", "y", looks=LOOKS, panel="profile")
        for name in table.distinct("curve", panel="needed"):
            xs, ys = table.points("x", "y", panel="needed", curve=name)
            profile.plot(xs, ys, "o", color=LOOKS[str(name)].colour, markeredgecolor="black")
            if xs[0] > float(_EPSILON) + 1:
                left = "as printed" in str(name)
                style.tag(
                    profile, (xs[0], ys[0]), f"{xs[0]:.2f}", shift=(11, -4) if left else (-21, -9)
                )
        profile.axhline(_TILDE, color="0.5", linewidth=0.8, zorder=1)
        profile.axvline(float(_EPSILON), color="0.5", linewidth=0.8, zorder=1)
        style.tag(profile, (float(_EPSILON), 0.6), f"ε = {_EPSILON}", shift=(3, 0))
        for axes in (plain, log):
            axes.set(xlabel="noise z (records)", ylabel="P(Z = z)")
        profile.set(xlabel="ε (nats)", ylabel="exact δ(ε)")
        style.letter((plain, log, profile), ("as printed", "all laws, log scale", "exact δ(ε)"))
        style.key(figure, [log], 3)
        ours, wrong, same = table.values("x", "curve", names[:3], panel="needed")
        style.finding(
            figure,
            f"Printed (Section III-B): for δ̃ = {_TILDE} the discrete Gaussian needs "
            f"ε = {wrong:.1f}, the mechanism ε = {ours:.2f}. The discrete Gaussian of the same "
            f"variance needs {same:.2f}: the mechanism is still better",
        )
        return figure


SUPPORTS = (2, 4, 6, 8, 10)
_ETA_2, _SHOWN_SUPPORT = "1/2", 8


def _compute_2(settings: Settings) -> Table:
    grid = [f"{eps:.4f}" for eps in quantities.spaced(0, 4, settings.pick(17, 81))]
    rows: list[tuple[object, ...]] = []
    for support in SUPPORTS:
        for eps in grid:
            printed = claimed(eps, _ETA_2, support)
            exact = delta(bounded(eps, _ETA_2, support), eps)
            rows.append(("printed", f"D = {support}", eps, printed))
            rows.append(("exact", f"D = {support}", eps, exact))
            if support == _SHOWN_SUPPORT:
                compared = {
                    "printed, (2D + 1)δ*": printed,
                    "exact δ": exact,
                    "least true δ": optimum(eps, _ETA_2, support)[0],
                    "geometric": shown(delta(geometric(0.5), eps)),
                }
                rows += [("compared", name, eps, value) for name, value in compared.items()]
    columns = columns_of("panel", "curve", epsilon="nats", delta=_PROBABILITY)
    rows.sort(key=lambda row: ("printed", "exact", "compared").index(str(row[0])))
    return Table.of(columns, rows, eta=_ETA_2, supports=list(SUPPORTS))


def _draw_2(table: Table) -> style.Figure:
    panels = ("printed", "exact", "compared")
    with style.panels(1, 3, height=3.3, share_y=True) as (figure, grid):
        for axes, panel in zip(grid, panels, strict=True):
            looks = LOOKS if panel == "compared" else None
            style.curves(axes, table, "epsilon", "delta", looks=looks, panel=panel)
            axes.set_xlabel("ε (nats)")
        grid[0].set(yscale="log", ylim=(1e-13, 1), ylabel="δ")
        style.fall(grid[2], table, "epsilon", "delta", looks=LOOKS, panel="compared")
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


_EPSILONS = ("1.1", "2.2")
_SHOWN_SUPPORT_3 = 8
"""Support of the laws in the lower panels."""


def _compute_3(settings: Settings) -> Table:
    grid = [f"{eta:.4f}" for eta in quantities.spaced(0.01, 0.99, settings.pick(15, 99))]
    rows: list[tuple[object, ...]] = []
    for eps in _EPSILONS:
        for support in SUPPORTS:
            printed = [(eta, claimed(eps, eta, support)) for eta in grid]
            rows += [(f"printed {eps}", f"D = {support}", *row) for row in printed]
    for eps in _EPSILONS:
        for eta in grid:
            compared = {
                "printed, (2D + 1)δ*": claimed(eps, eta, _SHOWN_SUPPORT_3),
                "exact δ": delta(bounded(eps, eta, _SHOWN_SUPPORT_3), eps),
                "least true δ": shown(optimum(eps, eta, _SHOWN_SUPPORT_3)[0]),
                "geometric": shown(delta(geometric(float(eta)), eps)),
            }
            rows += [(f"compared {eps}", name, eta, value) for name, value in compared.items()]
    columns = columns_of("panel", "curve", eta="probability", delta=_PROBABILITY)
    return Table.of(columns, rows, epsilons=list(_EPSILONS), supports=list(SUPPORTS))


def _draw_3(table: Table) -> style.Figure:
    with style.panels(2, 2, height=4.9) as (figure, grid):
        for axes, panel in zip(grid, table.distinct("panel"), strict=True):
            looks = LOOKS if str(panel).startswith("compared") else None
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
            f"D = {_SHOWN_SUPPORT_3} it is {printed:.1g}, the exact δ is {exact:.2g}",
        )
        titles = ("printed, ε = 1.1", "printed, ε = 2.2", "D = 8, ε = 1.1", "D = 8, ε = 2.2")
        style.letter(grid, titles)
        return figure


_ETA_4, _SUPPORT_4 = "1/2", 6


def _compute_4(settings: Settings) -> Table:
    rows: list[tuple[object, ...]] = []
    for point in quantities.spaced(0, 4, settings.pick(17, 81)):
        eps = f"{point:.4f}"
        noise = bounded(eps, _ETA_4, _SUPPORT_4)
        spread = variance(noise)
        found = {
            ("printed", "mechanism, (2D + 1)δ*"): claimed(eps, _ETA_4, _SUPPORT_4),
            ("printed", "discrete Gaussian, eq. (45)"): equation_45(point, spread),
            ("exact", "mechanism"): delta(noise, eps),
            ("exact", "discrete Gaussian, same variance"): delta(same_variance(spread), eps),
            ("exact", "least true δ"): optimum(eps, _ETA_4, _SUPPORT_4)[0],
            ("exact", "geometric, same P(Z = 0)"): shown(delta(geometric(0.5), eps)),
        }
        rows += [(*names, eps, value) for names, value in found.items()]
    columns = columns_of("panel", "curve", epsilon="nats", delta=_PROBABILITY)
    return Table.of(columns, rows, eta=_ETA_4, support=_SUPPORT_4)


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


def _draw_4(table: Table) -> style.Figure:
    with style.panels(1, 2, height=3.5, share_y=True) as (figure, grid):
        for axes, panel in zip(grid, ("printed", "exact"), strict=True):
            style.curves(axes, table, "epsilon", "delta", looks=LOOKS, panel=panel)
            axes.set_xlabel("ε (nats)")
        grid[0].set(yscale="log", ylim=(1e-10, 1), ylabel="δ")
        style.fall(grid[1], table, "epsilon", "delta", looks=LOOKS, panel="exact")
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


_EPSILON_COMPOSITION, _ETA_COMPOSITION, _SUPPORT_COMPOSITION = "1.1", "1/2", 6
_COUNTS = (1, 2, 4, 8)
_WIDTH = Fraction(1, 10**9)
_LEAST = 1e-5
"""Lower end of the axis of δ."""


def _compute_composition(settings: Settings) -> Table:
    noise = bounded(_EPSILON_COMPOSITION, _ETA_COMPOSITION, _SUPPORT_COMPOSITION)
    compared: dict[str, Mechanism] = {
        "Definition 2": noise,
        f"least δ of one at ε = {_EPSILON_COMPOSITION}": optimum(
            _EPSILON_COMPOSITION, _ETA_COMPOSITION, _SUPPORT_COMPOSITION
        )[1],
        "discrete Gaussian, same variance": same_variance(variance(noise)),
        "geometric, same P(Z = 0)": geometric(0.5),
    }
    counts = settings.pick(_COUNTS[:3], _COUNTS)
    rows: list[tuple[object, ...]] = []
    for count in counts:
        for name, mechanism in compared.items():
            whole = Composed(mechanism, count)
            for point in quantities.spaced(0, 1.25 * count + 1, settings.pick(10, 41)):
                eps = f"{point:.6f}"
                found = profile.delta(whole, eps, adjacency=_RELATION, relative_width=_WIDTH)
                rows.append((count, name, eps, shown(quantities.middle(found))))
    numbers = columns_of("curve", epsilon="nats", delta=("probability", 1e-7))
    columns = (*columns_of(releases="1"), *numbers)
    return Table.of(
        columns, rows, epsilon=_EPSILON_COMPOSITION, eta=_ETA_COMPOSITION,
        support=_SUPPORT_COMPOSITION, releases=list(counts),
    )  # fmt: skip


def _draw_composition(table: Table) -> style.Figure:
    counts = sorted(set(table.numbers("releases")))
    with style.panels(1, len(counts), height=3.1, share_y=True) as (figure, grid):
        for axes, count in zip(grid, counts, strict=True):
            style.curves(axes, table, "epsilon", "delta", looks=LOOKS, releases=count)
            axes.set_xlabel("ε (nats)")
        grid[0].set(yscale="log", ylim=(_LEAST, 1), ylabel="exact δ(ε)")
        for axes, count in zip(grid, counts, strict=True):
            style.fall(axes, table, "epsilon", "delta", looks=LOOKS, releases=count)
        style.key(figure, grid)
        words = []
        for count in (counts[0], counts[-1]):
            # Beyond ε = 1.1 for each release, where the law of the paper is made for.
            beyond = [e for e in table.numbers("epsilon", releases=count) if e >= 1.1 * count]
            at = {"releases": count, "epsilon": min(beyond)}
            ours, other = table.values(
                "delta", "curve", ("Definition 2", "discrete Gaussian, same variance"), **at
            )
            many = f"{count:g} release{'s' * (count > 1)}"
            words.append(f"{ours:.1g} against {other:.1g} at ε = {min(beyond):.3g} for {many}")
        style.finding(
            figure,
            "Exact δ of Definition 2 against the discrete Gaussian of its variance: "
            f"{', '.join(words)}. What bounded noise gains once, it loses over many releases",
        )
        style.letter(grid, [f"releases: {c:g}" for c in counts])
        return figure


PLOTS: Plots = {
    "1": (_compute_1, _draw_1),
    "2": (_compute_2, _draw_2),
    "3": (_compute_3, _draw_3),
    "4": (_compute_4, _draw_4),
    "composition": (_compute_composition, _draw_composition),
}

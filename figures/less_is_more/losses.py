"""Figures 5 and 9 and Table 1 of Less is More: losses, and the noise that causes them.

Each mechanism has the amount of noise of the paper's formula ("printed"), and the least amount that
is (ε, δ)-DP ("verified"). Amounts are for ℓ2 sensitivity 1; noise scales with the sensitivity.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.mechanisms.shapes.general_gaussian import RankOneGaussian
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import profile
from dpassay.figures import quantities, style
from dpassay.figures.description import Plots, Settings
from dpassay.figures.table import Table, columns_of

_CLOSE = 1e-6
"""Relative width of the enclosure of the least σ_*."""
_MOST_STEPS = 40
"""Maximal number of secant steps; a few are enough."""
_ACCURACY = Fraction(1, 10**10)
KINDS = {"printed": "noise by the formulas", "verified": "noise that is (ε, δ)-DP"}
"""Titles of the two kinds of panels."""


def log_inverse_psi(dimension: int, delta: float) -> float:
    """Return −ln ψ, ψ = (δ Γ((M−1)/2)/(√π Γ(M/2)))^{2/(M−2)}."""
    log_ratio = math.lgamma(dimension / 2) - math.lgamma((dimension - 1) / 2)
    return 2 * (log_ratio + math.log(math.pi) / 2 - math.log(delta)) / (dimension - 2)


def sigma_star_of_theorem_5(dimension: int, epsilon: float, delta: float) -> float:
    """Return σ_* = 2/(εψ)."""
    return 2 * math.exp(log_inverse_psi(dimension, delta)) / epsilon


def sigma_star(dimension: int, epsilon: str, delta: str, *, printed: bool) -> float:
    """Return σ_* by Theorem 5, or the least σ_* that is (ε, δ)-DP."""
    if printed:
        return sigma_star_of_theorem_5(dimension, float(epsilon), float(delta))
    return exact_sigma_star(dimension, epsilon, delta)


def exact_sigma_star(dimension: int, epsilon: str, delta: str) -> float:
    """Return the least σ_* at which the mechanism is (ε, δ)-DP, or a number up to 10⁻⁶ above it.

    Since δ falls about like σ_*^{−1/2}, a secant method in logarithms needs few evaluations, while
    `calibrate`, which aims at twelve digits, needs many. The result is certified: δ(ε) is at most δ
    at the result, and larger at the result times 1 − 10⁻⁶.

    Raises UndecidedError if the method does not converge or the result cannot be certified.
    """
    target = Fraction(delta)
    goal = math.log(float(target))
    x, slope = math.log(29 * dimension) - 2 * goal, -0.5
    before: tuple[float, float] | None = None
    for _ in range(_MOST_STEPS):
        y = math.log(float(_delta(dimension, x, epsilon).upper))
        if before is not None and x != before[0]:
            slope = (y - before[1]) / (x - before[0])
        before = x, y
        step = (goal - y) / min(slope, -0.05)
        x += step
        if abs(step) < _CLOSE / 10:
            break
    above, below = x + _CLOSE / 2, x - _CLOSE / 2
    enough = Fraction(_delta(dimension, above, epsilon).upper) <= target
    if not (enough and Fraction(_delta(dimension, below, epsilon).lower) > target):
        raise UndecidedError(
            f"The secant method did not enclose the least sigma_star for dimension={dimension}, "
            f"epsilon={epsilon}, delta={delta}. Use calibrate instead."
        )
    return math.exp(above)


def _delta(dimension: int, log_sigma_star: float, epsilon: str) -> Interval:
    mechanism = RankOneGaussian(dimension, Fraction(math.exp(log_sigma_star)))
    return profile.delta(mechanism, epsilon, relative_width=_ACCURACY)


def classic_deviation(epsilon: float, delta: float) -> float:
    """Return σ = √(2 ln(1.25/δ))/ε of Theorem 1."""
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def independent_deviation(
    name: str, side: int, sensitivity: float, epsilon: str, delta: str
) -> float:
    """Return the standard deviation of independent Gaussian noise on each entry of a square matrix.

    "classic", "MVG" and "MGM" use their own formulas; any other name gives the least noise that is
    (ε, δ)-DP.
    """
    from dpassay.figures.baselines import spectra

    budget, slack = float(epsilon), float(delta)
    match name:
        case "classic":
            return sensitivity * classic_deviation(budget, slack)
        case "MVG":
            return spectra.mvg_deviation(side, sensitivity, budget, slack)
        case "MGM":
            return spectra.mgm_deviation(sensitivity, budget, slack)
    return sensitivity * quantities.gaussian_deviation(epsilon, delta)


_CELLS = 89
"""Number of cells along a side of the map, as in the paper."""
_SIZE = _CELLS**2
_EPSILON_ONE, _EPSILON, _DELTA = "1e-5", "0.5", "1e-7"
_DRAWS = 100
"""Number of sampled losses per mechanism."""
_NAMES = ("R1SMG", "classic", "analytic", "MVG")
_WORDS = {n: f"{n}, ε = {_EPSILON_ONE if n == 'R1SMG' else _EPSILON}" for n in _NAMES}
_RANGES = {"R1SMG": (0.0, 6.0)} | dict.fromkeys(_NAMES[1:], (0.94, 1.06))
"""Range of the axis of losses, relative to the expected loss."""
_FIRST = 0.005
"""Least point of a density that is infinite at 0, relative to the expected loss."""
_BINS = [10 ** (place / 4) for place in range(4, 93)]
"""Edges of the histogram's bins, four per decade."""
_SEEN = 1e-6
"""Smaller probabilities are printed as 0."""
_PAPER = {"R1SMG": 1.5e4, "classic": 5e4, "analytic": 5e4, "MVG": 5e4}
"""The means that the paper prints."""


def _compute_5(settings: Settings) -> Table:
    from scipy.stats import chi2

    rows: list[tuple[object, ...]] = []
    for kind in KINDS:
        for name, amount in _amounts(printed=kind == "printed").items():
            found = _losses(name, amount, _DRAWS, settings.rng(f"losses of {name}"))
            freedom = 1 if name == "R1SMG" else _SIZE
            rows.append((kind, "expected", name, freedom * amount, None))
            rows.append((kind, "mean", name, float(found.mean()), None))
            rows += [(kind, "draw", name, float(loss), None) for loss in sorted(found)]
            if kind == "printed":
                rows.append((kind, "paper", name, _PAPER[name], None))
                rows.append((kind, "above twice", name, 2.0, float(chi2.sf(2 * freedom, freedom))))
                for x in quantities.spaced(*_RANGES[name], 81):
                    density = float(chi2.pdf(max(x, _FIRST) * freedom, freedom)) * freedom
                    rows.append((kind, "density", name, x, density))
    columns = columns_of(
        *("kind", "what", "mechanism"),
        loss=("counts²; of a density, over the expected loss", 1e-6),
        y=("density, or probability", 1e-6),
    )
    return Table.of(
        columns, rows, M=_SIZE, squared_sensitivity=2, epsilon=_EPSILON, delta=_DELTA,
        epsilon_r1smg=_EPSILON_ONE, draws=_DRAWS, seed=settings.seed,
    )  # fmt: skip


def _amounts(*, printed: bool) -> dict[str, float]:
    """Return σ_* of R1SMG and the variances of the other mechanisms for Δ² = 2.

    They follow the printed formulas, or are the least amounts that are (ε, δ)-DP, for which the
    three Gaussian mechanisms coincide.
    """
    names = {name: name if printed else "analytic" for name in _NAMES[1:]}
    star = 2 * sigma_star(_SIZE, _EPSILON_ONE, _DELTA, printed=printed)
    return {"R1SMG": star} | {
        name: independent_deviation(own, _CELLS, math.sqrt(2), _EPSILON, _DELTA) ** 2
        for name, own in names.items()
    }


def _losses(name: str, amount: float, draws: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Sample ‖n‖²: σ_* z² for R1SMG, σ² χ² with 7921 degrees of freedom for the others."""
    if name == "R1SMG":
        return amount * rng.standard_normal(draws) ** 2
    return amount * rng.chisquare(_SIZE, draws)


def _draw_5(table: Table) -> style.Figure:
    with style.panels(mosaic="aabb;cdef", height=4.4) as (figure, grid):
        for axes, kind in zip(grid[:2], KINDS, strict=True):
            for look, name in zip(style.CURVES, _NAMES, strict=False):
                where = {"kind": kind, "mechanism": name}
                losses = table.numbers("loss", what="draw", **where)
                axes.hist(
                    losses, bins=_BINS, histtype="stepfilled", color=look.colour, alpha=0.5,
                    edgecolor=look.colour, label=_WORDS[name],
                )  # fmt: skip
                xs = table.numbers("loss", what="paper", **where)
                height = 104 + 6 * _NAMES.index(name)  # three printed means coincide
                axes.plot(xs, [height] * len(xs), "X", color=look.colour, markersize=5)
            axes.set(xscale="log", xlim=(1e1, 1e23), ylim=(0, 128), xlabel="L = ‖n‖² (counts²)")
            axes.set_yticks(range(0, _DRAWS + 1, 25))
        grid[0].set_ylabel(f"draws of {_DRAWS}")
        grid[0].text(10**5.2, 112, "×: the means that the paper prints")
        grid[1].text(10**6.6, 60, "classic, analytic and MVG\nare one Gaussian law")
        for axes, look, name in zip(grid[2:], style.CURVES, _NAMES, strict=False):
            where = {"kind": "printed", "mechanism": name}
            expected = table.value("loss", what="expected", **where)
            shares = [x / expected for x in table.numbers("loss", what="draw", **where)]
            xs, ys = table.points("loss", "y", what="density", **where)
            top = 3.0 if name == "R1SMG" else 2.2 * max(ys)
            axes.hist(
                shares, bins=20, range=_RANGES[name], density=True, color=look.colour, alpha=0.4
            )
            axes.plot(xs, ys, color=look.colour)
            axes.axvline(1, ymax=0.7, color="0.3", linewidth=0.8)
            beyond = table.value("y", what="above twice", **where)
            share = f"{100 * beyond:.0f} %" if beyond > _SEEN else "0 %"
            seen = sum(x > 2 for x in shares)
            axes.text(
                0.97, 0.97, f"L > 2 E L: {share}\n({seen} of {_DRAWS} draws)",
                transform=axes.transAxes, ha="right", va="top",
            )  # fmt: skip
            axes.set(xlim=_RANGES[name], ylim=(0, top), yticks=[])
            if name != "R1SMG":
                axes.set_xticks([0.95, 1, 1.05])
            axes.set_xlabel(style.powers(f"L/E L; E L = {expected:.1e} counts²"))
        grid[2].set_ylabel("density")
        style.key(figure, grid[:1])
        style.letter(grid, [*KINDS.values(), *_NAMES])
        kinds = {"kind": "printed", "what": "expected"}
        printed, others = (table.value("loss", mechanism=n, **kinds) for n in _NAMES[::2])
        needed = table.value("loss", kind="verified", what="expected", mechanism="R1SMG")
        style.finding(
            figure,
            f"Printed (Section 7.1): L is around 1.5·10⁴ for R1SMG and 5·10⁴ for the others. By "
            f"the theorems it is {printed:.1e}, and {others:.1e} or more; privacy requires "
            f"{needed:.1e} of R1SMG, whose large losses are the more likely ones",
        )
        return figure


_DELTA_9 = "1e-10"
_EPSILONS = ("1e-7", "1e-8", "1e-9")
_MECHANISMS = ("R1SMG", "classic Gaussian", "analytic Gaussian")


def _compute_9(settings: Settings) -> Table:
    rows: list[tuple[object, ...]] = []
    dimensions = [round(m) for m in quantities.geometric(100, 10**6, settings.pick(5, 17))]
    verified_dimensions = settings.pick([100, 10**6], [100, 10**4, 10**6], dimensions)
    delta = float(_DELTA_9)
    for eps in _EPSILONS:
        epsilon = float(eps)
        exact = quantities.gaussian_deviation(eps, _DELTA_9) ** 2
        classic = classic_deviation(epsilon, delta) ** 2
        for m in dimensions:
            printed = sigma_star_of_theorem_5(m, epsilon, delta)
            losses = (printed, m * classic, m * exact)
            for mechanism, loss in zip(_MECHANISMS, losses, strict=True):
                rows.append(("printed", mechanism, eps, m, loss))
            rows.append(("verified", "Gaussian", eps, m, m * exact))
        for m in settings.pick(verified_dimensions if eps == "1e-7" else [], verified_dimensions):
            least = exact_sigma_star(m, eps, _DELTA_9)
            rows.append(("verified", "R1SMG", eps, m, least))
    columns = columns_of("panel", "mechanism", "epsilon", M="coordinates", loss=("Δ²", 1e-5))
    return Table.of(columns, rows, delta=_DELTA_9)


def _one_line(table: Table, where: dict[str, Any]) -> bool:
    """Whether the losses for all ε agree within a factor 2, which is invisible on the axis."""
    losses: dict[float, list[float]] = {}
    for eps in table.distinct("epsilon", **where):
        for m, loss in zip(*table.points("M", "loss", epsilon=eps, **where), strict=True):
            losses.setdefault(m, []).append(loss)
    several = [found for found in losses.values() if len(found) > 1]
    return bool(several) and all(max(found) < 2 * min(found) for found in several)


def _draw_9(table: Table) -> style.Figure:
    from matplotlib.lines import Line2D

    dashes: dict[str, Any] = {"1e-7": "solid", "1e-8": (0, (5, 2)), "1e-9": (0, (1, 1.5))}
    looks = dict(zip((*_MECHANISMS, "Gaussian"), [*style.CURVES[:3], style.CURVES[2]], strict=True))
    same = ""
    with style.panels(1, 2, height=3.6, share_y=True) as (figure, grid):
        for axes, panel in zip(grid, ("printed", "verified"), strict=True):
            names = table.distinct("mechanism", panel=panel)
            for name in names:
                look = looks[str(name)]
                where = {"panel": panel, "mechanism": name}
                apart = table.distinct("epsilon", **where)
                if _one_line(table, where):
                    apart = apart[:1]
                    same = f"; {name}: one line"
                for eps in apart:
                    xs, ys = table.points("M", "loss", epsilon=eps, **where)
                    marked = look.marked(len(xs), marks=5) | {"linestyle": dashes[str(eps)]}
                    axes.plot(xs, ys, **marked)
            keys = [Line2D([], [], label=str(n), **looks[str(n)].dots()) for n in names]
            if panel == "printed":
                both = keys + [
                    Line2D([], [], color="0.3", linestyle=dash, label=style.powers(f"ε = {eps}"))
                    for eps, dash in dashes.items()
                ]
            axes.set(xscale="log", yscale="log", xlabel="M (coordinates)")
        grid[0].set(ylim=(1e6, 1e30), ylabel="E‖n‖² (Δ²)")
        style.letter(grid, (KINDS["printed"], KINDS["verified"] + same))
        figure.legend(handles=both, loc="outside lower center", ncols=3)
        grow = {}
        for panel in ("printed", "verified"):
            where = {"panel": panel, "mechanism": "R1SMG", "epsilon": _EPSILONS[0]}
            ms, ys = table.points("M", "loss", **where)
            grow[panel] = ys[-1] / ys[0]
        gaussian = table.value(
            "loss", panel="verified", mechanism="Gaussian", epsilon=_EPSILONS[0], M=ms[-1]
        )
        style.finding(
            figure,
            f"Printed (Appendix B): R1SMG's loss decreases and converges; by Theorem 5 it is "
            f"{grow['printed']:.2g}-fold from M = {ms[0]:g} to {ms[-1]:.0e}. With noise "
            f"that is private it grows {grow['verified']:.0e}-fold, to {ys[-1] / gaussian:.0e} "
            f"times that of Gaussian noise at ε = {_EPSILONS[0]}",
        )
        return figure


_DELTA_TABLE_1 = "1e-5"
_SHAPES = ((3, 1), (10, 10), (89, 89))
_MECHANISMS_TABLE_1 = ("classic Gaussian", "analytic Gaussian", "MVG", "R1SMG")
_STABLE = "R1SMG"
_WRITTEN_OUT = 1e4
"""Larger numbers are printed with a power of ten."""


def _compute_table_1(settings: Settings) -> Table:
    rows: list[tuple[object, ...]] = []
    for height, width in settings.pick(_SHAPES[:2], _SHAPES):
        m = height * width
        eps = f"1/{2 * m}"
        epsilon, delta = 1 / (2 * m), float(_DELTA_TABLE_1)
        gaussian = quantities.gaussian_deviation(eps, _DELTA_TABLE_1) ** 2
        printed = (
            m * classic_deviation(epsilon, delta) ** 2,
            m * (_quantile(delta) ** 2 + epsilon) / epsilon**2,
            m * (5 * _harmonic(width, 1) + _harmonic(width, 0.5)) / (8 * epsilon),
            sigma_star_of_theorem_5(m, epsilon, delta),
        )
        true = (*(3 * [m * gaussian]), exact_sigma_star(m, eps, _DELTA_TABLE_1))
        for name, claimed, least in zip(_MECHANISMS_TABLE_1, printed, true, strict=True):
            spread = 2.0 if name == _STABLE else 2 / m
            rows.append((name, m, claimed, least, spread))
    columns = columns_of(
        "mechanism", M="coordinates", printed=("Δ²", 1e-8), true=("Δ²", 1e-5), spread="1"
    )
    return Table.of(columns, rows, delta=_DELTA_TABLE_1)


def _quantile(probability: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(probability))


def _harmonic(terms: int, power: float) -> float:
    """Return H_{r,p} = Σ_{i ≤ r} i^{−p}."""
    return math.fsum(i**-power for i in range(1, terms + 1))


def _shown(size: float) -> str:
    return f"{size:,.4g}" if size < _WRITTEN_OUT else style.powers(f"{size:.2e}")


def _draw_table_1(table: Table) -> style.Figure:
    from matplotlib.transforms import Bbox

    heads = ["M", "mechanism", "E L by Table 1 (Δ²)", "least E L (Δ²)", "Table 1 says"]
    heads.append("Var L/(E L)²")
    lines, bold = [], []
    for m in table.distinct("M"):
        worst = max(table.numbers("true", M=m))
        for name in table.distinct("mechanism"):
            where = {"M": m, "mechanism": name}
            least, spread = (table.value(key, **where) for key in ("true", "spread"))
            first = f"{m:g}" if name == _MECHANISMS_TABLE_1[0] else ""
            losses = (_shown(table.value("printed", **where)), _shown(least))
            said = "stable" if name == _STABLE else "unstable"
            lines.append([first, str(name), *losses, said, f"{spread:.3g}"])
            bold.append(least == worst)
    with style.panels(height=0.6 + 0.2 * len(lines)) as (figure, (axes,)):
        axes.axis("off")
        drawn = axes.table(
            [heads, *lines], edges="horizontal", cellLoc="right", bbox=Bbox.unit(),
            colWidths=[0.5, 1.7, 1.8, 1.4, 1.2, 1.1],
        )  # fmt: skip
        drawn.auto_set_font_size(value=False)
        drawn.set_fontsize(7.5)
        for (row, column), cell in drawn.get_celld().items():
            cell.set_linewidth(0.4)
            if column == 1:
                cell.set_text_props(ha="left")
                cell.PAD = 0.2
            if row == 0 or (bold[row - 1] and column in (3, 5)):
                cell.set_text_props(fontweight="bold")
        where = {"M": _SHAPES[1][0] * _SHAPES[1][1], "mechanism": _STABLE}
        printed, true = (table.value(key, **where) for key in ("printed", "true"))
        times = true / table.value("true", M=where["M"], mechanism=_MECHANISMS_TABLE_1[1])
        style.finding(
            figure,
            f"By Table 1 R1SMG is stable and loses least, {printed:,.0f} Δ² at M = {where['M']}. "
            f"Privacy requires {true:.2g} Δ² there, {times:.2g} times Gaussian noise, and no loss "
            "varies more, whatever M is",
            f"E L for ε = 1/(2M), which Remark 1 allows, and δ = {_DELTA_TABLE_1}",
        )
        return figure


PLOTS: Plots = {
    "5": (_compute_5, _draw_5),
    "9": (_compute_9, _draw_9),
    "table-1": (_compute_table_1, _draw_table_1),
}

"""Figure 5: the loss of 100 draws on the 89×89 counts."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpassay.figures import quantities, style
from dpassay.figures.description import Description, Settings
from dpassay.figures.less_is_more import calibrations
from dpassay.figures.table import Table, label, number

DESCRIPTION = Description(
    number="Figure 5",
    title="Loss of the noise on 89×89 counts, δ = 1e-7",
    plotted="L = ‖n‖² of 100 draws; Δ² = 2, ε = 1e-5 for R1SMG and 0.5 for the others. Above: "
    "histograms on one logarithmic axis, (a) of noise by Theorems 5, 1, 2 and 3 with the means "
    "that the paper prints (crosses), (b) of the least noise that is (ε, δ)-DP. Below: each "
    "mechanism of (a) on its own axis in units of its expected loss, with the density of its law "
    "and the share of losses above twice the mean.",
    says="R1SMG's loss is around 1.5·10⁴, the others' around 5·10⁴; its histogram is the most "
    "leptokurtic and right-skewed, so it is less likely to generate noise of large magnitude.",
    quote="L obtained by the R1SMG mechanism is around 1.5×10⁴ when ϵ = 10⁻⁵, whereas, L "
    "obtained by the other mechanisms are around 5×10⁴ even with ϵ = 0.5",
    where="Section 7.1",
    alt="Above left: R1SMG's losses spread over decades up to 10⁶, the classic and analytic ones "
    "stand at 2·10⁶ and 1.3·10⁶, MVG's at 10¹⁸; crosses at 1.5·10⁴ and 5·10⁴ lie to their left. "
    "Above right: R1SMG's losses around 10¹⁹, all others at 1.3·10⁶. Below: R1SMG's density is "
    "highest at 0 and reaches beyond four times its mean, 16 % of it beyond twice; the three "
    "others are narrow bells around their means.",
    claims=(
        "section-7-1/sensitivity/wording", "section-7-1/loss-r1smg",
        "section-7-1/loss-r1smg/corrected",
        "section-7-1/loss-others/classic", "section-7-1/loss-others/classic/corrected",
        "section-7-1/loss-others/analytic", "section-7-1/loss-others/analytic/corrected",
        "section-7-1/loss-others/mvg", "section-7-1/loss-others/mvg/corrected",
        "section-7-1/smaller-mean", "section-7-1/less-likely-large", "section-7-1/dp-claim",
        "theorem-5/needed",
    ),
    assumptions=(
        "MVG: equal eigenvalues and γ = Δ/2, which make its noise by Theorem 3 least.",
        "L sums over all 7921 cells, as Definition 1 says.",
    ),
    differs="The printed means, 1.5·10⁴ and 5·10⁴, do not follow from the printed formulas, which "
    "give 4.0·10⁵, 2.1·10⁶, 1.3·10⁶ and 9.7·10¹⁷. Losses of all mechanisms share a logarithmic "
    "axis, and (b) is added.",
)  # fmt: skip
_CELLS = 89
"""Cells of a side of the map, as in the paper."""
_SIZE = _CELLS**2
_EPSILON_ONE, _EPSILON, _DELTA = "1e-5", "0.5", "1e-7"
_DRAWS = 100
"""Draws of a loss for every mechanism."""
_NAMES = ("R1SMG", "classic", "analytic", "MVG")
_WORDS = {n: f"{n}, ε = {_EPSILON_ONE if n == 'R1SMG' else _EPSILON}" for n in _NAMES}
_RANGES = {"R1SMG": (0.0, 6.0)} | dict.fromkeys(_NAMES[1:], (0.94, 1.06))
"""Losses that are drawn, over the expected one."""
_FIRST = 0.005
"""Of a density that is infinite at 0 the least point that is drawn, over the expected loss."""
_BINS = [10 ** (place / 4) for place in range(4, 93)]
"""Ends of the bins: four in each decade."""
_SEEN = 1e-6
"""A share below it is written as 0."""
_PAPER = {"R1SMG": 1.5e4, "classic": 5e4, "analytic": 5e4, "MVG": 5e4}
"""The means that the paper prints."""


def compute(settings: Settings) -> Table:
    """Draw losses; tabulate them, the expected ones, those that the paper prints, and densities."""
    from scipy.stats import chi2

    rows: list[tuple[object, ...]] = []
    for kind, amounts in zip(calibrations.KINDS, (_printed(), _verified()), strict=True):
        for name, amount in amounts.items():
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
    columns = (
        label("kind"), label("what"), label("mechanism"),
        number("loss", "counts²; of a density, over the expected loss", relative=1e-6),
        number("y", "density, or probability", relative=1e-6),
    )  # fmt: skip
    return Table.of(
        columns, rows, M=_SIZE, squared_sensitivity=2, epsilon=_EPSILON, delta=_DELTA,
        epsilon_r1smg=_EPSILON_ONE, draws=_DRAWS, seed=settings.seed,
    )  # fmt: skip


def _printed() -> dict[str, float]:
    """Return σ_* of R1SMG and the variances of the others by the theorems, for Δ² = 2."""
    from dpassay.figures.baselines import matrix_gaussian

    epsilon, delta = float(_EPSILON), float(_DELTA)
    root = math.sqrt(2)
    star = calibrations.sigma_star_of_theorem_5(_SIZE, float(_EPSILON_ONE), delta)
    return {
        "R1SMG": 2 * star,
        "classic": 2 * calibrations.classic_deviation(epsilon, delta) ** 2,
        "analytic": 2 * calibrations.analytic_deviation(_EPSILON, _DELTA) ** 2,
        "MVG": matrix_gaussian.mvg_deviation(_CELLS, _CELLS, root, epsilon, delta) ** 2,
    }


def _verified() -> dict[str, float]:
    """Return the least amounts that are (ε, δ)-DP: the three Gaussian ones are one law."""
    variance = 2 * calibrations.analytic_deviation(_EPSILON, _DELTA) ** 2
    star = 2 * calibrations.exact_sigma_star(_SIZE, _EPSILON_ONE, _DELTA)
    return {"R1SMG": star} | dict.fromkeys(_NAMES[1:], variance)


def _losses(name: str, amount: float, draws: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw ‖n‖²: σ_* z² for R1SMG, σ² χ² with 7921 degrees of freedom for the others."""
    if name == "R1SMG":
        return amount * rng.standard_normal(draws) ** 2
    return amount * rng.chisquare(_SIZE, draws)


def draw(table: Table) -> style.Figure:
    """Draw all histograms on one axis for both kinds of noise, then each on its own."""
    with style.panels(mosaic="aabb;cdef", height=4.4) as (figure, grid):
        for axes, kind in zip(grid[:2], calibrations.KINDS, strict=True):
            for look, name in zip(style.CURVES, _NAMES, strict=False):
                where = {"kind": kind, "mechanism": name}
                losses = table.numbers("loss", what="draw", **where)
                axes.hist(
                    losses, bins=_BINS, histtype="stepfilled", color=look.colour, alpha=0.5,
                    edgecolor=look.colour, label=_WORDS[name],
                )  # fmt: skip
                xs = table.numbers("loss", what="paper", **where)
                height = 104 + 6 * _NAMES.index(name)  # the three printed means are one number
                axes.plot(xs, [height] * len(xs), "X", color=look.colour, markersize=5)
            axes.set(xscale="log", xlim=(1e1, 1e23), ylim=(0, 128), xlabel="L = ‖n‖² (counts²)")
        grid[0].set_ylabel(f"draws of {_DRAWS}; ×: printed")
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
        style.letter(grid, [*calibrations.KINDS.values(), *_NAMES])
        kinds = {"kind": "printed", "what": "expected"}
        printed, others = (table.value("loss", mechanism=n, **kinds) for n in _NAMES[::2])
        needed = table.value("loss", kind="verified", what="expected", mechanism="R1SMG")
        style.finding(
            figure,
            f"Printed (Section 7.1): L is around 1.5·10⁴ for R1SMG and 5·10⁴ for the others. By "
            f"the theorems it is {printed:.1e}, and {others:.1e} or more; privacy takes "
            f"{needed:.1e} of R1SMG, whose large losses are the more likely ones",
        )
        return figure

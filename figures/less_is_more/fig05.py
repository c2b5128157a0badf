"""Figure 5: the loss of 100 draws on the 89×89 counts."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpassay.figures import style
from dpassay.figures.description import Description, Settings
from dpassay.figures.less_is_more import calibrations
from dpassay.figures.table import Table, label, number

DESCRIPTION = Description(
    number="Figure 5",
    title="Loss of the noise on 89×89 counts, δ = 1e-7",
    plotted="L = ‖n‖² of 100 draws; Δ² = 2, ε = 1e-5 for R1SMG and 0.5 for the others. "
    "Each draw is a point; marked are the expected loss and the mean that the paper prints. Top: "
    "noise by Theorems 5, 1, 2 and 3. Bottom: the least noise that is really (ε, δ)-DP.",
    says="R1SMG's loss is around 1.5·10⁴, the others' around 5·10⁴; its histogram is the most "
    "leptokurtic and right-skewed, so it is less likely to generate noise of large magnitude.",
    alt="Two rows of points on one logarithmic axis. Top: R1SMG's losses spread over decades "
    "around 10⁵, the classic and analytic ones are dots near 2·10⁶ and 1.3·10⁶, MVG's near 10¹⁸; "
    "the paper's means lie to the left of all. Bottom: R1SMG's losses are around 10¹⁹, all others "
    "are dots at 1.3·10⁶.",
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
    "give 4.0·10⁵, 2.1·10⁶, 1.3·10⁶ and 9.7·10¹⁷. Points on a logarithmic axis take the place of "
    "histograms and densities, which cannot show so many decades.",
)  # fmt: skip
_CELLS = 89
"""Cells of a side of the map, as in the paper."""
_SIZE = _CELLS**2
_EPSILON_ONE, _EPSILON, _DELTA = "1e-5", "0.5", "1e-7"
_DRAWS = 100
"""Draws of a loss for every mechanism."""
_NAMES = ("R1SMG", "classic", "analytic", "MVG")
_ROWS = [f"R1SMG, ε = {_EPSILON_ONE}", *(f"{name}, ε = {_EPSILON}" for name in _NAMES[1:])]
_PAPER = {"R1SMG": 1.5e4, "classic": 5e4, "analytic": 5e4, "MVG": 5e4}
"""The means that the paper prints."""


def compute(settings: Settings) -> Table:
    """Draw losses; tabulate them beside the expected ones and those that the paper prints."""
    rows: list[tuple[object, ...]] = []
    for kind, amounts in zip(calibrations.KINDS, (_printed(), _verified()), strict=True):
        for name, amount in amounts.items():
            found = _losses(name, amount, _DRAWS, settings.rng(f"losses of {name}"))
            expected = amount if name == "R1SMG" else _SIZE * amount
            rows.append((kind, "expected", name, expected))
            rows.append((kind, "mean", name, float(found.mean())))
            if kind == "printed":
                rows.append((kind, "paper", name, _PAPER[name]))
            rows += [(kind, "draw", name, float(loss)) for loss in sorted(found)]
    columns = (
        label("kind"), label("what"), label("mechanism"), number("loss", "counts²", relative=1e-6),
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
    """Draw every loss as a point, one row for each mechanism, above for the printed noise."""
    with style.panels(2, 1, height=3.6) as (figure, grid):
        for axes, kind in zip(grid, calibrations.KINDS, strict=True):
            for row, (look, name) in enumerate(zip(style.CURVES, _NAMES, strict=False)):
                losses = table.numbers("loss", kind=kind, what="draw", mechanism=name)
                axes.plot(losses, [row] * len(losses), alpha=0.3, **look.dots())
                for what, mark in (("expected", "|"), ("paper", "x")):
                    xs = table.numbers("loss", kind=kind, what=what, mechanism=name)
                    axes.plot(xs, [row] * len(xs), mark, color="black", markersize=9, zorder=4)
            axes.set(xscale="log", xlim=(1e0, 1e23), ylim=(3.6, -0.6))
            axes.set_yticks(range(len(_NAMES)), _ROWS)
            axes.set_ylabel("mechanism")
        grid[0].sharex(grid[1])
        grid[1].set_xlabel("L = ‖n‖² of each of 100 draws; |: its mean; ×: mean that the paper "
                           "prints (counts²)")  # fmt: skip
        style.letter(grid, calibrations.KINDS.values())
        where = {"what": "expected", "mechanism": "R1SMG"}
        printed, needed = table.values("loss", "kind", calibrations.KINDS, **where)
        gaussian = table.value("loss", kind="verified", what="expected", mechanism="analytic")
        style.finding(
            figure,
            f"Printed: R1SMG loses {printed:.0e}, less than all. True: privacy takes {needed:.0e}, "
            f"{math.log10(needed / printed):.0f} decades more and "
            f"{math.log10(needed / gaussian):.0f} above Gaussian noise",
        )
        return figure

"""Figure 5: the loss of 100 draws on the 89×89 counts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from figures import quantities, style
from figures.description import Description, Settings
from figures.less_is_more import calibrations
from figures.table import Table, label, number

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

DESCRIPTION = Description(
    number="Figure 5",
    title="Loss of the noise on 89×89 counts, δ = 1e-7",
    plotted="L = ‖n‖² of 100 draws; Δ² = 2, ε = 1e-5 for R1SMG and 0.5 for the others. "
    "(a), (c) Histograms and densities on one axis; (b), (d) each against its own mean. Top: noise "
    "by Theorems 5, 1, 2 and 3. Bottom: the least noise that is really (ε, δ)-DP.",
    says="R1SMG's loss is around 1.5·10⁴, the others' around 5·10⁴; its histogram is the most "
    "leptokurtic and right-skewed, so it is less likely to generate noise of large magnitude.",
    alt="Top: R1SMG's losses spread over six decades around 10⁵, the classic and analytic ones are "
    "spikes near 2·10⁶ and 1.3·10⁶, MVG's near 10¹⁸. Against their means the Gaussian losses are "
    "narrow peaks at 1 and R1SMG's reach beyond 4. Bottom: R1SMG's losses are around 10¹⁹, all "
    "others are spikes at 1.3·10⁶.",
    claims=(
        "section-7-1/sensitivity",
        "section-7-1/loss-r1smg",
        "section-7-1/loss-r1smg/corrected",
        "section-7-1/loss-others/classic",
        "section-7-1/loss-others/classic/corrected",
        "section-7-1/loss-others/analytic",
        "section-7-1/loss-others/analytic/corrected",
        "section-7-1/loss-others/mvg",
        "section-7-1/loss-others/mvg/corrected",
        "section-7-1/smaller-mean",
        "section-7-1/less-likely-large",
        "section-7-1/dp-claim",
        "theorem-5/needed",
    ),
    assumptions=(
        "MVG: equal eigenvalues and γ = Δ/2, which make its noise by Theorem 3 least.",
        "The densities are kernel estimates with Scott's bandwidth, of log₁₀ L in (c).",
        "L sums over all 7921 cells, as Definition 1 says.",
    ),
    differs="The printed means, 1.5·10⁴ and 5·10⁴, do not follow from the printed formulas, which "
    "give 4.0·10⁵, 2.1·10⁶, 1.3·10⁶ and 9.7·10¹⁷; the axes of (a) and (c) are logarithmic.",
)
_CELLS = 89
_SIZE = _CELLS**2
_EPSILON_ONE, _EPSILON, _DELTA = "1e-5", "0.5", "1e-7"
_DRAWS = 100
_KINDS = ("printed", "verified")
_NAMES = ("R1SMG", "classic", "analytic", "MVG")
_WORDS = {"printed": "as printed", "verified": "as verified"}


def compute(settings: Settings) -> Table:
    """Draw losses; tabulate means, histograms and densities."""
    import numpy as np

    rows: list[tuple[object, ...]] = []
    for kind, amounts in zip(_KINDS, (_printed(), _verified()), strict=True):
        losses = {
            name: _losses(name, amount, _DRAWS, settings.rng(f"losses of {name}"))
            for name, amount in amounts.items()
        }
        low = math.floor(min(math.log10(float(x.min())) for x in losses.values()))
        high = math.ceil(max(math.log10(float(x.max())) for x in losses.values()))
        for name, found in losses.items():
            mean = float(found.mean())
            expected = amounts[name] if name == "R1SMG" else _SIZE * amounts[name]
            rows.append((kind, "expected", name, expected, None))
            rows.append((kind, "mean", name, mean, None))
            logs, ratios = np.log10(found), found / mean
            # Four bins to a decade; forty to five times the mean.
            points = settings.pick(61, 241)
            for panel, values, least, most, bins in (
                ("", logs, low, high, 4 * (high - low)),
                (", zoomed", ratios, 0, 5, 40),
            ):
                rows += _histogram(
                    kind, f"histogram{panel}", name, values=values, low=least, high=most, bins=bins
                )
                rows += _density(
                    kind,
                    f"density{panel}",
                    name,
                    values=values,
                    low=least,
                    high=most,
                    points=points,
                )
    columns = (
        label("kind"),
        label("panel"),
        label("mechanism"),
        number("x", "counts², log₁₀ counts², or means", relative=1e-6, absolute=1e-12),
        number("y", "draws, or density", relative=1e-6, absolute=1e-9),
    )
    return Table.of(
        columns, rows, M=_SIZE, squared_sensitivity=2, epsilon=_EPSILON, delta=_DELTA,
        epsilon_r1smg=_EPSILON_ONE, draws=_DRAWS, seed=settings.seed,
    )  # fmt: skip


def _printed() -> dict[str, float]:
    """Return σ_* of R1SMG and the variances of the others by the theorems, for Δ² = 2."""
    from figures.baselines import matrix_gaussian

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


def _histogram(
    *where: str, values: NDArray[Any], low: float, high: float, bins: int
) -> list[tuple[object, ...]]:
    import numpy as np

    counts, edges = np.histogram(values, bins=bins, range=(low, high))
    return [(*where, x, n) for x, n in zip(edges[:-1], counts, strict=True)]


def _density(
    *where: str, values: NDArray[Any], low: float, high: float, points: int
) -> list[tuple[object, ...]]:
    from scipy.stats import gaussian_kde

    if values.std() < 0.05:  # a peak narrower than the grid: its own grid around it
        middle, half = float(values.mean()), 5 * float(values.std())
        low, high = middle - half, middle + half
    xs = quantities.spaced(low, high, points)
    return [(*where, x, y) for x, y in zip(xs, gaussian_kde(values)(xs), strict=True)]


def draw(table: Table) -> Figure:
    """Draw the four panels for both calibrations."""
    panels = ("histogram", "histogram, zoomed", "density", "density, zoomed")
    with style.panels(2, 4, height=4.2) as (figure, grid):
        for row, kind in enumerate(_KINDS):
            for column, panel in enumerate(panels):
                axes = grid[4 * row + column]
                for look, name in zip(style.CURVES, _NAMES, strict=False):
                    where = {"kind": kind, "panel": panel, "mechanism": name}
                    xs, ys = table.points("x", "y", **where)
                    if panel.startswith("histogram"):
                        step = xs[1] - xs[0]
                        axes.stairs(ys, [*xs, xs[-1] + step], label=name, **look.options())
                    else:
                        axes.plot(xs, ys, label=name, **look.options())
                        if column == 2:
                            mean = table.numbers("x", kind=kind, panel="mean", mechanism=name)[0]
                            axes.axvline(math.log10(mean), color=look.colour, linewidth=0.5)
                zoomed = "zoomed" in panel
                axes.set_xlabel("L (own mean)" if zoomed else "log₁₀ L (counts²)")
                if column > 1:
                    axes.set_yscale("log")
                    axes.set_ylim(1e-2, 1e2)
                what = "draws" if column < 2 else "density"
                axes.set_ylabel(f"{_WORDS[kind]}\n{what}" if column == 0 else what)
                axes.set_title(f"({'abcd'[column]}) {panel}", loc="left")
        lines, names = grid[2].get_legend_handles_labels()
        figure.legend(lines, names, loc="outside lower center", ncols=4)
        return figure

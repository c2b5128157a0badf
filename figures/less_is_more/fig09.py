"""Figure 9: the expected loss against the dimension."""

from __future__ import annotations

from typing import Any

from dpassay.figures import quantities, style
from dpassay.figures.description import Description, Settings
from dpassay.figures.less_is_more import calibrations
from dpassay.figures.table import Table, label, number

DESCRIPTION = Description(
    number="Figure 9",
    title="Expected loss against the dimension M at Δ = 1, δ = 1e-10",
    plotted="E‖n‖² for ε = 1e-7, 1e-8, 1e-9. (a) As printed: σ_* of Theorem 5, the classic Mσ² of "
    "Theorem 1, the analytic Mσ² of Theorem 2. (b) As verified: the least noise with which "
    "each mechanism is really (ε, δ)-DP.",
    says="The losses of the Gaussian mechanisms grow with M; that of R1SMG falls and converges to "
    "2Δ²/ε: the curse of full-rank covariances is broken.",
    quote="as M increases, the expected accuracy loss incurred by the R1SMG mechanism (i.e., "
    "Tr[Π] = σ*) decreases and converges to 2(Δ₂f)²/ϵ",
    where="Appendix B",
    alt="Left: rising lines of the two Gaussian mechanisms above nearly level lines of R1SMG. "
    "Right: all lines rise; R1SMG lies a factor of thousands to millions above the Gaussian ones.",
    claims=(
        "appendix-b/linear", "appendix-b/parameters", "appendix-b/converges", "appendix-b/dp",
        "appendix-b/dp/r1smg", "appendix-b/dp/needed", "theorem-7/decreasing", "theorem-7/limit",
        "theorem-7/as-low-as",
    ),
    differs="Panel (b) is added. The classic formula is far from least at these ε, and R1SMG with "
    "the printed σ_* is not (ε, δ)-DP at any of the plotted M.",
)  # fmt: skip
_DELTA = "1e-10"
_EPSILONS = ("1e-7", "1e-8", "1e-9")
_MECHANISMS = ("R1SMG", "classic Gaussian", "analytic Gaussian")


def compute(settings: Settings) -> Table:
    """Tabulate the losses by the formulas and by the exact guarantee."""
    rows: list[tuple[object, ...]] = []
    dimensions = [round(m) for m in quantities.geometric(100, 10**6, settings.pick(5, 17))]
    verified_dimensions = settings.pick([100, 10**6], [100, 10**4, 10**6], dimensions)
    delta = float(_DELTA)
    for eps in _EPSILONS:
        epsilon = float(eps)
        exact = calibrations.analytic_deviation(eps, _DELTA) ** 2
        classic = calibrations.classic_deviation(epsilon, delta) ** 2
        for m in dimensions:
            printed = calibrations.sigma_star_of_theorem_5(m, epsilon, delta)
            losses = (printed, m * classic, m * exact)
            for mechanism, loss in zip(_MECHANISMS, losses, strict=True):
                rows.append(("printed", mechanism, eps, m, loss))
            rows.append(("verified", "Gaussian", eps, m, m * exact))
        for m in settings.pick(verified_dimensions if eps == "1e-7" else [], verified_dimensions):
            least = calibrations.exact_sigma_star(m, eps, _DELTA)
            rows.append(("verified", "R1SMG", eps, m, least))
    columns = (
        label("panel"), label("mechanism"), label("epsilon"), number("M", "coordinates"),
        number("loss", "Δ²", relative=1e-5),
    )  # fmt: skip
    return Table.of(columns, rows, delta=_DELTA)


def _one_line(table: Table, where: dict[str, Any]) -> bool:
    """Whether the losses for all ε are within a factor 2: a line on an axis of thirty decades."""
    losses: dict[float, list[float]] = {}
    for eps in table.distinct("epsilon", **where):
        for m, loss in zip(*table.points("M", "loss", epsilon=eps, **where), strict=True):
            losses.setdefault(m, []).append(loss)
    several = [found for found in losses.values() if len(found) > 1]
    return bool(several) and all(max(found) < 2 * min(found) for found in several)


def draw(table: Table) -> style.Figure:
    """Draw both panels."""
    from matplotlib.lines import Line2D

    dashes: dict[str, Any] = {"1e-7": "solid", "1e-8": (0, (5, 2)), "1e-9": (0, (1, 1.5))}
    looks = dict(zip((*_MECHANISMS, "Gaussian"), [*style.CURVES[:3], style.CURVES[2]], strict=True))
    with style.panels(1, 2, height=3.6, share_y=True) as (figure, grid):
        for axes, panel in zip(grid, ("printed", "verified"), strict=True):
            names = table.distinct("mechanism", panel=panel)
            for name in names:
                look = looks[str(name)]
                where = {"panel": panel, "mechanism": name}
                apart = table.distinct("epsilon", **where)
                if _one_line(table, where):
                    apart = apart[:1]
                    xs, ys = table.points("M", "loss", epsilon=apart[0], **where)
                    style.tag(axes, (xs[0], ys[0]), "one line for the three ε", shift=(0, 24))
                for eps in apart:
                    xs, ys = table.points("M", "loss", epsilon=eps, **where)
                    marked = look.marked(len(xs), marks=5) | {"linestyle": dashes[str(eps)]}
                    axes.plot(xs, ys, **marked)
            keys = [Line2D([], [], label=str(n), **looks[str(n)].dots()) for n in names]
            if panel == "printed":
                both = keys + [
                    Line2D([], [], color="0.3", linestyle=dash, label=f"ε = {eps}")
                    for eps, dash in dashes.items()
                ]
            axes.set(xscale="log", yscale="log", xlabel="M (coordinates)")
        grid[0].set(ylim=(1e6, 1e36), ylabel="E‖n‖² (Δ²)")
        style.letter(grid, calibrations.KINDS.values())
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
            f"{grow['printed']:.2g}-fold from M = {ms[0]:g} to {ms[-1]:.0e}. The loss that privacy "
            f"takes is {grow['verified']:.0e}-fold, and {ys[-1] / gaussian:.0e} times that of "
            f"Gaussian noise at ε = {_EPSILONS[0]}",
        )
        return figure

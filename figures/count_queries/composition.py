"""Many releases: what the paper leaves open."""

from __future__ import annotations

from fractions import Fraction

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.mechanisms import Composed
from dpassay.accountant.questions import profile
from dpassay.figures import quantities, style
from dpassay.figures.count_queries import laws
from dpassay.figures.description import Description, Settings
from dpassay.figures.table import Table, label, number

DESCRIPTION = Description(
    number="Section V, the open question",
    title="Composition over several counts",
    plotted="The exact δ(ε) of 1, 2, 4 and 8 releases together: Definition 2 for ε = 1.1, η = 0.5, "
    "D = 6, the law of least exact δ of one there, the discrete Gaussian of the same variance, the "
    "geometric law with P(Z = 0) = η.",
    says="How the guarantee degrades under many queries is left open.",
    quote="it is essential to determine how privacy degrades as the number of queries increases",
    where="Section V",
    alt="Four panels of profiles falling with ε. Definition 2 and the optimum fall towards a "
    "floor, k times the probability of the largest error; the discrete Gaussian falls on, and the "
    "geometric law ends at k·ln 3. For 1 and 2 releases the bounded laws are far below the "
    "discrete Gaussian beyond k·1.1; for 8 the discrete Gaussian is the lowest everywhere.",
    claims=("section-5/composition", "section-5/composition/eight", "section-5/guarantee"),
    assumptions=("ε = 1.1, η = 0.5, D = 6 for each release.",),
    differs="The paper has no such plot. Noise that is bounded cannot have δ = 0 for any ε.",
)
_EPSILON, _ETA, _SUPPORT = "1.1", "1/2", 6
_COUNTS = (1, 2, 4, 8)
_WIDTH = Fraction(1, 10**9)
_LEAST = 1e-5
"""Least δ that is drawn."""


def compute(settings: Settings) -> Table:
    """Tabulate the exact profiles of the compositions."""
    noise = laws.bounded(_EPSILON, _ETA, _SUPPORT)
    compared: dict[str, Mechanism] = {
        "Definition 2": noise,
        f"least δ of one at ε = {_EPSILON}": laws.optimum(_EPSILON, _ETA, _SUPPORT)[1],
        "discrete Gaussian, same variance": laws.same_variance(laws.variance(noise)),
        "geometric, same P(Z = 0)": laws.geometric(0.5),
    }
    counts = settings.pick(_COUNTS[:3], _COUNTS)
    rows: list[tuple[object, ...]] = []
    for count in counts:
        for name, mechanism in compared.items():
            whole = Composed(mechanism, count)
            for point in quantities.spaced(0, 1.25 * count + 1, settings.pick(10, 41)):
                eps = f"{point:.6f}"
                found = profile.delta(
                    whole, eps, adjacency=Adjacency.ADD_REMOVE, relative_width=_WIDTH
                )
                value = float((found.lower + found.upper) / 2)
                rows.append((count, name, eps, laws.shown(value)))
    columns = (
        number("releases", "1"), label("curve"), number("epsilon", "nats"),
        number("delta", "probability", relative=1e-7),
    )  # fmt: skip
    return Table.of(
        columns, rows, epsilon=_EPSILON, eta=_ETA, support=_SUPPORT, releases=list(counts)
    )


def draw(table: Table) -> style.Figure:
    """Draw one panel for each number of releases."""
    counts = sorted(set(table.numbers("releases")))
    with style.panels(1, len(counts), height=3.1, share_y=True) as (figure, grid):
        for axes, count in zip(grid, counts, strict=True):
            style.curves(axes, table, "epsilon", "delta", looks=laws.LOOKS, releases=count)
            axes.set_xlabel("ε (nats)")
        grid[0].set(yscale="log", ylim=(_LEAST, 1), ylabel="exact δ(ε)")
        for axes, count in zip(grid, counts, strict=True):
            style.fall(axes, table, "epsilon", "delta", looks=laws.LOOKS, releases=count)
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

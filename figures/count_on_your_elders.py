"""Figures of Andersson, Pagh and Torkamani, Count on Your Elders.

Mean squared errors of continual counting: trees of Laplace noise, and Gaussian factorisations.

The square-root factorisation A = M² of the lower-triangular ones has M Toeplitz with the entries
C(2j, j)/4ʲ. With S_m = Σ_{j<m} (C(2j, j)/4ʲ)² the largest column of M has norm² S_n, and output m
has variance σ²·S_n·S_m where σ is the deviation of a Gaussian mechanism of sensitivity 1, so

    MSE = σ² · S_n · (1/n) Σ_{m ≤ n} S_m.

Henzinger, Upadhyay and Upadhyay bound it by C²(1 + ln(4n/5)/π)², C = (2/ε)√(4/9 + ln(√(2/π)/δ)).

Trees and the vertices that make up a prefix sum: tables and drawings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dpassay.accountant.budget.calibrate import EpsilonDelta, calibrate
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.counting.counters import LinearCounter
from dpassay.accountant.counting.grids import Digits, Tree, honaker_mean_squared_error
from dpassay.accountant.mechanisms import (
    BridgedTree,
    DelannoyCounter,
    Gaussian,
    LaplaceVector,
    SmoothBinary,
)
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.questions import profile
from dpassay.figures import quantities, style
from dpassay.figures.description import Description, Plot, Settings
from dpassay.figures.table import Column, Table, label, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray


def tree_error(arity: int, steps: int, *, signed: bool) -> float:
    """Return the mean squared error of a k-ary tree, times ε²."""
    return float(Tree(arity, steps, Digits.SIGNED if signed else Digits.PLAIN).mean_squared_error())


def root_factor(steps: int) -> float:
    """Return S_n·(1/n) Σ_{m ≤ n} S_m, the error of the square-root factorisation over σ²."""
    sums, means = _root_sums(1 << max(0, steps - 1).bit_length())
    return float(sums[steps - 1] * means[steps - 1])


@lru_cache(maxsize=2)
def _root_sums(steps: int) -> tuple[NDArray[Any], NDArray[Any]]:
    import numpy as np

    j = np.arange(1, steps)
    entries = np.concatenate([[1.0], np.cumprod((2 * j - 1) / (2 * j))])
    sums = np.cumsum(entries**2)
    return sums, np.cumsum(sums) / np.arange(1, steps + 1)


def printed_threshold(steps: int, error: float) -> float:
    """Return ln(1/δ) for which the bound is a given error, times ε²."""
    square = error / (1 + math.log(4 * steps / 5) / math.pi) ** 2
    return square / 4 - 4 / 9 - math.log(math.sqrt(2 / math.pi))


COLUMNS: tuple[Column, ...] = (
    label("panel"), number("level", "levels above the leaves"), number("first", "inputs"),
    number("last", "inputs"), number("parent_middle", "inputs"), number("sign", "1"),
)  # fmt: skip


def vertices(panel: str, tree: Tree, height: int, step: int) -> Iterator[tuple[object, ...]]:
    """Yield every vertex with the inputs below it and the sign with which a prefix has it.

    The sign is 1 if the vertex is added, −1 if it is subtracted, 0 if it is not used.
    """
    signs = {
        (min(before, after), max(before, after)): 1 if after > before else -1
        for at, before, after in tree.moves()
        if at == step
    }
    k = tree.arity
    for level in range(height + 1):
        size = k**level
        for index in range(k ** (height - level)):
            first, last = index * size, (index + 1) * size
            above = None if level == height else (index // k + 0.5) * size * k
            yield panel, level, first, last, above, signs.get((first, last), 0)


def tree_of(arity: int, steps: int, *, signed: bool) -> Tree:
    """Return the tree with or without subtraction."""
    return Tree(arity, steps, Digits.SIGNED if signed else Digits.PLAIN)


def draw(axes: Axes, table: Table, panel: str, step: int) -> None:
    """Draw a tree with the used vertices marked, and the prefix below the leaves."""
    names = ("level", "first", "last", "sign")
    cells = zip(*(table.numbers(name, panel=panel) for name in names), strict=True)
    top = max(table.numbers("level", panel=panel))
    marks = {
        1.0: ("o", style.CURVES[0].colour, 6.5, "added"),
        -1.0: ("X", style.CURVES[3].colour, 7.5, "subtracted"),
        0.0: ("o", "0.8", 3.0, None),
    }
    named: set[str | None] = {None}
    above = table.column("parent_middle", panel=panel)
    for (level, first, last, sign), parent in zip(cells, above, strict=True):
        middle = (first + last) / 2
        if isinstance(parent, float):
            axes.plot([middle, parent], [level, level + 1], color="0.8", linewidth=0.6, zorder=1)
        marker, colour, size, name = marks[sign]
        text = None if name in named else name
        named.add(name)
        look: dict[str, Any] = {"color": colour, "markersize": size, "markeredgewidth": 0}
        axes.plot([middle], [level], marker, label=text, zorder=3, linestyle="none", **look)
        if sign:
            shade: dict[str, Any] = {"color": colour, "alpha": 0.25, "linewidth": 0}
            axes.fill_between([first + 0.1, last - 0.1], level - 0.3, level - 0.16, **shade)
    axes.plot([0, step], [-0.7, -0.7], color="black", linewidth=2, solid_capstyle="butt")
    axes.text(step / 2, -1.15, f"prefix of {step} inputs", ha="center", va="center")
    axes.set(
        ylim=(-1.5, top + 0.3),
        yticks=range(int(top) + 1),
        xlabel="inputs (time steps)",
        ylabel="level",
    )
    axes.grid(visible=False)
    axes.legend(loc="upper left", title="vertices")


_ABOUT_1 = Description(
    number="Figure 1",
    title="A prefix sum in a k-ary tree",
    plotted="A ternary tree of height 3 and the vertices that Algorithm 1 adds for the prefix of "
    "23 inputs, 23 = 2·9 + 1·3 + 2.",
    says="The k-ary digits of the time step say how many vertices are added on each level.",
    quote="expressing a time step … as a …-ary number … gives a direct means of computing which "
    "vertices contribute to a given prefix sum",
    where="Section 1.2",
    alt="A tree with 27 leaves. Marked are two vertices of level 2, one of level 1 and two leaves: "
    "together they lie above the inputs 1 to 23.",
    claims=("proposition-4-1", "figures-1-and-2"),
    assumptions=("The drawing is not in the text at hand: arity 3, height 3, time step 23.",),
)
_ARITY, _HEIGHT, _STEP = 3, 3, 23
_PANEL = "without subtraction"


def _compute_1(settings: Settings) -> Table:
    del settings
    tree = tree_of(_ARITY, _ARITY**_HEIGHT - 1, signed=False)
    rows = vertices(_PANEL, tree, _HEIGHT, _STEP)
    return Table.of(COLUMNS, rows, arity=_ARITY, height=_HEIGHT, step=_STEP)


def _draw_1(table: Table) -> style.Figure:
    with style.panels(height=2.4) as (figure, (axes,)):
        draw(axes, table, _PANEL, _STEP)
        used = sum(sign != 0 for sign in table.numbers("sign"))
        style.finding(
            figure,
            f"The sum of {_STEP} inputs takes {used} noisy vertices of the tree, at most "
            f"k − 1 = {_ARITY - 1} on a level",
        )
        return figure


_ABOUT_2 = Description(
    number="Figure 2",
    title="The same prefix sum with and without subtraction",
    plotted="The vertices that make up the prefix of 9 inputs in a tree of arity 5 and height 2: "
    "9 = 1·5 + 4 without subtraction, 9 = 2·5 − 1 with it.",
    says="Instead of k − 1 leftmost children one may add the parent and subtract the rightmost "
    "child: at most (k − 1)/2 vertices per level instead of k − 1.",
    quote="if you need to add … left-children for an estimate, you might as well add the parent "
    "and subtract the … right-most children",
    where="Section 3.3",
    alt="Two trees with 25 leaves. On the left one vertex of level 1 and four leaves are added, on "
    "the right two vertices of level 1 are added and one leaf is subtracted.",
    claims=("section-3-3/half-vertices", "proposition-4-1", "figures-1-and-2"),
    assumptions=("The drawing is not in the text at hand: arity 5, height 2, time step 9.",),
)
_ARITY_2, _HEIGHT_2, _STEP_2 = 5, 2, 9
_PANELS = {"without subtraction": False, "with subtraction": True}


def _compute_2(settings: Settings) -> Table:
    del settings
    steps = (_ARITY_2**_HEIGHT_2 - 1) // 2
    rows = [
        row
        for panel, signed in _PANELS.items()
        for row in vertices(panel, tree_of(_ARITY_2, steps, signed=signed), _HEIGHT_2, _STEP_2)
    ]
    return Table.of(COLUMNS, rows, arity=_ARITY_2, height=_HEIGHT_2, step=_STEP_2)


def _draw_2(table: Table) -> style.Figure:
    with style.panels(1, 2, height=2.4, share_y=True) as (figure, grid):
        for axes, panel in zip(grid, _PANELS, strict=True):
            draw(axes, table, panel, _STEP_2)
        style.letter(grid, list(_PANELS))
        plain, signed = (
            sum(sign != 0 for sign in table.numbers("sign", panel=panel)) for panel in _PANELS
        )
        style.finding(
            figure,
            f"Subtraction: {signed} noisy vertices instead of {plain} for the same {_STEP_2} "
            "inputs",
        )
        return figure


_ABOUT_ERROR_BY_LENGTH = Description(
    number="Theorem 1.1, Theorem 3.7 and Section 1.3",
    title="Error of continual counting against n",
    plotted="The exact mean squared error at ε = 1: the binary tree, Honaker's estimates, the best "
    "arities with and without subtraction, and the square-root factorisation with Gaussian noise "
    "of the least deviation that is (1, δ)-DP. Then, over lg(n)³, k-ary trees of several arities "
    "without and with subtraction, and three other counters with Laplace noise.",
    says="k = 19 with subtraction has the leading constant 0.1236, k = 17 without it 0.2343, the "
    "binary tree 1; 19 improves on Honaker Online by a factor of more than 4.",
    quote="In relation to Honaker Online, this is a constant improvement by more than a factor "
    "4.",
    where="after Corollary 4.9",
    alt="Four log-scale panels. In the first the binary tree is highest, then Honaker, then the "
    "17-ary tree, then the 19-ary tree with subtraction, which lies between the Gaussian "
    "factorisations at δ = 10⁻⁶ and 10⁻¹². In the next two the error over lg(n)³ jumps up at "
    "each capacity and falls between them, to 0.23 without and 0.14 with subtraction for the best "
    "arities. In the last the bridged grids reach 0.10, below every tree of the paper.",
    claims=(
        "theorem-1-1/mse", "theorem-3-7/mse", "section-1-3/honaker-factor-2",
        "corollary-4-9/0.1236", "corollary-4-9/factor-4", "corollary-4-9/factor-4/finite",
        "section-3-2/k-17/value",
    ),
    assumptions=("ε = 1 and δ = 10⁻⁶, 10⁻¹² for the Gaussian factorisation.",),
    differs="The paper has no such plot. The factor 4 is one of leading constants: at n = 10⁶ the "
    "exact errors of Honaker and k = 19 differ by 3.74. The last panel has Andersson "
    "and Pagh's smooth binary tree, and two counters that the paper does not have: grids that are "
    "closed up level by level, and chains in an ℓ1 ball.",
)  # fmt: skip
_PLAIN = (2, 3, 5, 9, 17, 33)
_SIGNED = (3, 5, 9, 19, 20, 39)
_DELTAS = ("1e-6", "1e-12")
_LEVELS = range(2, 13)
_WITHOUT, _WITH, _ALL = "without subtraction", "with subtraction", "mechanisms"
_SINCE = "beyond the paper"
_LOOKS = {"k = 3": style.Curve("0.4", "solid", "")} | dict(zip((
    "binary tree", "Honaker", "k = 17", "k = 19, subtraction", "Gaussian, δ = 1e-6",
    "Gaussian, δ = 1e-12", "smooth binary tree", "bridged grids, k = 17", "chains, best height",
), style.CURVES, strict=True))  # fmt: skip
"""One look for each counter, in both panels that have it."""
_NAMED = {_WITHOUT: {"k = 2": "binary tree", "k = 17": "k = 17"},
          _WITH: {"k = 3": "k = 3", "k = 19": "k = 19, subtraction"}}  # fmt: skip
"""Arities that are drawn in full and named; the others are grey."""


def _compute_error_by_length(settings: Settings) -> Table:
    last = settings.pick(10**5, 10**6, 10**7)
    grid = quantities.geometric(10, last, settings.pick(41, 161))
    steps = sorted({round(n) for n in grid})
    rows: list[tuple[object, ...]] = []
    for n in steps:
        rows.append((_ALL, "binary tree", n, tree_error(2, n, signed=False)))
        rows.append((_ALL, "Honaker", n, honaker_mean_squared_error(n)))
        rows.append((_ALL, "k = 17", n, tree_error(17, n, signed=False)))
        rows.append((_ALL, "k = 19, subtraction", n, tree_error(19, n, signed=True)))
    for delta in _DELTAS:
        variance = float(calibrate("Gaussian", EpsilonDelta(1, delta)).least.lower) ** 2
        name = f"Gaussian, δ = {delta}"
        rows += [(_ALL, name, n, variance * root_factor(n)) for n in reversed(steps)]
    for panel, arities, signed in ((_WITHOUT, _PLAIN, False), (_WITH, _SIGNED, True)):
        for k in arities:
            rows += [
                (panel, f"k = {k}", n, tree_error(k, n, signed=signed) / math.log2(n) ** 3)
                for n in steps
            ]
    for n in steps:
        cube = math.log2(n) ** 3
        found = {
            "k = 19, subtraction": tree_error(19, n, signed=True),
            "smooth binary tree": _exact(SmoothBinary(n, epsilon=1)),
            "bridged grids, k = 17": _exact(BridgedTree(n, _arities(17, n), epsilon=1)),
            "chains, best height": min(
                _exact(DelannoyCounter(n, s, epsilon=1)) for s in _LEVELS if s <= n
            ),
        }
        rows += [(_SINCE, name, n, error / cube) for name, error in found.items()]
    columns = (label("panel"), label("curve"), number("n", "inputs"), number("error", "inputs²"))
    return Table.of(columns, rows, epsilon=1, deltas=list(_DELTAS), largest_n=last)


def _arities(arity: int, steps: int) -> list[int]:
    """Return as many equal arities as the stream needs."""
    height = 1
    while arity**height < steps:
        height += 1
    return [arity] * height


def _exact(counter: LinearCounter) -> float:
    """Return the mean squared error at ε = 1, which is rational."""
    error = counter.exact_mean_squared_error().rational
    assert error is not None
    return float(error)


def _draw_error_by_length(table: Table) -> style.Figure:
    panels = (_ALL, _WITHOUT, _WITH, _SINCE)
    with style.panels(2, 2, height=5.9) as (figure, grid):
        for axes, panel in zip(grid, panels, strict=True):
            for curve in table.distinct("curve", panel=panel):
                xs, ys = table.points("n", "error", panel=panel, curve=curve)
                name = str(curve)
                if panel in _NAMED and name not in _NAMED[panel]:
                    axes.plot(xs, ys, color="0.8", linewidth=0.7, zorder=1)
                    continue
                look = _LOOKS[_NAMED.get(panel, {}).get(name, name)]
                axes.plot(xs, ys, label=name, linewidth=1.0, **look.marked(len(xs), marks=5))
                if panel in _NAMED:
                    style.tag(axes, (xs[-1], ys[-1]), name, shift=(3, -3))
            axes.set(xscale="log", yscale="log", xlabel="n (inputs)")
        grid[0].set_ylabel("mean squared error at ε = 1 (inputs²)")
        for axes in grid[1:]:
            axes.set(ylim=(0.07, 3), ylabel="mean squared error · ε²/lg(n)³")
        style.key(figure, (grid[0], grid[3]), 3)
        titles = (_ALL, *(f"{p}; grey: other arities" for p in panels[1:3]), _SINCE)
        style.letter(grid, titles)
        n = max(table.numbers("n"))
        binary, honaker, best = table.values(
            "error", "curve", ("binary tree", "Honaker", "k = 19, subtraction"), panel=_ALL, n=n
        )
        ours, bridged = table.values(
            "error", "curve", ("k = 19, subtraction", "bridged grids, k = 17"), panel=_SINCE, n=n
        )
        style.finding(
            figure,
            f"At n = {n:,.0f} the tree with k = 19 has {binary / best:.1f} times less error than "
            f"the binary tree and {honaker / best:.2f} times less than Honaker, in the limit more "
            f"than 4 (Corollary 4.9); bridged grids {ours / bridged:.2f} times less still",
        )
        return figure


_ABOUT_ERROR_BY_ARITY = Description(
    number="Corollary 4.9, Section 3.2 and Appendix C",
    title="Error against the arity k",
    plotted="Left: the leading constants (k−1)/lg(k)³ without subtraction, k(1−1/k²)/(2 lg(k)³) "
    "for odd and k/(2 lg(k)³) for even k with it. Right: the exact mean squared error with "
    "subtraction for three lengths of the stream, relative to the best arity.",
    says="The constants are least at k = 17, k = 19 (0.1236) and k = 20; even k performs worse.",
    quote="Algorithm 2 achieves a mean squared error that scales as …, and which is minimized "
    "for … yielding …",
    where="Corollary 4.9",
    alt="Left: three flat valleys, without subtraction with its minimum at 17, with subtraction "
    "half as high with minima at 19 and 20, marked. Right: the exact errors jump between 1 and "
    "several times the best; the best odd k and the best k of all are marked in the title.",
    claims=(
        "section-3-2/k-17", "corollary-4-9/k-19", "corollary-c-3/k-20",
        "corollary-4-9/k-19/finite", "claim-1/worse/finite", "claim-1/worse/million",
        "appendix-c/scaling-worse",
    ),
    differs="The paper has no such plot. The exact error at a given n is least at other arities, "
    "and often at an even one.",
)  # fmt: skip
_LARGEST = 48
"""Largest arity that is drawn: the best one is far below."""
_STEPS = (1000, 10_000, 1_000_000)


def _compute_error_by_arity(settings: Settings) -> Table:
    del settings
    arities = range(2, _LARGEST + 1)
    rows: list[tuple[object, ...]] = []
    for k in arities:
        cube = math.log2(k) ** 3
        rows.append(("constant", "without subtraction", k, (k - 1) / cube))
        if k % 2:
            rows.append(("constant", "odd k, subtraction", k, k * (1 - 1 / k**2) / (2 * cube)))
        else:
            rows.append(("constant", "even k, subtraction", k, k / (2 * cube)))
    for n in _STEPS:
        found = {k: tree_error(k, n, signed=True) for k in arities}
        least = min(found.values())
        rows += [("exact", f"n = {n}", k, error / least) for k, error in found.items()]
    columns = (label("panel"), label("curve"), number("k", "children"), number("error", "1"))
    return Table.of(columns, rows, n=list(_STEPS))


def _draw_error_by_arity(table: Table) -> style.Figure:
    with style.panels(1, 2, height=2.8) as (figure, (left, right)):
        for axes, panel in ((left, "constant"), (right, "exact")):
            for look, curve in zip(
                style.CURVES, table.distinct("curve", panel=panel), strict=False
            ):
                xs, ys = table.points("k", "error", panel=panel, curve=curve)
                axes.plot(xs, ys, label=str(curve), markersize=3, **look.dots())
                lowest = ys.index(min(ys))
                axes.plot([xs[lowest]], [ys[lowest]], look.marker, color=look.colour, markersize=7)
                if panel == "constant":
                    text = f"k = {xs[lowest]:g}: {ys[lowest]:.4f}"
                    offset = (-30, -14 if "odd" in str(curve) else 8)
                    axes.annotate(
                        text, (xs[lowest], ys[lowest]), textcoords="offset points", xytext=offset
                    )
            axes.set_xlabel("k (children per vertex)")
        left.set(ylim=(0.05, 0.5), ylabel="leading constant of MSE·ε²/lg(n)³")
        right.set(ylim=(0.9, 4), ylabel="mean squared error over the least")
        left.legend(loc="upper right")
        right.legend(loc="upper right", title="large mark: best k")
        style.letter((left, right), ("constants", "exact, with subtraction"))
        best = []
        for curve in table.distinct("curve", panel="exact"):
            points = list(zip(*table.points("k", "error", panel="exact", curve=curve), strict=True))
            odd = min((p for p in points if p[0] % 2), key=lambda p: p[1])[0]
            best.append(f"{odd:g} ({min(points, key=lambda p: p[1])[0]:g}) at {curve}")
        style.finding(
            figure,
            "Of odd k, 19 has the least leading constant (Corollary 4.9). The exact error is least "
            f"at other odd k (of all k): {', '.join(best)}",
        )
        return figure


_ABOUT_CROSSOVER = Description(
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


def _compute_crossover(settings: Settings) -> Table:
    last = settings.pick(10**5, 10**6, 10**7)
    grid = quantities.geometric(10, last, settings.pick(25, 61))
    rows: list[tuple[object, ...]] = []
    for n in sorted({round(n) for n in grid}, reverse=True):
        nineteen = tree_error(19, n, signed=True)
        best = min(tree_error(k, n, signed=True) for k in _ARITIES)
        for name, error in (("k = 19", nineteen), ("best k", best)):
            loss = printed_threshold(n, error)
            rows.append((f"printed bound, {name}", n, -loss / math.log(10)))
        for eps in ("1", "0.1"):
            variance = best / root_factor(n) / float(eps) ** 2
            noise = Gaussian(standard_deviation=exact(math.sqrt(variance)))
            found = profile.log_delta(noise, eps, relative_width=quantities.WIDTH)
            rows.append((f"exact, best k, ε = {eps}", n, float(found.lower) / math.log(10)))
        rows += [(f"n^(−{power})", n, -power * math.log10(n)) for power in _ASYMPTOTIC]
    columns = (label("curve"), number("n", "inputs"), number("lg_delta", "decades"))
    return Table.of(columns, rows, epsilons=["1", "0.1"], arities="2 to 64", largest_n=last)


def _draw_crossover(table: Table) -> style.Figure:
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


_ABOUT_LAPLACE_VARIANCE = Description(
    number="Lemma 5.4 and Corollary 5.5",
    title="Price of Laplace noise for ℓ2 sensitivity",
    plotted="The variance 2λ² of Lemma 5.4's Laplace noise over that of the classic Gaussian "
    "mechanism σ² = 2 ln(1.25/δ)/ε² and over that of the analytic one, against δ.",
    says="The ratio tends to 2 as ε/ln(1/δ) → 0: only a constant factor higher.",
    quote="The variance needed for using Laplace noise instead of Gaussian noise for …-DP is "
    "only a constant factor higher whenever …, and the constant approaches … as … approaches "
    "zero.",
    where="before Corollary 5.5",
    alt="Left: the ratio to the classic mechanism stays below 2.9 and tends to 2 for small δ. "
    "Right: the ratio to the analytic mechanism is between 2 and 4 for ε = 1 and δ below 10⁻⁵, but "
    "12 for ε = 0.001 there, and grows to millions for large δ; for small δ it falls towards 2.",
    claims=(
        "lemma-5-4", "lemma-5-4/loose", "corollary-5-5/variance", "corollary-5-5/limit",
        "corollary-5-5/ratio-2", "corollary-5-5/ratio-2/wording",
        "corollary-5-5/ratio-2/corrected",
        "abstract/gaussian-replaceable", "abstract/gaussian-replaceable/small-epsilon",
    ),
    assumptions=("ε = 1, 0.1, 0.01 and 0.001.",),
    differs="The paper has no such plot. For fixed δ the ratio to the classic mechanism tends to "
    "2 ln(1/δ)/ln(1.25/δ), and to the analytic one it has no bound as ε → 0.",
)  # fmt: skip
_PRACTICAL = 1e-5
"""The δ that the title is about."""
_EPSILONS = ("1", "0.1", "0.01", "0.001")


def _compute_laplace_variance(settings: Settings) -> Table:
    decades = quantities.spaced(0.1, 30, settings.pick(31, 121))
    rows: list[tuple[object, ...]] = []
    for eps in _EPSILONS:
        for decade in decades:
            text = f"{10**-decade:.6e}"
            delta, loss = float(text), math.log(1 / float(text))
            number_of = float(eps)
            laplace = ((math.sqrt(loss + number_of) + math.sqrt(loss)) / number_of) ** 2
            classic = 2 * math.log(1.25 / delta) / number_of**2
            found = calibrate("Gaussian", EpsilonDelta(eps, text)).least
            analytic = float(found.lower) ** 2
            rows.append((f"ε = {eps}", delta, laplace / classic, laplace / analytic))
    columns = (
        label("curve"), number("delta", "probability"), number("over_classic", "1"),
        number("over_analytic", "1"),
    )  # fmt: skip
    return Table.of(columns, rows, epsilons=list(_EPSILONS), l2_sensitivity=1)


def _draw_laplace_variance(table: Table) -> style.Figure:
    with style.panels(1, 2, height=3.1) as (figure, grid):
        for axes, name in zip(grid, ("over_classic", "over_analytic"), strict=True):
            style.curves(axes, table, "delta", name)
            axes.axhline(2, color="0.5", linewidth=0.8, zorder=1)
            axes.set(
                xscale="log", xlim=(1e-30, 1), xlabel="δ (probability)", ylabel="variance ratio"
            )
        grid[0].set_ylim(0, 3)
        grid[1].set_yscale("log")
        style.key(figure, grid[:1])
        practical = [d for d in table.numbers("delta", curve="ε = 0.001") if d <= _PRACTICAL]
        ratio = table.value("over_analytic", curve="ε = 0.001", delta=max(practical))
        style.finding(
            figure,
            f"Laplace noise costs up to twice the variance of the classic formula in the limit of "
            f"Corollary 5.5; at ε = 0.001, δ = {max(practical):.0e} it costs {ratio:.1f} times the "
            "variance that Gaussian noise needs",
        )
        style.letter(grid, ("over the classic Gaussian", "over the analytic Gaussian"))
        return figure


_ABOUT_LAPLACE_GUARANTEE = Description(
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


def _compute_laplace_guarantee(settings: Settings) -> Table:
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


def _draw_laplace_guarantee(table: Table) -> style.Figure:
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


PLOTS = {
    "1": Plot(_ABOUT_1, _compute_1, _draw_1),
    "2": Plot(_ABOUT_2, _compute_2, _draw_2),
    "error-by-length": Plot(
        _ABOUT_ERROR_BY_LENGTH, _compute_error_by_length, _draw_error_by_length
    ),
    "error-by-arity": Plot(_ABOUT_ERROR_BY_ARITY, _compute_error_by_arity, _draw_error_by_arity),
    "crossover": Plot(_ABOUT_CROSSOVER, _compute_crossover, _draw_crossover),
    "laplace-variance": Plot(
        _ABOUT_LAPLACE_VARIANCE, _compute_laplace_variance, _draw_laplace_variance
    ),
    "laplace-guarantee": Plot(
        _ABOUT_LAPLACE_GUARANTEE, _compute_laplace_guarantee, _draw_laplace_guarantee
    ),
}
"""By the part of an id after the paper."""

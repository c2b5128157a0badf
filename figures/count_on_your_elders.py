"""Figures of Andersson, Pagh and Torkamani, Count on Your Elders.

They show mean squared errors of continual counting, by trees with Laplace noise and by Gaussian
factorisations. The square-root factorisation of the lower-triangular all-ones matrix, A = M², has a
Toeplitz matrix M with entries C(2j, j)/4ʲ. Let S_m = Σ_{j<m} (C(2j, j)/4ʲ)². The largest column of
M has squared norm S_n. If σ is the standard deviation of a Gaussian mechanism of sensitivity 1,
output m has variance σ²·S_n·S_m, so

    MSE = σ² · S_n · (1/n) Σ_{m ≤ n} S_m.

Henzinger, Upadhyay and Upadhyay bound it by C²(1 + ln(4n/5)/π)², C = (2/ε)√(4/9 + ln(√(2/π)/δ)).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.counting.counters import LinearCounter
from dpassay.accountant.counting.grids import Digits, Tree, honaker_mean_squared_error
from dpassay.accountant.mechanisms import BridgedTree, Gaussian, LaplaceVector
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.questions import profile
from dpassay.figures import quantities, style
from dpassay.figures.description import Plots, Settings
from dpassay.figures.table import Table, columns_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray


def tree(arity: int, steps: int, *, signed: bool) -> Tree:
    """Return the k-ary tree, with subtraction if `signed`."""
    return Tree(arity, steps, Digits.SIGNED if signed else Digits.PLAIN)


def tree_error(arity: int, steps: int, *, signed: bool) -> float:
    """Return the mean squared error of a k-ary tree, times ε²."""
    return float(tree(arity, steps, signed=signed).mean_squared_error())


def smooth_binary_error(steps: int) -> float:
    """Return the mean squared error of Andersson and Pagh's smooth binary tree (2023), times ε².

    The inputs are at those leaves whose h binary digits have as many ones as zeros, for the least h
    with at least n + 1 such leaves. An output is the sum of h/2 vertices. The first input is below
    the vertices 0^i; such a vertex is used by an output if at most n of the leaves begin with 0^i.
    """
    half = 1
    while math.comb(2 * half, half) <= steps:
        half += 1
    used = sum(math.comb(2 * half - i, half) <= steps for i in range(1, half + 1))
    return 2.0 * half * used**2


def root_factor(steps: int) -> float:
    """Return S_n·(1/n) Σ_{m ≤ n} S_m, the error of the square-root factorisation at σ = 1."""
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
    """Return the ln(1/δ) at which the printed bound times ε² equals a given error."""
    square = error / (1 + math.log(4 * steps / 5) / math.pi) ** 2
    return square / 4 - 4 / 9 - math.log(math.sqrt(2 / math.pi))


COLUMNS = columns_of(
    "panel", level="levels above the leaves", **dict.fromkeys(("first", "last"), "inputs"),
    parent_middle="inputs", sign="1",
)  # fmt: skip


def vertices(panel: str, whole: Tree, height: int, step: int) -> Iterator[tuple[object, ...]]:
    """Yield all vertices, with the inputs below them and their signs in a prefix sum.

    The sign is 1 if the vertex is added, −1 if it is subtracted, and 0 if it is not used.
    """
    signs = {
        (min(before, after), max(before, after)): 1 if after > before else -1
        for at, before, after in whole.moves()
        if at == step
    }
    k = whole.arity
    for level in range(height + 1):
        size = k**level
        for index in range(k ** (height - level)):
            first, last = index * size, (index + 1) * size
            above = None if level == height else (index // k + 0.5) * size * k
            yield panel, level, first, last, above, signs.get((first, last), 0)


def draw(axes: Axes, table: Table, panel: str, step: int) -> None:
    """Draw a tree, mark the vertices used, and draw the prefix below the leaves."""
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
        look: dict[str, Any] = {"color": colour, "markersize": size, "markeredgewidth": 0}
        look |= {"label": None if name in named else name, "zorder": 3, "linestyle": "none"}
        named.add(name)
        axes.plot([middle], [level], marker, **look)
        if sign:
            shade: dict[str, Any] = {"color": colour, "alpha": 0.25, "linewidth": 0}
            axes.fill_between([first + 0.1, last - 0.1], level - 0.3, level - 0.16, **shade)
    axes.plot([0, step], [-0.7, -0.7], color="black", linewidth=2, solid_capstyle="butt")
    axes.text(step / 2, -1.15, f"prefix of {step} inputs", ha="center", va="center")
    axes.set(ylim=(-1.9, top + 0.3), yticks=range(int(top) + 1))
    axes.set(xlabel="inputs (time steps)", ylabel="level")
    axes.grid(visible=False)
    axes.legend(loc="lower right", ncols=2, columnspacing=1, handletextpad=0)


def _used(table: Table, panel: str) -> int:
    return sum(sign != 0 for sign in table.numbers("sign", panel=panel))


_PANELS = {"without subtraction": False, "with subtraction": True}
_STEP, _STEP_2 = 23, 9
"""Lengths of the prefixes in Figures 1 and 2."""


def _compute_tree(settings: Settings, *, arity: int, height: int, step: int, panels: int) -> Table:
    del settings
    steps = (arity**height - 1) // panels  # with subtraction half as many inputs fit
    rows = [
        row
        for panel, signed in list(_PANELS.items())[:panels]
        for row in vertices(panel, tree(arity, steps, signed=signed), height, step)
    ]
    return Table.of(COLUMNS, rows, arity=arity, height=height, step=step)


def _draw_1(table: Table) -> style.Figure:
    (panel,) = table.distinct("panel")
    with style.panels(height=2.4) as (figure, (axes,)):
        draw(axes, table, str(panel), _STEP)
        style.finding(
            figure,
            f"The sum of {_STEP} inputs uses {_used(table, str(panel))} noisy vertices of the "
            f"tree, at most k − 1 = {table.parameters['arity'] - 1} per level",
        )
        return figure


def _draw_2(table: Table) -> style.Figure:
    with style.panels(1, 2, height=2.4, share_y=True) as (figure, grid):
        for axes, panel in zip(grid, _PANELS, strict=True):
            draw(axes, table, panel, _STEP_2)
        style.letter(grid, list(_PANELS))
        plain, signed = (_used(table, panel) for panel in _PANELS)
        style.finding(
            figure,
            f"Subtraction: {signed} noisy vertices instead of {plain} for the same {_STEP_2} "
            "inputs",
        )
        return figure


_PLAIN = (2, 3, 5, 9, 17, 33)
_SIGNED = (3, 5, 9, 19, 20, 39)
_DELTAS = ("1e-6", "1e-12")
_WITHOUT, _WITH, _ALL = "without subtraction", "with subtraction", "mechanisms"
_SINCE = "beyond the paper"
_LOOKS = {"k = 3": style.Curve("0.4", "solid", "")} | dict(zip((
    "binary tree", "Honaker", "k = 17", "k = 19, subtraction", "Gaussian, δ = 1e-6",
    "Gaussian, δ = 1e-12", "smooth binary tree", "bridged grids, k = 17",
), style.CURVES, strict=False))  # fmt: skip
"""The style of each counter in all panels."""
_NAMED = {_WITHOUT: {"k = 2": "binary tree", "k = 17": "k = 17"},
          _WITH: {"k = 3": "k = 3", "k = 19": "k = 19, subtraction"}}  # fmt: skip
"""Labelled curves by panel; other arities are drawn in grey."""


def _compute_error_by_length(settings: Settings) -> Table:
    last = settings.pick(10**5, 10**6, 10**7)
    grid = quantities.geometric(10, last, settings.pick(41, 161))
    steps = sorted({round(n) for n in grid})
    rows: list[tuple[object, ...]] = []
    for n in steps:
        rows += [
            (_ALL, "binary tree", n, tree_error(2, n, signed=False)),
            (_ALL, "Honaker", n, honaker_mean_squared_error(n)),
            (_ALL, "k = 17", n, tree_error(17, n, signed=False)),
            (_ALL, "k = 19, subtraction", n, tree_error(19, n, signed=True)),
        ]
    for delta in _DELTAS:
        variance = quantities.gaussian_deviation("1", delta) ** 2
        name = f"Gaussian, δ = {delta}"
        rows += [(_ALL, name, n, variance * root_factor(n)) for n in reversed(steps)]
    for panel, arities, signed in ((_WITHOUT, _PLAIN, False), (_WITH, _SIGNED, True)):
        rows += [
            (panel, f"k = {k}", n, tree_error(k, n, signed=signed) / math.log2(n) ** 3)
            for k in arities
            for n in steps
        ]
    for n in steps:
        found = {
            "k = 19, subtraction": tree_error(19, n, signed=True),
            "smooth binary tree": smooth_binary_error(n),
            "bridged grids, k = 17": _exact(BridgedTree(n, _arities(17, n), epsilon=1)),
        }
        rows += [(_SINCE, name, n, error / math.log2(n) ** 3) for name, error in found.items()]
    columns = columns_of("panel", "curve", n="inputs", error="inputs²")
    return Table.of(columns, rows, epsilon=1, deltas=list(_DELTAS), largest_n=last)


def _arities(arity: int, steps: int) -> list[int]:
    """Return the list of equal arities that a stream of this length needs."""
    height = 1
    while arity**height < steps:
        height += 1
    return [arity] * height


def _exact(counter: LinearCounter) -> float:
    """Return the mean squared error of a counter, which must be rational."""
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


_LARGEST = 48
"""Largest arity drawn; the best one is much smaller."""
_STEPS = (1000, 10_000, 1_000_000)


def _compute_error_by_arity(settings: Settings) -> Table:
    del settings
    arities = range(2, _LARGEST + 1)
    rows: list[tuple[object, ...]] = []
    for k in arities:
        cube = math.log2(k) ** 3
        rows.append(("constant", "without subtraction", k, (k - 1) / cube))
        parity, less = ("odd", 1 / k**2) if k % 2 else ("even", 0)
        rows.append(("constant", f"{parity} k, subtraction", k, k * (1 - less) / (2 * cube)))
    for n in _STEPS:
        found = {k: tree_error(k, n, signed=True) for k in arities}
        least = min(found.values())
        rows += [("exact", f"n = {n:,}", k, error / least) for k, error in found.items()]
    return Table.of(columns_of("panel", "curve", k="children", error="1"), rows, n=list(_STEPS))


def _draw_error_by_arity(table: Table) -> style.Figure:
    with style.panels(1, 2, height=2.8) as (figure, (left, right)):
        for axes, panel in ((left, "constant"), (right, "exact")):
            curves = table.distinct("curve", panel=panel)
            for look, curve in zip(style.CURVES, curves, strict=False):
                xs, ys = table.points("k", "error", panel=panel, curve=curve)
                axes.plot(xs, ys, label=str(curve), markersize=3, **look.dots())
                lowest = ys.index(min(ys))
                at = xs[lowest], ys[lowest]
                axes.plot(*at, "o", markersize=9, color=look.colour, markerfacecolor="none")
                if panel == "constant":
                    shift = -30, -14 if "odd" in str(curve) else 8
                    style.tag(axes, at, f"k = {at[0]:g}: {at[1]:.4f}", shift=shift)
            axes.set_xlabel("k (children per vertex)")
        left.set(ylim=(0.05, 0.5), ylabel="leading constant of MSE·ε²/lg(n)³")
        right.set(ylim=(0.8, 4), ylabel="mean squared error over the least")
        left.legend(loc="upper right")
        right.legend(loc="upper right", title="ring: best k")
        style.letter((left, right), ("constants", "exact, with subtraction"))
        best = []
        for curve in table.distinct("curve", panel="exact"):
            points = list(zip(*table.points("k", "error", panel="exact", curve=curve), strict=True))
            odd = min((p for p in points if p[0] % 2), key=lambda p: p[1])[0]
            best.append(f"{odd:g} ({min(points, key=lambda p: p[1])[0]:g}) at {curve}")
        style.finding(
            figure,
            "Of odd k, 19 has the least leading constant (Corollary 4.9). By the exact error the "
            f"best odd k (of all k) is {', '.join(best)}",
        )
        return figure


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
        rows += [(f"order n^−{power}", n, -power * math.log10(n)) for power in _ASYMPTOTIC]
    columns = columns_of("curve", n="inputs", lg_delta="decades")
    return Table.of(columns, rows, epsilons=["1", "0.1"], arities="2 to 64", largest_n=last)


def _draw_crossover(table: Table) -> style.Figure:
    with style.panels(height=4.0, width=5.2) as (figure, (axes,)):
        for look, curve in zip(style.CURVES, table.distinct("curve"), strict=False):
            xs, ys = table.points("n", "lg_delta", curve=curve)
            if str(curve).startswith("order"):
                axes.plot(
                    xs,
                    ys,
                    label=re.sub(r"n\^(.*)", r"$n^{\1}$", str(curve)),
                    color="0.6",
                    linestyle=look.dashes,
                    zorder=1,
                )
            else:
                axes.plot(xs, ys, label=str(curve), **look.marked(len(xs), marks=6))
        axes.set(xscale="log", xlabel="n (inputs)", ylabel="largest δ (probability)")
        style.decades(axes)
        style.key(figure, [axes], 3)
        n = max(table.numbers("n"))
        bound, least = table.values(
            "lg_delta", "curve", ("printed bound, k = 19", "exact, best k, ε = 1"), n=n
        )
        style.finding(
            figure,
            f"At n = {n:,.0f} Laplace noise beats the bound of Theorem 1.2 for δ below "
            f"{10**bound:.0e}, and the least Gaussian noise for δ below {10**least:.0e}",
        )
        return figure


_PRACTICAL = 1e-5
"""The δ of the title."""
_EPSILONS = ("1", "0.1", "0.01", "0.001")


def _compute_laplace_variance(settings: Settings) -> Table:
    decades = quantities.spaced(0.1, 30, settings.pick(31, 121))
    rows: list[tuple[object, ...]] = []
    for eps in _EPSILONS:
        for decade in decades:
            text = f"{10**-decade:.6e}"
            delta, loss, epsilon = float(text), math.log(1 / float(text)), float(eps)
            laplace = ((math.sqrt(loss + epsilon) + math.sqrt(loss)) / epsilon) ** 2
            classic = 2 * math.log(1.25 / delta) / epsilon**2
            analytic = quantities.gaussian_deviation(eps, text) ** 2
            rows.append((f"ε = {eps}", delta, laplace / classic, laplace / analytic))
    columns = columns_of("curve", delta="probability", over_classic="1", over_analytic="1")
    return Table.of(columns, rows, epsilons=list(_EPSILONS), l2_sensitivity=1)


def _draw_laplace_variance(table: Table) -> style.Figure:
    with style.panels(1, 2, height=3.1) as (figure, grid):
        for axes, name in zip(grid, ("over_classic", "over_analytic"), strict=True):
            style.curves(axes, table, "delta", name)
            axes.axhline(2, color="0.5", linewidth=0.8, zorder=1)
            axes.set(xscale="log", xlim=(1e-30, 2))
            axes.set(xlabel="δ (probability)", ylabel="variance ratio")
        grid[0].set_ylim(0, 3)
        style.tag(grid[0], (1e-29, 2), "ε ≤ 0.1 fall together,\nbelow ε = 1", shift=(0, -26))
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


_SCALE = "5.35"
_DIMENSIONS = (1, 4, 16, 64, 256)
_LEAST = -14.0
"""Lower end of the axis, as log₁₀ δ."""


def _compute_laplace_guarantee(settings: Settings) -> Table:
    grid = quantities.spaced(0, 1.8, settings.pick(19, 73))
    scale = float(_SCALE)
    rows: list[tuple[object, ...]] = []
    for eps in grid:
        excess = eps * scale - 1 / (2 * scale)
        rows.append(("claimed", eps, -(max(0.0, excess) ** 2) / 2 / math.log(10)))
    exact: dict[str, Mechanism] = {
        "Gaussian, same variance": Gaussian(standard_deviation=f"sqrt({2 * scale**2:.4f})"),
        "Gaussian, half the variance": Gaussian(standard_deviation=_SCALE),
    }
    for d in _DIMENSIONS:
        exact[f"exact, d = {d}"] = LaplaceVector(_SCALE, shifts=[f"1/{math.isqrt(d)}"] * d)
    for name, mechanism in exact.items():
        for eps in grid:
            delta = profile.delta(mechanism, f"{eps:.6f}", relative_width=quantities.WIDTH)
            least = float(delta.lower)
            rows.append((name, eps, math.log10(least) if least > 0 else None))
    columns = columns_of("curve", epsilon="nats", lg_delta="decades")
    return Table.of(columns, rows, scale=_SCALE, l2_sensitivity=1, dimensions=list(_DIMENSIONS))


def _draw_laplace_guarantee(table: Table) -> style.Figure:
    with style.panels(height=3.8, width=5.2) as (figure, (axes,)):
        style.curves(axes, table, "epsilon", "lg_delta")
        axes.plot([1], [-6], "o", color="black", markersize=5, zorder=4)
        style.tag(axes, (1, -6), "(1, 10⁻⁶)", shift=(6, 3))
        axes.set(xlabel="ε (nats)", ylabel="δ (probability)")
        style.decades(axes)
        axes.set(xlim=(-0.05, 1.6), ylim=(_LEAST, 0.4))
        looks = dict(zip(map(str, table.distinct("curve")), style.CURVES, strict=False))
        style.fall(axes, table, "epsilon", "lg_delta", looks=looks)
        curves = [c for c in table.distinct("curve") if str(c).startswith("exact")]
        points = [zip(*table.points("epsilon", "lg_delta", curve=c), strict=True) for c in curves]
        most = max(y for each in points for x, y in each if x >= 1)
        style.key(figure, [axes], 3)
        style.finding(
            figure,
            f"Lap({_SCALE}) noise is (1, 10⁻⁶)-DP by Theorem 1.3; for every d drawn its exact δ is "
            f"{10**most:.1e} or less",
        )
        return figure


PLOTS: Plots = {
    "1": (partial(_compute_tree, arity=3, height=3, step=_STEP, panels=1), _draw_1),
    "2": (partial(_compute_tree, arity=5, height=2, step=_STEP_2, panels=2), _draw_2),
    "error-by-length": (_compute_error_by_length, _draw_error_by_length),
    "error-by-arity": (_compute_error_by_arity, _draw_error_by_arity),
    "crossover": (_compute_crossover, _draw_crossover),
    "laplace-variance": (_compute_laplace_variance, _draw_laplace_variance),
    "laplace-guarantee": (_compute_laplace_guarantee, _draw_laplace_guarantee),
}

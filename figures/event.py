"""The event that refutes a claim, drawn: two laws, and the outcomes that tell them apart."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

from accountant.core.adjacency import Adjacency
from accountant.core.mechanism import Mechanism
from accountant.core.pair import Pair
from accountant.errors import DpassayError
from figures import style
from figures.tradeoff import HEIGHT, WIDTH

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from accountant.numbers.reference import Continuous, Discrete

_POINTS = 401
"""Points of a density."""
_FAR = 1e6
"""Where the search for the ends of a density ends, in the pair's own unit."""
_DROP = 1e-7
"""Densities are drawn down to this fraction of their largest value."""
_RARE = 0.02
"""An event of smaller probability needs a logarithmic scale to be seen."""
_FEW = 5
"""Named outcomes between the first and last of which a legend has room."""
_MOST = 200
"""Outcomes of a law on integers that are drawn."""


@final
@dataclass(frozen=True, slots=True)
class Table:
    """Both laws at some outcomes, and which of these are in the event S."""

    outcomes: tuple[float, ...]
    p: tuple[float, ...]
    q: tuple[float, ...]
    inside: tuple[bool, ...]
    discrete: bool
    rare: bool
    names: tuple[str, ...] = ()
    """Of the outcomes, where they are no numbers."""


def compute(
    mechanism: Mechanism, law: dict[str, Any], loss_above: str, *, adjacency: str | None
) -> Table | None:
    """Tabulate the laws of the worst pair that a finding names; None where they are no line."""
    from accountant.numbers.reference import Continuous

    try:
        worst = mechanism.worst_case(Adjacency.read(adjacency))
        pair = next(each for each in worst.pairs(None) if _same(each, law))
        reference = pair.reference()
        epsilon = float(loss_above)
        if isinstance(reference, Continuous):
            return _on_the_line(reference, epsilon)
        return _on_integers(reference, epsilon, law)  # type: ignore[arg-type]
    except (DpassayError, StopIteration, ValueError, OverflowError):
        return None


def _same(pair: Pair, law: dict[str, Any]) -> bool:
    try:
        return _plain(pair.law()) == _plain(law)
    except DpassayError:
        return False


def _plain(value: object) -> object:
    """Return a law without the ends of its balls, which depend on the precision."""
    if isinstance(value, dict):
        if {"lower", "upper"} <= value.keys():
            return f"{float(value['lower']):.9g}"
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return str(value)


def _on_the_line(reference: Continuous, epsilon: float) -> Table:
    import mpmath
    import numpy as np

    constant = reference.log_normaliser(mpmath.mp)
    low, high = (float(end) for end in reference.support)
    knots = [float(knot) for knot in reference.knots()] or [0.0]

    def density(log: Any, x: float) -> float:
        return float(mpmath.exp(log(mpmath.mpf(x)) + constant))

    def larger(x: float) -> float:
        return max(density(reference.log_p, x), density(reference.log_q, x))

    peak = max(larger(min(max(knot, low), high)) for knot in knots)
    left, right = (
        _end(larger, start, way, peak * _DROP, limit)
        for start, way, limit in ((min(knots), -1, low), (max(knots), 1, high))
    )
    grid = np.linspace(left, right, _POINTS).tolist()
    p = [density(reference.log_p, x) for x in grid]
    q = [density(reference.log_q, x) for x in grid]
    inside = [float(reference.log_p(x) - reference.log_q(x)) > epsilon for x in grid]
    mass = sum(value for value, yes in zip(p, inside, strict=True) if yes)
    rare = mass * (right - left) / _POINTS < _RARE
    return _cut(Table(tuple(grid), tuple(p), tuple(q), tuple(inside), discrete=False, rare=rare))


def _end(larger: Any, start: float, way: int, least: float, limit: float) -> float:
    """Return where the densities have fallen to `least`, or the end of their support."""
    step = 0.25
    while larger(start + way * step) > least and step < _FAR:
        step *= 1.2
    return max(start - step, limit) if way < 0 else min(start + step, limit)


def _cut(table: Table) -> Table:
    """Leave out what is too small to be seen without a logarithmic scale."""
    if table.rare:
        return table
    least = max(*table.p, *table.q) / 300
    kept = [i for i, pair in enumerate(zip(table.p, table.q, strict=True)) if max(pair) >= least]
    part = slice(kept[0], kept[-1] + 1)
    names = ("outcomes", "p", "q", "inside", "names")
    return replace(table, **{name: getattr(table, name)[part] for name in names})


def _on_integers(reference: Discrete, epsilon: float, law: dict[str, Any]) -> Table:
    import mpmath

    start = reference.centre
    low = start - _MOST // 2 if reference.lowest is None else max(reference.lowest, start - _MOST)
    high = start + _MOST // 2 if reference.highest is None else reference.highest
    if high - low > 2 * _MOST:
        raise ValueError(f"{high - low} outcomes are too many to draw")
    outcomes = range(low, high + 1)
    masses = [reference.masses(z) for z in outcomes]
    p, q = ([float(pair[side]) for pair in masses] for side in (0, 1))
    factor = mpmath.exp(epsilon)
    inside = [bool(a > factor * b) for a, b in masses]
    rare = sum(value for value, yes in zip(p, inside, strict=True) if yes) < _RARE
    names = tuple(str(name) for name in law.get("outcomes", ()))
    names = names if len(names) == len(p) else ()
    table = Table(tuple(map(float, outcomes)), tuple(p), tuple(q), tuple(inside), True, rare, names)
    return table if names else _cut(table)


def draw(table: Table) -> Figure:
    """Draw both laws, the event shaded."""
    with style.sheet(WIDTH, HEIGHT) as (figure, axes):
        least = max(*table.p, *table.q) * _DROP
        floor = least if table.rare else 0.0
        marked = style.CURVES[3].colour
        for values, label, curve in ((table.q, "Q", 2), (table.p, "P", 0)):
            look = style.CURVES[curve]
            if table.discrete:
                shift = 0.12 if label == "P" else -0.12
                at = [x + shift for x in table.outcomes]
                axes.vlines(at, floor, values, color=look.colour, linewidth=1.2)
                axes.plot(at, values, label=label, markersize=4, **look.dots())
            else:
                axes.plot(table.outcomes, values, label=label, **look.options())
        for left, right in _runs(table):
            axes.axvspan(left, right, color=marked, alpha=0.15, linewidth=0)
        if not table.discrete:
            inside = list(table.inside)
            axes.fill_between(
                table.outcomes, floor, table.p, where=inside, color=marked, alpha=0.35, linewidth=0
            )
        axes.plot([], [], color=marked, alpha=0.5, linewidth=7, label="the event S")
        if table.rare:
            axes.set_yscale("log")
            axes.set_ylim(bottom=least)
        else:
            axes.set_ylim(bottom=0)
        place: Any = (
            "best"  # named outcomes stand in the order of a list: the legend beside the ends
        )
        if table.names:
            place = "upper center" if len(table.names) < _FEW else "upper right"
            names = [textwrap.fill(name, 14) for name in table.names]
            axes.set_xticks(table.outcomes, names, fontsize=8)
        else:
            axes.set_xlabel("outcome")
        axes.set_ylabel("probability" if table.discrete else "density")
        axes.legend(loc=place)
        return figure


def _runs(table: Table) -> Sequence[tuple[float, float]]:
    """Return the intervals of outcomes in S; an integer is half a unit to both sides."""
    found: list[tuple[float, float]] = []
    half = 0.5 if table.discrete else 0.0
    before = False
    for x, inside in zip(table.outcomes, table.inside, strict=True):
        if inside:
            start = found.pop()[0] if before and found else x - half
            found.append((start, x + half))
        before = inside
    return found

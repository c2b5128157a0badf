"""The plot of a privacy profile: δ against ε, with both directions if they differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, final

import numpy as np

from dpassay.accountant.core.adjacency import Adjacency, Direction
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import max_finite_loss
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import profile
from dpassay.accountant.questions.estimate import estimate_delta, estimate_epsilon
from dpassay.figures import style
from dpassay.verifier.report import middle

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEAST_DELTA = Fraction(1, 10**12)
_POINTS = 96
"""Number of evenly spaced points of a curve."""
_NEAR_END = 32
"""Number of points that accumulate at its end, where it can be steep."""
_WIDTH = Fraction(1, 10**9)
_END_WIDTH = Fraction(1, 10**15)
_FALLBACK_END = Fraction(10)
_SHORTEST = Fraction(1, 1000)
_LEAST_SHOWN = Decimal("1e-300")
"""Smaller values, which are hardly normal floats, are not drawn."""
_SHOWN_NAME = 70
"""Maximal number of characters of a name in a title."""


@final
@dataclass(frozen=True, slots=True)
class Row:
    """δ(ε) at one ε, by direction; `add` is None if both directions agree."""

    epsilon: Fraction
    remove: Interval | float
    add: Interval | float | None


@final
@dataclass(frozen=True, slots=True)
class Table:
    """The profile of a mechanism at a grid of ε."""

    mechanism: str
    adjacency: str | None
    rows: tuple[Row, ...]
    marks: tuple[tuple[str, Interval], ...] = ()
    """Points (ε, δ) to label."""
    estimated: bool = False
    """Whether the values are unproved floats, which the title then says."""


def compute(
    mechanism: Mechanism,
    *,
    adjacency: Adjacency | str | None = None,
    marks: Sequence[tuple[str, Interval]] = (),
    least: Fraction = LEAST_DELTA,
) -> Table:
    """Tabulate enclosures of δ(ε) from ε = 0 to where δ falls below `least`."""
    relation = Adjacency.read(adjacency)
    directions = _directions(mechanism, relation)
    rows = []
    for eps in _epsilons(mechanism, relation, least, marks):
        values = [
            profile.delta(mechanism, eps, adjacency=relation, direction=d, relative_width=_WIDTH)
            for d in directions
        ]
        rows.append(Row(eps, values[0], values[-1] if values[-1] != values[0] else None))
    if any(row.add is not None for row in rows):  # then draw both curves completely
        rows = [row if row.add is not None else replace(row, add=row.remove) for row in rows]
    return Table(repr(mechanism), _name(relation), tuple(rows), tuple(marks))


def estimate(mechanism: Mechanism, *, adjacency: Adjacency | str | None = None) -> Table:
    """Tabulate floating-point estimates of δ(ε) from ε = 0 to where δ falls below LEAST_DELTA."""
    relation = Adjacency.read(adjacency)
    end = estimate_epsilon(mechanism, float(LEAST_DELTA), adjacency=relation)
    assert isinstance(end, float)
    beyond = end if math.isfinite(end) else float(_beyond_finite_losses(mechanism, relation))
    epsilons = np.linspace(0.0, max(beyond, float(_SHORTEST)), _POINTS)
    columns = [
        np.asarray(estimate_delta(mechanism, epsilons, adjacency=relation, direction=direction))
        for direction in _directions(mechanism, relation)
    ]
    rows = tuple(
        Row(Fraction(float(eps)), float(first), float(last) if len(columns) > 1 else None)
        for eps, first, last in zip(epsilons, columns[0], columns[-1], strict=True)
    )
    return Table(repr(mechanism), _name(relation), rows, estimated=True)


def _name(relation: Adjacency | None) -> str | None:
    return None if relation is None else relation.value


def _directions(mechanism: Mechanism, relation: Adjacency | None) -> list[Direction]:
    """Return both directions, or one if their pairs are equal."""
    worst = mechanism.worst_case(relation)
    return [Direction.REMOVE] + [Direction.ADD] * (worst.remove != worst.add)


def _epsilons(
    mechanism: Mechanism,
    relation: Adjacency | None,
    least: Fraction,
    marks: Sequence[tuple[str, Interval]],
) -> list[Fraction]:
    """Return a grid from 0 to ε(least) that includes all marks; points accumulate at its end."""
    asked = [Fraction(_number(at)) for at, value in marks if value.lower >= _LEAST_SHOWN]
    start = min([Fraction(0), *asked])
    found = profile.epsilon(mechanism, least, adjacency=relation, relative_width=_END_WIDTH).lower
    end = Fraction(found) if found.is_finite() else _beyond_finite_losses(mechanism, relation)
    end = max([end, start + _SHORTEST, *asked])
    step = (end - start) / _POINTS
    even = [start + i * step for i in range(_POINTS)]
    return [*even, *(end - step / 2**i for i in range(1, _NEAR_END)), end]


def _beyond_finite_losses(mechanism: Mechanism, relation: Adjacency | None) -> Fraction:
    """Return a point beyond the largest finite loss, where the profile is constant."""
    try:
        losses = [max_finite_loss(p) for p in mechanism.worst_case(relation).pairs(None)]
    except NotApplicableError:
        return _FALLBACK_END
    finite = [Fraction(Interval.of_ball(loss).upper) for loss in losses if loss.is_finite()]
    return max([_SHORTEST, *finite]) * 3 / 2 if len(finite) == len(losses) else _FALLBACK_END


def draw(table: Table, ax: Axes | None = None) -> Figure:
    """Draw δ against ε on a logarithmic axis; values that are 0 are omitted."""
    with style.sheet(ax=ax) as (figure, axes):
        two = any(row.add is not None for row in table.rows)
        _curve(axes, table, 0, "remove" if two else None)
        if two:
            _curve(axes, table, 1, "add")
            if axes.lines:
                axes.legend(title="direction")
        for at, value in table.marks:
            _mark(axes, at, value)
        axes.set_yscale("log")
        if two and (least := _least_larger(table)):
            axes.set_ylim(least, 1)
        axes.set_xlim(left=float(table.rows[0].epsilon))
        if not axes.lines:
            axes.set_ylim(float(LEAST_DELTA), 1)
            axes.text(0.5, 0.5, "δ(ε) = 0 here", transform=axes.transAxes, ha="center")
        axes.set(xlabel="ε (nats)", ylabel="δ(ε) (probability)")
        axes.set_title(_title(table), fontsize=9, loc="left")
        return figure


def _least_larger(table: Table) -> float:
    """Return a lower end of the axis: a tenth of the least value of the larger curve."""
    both = [[v for v in map(_shown, (row.remove, row.add)) if v is not None] for row in table.rows]
    marked = [float(value.lower) for _, value in table.marks if value.lower >= _LEAST_SHOWN]
    return min([*(max(values) for values in both if values), *marked], default=0.0) / 10


def _curve(axes: Axes, table: Table, index: int, label: str | None) -> None:
    points = [
        (float(row.epsilon), value)
        for row in table.rows
        if (value := _shown((row.remove, row.add)[index])) is not None
    ]
    if points:
        axes.plot(*zip(*points, strict=True), label=label, **style.CURVES[index].options())


def _shown(value: Interval | float | None) -> float | None:
    """Return the number to draw, None if there is none or it is too small."""
    if isinstance(value, Interval):
        return float(middle(value)) if value.lower >= _LEAST_SHOWN else None
    return value if value is not None and value >= float(_LEAST_SHOWN) else None


def _mark(axes: Axes, at: str, value: Interval) -> None:
    """Label one point with its value."""
    if value.lower < _LEAST_SHOWN:
        return
    x, y = _number(at), float(middle(value))
    axes.plot([x], [y], "o", color="black", markersize=4, zorder=3, clip_on=False)
    text, shift = f"δ({at}) = {middle(value):.4g}", (6, 5)
    axes.annotate(text, (x, y), textcoords="offset points", xytext=shift, fontsize=8)


def _number(text: str) -> float:
    return float(exact(text))


def _title(table: Table) -> str:
    name = table.mechanism
    if len(name) > _SHOWN_NAME:
        name = name[: _SHOWN_NAME - 1] + "…"
    name = name if table.adjacency is None else f"{name}, {table.adjacency}"
    return f"{name} (estimate)" if table.estimated else name

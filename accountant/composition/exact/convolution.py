"""Products of finite pairs: the exact law of the sum of their losses."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

from flint import arb, arb_poly

from dpassay.accountant.composition.exact import names as lattice
from dpassay.accountant.composition.exact.names import Basis, Generators, Vector
from dpassay.accountant.composition.product import Engine, Factor, Product
from dpassay.accountant.core.pair import Tails
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.pairs.finite import FinitePair

CONVOLUTION_MAX_VALUES = 1 << 17
"""Largest number of values of the sum whose masses are computed."""


FEW_VALUES = 1 << 11
"""Number of values of a sum up to which they are listed at once. More take longer than bounds by
added noise, and are listed only if those fail."""
_HALVINGS = 8
"""Number of tables for the upper ends of the range of a sum, each half as long as the next. With
more, a question near the largest loss takes less time."""
_ROUNDING = 1e-9
"""Far above the relative rounding errors of sums of products in floats."""

Finite: TypeAlias = tuple[tuple[FinitePair, int], ...]
"""Finite pairs and their counts."""


@final
@dataclass(frozen=True)
class Sums(Engine):
    """An engine that lists every value of the sum of the losses of finite pairs, with its mass.

    There are two exact ways, and the shorter one is used. If the sums lie in a box of a lattice
    with few points, the masses are the coefficients of a product of powers of polynomials. If there
    are few distinct multisets of outcomes, their multinomial masses are listed.
    """

    def profile(self, product: Product, epsilon: ExactReal) -> arb:
        """Return P(L > ε) − e^ε Q(L > ε) as a sum over the values; P includes L = ∞."""
        factors, bound = of_finite(product.factors), epsilon.ball()
        floors = (floor for floor in _floors(factors) if floor is None or bound >= ball(floor))
        table = _table(factors, ctx.prec, next(floors))
        below, above = table.cut(epsilon.ball())
        total = table.p_from[above] - bound.exp() * table.q_from[above]
        for value in table.values[below:above]:
            total += value.excess(epsilon)
        return total + product.infinity_mass()

    def estimate_epsilon(self, product: Product, log_delta: float) -> float | None:
        """Return the ε with ln H(ε) = log_delta, from H(ε) = p − e^ε q between adjacent values.

        The tables for the upper ends of the range are computed in turn, the shortest first. Return
        None if there is only one table.
        """
        factors, target = of_finite(product.factors), arb(log_delta).exp() - product.infinity_mass()
        floors = _floors(factors)
        for floor in floors if len(floors) > 1 else ():
            table = _table(factors, ctx.prec, floor)
            after = bisect_left(range(len(table.values)), True, key=lambda i: table.at(i) < target)
            if after or floor is None:
                ratio = (table.p_from[after] - target) / table.q_from[after]
                return float(ratio.log().mid()) if ratio > 0 else None
        return None

    def tails(self, product: Product, epsilon: ExactReal) -> Tails:
        """Return the masses of {L > ε} and {L ≤ ε}, each as its own sum."""
        table = _table(of_finite(product.factors), ctx.prec)
        below, above = table.cut(epsilon.ball())
        p_above, q_above = table.p_from[above], table.q_from[above]
        p_below, q_below = table.p_upto[below], table.q_upto[below]
        for value in table.values[below:above]:
            side = value.above(epsilon)
            p = value.p if side is not None else arb(0).union(value.p)
            q = value.q if side is not None else arb(0).union(value.q)
            if side is not False:
                p_above, q_above = p_above + p, q_above + q
            if side is not True:
                p_below, q_below = p_below + p, q_below + q
        p_above += product.infinity_mass()
        return Tails(p_above, p_below, q_above, q_below + product.reverse().infinity_mass())


SUMS = Sums()


def of_finite(factors: Sequence[Factor]) -> Finite:
    """Return the factors that are finite pairs."""
    return tuple((pair, n) for pair, n in factors if isinstance(pair, FinitePair))


def size(factors: Finite) -> int:
    """Return an upper bound on the number of values of the finite loss; no masses are computed."""
    plan = _plan(factors)
    if any(all(point is None for point in row) for row in plan.points):
        return 0
    return min(plan.box, plan.multisets)


def values(factors: Finite) -> list[Value]:
    """Return the values of the finite loss in ascending order, with their masses."""
    return _table(factors, ctx.prec).values


@final
@dataclass(frozen=True)
class Value:
    """One value of the loss."""

    loss: arb
    p: arb
    q: arb
    generators: Generators
    vector: Vector

    @cached_property
    def exact(self) -> ExactReal | None:
        """The loss as an exact number, or None if it is none."""
        return self.generators.exact(self.vector)

    def above(self, epsilon: ExactReal) -> bool | None:
        """Whether the value exceeds ε, or None if the precision does not decide."""
        threshold = epsilon.ball()
        if self.loss > threshold or self.loss <= threshold or self.exact is None:
            return True if self.loss > threshold else False if self.loss <= threshold else None
        return self.exact > epsilon

    def excess(self, epsilon: ExactReal) -> arb:
        """Return (p − e^ε q)⁺ = p (1 − e^{ε−L})⁺."""
        above = self.above(epsilon)
        if above is False:
            return arb(0)
        value = -self.p * (epsilon.ball() - self.loss).expm1()
        return value if above else value.max(arb(0))


@final
@dataclass(frozen=True)
class Table:
    """The finite values of the loss, and cumulative sums of their masses."""

    values: list[Value]
    lowest: list[arb]
    """The lower ends of the losses, ascending."""
    highest: list[arb]
    """The running maximum of the upper ends."""
    p_from: list[arb]
    q_from: list[arb]
    p_upto: list[arb]
    q_upto: list[arb]

    @staticmethod
    def of(values: list[Value]) -> Table:
        """Sort the values and accumulate their masses from both ends."""
        values = sorted(values, key=lambda value: value.loss.lower())
        tops: list[arb] = []
        for value in values:
            top = value.loss.upper()
            tops.append(tops[-1] if tops and tops[-1] > top else top)
        p, q = [value.p for value in values], [value.q for value in values]
        zero = arb(0)
        return Table(
            values,
            [value.loss.lower() for value in values],
            tops,
            list(itertools.accumulate(p[::-1], initial=zero))[::-1],
            list(itertools.accumulate(q[::-1], initial=zero))[::-1],
            list(itertools.accumulate(p, initial=zero)),
            list(itertools.accumulate(q, initial=zero)),
        )

    def at(self, i: int) -> arb:
        """Return H at the i-th value, minus P(L = ∞)."""
        value: arb = self.p_from[i] - self.values[i].loss.exp() * self.q_from[i]
        return value

    def cut(self, threshold: arb) -> tuple[int, int]:
        """Return i ≤ j such that values before i are ≤ threshold and values from j on exceed it."""
        above = bisect_right(self.lowest, threshold.upper())
        return min(bisect_right(self.highest, threshold.lower()), above), above


@final
@dataclass(frozen=True)
class _Plan:
    """The outcomes of every factor as points of one lattice, and the possible number of sums."""

    generators: Generators
    basis: Basis
    origin: Vector
    """The loss with one fixed outcome in every factor: the origin of the lattice."""
    points: tuple[tuple[Vector | None, ...], ...]
    """Per factor, the coordinates of each outcome from there; None if P or Q has no mass on it."""
    box: int
    """Number of points of the smallest box that contains all sums."""
    multisets: int
    """Number of choices, with repetition, of the distinct points of each factor."""

    def heights(self) -> list[float]:
        """Return the losses of the rows of the basis, in floats."""
        known = self.generators.balls()
        rows = (sum(map(operator.mul, row, known), start=arb(0)) for row in self.basis.rows)
        return [float(loss.mid()) for loss in rows]


@functools.lru_cache(maxsize=64)
def _plan(factors: Finite) -> _Plan:
    found = [lattice.losses(factor) for factor, _ in factors]
    generators = Generators.of(loss for row in found for loss in row if loss is not None)
    origin = [0] * generators.count
    moves: list[list[Vector | None]] = []
    for row, (_, count) in zip(found, factors, strict=True):
        vectors = [None if loss is None else generators.vector(loss) for loss in row]
        first = next((vector for vector in vectors if vector is not None), tuple(origin))
        moves.append([None if vector is None else _difference(vector, first) for vector in vectors])
        origin = [total + count * entry for total, entry in zip(origin, first, strict=True)]
    basis = Basis.of([move for row in moves for move in row if move is not None])
    points = tuple(
        tuple(None if move is None else basis.coordinates(move) for move in row) for row in moves
    )
    reach = [0] * len(basis.rows)
    multisets = 1
    for places, (_, count) in zip(points, factors, strict=True):
        distinct = {point for point in places if point is not None}
        if not distinct:
            continue
        for i, entries in enumerate(zip(*distinct, strict=True)):
            reach[i] += count * (max(entries) - min(entries))
        multisets *= math.comb(count + len(distinct) - 1, len(distinct) - 1)
    return _Plan(
        generators, basis, tuple(origin), points, math.prod(r + 1 for r in reach), multisets
    )


def _difference(vector: Vector, other: Vector) -> Vector:
    return tuple(a - b for a, b in zip(vector, other, strict=True))


@functools.lru_cache(maxsize=64)
def _floors(factors: Finite) -> tuple[Fraction | None, ...]:
    """Return losses below which a table may leave values out, the largest first.

    Such a table gives H above its loss. The last entry is None, for the whole table. It is the only
    one for a box and for powers of one law, which have no shorter form, and for short lists.
    """
    plan = _plan(factors)
    powers = (
        math.comb(count + len(set(row)) - 1, count)
        for row, (_, count) in zip(plan.points, factors, strict=True)
    )
    if plan.box <= plan.multisets or plan.multisets <= FEW_VALUES or sum(powers) > FEW_VALUES:
        return (None,)
    heights = plan.heights()
    rows = [[_height(point, heights) for point in row if point] for row in plan.points]
    if not all(rows):  # the loss is never finite
        return (None,)
    start = _height(plan.origin, [float(value.mid()) for value in plan.generators.balls()])
    least, most = (
        start + sum(n * end(row) for row, (_, n) in zip(rows, factors, strict=True))
        for end in (min, max)
    )
    shares = (Fraction(most - least) / (1 << i) for i in range(_HALVINGS, 0, -1))
    return (*(Fraction(most) - share for share in shares), None)


@functools.lru_cache(maxsize=16)
def _table(factors: Finite, precision: int, floor: Fraction | None = None) -> Table:
    """Return a table of all values from `floor` on; it may contain lower values."""
    plan = _plan(factors)
    if any(all(point is None for point in row) for row in plan.points):
        return Table.of([])
    number = min(plan.box, plan.multisets)
    if number > CONVOLUTION_MAX_VALUES:
        raise NotApplicableError(
            f"The exact sum of these losses has up to {_shown(number)} values, more than the "
            f"{CONVOLUTION_MAX_VALUES} that are formed. Compose fewer releases, or give their laws "
            "losses on a common grid (such as equal ratios of neighbouring probabilities). Rényi "
            "divergences, rho and the largest loss have no such limit."
        )
    laws = [
        (_merged(row, lattice.masses(factor)), count)
        for row, (factor, count) in zip(plan.points, factors, strict=True)
    ]
    least = -math.inf
    if floor is not None:
        start = sum(map(operator.mul, plan.origin, plan.generators.balls()), start=arb(0))
        least = float((ball(floor) - start).lower())
    sums = (
        _in_box(laws) if plan.box <= plan.multisets else _by_multisets(laws, plan.heights(), least)
    )
    generators = plan.generators.balls()
    values = []
    for point, p in sums:
        vector = plan.basis.vector(point, plan.origin)
        loss = arb(0)
        for entry, value in zip(vector, generators, strict=True):
            if entry:
                loss += entry * value
        values.append(Value(loss, p, p * (-loss).exp(), plan.generators, vector))
    return Table.of(values)


def _merged(row: Sequence[Vector | None], masses: Sequence[arb]) -> dict[Vector, arb]:
    """Return the law of the loss, with the masses of outcomes of equal loss added up."""
    law: dict[Vector, arb] = {}
    for point, mass in zip(row, masses, strict=True):
        if point is not None:
            law[point] = law.get(point, arb(0)) + mass
    return law


def _in_box(laws: Sequence[tuple[dict[Vector, arb], int]]) -> Iterator[tuple[Vector, arb]]:
    """Yield the sums by polynomials, whose exponents number the points of the box in mixed radix.

    Coefficients that no sum reaches are balls around 0, which contain their true value 0.
    """
    dimension = len(next(iter(laws[0][0])))
    starts = [[min(point[i] for point in law) for i in range(dimension)] for law, _ in laws]
    sides = [
        1
        + sum(
            count * (max(point[i] for point in law) - start[i])
            for (law, count), start in zip(laws, starts, strict=True)
        )
        for i in range(dimension)
    ]
    strides = [math.prod(sides[:i]) for i in range(dimension)]
    product = arb_poly([1])
    for (law, count), start in zip(laws, starts, strict=True):
        places = {
            sum((point[i] - start[i]) * strides[i] for i in range(dimension)): mass
            for point, mass in law.items()
        }
        row = [places.get(place, arb(0)) for place in range(max(places) + 1)]
        product *= arb_poly(row) ** count
    corner = [
        sum(count * start[i] for (_, count), start in zip(laws, starts, strict=True))
        for i in range(dimension)
    ]
    for place in range(product.degree() + 1):
        mass = product[place]
        if not mass.is_zero():
            steps = (place // strides[i] % sides[i] for i in range(dimension))
            yield tuple(low + step for low, step in zip(corner, steps, strict=True)), mass


def _by_multisets(
    laws: Sequence[tuple[dict[Vector, arb], int]], heights: Sequence[float], least: float
) -> Iterator[tuple[Vector, arb]]:
    """Yield the sums by convolving the multinomial laws of the factors.

    A partial sum is left out if even the highest remaining losses do not lift it to `least`.
    Heights are float sums of products; `least` is lowered by more than all their rounding errors.
    """
    tops = [count * max(_height(point, heights) for point in law) for law, count in laws]
    sizes = (
        count * max(_height(map(abs, point), map(abs, heights)) for point in law)
        for law, count in laws
    )
    least -= _ROUNDING * (abs(least) + sum(sizes)) if math.isfinite(least) else 0.0
    rest, total = sum(tops), {(0,) * len(heights): arb(1)}
    for (law, count), top in zip(laws, tops, strict=True):
        power, rest = _power(law, count), rest - top
        grown: dict[Vector, arb] = {}
        for a, x in total.items():
            for b, y in power.items():
                point = tuple(i + j for i, j in zip(a, b, strict=True))
                grown[point] = grown.get(point, arb(0)) + x * y
        total = {
            point: mass for point, mass in grown.items() if _height(point, heights) + rest >= least
        }
    yield from total.items()


def _height(point: Iterable[int], heights: Iterable[float]) -> float:
    return sum(map(operator.mul, point, heights), start=0.0)


def _power(law: dict[Vector, arb], count: int) -> dict[Vector, arb]:
    """Return the law of the sum of `count` draws: count!·Π p^k/k! for each multiset."""
    dimension = len(next(iter(law)))
    partial: dict[tuple[Vector, int], arb] = {((0,) * dimension, count): arb(1)}
    for number, (point, mass) in enumerate(law.items()):
        last = number == len(law) - 1
        terms = [arb(1)]
        for k in range(1, count + 1):
            terms.append(terms[-1] * mass / k)
        grown: dict[tuple[Vector, int], arb] = {}
        for (place, left), weight in partial.items():
            for k in range(left if last else 0, left + 1):
                there = tuple(i + k * j for i, j in zip(place, point, strict=True))
                key, term = (there, left - k), weight * terms[k]
                grown[key] = grown[key] + term if key in grown else term
        partial = grown
    orders = arb(count).fac()
    return {place: orders * weight for (place, _), weight in partial.items()}


def _shown(size: int) -> str:
    return str(size) if size < 10**15 else f"10^{int(math.log10(size))}"

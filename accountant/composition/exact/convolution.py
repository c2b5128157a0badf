"""Products of finite pairs: the law of the sum of their losses, exactly."""

from __future__ import annotations

import functools
import itertools
import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

from flint import arb, arb_poly

from dpassay.accountant.composition.exact import names as lattice
from dpassay.accountant.composition.exact.names import Basis, Generators, Vector
from dpassay.accountant.composition.product import Engine, Factor, Product
from dpassay.accountant.core.pair import Pair, Tails
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.finite import FinitePair

CONVOLUTION_MAX_VALUES = 1 << 17
"""Most values of the sum of the losses whose masses are formed."""


Finite: TypeAlias = tuple[tuple[FinitePair, int], ...]
"""Finite pairs and their counts."""


@final
@dataclass(frozen=True)
class Sums(Engine):
    """Every value of the sum of the losses of finite pairs, and its mass.

    Either the sums lie in a box of a lattice with few points, and the masses are the coefficients
    of a product of powers of polynomials; or there are few distinct multisets of outcomes, and
    their multinomial masses are listed. Both are exact; the shorter of the two is taken.
    """

    def largest(self, pair: Pair) -> ExactReal | None:
        """Return the largest loss of a factor where all its losses are finite and exact."""
        assert isinstance(pair, FinitePair)
        if (rational := pair.known.max_loss()) is not None:
            return rational
        known = [loss for loss in lattice.losses(pair) if loss is not None]
        exact = [loss for loss in known if isinstance(loss, ExactReal)]
        whole = known and len(exact) == len(known) and pair.infinity_mass().is_zero()
        return max(exact) if whole else None

    def profile(self, product: Product, epsilon: ExactReal) -> arb:
        """Return P(L > ε) − e^ε Q(L > ε) over the values, and P(L = ∞)."""
        table = _table(of_finite(product.factors), ctx.prec)
        bound = epsilon.ball()
        below, above = table.cut(epsilon.ball())
        total = table.p_from[above] - bound.exp() * table.q_from[above]
        for value in table.values[below:above]:
            total += value.excess(epsilon)
        return total + product.infinity_mass()

    def tails(self, product: Product, epsilon: ExactReal) -> Tails:
        """Return the masses of {L > ε} and {L ≤ ε}, each as a sum of its own."""
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
    """Return how many values of the finite loss there can be, before any mass is formed."""
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
    exact: ExactReal | None
    p: arb
    q: arb

    def above(self, epsilon: ExactReal) -> bool | None:
        """Whether the value exceeds ε, None where the precision does not decide."""
        if self.exact is not None:
            return self.exact > epsilon
        threshold = epsilon.ball()
        return True if self.loss > threshold else False if self.loss <= threshold else None

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
    """The values with a finite loss, and the running sums of their masses."""

    values: list[Value]
    lowest: list[arb]
    """The lower ends of the losses, ascending."""
    highest: list[arb]
    """The largest upper end so far, ascending."""
    p_from: list[arb]
    q_from: list[arb]
    p_upto: list[arb]
    q_upto: list[arb]

    @staticmethod
    def of(values: list[Value]) -> Table:
        """Sort the values and add up their masses from both ends."""
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

    def cut(self, threshold: arb) -> tuple[int, int]:
        """Return i ≤ j: values before i are at most a threshold, values from j on exceed it."""
        above = bisect_right(self.lowest, threshold.upper())
        return min(bisect_right(self.highest, threshold.lower()), above), above


@final
@dataclass(frozen=True)
class _Plan:
    """The outcomes of every factor as points of one lattice, and how many sums there can be."""

    generators: Generators
    basis: Basis
    origin: Vector
    """The sum of the losses of one outcome of every factor: where the lattice begins."""
    points: tuple[tuple[Vector | None, ...], ...]
    """Per factor: the coordinates of each outcome from there, None where P or Q has no mass."""
    box: int
    """Points of the least box that contains all sums."""
    multisets: int
    """Choices, with repetition, of the distinct points of each factor."""


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


@functools.lru_cache(maxsize=8)
def _table(factors: Finite, precision: int) -> Table:
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
    sums = _in_box(laws) if plan.box <= plan.multisets else _by_multisets(laws)
    generators = plan.generators.balls()
    values = []
    for point, p in sums:
        vector = plan.basis.vector(point, plan.origin)
        loss = arb(0)
        for entry, value in zip(vector, generators, strict=True):
            if entry:
                loss += entry * value
        values.append(Value(loss, plan.generators.exact(vector), p, p * (-loss).exp()))
    return Table.of(values)


def _merged(row: Sequence[Vector | None], masses: Sequence[arb]) -> dict[Vector, arb]:
    """Add up the masses of outcomes with the same loss."""
    law: dict[Vector, arb] = {}
    for point, mass in zip(row, masses, strict=True):
        if point is not None:
            law[point] = law.get(point, arb(0)) + mass
    return law


def _in_box(laws: Sequence[tuple[dict[Vector, arb], int]]) -> Iterator[tuple[Vector, arb]]:
    """Yield the sums by polynomials: a point of the box is a number in mixed radix.

    Coefficients that no sum reaches come out as balls around 0, which contain what they should.
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


def _by_multisets(laws: Sequence[tuple[dict[Vector, arb], int]]) -> Iterator[tuple[Vector, arb]]:
    """Yield the sums by convolving the multinomial law of each factor."""
    total: dict[Vector, arb] | None = None
    for law, count in laws:
        power = _power(law, count)
        if total is None:
            total = power
            continue
        grown: dict[Vector, arb] = {}
        for a, x in total.items():
            for b, y in power.items():
                point = tuple(i + j for i, j in zip(a, b, strict=True))
                grown[point] = grown.get(point, arb(0)) + x * y
        total = grown
    yield from (total or {}).items()


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

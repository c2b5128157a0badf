"""Products of finite pairs: the law of the sum of their losses, exactly."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

from flint import acb, arb, arb_poly

from dpassay.accountant.composition.exact import names as lattice
from dpassay.accountant.composition.exact.names import Basis, Generators, Vector
from dpassay.accountant.composition.fourier.engine import Contour
from dpassay.accountant.composition.fourier.measure import (
    Kernel,
    Loss,
    Plan,
    accuracy,
    alias,
    guard,
    near,
    plan_contour,
    power,
)
from dpassay.accountant.composition.fourier.saddle import Strip
from dpassay.accountant.composition.losses.laplace import (
    MAX_VALUES,
    DiscreteGaussianTransform,
    Listed,
    ListTransform,
)
from dpassay.accountant.composition.losses.transform import Quadrature
from dpassay.accountant.composition.product import Engine, Factor, Product, UnsuitedError
from dpassay.accountant.core.pair import Pair, Tails
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.numbers import solve
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.discrete import DiscreteGaussianPair
from dpassay.accountant.pairs.finite import FinitePair, finite

_LONG = 1 << 11
"""Values from which on a sum over the circle is tried first: it does not grow with their number."""
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
    their multinomial masses are listed. Both are exact; the shorter of the two is taken. Many
    values of one lattice are summed over the circle, if that gives the precision.
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

    def estimate_epsilon(self, product: Product, log_delta: float) -> float | None:
        """Return what the sums over the circle estimate, where there are many values."""
        on_circle = _on_circle(product)
        return None if on_circle is None else on_circle.known.epsilon(log_delta)

    def profile(self, product: Product, epsilon: ExactReal) -> arb:
        """Return P(L > ε) − e^ε Q(L > ε) over the values, and P(L = ∞)."""
        if (on_circle := _on_circle(product)) is not None:
            with contextlib.suppress(UndecidedError):
                return on_circle.hockey_stick(epsilon)
        table = _table(of_finite(product.factors), ctx.prec)
        bound = epsilon.ball()
        below, above = table.cut(epsilon.ball())
        total = table.p_from[above] - bound.exp() * table.q_from[above]
        for value in table.values[below:above]:
            total += value.excess(epsilon)
        return total + product.infinity_mass()

    def tails(self, product: Product, epsilon: ExactReal) -> Tails:
        """Return the masses of {L > ε} and {L ≤ ε}, each as a sum of its own."""
        if (on_circle := _on_circle(product)) is not None:
            with contextlib.suppress(UndecidedError):
                return on_circle.tails(epsilon)
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


def _on_circle(product: Product) -> Product | None:
    """Return the same product for sums over the circle, None where few values are summed."""
    return product.asked(CIRCLE) if _is_for_circle(product.factors) else None


@functools.lru_cache(maxsize=64)
def _is_for_circle(factors: tuple[Factor, ...]) -> bool:
    """Whether many values are summed, on one lattice."""
    return size(of_finite(factors)) > _LONG and applies(factors)


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


"""Products of losses on one lattice b + dℤ: sums over a part of the circle, at any count.

Let ℓ be the least point of the lattice above ε, z_j = c + 2πij/(nd) for an odd n, |j| < n/2, and

    κ(z) = 1/(1 − e^{−zd}) − e^{ε−ℓ}/(1 − e^{−(z+1)d}).

By geometric series (1/n) Σ_j M(z_j) e^{−z_j ℓ} κ(z_j) is exactly ± Σ_m G(ε + mB) e^{mcB} over all
integers m, B = nd, with the functions G and the signs of
`dpassay.accountant.composition.fourier.measure`:
the two terms are what its kernels 1/z and 1/(z + 1) become. So its bound of the terms m ≠ 0 holds.
The sum is cut off at the frequency T, where |M(c + it)| ≤ r M(c) for T ≤ t ≤ π/d
(`dpassay.accountant.composition.losses.laplace`): the circle has no more frequencies, and their
number only multiplies r. Nothing depends on the count but through n and T, so that a few hundred
nodes suffice.

Infinite losses are left out of M, and their mass is added.
"""

Part: TypeAlias = tuple[Listed, int, tuple[int, ...] | int]
"""A loss, its count, and its places: those of a list, or the step between the outcomes 0 and 1."""

_SPARE = 10
"""Bits by which the sum may miss the accuracy that the plan aims at."""
_ULP = 2.0**-50
"""Relative room for the rounding of a frequency to a float, outward."""


@final
@dataclass(frozen=True)
class _Lattice:
    """Where the sum of all losses lies."""

    generators: Generators
    step: Vector
    """d > 0"""
    origin: Vector
    """b, where all places are 0"""
    parts: tuple[Part, ...]

    def unit(self) -> arb:
        """Return d."""
        return self._value(self.step)

    def point(self, place: int) -> tuple[arb, ExactReal | None]:
        """Return b + place·d, as a ball and where possible exactly."""
        vector = tuple(b + place * d for b, d in zip(self.origin, self.step, strict=True))
        return self._value(vector), self.generators.exact(vector)

    def _value(self, vector: Vector) -> arb:
        pairs = zip(vector, self.generators.balls(), strict=True)
        return sum((entry * value for entry, value in pairs if entry), start=arb(0))


def applies(factors: tuple[Factor, ...]) -> bool:
    """Whether all losses are lists, or of discrete Gaussian noise, on one lattice."""
    return _lattice(factors) is not None


@functools.lru_cache(maxsize=64)
def _lattice(factors: tuple[Factor, ...]) -> _Lattice | None:
    rows: list[tuple[Listed, int, list[lattice.Loss]]] = []
    for pair, count in factors:
        small = finite(pair)
        if small is not None and len(small.source.outcomes(small.index)) <= MAX_VALUES:
            losses = [loss for loss in lattice.losses(small) if loss is not None]
            rows.append((ListTransform(small), count, losses))
        elif isinstance(pair, DiscreteGaussianPair) and pair.is_one:
            rate, s = ExactReal.of_rational(1) / pair.parameter, pair.shift
            ends = [ExactReal.of_rational(Fraction(2 * x * s - s * s, 2)) * rate for x in (0, 1)]
            rows.append((DiscreteGaussianTransform(pair), count, [*ends]))
        else:
            return None
    if not all(losses for _, _, losses in rows):
        return None
    generators = Generators.of(loss for _, _, losses in rows for loss in losses)
    vectors = [[generators.vector(loss) for loss in losses] for _, _, losses in rows]
    moves = [[_less(vector, row[0]) for vector in row] for row in vectors]
    basis = Basis.of([move for row in moves for move in row])
    if len(basis.rows) != 1:
        return None
    found = _Lattice(generators, basis.rows[0], _total(vectors, [n for _, n, _ in rows]), ())
    with ctx.workprec(128):
        sign = 1 if found.unit() > 0 else -1
    parts: list[Part] = []
    for (part, count, _), row in zip(rows, moves, strict=True):
        places = tuple(sign * basis.coordinates(move)[0] for move in row)
        is_list = isinstance(part, ListTransform)
        parts.append((part, count, places if is_list else places[1]))
    step = tuple(sign * entry for entry in found.step)
    return _Lattice(generators, step, found.origin, tuple(parts))


def _less(vector: Vector, other: Vector) -> Vector:
    return tuple(a - b for a, b in zip(vector, other, strict=True))


def _total(rows: Sequence[Sequence[Vector]], counts: Sequence[int]) -> Vector:
    """Return the sum of the first vectors of all rows, each so often."""
    weighted = [[n * entry for entry in row[0]] for row, n in zip(rows, counts, strict=True)]
    return tuple(map(sum, zip(*weighted, strict=True)))


@final
@dataclass(frozen=True)
class Circle(Contour):
    """Sums over a part of the circle, for products that `applies` to."""

    def loss(self, product: Product) -> Loss:
        """Return the transforms of the factors, with their counts."""
        return _loss(product)

    def integral(self, product: Product, kernel: Kernel, strip: Strip, epsilon: ExactReal) -> arb:
        """Return G(ε). Raises UnsuitedError where that takes too many nodes."""
        bits, where, loss = accuracy(product.relative_width), _of(product), _loss(product)
        try:
            planned = plan_contour(loss, kernel, strip, near(float(epsilon)), bits)
            size = loss.cumulants(float(planned.line.c))[0]
            with ctx.workprec(bits + guard(loss.count, size)):
                found = [
                    _sum(where, loss, planned, kernel, (epsilon, place))
                    for place in _above(where, epsilon)
                ]
        except UndecidedError as error:
            raise UnsuitedError(str(error)) from error
        value = functools.reduce(lambda one, other: one.union(other), found)
        if value.rel_accuracy_bits() < bits - _SPARE:
            raise UnsuitedError(f"The sum over the circle does not give {bits} bits.")
        return value


CIRCLE = Circle()


def _of(product: Product) -> _Lattice:
    found = _lattice(product.factors)
    assert found is not None
    return found


@functools.lru_cache(maxsize=64)
def _loss(product: Product) -> Loss:
    where = _of(product)
    return Loss(tuple((part, count) for part, count, _ in where.parts), _end(where))


def _above(where: _Lattice, epsilon: ExactReal) -> list[int]:
    """Return the place of ℓ, or two where one cannot be told: their values are nearly one."""
    place = (epsilon.ball() - where.point(0)[0]) / where.unit()
    floor = place.floor().unique_fmpz()
    if floor is not None:
        return [int(floor) + 1]
    nearest = math.floor(solve.fraction(place.mid()) + Fraction(1, 2))
    exact = where.point(nearest)[1]
    if exact is None:
        return [nearest, nearest + 1]
    return [nearest if exact > epsilon else nearest + 1]


def _sum(where: _Lattice, loss: Loss, plan: Plan, kernel: Kernel, at: tuple[ExactReal, int]) -> arb:
    """Return the sum with its two errors, at ε with ℓ at a place."""
    epsilon, place = at
    line, unit, eps = plan.line, where.unit(), epsilon.ball()
    c, ahead = ball(line.c), where.point(place)[0]
    number = math.ceil(2 * math.pi / (float(unit) * float(line.step))) | 1
    half = (number - 1) // 2
    step = 2 * arb.pi() / (number * unit)
    count = min(math.ceil(line.count * float(line.step) / float(step)) + 1, half + 1)
    gap = (eps - ahead).exp()
    falls = {pole: ((pole - c) * unit).exp() for pole in kernel.poles}
    sizes = {0: arb(1), -1: gap}

    def kappa(turn: acb) -> acb:
        """Return κ, or one of its terms, up to the sign."""
        terms = [sizes[pole] / (1 - falls[pole] * turn) for pole in kernel.poles]
        return terms[0] - terms[1] if len(terms) == 2 else terms[0]

    first = kappa(acb(1)).real
    sign, total = (1 if first > 0 else -1), first / 2
    values = _ratios(where, line.c, number, count)
    for j, ratio in enumerate(values[1:], 1):
        turn = acb(0, -2 * arb.pi() * j / number).exp()
        shift = acb(0, -2 * arb.pi() * (j * place % number) / number).exp()
        total += (ratio * shift * kappa(turn)).real
    rest = arb(0)
    if count <= half:
        most = sum((sizes[pole] / abs(1 - falls[pole]) for pole in kernel.poles), start=arb(0))
        last = float((count * step).lower()) * (1 - _ULP)
        fallen = arb(loss.log_ratio(line.c, last)).exp()
        rest = (half + 1 - count) * fallen * most
    scale = 2 * (loss.log_value(line.c) - c * ahead).exp() / number
    value = scale * (sign * total + arb(0, rest.upper()))
    period = number * unit
    beside = alias(loss, plan.left, line.c - plan.left, period, eps)
    beside += alias(loss, plan.right, plan.right - line.c, period, eps)
    return (value - arb(0).union(beside.upper())).max(arb(0))


def _ratios(where: _Lattice, c: Fraction, number: int, count: int) -> list[acb]:
    """Return M(z_j)/M(c), but for the turn of b, for j < count."""
    product = [acb(1)] * count
    for part, times, places in where.parts:
        tilted = part.tilted(c)
        steps = (x * places if isinstance(places, int) else places[x] for x in tilted.outcomes)
        angles = tuple(2 * arb.pi() * step for step in steps)
        rule = Quadrature(angles, tilted.rule.weights, tilted.rule.error)
        row = rule.line(Fraction(1, number), count)
        product = [whole * power(ratio, times) for whole, ratio in zip(product, row, strict=True)]
    return product


def _end(where: _Lattice) -> float:
    """Return π/d, from above."""
    return float((arb.pi() / where.unit()).upper()) * (1 + _ULP)

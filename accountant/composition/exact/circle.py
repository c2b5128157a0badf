"""Products of losses on one lattice b + dℤ: sums over a part of the circle, at any count.

Let ℓ be the least point of the lattice above ε, z_j = c + 2πij/(nd) for an odd n, |j| < n/2, and

    κ(z) = 1/(1 − e^{−zd}) − e^{ε−ℓ}/(1 − e^{−(z+1)d}).

By geometric series (1/n) Σ_j M(z_j) e^{−z_j ℓ} κ(z_j) is exactly ± Σ_m G(ε + mB) e^{mcB} over all
integers m, B = nd, with the functions G and the signs of
`dpassay.accountant.composition.fourier.certified`:
the two terms are what its kernels 1/z and 1/(z + 1) become. So its bound of the terms m ≠ 0 holds.
The sum is cut off at the frequency T, where |M(c + it)| ≤ r M(c) for T ≤ t ≤ π/d
(`dpassay.accountant.composition.losses.lists`): the circle has no more frequencies, and their
number only multiplies r. Nothing depends on the count but through n and T, so that a few hundred
nodes suffice.

Infinite losses are left out of M, and their mass is added.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

from flint import acb, arb

from dpassay.accountant.composition.exact import names as lattice
from dpassay.accountant.composition.exact.names import Basis, Generators, Vector
from dpassay.accountant.composition.fourier.certified import (
    Kernel,
    Plan,
    accuracy,
    alias,
    near,
    plan_contour,
)
from dpassay.accountant.composition.fourier.engine import Contour
from dpassay.accountant.composition.fourier.measure import Loss, guard, power
from dpassay.accountant.composition.fourier.saddle import Strip
from dpassay.accountant.composition.losses.lists import (
    MAX_VALUES,
    DiscreteGaussianTransform,
    Listed,
    ListTransform,
)
from dpassay.accountant.composition.losses.transform import Quadrature
from dpassay.accountant.composition.product import Factor, Product, UnsuitedError
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers import solve
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.discrete_gaussian import DiscreteGaussianPair
from dpassay.accountant.pairs.finite_losses import finite

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
        elif isinstance(pair, DiscreteGaussianPair):
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

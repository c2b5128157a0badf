"""Exact representations of the values of a sum of losses, so that equal values are merged.

The loss of an outcome of a finite pair is known in one of three ways:

- as an exact number, a multiple of a unit;
- as the logarithm of a rational number p/q, a product of powers of pairwise coprime integers;
- only as the logarithm of a ratio of two balls. Then the outcome is a generator of its own. If its
  laws are mirrored (`is_mirrored`), the loss of the mirrored outcome is its negative.

Each loss becomes a vector of integers over these generators. The loss of a product is the sum of
such vectors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

from flint import arb, fmpz_mat

from dpassay.accountant.composition.product import exact_sum
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.pairs.finite import FiniteLaws, FinitePair

Vector: TypeAlias = tuple[int, ...]
Origin: TypeAlias = tuple[FiniteLaws, int, int]
"""A source, the index of its laws and the number of an outcome."""
Loss: TypeAlias = ExactReal | Fraction | tuple[Origin, int]
"""An exact loss, a ratio p/q, or an outcome together with the sign of its loss."""


@final
@dataclass(frozen=True)
class Generators:
    """The generators: the quantities whose integer multiples make up a loss."""

    units: tuple[ExactReal, ...]
    """Exact numbers with pairwise irrational ratios."""
    integers: tuple[int, ...]
    """Pairwise coprime integers > 1, which stand for their logarithms."""
    outcomes: tuple[Origin, ...]
    """Outcomes, which stand for the logarithms of their p/q."""

    @staticmethod
    def of(losses: Iterable[Loss]) -> Generators:
        """Return generators for all the losses."""
        classes: list[tuple[ExactReal, list[Fraction]]] = []
        integers: list[int] = []
        outcomes: list[Origin] = []
        for loss in losses:
            if isinstance(loss, ExactReal):
                if loss.sign:
                    _classify(classes, loss)
            elif isinstance(loss, Fraction):
                for number in (loss.numerator, loss.denominator):
                    _refine(integers, number)
            elif loss[0] not in outcomes:
                outcomes.append(loss[0])
        units = tuple(first * ExactReal.of_rational(_gcd(ratios)) for first, ratios in classes)
        return Generators(units, tuple(sorted(integers)), tuple(outcomes))

    @property
    def count(self) -> int:
        """The length of a vector."""
        return len(self.units) + len(self.integers) + len(self.outcomes)

    def vector(self, loss: Loss) -> Vector:
        """Return the integer coordinates of a loss."""
        exact = [0] * len(self.units)
        powers = [0] * len(self.integers)
        signs = [0] * len(self.outcomes)
        if isinstance(loss, ExactReal):
            for i, unit in enumerate(self.units):
                exact[i] = int((loss / unit).rational or 0)
        elif isinstance(loss, Fraction):
            for i, base in enumerate(self.integers):
                powers[i] = _exponent(loss.numerator, base) - _exponent(loss.denominator, base)
        else:
            signs[self.outcomes.index(loss[0])] = loss[1]
        return (*exact, *powers, *signs)

    def balls(self) -> list[arb]:
        """Return the values of the generators, at the current precision."""
        values = [unit.ball() for unit in self.units]
        values += [arb(base).log() for base in self.integers]
        for source, index, outcome in self.outcomes:
            p, q = source.masses(index)
            values.append((p[outcome] / q[outcome]).log())
        return values

    def exact(self, vector: Vector) -> ExactReal | None:
        """Return a loss as an exact number, or None if it is none or is not known to be one.

        By Lindemann's theorem the sum of an algebraic number and the logarithm of a rational number
        other than 1 is transcendental. So an exact loss is missed only if outcomes are involved.
        """
        count = len(self.units)
        if any(vector[count:]):
            return None
        terms = zip(vector, self.units, strict=False)
        return exact_sum([ExactReal.of_rational(entry) * unit for entry, unit in terms])


@final
@dataclass(frozen=True)
class Basis:
    """A basis of the lattice spanned by some vectors, which has fewer coordinates and no gaps."""

    rows: tuple[Vector, ...]

    @staticmethod
    def of(vectors: Sequence[Vector]) -> Basis:
        """Return the rows of the Hermite normal form of the vectors."""
        if not vectors or not vectors[0]:
            return Basis(())
        matrix = fmpz_mat([list(vector) for vector in vectors]).hnf().tolist()
        rows = (tuple(int(entry) for entry in row) for row in matrix)
        return Basis(tuple(row for row in rows if any(row)))

    def coordinates(self, vector: Vector) -> Vector:
        """Return the integers c with Σ c_i row_i = vector, by elimination at the pivots."""
        rest, found = list(vector), []
        for row in self.rows:
            pivot = next(i for i, entry in enumerate(row) if entry)
            factor = rest[pivot] // row[pivot]
            rest = [entry - factor * step for entry, step in zip(rest, row, strict=True)]
            found.append(factor)
        return tuple(found)

    def vector(self, coordinates: Vector, origin: Vector) -> Vector:
        """Return origin + Σ c_i row_i."""
        total = list(origin)
        for factor, row in zip(coordinates, self.rows, strict=True):
            for i, entry in enumerate(row):
                total[i] += factor * entry
        return tuple(total)


def losses(pair: FinitePair) -> list[Loss | None]:
    """Return the loss of every outcome; None if P or Q has no mass on it."""
    source, index = pair.source, pair.index
    exact, known = source.rational_masses(index), source.exact_losses(index)
    p, q = source.masses(index)
    found: list[Loss | None] = []
    for outcome, loss in enumerate(known):
        if p[outcome].is_zero() or q[outcome].is_zero():
            found.append(None)
        elif loss is not None:
            found.append(-loss if pair.flipped else loss)
        elif exact is not None:
            ratio = Fraction(exact[0][outcome]) / exact[1][outcome]
            found.append(1 / ratio if pair.flipped else ratio)
        else:
            found.append(_named(pair, outcome, len(known)))
    return found


def _named(pair: FinitePair, outcome: int, count: int) -> Loss:
    sign, mirrored = (-1 if pair.flipped else 1), count - 1 - outcome
    if pair.source.is_mirrored(pair.index) and mirrored <= outcome:
        if mirrored == outcome:
            return ExactReal.of_rational(0)
        outcome, sign = mirrored, -sign
    return (pair.source, pair.index, outcome), sign


def masses(pair: FinitePair) -> list[arb]:
    """Return the masses of P, correctly rounded if they are rational."""
    exact = pair.source.rational_masses(pair.index)
    if exact is not None:
        return [ball(mass) for mass in exact[1 if pair.flipped else 0]]
    return pair.source.masses(pair.index)[1 if pair.flipped else 0]


def _classify(classes: list[tuple[ExactReal, list[Fraction]]], loss: ExactReal) -> None:
    for first, ratios in classes:
        ratio = (loss / first).rational
        if ratio is not None:
            ratios.append(ratio)
            return
    classes.append((loss, [Fraction(1)]))


def _gcd(ratios: Sequence[Fraction]) -> Fraction:
    denominator = math.lcm(*(ratio.denominator for ratio in ratios))
    return Fraction(math.gcd(*(int(ratio * denominator) for ratio in ratios)), denominator)


def _refine(bases: list[int], number: int) -> None:
    """Refine pairwise coprime integers such that `number` and the old ones are products of them."""
    waiting = [number]
    while waiting:
        new = waiting.pop()
        if new == 1:
            continue
        for i, base in enumerate(bases):
            common = math.gcd(base, new)
            if common > 1:
                del bases[i]
                waiting += [base // common, new // common, common]
                break
        else:
            bases.append(new)


def _exponent(number: int, base: int) -> int:
    count = 0
    while number % base == 0:
        number, count = number // base, count + 1
    return count

"""Products of Laplace laws, each coordinate shifted by its own distance.

Coordinate i contributes to the loss L an atom +t with mass 1/2, an atom −t with mass e^{−t}/2 and
the density (1/4) e^{(l − t)/2} on (−t, t), t = t_i. The tails are in
`dpassay.accountant.composition.exact.laplace_product_sums`. Reflection of every coordinate
exchanges P and Q, so −L under Q has the law of L under P: P(L ≤ ε) = Q(L ≥ −ε), and H(ε) = e^ε
H(−ε) + 1 − e^ε.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from dpassay.accountant.composition.exact import laplace_product_sums as sums
from dpassay.accountant.composition.exact.laplace_product_sums import Groups, Kernel
from dpassay.accountant.composition.invert import chernoff_epsilon, rough_root
from dpassay.accountant.composition.product import Engine, Product, T
from dpassay.accountant.core.pair import Pair, Tails
from dpassay.accountant.errors import InvalidInputError, UndecidedError
from dpassay.accountant.mechanisms.additive.laplace import LaplacePair
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import (
    COMPOSED_WIDTH,
    GRID_WIDTH,
    RELATIVE_WIDTH,
    Interval,
)
from dpassay.accountant.numbers.precision import ctx

_GUARD_BITS = 16
"""Bits for what cancels between the terms of H at ε < 0, and of 1 − H."""
_FEW_CONTINUOUS = 25.0
"""x above which all coordinates are on atoms with a probability below e^−25: then |M| falls to that
on a line, and it is tried first."""
_WIDTH, _CLOSE = Fraction(1, 10**12), 1e-6
"""Relative width of the values of an estimate, and of its last step: the next would be finer."""
_FEW_SHIFTS = 16
"""Coordinates of a vector for which all digits come at once."""
_NEAR = 0.9
"""Share of an upper bound of ε at which sums are counted before it is known."""
_MANY, _QUICK_WIDTH = 256, Fraction(1, 10**7)
"""Coordinates, and the finest width, from which on a grid takes less time than sums."""
_QUICK_POINTS = 1 << 18
"""Grid points of it at most, a quarter of a second."""


@final
@dataclass(frozen=True)
class LaplaceSums(Engine):
    """Exact sums for Laplace pairs whose distances have rational ratios (`of_counts`)."""

    def width(self, product: Product) -> Fraction:
        """Return the relative width of answers for which none is named: few have short sums."""
        count = sum(n for _, n in product.factors)
        if count <= _FEW_SHIFTS:
            return RELATIVE_WIDTH
        return COMPOSED_WIDTH if long(product, COMPOSED_WIDTH) is None else GRID_WIDTH

    def profile(self, product: Product, epsilon: ExactReal) -> arb:
        """Return H(ε) for any real ε."""
        if epsilon.sign < 0:
            if epsilon <= -_top(product):
                return -epsilon.ball().expm1()
            with ctx.workprec(ctx.prec + _GUARD_BITS):
                value = epsilon.ball().exp() * product.hockey_stick(-epsilon)
                value -= epsilon.ball().expm1()
            return +value
        law, asked = lattice(product), product.relative_width
        with contextlib.suppress(UndecidedError):
            if (other := law.on_line(product) or quick(product, asked)) is not None:
                return other.hockey_stick(epsilon)
        if not law.is_short(epsilon, asked):
            return _on_grid(product).hockey_stick(epsilon)
        if float(epsilon) < law.mean - math.sqrt(2 * law.mean):  # most of P has a larger loss
            with ctx.workprec(ctx.prec + _GUARD_BITS):
                rest = law.above(-epsilon, Kernel.Q, asked, at_least=True)
                value = 1 - rest - epsilon.ball().exp() * law.above(epsilon, Kernel.Q, asked)
            return +value
        return law.above(epsilon, Kernel.EXCESS, asked)

    def inverse(
        self, product: Product, delta: ExactReal, relative_width: Fraction
    ) -> Interval | None:
        """Enclose ε(δ) where the sums are too long, or a grid is sooner; None elsewhere."""
        if (sooner := quick(product, relative_width)) is not None:
            with contextlib.suppress(UndecidedError):
                return sooner.inverse(delta, relative_width)
        other = long(product, relative_width)
        if other is None:
            return None
        first = chernoff_epsilon(product, float(delta.ball().log().mid()))  # at least ε(δ)
        near = ExactReal.of_rational(Fraction((first or 0.0) * _NEAR))
        if lattice(product).is_short(near, relative_width):  # few sums reach as far as ε
            return None
        return other.inverse(delta, relative_width)

    def estimate_epsilon(self, product: Product, log_delta: float) -> float | None:
        """Return the ε with ln H(ε) = log_delta, nearly and without proof."""
        law = lattice(product)
        line = law.on_line(product)
        found = None if line is None else line.estimate_epsilon(log_delta)
        if found is not None:
            return found
        first = chernoff_epsilon(product, log_delta)
        if first is None:
            return None

        width = product.relative_width or _WIDTH  # so that answers share the tables

        def profile(at: ExactReal) -> arb:
            return arb(0) if product.is_beyond(at) else law.above(at, Kernel.EXCESS, width)

        with contextlib.suppress(UndecidedError, ArithmeticError):
            return rough_root(profile, log_delta, first, _CLOSE)
        return None

    def tails(self, product: Product, epsilon: ExactReal) -> Tails:
        """Return both tails, an atom at ε counted on the side ≤; the smaller one is computed."""
        top, law, asked = _top(product), lattice(product), product.relative_width
        if epsilon >= top:
            return Tails(arb(0), arb(1), arb(0), arb(1))
        if epsilon < -top:
            return Tails(arb(1), arb(0), arb(1), arb(0))
        if (line := law.on_line(product)) is not None:
            with contextlib.suppress(UndecidedError):
                return line.tails(epsilon)
        if not law.is_short(epsilon, asked):
            return _on_grid(product).tails(epsilon)
        at = float(epsilon)
        p, rest_p = law.both(epsilon, Kernel.P, Kernel.Q, asked, above=at >= law.mean)
        q, rest_q = law.both(epsilon, Kernel.Q, Kernel.P, asked, above=at >= -law.mean)
        return Tails(p_above=p, p_below=rest_p, q_above=q, q_below=rest_q)

    def first_answer(self, product: Product, ask: Callable[[Pair], T], width: Fraction) -> T:
        """Return the answer of a grid where that is sooner, or where the sums are too long."""
        if (sooner := quick(product, width)) is not None:
            with contextlib.suppress(UndecidedError):
                return ask(sooner)
        return ask(long(product, width) or product)

    def law(self, product: Product) -> dict[str, object]:
        """Return {"law": "laplace-product", "unit", "multiples"}."""
        law = lattice(product)
        multiples = [t for t, n in law.groups for _ in range(n)]
        return {"law": "laplace-product", "unit": str(law.unit), "multiples": multiples}

    def describe_event(self, product: Product, epsilon: ExactReal) -> str:
        """Describe the set {L > ε}."""
        return (
            "the outcomes x, in units of the scale and from the true answer under Q, with "
            f"Σ |x_i| − |x_i − t_i| > {epsilon}, where t_i are the shifts in units of the scale"
        )


def of_distances(distances: Sequence[ExactReal]) -> Product:
    """Return Lap(1)^d at the given distances ≥ 0 against Lap(1)^d at 0; a distance 0 loses nothing.

    Raises InvalidInputError if two distances have an irrational ratio.
    """
    return of_counts(Counter(distances))


def of_counts(counts: Mapping[ExactReal, int]) -> Product:
    """Return the same, from the distinct distances and how many coordinates have each."""
    positive = sorted(distance for distance in counts if distance.sign > 0)
    if any((distance / positive[0]).rational is None for distance in positive):
        raise InvalidInputError(
            "Expected shifts whose ratios are rational, so that the losses of the coordinates "
            "share a unit. Round the shifts up to a common grid: delta grows with each of them."
        )
    return Product(tuple((LaplacePair(each), counts[each]) for each in positive), LaplaceSums())


def is_laplace(pair: Pair) -> bool:
    """Whether a pair is such a product."""
    return isinstance(pair, Product) and isinstance(pair.engine, LaplaceSums)


@final
@dataclass(frozen=True)
class Lattice:
    """The distances as multiples of a unit > 0."""

    unit: ExactReal
    groups: Groups
    """The multiples, ascending, and how many coordinates have each."""
    mean: float
    """E_P[L], nearly"""
    continuous: float
    """x: all coordinates are on atoms with a probability of about e^{−x}, x = Σ tanh(t/2)."""

    def above(
        self, epsilon: ExactReal, kernel: Kernel, asked: Fraction | None, *, at_least: bool = False
    ) -> arb:
        """Return what a kernel has above ε, to a relative width that is asked for."""
        return sums.above(self.groups, self.unit, epsilon, kernel, asked, at_least=at_least)

    def both(
        self,
        epsilon: ExactReal,
        kernel: Kernel,
        mirrored: Kernel,
        asked: Fraction | None,
        *,
        above: bool,
    ) -> tuple[arb, arb]:
        """Return the probabilities above ε, and not: the one that is named is summed."""
        if above:
            value = self.above(epsilon, kernel, asked)
            return value, 1 - value
        value = self.above(-epsilon, mirrored, asked, at_least=True)
        return 1 - value, value

    def is_short(self, epsilon: ExactReal, asked: Fraction | None) -> bool:
        """Whether the sums at ε have few enough terms, for a width that is asked for."""
        return sums.is_short(self.groups, self.unit, epsilon, Kernel.EXCESS, asked)

    def on_line(self, product: Product) -> Product | None:
        """Return the same product for one contour integral, None where its atoms count."""
        if self.continuous < _FEW_CONTINUOUS:
            return None
        from dpassay.accountant.composition.fourier.engine import FOURIER

        return product.asked(FOURIER)


@functools.lru_cache(maxsize=64)
def lattice(product: Product) -> Lattice:
    """Return the distances of a product that the engine is for."""
    distances = [(pair.distance, n) for pair, n in product.factors if isinstance(pair, LaplacePair)]
    if not distances:
        return Lattice(ExactReal.of_rational(1), (), 0.0, 0.0)
    first = distances[0][0]
    ratios = [(distance / first).rational or Fraction(0) for distance, _ in distances]
    shared = Fraction(
        math.gcd(*(ratio.numerator for ratio in ratios)),
        math.lcm(*(ratio.denominator for ratio in ratios)),
    )
    sizes = [(float(distance), n) for distance, n in distances]
    return Lattice(
        first * ExactReal.of_rational(shared),
        tuple((int(ratio / shared), n) for ratio, (_, n) in zip(ratios, distances, strict=True)),
        math.fsum(n * (size + math.expm1(-size)) for size, n in sizes),
        math.fsum(n * math.tanh(size / 2) for size, n in sizes),
    )


def _top(product: Product) -> ExactReal:
    """Return T = Σ t_i."""
    top = product.exact_max_loss()
    assert top is not None
    return top


def long(product: Product, asked: Fraction) -> Product | None:
    """Return the same product for a grid where its sums are too long for a width, else None."""
    law = lattice(product)
    if law.on_line(product) is not None or law.is_short(ExactReal.of_rational(0), asked):
        return None
    return _on_grid(product)


def quick(product: Product, asked: Fraction | None) -> Product | None:
    """Return the same product for a small grid where that answers sooner than sums, else None."""
    law = lattice(product)
    if asked is None or asked < _QUICK_WIDTH or sum(n for _, n in law.groups) < _MANY:
        return None
    return _on_grid(product, _QUICK_POINTS) if law.on_line(product) is None else None


def _on_grid(product: Product, most: int | None = None) -> Product:
    """Return the same product for an engine that takes any shifts."""
    from dpassay.accountant.composition.grid import Grid

    return product.asked(Grid(most))

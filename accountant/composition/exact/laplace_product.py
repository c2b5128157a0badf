"""Products of Laplace laws, with coordinate i shifted by its distance t_i, as exact sums.

*The law of the loss.* With t = t_i, coordinate i contributes to the loss L an atom at t with mass
1/2, an atom at −t with mass e^{−t}/2 and the density (1/4) e^{(l − t)/2} on (−t, t). Reflecting
every coordinate exchanges P and Q, so −L under Q has the law of L under P. Hence
P(L ≤ ε) = Q(L ≥ −ε), and H(ε) = e^ε H(−ε) + 1 − e^ε.

*Its transform.* Tilting by e^{l/2} makes every coordinate symmetric: dP = e^{l/2} dm and
dQ = e^{−l/2} dm. With T = Σ t_i the two-sided Laplace transform of m is e^{−T/2} Φ(s), where

    Φ(s) = Π (C_i + S_i/(2s)),   C_i = cosh(t_i s), S_i = sinh(t_i s).

*The integrals.* The tails and the profile are integrals over l > ε of e^{l/2}, of e^{−l/2}, and of
e^{(l−ε)/2} − e^{(ε−l)/2} times e^{ε/2}. Each is (1/2πi) ∫ e^{−sε} Φ(s)/κ(s) ds with
κ = s − ½, s + ½, s² − ¼. For d coordinates

    Φ(s) = 2^{−d} Σ_{m ≤ d} (2s)^{−m} Σ_J w_m(J) e^{Js},

where w_m(J) is the coefficient of y^m in the sum of (1 + y)^{plus signs} (1 − y)^{minus signs} over
the sign choices with Σ ±t_i = J. Let z = (J − ε)/2. The function with transform e^{Js} (2s)^{−m}/κ
is 0 for J ≤ ε, and for J > ε it is

    s − ½:  Σ_{i ≥ m} z^i/i!,     s + ½:  (−1)^m Σ_{i ≥ m} (−z)^i/i!,     s² − ¼:  their difference.

So a jump J contributes an exponential and a polynomial of degree ≤ d in z.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import math
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import TypeAlias, final

from flint import arb, arb_poly, fmpz, fmpz_poly

from dpassay.accountant.composition.product import Engine, Product, T
from dpassay.accountant.core.pair import Pair, Tails
from dpassay.accountant.errors import InvalidInputError, UndecidedError
from dpassay.accountant.mechanisms.additive.laplace import LaplacePair
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import (
    COMPOSED_WIDTH,
    GRID_WIDTH,
    RELATIVE_WIDTH,
    START_PRECISION,
    Interval,
)
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.invert import chernoff_epsilon, rough_root

Groups: TypeAlias = tuple[tuple[int, int], ...]
"""The multiples of the unit, ascending, each with its number of coordinates."""

MAX_TERMS = 2_000_000
"""Largest number of pairs (J, m) of the exact sum."""
_COEFFICIENT, _ROW = 2.0, 3.0  # microseconds
"""Rough times for a coefficient of a jump and for a row of weights."""
_PATIENCE, _LONG_PATIENCE = 2e6, 1.5e7  # microseconds
"""Times up to which exact sums are preferred to bounds; the second is for widths below `_FINE`,
where bounds are no substitute."""
_FINE = Fraction(1, 10**8)
"""Relative width below which bounds by added noise (`composition.blur`) take longer than sums."""
_WIDE = Fraction(1, 10**10)
"""Relative width below which no other engine answers."""
_PRECISION_STEP = 128
"""The precision is rounded up to a multiple of this, so that questions share their tables."""
_SPARE_BITS = 12
"""Bits added to those that were missing."""
_ROUNDS = 8
"""Times that the sum is computed again for digits lost to cancellation, each with more bits."""
_LEAST_MORE = 32
"""Least number of bits that each round adds."""
_MOST_BITS = 1 << 15
"""Largest precision, in bits, where nearly all digits cancel."""
_SHARED = 0.75
"""Least share of the jumps of a table that a question uses: a smaller one makes fewer but longer
tables."""
_SUMS_MANY = 7000
"""Number of coordinates whose coefficients take twice as long as small ones, as they are longer."""


class Kernel(enum.Enum):
    """The kernel κ; its integral over l > ε is a probability under P or Q, or H(ε)."""

    P = "s - 1/2"
    Q = "s + 1/2"
    EXCESS = "s^2 - 1/4"


def _goal(asked: Fraction | None) -> int:
    """Return the relative accuracy to reach in bits: the current precision, or the requested one.

    If `enclose` needed more than its first precision, the accuracy is higher by as much.
    """
    if asked is None:
        return ctx.prec
    bits = (asked.denominator // asked.numerator).bit_length() + 2
    return min(ctx.prec, bits + 8 + max(0, ctx.prec - max(START_PRECISION, bits + 32)))


def _reach(groups: Groups) -> int:
    """Return the largest jump."""
    return sum(multiple * count for multiple, count in groups)


def _coordinates(groups: Groups) -> int:
    return sum(count for _, count in groups)


@lru_cache(maxsize=8)
def _terms(
    groups: Groups, kernel: Kernel, bar: int, precision: int
) -> tuple[list[int], list[tuple[fmpz, fmpz, arb_poly]]]:
    """Return the jumps above `bar`; for each the factors of e^z and e^{−z}, and a polynomial in z.

    They do not depend on the unit, so all steps of a calibration share them.
    """
    parts, table = 1 + _coordinates(groups), _weights(groups, bar)
    jumps, found = sorted(table), []
    with ctx.workprec(precision):
        shares = [1 / arb(i).fac() for i in range(parts)]
        for jump in jumps:
            weights = table[jump].coeffs()
            signed = [-w if m % 2 else w for m, w in enumerate(weights)]
            upto, signed_upto = list(accumulate(weights)), list(accumulate(signed))
            first, second = upto[-1], signed_upto[-1]
            rest = [first - w for w in upto]  # Σ_{m > i} w_m
            mirrored = [w - second if i % 2 else second - w for i, w in enumerate(signed_upto)]
            if kernel is Kernel.EXCESS:
                rest = [a - b for a, b in zip(rest, mirrored, strict=True)]
                second = -second
            elif kernel is Kernel.Q:
                rest = mirrored
            scaled = [a * b for a, b in zip(rest, shares, strict=False)]
            found.append((first, second, arb_poly(scaled)))
    return jumps, found


@lru_cache(maxsize=8)
def _weights(groups: Groups, bar: int) -> dict[int, fmpz_poly]:
    """Return Σ_m w_m(J) y^m for each jump J above `bar`."""
    table, parts = {0: fmpz_poly([1])}, 1 + _coordinates(groups)
    left = _reach(groups)
    for multiple, count in groups:
        left -= multiple * count
        rows = _rows(count, (max(table) + multiple * count + left - bar) // (2 * multiple))
        grown: dict[int, fmpz_poly] = {}
        for jump, weights in table.items():
            for minus, row in enumerate(rows):
                place = jump + (count - 2 * minus) * multiple
                if place + left <= bar:
                    break
                term = weights * row
                grown[place] = grown[place] + term if place in grown else term
            if len(grown) * parts > MAX_TERMS:
                raise _too_long(len(grown) * parts)
        table = grown
    return table


def _rows(count: int, last: int) -> list[fmpz_poly]:
    """Return C(n, k) (1 + y)^{n−k} (1 − y)^k for k = 0, …, min(n, last)."""
    plus, minus = fmpz_poly([1, 1]), fmpz_poly([1, -1])
    row, rows = plus**count, []
    for k in range(min(count, last) + 1):
        rows.append(row * math.comb(count, k))
        if k < count:
            row = row // plus * minus
    return rows


def _count_jumps(groups: Groups, bar: float) -> int:
    """Return an upper bound on the number of jumps above `bar`.

    A share of at most e^{−b²/(2 Σ (nt)²)} of all sign choices has a sum above b > 0 (Hoeffding).
    """
    signs, total, square = 1, 0, 0
    for multiple, count in groups:
        signs *= count + 1
        total += multiple * count
        square += (multiple * count) ** 2
    steps = max(0, math.floor((total - Fraction(bar)) / 2) + 1)
    if bar > 0 and square:
        log = math.log(signs) - float(min(Fraction(bar) ** 2 / (2 * square), Fraction(10**6)))
        signs = min(signs, math.ceil(math.exp(min(log, 700.0)) * (1 + 1e-9)) + 1)
    return min(signs, steps)


def _too_long(terms: float) -> UndecidedError:
    """Return the error for sums that are too long."""
    return UndecidedError(
        f"The exact sum over the signs of these shifts has about {terms:.1e} terms, more than the "
        f"{MAX_TERMS} that are formed. Ask for a larger relative_width (1e-9 is enough for most), "
        "use fewer distinct shifts, or round them up to a common grid: delta grows with each."
    )


_GUARD_BITS = 16
"""Bits for cancellation between the terms of H at ε < 0, and of 1 − H."""
_WIDTH, _CLOSE = Fraction(1, 10**12), 1e-6
"""For estimates: the relative width of values, and that of the last step; the next one would be
finer."""
_FEW_SHIFTS = 16
"""Number of coordinates up to which sums give all digits quickly."""
_MANY = 256
"""Number of coordinates from which six digits come much sooner than nine."""
_NEAR = 0.9
"""Share of an upper bound on ε, at which the length of the sums is judged before ε is known."""


@final
@dataclass(frozen=True)
class LaplaceSums(Engine):
    """Exact sums for Laplace pairs whose distances have rational ratios (`of_counts`)."""

    def width(self, product: Product) -> Fraction:
        """Return the default relative width; sums are short for few coordinates only."""
        count = sum(n for _, n in product.factors)
        if count <= _FEW_SHIFTS:
            return RELATIVE_WIDTH
        quick = count >= _MANY or _is_long(product, COMPOSED_WIDTH)
        return GRID_WIDTH if quick else COMPOSED_WIDTH

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
            if (sooner := quick(product, asked)) is not None:
                return sooner.hockey_stick(epsilon)
        if not law.is_short(epsilon, asked):
            return by_bounds(product, lambda form: form.hockey_stick(epsilon))
        return law.above(epsilon, Kernel.EXCESS, asked)

    def inverse(
        self, product: Product, delta: ExactReal, relative_width: Fraction
    ) -> Interval | None:
        """Enclose ε(δ) by bounds if they are faster, or the sums are too long; else return None."""
        if (sooner := quick(product, relative_width)) is not None:
            with contextlib.suppress(UndecidedError):
                return sooner.known.inverse(delta, relative_width)
        if not _is_long(product, relative_width):
            return None
        first = chernoff_epsilon(product, float(delta.ball().log().mid()))  # at least ε(δ)
        near = ExactReal.of_rational(Fraction((first or 0.0) * _NEAR))
        if lattice(product).is_short(near, relative_width):  # few jumps are above ε
            return None
        return by_bounds(product, lambda form: form.known.inverse(delta, relative_width))

    def estimate_epsilon(self, product: Product, log_delta: float) -> float | None:
        """Return the ε with ln H(ε) = log_delta, approximately and without error bounds."""
        law = lattice(product)
        first = chernoff_epsilon(product, log_delta)
        if first is None:
            return None
        if not law.is_short(ExactReal.of_rational(Fraction(first * _NEAR)), _FINE):
            return None

        width = product.relative_width or _WIDTH  # the width of the answer, to share its tables

        def profile(at: ExactReal) -> arb:
            return arb(0) if product.is_beyond(at) else law.above(at, Kernel.EXCESS, width)

        with contextlib.suppress(UndecidedError, ArithmeticError):
            return rough_root(profile, log_delta, first, _CLOSE)
        return None

    def tails(self, product: Product, epsilon: ExactReal) -> Tails:
        """Return both tails, with an atom at ε on the side ≤; the smaller tail is computed."""
        top, law, asked = _top(product), lattice(product), product.relative_width
        if epsilon >= top:
            return Tails(arb(0), arb(1), arb(0), arb(1))
        if epsilon < -top:
            return Tails(arb(1), arb(0), arb(1), arb(0))
        if not law.is_short(epsilon, asked):
            return _on_grid(product).tails(epsilon)
        at = float(epsilon)
        p, rest_p = law.both(epsilon, Kernel.P, Kernel.Q, asked, above=at >= law.mean)
        q, rest_q = law.both(epsilon, Kernel.Q, Kernel.P, asked, above=at >= -law.mean)
        return Tails(p_above=p, p_below=rest_p, q_above=q, q_below=rest_q)

    def first_answer(self, product: Product, ask: Callable[[Pair], T], width: Fraction) -> T:
        """Return the answer of bounds if they are faster, or if the sums are too long."""
        if (sooner := quick(product, width)) is not None:
            with contextlib.suppress(UndecidedError):
                return ask(sooner)
        return by_bounds(product, ask) if _is_long(product, width) else ask(product)

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
    """Return Lap(1)^d at the given distances ≥ 0 against Lap(1)^d at 0; a distance 0 has loss 0.

    Raises InvalidInputError if two distances have an irrational ratio.
    """
    return of_counts(Counter(distances))


def of_counts(counts: Mapping[ExactReal, int]) -> Product:
    """Return the same, given the distinct distances and the number of coordinates with each."""
    positive = sorted(distance for distance in counts if distance.sign > 0)
    if any((distance / positive[0]).rational is None for distance in positive):
        raise InvalidInputError(
            "Expected shifts whose ratios are rational, so that the losses of the coordinates "
            "share a unit. Round the shifts up to a common grid: delta grows with each of them."
        )
    return Product(tuple((LaplacePair(each), counts[each]) for each in positive), LaplaceSums())


def is_laplace(pair: Pair) -> bool:
    """Whether a pair is a product of Laplace laws with exact sums."""
    return isinstance(pair, Product) and isinstance(pair.engine, LaplaceSums)


@final
@dataclass(frozen=True)
class Lattice:
    """The distances as multiples of a unit > 0."""

    unit: ExactReal
    groups: Groups
    """The multiples, ascending, each with its number of coordinates."""
    mean: float
    """About E_P[L]."""

    def above(
        self, epsilon: ExactReal, kernel: Kernel, asked: Fraction | None, *, at_least: bool = False
    ) -> arb:
        """Return P(L > ε), Q(L > ε) or H(ε) for the kernel; with `at_least`, L ≥ ε replaces L > ε.

        The relative width is `asked`, or None for the current precision. Raises UndecidedError if
        the sums would be too long.
        """
        self._cost(epsilon)  # raises if they are
        goal, value = _goal(asked), arb(0)
        bits = goal + 2 * _coordinates(self.groups).bit_length() + 24
        for _ in range(_ROUNDS):
            with ctx.workprec(-(-bits // _PRECISION_STEP) * _PRECISION_STEP):
                value = self._sum(epsilon, kernel, at_least)
            if value.rel_accuracy_bits() > goal or value.is_zero():
                break
            short = max(goal - value.rel_accuracy_bits(), _LEAST_MORE)
            bits = min(bits + short + _SPARE_BITS, _MOST_BITS)
        return +value

    def _sum(self, epsilon: ExactReal, kernel: Kernel, at_least: bool) -> arb:
        bar, below = self._bar(epsilon, at_least)
        jumps, terms = _terms(self.groups, kernel, below, ctx.prec)
        start, unit, end = bisect_right(jumps, bar), self.unit.ball(), epsilon.ball()
        half, eps, total = unit / 2, end / 2, arb(0)
        growth, last, exponential = half.exp(), 0, (-eps).exp()
        for jump, (first, second, polynomial) in zip(jumps[start:], terms[start:], strict=True):
            exponential *= growth ** (jump - last)
            last = jump
            if kernel is not Kernel.Q:
                total += first * exponential
            if kernel is not Kernel.P:
                total += second / exponential
            total -= polynomial(jump * half - eps)
        shift = -end if kernel is Kernel.Q else end
        scale = ((shift - _reach(self.groups) * unit) / 2).exp()
        return scale * total / fmpz(2) ** _coordinates(self.groups)

    def _bar(self, epsilon: ExactReal, at_least: bool) -> tuple[int, int]:
        """Return the last jump, in units, that does not count; and one below it to be shared.

        The latter leaves a share `_SHARED`^n of the jumps ≥ 0, so that all small ε share it.
        """
        ratio = epsilon / self.unit
        bar = math.floor(ratio)
        bar -= at_least and ratio.rational == bar
        reach = _reach(self.groups)
        if bar >= reach:
            return bar, bar
        power = math.floor(math.log((reach - bar) / (reach + 1)) / math.log(_SHARED))
        below = min(reach - math.ceil((reach + 1) * _SHARED**power), bar)
        long = _count_jumps(self.groups, below) * (1 + _coordinates(self.groups)) > MAX_TERMS
        return bar, bar if long else below

    def both(
        self,
        epsilon: ExactReal,
        kernel: Kernel,
        mirrored: Kernel,
        asked: Fraction | None,
        *,
        above: bool,
    ) -> tuple[arb, arb]:
        """Return the probabilities above ε and not above ε; `above` says which one is summed."""
        if above:
            value = self.above(epsilon, kernel, asked)
            return value, 1 - value
        value = self.above(-epsilon, mirrored, asked, at_least=True)
        return 1 - value, value

    def is_short(self, epsilon: ExactReal, asked: Fraction | None) -> bool:
        """Whether the sums are short enough; the limit is lower if another engine can answer."""
        if asked is not None and asked < _WIDE:
            return True  # there is no other way
        try:
            cost = self._cost(epsilon)
        except UndecidedError:
            return False
        return asked is None or cost < (_LONG_PATIENCE if asked < _FINE else _PATIENCE)

    def _cost(self, epsilon: ExactReal) -> float:
        """Return roughly the time, in microseconds, that the sums above ε take.

        Raises UndecidedError if they are too long.
        """
        unit, coordinates = float(self.unit), _coordinates(self.groups)
        if not unit * MAX_TERMS > sys.float_info.min:  # the ratios have long denominators
            raise _too_long(math.inf)
        jumps = _count_jumps(self.groups, min(float(epsilon) / unit, sys.float_info.max))
        terms = jumps * (coordinates + 1)
        if terms > MAX_TERMS:
            raise _too_long(float(terms))
        rows, known = 0, 1
        for _, count in self.groups:  # a table grows with each group, up to the number of jumps
            rows += min(known, jumps) * count
            known *= count + 1
        slower = 1 + coordinates / _SUMS_MANY
        return slower * (_COEFFICIENT * terms + _ROW * rows * (1 + coordinates / 64))


@functools.lru_cache(maxsize=64)
def lattice(product: Product) -> Lattice:
    """Return the distances of a product of this engine."""
    distances = [(pair.distance, n) for pair, n in product.factors if isinstance(pair, LaplacePair)]
    if not distances:
        return Lattice(ExactReal.of_rational(1), (), 0.0)
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
    )


def _top(product: Product) -> ExactReal:
    """Return T = Σ t_i."""
    top = product.known.max_loss()
    assert top is not None
    return top


def _is_long(product: Product, asked: Fraction) -> bool:
    """Whether the sums are too long for this relative width."""
    return not lattice(product).is_short(ExactReal.of_rational(0), asked)


def by_bounds(product: Product, ask: Callable[[Product], T]) -> T:
    """Return the answer of the engine that adds noise, or of a grid if that takes too long."""
    with contextlib.suppress(UndecidedError):
        return ask(_blurred(product))
    return ask(_on_grid(product))


def quick(product: Product, asked: Fraction | None) -> Product | None:
    """Return the product with the engine that adds noise if it is faster than sums, else None."""
    if asked is None or asked < _FINE or sum(n for _, n in product.factors) <= _FEW_SHIFTS:
        return None
    return _blurred(product)


def _on_grid(product: Product) -> Product:
    """Return the product with the engine for any shifts."""
    from dpassay.accountant.composition.lattice import GRID

    return product.asked(GRID)


def _blurred(product: Product) -> Product:
    """Return the product with the engine that adds noise to the loss."""
    from dpassay.accountant.composition.blur import BLURRED

    return product.asked(BLURRED)

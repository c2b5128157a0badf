"""Sums over the values of a loss that has few, each with the profile of the other losses there.

Conditionally on the value l_j of the second loss, of masses p_j and q_j = p_j e^{−l_j},

    H(ε) = P₂(L₂ = ∞) + Σ_j p_j H₁(ε − l_j),

and every tail is a sum over the values in the same way.

*Discrete Gaussian noise.* The sum of the losses of n releases of parameter v at distance s is
(2sW + ns²)/2v, where W is, under P, the sum of n independent discrete Gaussian integers. The
masses are coefficients of the n-th power of a polynomial, |w| ≤ R; the others have 1 − Σ in all,
and add at most that. H₁ is 0 above the largest of its losses, and 1 − e^ε below the least: of
bounded losses it is asked for few w.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb, arb_poly

from accountant.composition.exact import convolution
from accountant.composition.exact.convolution import Value
from accountant.composition.invert import chernoff_epsilon, rough_root
from accountant.composition.product import (
    Engine,
    Product,
    UnsuitedError,
    ends,
    exact_sum,
    hockey_stick_at,
    tails_at,
)
from accountant.core.pair import Pair, Tails
from accountant.errors import NotApplicableError, UndecidedError
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import ball
from accountant.numbers.precision import ctx
from accountant.numbers.theta import theta
from accountant.pairs.discrete_gaussian import DiscreteGaussianPair

MAX_VALUES = 1 << 12
"""Most values of the finite loss: the other pair is asked once for each."""
_ENOUGH = 2
"""Twice a term's share of the width: all terms that are bounded, not computed, take half of it."""
_ROUGH_WIDTH = Fraction(1, 10**7)
"""Relative width of the values of an estimate."""
_CLOSE = 1e-4
"""Relative size of the last step of Newton's method: the next one would be its square."""
_NEAR_ONE = -0.5
"""ln δ from which on no estimate is made: Chernoff's bound, where it starts, says little."""
_SPARE = 24
"""Bits for rounding in the power of a polynomial, besides those of its exponent."""
_PRECISION = 128
"""Bits of the ends of a loss, which only choose between engines and bounds."""
_FEW_STEPS = 8
"""Lattice steps in the range of the other loss up to which a sum over them is quick."""


@final
@dataclass(frozen=True)
class Conditional(Engine):
    """Sums over the values of all losses but the first, which are few.

    Of the factors of the product the first stands alone; the others are finite pairs, or one of
    discrete Gaussian noise. Terms that are negligible beside the sum so far are bounded, not
    computed; where H₁ is a contour integral, and a width is asked for, small ones are asked for
    less.
    """

    def is_numerical(self, product: Product) -> bool:
        """Whether the engine of the first pair is."""
        first = product.pairs[0]
        return isinstance(first, Product) and first.is_numerical

    def profile(self, product: Product, epsilon: ExactReal) -> arb:
        """Return the sum over the values of the second loss, terms with the largest bounds first.

        Of n terms, one below a share x of the sum so far may have the relative width `asked`/(nx).
        """
        asked = product.relative_width
        first = product.pairs[0].to_width(asked)
        share = arb(2) ** -ctx.prec if asked is None else ball(asked)
        values, missing = _listed(product)
        terms, loose = [], asked is not None and is_contour(first)
        for value in values:
            rest = _difference(epsilon, value)
            most = value.p * _bound_at(first, rest) if loose else value.p
            terms.append((most.upper(), value.p, rest))
        total = _infinity(product) + arb(0).union(missing)
        for most, p, rest in sorted(terms, key=lambda term: -float(term[0])):
            room = total.lower() * share / len(terms)
            if most.is_zero() or most <= room / _ENOUGH:
                total += arb(0).union(most)
            elif asked is not None and loose:
                width = max(asked, Fraction(float((room / most).mid())))
                total += p * _at(first.to_width(width), rest)
            else:
                total += p * _at(first, rest)
        return total

    def bound(self, product: Product, epsilon: ExactReal) -> arb:
        """Return the sum of bounds of the first pair; 1 where it knows none."""
        values, missing = _listed(product)
        total = _infinity(product) + missing
        for value in values:
            total += value.p * _bound_at(product.pairs[0], _difference(epsilon, value))
        return total.upper().min(arb(1))

    def estimate_epsilon(self, product: Product, log_delta: float) -> float | None:
        """Return ε with ln H(ε) = log_delta by Newton's method on rough enclosures.

        Only where H₁ is a contour integral; else values are found faster.
        """
        if not is_contour(product.pairs[0]) or log_delta >= _NEAR_ONE:
            return None
        try:
            start = chernoff_epsilon(product, log_delta)
            if start is None:
                return None
            profile = product.to_width(_ROUGH_WIDTH).hockey_stick
            return rough_root(profile, log_delta, start, _CLOSE)
        except (UndecidedError, ArithmeticError):
            return None

    def tails(self, product: Product, epsilon: ExactReal) -> Tails:
        """Return the sums over the values of the second loss, each on its own."""
        values, missing = _listed(product)
        first = product.pairs[0].to_width(product.relative_width)
        p_above = _infinity(product) + arb(0).union(missing)
        q_below = _infinity(product.reverse()) + arb(0).union(missing)
        p_below = q_above = arb(0).union(missing)
        for value in values:
            inner = _tails_at(first, _difference(epsilon, value))
            p_above += value.p * inner.p_above
            p_below += value.p * inner.p_below
            q_above += value.q * inner.q_above
            q_below += value.q * inner.q_below
        return Tails(p_above, p_below, q_above, q_below)


CONDITIONAL = Conditional()


def is_contour(pair: Pair) -> bool:
    """Whether H of a pair is a contour integral."""
    return isinstance(pair, Product) and pair.engine.on_contours


def _infinity(product: Product) -> arb:
    """Return the mass at infinity of all losses but the first."""
    return Product(product.factors[1:], CONDITIONAL).infinity_mass()


def _at(first: Pair, rest: ExactReal | arb) -> arb:
    """Return H₁."""
    least, largest = _ends(first)
    at = rest.ball() if isinstance(rest, ExactReal) else rest
    if at >= largest:
        return first.infinity_mass()
    if at <= least:
        return -at.expm1()
    return first.hockey_stick(rest) if isinstance(rest, ExactReal) else hockey_stick_at(first, rest)


@functools.lru_cache(maxsize=64)
def _ends(first: Pair) -> tuple[arb, arb]:
    """Return a lower and an upper bound of the first loss."""
    with ctx.workprec(_PRECISION):
        least, largest = -first.reverse().max_loss(), first.max_loss()
    return least.lower(), largest.upper()


def _bound_at(first: Pair, rest: ExactReal | arb) -> arb:
    return first.bound(ends(rest)[0] if isinstance(rest, arb) else rest).min(arb(1))


def _tails_at(first: Pair, rest: ExactReal | arb) -> Tails:
    """Return the tails of the first loss."""
    least, largest = _ends(first)
    at = rest.ball() if isinstance(rest, ExactReal) else rest
    if at >= largest:
        return Tails(arb(0), arb(1), arb(0), arb(1))
    if at < least:
        return Tails(arb(1), arb(0), arb(1), arb(0))
    return first.tails(rest) if isinstance(rest, ExactReal) else tails_at(first, rest)


def _listed(product: Product) -> tuple[Sequence[Value], arb]:
    """Return the values of all losses but the first, and at least the mass of what they lack.

    Raises NotApplicableError or UnsuitedError if they are many.
    """
    second, count = product.factors[1]
    if isinstance(second, DiscreteGaussianPair):
        return _integer_values(second, count, ctx.prec)
    values = convolution.values(convolution.of_finite(product.factors[1:]))
    if len(values) > MAX_VALUES:
        raise NotApplicableError(
            f"The finite losses of this composition have {len(values)} values, more than the "
            f"{MAX_VALUES} that can be combined with another loss. Compose fewer releases of "
            "finite laws."
        )
    return values, arb(0)


def _difference(epsilon: ExactReal, value: Value) -> ExactReal | arb:
    """Return ε − l, exactly where l is exact and the difference is the root of a rational."""
    if value.exact is not None:
        difference = exact_sum([epsilon, -value.exact])
        if difference is not None:
            return difference
    return epsilon.ball() - value.loss


def meets_few(first: Pair, integer: Pair) -> bool:
    """Whether the range of the first loss is no longer than few of the steps s/v of the other."""
    assert isinstance(integer, DiscreteGaussianPair)
    with ctx.workprec(_PRECISION):
        length = first.max_loss() + first.reverse().max_loss()
        return bool(length * integer.parameter.ball() <= _FEW_STEPS * integer.shift)


@functools.lru_cache(maxsize=32)
def _integer_values(
    integer: DiscreteGaussianPair, n: int, precision: int
) -> tuple[list[Value], arb]:
    """Return the values (2sw + ns²)/2v with their masses, and what these lack."""
    s, v = integer.shift, integer.parameter
    masses, missing = _masses(v, n, precision)
    found = []
    for w in range(1 - len(masses), len(masses)):
        exact = ExactReal.of_rational(2 * s * w + n * s * s) / v / ExactReal.of_rational(2)
        loss = exact.ball()
        found.append(Value(loss, exact, masses[abs(w)], masses[abs(w)] * (-loss).exp()))
    return found, missing


@functools.lru_cache(maxsize=32)
def _masses(v: ExactReal, count: int, precision: int) -> tuple[tuple[arb, ...], arb]:
    """Return P(W = w) = P(W = −w), less what was cut off, for 0 ≤ w ≤ R, and all that these lack.

    What is cut off on the way belongs to outcomes that count with the latter.
    """
    fall = precision * math.log(2) + 2
    single = math.isqrt(math.ceil(2 * float(v) * (fall + math.log(count)))) + 1
    reach = min(count * single, math.isqrt(math.ceil(2 * count * float(v) * fall)) + 1)
    if 2 * reach > MAX_VALUES:
        raise UnsuitedError(
            f"The sum of {count} integers has {2 * reach} values that count, more than "
            f"{MAX_VALUES}. Ask with method='grid'."
        )
    with ctx.workprec(precision + _SPARE + count.bit_length() * 2):
        terms = [(-arb(z * z) / (2 * v.ball())).exp() for z in range(-single, single + 1)]
        law = _power(arb_poly(terms) * (1 / theta(v)), single, count, reach)
        masses = [law[law.degree() // 2 + w] for w in range(reach + 1)]
        rest = 1 - masses[0] - 2 * sum(masses[1:], start=arb(0))
    return tuple(masses), rest.max(arb(0)).upper()


def _power(law: arb_poly, single: int, count: int, reach: int) -> arb_poly:
    """Return a power of a polynomial that is symmetric about its middle, cut at every stage."""
    result = law
    for bit in bin(count)[3:]:
        result = _cut(result * result, reach)
        if bit == "1":
            result = _cut(result * law, reach)
    return _cut(result, reach, exactly=True)


def _cut(law: arb_poly, reach: int, *, exactly: bool = False) -> arb_poly:
    middle = law.degree() // 2
    if middle > reach:
        return arb_poly(law.coeffs()[middle - reach : middle + reach + 1])
    if exactly and middle < reach:
        return arb_poly([0] * (reach - middle) + law.coeffs() + [0] * (reach - middle))
    return law

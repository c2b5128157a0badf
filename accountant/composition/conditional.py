"""Sums over the values of a loss that has few, each with the profile of the other losses there.

Conditionally on the value l_j of the second loss, of masses p_j and q_j = p_j e^{−l_j},

    H(ε) = P₂(L₂ = ∞) + Σ_j p_j H₁(ε − l_j),

and every tail is a sum over the values in the same way.

The first loss is one of a single release, or one that has exact sums: of losses with a transform
and lists a contour is faster.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from flint import arb

from dpassay.accountant.composition.exact import convolution
from dpassay.accountant.composition.exact.convolution import Value
from dpassay.accountant.composition.product import (
    Engine,
    Product,
    ends,
    exact_sum,
    hockey_stick_at,
    is_numerical,
    tails_at,
)
from dpassay.accountant.core.pair import Pair, Tails
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import ctx

MAX_VALUES = 1 << 12
"""Most values of the finite loss: the other pair is asked once for each."""
_ENOUGH = 2
"""Twice a term's share of the width: all terms that are bounded, not computed, take half of it."""
_PRECISION = 128
"""Bits of the ends of a loss, which only choose between engines and bounds."""


@final
@dataclass(frozen=True)
class Conditional(Engine):
    """Sums over the values of all losses but the first, which are few.

    Of the factors of the product the first stands alone; the others are finite pairs. Terms that
    are negligible beside the sum so far are bounded, not computed.
    """

    def is_numerical(self, product: Product) -> bool:
        """Whether the engine of the first pair is."""
        return is_numerical(product.pairs[0])

    def profile(self, product: Product, epsilon: ExactReal) -> arb:
        """Return the sum over the values of the other losses, terms with the largest masses first.

        Of n terms, one below a share 1/2n of the width of the sum so far is bounded.
        """
        asked = product.relative_width
        first = product.pairs[0].to_width(asked)
        share = arb(2) ** -ctx.prec if asked is None else ball(asked)
        total, values = _infinity(product), _listed(product)
        for value in sorted(values, key=lambda value: -float(value.p)):
            if value.p <= total.lower() * share / (_ENOUGH * len(values)):
                total += arb(0).union(value.p.upper())
            else:
                total += value.p * _at(first, _difference(epsilon, value))
        return total

    def bound(self, product: Product, epsilon: ExactReal) -> arb:
        """Return the sum of bounds of the first pair; 1 where it knows none."""
        total = _infinity(product)
        for value in _listed(product):
            total += value.p * _bound_at(product.pairs[0], _difference(epsilon, value))
        return total.upper().min(arb(1))

    def tails(self, product: Product, epsilon: ExactReal) -> Tails:
        """Return the sums over the values of the second loss, each on its own."""
        first = product.pairs[0].to_width(product.relative_width)
        p_above, q_below = _infinity(product), _infinity(product.reverse())
        p_below = q_above = arb(0)
        for value in _listed(product):
            inner = _tails_at(first, _difference(epsilon, value))
            p_above += value.p * inner.p_above
            p_below += value.p * inner.p_below
            q_above += value.q * inner.q_above
            q_below += value.q * inner.q_below
        return Tails(p_above, p_below, q_above, q_below)


CONDITIONAL = Conditional()


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


def _listed(product: Product) -> Sequence[Value]:
    """Return the values of all losses but the first. Raises NotApplicableError if they are many."""
    values = convolution.values(convolution.of_finite(product.factors[1:]))
    if len(values) > MAX_VALUES:
        raise NotApplicableError(
            f"The finite losses of this composition have {len(values)} values, more than the "
            f"{MAX_VALUES} that can be combined with another loss. Compose fewer releases of "
            "finite laws."
        )
    return values


def _difference(epsilon: ExactReal, value: Value) -> ExactReal | arb:
    """Return ε − l, exactly where l is exact and the difference is the root of a rational."""
    if value.exact is not None:
        difference = exact_sum([epsilon, -value.exact])
        if difference is not None:
            return difference
    return epsilon.ball() - value.loss

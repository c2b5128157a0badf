"""A worst pair of which only bounds are known: pairs that neighbours attain, and a dominating pair.

The attained pairs bound the profile H(ε) from below, the dominating pair bounds it from above.
"""

from __future__ import annotations

import contextlib
import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias, final

from flint import arb

from dpassay.accountant.core.pair import Known, Pair, attained, refined, rho_bound
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.numbers import solve
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import (
    RELATIVE_WIDTH,
    Interval,
    enclose,
    nonnegative,
    within,
)
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.invert import inverse, most

# --- Inversion of a profile that is known only between two bounds ---------------------------------

Bound: TypeAlias = Callable[[ExactReal], arb]
_ENDS = Fraction(1, 10**6)
"""Relative width to which each bound is inverted; the two roots differ by far more."""
_LEAST = Decimal("1e-9")
"""For |ε| below this number the width is taken relative to it; otherwise no interval at 0 would be
narrow enough."""


def inverse_between(
    bounds: tuple[Bound, Bound],
    delta: ExactReal,
    step: Fraction,
    relative_width: Fraction,
    why: str,
) -> Interval:
    """Enclose ε(δ) between the points where a lower and an upper bound of δ(ε) cross δ.

    The search starts at 0 with the given step. Raises UndecidedError, with the interval and the
    reason `why` the bounds differ, if the interval is wider than `relative_width`.
    """
    one, other = (passes(bound, delta, step) for bound in bounds)
    return narrow_enough(one.hull(other), relative_width, why)


def passes(
    bound: Bound, delta: ExactReal, step: Fraction, relative_width: Fraction = _ENDS
) -> Interval:
    """Enclose the ε at which a bound of δ(ε) crosses δ; the search starts at 0 with a step."""

    def excess(epsilon: ExactReal) -> arb:
        value = bound(epsilon)
        nothing = not value > 0 and value < delta.ball()
        return arb.neg_inf() if nothing else (value / delta.ball()).log()

    between = solve.bracket(excess, step)
    try:
        return solve.root(excess, between, relative_width=relative_width)
    except UndecidedError as refusal:  # its interval encloses this root, which is all we need
        if refusal.interval is None:
            raise
        return Interval(refusal.interval.lower, refusal.interval.upper)


def narrow_enough(found: Interval, relative_width: Fraction, why: str) -> Interval:
    """Return an enclosure of ε(δ), or raise UndecidedError with it and `why` if it is too wide."""
    width = math.inf
    if found.lower.is_finite() and found.upper.is_finite():
        size = max(min(abs(found.lower), abs(found.upper)), _LEAST)
        width = float((found.upper - found.lower) / size)
    if width <= relative_width:
        return found
    raise UndecidedError(
        f"Reached epsilon in {found}: {why}. Ask for a larger relative_width.",
        reached=width,
        interval=found,
    )


_BITS, _WIDTHS = 64, (Fraction(1, 10**9), Fraction(1, 10**5), Fraction(1, 10**3))
"""Precision in bits, and relative widths tried in turn, for H of a bounding pair. The two bounds
differ by more than the first width; the wider ones serve pairs whose grid engine cannot reach it.
"""
_MOST_BITS = 256
"""Largest precision in bits for a bound in closed form. A claim may lie very near such a bound, but
more precision would not bring the two bounds closer together."""
_FINE, _ROUGH = Fraction(1, 10**6), Fraction(1, 100)
"""Relative widths for the ε of a bounding pair: the usual one, and the one to fall back on where a
grid engine cannot reach it."""


def _value(pair: Pair, epsilon: ExactReal) -> arb:
    """Return H(ε) of a bounding pair.

    The precision is flint's current one for closed forms; other pairs are computed to the first
    width of `_WIDTHS` that they reach.
    """
    if pair.known.width() <= RELATIVE_WIDTH:
        return _known(pair, epsilon, min(int(ctx.prec), _MOST_BITS), ())
    return _known(pair, epsilon, _BITS, _WIDTHS)


@lru_cache(maxsize=256)
def _known(pair: Pair, epsilon: ExactReal, bits: int, widths: tuple[Fraction, ...]) -> arb:
    with ctx.workprec(bits):
        for width in widths:
            with contextlib.suppress(UndecidedError):
                return refined(pair, width).hockey_stick(epsilon)
        return pair.hockey_stick(epsilon)


def _inverse(pair: Pair, delta: ExactReal, relative_width: Fraction) -> Interval:
    """Enclose ε(δ) of a bounding pair to its usual width, or to the width that a grid reaches."""
    try:
        return inverse([pair], delta, min(max(relative_width, pair.known.width()), _FINE))
    except UndecidedError as refusal:
        if refusal.interval is None or refusal.reached > _ROUGH:
            with contextlib.suppress(UndecidedError):
                return inverse([pair], delta, max(relative_width, _ROUGH))
        if refusal.interval is None:
            raise
        return Interval(refusal.interval.lower, refusal.interval.upper)


@final
@dataclass(frozen=True)
class Between(Pair):
    """A pair whose profile is at least that of every pair in `least` and at most that of `most`.

    The same holds for all its f-divergences, which are integrals of H and of the profile of the
    reversed pair.
    """

    least: tuple[Pair, ...]
    most: Pair
    unknown: str
    """Name of the quantity that is only bounded, for error messages."""
    largest: ExactReal | None = None
    """The largest loss, if it is known and no pair in `least` attains it."""
    parts: tuple[tuple[Pair, int], ...] = ()
    """For a composition, the worst pairs of its parts, with their counts. Under adaptive
    composition a divergence is at most the sum of the largest divergences of the parts."""

    @property
    def known(self) -> Known:
        """Return the quantities with closed forms or bounds, and a starting point for searches."""
        return Known(
            refusal=f"The law of the loss is not known: {self.unknown} is only enclosed. "
            "Ask for delta.",
            epsilon=self.most.known.epsilon,
            exact=self._exact_bound,
            inverse=self._inverse,
            rho=self._rho,
            rho_bound=lambda: self._at_most(rho_bound),
            max_loss=self._exact_max_loss,
            upper=self._upper,
            attained=self._attained,
            bound=self._upper,
        )

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return a ball that contains both bounds of H(ε); it does not shrink with precision."""
        high = _value(self.most, epsilon)
        if high.is_zero():
            return high
        return most([_value(pair, epsilon) for pair in self.least]).union(high)

    def _exact_bound(self, epsilon: ExactReal) -> ExactReal | None:
        """Return the exact upper bound of `most`, which is 0 for ε at or above its largest loss."""
        largest = self.most.known.max_loss()
        if largest is not None and epsilon >= largest:
            return ExactReal.of_rational(0)
        return self.most.known.exact(epsilon)

    def _inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Enclose the ε with H(ε) = δ; raise UndecidedError, with the interval, if it is wide."""
        if delta.ball().is_zero() and (whole := self._exact_max_loss()) is not None:
            return enclose(whole.ball)
        low, largest = Decimal("-Infinity"), self.most.known.max_loss()
        if largest is not None and largest.ball() > sys.float_info.max:  # a search would be long
            ends = enclose(lambda: arb.log1p(-delta.ball())), enclose(largest.ball)
            return narrow_enough(ends[0].hull(ends[1]), relative_width, "no float is as large")
        with within():  # an enclosure of one bound must not be reported as the answer
            for pair in self.least:
                if not low.is_finite() or not _value(pair, exact(low)) <= delta.ball():
                    low = max(low, _inverse(pair, delta, relative_width).lower)
            high = _inverse(self.most, delta, relative_width).upper
        found = Interval(low, max(low, high))
        return narrow_enough(found, relative_width, f"{self.unknown} is not known closer")

    def _around(self, question: Callable[[Pair], arb]) -> arb:
        """Return a ball that contains both bounds of a quantity ≥ 0 that increases with H."""
        low, high = most(list(map(question, self.least))), self._at_most(question)
        if low == arb.pos_inf():
            return high
        return nonnegative((low if low.is_finite() else arb(0)).union(high))

    def _at_most(self, question: Callable[[Pair], arb]) -> arb:
        """Return the bound by `most`, or the sum of the bounds of the parts if it is smaller."""
        high = question(self.most)
        if not self.parts:
            return high
        with contextlib.suppress(NotApplicableError):
            return high.min(sum((n * question(pair) for pair, n in self.parts), start=arb(0)))
        return high

    def renyi(self, order: arb) -> arb:
        """Return a ball that contains both bounds of the Rényi divergence."""
        return self._around(lambda pair: pair.renyi(order))

    def _rho(self) -> arb:
        """Return a ball from D_1 to an upper bound of ρ; +∞ if a pair in `least` has ρ = +∞."""
        if any(pair.known.rho() == arb.pos_inf() for pair in self.least):
            return arb.pos_inf()
        high = rho_bound(self).upper()
        radius = self.renyi(arb(1)).union(high).rad()
        if not radius.is_finite():
            return arb.pos_inf()
        # the upper end of the ball is `high` exactly, since claims are compared with it
        return arb(high - arb(0, radius).rad(), radius)

    def max_loss(self) -> arb:
        """Return the largest loss if it is known, else a ball that contains both bounds of it."""
        if self.largest is not None:
            return self.largest.ball()
        return self._around(lambda pair: pair.max_loss())

    def _exact_max_loss(self) -> ExactReal | None:
        """Return the largest loss if it is known, or if a pair in `least` attains that of `most`.

        None otherwise.
        """
        if self.largest is not None:
            return self.largest
        largest = self.most.known.max_loss()
        attained = any(pair.known.max_loss() == largest for pair in self.least)
        return largest if attained else None

    def infinity_mass(self) -> arb:
        """Return a ball that contains both bounds of P(L = +∞)."""
        return self._around(lambda pair: pair.infinity_mass())

    def _attained(self, epsilon: ExactReal) -> Pair:
        """Return the pair that attains the lower bound: the one in `least` with the largest H."""
        best = max(self.least, key=lambda pair: float(_value(pair, epsilon).mid()))
        return attained(best, epsilon)

    def _upper(self, epsilon: ExactReal) -> arb:
        """Return the upper bound. (The radius of a ball around both has 30 bits only.)"""
        return _value(self.most, epsilon).upper()

    def reverse(self) -> Between:
        """Return the pair with all bounding pairs reversed."""
        return Between(
            tuple(pair.reverse() for pair in self.least),
            self.most.reverse(),
            self.unknown,
            self.largest,
            tuple((pair.reverse(), n) for pair, n in self.parts),
        )

    def law(self) -> dict[str, object]:
        """Return {"law": "between", "factors"}: the laws of `least`, then the law of `most`."""
        laws = (pair.law() for pair in (*self.least, self.most))
        return {"law": "between", "factors": [json.dumps(law) for law in laws]}

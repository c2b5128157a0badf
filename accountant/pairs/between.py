"""A worst pair with two ends: pairs that neighbours have, and one that bounds all."""

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
from dpassay.accountant.pairs.invert import inverse

# --- The ε of a pair of which two bounds of δ(ε) are known ----------------------------------------

Bound: TypeAlias = Callable[[ExactReal], arb]
_ENDS = Fraction(1, 10**6)
"""Relative width of each end of an ε: the ends differ by far more."""
_LEAST = Decimal("1e-9")
"""An ε that is smaller has a width relative to this one: else none is narrow at 0."""


def inverse_between(
    bounds: tuple[Bound, Bound],
    delta: ExactReal,
    step: Fraction,
    relative_width: Fraction,
    why: str,
) -> Interval:
    """Enclose ε(δ) by where a lower and an upper bound pass δ, looked for in steps from 0.

    Raises UndecidedError, with both ends and `why` they differ, if the interval is too wide.
    """
    one, other = (passes(bound, delta, step) for bound in bounds)
    return narrow_enough(one.hull(other), relative_width, why)


def passes(
    bound: Bound, delta: ExactReal, step: Fraction, relative_width: Fraction = _ENDS
) -> Interval:
    """Enclose where a bound passes δ, looked for in steps from 0."""

    def excess(epsilon: ExactReal) -> arb:
        value = bound(epsilon)
        nothing = not value > 0 and value < delta.ball()
        return arb.neg_inf() if nothing else (value / delta.ball()).log()

    between = solve.bracket(excess, step)
    try:
        return solve.root(excess, between, relative_width=relative_width)
    except UndecidedError as refusal:  # it says where this end is, which is no answer
        if refusal.interval is None:
            raise
        return Interval(refusal.interval.lower, refusal.interval.upper)


def narrow_enough(found: Interval, relative_width: Fraction, why: str) -> Interval:
    """Return an enclosure of ε(δ); UndecidedError, with it and `why`, where it is too wide."""
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
"""Precision and relative widths of ends, which are farther apart: grids end at the later ones, or
earlier."""
_MOST_BITS = 256
"""Precision of ends in closed form, which a claim may nearly meet; both stay as far apart."""
_FINE, _ROUGH = Fraction(1, 10**6), Fraction(1, 100)
"""Relative width of the ε of each end, and the one where a grid ends before."""


def _value(pair: Pair, epsilon: ExactReal) -> arb:
    """Return H of one end: in closed form to the precision, else to a width that is reached."""
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
    """Return the ε of one end as narrow as its own usually is, or as a grid has it."""
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
    """H is at least that of each of some pairs, and at most that of another one.

    So are all divergences, which are integrals of H and of that of the reverse.
    """

    least: tuple[Pair, ...]
    most: Pair
    unknown: str
    """What is not known closer."""
    largest: ExactReal | None = None
    """The largest loss, where it is known and no pair of `least` has it."""
    parts: tuple[tuple[Pair, int], ...] = ()
    """Of a composition the worst pairs of its parts, with their counts: divergences of releases
    that are chosen one after the other are at most the sum of the largest ones of each."""

    @property
    def known(self) -> Known:
        """Return closed forms, and where a search may start."""
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
        """Return a ball around both ends, whatever the precision."""
        high = _value(self.most, epsilon)
        return high if high.is_zero() else self._low(epsilon).union(high)

    def _exact_bound(self, epsilon: ExactReal) -> ExactReal | None:
        """Return that of `most`; 0 from its largest loss on."""
        largest = self.most.known.max_loss()
        if largest is not None and epsilon >= largest:
            return ExactReal.of_rational(0)
        return self.most.known.exact(epsilon)

    def _low(self, epsilon: ExactReal) -> arb:
        first, *others = (_value(pair, epsilon) for pair in self.least)
        for other in others:
            first = first.max(other)
        return first

    def _inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Enclose the ε with H(ε) = δ; UndecidedError, with both ends, where they are too wide."""
        if delta.ball().is_zero() and (whole := self._exact_max_loss()) is not None:
            return enclose(whole.ball)
        low, largest = Decimal("-Infinity"), self.most.known.max_loss()
        if largest is not None and largest.ball() > sys.float_info.max:  # a search would be long
            ends = enclose(lambda: arb.log1p(-delta.ball())), enclose(largest.ball)
            return narrow_enough(ends[0].hull(ends[1]), relative_width, "no float is as large")
        with within():  # the enclosure of one end is no answer
            for pair in self.least:
                if not low.is_finite() or not _value(pair, exact(low)) <= delta.ball():
                    low = max(low, _inverse(pair, delta, relative_width).lower)
            high = _inverse(self.most, delta, relative_width).upper
        found = Interval(low, max(low, high))
        return narrow_enough(found, relative_width, f"{self.unknown} is not known closer")

    def _around(self, question: Callable[[Pair], arb]) -> arb:
        """Return a ball around both ends of a number ≥ 0 that grows with H."""
        first, *others = map(question, self.least)
        for other in others:
            first = first.max(other)
        most = self._at_most(question)
        if first == arb.pos_inf():
            return most
        return nonnegative((first if first.is_finite() else arb(0)).union(most))

    def _at_most(self, question: Callable[[Pair], arb]) -> arb:
        """Return that number of `most`, or the sum of those of the parts where it is less."""
        most = question(self.most)
        if not self.parts:
            return most
        with contextlib.suppress(NotApplicableError):
            return most.min(sum((n * question(pair) for pair, n in self.parts), start=arb(0)))
        return most

    def renyi(self, order: arb) -> arb:
        """Return a ball around both ends."""
        return self._around(lambda pair: pair.renyi(order))

    def _rho(self) -> arb:
        """Return a ball from D_1 up to what bounds the ρ of `most`, or ∞ where `least` has it."""
        if any(pair.known.rho() == arb.pos_inf() for pair in self.least):
            return arb.pos_inf()
        high = rho_bound(self).upper()
        radius = self.renyi(arb(1)).union(high).rad()
        if not radius.is_finite():
            return arb.pos_inf()
        return arb(high - arb(0, radius).rad(), radius)  # that end is met by claims: exactly

    def max_loss(self) -> arb:
        """Return a ball around both ends, or around the largest loss."""
        if self.largest is not None:
            return self.largest.ball()
        return self._around(lambda pair: pair.max_loss())

    def _exact_max_loss(self) -> ExactReal | None:
        """Return that of `most` where one of `least` attains it, or what is known."""
        if self.largest is not None:
            return self.largest
        largest = self.most.known.max_loss()
        attained = any(pair.known.max_loss() == largest for pair in self.least)
        return largest if attained else None

    def infinity_mass(self) -> arb:
        """Return a ball around both ends."""
        return self._around(lambda pair: pair.infinity_mass())

    def _attained(self, epsilon: ExactReal) -> Pair:
        """Return what the pair of `least` with the largest H has there."""
        most = max(self.least, key=lambda pair: float(_value(pair, epsilon).mid()))
        return attained(most, epsilon)

    def _upper(self, epsilon: ExactReal) -> arb:
        """Return the larger end: a ball around both has a radius of 30 bits."""
        return _value(self.most, epsilon).upper()

    def reverse(self) -> Between:
        """Return the pair of the reversed ends."""
        return Between(
            tuple(pair.reverse() for pair in self.least),
            self.most.reverse(),
            self.unknown,
            self.largest,
            tuple((pair.reverse(), n) for pair, n in self.parts),
        )

    def law(self) -> dict[str, object]:
        """Return {"law": "between", "factors"}: the laws of `least`, and then that of `most`."""
        laws = (pair.law() for pair in (*self.least, self.most))
        return {"law": "between", "factors": [json.dumps(law) for law in laws]}

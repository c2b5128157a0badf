"""Certified roots of non-increasing functions."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from itertools import count
from typing import TypeVar

from flint import arb

from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import (
    MAX_PRECISION,
    START_PRECISION,
    Interval,
    ball,
    within,
)
from dpassay.accountant.numbers.precision import ctx

Function = Callable[[ExactReal], arb]
Bracket = tuple[Fraction, Fraction]
_MAX_DOUBLINGS = 4096
"""Doublings of a step: beyond 2^4096 a refusal says so."""
_FAR = 32
"""Doublings of a step after which its factors double: what is that large is far away."""
_PRECISIONS = 4
"""Doublings of the precision at which signs are asked: four are minutes."""
_SLOW_STEPS = 3
"""Chords that hardly help before a bisection."""
_GUESSES = 3
"""Times that the chord through two ends of one sign is followed."""
_FEW = Context(prec=6, Emax=MAX_EMAX, Emin=MIN_EMIN)
"""Digits of a number in a message."""
_SPARE_BITS = 8
"""Bits of the precision that keep points from the ends of a bracket."""
_WIDE = arb(1) / 64
"""Share of a bracket, next to an end, into which no chord leads from far away."""
HALF = Fraction(9, 20)
"""Half a width, less what outward rounding takes."""
_NEAR = Fraction(1, 1000)
_TIE = arb(2) ** -128
"""A value that may be 0 at the highest precision is a root if it is smaller, else a wide ball."""
_SHARES = (Fraction(1, 4), Fraction(1, 2), Fraction(1))
"""Widths of the answers that are tried, of the largest one."""


def bracket(function: Function, step: Fraction, *, floor: Fraction | None = None) -> Bracket:
    """Find low < high with function(low) ≥ 0 ≥ function(high), by steps that at least double.

    A point whose sign is not known, since the ball there is wide, is neither end.

    Parameters
    ----------
    function
        Non-increasing; returns a ball for the value at an exact point.
    step
        The first step, > 0. The search begins at `floor`, or at 0.
    floor
        A point below which the search never goes; without it, negative points are tried too.
    """
    origin = Fraction(0) if floor is None else floor
    first = 1 if floor is not None else _sign(function, origin)
    low = origin if first is not None and first >= 0 else None
    high = origin if first is not None and first < 0 else None
    distance, farthest = step, step * 2**_MAX_DOUBLINGS
    for n in count():
        if low is not None and high is not None:
            return low, high
        if high is None:
            sign = _sign(function, origin + distance)
            if sign is not None and sign > 0:
                low = origin + distance
            elif sign is not None:
                high = origin + distance
        if low is None:
            sign = _sign(function, origin - distance)
            if sign is not None and sign >= 0:
                low = origin - distance
            elif sign is not None:
                high = origin - distance
        if distance > farthest:
            break
        step *= 1 << max(1, n - _FAR)
        distance += step
    raise UndecidedError(f"No change of sign was found within 2^{_MAX_DOUBLINGS} of {origin}.")


def _about(value: Fraction) -> str:
    """Return a few digits of a number that may be beyond the range of floats."""
    found = _FEW.divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{found.normalize(_FEW):g}"


def root(function: Function, between: Bracket, *, relative_width: Fraction) -> Interval:
    """Enclose the point where a non-increasing function passes from ≥ 0 to ≤ 0.

    A fast approximation (regula falsi on ball midpoints) is followed by a proof: the function
    is certainly positive at the lower end of the answer and certainly negative at the upper
    end, or the end is one of `between`, and indistinguishable from a root. A root that the
    ladder cannot distinguish from 0 is enclosed to an absolute width, about the fourth power of
    the relative one.

    Raises
    ------
    UndecidedError
        If the signs so near to the root cannot be distinguished at the highest precision; the
        message carries the enclosure that was reached.
    """
    bits = (relative_width.denominator // relative_width.numerator).bit_length() + 4
    low, high = between
    at_zero = low <= 0 <= high and _sign(function, Fraction(0)) == 0

    def around(guess: Fraction, slack: Fraction) -> Interval | None:
        lower, upper = max(low, guess - slack), min(high, guess + slack)
        if is_end(lower, low, 1) and is_end(upper, high, -1):
            return _hull(lower, upper, bits)
        if (lower, upper) == between:
            raise UndecidedError(
                f"No root is proved to lie in [{_about(low)}, {_about(high)}]: the values at the "
                "ends are not known well enough."
            )
        return None

    def is_end(point: Fraction, outer: Fraction, side: int) -> bool:
        sign = _sign(function, point)
        return sign == side or (point == outer and sign == 0)

    for precision in [(2 * bits + 64) << doublings for doublings in range(_PRECISIONS)]:
        with ctx.workprec(precision), within():
            guess = Fraction(0) if at_zero else approximate(function, low, high, bits)
        most = HALF * abs(guess) * relative_width / (1 + relative_width)
        for share in _SHARES:
            found = around(guess, most * share or Fraction(1, 1 << (4 * bits)))
            if found is not None:
                return found
    slack = 4 * most or Fraction(1, 1 << (3 * bits))
    while (found := around(guess, slack)) is None:
        slack *= 4
    raise UndecidedError(
        f"The root near {_about(guess)} could not be proved to relative width "
        f"{float(relative_width):.1e}; reached [{found.lower:.12g}, {found.upper:.12g}]. "
        "Ask for a larger relative_width.",
        reached=float(found.relative_width or math.inf),
        interval=found,
    )


def beside(function: Function, guess: Fraction, *, relative_width: Fraction) -> Interval | None:
    """Enclose the root near a guess of about that accuracy, by two signs; None if it is not there.

    The function is non-increasing. Where both ends have one sign the chord through them says where
    to look next.
    """
    bits = (relative_width.denominator // relative_width.numerator).bit_length() + 4
    for _ in range(_GUESSES):
        slack = abs(guess) * relative_width * HALF
        lower, upper = guess - slack, guess + slack
        with ctx.workprec(max(START_PRECISION, bits + 32)), within():
            first, second = (function(ExactReal.of_rational(end)) for end in (lower, upper))
        if first > 0 > second:
            return _hull(lower, upper, bits)
        if not (first.is_finite() and second.is_finite() and first > second):
            return None
        middle, fall = first.mid() + second.mid(), first.mid() - second.mid()
        move = slack * fraction((middle / fall).mid())
        if abs(move) > abs(guess) * _NEAR:
            return None
        grid = slack if abs(move) >= slack else slack / 8  # between unclear ends it is centred
        guess += move // grid * grid
    return None


def _hull(lower: Fraction, upper: Fraction, bits: int) -> Interval:
    """Return the interval, its ends rounded outward."""
    digits = int(bits * 0.30103) + 6
    return Interval.of_exact(lower, digits).hull(Interval.of_exact(upper, digits))


def _sign(function: Function, point: Fraction) -> int | None:
    """Sign at a point; 0 if the ladder cannot tell it from a root, None where the ball is wide."""
    exact, precision = ExactReal.of_rational(point), 128
    while True:
        with ctx.workprec(precision), within():
            ball = function(exact)
        if ball > 0:
            return 1
        if ball < 0:
            return -1
        if ball.is_zero():
            return 0
        if precision >= MAX_PRECISION // 8:
            return 0 if ball.abs_upper() < _TIE else None
        precision *= 2


def approximate(function: Function, start: Fraction, stop: Fraction, bits: int) -> Fraction:
    """Return a point near the root, without proof: the Illinois method, guarded by bisection.

    No point is nearer to an end of the bracket than the tolerance, so that an end next to the
    root soon meets one on the other side. It is of so many bits, or of flint's precision.
    """
    at_low, at_high = (_value(function, ExactReal.of_rational(end)) for end in (start, stop))
    low, high = ball(start).mid(), ball(stop).mid()
    least_share = arb(2) ** -(min(bits, ctx.prec - _SPARE_BITS) + 3)
    side = slow = 0
    for _ in range(16 * bits):
        least = (abs(high + low) * least_share).mid()
        if high - low <= 4 * least:
            break
        chord = secant(low, high, at_low, at_high, bits) if slow < _SLOW_STEPS else None
        point = _halfway(low, high) if chord is None else chord
        point = min(max(point, low + least), high - least).mid()
        width, value = high - low, _value(function, ExactReal.of_rational(fraction(point)))
        if value is not None and value.is_zero():
            return fraction(point)
        if value is None or value < 0:
            high, at_high = point, value
            at_low = at_low / 2 if at_low is not None and side < 0 else at_low
            side = -1
        else:
            low, at_low = point, value
            at_high = at_high / 2 if at_high is not None and side > 0 else at_high
            side = 1
        halved = 2 * (high - low) <= width
        slow = 0 if halved or chord is None else slow + 1
    return fraction(((low + high) / 2).mid())


def secant(low: arb, high: arb, at_low: arb | None, at_high: arb | None, bits: int) -> arb | None:
    """Where the chord crosses zero, rounded and kept inside; None where there is no chord."""
    if at_low is None or at_high is None or not at_low > at_high:
        return None
    share, width = (at_low / (at_low - at_high)).mid(), (high - low).mid()
    if width > _WIDE * abs(high + low) and not _WIDE < share < 1 - _WIDE:
        return None  # far from the root values of so unequal sizes say little
    margin = arb(2) ** -(bits + 4)
    share = min(max(share, margin), 1 - margin)
    grid = arb(2) ** (_exponent(width) - bits - 8)
    point = (((low + width * share) / grid).mid().floor() * grid).mid()
    return point if low < point < high else None


def _halfway(low: arb, high: arb) -> arb:
    """Return the middle: of the exponents, where the ends are on one side of 0 and far apart."""
    if low > 0 and high > 16 * low:
        return low * arb(2) ** ((_exponent(high) - _exponent(low)) // 2)
    if high < 0 and low < 16 * high:
        return high * arb(2) ** ((_exponent(low) - _exponent(high)) // 2)
    return (low + high) / 2


def _value(function: Function, point: ExactReal) -> arb | None:
    """Midpoint of the value; None where it is infinite (the logarithm of 0)."""
    value = function(point)
    middle: arb = value.mid()
    return middle if value.is_finite() else None


def _exponent(value: arb) -> int:
    mantissa, exponent = value.man_exp()
    return int(exponent) + int(mantissa).bit_length()


def fraction(value: arb) -> Fraction:
    """Return a ball without a radius as the dyadic rational that it is."""
    mantissa, exponent = (int(part) for part in value.man_exp())
    return Fraction(mantissa << exponent) if exponent > 0 else Fraction(mantissa, 1 << -exponent)


def shortened(value: float, bits: int, to: Callable[[float], int] = round) -> float:
    """Return a float of at most so many bits, the nearest one, or that of `math.floor` and so on.

    Neighbouring questions that are shortened alike share what is made for one of them.
    """
    mantissa, exponent = math.frexp(value)
    return math.ldexp(to(math.ldexp(mantissa, bits)), exponent - bits)


# --- Where an increasing function changes its sign, between points at which that is certain -------

_GROWTH = 8
"""Factor of the steps out of a crossing to where the side is certain."""

Rise = Callable[[Fraction], arb]


def crossing(rise: Rise, a: Fraction, b: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Return points that the change of sign lies between, about 2^-bits of their size apart.

    The sign is certain at each, unless it is an end of the interval that is searched. Steps that
    grow, out of where a search without proof finds it, prove it.
    """

    def falls(x: ExactReal) -> arb:
        known = x.rational
        assert known is not None
        return -rise(known)

    x = approximate(falls, a, b, bits)
    unit = power_of_two(max(abs(x), (b - a) / (1 << bits)) / (1 << bits))
    x = round(x / unit) * unit  # points stay short
    low, high = a, b
    step = 4 * unit
    while low == a and x - step > a:
        if rise(x - step) < 0:
            low = x - step
        step *= _GROWTH
    step = 4 * unit
    while high == b and x + step < b:
        if rise(x + step) > 0:
            high = x + step
        step *= _GROWTH
    return low, high


def power_of_two(value: Fraction) -> Fraction:
    """Return the least power of 2 that is not below about half of the value, and at least it."""
    found = Fraction(2) ** (value.numerator.bit_length() - value.denominator.bit_length())
    return found if found >= value else 2 * found


# --- Where what holds on one side of a point alone changes: among reals, and among integers -------

Real = TypeVar("Real", float, Fraction)
_BITS = 60
"""Halvings where no number is named: all bits of a double."""


def halved(
    is_before: Callable[[Real], bool],
    low: Real,
    high: Real,
    steps: int = _BITS,
    *,
    width: float = 0,
) -> tuple[Real, Real]:
    """Return points before and behind the change, or the ends, by so many halvings at most.

    The last bracket may have a width relative to its upper end.
    """
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if is_before(middle) else (low, middle)
        if high - low <= width * high:
            break
    return low, high


def first(holds: Callable[[int], bool], start: int = 0) -> int:
    """Return the least integer at which something holds that holds from there on.

    Steps that double lead away from `start`; bisection follows.
    """
    step = 1
    if holds(start):
        low, high = start - step, start
        while holds(low):
            low, high, step = low - 2 * step, low, 2 * step
    else:
        low, high = start, start + step
        while not holds(high):
            low, high, step = high, high + 2 * step, 2 * step
    return low + 1 + bisect_left(range(low + 1, high), True, key=holds)


# --- The factor of Chernoff's bound of a profile --------------------------------------------------
# For c > 0 and all real x, (1 − e^{−x})⁺ ≤ e^{cx} c^c/(1 + c)^{1 + c}, with equality at
# e^{−x} = c/(1 + c). With x = L − ε and the mean over P,
#
#     H(ε) = E[(1 − e^{ε−L})⁺] ≤ E[e^{cL}] e^{−cε} c^c/(1 + c)^{1 + c}.


def log_peak(c: arb) -> arb:
    """Return ln of the largest (1 − e^{−x}) e^{−cx}, which is c ln c − (1 + c) ln(1 + c), c > 0."""
    return c * c.log() - (1 + c) * c.log1p()


def rough_log_peak(c: float) -> float:
    """Return the same in floats, to choose a c by."""
    return c * math.log(c) - (1 + c) * math.log1p(c)

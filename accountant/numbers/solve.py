"""Certified roots of non-increasing functions, bisection, and the factor of Chernoff's bound."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from itertools import count
from typing import TypeVar

from flint import arb

from dpassay.accountant.errors import TOO_LARGE, UndecidedError
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
"""Limit of the search for a bracket: 2^4096 times the first step. Beyond it the search fails."""
_FAR = 32
"""Steps that double. After these the factor itself doubles: the sign change is far away."""
_PRECISIONS = 4
"""Working precisions that `root` tries, each twice the previous one; more would take minutes."""
_SLOW_STEPS = 3
"""Consecutive chord steps that do not halve the bracket before a bisection is forced."""
_GUESSES = 3
"""Corrections of a guess in `root_near`."""
_FEW = Context(prec=6, Emax=MAX_EMAX, Emin=MIN_EMIN)
"""Decimal context for numbers in error messages."""
_SPARE_BITS = 8
"""Bits of the working precision that the least distance between two points does not use."""
_WIDE = arb(1) / 64
"""A bracket wider than this share of |low + high| is wide. In a wide bracket a chord that meets
zero within this share of an end is not used."""
HALF = Fraction(9, 20)
"""Half of an interval's width, reduced to leave room for rounding its ends outward."""
_NEAR = Fraction(1, 1000)
"""Largest relative correction of a guess in `root_near`."""
_TIE = arb(2) ** -128
"""At the highest precision, a ball that contains 0 counts as a root only if it is smaller."""
_MOST_BITS = 1 << 26
"""Largest exponent of a dyadic number that is written out: it takes 8 MB, and seconds to divide."""
_SHARES = (Fraction(1, 4), Fraction(1, 2), Fraction(1))
"""Trial widths of an answer, as shares of the widest one allowed."""


def bracket(function: Function, step: Fraction, *, floor: Fraction | None = None) -> Bracket:
    """Find low < high with function(low) ≥ 0 ≥ function(high), by steps that at least double.

    A point whose sign cannot be determined, because the ball there is wide, serves as neither end.

    Parameters
    ----------
    function
        Non-increasing. Returns a ball that contains the value at an exact point.
    step
        The first step, > 0. The search starts at `floor`, or at 0.
    floor
        The least point searched. Without it the search extends to negative points too.

    Raises
    ------
    UndecidedError
        If no change of sign is found.
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
    """Format a number, which may be outside the range of floats, to six digits."""
    found = _FEW.divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{found.normalize(_FEW):g}"


def root(function: Function, between: Bracket, *, relative_width: Fraction) -> Interval:
    """Enclose the point where a non-increasing function changes from ≥ 0 to ≤ 0.

    An approximate root (regula falsi on midpoints of balls) is followed by a proof: the function is
    positive at the lower end of the answer and negative at its upper end. An end of `between` is
    also accepted if the sign there cannot be told from 0. A root that cannot be told from 0 is
    enclosed to an absolute width, about the fourth power of the relative one.

    Raises
    ------
    UndecidedError
        If the signs near the root cannot be determined at the highest precision. The error carries
        the enclosure reached.
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


def root_near(function: Function, guess: Fraction, *, relative_width: Fraction) -> Interval | None:
    """Enclose the root of a non-increasing function near a guess, by its signs at two points.

    The guess should be accurate to about `relative_width`. If both points have the same sign, the
    chord through them gives the next guess. Returns None if no root is found near the first guess.
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
        grid = slack if abs(move) >= slack else slack / 8  # finer if the signs are unclear
        guess += move // grid * grid
    return None


def _hull(lower: Fraction, upper: Fraction, bits: int) -> Interval:
    """Return the interval [lower, upper] with its ends rounded outward."""
    digits = int(bits * 0.30103) + 6
    return Interval.of_exact(lower, digits).hull(Interval.of_exact(upper, digits))


def _sign(function: Function, point: Fraction) -> int | None:
    """Return the sign at a point; 0 if it cannot be told from a root, None if the ball is wide."""
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

    Every point keeps the tolerance as a distance from the ends of the bracket, so an end next to
    the root soon meets a point on the other side. The relative tolerance is about 2^−bits, or what
    flint's current precision allows.
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
    """Return where the chord crosses 0, rounded inside the bracket; None if it is of no use."""
    if at_low is None or at_high is None or not at_low > at_high:
        return None
    share, width = (at_low / (at_low - at_high)).mid(), (high - low).mid()
    if width > _WIDE * abs(high + low) and not _WIDE < share < 1 - _WIDE:
        return None  # far from the root, values of such unequal size say little
    margin = arb(2) ** -(bits + 4)
    share = min(max(share, margin), 1 - margin)
    grid = arb(2) ** (_exponent(width) - bits - 8)
    point = (((low + width * share) / grid).mid().floor() * grid).mid()
    return point if low < point < high else None


def _halfway(low: arb, high: arb) -> arb:
    """Return the midpoint, or the geometric one (roughly) of distant ends of the same sign."""
    if low > 0 and high > 16 * low:
        return low * arb(2) ** ((_exponent(high) - _exponent(low)) // 2)
    if high < 0 and low < 16 * high:
        return high * arb(2) ** ((_exponent(low) - _exponent(high)) // 2)
    return (low + high) / 2


def _value(function: Function, point: ExactReal) -> arb | None:
    """Return the midpoint of the value's ball; None if the value is infinite, as ln 0 is."""
    value = function(point)
    middle: arb = value.mid()
    return middle if value.is_finite() else None


def _exponent(value: arb) -> int:
    mantissa, exponent = value.man_exp()
    return int(exponent) + int(mantissa).bit_length()


def fraction(value: arb) -> Fraction:
    """Return an exact ball as a dyadic rational; refuse one whose digits fill the memory."""
    mantissa, exponent = (int(part) for part in value.man_exp())
    if abs(exponent) > _MOST_BITS:
        raise UndecidedError(TOO_LARGE)
    return Fraction(mantissa << exponent) if exponent > 0 else Fraction(mantissa, 1 << -exponent)


def shortened(value: float, bits: int, to: Callable[[float], int] = round) -> float:
    """Round a float to at most `bits` significant bits; `to` rounds, e.g. `math.floor`.

    Similar questions then have equal arguments and share cached results.
    """
    mantissa, exponent = math.frexp(value)
    return math.ldexp(to(math.ldexp(mantissa, bits)), exponent - bits)


# --- The sign change of an increasing function, between points where the sign is proved ----------

_GROWTH = 8
"""Growth factor of the steps away from an approximate sign change."""

Rise = Callable[[Fraction], arb]


def crossing(rise: Rise, a: Fraction, b: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Return points on both sides of the sign change, about 2^−bits of their size apart.

    `rise` is increasing. Its sign is proved at both points, except at a point that is an end of
    [a, b]. An unproved search finds the sign change; growing steps away from it find the points.
    """

    def falls(x: ExactReal) -> arb:
        known = x.rational
        assert known is not None
        return -rise(known)

    x = approximate(falls, a, b, bits)
    unit = power_of_two(max(abs(x), (b - a) / (1 << bits)) / (1 << bits))
    x = round(x / unit) * unit  # rationals with short numerators
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
    """Return the least power of 2 that is at least `value`, a positive number."""
    found = Fraction(2) ** (value.numerator.bit_length() - value.denominator.bit_length())
    return found if found >= value else 2 * found


# --- The point where a monotone condition changes, among real numbers and among integers ----------

Real = TypeVar("Real", float, Fraction)


def halved(
    is_before: Callable[[Real], bool],
    low: Real,
    high: Real,
    steps: int = 60,
    *,
    width: float = 0,
) -> tuple[Real, Real]:
    """Return the last point known to be before the change and the first known to be after it.

    Bisection stops after `steps` steps, by default enough for all bits of a double, or when the
    bracket's width is at most `width` times its upper end. An end that never moved is not tested.
    """
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if is_before(middle) else (low, middle)
        if high - low <= width * high:
            break
    return low, high


def first(holds: Callable[[int], bool], start: int = 0) -> int:
    """Return the least integer at which a monotone condition, false and then true, holds.

    The search doubles its steps away from `start`, then bisects.
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
    while high - low > 1:  # not by bisect: a range may be too long for it
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


# --- The factor of Chernoff's bound on a privacy profile ------------------------------------------
# For c > 0 and all real x, (1 − e^{−x})⁺ ≤ e^{cx} c^c/(1 + c)^{1 + c}, with equality at
# e^{−x} = c/(1 + c). Put x = L − ε, L the privacy loss, and take the mean under P:
#
#     H(ε) = E[(1 − e^{ε−L})⁺] ≤ E[e^{cL}] e^{−cε} c^c/(1 + c)^{1 + c}.


def log_peak(c: arb) -> arb:
    """Return ln max_x (1 − e^{−x}) e^{−cx} = c ln c − (1 + c) ln(1 + c), for c > 0."""
    return c * c.log() - (1 + c) * c.log1p()


def rough_log_peak(c: float) -> float:
    """Return `log_peak` in floats, to select c; it proves nothing."""
    return c * math.log(c) - (1 + c) * math.log1p(c)

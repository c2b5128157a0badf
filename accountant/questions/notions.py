"""Optimal conversions from a Rényi divergence or zCDP to (ε, δ) and to the power of tests.

An order a > 1 and a divergence D bound the profile of every pair with D_a(P‖Q) ≤ D. The worst pair
has two outcomes: merging all outcomes inside the best event S, and all outside, keeps
P(S) − e^ε Q(S) and does not increase the divergence. With q = Q(S) and p = δ + e^ε q,

    budget(a; ε, δ) = min over q of ln(p^a q^{1−a} + (1−p)^a (1−q)^{1−a})/(a − 1)

is therefore the largest D for which D_a ≤ D implies (ε, δ)-DP: the optimal conversion from D to δ,
and from δ to D (Asoodeh, Liao, Calmon, Kosut and Sankar 2020). The sum is convex in q, so its
minimum is where the derivative changes sign.
"""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb

from dpassay.accountant.core.validate import probability
from dpassay.accountant.errors import expected
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.numbers import solve
from dpassay.accountant.numbers.exact import ExactReal, Number, exact
from dpassay.accountant.numbers.interval import Interval, ball, enclose, sign
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import crossing, fraction
from dpassay.accountant.pairs.invert import ends
from dpassay.accountant.questions import profile, tradeoff

_ONE = ExactReal.of_rational(1)
_ROOT_WIDTH = Fraction(1, 10**20)
_SPARE_BITS = 16
"""Extra bits of precision for the rounding of a formula, besides those that 1 − δ loses."""
_MOST_SQUARINGS = 15
"""Number of values δ = 2^−1, 2^−2, 2^−4, … tried; the search ends at 2^−16384."""
_MOST_EPSILON = ExactReal.of_rational(10**6)
_SMALLEST, _LARGEST = 1e-200, 1e200
_FARTHEST = 1 << 40
"""Largest step in −ln q in the search for the least divergence."""
_GOLDEN = (math.sqrt(5) - 1) / 2


def delta_of_renyi(order: Number, divergence: Number, epsilon: Number) -> Interval:
    """Enclose the least δ such that D_order ≤ divergence implies (ε, δ)-DP, for ε ≥ 0.

    If it is below 2^−16384, about 10^−4932, the enclosure is from 0 to that.
    """
    a, eps, most = _order(order), _epsilon(epsilon), _divergence(divergence)
    if most.sign == 0:
        return Interval.of_exact(0)

    def room(delta: ExactReal) -> arb:
        if delta.sign == 0 or delta == _ONE:
            return arb.pos_inf() if delta.sign == 0 else arb.neg_inf()
        return (most.ball() / budget(a.ball(), eps.ball(), delta.ball())).log()

    def is_above(point: Fraction) -> bool:
        return (sign(lambda: room(ExactReal.of_rational(point))) or 0) > 0

    low = high = Fraction(1)
    for k in range(_MOST_SQUARINGS):
        low = Fraction(1, 1 << (1 << k))
        if is_above(low):
            break
        high = low
    else:
        return Interval.of_exact(0).hull(Interval.of_exact(high, 2))
    return solve.root(room, (low, high), relative_width=_ROOT_WIDTH)


def epsilon_of_renyi(order: Number, divergence: Number, delta: Number) -> Interval:
    """Enclose the least ε ≥ 0 such that D_order ≤ divergence implies (ε, δ)-DP.

    The width is relative to 1 + ε, because near 0 the root is only as accurate as the divergence.
    """
    a, target, most = _order(order), _delta(delta), _divergence(divergence)

    def room(one_more: ExactReal) -> arb:
        epsilon = one_more.ball() - 1
        return (most.ball() / budget(a.ball(), epsilon, target.ball())).log()

    if most.sign == 0 or room(_ONE) <= 0:
        return Interval.of_exact(0)
    between = solve.bracket(room, Fraction(1), floor=Fraction(1))
    found = solve.root(room, between, relative_width=_ROOT_WIDTH)
    low = Interval.of_exact(max(Fraction(found.lower) - 1, Fraction(0)))
    return low.hull(Interval.of_exact(Fraction(found.upper) - 1))


def power_of_renyi(order: Number, divergence: Number, alpha: Number) -> Interval:
    """Enclose the largest power of a test of level α in [0, 1] given D_order(P‖Q) ≤ divergence.

    A test maps P and Q to laws on two outcomes, whose divergence is no larger. So the power is at
    most the p with ln(p^a α^{1−a} + (1−p)^a (1−α)^{1−a}) = (a − 1)D, and a pair of laws on two
    outcomes attains it.
    """
    a, most, level = _order(order), _divergence(divergence), probability("alpha", alpha)
    if level.sign == 0 or level == _ONE or most.sign == 0:
        return exactly(level)

    def room(power: ExactReal) -> arb:
        x, p, q = a.ball(), power.ball(), level.ball()
        total = (x * p.log() + (1 - x) * q.log()).exp()
        if power != _ONE:
            total += (x * (-p).log1p() + (1 - x) * (-q).log1p()).exp()
        return (x - 1) * most.ball() - total.log()

    if room(_ONE) >= 0:
        return Interval.of_exact(1)
    least = Fraction(exactly(level).lower)
    return solve.root(room, (least, Fraction(1)), relative_width=_ROOT_WIDTH)


def power_of_zcdp(rho: Number, alpha: Number) -> Interval:
    """Enclose the largest power of a test of level α under ρ-zCDP, as for `delta_of_zcdp`."""
    budget_rho, level = _divergence(rho, "rho"), probability("alpha", alpha)
    if budget_rho.sign == 0 or level.sign == 0 or level == _ONE:
        return exactly(level)
    best = math.sqrt(-_log(level) / _float(budget_rho))  # best order for the first term alone
    order = 1 + Fraction(max(best - 1, 1e-3)).limit_denominator(10**6)
    above = power_of_renyi(order, _rational(budget_rho) * order, level)
    below = tradeoff.power(_gaussian(budget_rho), level)
    return Interval(min(below.lower, above.upper), above.upper)


def delta_of_zcdp(rho: Number, epsilon: Number) -> Interval:
    """Enclose the least δ such that ρ-zCDP implies (ε, δ)-DP, for ρ ≥ 0 and ε ≥ 0.

    The lower end is δ(ε) of the Gaussian mechanism, which is ρ-zCDP with equality at every order.
    The upper end is the optimal conversion at a single order, close to the best one. The two ends
    differ at any precision, because the worst mechanism is not known.
    """
    budget_rho, eps = _divergence(rho, "rho"), _epsilon(epsilon)
    if budget_rho.sign == 0:
        return Interval.of_exact(0)
    order = _best_order(_float(budget_rho), _float(eps))
    above = delta_of_renyi(order, _rational(budget_rho) * order, eps)
    below = profile.delta(_gaussian(budget_rho), eps)
    return Interval(min(below.lower, above.upper), above.upper)


def epsilon_of_zcdp(rho: Number, delta: Number) -> Interval:
    """Enclose the least ε ≥ 0 such that ρ-zCDP implies (ε, δ)-DP, as for `delta_of_zcdp`."""
    budget_rho, target = _divergence(rho, "rho"), _delta(delta)
    if budget_rho.sign == 0:
        return Interval.of_exact(0)
    r, log_inverse = _float(budget_rho), -_log(target)
    order = _best_order(r, r + 2 * math.sqrt(r * log_inverse))
    above = epsilon_of_renyi(order, _rational(budget_rho) * order, target)
    below = profile.epsilon(_gaussian(budget_rho), target)
    return Interval(min(below.lower, above.upper), above.upper)


def budget(a: arb, epsilon: arb, delta: arb) -> arb:
    """Return the least D_a(P‖Q) over pairs of laws on two outcomes with H(ε) = δ, for a > 1.

    The result is a ball at flint's current precision; it is NaN if the minimum is not found.
    """
    if delta * a >= 1:  # the sum falls until p = 1, where it is q^{1−a}
        return epsilon - (-delta).log1p()
    with ctx.workprec(ctx.prec + _SPARE_BITS + _bits(1 - delta)):
        return _least_divergence(a, epsilon, delta)


def _least_divergence(a: arb, epsilon: arb, delta: arb) -> arb:
    """Return `budget` if the sum has its minimum strictly between p = δ and p = 1."""
    factor = epsilon.exp()
    top = (1 - delta) / factor

    def fall(x: Fraction) -> arb:
        """Return minus the derivative of the sum at q = e^{−x}; it is positive for large x."""
        return -_slope(a, factor, delta, (-ball(x)).exp())

    low, step = fraction((-top.abs_lower().log()).mid()), 1
    high = low + step
    while not (value := fall(high)) > 0:
        low, step = high if value < 0 else low, 2 * step
        high += step
        if step > _FARTHEST:
            return arb("nan")
    low, high = crossing(fall, low, high, ctx.prec - 8)
    return _divergence_at(a, factor, delta, (-ball(low).union(ball(high))).exp())


def _slope(a: arb, factor: arb, delta: arb, q: arb) -> arb:
    """Return the derivative of p^a q^{1−a} + (1−p)^a (1−q)^{1−a} with respect to q."""
    p = delta + factor * q
    if not p < 1:
        return arb(1)  # outside of the range; the derivative is positive at its right end
    inside, outside = p / q, (1 - p) / (1 - q)
    first = inside ** (a - 1) * (a * factor - (a - 1) * inside)
    return first - outside ** (a - 1) * (a * factor - (a - 1) * outside)


def _divergence_at(a: arb, factor: arb, delta: arb, q: arb) -> arb:
    """Return the divergence at the minimiser q, given a ball that contains it.

    The minimum of a convex function on an interval lies between its tangent at the left end and its
    values at both ends. This enclosure is narrow, since the function is flat near its minimum. If
    the balls do not decide that p < 1 at the upper end of q, the end of the range, p = 1, is used
    instead: for orders near 1 the minimum may be at 1 − p = e^−20000.
    """
    low, high = (end.ball() for end in ends(q))

    def moment(at: arb) -> arb:
        p = delta + factor * at
        return p * (p / at) ** (a - 1) + (1 - p) * ((1 - p) / (1 - at)) ** (a - 1)

    inside = delta + factor * high < 1
    at_low = moment(low)
    at_high = moment(high) if inside else (factor / (1 - delta)) ** (a - 1)
    drop = (high - low) * _slope(a, factor, delta, low)
    least = (at_low + drop.min(arb(0))).min(at_high)
    return least.union(at_low.min(at_high)).log() / (a - 1)


def _bits(value: arb) -> int:
    """Return an upper bound of −log₂ of a ball inside (0, 1); 0 if the ball contains 0."""
    lower = value.abs_lower()
    return 0 if lower.is_zero() else max(0, 1 - int(lower.log().floor().fmpz() * 3 // 2))


def _best_order(rho: float, epsilon: float) -> Fraction:
    """Return an order at which ρ-zCDP gives nearly the least δ; the bound holds at any order."""

    def log_delta(log_less: float) -> float:
        less = math.exp(log_less)
        a = 1 + less
        return less * (a * rho - epsilon) + less * math.log(less / a) - math.log(a)

    low, high = -20.0, 40.0
    for _ in range(80):
        width = high - low
        left, right = high - _GOLDEN * width, low + _GOLDEN * width
        low, high = (low, right) if log_delta(left) < log_delta(right) else (left, high)
    return 1 + Fraction(math.exp((low + high) / 2)).limit_denominator(10**9)


def _gaussian(rho: ExactReal) -> Gaussian:
    """Return the Gaussian mechanism with μ²/2 = ρ; an irrational ρ is rounded down."""
    return Gaussian(
        standard_deviation=1, l2_sensitivity=ExactReal.of_root(2 * _rational(rho, up=False))
    )


def _rational(number: ExactReal, *, up: bool = True) -> Fraction:
    """Return the number if it is rational, else a rational number above (or below) it."""
    if number.rational is not None:
        return number.rational
    interval = enclose(number.ball)
    return Fraction(interval.upper if up else interval.lower)


def exactly(number: ExactReal) -> Interval:
    """Enclose an exact number; a rational one as tightly as decimals allow."""
    if number.rational is not None:
        return Interval.of_exact(number.rational)
    return enclose(number.ball)


def _float(number: ExactReal) -> float:
    """Return a positive number as a float, clipped to the range used to choose orders."""
    with ctx.workprec(64):
        return min(max(float(number.ball().mid()), _SMALLEST), _LARGEST)


def _log(number: ExactReal) -> float:
    """Return the logarithm as a float, also for numbers below the smallest float."""
    with ctx.workprec(64):
        return float(number.ball().log().mid())


def _order(order: Number) -> ExactReal:
    number = exact(order, "order")
    if number <= _ONE:
        raise expected("order", order, "> 1", "Order 1 alone implies no (epsilon, delta).")
    return number


def _epsilon(epsilon: Number) -> ExactReal:
    number = exact(epsilon, "epsilon")
    if number.sign < 0:
        raise expected("epsilon", epsilon, "≥ 0")
    if number > _MOST_EPSILON:
        raise expected("epsilon", epsilon, "≤ 1e6", "Larger values have no meaning for privacy.")
    return number


def _delta(delta: Number) -> ExactReal:
    number = probability("delta", delta)
    if number.sign == 0 or number == _ONE:
        raise expected("delta", delta, "in (0, 1)")
    return number


def _divergence(divergence: Number, name: str = "divergence") -> ExactReal:
    number = exact(divergence, name)
    if number.sign < 0:
        raise expected(name, divergence, "≥ 0")
    return number

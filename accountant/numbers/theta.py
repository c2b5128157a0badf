"""Sums of e^{−z²/2v} over all integers z or over z ≥ m, and sums of squared binomial coefficients.

v is the parameter of the discrete Gaussian law p(z) = e^{−z²/2v}/θ, θ = Σ e^{−z²/2v}. By Poisson
summation, Σ_z e^{−(z−c)²/2v} = √(2πv) Σ_k e^{−2π²v k²} cos(2πkc), so the terms of one of the two
series fall at least as fast as e^{−3k²}. A half-infinite sum has no such dual. It is summed term by
term if few terms matter; otherwise by the Euler-Maclaurin formula with an explicit bound on its
remainder. Every result is a ball at flint's current precision. Its relative accuracy holds far in
the tail too.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction

from flint import arb, arb_series, fmpq

from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import ctx

_FAR = 64
"""Argument above which erfc of a ball is evaluated at the two ends of the ball."""
_FEWEST_TERMS = 400
"""A series of at most this many terms, plus one per bit of precision, is summed term by term."""


def erfc(y: arb) -> arb:
    """Return the complementary error function with relative accuracy.

    For large arguments flint's is narrow at exact points only, so a ball is replaced by its two
    ends; erfc is monotone.
    """
    return y.lower().erfc().union(y.upper().erfc()) if y > _FAR else y.erfc()


def theta(v: ExactReal) -> arb:
    """Return θ = Σ e^{−z²/2v} over all integers z."""
    if _dual(v):
        return (2 * arb.pi() * v.ball()).sqrt() * (1 + 2 * _series(v, 0))
    return 1 + 2 * _series(v, 0)


def variance(v: ExactReal) -> arb:
    """Return Σ z² e^{−z²/2v}/θ.

    It equals 2v² d ln θ/dv and, by the dual series, v − 4π²v² Σ k² e^{−2π²vk²}/Σ e^{−2π²vk²}.
    """
    share = 2 * _series(v, 2) / (1 + 2 * _series(v, 0))
    if _dual(v):
        return v.ball() - (2 * arb.pi() * v.ball()) ** 2 * share
    return share


def log_theta_ratio(v: ExactReal, c: arb) -> arb:
    """Return ln(Σ_z e^{−(z−c)²/2v}/θ), which is at most 0, and equal to 0 at integers c."""
    if _dual(v):
        # cos(2πkc) − 1 = −2 sin²(πkc): no cancellation when the ratio is near 1
        rate, total, k = _rate(v), arb(0), 1
        weight = (-rate).exp()
        while not weight < arb(2) ** -(ctx.prec + 10):
            total += weight * (k * c).sin_pi() ** 2
            k += 1
            weight = (-rate * k * k).exp()
        total += arb(0).union(2 * weight)
        return (-4 * total / (1 + 2 * _series(v, 0))).log1p()
    # c is reduced by an integer to about [−1/2, 1/2]; each side falls by e^{−6} or more per step
    offset = c - _nearest(c)
    total, z = arb(0), 0
    rate = _rate(v)
    while True:
        up, down = (-rate * (z - offset) ** 2).exp(), (-rate * (z + 1 + offset) ** 2).exp()
        total += up + down
        z += 1
        if z > 1 and up + down < total * arb(2) ** -(ctx.prec + 10):
            break
    return ((total + arb(0).union(up + down)) / theta(v)).log()


def upper_tail(v: ExactReal, start: int) -> arb:
    """Return P(Z ≥ start) = Σ_{z ≥ start} e^{−z²/2v}/θ."""
    if start <= 0:
        return 1 - upper_tail(v, 1 - start)
    exponent = ExactReal.of_rational(start * start) / v
    guard = math.floor(exponent).bit_length() + math.floor(v).bit_length() + 32
    with ctx.workprec(ctx.prec + guard):
        first = (-exponent.ball() / 2).exp()
        terms = _terms(v, start)
        if terms <= _FEWEST_TERMS + ctx.prec:
            value = first * _direct(v, start, terms)
        else:
            value = _euler_maclaurin(v, start, first)
        value /= theta(v)
    return +value


def _dual(v: ExactReal) -> bool:
    """Whether the dual series converges faster: rates 2π²v and 1/2v, equal at v = 1/2π."""
    return v >= ExactReal.of_rational(1) / ExactReal.of_rational(6)


def _rate(v: ExactReal) -> arb:
    """Return the rate of the faster series: 2π²v or 1/2v, never below 3."""
    return 2 * arb.pi() ** 2 * v.ball() if _dual(v) else 1 / (2 * v.ball())


def _series(v: ExactReal, power: int) -> arb:
    """Return Σ_{k ≥ 1} k^power e^{−rate·k²} for a power of at most 2.

    Each term is less than 4e^{−9} times its predecessor, so the truncated part is less than twice
    its first term.
    """
    rate, total, k = _rate(v), arb(0), 1
    term = (-rate).exp()
    first = term
    if not first > 0:  # beyond any exponent: the whole series is below twice its first term
        return arb(0).union(2 * first.upper())
    while not term < first * arb(2) ** -(ctx.prec + 10):
        total += term
        k += 1
        term = k**power * (-rate * k * k).exp()
    return total + arb(0).union(2 * term)


def _terms(v: ExactReal, start: int) -> int:
    """Return a number of terms after which the next is below 2^−(precision + 16) of the first.

    It is the root n of (2·start·n + n²)/2v = (precision + 16)·ln 2, rounded.
    """
    bits = ctx.prec + 16
    with ctx.workprec(64):
        depth = 2 * v.ball() * bits * arb.const_log2()
        root = depth / (start + (start * start + depth).sqrt())
        return _nearest(root) + 1


def _direct(v: ExactReal, start: int, terms: int) -> arb:
    """Return Σ_{z ≥ start} e^{−(z² − start²)/2v} term by term.

    The ratio of consecutive terms falls, so a geometric series bounds the truncated part.
    """
    with ctx.workprec(ctx.prec + 2 * terms.bit_length() + 8):
        step = 1 / v.ball()
        ratio, fall = (-step * (2 * start + 1) / 2).exp(), (-step).exp()
        total, term = arb(0), arb(1)
        for _ in range(terms):
            total += term
            term *= ratio
            ratio *= fall
        total += arb(0).union(term / (1 - ratio))
    return +total


def _euler_maclaurin(v: ExactReal, start: int, first: arb) -> arb:
    """Return Σ_{z ≥ m} f(z) for f(z) = e^{−z²/2v}, where m = start and f(m) = first.

    The sum is ∫_m^∞ f + f(m)/2 − Σ_{2j ≤ n} B_{2j} f^{(2j−1)}(m)/(2j)! + R with n even and
    |R| ≤ |B_n|/n! ∫_m^∞ |f^{(n)}|. Cauchy's estimate of e^{tw−w²/2} = Σ He_n(t) w^n/n! on the
    circle |w| = ρ, for any ρ > 0, gives |He_n(t)| ≤ n! ρ^{−n} e^{tρ+ρ²/2}. With t = m/√v and
    f^{(n)} = ±v^{−n/2} He_n f it follows that
    |R| ≤ |B_n| (√v ρ)^{−n} e^{ρ²} √(πv/2) erfc((t − ρ)/√2).
    """
    parameter = v.ball()
    sigma = parameter.sqrt()
    t = start / sigma
    half_width = sigma * (arb.pi() / 2).sqrt()
    slope = start / parameter
    value = arb(1) / 2
    # f^{(i)}/f at m: D_{i+1} = −(m/v) D_i − (i/v) D_{i−1}
    before, at = arb(1), -slope
    factorial, n = 1, 2
    while True:
        factorial *= (n - 1) * n
        bernoulli = arb(fmpq.bernoulli(n))
        value -= bernoulli / factorial * at
        radius = (2 * n / (t + (t * t + 4 * n).sqrt())).mid()  # minimises the bound
        logarithm = abs(bernoulli).log() - n * (sigma * radius).log() + radius**2
        bound = logarithm.exp() * half_width * erfc((t - radius) / arb(2).sqrt())
        if bound < first * arb(2) ** -(ctx.prec + 4):
            break
        for i in (n - 1, n):
            before, at = at, -slope * at - i / parameter * before
        n += 2
    integral = half_width * erfc(t / arb(2).sqrt())
    return integral + first * value + (-bound).union(bound)


def _nearest(value: arb) -> int:
    mantissa, exponent = (int(part) for part in value.mid().man_exp())
    if exponent >= 0:
        return mantissa << exponent
    return (mantissa + (1 << (-exponent - 1))) >> -exponent


# --- The coefficients f_j = C(2j, j)/4ʲ of the square root of prefix sums, and Landau's constants -
# f_j is the j-th moment of the arcsine law, so f_j² is the j-th moment of a product of two
# independent arcsine variables: f_j² = ∫ xʲ dm(x) for a positive measure m on [0, 1]. Hence
# x ↦ f_x² = (Γ(x + ½)/Γ(x + 1))²/π is completely monotone: its derivatives alternate in sign. The
# remainder of the Euler-Maclaurin formula is then at most the first omitted term in absolute value.
# This encloses S_n = Σ_{j<n} f_j² for any n from some hundred terms, an integral and some
# derivatives.

_LEAST_SUMMED = 64
"""Least number of terms summed directly: the Euler-Maclaurin series needs a large argument."""


@functools.lru_cache(maxsize=8)
def coefficients(count: int) -> list[Fraction]:
    """Return f_0, …, f_{count−1}, exactly."""
    found, entry = [], Fraction(1)
    for j in range(1, count + 1):
        found.append(entry)
        entry *= Fraction(2 * j - 1, 2 * j)
    return found


def central(index: int) -> Fraction:
    """Return f_index, exactly."""
    return Fraction(math.comb(2 * index, index), 4**index)


def landau(count: int) -> arb:
    """Return S_count = Σ_{j < count} f_j², Landau's constant G_{count−1}."""
    summed = max(_LEAST_SUMMED, int(ctx.prec))
    head = min(count, summed)
    total, entry = arb(0), arb(1)
    for j in range(1, head + 1):
        total += entry**2
        entry = entry * (2 * j - 1) / (2 * j)
    return total if head == count else total + _tail(summed, count)


def squared(x: arb) -> arb:
    """Return f_x² = (Γ(x + ½)/Γ(x + 1))²/π, without overflow at large x."""
    half = arb(1) / 2
    return (2 * ((x + half).lgamma() - (x + 1).lgamma())).exp() / arb.pi()


def _tail(first: int, last: int) -> arb:
    """Return Σ f_j² over first ≤ j < last, by the Euler-Maclaurin formula."""
    terms = max(4, int(ctx.prec) // 8)
    with ctx.workprec(int(ctx.prec) + 40):
        low, high = _derivatives(first, 2 * terms), _derivatives(last, 2 * terms)
        total = _integral(first, last, terms) - (high[0] - low[0]) / 2
        for i in range(1, terms):
            total += _term(i, low, high)
        return total + arb(0, abs(_term(terms, low, high)).upper())


def _term(i: int, low: list[arb], high: list[arb]) -> arb:
    """Return B_{2i}/(2i)! times the difference of the (2i − 1)-th derivatives at the two ends."""
    return arb.bernoulli(2 * i) / (2 * i) * (high[2 * i - 1] - low[2 * i - 1])


def _derivatives(at: int, order: int) -> list[arb]:
    """Return the Taylor coefficients of x ↦ f_x² at a point, up to an order."""
    with ctx.workcap(order + 1):
        x = arb_series([arb(at), arb(at)])  # scaled by `at`, so that coefficients have similar size
        series = (2 * ((x + arb(1) / 2).lgamma() - (x + 1).lgamma())).exp() / arb.pi()
        return [series[index] / arb(at) ** index for index in range(order + 1)]


def _integral(first: int, last: int, terms: int) -> arb:
    """Return ∫ f_x² dx by the Euler-Maclaurin formula for a grid.

    The range is cut at first·2^k; each part has a fixed number of steps.
    """
    steps = int(ctx.prec) // 2
    total, low, left = arb(0), first, _derivatives(first, 2 * terms)
    while low < last:
        high = min(2 * low, last)
        right = _derivatives(high, 2 * terms)
        width = arb(high - low) / steps
        inner = sum((squared(low + width * step) for step in range(1, steps)), start=left[0])
        total += width * (inner + (right[0] - left[0]) / 2)
        for i in range(1, terms):
            total -= _term(i, left, right) * width ** (2 * i)
        total += arb(0, abs(_term(terms, left, right) * width ** (2 * terms)).upper())
        low, left = high, right
    return total

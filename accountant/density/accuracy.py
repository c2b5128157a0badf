"""Moments and quantiles of a density, enclosed.

∫ x^n f beyond x ≥ A: with D = −(ln f)′ in y^k·[low, high], x^n f has −(ln)′ = D − n/x. So with
α = low·A^{1+k} − n and β = high − n for k = −1 it falls at least like the power −α of x, and there
at most like −β: the integral lies between A^{n+1} f(A)/(β − 1) and A^{n+1} f(A)/(α − 1).
"""

from __future__ import annotations

from fractions import Fraction

from flint import acb, arb

from accountant.density.balls import Holomorphic, real
from accountant.density.crossing import crossing
from accountant.density.law import Law, goal, integral, negligible
from accountant.errors import UndecidedError
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import ball

_MOST_PANELS = 4096
"""Doubling panels of one tail."""


def mean(law: Law) -> arb:
    """Return E X; ∞ or NaN where a tail is too heavy."""
    return (_half(law, 1) - _half(law.mirrored, 1)) / law.total()


def absolute_moment(law: Law) -> arb:
    """Return E|X|."""
    return (_half(law, 1) + _half(law.mirrored, 1)) / law.total()


def second_moment(law: Law) -> arb:
    """Return E X²."""
    return (_half(law, 2) + _half(law.mirrored, 2)) / law.total()


def _half(law: Law, n: int) -> arb:
    """Return ∫ x^n f over x ≥ 0, ∞ where it diverges."""
    power = law.power_of_tail
    if power is not None and power + n >= -1:
        return arb.pos_inf()
    whole, low = arb(0), Fraction(0)
    for _ in range(_MOST_PANELS):
        rest = _beyond(law, low, n)
        if rest is not None and 2 * rest.rad() <= (whole + rest).lower() * negligible():
            return whole + rest
        high = law.next_end(low)
        if high is None:
            return whole
        part = law.part(low, high)
        if part is None:
            whole += ball(high) ** n * law.panel(low, high).union(arb(0))
        elif not part.is_zero:
            f = part.integrand

            def weighted(x: acb, analytic: bool, f: Holomorphic = f) -> acb:
                value: acb = x**n * f(x, analytic)
                return value

            whole += integral(weighted, ball(low), ball(high))
        low = high
    raise UndecidedError("A moment of a density was not enclosed.")


def _beyond(law: Law, x: Fraction, n: int) -> arb | None:
    tail = law.decay_from(x)
    if tail is None:
        return None
    at = ball(x)
    falls = tail.low.lower() * ((1 + ball(tail.power)) * at.log()).exp() - n - 1
    if not falls > 0:
        return None
    least = 1 / (tail.high.upper() - n - 1) if tail.power == -1 else arb(0)
    size = real(law.pieces.parts[-1].log, at).exp() * at ** (n + 1)
    return size * least.union(1 / falls)


def _last_below(law: Law, x: Fraction) -> Fraction:
    """Return the largest number up to x below which, next to it, f is not 0."""
    parts = [part for part in law.pieces.parts if not part.is_zero]
    last = [part for part in parts if part.low is None or part.low.low < x][-1]
    return x if last.high is None else min(x, last.high.low)


def quantile(law: Law, level: ExactReal, p: arb) -> arb:
    """Return the least x with F(x) ≥ p."""
    low, high = law.support
    if law.axis is not None and level.rational == Fraction(1, 2):
        return ball(_last_below(law, law.axis))
    if level.rational == 0:
        return arb.neg_inf() if low is None else ball(low)
    if level.rational == 1:
        return arb.pos_inf() if high is None else ball(high)

    def excess(x: Fraction) -> arb:
        below = law.mass(None, x)
        above = law.mass(x, None)
        return (1 - p) * below - p * above  # (F − p)·total, without one minus another

    a = -Fraction(1) if low is None else low
    while low is None and not excess(a) < 0:
        a *= 2
    b = max(Fraction(1), a + 1) if high is None else high
    while high is None and not excess(b) > 0:
        b *= 2
    ends = crossing(excess, a, b, goal())
    return ball(ends[0]).union(ball(ends[1]))

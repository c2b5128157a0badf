"""The least μ of unbounded losses, a second time: whether a claimed one is enough for all tests.

A test of level α and power p needs t(α) − t(p), where a standard normal law has the upper tail α
beyond t(α). The power is concave in the level: on a piece it is below the tangents at both ends,
and Φ(μ − z_α) is concave too, so that it is above where it is above at the ends and where the
tangents meet. Beyond the pieces closed bounds take over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mpmath import mp

from verify.checker.arithmetic import UnknownError

_SLACK = mp.mpf(10) ** -25
_MOST_PIECES = 4000
_MOST_TESTS = 4000
_DOUBLINGS = 12
_NEWTON = 60
_UNKNOWN = "that no other test needs a larger mu"

Mixture = Sequence[Sequence[Any]]
"""Weights and means of normal laws of variance 1."""
Test = Callable[[Any], tuple[Any, Any, Any]]
"""The level, the power and the likelihood ratio at the end of a half-line."""


def score(tail: Any) -> Any:
    """Return t with P(N(0, 1) > t) = tail, by Newton's method for the logarithm."""
    if tail > mp.mpf(1) / 2:
        return -score(1 - tail)
    t = mp.sqrt(-2 * mp.log(tail))
    for _ in range(_NEWTON):
        own = mp.ncdf(-t)
        step = mp.log(own / tail) * own / mp.npdf(t)
        t += step
        if abs(step) < mp.mpf(10) ** (8 - mp.dps) * (1 + abs(t)):
            return t
    raise UnknownError("a normal score")


def more_than_discrete(parameter: Any, shift: int, mu: Any) -> Any:
    """Return what a test of discrete Gaussian noise needs beyond μ; None where μ is enough.

    The noise has the parameter v, and is moved by s.

    The tests {Z ≥ k} and {Z ≥ s + 1 − k} need the same. With T(x) = Σ_{z ≥ x} f(z)/θ for
    f(z) = e^{−z²/2v}, and Φ̄(u) ≥ φ(u)/(u + 1/u), the score t(x) is at least u, u² = x²/v − g,
    g = 2 max(1/2, ln(√(2π) T(X)/f(X)) + ln(y + 1/y)), y = x/√v; its slope is −T'/T over the hazard
    at t, which exceeds t, hence at most (x + κ)/(vu) for x ≥ X, where κ is the mean of z − X under
    f on z ≥ X, and that falls. So k > X + s needs at most s times its value at X.
    """
    v, far = mp.mpf(parameter), 1
    while far * far < 2 * v * (mp.dps + 10) * mp.ln10:
        far *= 2
    end = int(v) + 1
    while True:
        last = end + shift
        if last > _MOST_TESTS:
            raise UnknownError(_UNKNOWN)
        masses = [mp.exp(-mp.mpf(z * z) / (2 * v)) for z in range(last + far + 1)]
        whole = 2 * mp.fsum(masses) - 1
        tails, above = [mp.zero] * (last + 1), mp.zero
        for z in range(last + far, 0, -1):
            above += masses[z]
            if z <= last:
                tails[z] = above / whole
        y = end / mp.sqrt(v)
        excess = mp.log(mp.sqrt(2 * mp.pi) * tails[end] / masses[end]) + mp.log(y + 1 / y)
        square = y * y - 2 * max(mp.mpf(1) / 2, excess)
        mean = mp.fsum(j * masses[end + j] for j in range(far)) / (tails[end] * whole)
        if y >= 1 <= square and shift * (end + mean) / (v * mp.sqrt(square)) <= mu - _SLACK:
            break
        end += end // 4 + 1
    scores = {k: score(tails[k]) for k in range(1, last + 1)}
    scores |= {1 - k: -value for k, value in scores.items()}
    needed = max(scores[k] - scores[k - shift] for k in range(shift // 2 + 1, last + 1))
    return None if needed <= mu - _SLACK else needed


def more_than_mixtures(p: Mixture, q: Mixture, mu: Any) -> Any:
    """Return what a half-line needs beyond μ, of mixtures P to the right of Q; else None.

    The half-lines right of the middle of all means are looked at, and those of the reflected pair.
    """
    left, right = ([[weight, -mean] for weight, mean in side] for side in (q, p))
    found = [_more_on_the_right(p, q, mu), _more_on_the_right(left, right, mu)]
    return next((needed for needed in found if needed is not None), None)


def _more_on_the_right(p: Mixture, q: Mixture, mu: Any) -> Any:
    p, q = ([(mp.mpf(w), mp.mpf(m)) for w, m in side] for side in (p, q))
    largest, least = max(m for _, m in p), min(m for _, m in q)
    low = (largest + least) / 2
    for doubling in range(_DOUBLINGS):
        end = largest + (1 << doubling)
        if _enough_beyond(p, q, end, mu):
            return _more_between(lambda x: _test(p, q, x), low, end, mu - _SLACK)
    raise UnknownError(_UNKNOWN)


def _enough_beyond(p: Mixture, q: Mixture, x: Any, mu: Any) -> bool:
    """Whether no half-line from x on is seen to need more.

    With a and b the largest means, w = P(x, ∞)/Φ̄(x − a) is at most that further out, and v is the
    weight of b. Then μ ≤ a − b where w ≤ v, and else μ ≤ a − b + t(vΦ̄(y)) − t(wΦ̄(y)), y = x − b:
    the last difference is a length over which the hazard has the integral ln(w/v), which falls.
    """
    a = max(m for _, m in p)
    v, b = max(q, key=lambda part: part[1])
    w = _above(p, x) / mp.ncdf(a - x)
    shift, rest = a - b, mp.ncdf(b - x)
    if w <= v:
        return bool(shift <= mu * (1 + mp.mpf(10) ** -38))
    return bool(shift + score(v * rest) - score(w * rest) <= mu - _SLACK)


def _more_between(test: Test, low: Any, high: Any, mu: Any) -> Any:
    pieces, found = [(low, high)], {x: test(x) for x in (low, high)}
    for _ in range(_MOST_PIECES):
        if not pieces:
            return None
        left, right = pieces.pop()
        one, other = found[left], found[right]
        needed = max(_needs(*side[:2]) for side in (one, other))
        if needed > mu:
            return needed
        if _needs(*_meeting(one, other)) <= mu:
            continue
        middle = (left + right) / 2
        found[middle] = test(middle)
        pieces += [(left, middle), (middle, right)]
    raise UnknownError(_UNKNOWN)


def _needs(level: Any, power: Any) -> Any:
    return score(level) - score(min(power, 1 - mp.mpf(10) ** (5 - mp.dps)))


def _meeting(one: tuple[Any, Any, Any], other: tuple[Any, Any, Any]) -> tuple[Any, Any]:
    """Return where the tangents at two tests meet, the second one of a lower level."""
    (alpha, p, slope), (below, q, steeper) = one, other
    level = (p - q - slope * alpha + steeper * below) / (steeper - slope)
    return level, q + steeper * (level - below)


def _test(p: Mixture, q: Mixture, x: Any) -> tuple[Any, Any, Any]:
    """Return the level and power of (x, ∞), and the likelihood ratio at x."""
    densities = [mp.fsum(w * mp.npdf(x - m) for w, m in side) for side in (p, q)]
    return _above(q, x), _above(p, x), densities[0] / densities[1]


def _above(side: Mixture, x: Any) -> Any:
    return mp.fsum(w * mp.ncdf(m - x) for w, m in side)

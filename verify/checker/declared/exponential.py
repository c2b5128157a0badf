"""The exponential mechanism: probabilities in proportion to e^{exponent}.

Exponents of neighbours differ by amounts in an interval of length t. Over all events S with
Q(S) = p, P(S) is at most r(p) = p e^t/(1 + p(e^t - 1)): the weight of S rises by e^t at most more
than the rest. It is that for two candidates of which one rises, and every p in (0, 1) is that of
some scores. So the profile is max over p of r(p) - e^ε p. r is concave, r'(p) = e^ε where
(1 + p(e^t - 1))² = e^{t-ε}: that p and r(p) are what `tails` returns, as those of the best event.

*Several of one ε.* A release has two outcomes of the losses s and s - t, with the chances 1 - w and
w under P, w = (e^s - 1)/(e^t - 1): a convex function of P/Q is largest where that is at an end of
its interval. With z = e^eps and K(z) the largest P - z Q of k - 1 releases, that of k is the
maximum over s in [0, t] of (1 - w) K(z e^{-s}) + w K(z e^{t-s}).

From below the maximum is taken over s on a grid of t/n. From above the convex K is replaced by its
chords. In y = e^{-s} their sum is a + by + c/y between two points y0 < y1 of the grid, and a chord
of c/y is at most |c| (y1 - y0)^2/(4 y0^3) below it, where c < 0: by so much the maximum may exceed
those at the points. All is in floats, of which e^x has fewer than 2^10 wrong last bits. A float T
is only near t. Of T < t, s at t allows less than s - (t - T) at T, or 0: K_T(e^x) is at most
K_t(e^x), which is at most K_T(e^{x - k(t - T)}). So x is moved by more than that, outward.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import arb

from dpassay.verifier.checker.declared.law import ALL, NONE, DeclaredLaw, Pair
from dpassay.verifier.checker.notation import Argument, positive, switch
from dpassay.verifier.checker.reals import Real, UnknownError, ball, exp, hull, log


def _tails(pair: Pair, epsilon: Any) -> tuple[Any, Any]:
    t = pair["length"]
    if epsilon >= t:
        return NONE
    if epsilon <= -t:
        return ALL
    root = exp((t - epsilon) / 2)
    q = (root - 1) / (exp(t) - 1)
    return q * exp(t) / root, q


def _renyi(pair: Pair, order: Any) -> Any:
    """Return the largest over the chance p that the exponent rises by t; else it rises by 0.

    Given the mean of Y = e^x in [1, e^t], the mean of the convex Y^a, or of Y ln Y, is largest
    where Y is at an end. With m = 1 + p(e^t - 1) the mean of Y^a is 1 + (m - 1)s, s the slope of
    the chord of y^a from 1 to e^t. (1 + (m - 1)s)/m^a is stationary at m = a(s - 1)/((a - 1)s). The
    mean of Y ln Y is (m - 1)c, c = t e^t/(e^t - 1), and (m - 1)c/m - ln m is stationary at m = c.
    """
    t = pair["length"]
    rise = exp(t) - 1
    if order == 1:
        c = t * exp(t) / rise
        return c - 1 - log(c)
    s = (exp(order * t) - 1) / rise
    m = order * (s - 1) / ((order - 1) * s)
    mean = 1 + (m - 1) * s
    return (log(mean) - order * log(m)) / (order - 1)


def selection(t: Any, share: Fraction) -> Pair:
    """Return a candidate that rises by s = t share, against one that falls by t - s."""
    s = t * share
    rises, falls = (1 - exp(s - t)) / (1 - exp(-t)), (exp(s) - 1) / (exp(t) - 1)
    return {"law": "finite", "p": [rises, falls], "q": [rises * exp(-s), falls * exp(t - s)]}


EXPONENTIAL = DeclaredLaw(
    mechanism="ExponentialMechanism",
    arguments={
        "epsilon": Argument(positive),
        "sensitivity": Argument(positive, Fraction(1)),
        "monotone": Argument(switch, False),
    },
    name="bounded-range",
    parameters=("length",),
    # score differences of 2Δ, or of Δ, count as ε
    pair=lambda noise: {"law": "bounded-range", "length": noise["epsilon"]},
    tails=_tails,
    renyi=_renyi,
    largest_loss=lambda pair: pair["length"],
    only_alone=True,
    ends=lambda pair: (
        [selection(pair["length"], Fraction(2 * i + 1, 18)) for i in range(9)],
        {"law": "logistic", "distance": pair["length"]},
    ),
)


_POINTS, _MOST, _LEAST = 1500, 150, 8
"""Of all releases, a few seconds; most and least of one."""
MOST_RELEASES = 200
"""More take minutes."""
_WRONG = 2.0**-40
"""Relative error of one step."""
_TINY = 1e-290
"""Below it floats lose digits."""
_MOVED = 2.0**-49
"""By which share of kt a place is moved: sixteen roundings of it."""
_SHORTEST, _LONGEST = 1e-100, 1000
"""Between which floats know the exponentials of t."""
_Row = list[float]


def _weighed(row: _Row, t: float, n: int, width: int) -> Iterator[tuple[float, _Row, _Row, _Row]]:
    """Yield s, and K(z e^{-s}), K(z e^{t-s}) and their mean at all z = e^{it/n} of a width.

    For z < 1, K(z) = 1 - z + z K(1/z): P and Q may change places.
    """
    far = range(n, 0, -1)
    full = [-math.expm1(-i * t / n) + math.exp(-i * t / n) * row[i] for i in far] + row + [0.0] * n
    for j in range(n + 1):
        s = j * t / n
        w = math.exp(s - t) * math.expm1(-s) / math.expm1(-t)
        near, far_off = full[n - j :][:width], full[2 * n - j :][:width]
        mean = [a + w * (b - a) for a, b in zip(near, far_off, strict=True)]
        yield s, near, far_off, mean


def _below(row: _Row, t: float, n: int, width: int) -> _Row:
    best = [0.0] * width
    for _, _, _, mean in _weighed(row, t, n, width):
        best = list(map(max, best, mean))
    return [max(x * (1 - _WRONG) - _TINY, 0.0) for x in best] + [0.0] * (len(row) - width)


def _above(row: _Row, t: float, n: int, width: int) -> _Row:
    best, step = [0.0] * width, math.expm1(t / n)
    last: tuple[_Row, _Row] | None = None
    for s, near, far_off, mean in _weighed(row, t, n, width):
        gap = [a - b for a, b in zip(near, far_off, strict=True)]
        if last is None:
            best = list(map(max, best, mean))
        else:  # -c/(1 - e^{-t}) is the gap continued to y = 0, over e^t - 1
            share = step * step * math.exp(s - t) / (-4 * math.expm1(-t))
            more = [
                share * max(g + (g - h) / step + _WRONG * a / step, 0.0)
                for g, h, a in zip(gap, last[0], near, strict=True)
            ]
            ends = map(max, mean, last[1])
            best = [max(x, e + m) for x, e, m in zip(best, ends, more, strict=True)]
        last = gap, mean
    return [x * (1 + _WRONG) + _TINY for x in best] + [0.0] * (len(row) - width)


@lru_cache(maxsize=4)
def _rows(t: float, k: int) -> tuple[int, _Row, _Row]:
    """Return n, and the bounds of all releases at z = 1, e^{t/n}, e^{2t/n}, …"""
    n = min(_MOST, max(_LEAST, _POINTS // k))
    low, high = [0.0] * (k * n + 1), [0.0] * (k * n + 1)
    for done in range(1, k + 1):
        low = _below(low, t, n, done * n + 1)
        high = _above(high, t, n, done * n + 1)
    return n, low, high


def _between(pair: Pair, x: float) -> tuple[float, float]:
    """Return bounds at eps = x >= 0: a chord from above, from below chords on both sides go on."""
    k, t = int(pair["count"]), float(ball(pair["length"]))
    if k > MOST_RELEASES or not _SHORTEST <= t <= _LONGEST:
        raise UnknownError(f"the composition of {k} exponential mechanisms with epsilon {t}")
    n, low, high = _rows(t, k)
    moved = k * t * _MOVED

    def place(x: float) -> tuple[int, float]:
        cell = min(math.floor(x * n / t), k * n - 1)
        z = math.expm1(x - cell * t / n) / math.expm1(t / n)
        return cell, min(max(z, 0.0), 1.0)

    cell, z = place(max(x - moved, 0.0))
    above = high[cell] + z * (high[cell + 1] - high[cell])
    above = above * (1 + _WRONG) + max(moved - x, 0.0)  # 1 at most is the slope in eps
    cell, z = place(x + moved)
    below, fall = low[cell + 1], math.exp(-t / n)
    if cell + 2 <= k * n:  # the chord to the next point is flatter
        slope = (high[cell + 2] - low[cell + 1]) * fall
        below = max(below, low[cell + 1] - (1 - z) * slope)
    if cell:
        slope = (low[cell] - high[cell - 1]) / fall
        below = max(below, low[cell] + z * slope)
    return max(below * (1 - _WRONG), 0.0) if x + moved < k * t else 0.0, above


def _hockey_stick(pair: Pair, epsilon: Any) -> Any:
    """Return a number between both bounds."""
    most = pair["count"] * pair["length"]
    if epsilon >= most:
        return Fraction(0)
    if epsilon <= -most:
        return 1 - exp(epsilon)
    low, high = _between(pair, abs(float(ball(epsilon))))
    found = Real(arb(low).union(arb(min(high, 1.0))))
    return found if epsilon >= 0 else 1 - exp(epsilon) + exp(epsilon) * found


def _tails_of_several(pair: Pair, epsilon: Any) -> tuple[Any, Any]:
    """Return what is known of an event with P - e^eps Q = H(eps): H <= P, and e^{-kt} P <= Q."""
    least = _hockey_stick(pair, epsilon)
    rarest = least * exp(-pair["count"] * pair["length"])
    return hull(least, Fraction(1)), hull(rarest, Fraction(1))


BOUNDED_RANGE = DeclaredLaw(
    name="bounded-range-product",
    parameters=("length", "count"),
    tails=_tails_of_several,
    renyi=lambda pair, order: pair["count"] * EXPONENTIAL.renyi(pair, order),
    largest_loss=lambda pair: pair["count"] * pair["length"],
    only_alone=True,
    only_bounded=True,
    hockey_stick=_hockey_stick,
)

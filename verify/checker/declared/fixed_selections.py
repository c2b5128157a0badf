"""Several exponential mechanisms of one ε whose scores are fixed before the first selection.

*The worst scores.* P - z Q of the best event is E_Q(Π r_j - z)⁺, a convex function of the ratio
r_j = P/Q of each selection, which lies in an interval of the length t of logarithms. So it is
largest where r_j is at the ends e^{s_j} and e^{s_j - t}. Take two selections with s + s' = 2m, and
x = e^{-s} + e^{-s'}, which is least at s = s' = m. With c = e^{-t} and u the product of all upper
ends, fixed too, the product of all ratios is u c^n where n selections have the lower end. Given the
others, let g_j be the mean of (u c^n - z)⁺ where j of the two have it. The upper end has the chance
(e^{-s} - c)/(1 - c) under Q, so that E_Q is affine in x, with the slope

    (g_1 - g_2)/(1 - c) - c (g_0 - 2 g_1 + g_2)/(1 - c)² = (g_1 - g_2 - c (g_0 - g_1))/(1 - c)² ≤ 0:

while u c^n > z a step in n makes (u c^n - z)⁺ fall by c times the last fall, or less at z. So equal
s are worst, at any sum.

*The worst event.* With a = t - s, let p = (1 - e^{-a})/(1 - c) be the chance of the upper end under
P, and q = p e^{a-t} under Q. The worst event is that at least i of k have it. There p grows with a,
and P - z Q has the derivative e^{-a} - z e^{ka - it} times k C(k-1,i-1) p^{i-1}(1-p)^{k-i}/(1-c).
So it is largest at a = (it - eps)/(k + 1), or at an end of [0, t], where it is 0 or 1 - z. For
eps >= 0 these i remain: it > eps. Of r upper ends the loss is eps + a + (r - i)t, so that all
summands are positive. Below eps = 0 exchange P and Q.

A sum is cut where the ratio of its summands falls below 1, the rest being at most that of a
geometric series. Of an i whose first summands have a ratio below 1, the whole is bounded so too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from flint import arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.declared.exponential import EXPONENTIAL
from dpassay.verifier.checker.declared.law import NONE, DeclaredLaw, Pair
from dpassay.verifier.checker.reals import Real, UnknownError, ball, exp

MOST_FIXED = 2000
"""More take long, and are not composed in this way."""


def _chances(t: arb, k: int, i: int, z: arb) -> tuple[arb, arb, arb]:
    """Return a, p and 1 - p of the worst scores for the event i, at ln z."""
    a, s = (i * t - z) / (k + 1), ((k + 1 - i) * t + z) / (k + 1)
    return a, (-a).expm1() / (-t).expm1(), s.expm1() / t.expm1()


def _summands(k: int, i: int, p: arb, rest: arb) -> Iterator[tuple[arb, arb]]:
    """Yield the chances of r = i, i + 1, …, k, and the ratio of the next one to each."""
    chance = math.comb(k, i) * p**i * rest ** (k - i)
    for r in range(i, k + 1):
        ratio = p * (k - r) / (rest * (r + 1))
        yield chance, ratio
        chance *= ratio


def _most(t: arb, k: int, i: int, z: arb) -> arb:
    """Return a bound: a geometric series with the first ratio, of which all gain 1 - e^{-a-jt}."""
    a, p, rest = _chances(t, k, i, z)
    chance, ratio = next(_summands(k, i, p, rest))
    if not ratio < 1:
        return arb(1)
    lost = (-a).exp() / (1 - ratio * (-t).exp())
    return (chance * (1 / (1 - ratio) - lost)).upper().min(arb(1))


def _value(t: arb, k: int, i: int, z: arb) -> arb:
    """Return P - e^z Q."""
    a, p, rest = _chances(t, k, i, z)
    found, kept = arb(0), (-a).exp()
    gain, c, step = -(-a).expm1(), (-t).exp(), -(-t).expm1()
    for chance, ratio in _summands(k, i, p, rest):
        found += chance * gain
        if ratio < 1:
            after = (chance * ratio / (1 - ratio)).upper()
            if after < found * arb(2) ** -ctx.prec:
                return found + arb(0).union(after)
        gain += kept * step
        kept *= c
    return found


def _candidates(pair: Pair, epsilon: Any) -> dict[int, arb]:
    """Return the values of all i that may be the largest, for eps >= 0."""
    t, k, z = ball(pair["length"]), int(pair["count"]), ball(epsilon)
    if k > MOST_FIXED:
        raise UnknownError(f"{k} exponential mechanisms that are fixed in advance")
    most = {i: _most(t, k, i, z) for i in range(1, k + 1) if not i * t <= z}
    best, found = arb(0), dict[int, arb]()
    for i in sorted(most, key=lambda i: -most[i]):
        if most[i] < best:
            break
        found[i] = _value(t, k, i, z)
        best = best.max(found[i].lower())
    return {i: value for i, value in found.items() if not value < best}


def _hockey_stick(pair: Pair, epsilon: Any) -> Any:
    if epsilon < 0:
        return 1 - exp(epsilon) + exp(epsilon) * _hockey_stick(pair, -epsilon)
    found = arb(0)
    for value in _candidates(pair, epsilon).values():
        found = found.max(value)
    return Real(found)


def _tails(pair: Pair, epsilon: Any) -> tuple[Any, Any]:
    """Return P and Q of the event of the best i, of ties between those of all."""
    if epsilon < 0:
        p, q = _tails(pair, -epsilon)
        return 1 - q, 1 - p
    t, k, z = ball(pair["length"]), int(pair["count"]), ball(epsilon)
    found: list[arb] = []
    for i in _candidates(pair, epsilon):
        a, p, rest = _chances(t, k, i, z)
        laws = (_summands(k, i, *side) for side in ((p, rest), (p * (a - t).exp(), rest * a.exp())))
        both = [sum((chance for chance, _ in law), start=arb(0)) for law in laws]
        found = [one.union(other) for one, other in zip(found or both, both, strict=True)]
    return (Real(found[0]), Real(found[1])) if found else NONE


FIXED_SELECTIONS = DeclaredLaw(
    name="fixed-selections",
    parameters=("length", "count"),
    tails=_tails,
    renyi=lambda pair, order: pair["count"] * EXPONENTIAL.renyi(pair, order),
    largest_loss=lambda pair: pair["count"] * pair["length"],
    only_alone=True,
    only_bounded=True,
    hockey_stick=_hockey_stick,
)

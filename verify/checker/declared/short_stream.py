"""Short streams against a threshold: Gaussian noise, and one answer with Laplace noise.

Let the threshold have noise of standard deviation s, and each of m answers of r. Whoever sees all
noisy answers less the noisy threshold knows more than what is said; these are normal variables, the
covariances s², and r² more on the diagonal. By the inverse of such a matrix moves d_i have the
squared distance Σd²/r² − s²(Σd)²/(r²(r² + ms²)), which is convex, and so largest at corners.
Below are one answer, which is a choice between two scores, and events of which the chance, given
the threshold, is a polynomial: integrals over the threshold by Arb.

With Laplace noise of the scales 1 and k on both sides of a comparison the difference has the
density (k e^{−x/k} − e^{−x})/2(k² − 1) at x ≥ 0. Its logarithm is concave, so that for t apart the
best event is a half-line, from where f(a + t) = e^ε f(a).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import acb, arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.declared.law import ALL, NONE, DeclaredLaw, Pair, two_candidates
from dpassay.verifier.checker.reals import FewDigitsError, Real, ball, exp, sqrt

_PLACES, _TURNS = (-2, -1, 0, 1, 2, 3, 4), 32
"""Places below the threshold at which events are tried; pairs of answers in one of them."""
_FAR, _BITS, _LEAST = 16, 184, arb(2) ** -40
"""Standard deviations and bits of an integral over the threshold; a chance that is too small."""
_FARTHEST, _HALVINGS, _ASIDE = 2000.0, 80, (1e-12, 1e-9, 1e-5)
"""How far away a level is looked for, in how many steps, and how far aside it is shown to lie."""


def laws(s: Fraction, r: Fraction, steps: Any, *, monotone: bool) -> Pair:
    """Return what a stream with normal noise lies between; exactly where it has one answer."""
    one = {
        "law": "noisy-maxima", "candidates": Fraction(2), "gaussian": True,
        "distance": sqrt(2 / (s * s + r * r)),
    }  # fmt: skip
    m = int(steps)
    if m == 1:
        return one
    events = []
    for index in range(2 * len(_PLACES)):
        chances = _event(s, r, m, monotone, index)
        if any(min(float(x), float(1 - x)) <= _LEAST for x in chances):
            continue
        p, q = map(Real, chances)
        finite = {"law": "finite", "p": [p, 1 - p], "q": [q, 1 - q]}
        events += [finite, {**finite, "p": finite["q"], "q": finite["p"]}]
    most = {"law": "gaussian", "mu": sqrt(_square(s, r, m, monotone))}
    return {"law": "between", "factors": [one, *events, most]}


def _square(s: Fraction, r: Fraction, m: int, monotone: bool) -> Fraction:
    """Return the largest squared distance of m answers: some rise, the others fall or stay."""
    found = []
    for rise in range(m + 1):
        total, squares = (rise, rise) if monotone else (2 * rise - m, m)
        found.append((squares - s * s * total * total / (r * r + m * s * s)) / (r * r))
    return max(found)


@lru_cache(maxsize=512)
def _event(s: Fraction, r: Fraction, m: int, monotone: bool, index: int) -> tuple[arb, arb]:
    """Return P and Q of an event: all answers are below, or the first above is one that rises."""
    turns, place = divmod(index, len(_PLACES))
    a = -(_PLACES[place] * (ball(s) ** 2 + ball(r) ** 2).sqrt()).mid()
    half = arb("0.5")

    def chance(one: arb, other: arb) -> arb:
        def below(z: acb, at: arb) -> acb:
            return ((at - ball(s) * z) / (ball(r) * arb(2).sqrt())).erfc() / 2

        def given(z: acb, _: bool) -> acb:
            f, g = below(z, one), below(z, other)
            if turns:
                power, total = acb(1), acb(0)
                for _turn in range(min(m // 2, _TURNS)):
                    power, total = power * f * g, total + power
                event = (1 - f) * total
            else:
                event = f**m
            return event * (-z * z / 2).exp()

        tolerance = arb(2) ** -_BITS
        found = (
            acb.integral(given, acb(-_FAR), acb(_FAR), rel_tol=tolerance, abs_tol=tolerance).real
            / (2 * arb.pi()).sqrt()
        )
        found += arb(0).union((arb(_FAR) / arb(2).sqrt()).erfc())
        return found.max(arb(0)).min(arb(1))

    with ctx.workprec(_BITS + 8):
        if not turns:
            return chance(a, a), chance(a + 1, a + 1)
        falls = (a, a) if monotone else (a - half, a + half)
        return chance(a + half, falls[0]), chance(a - half, falls[1])


def _difference(k: arb, a: arb) -> tuple[arb, arb]:
    """Return the distribution function and the density of the difference at a."""
    x, whole = abs(a), 2 * (k * k - 1)
    tail = (k * k * (-x / k).exp() - (-x).exp()) / whole
    density = (k * (-x / k).exp() - (-x).exp()) / whole
    return (tail if a < 0 else 1 - tail), density


def _best(pair: Pair, epsilon: Any) -> tuple[arb, arb, arb]:
    """Return P and Q of the best half-line, and P − e^ε Q, which is concave in Q."""
    t, k, factor = ball(pair["distance"]), ball(pair["ratio"]), ball(exp(epsilon))
    low, high = -_FARTHEST, _FARTHEST
    wide, moved, e = float(k), float(t), float(ball(epsilon))

    def slope(a: float) -> float:
        x = abs(a)
        if wide > 1:  # e^{−x/k}, the larger one, apart
            return -x / wide + math.log((wide - math.exp(-x * (1 - 1 / wide))) / (wide - 1))
        return -x + math.log((1 - wide * math.exp(-x * (1 / wide - 1))) / (1 - wide))

    for _ in range(_HALVINGS):
        a = (low + high) / 2
        low, high = (a, high) if slope(a + moved) - slope(a) > e else (low, a)
    for aside in _ASIDE:
        ends = arb(low - aside), arb(low + aside)
        (q, q_low), (q_end, q_high) = (_difference(k, a) for a in ends)
        (p, p_low), (p_end, p_high) = (_difference(k, a + t) for a in ends)
        if p_low >= factor * q_low and p_high <= factor * q_high:
            value = p - factor * q
            above = value + (p_low / q_low - factor) * (q_end - q)
            return p.union(p_end), q.union(q_end), value.union(above)
    raise FewDigitsError("the best event of one answer")


def _largest_loss(pair: Pair) -> Any:
    """Return the distance in units of the larger noise."""
    return pair["distance"] / max(pair["ratio"], Fraction(1))


def _tails(pair: Pair, epsilon: Any) -> tuple[Any, Any]:
    if not -_largest_loss(pair) < epsilon < _largest_loss(pair):
        return NONE if epsilon > 0 else ALL
    p, q, _ = _best(pair, epsilon)
    return Real(p), Real(q)


def _hockey_stick(pair: Pair, epsilon: Any) -> Any:
    if not -_largest_loss(pair) < epsilon < _largest_loss(pair):
        return Fraction(0) if epsilon > 0 else 1 - exp(epsilon)
    return Real(_best(pair, epsilon)[2])


def _ends(pair: Pair) -> tuple[list[Pair], Pair]:
    """Return choices between two scores, and the larger noise, of which they are a function."""
    k = pair["ratio"]
    tails = two_candidates(
        lambda x: (k * k * exp(-x / k) - exp(-x)) / (2 * (k * k - 1)), pair["distance"]
    )
    return tails, {"law": "laplace", "distance": _largest_loss(pair)}


ONE_ANSWER = DeclaredLaw(
    name="one-answer",
    parameters=("distance", "ratio"),
    tails=_tails,
    largest_loss=_largest_loss,
    only_alone=True,
    ends=_ends,
    hockey_stick=_hockey_stick,
)

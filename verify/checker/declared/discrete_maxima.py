"""Sets of equal integer scores with discrete Laplace noise: which one holds the largest.

Let X be the largest of s noises, Y of r, and F(a) = P(Y - X <= a). A set that rises by t against
the other wins with the chance F(a + t) instead of F(a). The masses f of Y - X are log-concave (the
accountant proves it: those of X are, on both sides of 0 and where they meet), so that f(a + t)/f(a)
falls. The best a is the last one where it is at least e^eps. All is summed term by term here, where
the accountant has closed forms: beyond N on either side both noises have at most (s + r) q^N.

Of any scores a step of one costs no more than a step of discrete Laplace noise, whose trade-off
function is that of randomised response, again and again: so that noise moved by t bounds all.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import arb

from accountant.numbers.precision import ctx
from verify.checker.declared.law import DeclaredLaw, Pair, unknown
from verify.checker.notation import Noise
from verify.checker.reals import FewDigitsError, Real, UnknownError, ball, exp

_BITS = 80
"""Of a sum: what is beyond its last term is less than its power of 2."""
_MOST_TERMS = 6000
"""More take minutes."""
_NEAR = 4
"""Integers next to the level found among which the best one is shown to be."""
_FEW = 5
"""Candidates of equal scores that are tried."""
_CUTS = 8
"""Parts of a move in which a score may stand behind."""


def discrete_pair(noise: Noise) -> Pair:
    """Return that of two candidates, or what lies between some equal scores and one noise.

    Of equal noisy scores the first is reported, so that a level is any integer.
    """
    t = noise["sensitivity"] * (1 if noise["monotone"] else 2)
    few = min(int(noise["candidates"]), _FEW)
    one: Pair = {"law": "discrete-maxima", "distance": t / noise["scale"], "shift": t}
    sets = [{**one, "candidates": Fraction(s), "others": Fraction(few - s)} for s in range(1, few)]
    if len(sets) == 1:
        return sets[0]
    return {"law": "between", "factors": [*sets, _moved_noise(one)]}


def _moved_noise(pair: Pair) -> Pair:
    scale = pair["shift"] / pair["distance"]
    return {"law": "discrete-laplace", "scale": scale, "shift": pair["shift"]}


@lru_cache(maxsize=8)
def _cumulative(rate: str, terms: int, precision: int) -> list[arb]:
    """Return P(Z <= x) for x from -N to N, at e^{-rate} = q."""
    step = arb(rate)
    q = (-step).exp()
    return [
        (step * x).exp() / (1 + q) if x < 0 else 1 - (-step * (x + 1)).exp() / (1 + q)
        for x in range(-terms, terms + 1)
    ]


def _sums(pair: Pair, a: int) -> tuple[arb, arb]:
    """Return F(a) and f(a), to within what is beyond the last terms."""
    rate = ball(pair["distance"] / pair["shift"])
    terms = math.ceil((_BITS + ctx.prec / 2) * math.log(2) / float(rate)) + abs(a) + 1
    if terms > _MOST_TERMS:
        raise UnknownError("the maximum of discrete noise of so large a scale")
    s, r = int(pair["candidates"]), int(pair["others"])
    cdf = _cumulative(str(rate.str(ctx.prec, radius=True)), terms, ctx.prec)
    first, second = [x**s for x in cdf], [x**r for x in cdf]
    total, mass = arb(0), arb(0)
    for i in range(max(1, 1 - a), min(len(cdf), len(cdf) - a)):
        weight = first[i] - first[i - 1]
        total += weight * second[i + a]
        mass += weight * (second[i + a] - (second[i + a - 1] if i + a else 0))
    beyond = arb(0).union((s + r) * (-rate * (terms - abs(a))).exp())
    return total + beyond, mass + beyond


def _level(pair: Pair, epsilon: Any) -> int:
    """Return about the last a with f(a + t) >= e^eps f(a)."""
    t, factor = int(pair["shift"]), ball(exp(epsilon))

    def rises(a: int) -> bool:
        return bool((_sums(pair, a + t)[1] - factor * _sums(pair, a)[1]).mid() >= 0)

    low, high = -t - 1, 1
    while not rises(low):
        low *= 2
    while rises(high):
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if rises(middle) else (low, middle)
    return low


def _best(pair: Pair, epsilon: Any) -> tuple[Any, Any, Any]:
    """Return F(a + t), F(a) and F(a + t) - e^eps F(a) for the best a."""
    t, factor, found = int(pair["shift"]), ball(exp(epsilon)), _level(pair, epsilon)
    low = high = found
    for _ in range(_NEAR):
        ends = []
        for a in (low, high + 1):
            (_, above), (_, here) = _sums(pair, a + t), _sums(pair, a)
            ends.append(above - factor * here)
        if ends[0] >= 0 and ends[1] <= 0:
            break
        low, high = low - (not ends[0] >= 0), high + (not ends[1] <= 0)
    else:
        raise FewDigitsError("a level of the difference of two maxima")
    known = [(_sums(pair, a + t)[0], _sums(pair, a)[0]) for a in range(low, high + 1)]
    p, q = known[0]
    value = p - factor * q
    for x, y in known[1:]:
        p, q, value = p.union(x), q.union(y), value.max(x - factor * y)
    return Real(p), Real(q), Real(value)


def _hockey_stick(pair: Pair, epsilon: Any) -> Any:
    if not -pair["distance"] < epsilon < pair["distance"]:
        return Fraction(0) if epsilon > 0 else 1 - exp(epsilon)
    return _best(pair, epsilon)[2]


def _tails(pair: Pair, epsilon: Any) -> tuple[Any, Any]:
    p, q, _ = _best(pair, epsilon)
    return p, q


def _ends(pair: Pair) -> tuple[list[Pair], Pair]:
    """Return some levels of two candidates, and the noise moved by t."""
    t = int(pair["shift"])
    found: list[Pair] = []
    for a in sorted({-(i * t) // _CUTS for i in range(_CUTS + 1)}):
        p, q = Real(_sums(pair, a + t)[0]), Real(_sums(pair, a)[0])
        found.append({"law": "finite", "p": [p, 1 - p], "q": [q, 1 - q]})
    return found, _moved_noise(pair)


DISCRETE_MAXIMA = DeclaredLaw(
    mechanism="",
    arguments={},
    name="discrete-maxima",
    parameters=("candidates", "others", "distance", "shift"),
    pair=unknown("one pair of a noisy maximum"),
    tails=_tails,
    largest_loss=lambda pair: pair["distance"],
    only_alone=True,
    hockey_stick=_hockey_stick,
    ends=_ends,
)

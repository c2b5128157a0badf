"""Sets of equal integer scores with discrete Laplace noise: which one holds the largest.

Let X be the largest of s noises, Y of r, and F(a) = P(Y - X <= a). A set that rises by t against
the other wins with the chance F(a + t) instead of F(a), at the best level a. A product of
polynomials gives all masses of Y - X at once: beyond N on either side the noises have at most
(s + r) q^N.

Of any scores a step of one costs no more than a step of discrete Laplace noise, whose trade-off
function is that of randomised response, again and again: so that noise moved by t bounds all.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import accumulate, pairwise
from typing import Any

from flint import arb, arb_poly

from accountant.numbers.precision import ctx
from verify.checker.declared.law import ALL, NONE, DeclaredLaw, Pair, unknown
from verify.checker.notation import Noise
from verify.checker.reals import Real, UnknownError, ball, exp

_BITS = 80
"""Of a sum: what is beyond its last term is less than its power of 2."""
_MOST_TERMS = 6000
"""More take minutes."""
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


@lru_cache(maxsize=64)
def _levels(s: int, r: int, rate: str, precision: int) -> tuple[list[arb], int, arb]:
    """Return F at the levels from −2N on, where 0 stands in this list, and what is beyond N."""
    step, bits = arb(rate), _BITS + precision // 2
    terms = math.ceil(bits * math.log(2) / float(step)) + 1
    if terms > _MOST_TERMS:
        raise UnknownError("the maximum of discrete noise of so large a scale")
    q = (-step).exp()
    cdf = [
        (step * x).exp() / (1 + q) if x < 0 else 1 - (-step * (x + 1)).exp() / (1 + q)
        for x in range(-terms - 1, terms + 1)
    ]
    first, second = ([y**n - x**n for x, y in pairwise(cdf)] for n in (s, r))
    gap = arb_poly(first[::-1]) * arb_poly(second)
    return list(accumulate(gap.coeffs())), 2 * terms, (s + r) * q**terms


def _chances(pair: Pair) -> tuple[list[arb], list[arb], int, arb]:
    """Return F(a + t) and F(a) for levels a, where 0 stands in the lists, and what is beyond."""
    if pair["shift"] > _MOST_TERMS:
        raise UnknownError("the maximum of discrete noise that is moved so far")
    rate = str(ball(pair["distance"] / pair["shift"]).str(ctx.prec))
    found, zero, beyond = _levels(int(pair["candidates"]), int(pair["others"]), rate, ctx.prec)
    t, around = int(pair["shift"]), arb(0).union(beyond)
    found = [x + around for x in found]
    none, all_of_it = [around] * t, [1 - around] * t
    return found + all_of_it, none + found, zero + t, beyond


def _hockey_stick(pair: Pair, epsilon: Any) -> Any:
    """Return the largest F(a + t) - e^eps F(a); beyond all levels it is about 0, or 1 - e^eps."""
    if not -pair["distance"] < epsilon < pair["distance"]:
        return Fraction(0) if epsilon > 0 else 1 - exp(epsilon)
    (p, q, _, beyond), factor = _chances(pair), ball(exp(epsilon))
    best = reduce(arb.max, (x - factor * y for x, y in zip(p, q, strict=True)))
    return Real(best.union(best.max(2 * beyond).max(1 - factor * (1 - 2 * beyond))))


def _tails(pair: Pair, epsilon: Any) -> tuple[Any, Any]:
    """Return F(a + t) and F(a) of the best level; of all that may be it, where several may."""
    if not -pair["distance"] < epsilon < pair["distance"]:
        return NONE if epsilon > 0 else ALL
    (p, q, _, _), factor = _chances(pair), ball(exp(epsilon))
    values = [x - factor * y for x, y in zip(p, q, strict=True)]
    best = reduce(arb.max, values)
    tied = [level for level, value in enumerate(values) if not value < best]
    return tuple(Real(reduce(arb.union, [side[i] for i in tied])) for side in (p, q))  # type: ignore[return-value]  # two


def _ends(pair: Pair) -> tuple[list[Pair], Pair]:
    """Return some levels of two candidates, and the noise moved by t."""
    two = {**pair, "candidates": Fraction(1), "others": Fraction(1)}
    (above, here, zero, _), t = _chances(two), int(pair["shift"])
    found: list[Pair] = []
    for a in sorted({-(i * t) // _CUTS for i in range(_CUTS + 1)}):
        p, q = Real(above[zero + a]), Real(here[zero + a])
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

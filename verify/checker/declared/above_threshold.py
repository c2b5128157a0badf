"""The sparse vector technique: answers of a stream against a noisy threshold, until c are above.

With noise of scale s on the threshold and r on the answers, in units of the sensitivity: move the
threshold by 1, which costs e^{1/s}; no answer below becomes less probable, and an answer above, at
most 2 nearer to it, or 1 where answers move in one direction, costs e^{2/r} or e^{1/r}. So the loss
is at most 1/s + 2c/r, or 1/s + c/r. Streams come near to it: m answers at a are below, then c at 1
(or 0) above, against a + 1 and 0. Their probabilities are integrals over the noisy threshold, here
by Arb's quadrature between the places where the integrand is not analytic; the accountant adds up
exponentials.

A fresh threshold after each answer above makes c independent parts. If a noisy value v is shown,
v ≤ 0 says that the threshold is lower, where each of m answers, at 0 or at 1, is below it with
probabilities of the ratio e^{1/r}. An endless stream, or one without noise on its answers, tells
neighbours apart: of many answers at one place the shares that are above tell which half has moved;
and of answers that rise slowly, which half is above first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any

from flint import acb, arb

from dpassay.verifier.checker.arithmetic import largest, least
from dpassay.verifier.checker.declared.law import DeclaredLaw, Pair, pure, two_candidates
from dpassay.verifier.checker.notation import (
    Argument,
    Noise,
    both,
    integer,
    name_of,
    not_negative,
    positive,
    rational,
    switch,
)
from dpassay.verifier.checker.reals import INFINITE, Real, ball, exp, hull

_BITS = 60
"""Of an integral."""
_PLACES = (0, 1, 2, 4, 8, 16, 32, 64)
"""Places of the answers below that are tried, in units of r."""
_MOST_ABOVE, _MOST_BELOW = 16, 100
"""Answers above in an output that is tried, and those below besides."""


def _pair(noise: Noise) -> Pair:
    """Return the scales in units of the sensitivity; certainty where nothing is hidden."""
    if noise["variant"] == "endless" or noise["query_scale"] == 0:
        one, none = Fraction(1), Fraction(0)
        return {"law": "finite", "p": [one, none], "q": [none, one]}
    s = noise["threshold_scale"] / noise["sensitivity"]
    r = noise["query_scale"] / noise["sensitivity"]
    found = {"threshold": s, "query": r, "count": noise["count"], "monotone": noise["monotone"]}
    return {
        "law": "above-threshold",
        **found,
        "fresh": noise["variant"] == "fresh-threshold",
        "values": noise["variant"] == "noisy-values",
    }


def _largest_loss(pair: Pair) -> Any:
    if pair.get("values"):
        return INFINITE
    first, part = 1 / pair["threshold"], (1 if pair["monotone"] else 2) / pair["query"]
    return pair["count"] * (first + part) if pair["fresh"] else first + pair["count"] * part


def _chance(pair: Pair, *sides: tuple[int, Fraction, bool]) -> arb:
    """Return P(n answers at a are below, or above): (n, a, whether below) for each a."""
    s, r = ball(pair["threshold"]), ball(pair["query"])
    places = sorted({Fraction(0), *(a for _, a, _ in sides)})
    m = sum(n for n, _, below in sides if below)
    c = sum(n for n, _, below in sides if not below)
    far = _BITS / (1 / s + m / r)
    ends = [
        ball(places[0]) - far, *map(ball, places), ball(places[-1]) + _BITS / (1 / s + c / r)
    ]  # fmt: skip
    found = arb(0)
    for low, high in pairwise(ends):
        middle = (low + high) / 2

        def tail(x: acb, left: bool) -> acb:
            return x.exp() / 2 if left else 1 - (-x).exp() / 2

        def integrand(z: acb, _: bool, middle: arb = middle) -> acb:
            value = (z / s if middle < 0 else -z / s).exp() / (2 * s)
            for n, a, below in sides:
                x, left = (z - ball(a)) / r, bool(middle < ball(a))
                value *= (tail(x, left) if below else tail(-x, not left)) ** n
            return value

        found += acb.integral(
            integrand, low, high, rel_tol=arb(2) ** -_BITS, abs_tol=arb(2) ** (-100 * _BITS)
        ).real
    beyond = [(-abs(ends[0]) / s).exp() / 2, (-abs(ends[-1]) / s).exp() / 2]
    for n, a, below in sides:
        x = ends[0] - ball(a) if below else ball(a) - ends[-1]
        beyond[not below] *= ((x / r).exp() / 2) ** n
    return found + arb(0).union(sum(beyond, arb(0)))


def _one_answer(pair: Pair) -> list[Pair]:
    """Return whether one answer is above.

    X − Y, of scales r and s, is at least rx with chance (s²e^{−rx/s} − r²e^{−x})/2(s² − r²).
    """
    s = pair["threshold"] / pair["query"]

    def tail(x: Any) -> Any:
        if s == 1:
            return (2 + x) * exp(-x) / 4
        return (s * s * exp(-x / s) - exp(-x)) / (2 * (s * s - 1))

    return two_candidates(tail, 1 / pair["query"])


def _outputs(pair: Pair, epsilon: Any) -> Iterator[tuple[arb, arb]]:
    """Yield the probabilities under P and Q of outputs that are tried."""
    count, r = int(pair["count"]), pair["query"]
    if pair.get("values"):
        # with S = 1/s and R = 1/r: ∫ (R/2)e^{Rv} ∫ (S/2)e^{Sz} (e^{Rz}/2)^m dz dv, z < v < 0
        first, each = 1 / pair["threshold"], 1 / r
        m = max(1, _whole(epsilon / each) + 1)
        p = ball(first * each / ((first + m * each) * (first + (m + 1) * each)))
        p /= arb(2) ** (m + 2)
        yield p, p * ball(exp(-m * each))
        return
    for one in _one_answer(pair):
        yield ball(one["p"][0]), ball(one["q"][0])
    if pair.get("fresh"):
        found = _of_streams(pair, 1)
        yield from ((p**count, q**count) for p, q in found)
        return
    for c in dict.fromkeys((1, min(count, _MOST_ABOVE))):
        yield from _of_streams(pair, c)


def _whole(x: Any) -> int:
    """Return ⌊x⌋, of the middle of a ball."""
    return math.floor(x if isinstance(x, Fraction) else Fraction(float(ball(x))))


def _of_streams(pair: Pair, c: int) -> Iterator[tuple[arb, arb]]:
    """Yield those of answers that are below, and then c above."""
    r = pair["query"]
    m = c + min(math.floor(r / pair["threshold"]), _MOST_BELOW) + 2
    raised = Fraction(0 if pair["monotone"] else 1)
    for place in _PLACES:
        a = place * r
        p = _chance(pair, (m, a, True), (c, raised, False))
        yield p, _chance(pair, (m, a + 1, True), (c, Fraction(0), False))


def _tails(pair: Pair, epsilon: Any) -> tuple[Any, Any]:
    """Return P and Q of the output with the largest P − e^ε Q."""
    factor = ball(exp(epsilon))
    p, q = max(_outputs(pair, epsilon), key=lambda each: float(each[0] - factor * each[1]))
    return Real(p), Real(q)


def _of_threshold(pair: Pair, epsilon: Any) -> Any:
    """Return what the threshold allows, all that answers above may cost being paid.

    Let x be what is missing to 1/s then: 1 − e^{−x/2} of Laplace noise at that distance, for all x
    up to 2/s, and 1 − e^{1/s − x} beyond.
    """
    first, each = 1 / pair["threshold"], (1 if pair["monotone"] else 2) / pair["query"]
    left = largest([first + pair["count"] * each - epsilon, Fraction(0)])
    return 1 - exp(-largest([left / 2, left - first]))


def _hockey_stick(pair: Pair, epsilon: Any) -> Any:
    """Return what lies between the best output and what a loss of at most t allows."""
    t, values = _largest_loss(pair), pair.get("values")
    if not values and epsilon >= t:
        return Fraction(0)
    if not values and epsilon <= -t:
        return 1 - exp(epsilon)
    p, q = _tails(pair, epsilon)
    high = Fraction(1) if values else (exp(t) - exp(epsilon)) / (exp(t) + 1)
    if not values and (not pair.get("fresh") or pair["count"] == 1):
        high = least([high, _of_threshold(pair, epsilon)])
    return hull(largest([p - exp(epsilon) * q, 1 - exp(epsilon), Fraction(0)]), high)


def _ends(pair: Pair) -> tuple[list[Pair], Pair]:
    """Return one answer that passes or not, and what dominates all losses in [−t, t]."""
    certain = {"law": "finite", "p": [Fraction(1), Fraction(0)], "q": [Fraction(0), Fraction(1)]}
    return _one_answer(pair), certain if pair.get("values") else pure(_largest_loss(pair))


ABOVE_THRESHOLD = DeclaredLaw(
    mechanism="AboveThreshold",
    arguments={
        "threshold_scale": Argument(both(rational, positive)),
        "query_scale": Argument(both(rational, not_negative)),
        "count": Argument(integer(1), Fraction(1)),
        "sensitivity": Argument(both(rational, positive), Fraction(1)),
        "monotone": Argument(switch, False),
        "variant": Argument(
            name_of(("standard", "fresh-threshold", "noisy-values", "endless")), "standard"
        ),
    },
    name="above-threshold",
    parameters=("threshold", "query", "count", "monotone", "fresh", "values"),
    pair=_pair,
    tails=_tails,
    largest_loss=_largest_loss,
    only_alone=True,
    ends=_ends,
    only_bounded=True,
    hockey_stick=_hockey_stick,
)

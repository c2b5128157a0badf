"""A noisy answer that is released where a noisy distance is at least a threshold.

A distance is an integer that changes by at most 1 between neighbours; where it is 0 on both sides
the answers may differ by any amount, else by at most the proposed sensitivity, t units of noise.
With a and b the chances of a pass under P and Q, {L > eps} has a pass with l > eps - ln(a/b), where
l is the loss of Laplace noise, and the failure where (1 - a)/(1 - b) > e^eps.

Let pi(n) be the chance at the distance n, and r = 1/s for the scale s of its noise. Both laws of n
and n + 1 are affine in pi(n + 1) where n + 1 is at most the threshold, since pi(n) = e^{-r} pi(n +
1), and in 1 - pi(n) where n is at least that. H is convex in both laws, and so largest at an end of
either range. Two equal distances mix a failure without loss with the noise, the limit of large n.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from dpassay.verifier.checker.arithmetic import largest
from dpassay.verifier.checker.declared.law import DeclaredLaw, Pair, laplace_moment, laplace_tails
from dpassay.verifier.checker.notation import Noise
from dpassay.verifier.checker.reals import exp, log

_ZERO, _ONE = Fraction(0), Fraction(1)


def tested_pairs(noise: Noise) -> list[Pair]:
    """Return unstable neighbours, stable ones, and those at the ends of both ranges."""
    tau, r = noise["threshold"], 1 / noise["test_scale"]
    t = noise["sensitivity"] / noise["scale"]
    shown = _pass(tau * r)
    found: list[Pair] = [
        {"law": "finite", "p": [shown[0], shown[1], _ZERO], "q": [_ZERO, shown[1], shown[0]]},
        {"law": "laplace", "distance": t},
    ]
    whole = Fraction(math.floor(tau))
    for n in sorted({_ZERO, whole - 1, whole, Fraction(math.ceil(tau))}):
        if n >= 0:
            one = {"law": "tested-release", "distance": t, "margin": (tau - n) * r, "step": r}
            found += [{**one, "rises": True}, {**one, "rises": False}]
    return found


def _pass(x: Fraction) -> tuple[Any, Any]:
    """Return the chances that Laplace noise of scale 1 is at least x, and that it is not."""
    rare = exp(-abs(x)) / 2
    return (rare, 1 - rare) if x >= 0 else (1 - rare, rare)


def _chances(pair: Pair) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    low, high = _pass(pair["margin"]), _pass(pair["margin"] - pair["step"])
    return (high, low) if pair["rises"] else (low, high)


def _ratio(pair: Pair) -> Any:
    """Return ln(a/b), which is r or -r where both distances are at most the threshold."""
    (a, _), (b, _) = _chances(pair)
    if pair["margin"] >= pair["step"]:
        return pair["step"] if pair["rises"] else -pair["step"]
    return log(a / b)


def _failed(pair: Pair) -> Any:
    """Return ln((1 - a)/(1 - b)), which is r or -r where both are at least the threshold."""
    (_, a), (_, b) = _chances(pair)
    if pair["margin"] <= 0:
        return -pair["step"] if pair["rises"] else pair["step"]
    return log(a / b)


def _tails(pair: Pair, epsilon: Any) -> tuple[Any, Any]:
    (a, no_a), (b, no_b) = _chances(pair)
    p, q = laplace_tails(pair["distance"], epsilon - _ratio(pair))
    if _failed(pair) > epsilon:
        return a * p + no_a, b * q + no_b
    return a * p, b * q


def _renyi(pair: Pair, order: Any) -> Any:
    """Return ln(a^n b^{1-n} m + (1-a)^n (1-b)^{1-n})/(n - 1), m that of the noise; D_1 at n = 1."""
    (a, no_a), _ = _chances(pair)
    t, passed, failed = pair["distance"], _ratio(pair), _failed(pair)
    if order == 1:
        return a * (passed + t + exp(-t) - 1) + no_a * failed
    less, moment = order - 1, laplace_moment(t, order)
    return log(a * exp(less * passed) * moment + no_a * exp(less * failed)) / less


TESTED_RELEASE = DeclaredLaw(
    name="tested-release",
    parameters=("distance", "margin", "step", "rises"),
    tails=_tails,
    renyi=_renyi,
    largest_loss=lambda pair: largest([_ratio(pair) + pair["distance"], _failed(pair)]),
    only_alone=True,
)

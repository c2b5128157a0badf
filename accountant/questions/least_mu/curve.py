"""The profile δ_μ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) of N(μ, 1) against N(0, 1).

Normal scores: the threshold t at which a standard normal law has a given upper tail.

With Φ̄(t) = 1 − Φ(t), a test of level α and power 1 − β needs μ = t(α) − t(1 − β), where
Φ̄(t(α)) = α: the least μ of a pair is the supremum of that over all its tests.
"""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb

from dpassay.accountant.numbers.dominance import Profile
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.halving import halved
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.pairs.gaussian import normal_cdf


def tangent(mu: arb, epsilon: arb) -> tuple[arb, arb]:
    """Return δ_μ(ε) and its derivative by e^ε."""
    half, cut = mu / 2, epsilon / mu
    slope = -normal_cdf(-half - cut)
    return normal_cdf(half - cut) + epsilon.exp() * slope, slope


def profile_of(mu: ExactReal) -> Profile:
    """Return δ_μ."""
    return lambda epsilon: tangent(mu.ball(), epsilon.ball())[0]


def needed(delta: arb, epsilon: Fraction) -> Fraction:
    """Return a rational near the μ with δ_μ(ε) = δ, by bisection of the exponent."""
    target = delta.mid()

    def is_less(log: float) -> bool:
        return bool(tangent(arb(math.exp(log)), ball(epsilon))[0].mid() < target)

    return Fraction(math.exp(halved(is_less, -700.0, 700.0)[0]))


def score(tail: arb) -> arb:
    """Return t with Φ̄(t) = tail, for a tail inside (0, 1); NaN for a ball that leaves it."""
    low, high = (_at(arb(end)) for end in (tail.upper(), tail.lower()))
    return low.union(high)


def _at(tail: arb) -> arb:
    return arb(2).sqrt() * (2 * tail).erfcinv()


def hazard(t: arb) -> arb:
    """Return λ(t) = φ(t)/Φ̄(t), which increases: of a ball, through its two ends."""
    low, high = (_hazard(arb(end)) for end in (t.lower(), t.upper()))
    return low.union(high)


def _hazard(t: arb) -> arb:
    density = (-t * t / 2).exp() / (2 * arb.pi()).sqrt()
    return density / normal_cdf(-t)


def stretch(t: arb, log_ratio: arb) -> arb:
    """Return t − u for Φ̄(u) = e^{log_ratio} Φ̄(t), for log_ratio ≥ 0: +∞ where that exceeds 1.

    It is the length over which λ has the integral log_ratio, and so falls as t grows, to 0.
    """
    tail = normal_cdf(-t) * log_ratio.exp()
    return t - score(tail) if tail < 1 else arb.pos_inf()

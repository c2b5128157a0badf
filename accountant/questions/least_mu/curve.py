"""The profile δ_μ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) of N(μ, 1) against N(0, 1)."""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb

from accountant.numbers.dominance import Profile
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import ball
from accountant.pairs.gaussian import normal_cdf


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
    low, high = -700.0, 700.0
    target = delta.mid()
    for _ in range(60):
        middle = (low + high) / 2
        if tangent(arb(math.exp(middle)), ball(epsilon))[0].mid() < target:
            low = middle
        else:
            high = middle
    return Fraction(math.exp((low + high) / 2))

r"""The exact test of (ε, δ)-DP from right and wrong guesses, both orders of a pair at once.

Each of N runs is made on one of two datasets that a fair coin chooses. An event E is a guess of the
first dataset, a disjoint event F one of the second. With P and Q the laws of the output, a guess is
right with probability P(E)/2 + Q(F)/2 and wrong with probability w = Q(E)/2 + P(F)/2, and
(ε, δ)-DP in both orders says

    P(right) ≤ e^ε w + δ.

Given the number G of guesses, the right ones are Bin(G, π) with

    π ≤ (e^ε w + δ)/((e^ε + 1) w + δ),

which for δ = 0 is e^ε/(1 + e^ε) whatever w is: the nuisance is gone. For δ > 0 the bound falls as w
grows, and the rate g of guesses is at most (e^ε + 1)w + δ, so w ≥ (g − δ)/(e^ε + 1); g is bounded
from below from G with confidence 1 − `spared`, and `spared` is added to the p-value (Berger and
Boos 1994). Where both orders leak alike the counts of both are used at no charge.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from dpassay.verifier.audit.statistics import binomial

Triple: TypeAlias = tuple[int, int, int]
"""Right guesses, wrong guesses, and runs."""
_LEAST = 1e-300
"""In place of a tail that underflows."""


def p_value(counts: Triple, epsilon: float, delta: float, spared: float) -> float:
    """Return the exact p-value (with `spared` added where δ > 0).

    The tail is that of the wrong guesses: 1 − π keeps its relative accuracy where π is near 1.
    """
    right, wrong, runs = counts
    guesses = right + wrong
    chance = least_chance_of_error(guesses, runs, epsilon, delta, spared)
    if wrong >= guesses * chance:
        return 1.0
    tail = max(float(binomial.at_most(wrong, guesses, chance)), _LEAST)
    return min(1.0, (tail + (spared if delta > 0 else 0.0)) * (1 + binomial.ROUNDING))


def least_chance_of_error(
    guesses: int, runs: int, epsilon: float, delta: float, spared: float
) -> float:
    """Return the lower bound of 1 − π."""
    pure = math.exp(-epsilon) / (1 + math.exp(-epsilon))
    if delta == 0:
        return pure
    if guesses == 0:
        return 0.0
    least = float(binomial.least_rate(guesses, runs, spared))
    return pure * (1 - delta / least) if least > delta else 0.0

"""p-values of one-run audits at ten settings, beside the formulas of the papers.

Of m canaries r are guessed and v guesses are right.

- (ε, δ): equation (1) of `statistics.one_run_bound`, which is the largest probability over all
  mechanisms, and Steinke, Nasr and Jagielski 2023, Theorem 5.2.
- μ-GDP: the least bound of the package at any level, and the least level at which the recursion
  of Mahloujifar, Melis and Chaudhuri 2024 (Algorithm 3, trade-off function of μ-GDP) rejects.

    python -P benchmarks/audit_formulas.py
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
from scipy import special, stats

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from dpassay.accountant.numbers.reading import few
from dpassay.verifier.audit import guarantee
from dpassay.verifier.audit.kinds.one_run import bound_of_claim, tail_bound

SETTINGS = (
    (100, 100, 85, 1.0, 0.0, 0.5),
    (100, 50, 47, 2.0, 1e-5, 1.0),
    (1000, 100, 90, 1.5, 1e-5, 0.25),
    (1000, 100, 99, 3.0, 1e-3, 0.5),
    (1000, 500, 400, 1.0, 1e-5, 0.5),
    (1000, 1000, 770, 1.0, 1e-5, 0.5),
    (1000, 1000, 780, 1.0, 1e-4, 0.5),
    (1000, 1000, 900, 2.0, 1e-6, 1.0),
    (10_000, 500, 400, 1.0, 1e-5, 0.25),
    (10_000, 10_000, 7500, 1.0, 1e-6, 0.5),
)
"""m, r, v, ε, δ, and μ."""


def published(m: int, r: int, v: int, epsilon: float, delta: float) -> float:
    """Return β + 2 m δ max_i P(v − i ≤ W < v)/i, W ~ Bin(r, e^ε/(1 + e^ε))."""
    law = stats.binom(r, special.expit(epsilon))
    i = np.arange(1, v + 1)
    masses = np.cumsum(law.pmf(v - i))
    return min(1.0, float(law.sf(v - 1) + 2 * m * delta * (masses / i).max()))


def recursion(m: int, r: int, v: int, mu: float) -> float:
    """Return the least level at which the recursion of 2024 rejects μ-GDP."""

    def rejects(level: float) -> bool:
        likely, unlikely = level * v / m, level * (r - v) / m
        for i in range(v - 1, -1, -1):
            most = float(special.ndtr(special.ndtri(likely) - mu))
            if most <= unlikely:
                break
            likely = min(1.0, likely + i / (r - i) * (most - unlikely))
            unlikely = most
        return likely + unlikely > r / m

    low, high = -300.0, 0.0
    if not rejects(1.0):
        return 1.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if rejects(10**middle) else (middle, high)
    return float(10**high)


def main() -> None:
    """Print the table."""
    print("| m | r | v | ε, δ | exact | 2023 | μ | ours | 2024 |\n" + "|---" * 9 + "|")
    for m, r, v, epsilon, delta, mu in SETTINGS:
        exact = float(tail_bound(v, r, m, epsilon, delta)[0])
        claim = guarantee({"mu": str(mu)})
        levels = np.geomspace(1, 1e-8, 120)  # at each the points of the curve that bind there
        own = min(bound_of_claim(v, r, m, claim, float(level)) for level in levels)
        values = (exact, published(m, r, v, epsilon, delta), own, recursion(m, r, v, mu))
        shown = [few(value, 2) if not math.isclose(value, 1) else "1" for value in values]
        print(
            f"| {m} | {r} | {v} | {epsilon:g}, {few(delta)} | {shown[0]} | {shown[1]} | {mu:g} | "
            f"{shown[2]} | {shown[3]} |",
            flush=True,
        )


if __name__ == "__main__":
    main()

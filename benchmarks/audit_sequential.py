"""Steps until a training run is refuted: `audit_training` and two published sequential tests.

One stream of scores for all three: in each step a fair coin puts the canary in, and the score is
N(μ', 1) with it and N(0, 1) without. The claim is μ-GDP of a step.

- `audit_training`: bets on guesses, valid at any time (Ville's inequality).
- Kutta, Dunsche, Wei and Zikas, "Sequential auditing for f-differential privacy" (2026): the errors
  of a classifier, raised by q s √(ln(20 + n/100)/n), against the claimed trade-off curve; q is the
  97.5 % quantile of the maximum of a random walk. After 100 pairs, at every tenth; the classifier
  is theirs for white boxes, told that scores are normal of variance 1, with its threshold where the
  largest square fits below the claimed curve. Its level is a limit for many pairs.
- González, Dulce Rubio, Ramdas and Ribero, "Sequentially auditing differential privacy" (NeurIPS
  2025): bets on a witness of the maximum mean discrepancy beyond √2 δ(0), the largest that the
  claim allows (Gaussian kernel, median bandwidth of 20 pairs that are not used, online Newton
  stakes).

The last two take pairs: the k-th score with the canary and the k-th without. Entries are medians
of steps at 5 %; the last column but one is the part of private runs (μ' = μ) that are accused.

    python -P benchmarks/audit_sequential.py [--seeds 21] [--audits 1000] [--most 20000]
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy import special

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from dpassay.verifier.audit import audit_training, guarantee

LEVEL = 0.05
BURN, EVERY = 100, 10
"""Pairs before the first look of the test of 2026, and between looks."""
SPARE = 20
"""Pairs that choose the bandwidth of the test of 2025."""
SETTINGS = ((0.25, 0.5), (0.5, 0.75), (0.5, 1.0), (1.0, 1.25), (1.0, 2.0), (2.0, 4.0))
"""μ as claimed, and as it is."""
Test: TypeAlias = Callable[[Any, Any, float], int | None]
"""Scores, coins and μ to the number of steps after which μ-GDP is refuted; None for never."""


def ours(scores: Any, coins: Any, mu: float) -> int | None:
    """Return the steps that `audit_training` takes."""
    claim = guarantee({"mu": str(mu)})
    found = audit_training(zip(scores, coins, strict=True), claim, significance=LEVEL)
    return sum(each.runs for each in found.rounds) if found.refuted else None


def paired(scores: Any, coins: Any) -> tuple[Any, Any, Any]:
    """Return scores with and without the canary, and the step at which each pair is complete."""
    places = np.flatnonzero(coins), np.flatnonzero(~coins)
    size = min(map(len, places))
    inside, outside = (each[:size] for each in places)
    return scores[inside], scores[outside], np.maximum(inside, outside) + 1


def boundary(most: int, walks: int = 10_000) -> float:
    """Return the quantile of max S_n/(√n √ln(20 + n/burn)) of random walks, at half the level."""
    rng, found = np.random.default_rng(0), []
    n = np.arange(BURN + EVERY, BURN + most + 1, EVERY)
    for _ in range(0, walks, 500):
        start = rng.normal(size=(500, 1)) * math.sqrt(BURN)
        sums = start + np.cumsum(rng.normal(size=(500, len(n))) * math.sqrt(EVERY), axis=1)
        found.append((sums / np.sqrt(n * np.log(20 + n / BURN))).max(axis=1))
    return float(np.quantile(np.concatenate(found), 1 - LEVEL / 2))


def curve_test(most: int) -> Test:
    """Return the test of 2026."""
    reach = boundary(most)
    alphas = np.linspace(0, 1, 2001)

    def threshold(first: Any, second: Any, mu: float) -> float:
        """Return where the largest square fits between the curve of a shift and the claimed one."""
        cuts = np.linspace(-4, 4, 1001) + (first.mean() + second.mean()) / 2
        alpha = special.ndtr(cuts - first.mean())
        beta = special.ndtr(second.mean() - cuts)
        side = np.interp(alpha - beta, alphas - allowed(alphas, mu), alphas) - alpha
        return float(cuts[side.argmax()])

    def test(scores: Any, coins: Any, mu: float) -> int | None:
        first, second, steps = paired(scores, coins)
        learned, cut = 0, 0.0
        for n in range(BURN, len(first) + 1, EVERY):
            if not learned or 1 - (learned / n) ** 0.2 > 0.1:
                learned, cut = n, threshold(first[:n], second[:n], mu)
            errors = np.array([np.mean(first[:n] <= cut), np.mean(second[:n] > cut)])
            spread = np.maximum(np.sqrt(errors * (1 - errors)), 0.5 / math.sqrt(n))
            alpha, beta = np.minimum(
                1, errors + reach * spread * math.sqrt(math.log(20 + n / BURN) / n)
            )
            if beta < allowed(alpha, mu):
                return int(steps[n - 1])
        return None

    return test


def allowed(alpha: Any, mu: float) -> Any:
    """Return the trade-off function of μ-GDP."""
    return special.ndtr(-special.ndtri(alpha) - mu)


def kernel_test(scores: Any, coins: Any, mu: float) -> int | None:
    """Apply the test of 2025."""
    first, second, steps = paired(scores, coins)
    some = np.concatenate([first[:SPARE], second[:SPARE]])
    apart = np.abs(some[:, np.newaxis] - some)[np.triu_indices(len(some), 1)]
    scale = 2 * float(np.median(apart)) ** 2
    x, y, steps = first[SPARE:], second[SPARE:], steps[SPARE:]
    limit = math.sqrt(2) * (2 * float(special.ndtr(mu / 2)) - 1)
    weights, terms = np.zeros(len(x)), np.zeros(len(x))  # of the witness, and for its norm
    wealth, stake, moment, squares = 1.0, 0.0, 0.0, 1.0

    def kernel(a: Any, b: Any) -> Any:
        return np.exp(-((a - b) ** 2) / scale)

    for t in range(len(x)):
        past = kernel(x[:t], x[t]) - kernel(x[:t], y[t]) + kernel(y[:t], y[t]) - kernel(y[:t], x[t])
        witness = float(past @ weights[:t])
        payoff = witness - limit
        wealth *= 1 + stake * payoff
        if wealth >= 1 / LEVEL:
            return int(steps[t])
        slope = -payoff / (1 + stake * payoff)
        squares += slope**2
        stake -= 2 / (2 - math.log(3)) * slope / squares
        stake = min(max(stake, 0.0), 1 / (8 + 4 * limit))
        gain = 2 - 2 * float(kernel(x[t], y[t]))
        moment += gain
        rate = 1 / (2 * math.sqrt(moment))
        # the squared norm of the witness after a step of gradient ascent
        norm = float(terms[:t].sum()) + 2 * rate * witness + rate**2 * gain
        weights[t], terms[t] = rate, 2 * rate * witness + rate**2 * gain
        if norm > 1:
            weights[: t + 1] /= math.sqrt(norm)
            terms[: t + 1] /= norm
    return None


def stream(mu: float, most: int, seed: int) -> tuple[Any, Any]:
    """Return scores and coins of so many steps."""
    rng = np.random.default_rng(seed)
    coins = rng.random(most) < 0.5
    return mu * coins + rng.normal(size=most), coins


def shown(found: list[int | None], most: int) -> str:
    """Return the median of steps."""
    middle = float(np.median([most + 1 if each is None else each for each in found]))
    return f"> {most}" if middle > most else f"{middle:.0f}"


def steps_table(tests: dict[str, Test], seeds: int, most: int) -> None:
    """Print the medians of steps until a refutation."""
    print("| claimed μ | true μ |", " | ".join(tests), "|\n|---|---|" + "---|" * len(tests))
    for claimed, true in SETTINGS:
        streams = [stream(true, most, seed) for seed in range(seeds)]
        row = [shown([test(*each, claimed) for each in streams], most) for test in tests.values()]
        print(f"| {claimed:g} | {true:g} |", " | ".join(row), "|", flush=True)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=21, help="0: only the level")
    parser.add_argument("--audits", type=int, default=1000)
    parser.add_argument("--most", type=int, default=20_000)
    options = parser.parse_args()
    tests: dict[str, Test] = {
        "audit_training": ours,
        "2026": curve_test(options.most),
        "2025": kernel_test,
    }
    if options.seeds:
        steps_table(tests, options.seeds, options.most)
    print("\n| private, μ | steps | " + " | ".join(tests) + " | s |\n|---|---|" + "---|" * 4)
    for mu, steps in ((0.5, 2000), (2.0, 2000)):
        started = time.process_time()
        accused = [
            sum(test(*stream(mu, steps, seed), mu) is not None for seed in range(options.audits))
            for test in tests.values()
        ]
        rates = " | ".join(f"{each / options.audits:.1%}" for each in accused)
        spent = time.process_time() - started
        print(f"| {mu:g} | {steps} | {rates} | {spent:.0f} |", flush=True)


if __name__ == "__main__":
    main()

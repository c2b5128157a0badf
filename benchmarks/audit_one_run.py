"""How often one-run and score audits accuse private mechanisms, and what their planner says.

The worst private mechanism for one-run audits of μ-GDP spoils all canaries together: it draws one
|loss| of N(0, 1) against N(μ, 1) and answers every coin by randomised response with it. Each coin
is exactly μ-GDP, and tests that take the canaries for independent accuse it far too often. For
(ε, δ)-DP it is randomised response at ε that tells every coin with probability δ a canary.

    python -P benchmarks/audit_one_run.py [--audits 10000] [--scores 10000]
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special, stats

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier.audit import audit_scores, canaries_needed, guarantee
from dpassay.verifier.audit.kinds.one_run import bound_of_claim
from dpassay.verifier.audit.learning import learn

LEVEL = 0.05
CANARIES = 1000
GUESSES = (1000, 500, 250, 62, 15)
"""What `audit_one_run` tries for so many canaries."""


def losses(mu: float, size: int, rng: np.random.Generator) -> Any:
    """Draw |ln p/q| of N(0, 1) against N(μ, 1)."""
    return np.abs(rng.normal(mu * mu / 2, mu, size))


def one_run(mu: float, audits: int, seed: int) -> tuple[float, float]:
    """Return how often μ-GDP is refuted: by the package, and taking canaries for independent.

    Scores are the answers, so that which are guessed among equals is drawn by lot: the numbers of
    right guesses are hypergeometric parts of the right answers on either side.
    """
    rng = np.random.default_rng(seed)
    claim = guarantee({"mu": str(mu)})
    bound = functools.cache(lambda right, r: bound_of_claim(right, r, CANARIES, claim))
    independent = special.ndtr(mu / 2)
    accused = naive = 0
    for loss in losses(mu, audits, rng):
        coins = rng.random(CANARIES) < 0.5
        answers = coins ^ (rng.random(CANARIES) > special.expit(loss))
        said = [rng.permutation(np.flatnonzero(answers == kind)) for kind in (False, True)]
        order = coins[np.concatenate(said)]
        p_values = []
        for r in GUESSES:
            out = r // 2
            right = int(order[CANARIES - (r - out) :].sum()) + int((~order[:out]).sum())
            p_values.append(bound(right, r))
            if r == CANARIES:
                naive += float(stats.binom.sf(right - 1, r, independent)) <= LEVEL
        accused += len(GUESSES) * min(p_values) <= LEVEL
    return accused / audits, naive / audits


NULLS: dict[str, tuple[Any, Callable[[int, np.random.Generator], Any]]] = {
    "0.5-GDP": ({"mu": "0.5"}, lambda inside, rng: rng.normal(0.5 * inside, 1, RUNS)),
    "2-GDP": ({"mu": "2"}, lambda inside, rng: rng.normal(2 * inside, 1, RUNS)),
    "(1, 0)-DP": (1, lambda inside, rng: (rng.random(RUNS) < special.expit(1)) ^ inside),
}
"""Scores at the boundary of their claim: Gaussian, and randomised response."""
RUNS = 200
"""Runs with the canary, and as many without."""


def scores(name: str, audits: int) -> float:
    """Return how often scores at the boundary of a claim refute it."""
    claim, draw = NULLS[name]
    learn.epsilon_lower_bound = learn.delta_lower_bound = lambda *_: 0.0  # not needed, and slow
    whole, accused = guarantee(claim), 0  # whose curve is computed once
    for seed in range(audits):
        rng = np.random.default_rng(seed)
        found = audit_scores(draw(1, rng), draw(0, rng), whole, seed=seed)
        accused += found.refuted
    return accused / audits


def main() -> None:
    """Print every rate with the chance of as many accusations at the level."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=10_000)
    parser.add_argument("--scores", type=int, default=10_000)
    options = parser.parse_args()
    print("| audit | audits | refuted at 5 % | canaries taken for independent | CPU s |")
    print("|---|---|---|---|---|")
    for mu in (0.25, 0.5, 1.0, 2.0):
        started = time.process_time()
        rate, naive = one_run(mu, options.audits, seed=1)
        spent = time.process_time() - started
        print(
            f"| one run, {mu:g}-GDP | {options.audits} | {rate:.2%} | {naive:.1%} | {spent:.0f} |"
        )
        sys.stdout.flush()
    for name in NULLS:
        started = time.process_time()
        rate = scores(name, options.scores)
        spent = time.process_time() - started
        print(f"| scores, {name} | {options.scores} | {rate:.2%} | | {spent:.0f} |", flush=True)
    print("\n| refute ε | if the truth is | δ | canaries |\n|---|---|---|---|")
    for epsilon, truth in ((0.5, 1), (1, 2), (2, 4), (4, 8), (8, 16)):
        for delta in (0.0, 1e-5):
            try:
                needed = str(canaries_needed(epsilon, truth, delta=delta))
            except InvalidInputError:
                needed = "none is enough"
            print(f"| {epsilon:g} | {truth:g} | {delta:g} | {needed} |")


if __name__ == "__main__":
    main()

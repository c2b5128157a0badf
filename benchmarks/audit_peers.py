"""Lower bounds of ε(δ) by this package and by JAX-Privacy's auditor, from the same scores.

Scores are N(μ, 1) with the canary and N(0, 1) without: of runs of their own (`audit_scores` beside
Clopper–Pearson intervals with Bonferroni), or of 1000 canaries of one run (`audit_one_run` beside
Steinke, Nasr and Jagielski 2023, and its bound of μ beside Mahloujifar, Melis and Chaudhuri 2024,
which are told that the mechanism is Gaussian). JAX-Privacy chooses its threshold on half of the
scores; the columns "same guesses" give its formulas the guesses of ours. Medians at 95 %, δ = 1e-5.

    python -P benchmarks/audit_peers.py [--seeds 21]

in an environment that has jax-privacy.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from dpassay.accountant.mechanisms import Gaussian
from dpassay.accountant.questions.profile import epsilon
from dpassay.verifier.audit import audit_one_run, audit_scores
from dpassay.verifier.audit.kinds.one_run import _right

CANARIES, DELTA, LEVEL = 1000, 1e-5, 0.05


def of_mu(mu: float) -> float:
    """Return ε(δ) of Gaussian noise."""
    return float(epsilon(Gaussian(repr(1 / mu)), str(DELTA)).lower) if mu > 0 else 0.0


def row(mu: float, seed: int, peer: Any) -> dict[str, float]:
    """Return every bound from one set of scores."""
    rng = np.random.default_rng(seed)
    included = rng.random(CANARIES) < 0.5
    scores = mu * included + rng.normal(size=CANARIES)
    theirs = peer.CanaryScoreAuditor(scores[included], scores[~included])
    found = audit_one_run(scores, included, delta=DELTA, significance=LEVEL)
    asked = [(r, _right(scores, included, r, 0), LEVEL / len(found.tried)) for r in found.tried]
    same = [
        max(formula(least, CANARIES, r, v, level, DELTA) for r, v, level in asked)
        for formula, least in ((peer._epsilon_one_run, 0.0), (peer._epsilon_one_run_fdp, 1e-3))
    ]
    split = {"threshold_strategy": peer.Split(seed=seed)}
    return {
        "runs: ours": audit_scores(
            scores[included], scores[~included], delta=DELTA, seed=seed
        ).epsilon,
        "Clopper–Pearson": theirs.epsilon_clopper_pearson(LEVEL, DELTA),
        "one run: ours": found.epsilon,
        "2023": theirs.epsilon_one_run(LEVEL, DELTA, **split),
        "2023, same guesses": same[0],
        "Gaussian: ours": of_mu(found.mu),
        "2024": theirs.epsilon_one_run_fdp(LEVEL, DELTA, **split),
        "2024, same guesses": same[1],
    }


def main() -> None:
    """Print the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=21)
    seeds = parser.parse_args().seeds
    peer = importlib.import_module("jax_privacy.auditing")
    for place, mu in enumerate((1.0, 2.0, 4.0)):
        rows = [row(mu, seed, peer) for seed in range(seeds)]
        if not place:
            print("| μ | true ε |", " | ".join(rows[0]), "|")
            print("|---" * (2 + len(rows[0])) + "|")
        medians = [f"{np.median([each[name] for each in rows]):.2f}" for name in rows[0]]
        print(f"| {mu:g} | {of_mu(mu):.2f} |", " | ".join(medians), "|", flush=True)


if __name__ == "__main__":
    main()

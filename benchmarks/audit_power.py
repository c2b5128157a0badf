"""The ε that five auditors certify for twelve broken mechanisms, with equal runs, at 95 %.

The rules of the other auditors are reimplemented from their papers and manuals:

- DP-Sniper (Bichsel, Steffen, Bogunovic, Vechev, S&P 2021): half of the runs train a logistic
  regression; the event is the top hundredth of its scores, with randomised ties; Clopper–Pearson
  intervals.
- StatDP (Ding, Wang, Wang, Zhang, Kifer, CCS 2018): a tenth of the runs select the interval or
  value of an entry with the least p-value, and the others test it: counts on P are thinned by
  e^{−ε} and compared by Fisher's exact test, with the mean p-value of ten thinnings.
- DP-Auditorium (Kong, Muñoz Medina, Ribero, Syed, 2023), hockey-stick tester: half of the runs
  train a classifier; the divergence of its event {log odds > ε} is estimated on the others and
  reduced by the deviation of Hoeffding's inequality.
- JAX-Privacy's canary auditor: the scores are the log odds of that classifier; half of the
  remaining runs choose the threshold, and the other half bound it by Clopper–Pearson intervals.

All auditors test both orders of the datasets, each at half the significance. The table shows the
median, over seeds, of the lower bound on ε at δ = 0. For some mechanisms the true ε is ∞.

    python -P benchmarks/audit_power.py [--runs 20000] [--seeds 3] [--only NAME …]
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from dpassay.verifier.audit import audit
from dpassay.verifier.audit.features import Alphabet
from tests.verify.audit import zoo

LEVEL = 0.05
ZOO = (
    "laplace-sensitivity-two",
    "laplace-inverted-scale",
    "laplace-absolute",
    "laplace-vector-largest-change",
    "geometric-wrong-ratio",
    "gaussian-claimed-pure",
    "randomized-response-linear",
    "unary-encoding-whole-epsilon",
    "noisy-max-value",
    "exponential-mechanism-no-half",
    "sparse-vector-no-threshold-noise",
    "tree-off-by-one",
)
Rows = tuple[Any, Any]


def outputs(case: zoo.Case, runs: int, seed: int) -> Rows:
    """Draw the outputs of both datasets of the first pair as rows of numbers."""
    form = Alphabet()
    rng = np.random.default_rng(seed)
    drawn = [case.sample(dataset, runs, rng) for dataset in case.pairs[0]]
    rows = [form.matrix(side) for side in drawn]
    if rows[0].shape[1] != rows[1].shape[1]:
        form = Alphabet(width=8)
        rows = [form.matrix(side) for side in drawn]
    first, second = (np.nan_to_num(side.astype(float)) for side in rows)
    return first, second


def rates(a: int, n: int, b: int, m: int, level: float) -> float:
    """Return ln(p̲/q̄) of two Clopper–Pearson bounds, each at half the level."""
    low = stats.beta.ppf(level / 2, a, n - a + 1) if a else 0.0
    high = stats.beta.isf(level / 2, b + 1, m - b) if b < m else 1.0
    return math.log(low / high) if low > high else 0.0


def log_odds(rows: Rows, training: int, seed: int) -> Rows:
    """Return the log odds of the first dataset, of a logistic regression on some runs."""
    from sklearn.linear_model import LogisticRegression

    spread = np.concatenate(rows).std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    taught = np.concatenate([side[:training] for side in rows]) / scale
    model = LogisticRegression(max_iter=500, random_state=seed)
    model.fit(taught, np.arange(2 * training) < training)
    first, second = (model.decision_function(side / scale) for side in rows)
    return first, second


def sniper(rows: Rows, seed: int) -> float:
    """Bound ε by the event of the top hundredth of a learned score."""
    half, rng, best = len(rows[0]) // 2, np.random.default_rng(seed), 0.0
    scores = log_odds(rows, half, seed)
    for a, b in ((scores[0], scores[1]), (-scores[1], -scores[0])):
        cut = np.quantile(b[:half], 0.99)
        above, tie = np.mean(b[:half] > cut), np.mean(b[:half] == cut)
        share = min(1.0, max(0.0, (0.01 - above) / tie)) if tie else 0.0
        hits = [
            int(np.sum((side > cut) | ((side == cut) & (rng.random(len(side)) < share))))
            for side in (a[half:], b[half:])
        ]
        best = max(best, rates(hits[0], half, hits[1], half, LEVEL / 2))
    return best


def stat_dp(rows: Rows, seed: int) -> float:
    """Return the largest ε at which a thinned Fisher test refutes the best event of a search."""
    rng, best = np.random.default_rng(seed), 0.0
    cut = len(rows[0]) // 10
    n = len(rows[0]) - cut
    for favoured in (0, 1):
        p, q = rows[favoured], rows[1 - favoured]
        found: tuple[float, Callable[[Any], Any]] | None = None
        for column in range(p.shape[1]):
            known = np.concatenate([p[:cut, column], q[:cut, column]])
            edges = np.unique(np.quantile(known, np.linspace(0, 1, 21)))
            events: list[Callable[[Any], Any]] = [
                *(lambda rows, c=column, e=e: rows[:, c] >= e for e in edges),
                *(lambda rows, c=column, e=e: rows[:, c] <= e for e in edges),
                *(lambda rows, c=column, e=e: rows[:, c] == e for e in edges),
            ]
            for event in events:
                a, b = (int(event(side[:cut]).sum()) for side in (p, q))
                score = stats.hypergeom.sf(a - 1, 2 * cut, a + b, cut)
                if found is None or score < found[0]:
                    found = score, event
        assert found is not None
        a, b = (int(found[1](side[cut:]).sum()) for side in (p, q))
        low, high = 0.0, 20.0
        for _ in range(20):
            middle = (low + high) / 2
            thinned = rng.binomial(a, math.exp(-middle), 10)
            values = stats.hypergeom.sf(thinned - 1, 2 * n, thinned + b, n)
            low, high = (middle, high) if values.mean() <= LEVEL / 2 else (low, middle)
        best = max(best, low)
    return best


def auditorium(rows: Rows, seed: int) -> float:
    """Return the largest ε at which a lower bound on the hockey-stick divergence exceeds δ."""
    half, best = len(rows[0]) // 2, 0.0
    scores = log_odds(rows, half, seed)
    deviation = math.sqrt(math.log(2 / (LEVEL / 2)) / (2 * half))
    for a, b in ((scores[0], scores[1]), (-scores[1], -scores[0])):
        for epsilon in np.linspace(0, 6, 601):
            p, q = (np.mean(side[half:] > epsilon) for side in (a, b))
            factor = math.exp(epsilon)
            if p - factor * q - (1 + factor) * deviation > 0:
                best = max(best, float(epsilon))
    return best


def canaries(rows: Rows, seed: int) -> float:
    """Bound ε by a threshold of scores that one part of the runs chooses and another tests."""
    training, best = len(rows[0]) // 3, 0.0
    scores = log_odds(rows, training, seed)
    for a, b in ((scores[0], scores[1]), (-scores[1], -scores[0])):
        one, other = ([side[training : 2 * training], side[2 * training :]] for side in (a, b))
        cuts = np.unique(np.quantile(np.concatenate([one[0], other[0]]), np.linspace(0, 1, 200)))
        m = len(one[0])
        promised = [
            rates(int((one[0] >= c).sum()), m, int((other[0] >= c).sum()), m, LEVEL / 2)
            for c in cuts
        ]
        cut = cuts[int(np.argmax(promised))]
        n = len(one[1])
        counts = (int((side[1] >= cut).sum()) for side in (one, other))
        best = max(best, rates(next(counts), n, next(counts), n, LEVEL / 2))
    return best


def ours(case: zoo.Case, runs: int, seed: int) -> float:
    """Audit without a claim, and return the lower bound on ε."""
    found = audit(
        case,
        pairs=case.pairs[:1],
        samples=runs,
        significance=LEVEL,
        seed=seed,
        bits=False,
    )
    return found.epsilon


def main(runs: int, seeds: int, only: list[str]) -> None:
    """Print the table."""
    rules = {"DP-Sniper": sniper, "StatDP": stat_dp, "DP-Auditorium": auditorium}
    rules["JAX-Privacy"] = canaries
    print("| mechanism | truth | dpassay | " + " | ".join(rules) + " |")
    print("|---|---|---|" + "---|" * len(rules))
    for name in only or ZOO:
        case = zoo.case(name)
        found = [np.median([ours(case, runs, seed) for seed in range(seeds)])]
        drawn = [outputs(case, runs, seed) for seed in range(seeds)]
        found += [
            np.median([rule(rows, seed) for seed, rows in enumerate(drawn)])
            for rule in rules.values()
        ]
        best = max(found)
        cells = [f"**{value:.2f}**" if value == best else f"{value:.2f}" for value in found]
        truth = "" if case.true_epsilon is None else f"{case.true_epsilon:.3g}".replace("inf", "∞")
        print(f"| {name} | {truth} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    main(options.runs, options.seeds, options.only)

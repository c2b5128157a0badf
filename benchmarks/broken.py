"""How many runs a side find each broken mechanism of the zoo: this auditor and two simple rules.

- `audit`: one event learned on training runs, one joint exact test (the default of the package).
- `fixed mass`: a score learned on half of the runs (logistic regression on the outputs), the event
  of the highest hundredth of it, two Clopper–Pearson intervals: the rule of DP-Sniper (Bichsel,
  Steffen, Bogunovic, Vechev, S&P 2021).
- `histogram`: 32 cells of every coordinate (or its values, where they are few), two
  Clopper–Pearson intervals for every cell and both orders, Bonferroni over all of them.
- `best test`: what the best event needs if it is known beforehand and every run is spent on its
  exact test. The event is the one that the package chooses from 150 000 runs a side, its
  probabilities those of 150 000 others, and its counts are simulated.

All at significance 1e-6. A rule needs n runs if n is the least of a ladder of doublings at which
it refutes the claim for more than half of the seeds.

    python -P benchmarks/broken.py [--most 128000] [--seeds 3] [--only NAME …] [--json FILE]
        [--rules audit "best test"]
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from dpassay.accountant.errors import DpassayError
from dpassay.verifier.audit import audit, guarantee, p_value
from dpassay.verifier.audit.learning.learn import choose
from dpassay.verifier.audit.learning.outputs import Alphabet
from dpassay.verifier.audit.statistics.exact_test import SPARED
from tests.verify.audit import zoo

LEVEL = 1e-6
MASS = 0.01
CELLS = 32
LEAST = 500
LEAST_KNOWN = 125
KNOWN = 150_000
Rule = Callable[[zoo.Case, int, int], bool]


def ours(case: zoo.Case, runs: int, seed: int) -> bool:
    """Audit with the package's defaults."""
    try:
        return audit(
            case,
            case.claim,
            pairs=case.pairs[:1],
            samples=runs,
            significance=LEVEL,
            seed=seed,
            bits=True,
        ).refuted
    except DpassayError:  # too few runs to refute anything
        return False


def fixed_mass(case: zoo.Case, runs: int, seed: int) -> bool:
    """Apply DP-Sniper's rule in both orders, each at half the significance."""
    from sklearn.linear_model import LogisticRegression

    first, second = outputs(case, runs, seed)
    half = runs // 2
    rng = np.random.default_rng(seed)
    spread = np.concatenate([first, second]).std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    training = np.concatenate([first[:half], second[:half]]) / scale
    if not np.ptp(training, axis=0).any():
        return False
    model = LogisticRegression(max_iter=500).fit(training, np.arange(2 * half) < half)
    scores = [model.decision_function(side / scale) for side in (first, second)]
    found = False
    for favoured, sign in ((0, 1), (1, -1)):
        a, b = (sign * score for score in (scores[favoured], scores[1 - favoured]))
        cut = np.quantile(b[:half], 1 - MASS)
        above, tie = np.mean(b[:half] > cut), np.mean(b[:half] == cut)
        share = min(1.0, max(0.0, (MASS - above) / tie)) if tie else 0.0

        def hits(score: Any, cut: Any = cut, share: float = share) -> int:
            fresh = score[half:]
            return int(np.sum((fresh > cut) | ((fresh == cut) & (rng.random(len(fresh)) < share))))

        found |= beyond(case, hits(a), hits(b), runs - half, LEVEL / 2)
    return found


def histogram(case: zoo.Case, runs: int, seed: int) -> bool:
    """Apply the Bonferroni rule; a tenth of the runs makes the cells."""
    first, second = outputs(case, runs, seed)
    cut = max(runs // 10, 50)
    tables = []
    for column in range(first.shape[1]):
        known = np.concatenate([first[:cut, column], second[:cut, column]])
        values = np.unique(known)
        if len(values) <= CELLS:
            edges = values
        else:
            edges = np.unique(np.quantile(known, np.arange(1, CELLS) / CELLS))
        tables.append(
            [
                np.bincount(
                    np.searchsorted(edges, side[cut:, column], side="right"),
                    minlength=len(edges) + 1,
                )
                for side in (first, second)
            ]
        )
    tests = 2 * sum(len(pair[0]) for pair in tables)
    fresh = runs - cut
    return any(
        beyond(case, int(a), int(b), fresh, LEVEL / tests)
        for p, q in tables
        for favoured, other in ((p, q), (q, p))
        for a, b in zip(favoured, other, strict=True)
    )


def best_test(case: zoo.Case) -> Rule:
    """Return the rule that knows its event."""
    claim = guarantee(case.claim)
    first, second = outputs(case, 2 * KNOWN, 7)
    rule = choose(first[:KNOWN], second[:KNOWN], claim, runs=20_000, significance=LEVEL).values
    counts = [rule.histogram(side[KNOWN:]) for side in (first, second)]
    shares = [np.asarray(count, dtype=float) / count.sum() for count in counts]
    epsilon, delta = float(rule.point.epsilon), float(rule.point.delta)

    def simulated(_: zoo.Case, runs: int, seed: int) -> bool:
        rng = np.random.default_rng(seed)
        histogram = np.array([rng.multinomial(runs, share) for share in shares])
        return p_value(rule.counts(histogram), epsilon, delta, spared=SPARED * LEVEL) <= LEVEL

    return simulated


def best(case: zoo.Case, runs: int, seed: int) -> bool:
    """Stand for `best_test(case)`, which is made once for every case."""
    return best_test(case)(case, runs, seed)


def outputs(case: zoo.Case, runs: int, seed: int) -> tuple[Any, Any]:
    """Draw the outputs of both datasets of the first pair as rows of numbers."""
    form = Alphabet()
    rng = np.random.default_rng(seed)
    drawn = [case.sample(dataset, runs, rng) for dataset in case.pairs[0]]
    rows = [form.matrix(side) for side in drawn]
    if rows[0].shape[1] != rows[1].shape[1]:
        form = Alphabet(width=8)
        rows = [form.matrix(side) for side in drawn]
    return tuple(np.nan_to_num(side.astype(float)) for side in rows)


def beyond(case: zoo.Case, a: int, b: int, runs: int, significance: float) -> bool:
    """Whether the Clopper–Pearson intervals of both counts leave the claim no room.

    Of a curve the point at which the counts exceed it most is taken: for the simple rules' good.
    """
    if a == 0:
        return False
    low = float(special.betaincinv(a, runs - a + 1, significance / 2))
    high = 1.0 if b == runs else float(special.betaincinv(b + 1, runs - b, 1 - significance / 2))
    points = guarantee(case.claim).candidates(6.0)
    return any(low > math.exp(float(p.epsilon)) * high + float(p.delta) for p in points)


def claimed(case: zoo.Case) -> str:
    """Return the claim in short."""
    whole = guarantee(case.claim)
    if not whole.points:
        return whole.description
    point = whole.points[0]
    return f"({float(point.epsilon):.3g}, {float(point.delta):.3g})-DP"


def needed(rule: Rule, case: zoo.Case, most: int, seeds: int) -> int | None:
    """Return the least number of runs on the ladder, or None."""
    runs = LEAST
    if rule is best:
        rule, runs = best_test(case), LEAST_KNOWN
    while runs <= most:
        wins = losses = 0
        for seed in range(1, seeds + 1):
            if rule(case, runs, seed):
                wins += 1
            else:
                losses += 1
            if 2 * wins > seeds:
                return runs
            if 2 * losses >= seeds:
                break
        runs *= 2
    return None


def _near(row: dict[str, Any]) -> bool:
    """Whether the audit needs at most 20 000 runs or four times those of the best test."""
    return row["audit"] is not None and row["audit"] <= max(20_000, 4 * (row["best test"] or 0))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=128_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--json", type=Path)
    known: dict[str, Rule] = {
        "best test": best,
        "audit": ours,
        "fixed mass": fixed_mass,
        "histogram": histogram,
    }
    parser.add_argument("--rules", nargs="*", default=list(known), choices=list(known))
    options = parser.parse_args()
    rules = {name: known[name] for name in options.rules}
    print("| broken mechanism | claim | true ε |", " | ".join(rules), "|")
    print("|---|---|---|" + "---|" * len(rules))
    rows = []
    for case in zoo.cases(broken=True):
        if options.only and not any(part in case.name for part in options.only):
            continue
        started = time.perf_counter()
        row: dict[str, Any] = {"case": case.name, "claim": claimed(case)}
        row |= {
            name: needed(rule, case, options.most, options.seeds) for name, rule in rules.items()
        }
        row["seconds"] = round(time.perf_counter() - started, 1)
        rows.append(row)
        true = "" if case.true_epsilon is None else f"{case.true_epsilon:.3g}".replace("inf", "∞")
        shown = [str(row[name] or "–") for name in rules]
        if "audit" in rules and "best test" in rules and not _near(row):
            shown[-1] += " (far from the best test)"
        print(f"| {case.name} | {row['claim']} | {true} |", " | ".join(shown), "|", flush=True)
    for name in rules:
        found = [row[name] for row in rows if row[name]]
        print(f"\n{name}: {len(found)} of {len(rows)} found, median {np.median(found):.0f} runs")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()

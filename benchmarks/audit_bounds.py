"""Bounds on ε compared with the theoretical limit: `benchmarks/audit.py bounds`."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special, stats

from benchmarks.audit_pairs import Case, cases
from dpassay.verifier.audit import AuditResult, audit
from dpassay.verifier.audit.exact_test import Counts, Design, epsilon_lower_bound
from dpassay.verifier.audit.guarantees import Point
from dpassay.verifier.audit.learn import promised_by_sides
from dpassay.verifier.audit.runs import Called

"""The value channel: the bits of numpy's float noise are another matter."""
LEVEL = 0.05
GOAL = 1.15
"""Of the gap."""


def events(case: Case) -> list[tuple[float, float]]:
    """Return (P, Q) of all sets {ratio ≥ t}, for the ratio P over Q and for Q over P."""
    found = []
    for p, q in ((case.p, case.q), (case.q, case.p)):
        kept = (p > 1e-15) | (q > 1e-15)
        order = np.argsort(-np.log((p[kept] + 1e-300) / (q[kept] + 1e-300)), kind="stable")
        sums = np.cumsum(p[kept][order]), np.cumsum(q[kept][order])
        found += [(min(a, 1.0), min(b, 1.0)) for a, b in zip(*sums, strict=True)]
    return found


def limit(case: Case, n: int) -> float:
    """Return the bound of the best event at its expected counts, if all runs test it."""
    a, b = np.array(events(case)).T
    promise = promised_by_sides(a * n, b * n, n, Point.read("1", case.delta), 1.645)
    best = int(np.argmax(promise))
    counts = Counts(round(n * a[best]), n, round(n * b[best]), n)
    return epsilon_lower_bound(counts, float(case.delta), LEVEL)


def clopper_pearson(a: Any, b: Any, n: int, delta: float, level: float) -> Any:
    """Return ln((p̲ − δ)/q̄), with Clopper–Pearson bounds at the given level."""
    low = np.where(a > 0, special.betaincinv(np.maximum(a, 1), n - a + 1, level), 0.0)
    high = np.where(b < n, special.betainccinv(b + 1, np.maximum(n - b, 1), level), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = np.log(np.maximum(low - delta, 0) / high)
    return np.where(low > delta, bound, 0.0)


def sniper(case: Case, n: int, rng: np.random.Generator, repeats: int = 41) -> float:
    """Return the median bound of DP-Sniper's rule with the exact likelihood ratio."""
    delta, best = float(case.delta), 0.0
    for p, q in ((case.p, case.q), (case.q, case.p)):
        order = np.argsort(-np.log((p + 1e-300) / (q + 1e-300)), kind="stable")
        below = np.cumsum(q[order])
        cut = int(np.searchsorted(below, 0.01))
        before = below[cut - 1] if cut else 0.0
        part = (0.01 - before) / q[order][cut] if cut < len(order) and q[order][cut] > 0 else 0.0
        mass = p[order][:cut].sum() + part * (p[order][cut] if cut < len(order) else 0.0)
        bounds = clopper_pearson(
            rng.binomial(n, min(1.0, mass), repeats),
            rng.binomial(n, 0.01, repeats),
            n,
            delta,
            LEVEL / 2,
        )
        best = max(best, float(np.median(bounds)))
    return best


def histogram(case: Case, n: int, rng: np.random.Generator, repeats: int = 41) -> float:
    """Return the median bound of a Bonferroni histogram of 20 cells."""
    order = np.argsort(-np.log((case.p + 1e-300) / (case.q + 1e-300)), kind="stable")
    p, q = case.p[order], case.q[order]
    place = np.minimum((np.cumsum(p + q) / 2 * 20 - 1e-9).astype(int), 19)
    cells = len(np.unique(place))
    sums = [np.bincount(place, side, 20) for side in (p, q)]
    drawn = [rng.multinomial(n, s / s.sum(), repeats) for s in sums]
    level = LEVEL / (4 * cells)
    bounds = [
        clopper_pearson(one, other, n, float(case.delta), level).max(axis=1)
        for one, other in (drawn, drawn[::-1])
    ]
    return float(np.median(np.maximum(*bounds)))


def expected(case: Case, result: AuditResult) -> float:
    """Return the bound of an audit's event from the counts that the exact laws expect.

    This is the median over what the test draws, to within a fraction of a count: what is left to
    chance is which event the training runs chose.
    """
    masses, rule = case.cells_of(result.rule), result.rule
    if masses is None:
        return math.nan
    runs = result.samples
    found = rule.counts(np.rint(masses * runs).astype(np.int64))
    whole = 2 * runs if rule.design is Design.GUESSES else runs
    hits = min(found.hits, whole - found.misses)
    counts = Counts(hits, whole, found.misses, whole, rule.design)
    return epsilon_lower_bound(counts, float(case.delta), LEVEL)


REPEATS = {10**5: 1001, 10**6: 101, 10**7: 11}
REPEATS_OF_VECTORS = {10**5: 101, 10**6: 11, 10**7: 5}


def median_with_ends(values: Sequence[float], level: float = LEVEL) -> tuple[float, float, float]:
    """Return the median of a sample, and order statistics that hold that of the law.

    The k-th smallest of N is above the median of the law with probability P(Bin(N, ½) < k), and
    alike from above: exact whatever the law is. With few values the ends are ±∞.
    """
    ordered = sorted(values)
    count = len(ordered)
    below = int(stats.binom.ppf(level / 2, count, 0.5))
    while below > 0 and stats.binom.cdf(below - 1, count, 0.5) > level / 2:
        below -= 1
    middle = float(np.median(ordered))
    if below == 0:
        return -math.inf, middle, math.inf
    return ordered[below - 1], middle, ordered[count - below]


def bounds(samples: Sequence[int], repeats: int, only: str) -> list[dict[str, Any]]:
    """Return one row per pair and number of runs, and print each row when it is finished."""
    rng = np.random.default_rng(1)
    rows: list[dict[str, Any]] = []
    for n in samples:
        for case in cases():
            if only in case.name:
                rows.append(_row(case, n, repeats, rng))
                if len(rows) == 1:
                    print_row(rows[0], heading=True)
                print_row(rows[-1])
    met = sum(row["its gap"] <= GOAL for row in rows)
    sure = sum(row["to"] <= GOAL for row in rows)
    missed = [f"{row['pair']} at {row['runs a side']}" for row in rows if row["from"] > GOAL]
    print(
        f"\nMedian gap at most {GOAL}: {met} of {len(rows)} rows, with confidence 97.5 % {sure}; "
        f"above it with confidence 97.5 %: {', '.join(missed) or 'none'}."
    )
    return rows


def _row(case: Case, n: int, repeats: int, rng: np.random.Generator) -> dict[str, Any]:
    usual = REPEATS if case.direction is None else REPEATS_OF_VECTORS
    count = repeats or usual.get(n, 5)
    started = time.perf_counter()
    found = [
        audit(
            Called(case.sample, case.name),
            (repr(case.truth), case.delta),
            pairs=[(0, 1)],
            samples=n,
            seed=seed,
            bits=False,
        )
        for seed in range(count)
    ]
    seconds = (time.perf_counter() - started) / count
    top = limit(case, n)
    least = case.truth - top
    low, middle, high = median_with_ends([(case.truth - r.epsilon) / least for r in found])
    usually = float(np.median([expected(case, result) for result in found]))
    return {
        "pair": case.name,
        "runs a side": f"{n:.0e}",
        "ε": case.truth,
        "limit": top,
        "expected": usually,
        "gap": (case.truth - usually) / least,
        "audits": count,
        "their median": float(np.median([result.epsilon for result in found])),
        "its gap": middle,
        "from": low,
        "to": high,
        "at most 1.15": float(np.mean([case.truth - r.epsilon <= GOAL * least for r in found])),
        "DP-Sniper": sniper(case, n, rng),
        "histogram": histogram(case, n, rng),
        "s": round(seconds, 1),
    }


def print_row(row: dict[str, Any], *, heading: bool = False) -> None:
    """Print a row of a markdown table, or the names of its columns."""
    cells = list(row) if heading else [cell(value) for value in row.values()]
    print("| " + " | ".join(cells) + " |", flush=True)
    if heading:
        print("|" + "---|" * len(cells), flush=True)


def cell(value: Any) -> str:
    """Format a number with four decimal places, or return the text."""
    return f"{value:.4f}" if isinstance(value, float) else str(value)

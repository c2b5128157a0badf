"""How close black-box audits come to the theoretical limit, and what they cost.

    python -P benchmarks/audit.py bounds [--samples 1e5 1e6 1e7] [--repeats 9] [--only Laplace]
    python -P benchmarks/audit.py level [--audits 10000] [--processes 2] [--kept FILE]
    python -P benchmarks/audit.py anytime | speed | rank-one

`bounds`: nine pairs, black box. Beside the median 95 % lower bound of ε stand

- the limit: the best event that the exact laws know, every run spent on the exact test of one side
  (`verify.audit.sides`), at its expected counts;
- DP-Sniper's rule (Bichsel et al. 2021): the event of mass 0.01 with the largest exact likelihood
  ratio, two Clopper–Pearson bounds at half of the significance each, every run spent on it;
- a histogram of 20 cells of equal mass, each with two Clopper–Pearson bounds, the significance
  divided among all of them and both orders.

The last two are given what they would have to learn, the exact likelihood ratio. The `gap` is
(ε − bound)/(ε − limit). The bound of one audit varies by most of its gap, that of the same event at
the counts that the exact laws expect (`expected`) by little: it is what a few audits can tell.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import multiprocessing
import platform
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import integrate, special, stats

from accountant import notation
from accountant.profile import epsilon as exact_epsilon
from verify.audit import AuditResult, audit, audit_until_refuted, features, vectors
from verify.audit.exact_test import Counts, Design, epsilon_lower_bound, p_value
from verify.audit.guarantee import Point, guarantee
from verify.audit.learn import _sides
from verify.audit.rule import Rule
from verify.audit.target import PerBlock

VALUES = (features.plain, vectors.learned)
"""The value channel: the bits of numpy's float noise are another matter."""
LEVEL = 0.05
SIGMA = 3.730631634816464  # analytic calibration to (1, 1e-5)
Sampler = Callable[[Any, int, np.random.Generator], Any]


@dataclass(frozen=True)
class Case:
    """A pair with its exact laws in cells, in any order."""

    name: str
    sample: Sampler
    delta: str
    truth: float
    p: Any
    q: Any
    values: Any
    """Edges between the cells, or the value of each; for vectors those along the direction."""
    direction: Any = None

    def cells_of(self, rule: Rule) -> Any:
        """Return the exact masses of the cells of a rule; None where they are not known."""
        feature, edges = rule.feature, rule.partition.edges
        if self.direction is not None:
            if not isinstance(feature, vectors.Linear) or edges is None:
                return None
            spread = SIGMA * float(np.linalg.norm(feature.weights))
            shift = float(feature.weights @ self.direction)
            laws = [stats.norm(d * shift - feature.offset, spread) for d in (0, 1)]
            return np.array([np.diff(np.concatenate([[0], x.cdf(edges), [1]])) for x in laws])
        values = np.asarray(self.values, dtype=np.float64)
        if len(values) == len(self.p) - 1:
            values = np.concatenate([values[:1], (values[1:] + values[:-1]) / 2, values[-1:]])
        cells = rule.partition.cell(feature(values[:, np.newaxis]))
        size = rule.partition.size
        return np.array([np.bincount(cells, side, size) for side in (self.p, self.q)])


def cells_of(cdf_p: Any, cdf_q: Any, grid: Any) -> tuple[Any, Any]:
    """Return the masses between the points of a grid."""
    return tuple(np.diff(np.concatenate([[0.0], cdf(grid), [1.0]])) for cdf in (cdf_p, cdf_q))  # type: ignore[return-value]


def cases() -> list[Case]:
    """Return the nine pairs; dataset 0 is P, dataset 1 is Q."""
    fine = np.linspace(-12, 13, 6001)
    wide = np.linspace(-25, 26, 12001)
    share = math.e / (1 + math.e)
    direction = np.random.default_rng(100).standard_normal(100)
    direction /= np.linalg.norm(direction)
    ks = np.arange(-60, 62)
    found = [
        Case(
            "Laplace",
            lambda d, n, r: d + r.laplace(0, 1, n),
            "0",
            1.0,
            *cells_of(stats.laplace(0).cdf, stats.laplace(1).cdf, fine),
            fine,
        ),
        _geometric(ks),
        Case(
            "analytic Gaussian",
            lambda d, n, r: d + r.normal(0, SIGMA, n),
            "1e-5",
            1.0,
            *cells_of(stats.norm(0, SIGMA).cdf, stats.norm(1, SIGMA).cdf, wide),
            wide,
        ),
        _discrete_gaussian(ks),
        Case(
            "Gaussian, d = 100",
            lambda d, n, r: d * direction + r.normal(0, SIGMA, (n, 100)),
            "1e-5",
            1.0,
            *cells_of(stats.norm(0, SIGMA).cdf, stats.norm(1, SIGMA).cdf, wide),
            wide,
            direction,
        ),
        Case(
            "randomised response",
            lambda d, n, r: (r.random(n) < share) ^ bool(d),
            "0",
            1.0,
            np.array([share, 1 - share]),
            np.array([1 - share, share]),
            np.array([1, 0]),
        ),
        _noisy_max(),
        _sparse_vector(),
        _subsampled(wide),
    ]
    return found


def _geometric(ks: Any) -> Case:
    rate = 1 - math.exp(-1)

    def sample(d: Any, n: int, r: np.random.Generator) -> Any:
        return d + r.geometric(rate, n) - r.geometric(rate, n)

    law = stats.dlaplace(1.0)
    return Case("geometric", sample, "0", 1.0, law.pmf(ks), law.pmf(ks - 1), ks)


def _discrete_gaussian(ks: Any) -> Case:
    mechanism = notation.parse("DiscreteGaussian(parameter=14)")
    weights = np.exp(-(ks**2) / 28.0)
    shifted = np.exp(-((ks - 1) ** 2) / 28.0)

    def sample(d: Any, n: int, r: np.random.Generator) -> Any:
        return d + mechanism.sample(n, rng=r)

    truth = float(exact_epsilon(mechanism, "1e-5").lower)
    p, q = weights / weights.sum(), shifted / shifted.sum()
    return Case("discrete Gaussian", sample, "1e-5", truth, p, q, ks)


def _noisy_max() -> Case:
    """Report the place of the largest of 5 counts with Laplace noise of scale 2 (ε = 1)."""
    scores = np.array([[0.0, 1, 1, 1, 1], [1.0, 0, 0, 0, 0]])

    def sample(d: Any, n: int, r: np.random.Generator) -> Any:
        return np.argmax(scores[d] + r.laplace(0, 2, (n, 5)), axis=1)

    def law(row: Any) -> Any:
        def wins(i: int) -> float:
            def density(x: float) -> float:
                others = np.prod([stats.laplace(s, 2).cdf(x) for j, s in enumerate(row) if j != i])
                return float(stats.laplace(row[i], 2).pdf(x) * others)

            return float(integrate.quad(density, -60, 60, limit=400, points=[0, 1])[0])

        return np.array([wins(i) for i in range(5)])

    p, q = law(scores[0]), law(scores[1])
    truth = float(np.max(np.abs(np.log(p / q))))
    return Case("noisy max of 5", sample, "0", truth, p, q, np.arange(5))


def _sparse_vector() -> Case:
    """Give the place of the first of 5 answers above a noisy threshold (AboveThreshold, ε = 1)."""
    answers = np.array([[0.0] * 5, [1.0, 1, 1, 1, 1]])

    def sample(d: Any, n: int, r: np.random.Generator) -> Any:
        above = answers[d] + r.laplace(0, 4, (n, 5)) >= 1 + r.laplace(0, 2, (n, 1))
        return np.where(above.any(axis=1), above.argmax(axis=1), 5)

    def law(value: float) -> Any:
        def place(k: int) -> float:
            def density(t: float) -> float:
                below = stats.laplace(value, 4).cdf(t)
                stop = 1 - below if k < 5 else 1.0
                return float(stats.laplace(1, 2).pdf(t) * below**k * stop)

            return float(integrate.quad(density, -80, 80, limit=400, points=[0, 1])[0])

        return np.array([place(k) for k in range(6)])

    p, q = law(0.0), law(1.0)
    truth = float(np.max(np.abs(np.log(p / q))))
    return Case("sparse vector", sample, "0", truth, p, q, np.arange(6))


def _subsampled(grid: Any) -> Case:
    mechanism = notation.parse(
        'PoissonSubsampled(mechanism=Gaussian(standard_deviation=1), sampling_prob="0.1")'
    )

    def sample(d: Any, n: int, r: np.random.Generator) -> Any:
        return d * (r.random(n) < 0.1) + r.normal(0, 1, n)

    none, one = stats.norm(0, 1).cdf, stats.norm(1, 1).cdf
    p, q = cells_of(none, lambda x: 0.9 * none(x) + 0.1 * one(x), grid)
    truth = float(exact_epsilon(mechanism, "1e-5", adjacency="add-remove").lower)
    return Case("subsampled Gaussian", sample, "1e-5", truth, p, q, grid)


def events(case: Case) -> list[tuple[float, float]]:
    """Return (P, Q) of every set {ratio ≥ t}, of P over Q and of Q over P."""
    found = []
    for p, q in ((case.p, case.q), (case.q, case.p)):
        kept = (p > 1e-15) | (q > 1e-15)
        order = np.argsort(-np.log((p[kept] + 1e-300) / (q[kept] + 1e-300)), kind="stable")
        sums = np.cumsum(p[kept][order]), np.cumsum(q[kept][order])
        found += [(min(a, 1.0), min(b, 1.0)) for a, b in zip(*sums, strict=True)]
    return found


def limit(case: Case, n: int) -> float:
    """Return the bound of the best event at its expected counts, every run spent on the test."""
    a, b = np.array(events(case)).T
    promise = _sides(a * n, b * n, n, Point.read("1", case.delta), 1.645)
    best = int(np.argmax(promise))
    counts = Counts(round(n * a[best]), n, round(n * b[best]), n)
    return epsilon_lower_bound(counts, float(case.delta), LEVEL)


def clopper_pearson(a: Any, b: Any, n: int, delta: float, level: float) -> Any:
    """Return ln((p̲ − δ)/q̄) with both bounds at a level."""
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


REPEATS = {10**5: 21, 10**6: 7, 10**7: 3}
REPEATS_OF_VECTORS = {10**5: 5, 10**6: 3, 10**7: 1}


def bounds(samples: Sequence[int], repeats: int, only: str) -> list[dict[str, Any]]:
    """Return one row per pair and number of runs."""
    rng = np.random.default_rng(1)
    rows = []
    for n in samples:
        for case in cases():
            if only not in case.name:
                continue
            usual = REPEATS if case.direction is None else REPEATS_OF_VECTORS
            count = repeats or usual.get(n, 5)
            started = time.perf_counter()
            found = [
                audit(
                    PerBlock(case.sample, case.name),
                    (repr(case.truth), case.delta),
                    pairs=[(0, 1)],
                    samples=n,
                    seed=seed,
                    proposers=VALUES,
                )
                for seed in range(count)
            ]
            seconds = (time.perf_counter() - started) / count
            top = limit(case, n)
            ours = float(np.median([result.epsilon for result in found]))
            usually = float(np.median([expected(case, result) for result in found]))
            least = case.truth - top
            rows.append(
                {
                    "pair": case.name,
                    "runs a side": f"{n:.0e}",
                    "ε": case.truth,
                    "limit": top,
                    "bound": ours,
                    "expected bound": usually,
                    "gap": (case.truth - ours) / least if least > 0 else math.nan,
                    "expected gap": (case.truth - usually) / least if least > 0 else math.nan,
                    "DP-Sniper": sniper(case, n, rng),
                    "histogram": histogram(case, n, rng),
                    "audits": count,
                    "s": round(seconds, 1),
                }
            )
            print("| " + " | ".join(_cell(v) for v in rows[-1].values()) + " |", flush=True)
    return rows


def _cell(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _laplace(scale: float) -> Sampler:
    return lambda d, n, r: d + r.laplace(0, scale, n)


PRIVATE: dict[str, tuple[Any, Any]] = {
    "Laplace noise of scale 1, ε = 1": (_laplace(1.0), 1),
    "Laplace noise of scale 2, ε = 1/2": (_laplace(2.0), "0.5"),
    "Gaussian noise of deviation 2, μ = 1/2": (
        lambda d, n, r: d + r.normal(0, 2, n),
        guarantee({"mu": "0.5"}).candidates(),
    ),
    "DiscreteLaplace(scale=1)": (None, 1),
    "DiscreteLaplace(scale=4)": (None, "0.25"),
    "RandomizedResponse(epsilon=1)": (None, 1),
    "RandomizedResponse(epsilon=1, categories=4)": (None, 1),
    "Staircase(epsilon=1, gamma=0.4)": (None, 1),
    'Tabulated(p=["3/4", "1/4"], q=["1/4", "3/4"])': (None, "1.0986122886681098"),
    "TruncatedGeometric(scale=1, low=0, high=5)": (None, 1),
}
"""Mechanisms at the boundary of their claim: a sampler of numpy's, or one of this package."""
RUNS_OF_LEVEL = 4000
CHUNK = 100


def _level_chunk(name: str, start: int) -> list[float]:
    """Return the p-values of some audits."""
    sampler, claim = PRIVATE[name]
    if sampler is None:
        mechanism: Any = notation.parse(name)
    else:
        mechanism = PerBlock(sampler, name)
        claim = [(p.epsilon, p.delta) for p in claim] if isinstance(claim, tuple) else claim
    own = sampler is None and "Truncated" not in name
    return [
        audit(
            mechanism,
            claim,
            samples=RUNS_OF_LEVEL,
            seed=seed,
            proposers=(features.plain,),
            pairs=None if own else [(0, 1)],
        ).p_value
        for seed in range(start, start + CHUNK)
    ]


def level(audits: int, kept: Path, processes: int) -> list[dict[str, Any]]:
    """Return how often private mechanisms at the boundary of their claim are accused.

    Finished parts are kept in a file, one line each; the same command continues there.
    """
    digest = hashlib.sha256(
        b"".join(
            path.read_bytes()
            for path in sorted(Path(sys.modules["verify.audit"].__path__[0]).glob("*.py"))
        )
    ).hexdigest()[:12]
    found: dict[str, dict[int, list[float]]] = {name: {} for name in PRIVATE}
    if kept.exists():
        for line in kept.read_text("utf-8").splitlines():
            part = json.loads(line)
            if part["runs"] == RUNS_OF_LEVEL and part["source"] == digest:
                found[part["name"]][part["start"]] = part["p"]
    waiting = [
        (name, start)
        for start in range(0, audits, CHUNK)
        for name in PRIVATE
        if start not in found[name]
    ]
    with ProcessPoolExecutor(processes) as pool, kept.open("a", encoding="utf-8") as file:
        futures = {pool.submit(_level_chunk, *task): task for task in waiting}
        for future in as_completed(futures):
            name, start = futures[future]
            found[name][start] = future.result()
            part = {"name": name, "runs": RUNS_OF_LEVEL, "start": start, "source": digest}
            file.write(json.dumps({**part, "p": found[name][start]}) + "\n")
            file.flush()
    rows = []
    for name, parts in found.items():
        values = np.concatenate(list(parts.values()))
        rows.append(
            {
                "mechanism": name,
                "audits": len(values),
                "refuted at 5 %": float(np.mean(values <= LEVEL)),
                "refuted at 1e-6": int(np.sum(values <= 1e-6)),
                "least p": f"{values.min():.1e}",
            }
        )
    return rows + _level_of_counts()


def _level_of_counts() -> list[dict[str, Any]]:
    """Return how often the exact test alone refutes simulated counts at the boundary."""
    rows = []
    rng = np.random.default_rng(2)
    for design in Design:
        for n, q in ((10**4, 0.02), (10**5, 0.184), (10**6, 1e-4)):
            p, trials = min(1.0, math.e * q), 10_000
            a, b = rng.binomial(n, p, trials), rng.binomial(n, q, trials)
            if design is Design.GUESSES:
                b = rng.binomial(n - a, q / (1 - p))
            pairs_seen = {(int(x), int(y)) for x, y in zip(a, b, strict=True)}
            values = {
                pair: p_value(Counts(pair[0], n, pair[1], n, design), 1.0, 0.0, spared=5e-4)
                for pair in list(pairs_seen)[:2500]
            }
            hits = [
                values[k] <= LEVEL
                for k in map(tuple, zip(a.tolist(), b.tolist(), strict=True))
                if k in values
            ]
            rows.append(
                {
                    "mechanism": f"{design.value}, n = {n}, q = {q}",
                    "audits": len(hits),
                    "refuted at 5 %": float(np.mean(hits)),
                    "refuted at 1e-6": sum(p <= 1e-6 for p in values.values()),
                    "least p": f"{min(values.values()):.1e}",
                }
            )
    return rows


def anytime() -> list[dict[str, Any]]:
    """Return the pairs of runs until a twofold error of the noise is refuted."""
    rows = []
    for text in (
        'Laplace(scale="1/2")',
        'DiscreteLaplace(scale="1/2")',
        "RandomizedResponse(epsilon=2)",
    ):
        for significance in (0.05, 1e-6):
            used = [
                audit_until_refuted(
                    notation.parse(text),
                    1,
                    samples=20_000,
                    seed=seed,
                    significance=significance,
                    proposers=(features.plain,),
                ).samples
                for seed in range(21)
            ]
            rows.append(
                {
                    "mechanism": text,
                    "claim": 1,
                    "significance": significance,
                    "median pairs": float(np.median(used)),
                    "most": max(used),
                }
            )
            print("  ".join(_cell(v) for v in rows[-1].values()), flush=True)
    return rows


def speed() -> list[dict[str, Any]]:
    """Return seconds of single steps on one core (processor time), best of three."""

    def best(action: Callable[[], object]) -> float:
        times = []
        for _ in range(3):
            started = time.process_time()
            action()
            times.append(time.process_time() - started)
        return min(times)

    rng = np.random.default_rng(1)
    drawn = {d: d + rng.laplace(0, 1, 2_200_000) for d in (0, 1)}

    def replay(d: Any, n: int, r: np.random.Generator) -> Any:
        start = int(r.integers(0, len(drawn[d]) - n))
        return drawn[d][start : start + n]

    def scalar(claim: Any) -> None:
        result = audit(
            PerBlock(replay, "replay"),
            claim,
            pairs=[(0, 1)],
            samples=10**6,
            seed=1,
            proposers=(features.plain,),
        )
        curve = result.curve()
        for eps in np.linspace(0, 2, 50):
            curve.delta(float(eps))

    rows: list[dict[str, Any]] = [
        {
            "step": f"1e6 scalars a side: event, bound, curve; δ = {claim[1]}",
            "seconds": best(lambda c=claim: scalar(c)),  # type: ignore[misc]
        }
        for claim in ((1, 0), (1, "1e-5"))
    ]
    for n in (10**5, 10**7, 10**9, 10**10, 10**12):
        for design in Design:
            counts = Counts(int(0.45 * n), n, int(0.17 * n), n, design)
            rows.append(
                {
                    "step": f"bound of ε from {design.value}, n = {n:.0e}",
                    "seconds": best(lambda c=counts: epsilon_lower_bound(c, 1e-5, LEVEL)),  # type: ignore[misc]
                }
            )
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        seconds, memory = pool.submit(_vectors).result()
    rows.append({"step": "100 coordinates, 1e6 a side, drawing included", "seconds": seconds})
    rows.append({"step": "the same, peak memory in GB", "seconds": memory})
    for row in rows:
        print("  ".join(_cell(v) for v in row.values()), flush=True)
    return rows


def _vectors() -> tuple[float, float]:
    """Audit 100 coordinates in a process of its own: processor seconds and peak memory in GB."""
    direction = np.full(100, 0.1)
    started = time.process_time()
    audit(
        PerBlock(lambda d, n, r: d * direction + r.normal(0, SIGMA, (n, 100)), "vectors"),
        (1, "1e-5"),
        pairs=[(0, 1)],
        samples=10**6,
        seed=1,
        proposers=VALUES,
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return time.process_time() - started, peak * 1024 / 1e9


def rank_one() -> list[dict[str, Any]]:
    """Refute R1SMG at its paper's parameters: M = 7921, ε = 1e-5, δ = 1e-7."""
    text = 'RankOneGaussian(dimension=7921, sigma_star="402110.1", l2_sensitivity="sqrt(2)")'
    mechanism = notation.parse(text)
    shift = np.random.default_rng(79).standard_normal(7921)
    shift *= math.sqrt(2) / np.linalg.norm(shift)

    def sample(d: Any, n: int, r: np.random.Generator) -> Any:
        return d * shift + mechanism.sample(n, rng=r)

    started = time.perf_counter()
    result = audit(
        PerBlock(sample, text),
        ("1e-5", "1e-7"),
        pairs=[(0, 1)],
        samples=8_000,
        significance=1e-6,
        seed=1,
        proposers=VALUES,
    )
    row = {
        "verdict": result.outcome.value,
        "samples a side": 8_000,
        "p": result.p_value,
        "delta at least": result.delta,
        "event": result.rule.feature.name,
        "seconds": time.perf_counter() - started,
    }
    print("  ".join(_cell(v) for v in row.values()), flush=True)
    return [row]


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["bounds", "level", "anytime", "speed", "rank-one"])
    parser.add_argument("--samples", type=float, nargs="+", default=[1e5, 1e6])
    parser.add_argument("--repeats", type=int, default=0, help="audits a row")
    parser.add_argument("--audits", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--kept",
        type=Path,
        default=Path(tempfile.gettempdir()) / "dpassay-level.jsonl",
        help="finished parts of level are kept here, and the same command continues there",
    )
    parser.add_argument("--only", default="", help="pairs whose name holds this")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    found = {
        "bounds": lambda: bounds([int(n) for n in options.samples], options.repeats, options.only),
        "level": lambda: level(options.audits, options.kept, options.processes),
        "anytime": anytime,
        "speed": speed,
        "rank-one": rank_one,
    }[options.what]()
    if options.json:
        data = {"machine": platform.processor() or platform.machine(), "rows": found}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(data, file, indent=2)


if __name__ == "__main__":
    main()

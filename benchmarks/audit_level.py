"""The false positive rate of audits at the boundary of a claim: `benchmarks/audit.py level`."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.audit_pairs import Sampler
from dpassay.accountant import notation
from dpassay.accountant.numbers.interval import few
from dpassay.verifier.audit import audit
from dpassay.verifier.audit.exact_test import Counts, Design, p_value
from dpassay.verifier.audit.guarantees import guarantee
from dpassay.verifier.audit.runs import Called

LEVEL = 0.05
LEAST = 0.03
"""Rates below this would mean that a test gives power away."""


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
    """Return the p-values of a number of audits."""
    sampler, claim = PRIVATE[name]
    if sampler is None:
        mechanism: Any = notation.parse(name)
    else:
        mechanism = Called(sampler, name)
        claim = [(p.epsilon, p.delta) for p in claim] if isinstance(claim, tuple) else claim
    own = sampler is None and "Truncated" not in name
    return [
        audit(
            mechanism,
            claim,
            samples=RUNS_OF_LEVEL,
            seed=seed,
            bits=False,
            pairs=None if own else [(0, 1)],
        ).p_value
        for seed in range(start, start + CHUNK)
    ]


def level(audits: int, kept: Path, processes: int) -> list[dict[str, Any]]:
    """Return the rate at which private mechanisms at the boundary of their claim are refuted.

    Finished parts are stored in a file, one per line; the same command continues them.
    """
    digest = hashlib.sha256(
        b"".join(
            path.read_bytes()
            for path in sorted(
                Path(sys.modules["dpassay.verifier.audit"].__path__[0]).rglob("*.py")
            )
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
                **_beyond(int(np.sum(values <= LEVEL)), len(values)),
                "refuted at 1e-6": int(np.sum(values <= 1e-6)),
                "least p": few(values.min(), 2),
            }
        )
    return rows + _level_of_counts()


def _beyond(refuted: int, audits: int) -> dict[str, Any]:
    """Return the probability of at least this count at a rate of 5 %, and of at most it at 3 %."""
    return {
        "P(as many), 5 %": float(stats.binom.sf(refuted - 1, audits, LEVEL)),
        "P(as few), 3 %": float(stats.binom.cdf(refuted, audits, LEAST)),
    }


def _level_of_counts() -> list[dict[str, Any]]:
    """Return the rate at which the exact test alone refutes simulated counts at the boundary."""
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
                    **_beyond(sum(hits), len(hits)),
                    "refuted at 1e-6": sum(p <= 1e-6 for p in values.values()),
                    "least p": few(min(values.values()), 2),
                }
            )
    return rows

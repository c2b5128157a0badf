"""Numbers of runs until a refutation, times of single steps, and R1SMG: `benchmarks/audit.py`."""

from __future__ import annotations

import math
import multiprocessing
import resource
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from benchmarks.audit_bounds import LEVEL, cell
from benchmarks.audit_pairs import SIGMA
from dpassay.accountant import notation
from dpassay.verifier.audit import audit, audit_until_refuted
from dpassay.verifier.audit.exact_test import Counts, Design, epsilon_lower_bound
from dpassay.verifier.audit.runs import Called


def anytime() -> list[dict[str, Any]]:
    """Return the pairs of runs until a twofold error of the noise is refuted."""
    rows = []
    for text in (
        'Laplace(scale="1/2")',
        'DiscreteLaplace(scale="1/2")',
        "RandomizedResponse(epsilon=2)",
    ):
        for significance in (0.05, 1e-6):
            found = [
                audit_until_refuted(
                    notation.parse(text),
                    1,
                    samples=20_000,
                    seed=seed,
                    significance=significance,
                    bits=False,
                )
                for seed in range(21)
            ]
            used = [each.training + each.samples for each in found]
            rows.append(
                {
                    "mechanism": text,
                    "claim": 1,
                    "significance": significance,
                    "median pairs": float(np.median(used)),
                    "most": max(used),
                }
            )
            print("  ".join(cell(v) for v in rows[-1].values()), flush=True)
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
            Called(replay, "replay"),
            claim,
            pairs=[(0, 1)],
            samples=10**6,
            seed=1,
            bits=False,
        )
        curve = result.curve()
        for eps in np.linspace(0, 2, 50):
            curve.delta(float(eps))

    rows: list[dict[str, Any]] = [
        {
            "step": f"1e6 scalars a side: event, bound, curve; δ = {claim[1]}",
            "seconds": best(partial(scalar, claim)),
        }
        for claim in ((1, 0), (1, "1e-5"))
    ]
    for n in (10**5, 10**7, 10**9, 10**10, 10**12):
        for design in Design:
            counts = Counts(int(0.45 * n), n, int(0.17 * n), n, design)
            rows.append(
                {
                    "step": f"bound of ε from {design.value}, n = {n:.0e}",
                    "seconds": best(partial(epsilon_lower_bound, counts, 1e-5, LEVEL)),
                }
            )
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        seconds, memory = pool.submit(_vectors).result()
    rows.append({"step": "100 coordinates, 1e6 a side, drawing included", "seconds": seconds})
    rows.append({"step": "the same, peak memory in GB", "seconds": memory})
    for row in rows:
        print("  ".join(cell(v) for v in row.values()), flush=True)
    return rows


def _vectors() -> tuple[float, float]:
    """Audit 100 coordinates in a process of its own: processor seconds and peak memory in GB."""
    direction = np.full(100, 0.1)
    started = time.process_time()
    audit(
        Called(lambda d, n, r: d * direction + r.normal(0, SIGMA, (n, 100)), "vectors"),
        (1, "1e-5"),
        pairs=[(0, 1)],
        samples=10**6,
        seed=1,
        bits=False,
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

    started = time.process_time()
    result = audit(
        Called(sample, text),
        ("1e-5", "1e-7"),
        pairs=[(0, 1)],
        samples=8_000,
        significance=1e-6,
        seed=1,
        bits=False,
    )
    row = {
        "verdict": result.outcome.value,
        "samples a side": 8_000,
        "p": result.p_value,
        "delta at least": result.delta(float(result.point.epsilon)),
        "event": result.rule.feature.name,
        "seconds": time.process_time() - started,
    }
    print("  ".join(cell(v) for v in row.values()), flush=True)
    return [row]

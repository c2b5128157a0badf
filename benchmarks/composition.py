"""Compositions and one subsampled release, beside dp-accounting: δ(ε), and seconds.

    python -P benchmarks/composition.py [--json FILE]

Each row asks for δ at one ε: our enclosure (30 digits), and dp-accounting's optimistic and
pessimistic distribution at its default grid of 1e-4, built, composed and asked. Times are cold.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from collections.abc import Callable
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dp_accounting.pld import privacy_loss_distribution as pld

from accountant import profile
from accountant.interval import Interval
from accountant.mechanism import Mechanism
from accountant.mechanisms import (
    BoundedCountNoise,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    IntegerNoise,
    Laplace,
    PoissonSubsampled,
    RandomizedResponse,
)

Build = Callable[[bool], Any]


def _gaussian(sigma: float, q: float = 1.0) -> Build:
    return lambda high: pld.from_gaussian_mechanism(
        sigma, sampling_prob=q, pessimistic_estimate=high
    )


def _laplace(scale: float) -> Build:
    return lambda high: pld.from_laplace_mechanism(scale, pessimistic_estimate=high)


def _discrete_laplace(rate: float, sensitivity: int) -> Build:
    return lambda high: pld.from_discrete_laplace_mechanism(
        rate, sensitivity, pessimistic_estimate=high
    )


def _discrete_gaussian(sigma: float) -> Build:
    return lambda high: pld.from_discrete_gaussian_mechanism(sigma, pessimistic_estimate=high)


def _coin(epsilon: float) -> Build:
    noise = 2 / (
        1 + math.exp(epsilon)
    )  # the peer replaces the bit by a uniform one with this chance
    return lambda high: pld.from_randomized_response(noise, 2, pessimistic_estimate=high)


BINOMIAL = IntegerNoise(["1/16", "1/4", "3/8", "1/4", "1/16"], lowest=-2)
COUNT_NOISE = BoundedCountNoise(epsilon=1, eta="1/3", support=2)
STEP = PoissonSubsampled(Gaussian(standard_deviation="1.1"), "256/60000")

CASES: list[tuple[Mechanism, int, str, Build | None]] = [
    (Gaussian(standard_deviation=10), 100, "1", _gaussian(10)),
    (Gaussian(standard_deviation=10), 100, "20", _gaussian(10)),
    (Gaussian(standard_deviation=10**6), 10**12, "1", None),
    (RandomizedResponse(epsilon="0.1"), 100, "1", _coin(0.1)),
    (RandomizedResponse(epsilon="0.1"), 1000, "10", _coin(0.1)),
    (RandomizedResponse(epsilon="0.1"), 10000, "100", _coin(0.1)),
    (Laplace(scale=10), 100, "1", _laplace(10)),
    (Laplace(scale=10), 100, "8", _laplace(10)),
    (Laplace(scale=10), 1000, "20", _laplace(10)),
    (DiscreteLaplace(scale=10, sensitivity=3), 100, "10", _discrete_laplace(0.1, 3)),
    (DiscreteGaussian(parameter=25), 10, "2", _discrete_gaussian(5)),
    (DiscreteGaussian(parameter=25), 100, "10", _discrete_gaussian(5)),
    (BINOMIAL, 10, "2", None),
    (BINOMIAL, 100, "2", None),
    (COUNT_NOISE, 10, "1", None),
    (COUNT_NOISE, 100, "1", None),
    (STEP, 1, "0.1", _gaussian(1.1, 256 / 60000)),
    (STEP, 1, "1", _gaussian(1.1, 256 / 60000)),
    (STEP, 1, "10", _gaussian(1.1, 256 / 60000)),
]


def row(mechanism: Mechanism, count: int, epsilon: str, build: Build | None) -> dict[str, Any]:
    """Ask both sides once."""
    whole = mechanism if count == 1 else Composed(mechanism, count)
    relation = None if isinstance(mechanism, RandomizedResponse) else "add-remove"
    started = time.perf_counter()
    ours: Interval = profile.delta(whole, epsilon, adjacency=relation)
    seconds = time.perf_counter() - started
    theirs: list[float] = []
    started = time.perf_counter()
    if build is not None:
        for pessimistic in (False, True):
            one = build(pessimistic)
            many = one if count == 1 else one.self_compose(count)
            theirs.append(float(many.get_delta_for_epsilon(float(epsilon))))
    return {
        "mechanism": repr(mechanism),
        "count": count,
        "epsilon": epsilon,
        "ours": ours.to_json(),
        "our_seconds": seconds,
        "peer": theirs,
        "peer_seconds": time.perf_counter() - started if theirs else None,
    }


def main() -> None:
    """Print the table; with --json, write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = [row(*case) for case in CASES]
    print("| mechanism | count | ε | δ, first digits | s | peer: low, high | s |")
    print("|---|---|---|---|---|---|---|")
    for entry in rows:
        name = entry["mechanism"]
        peer = " … ".join(f"{value:.9e}" for value in entry["peer"]) or "–"
        took = f"{entry['peer_seconds']:.2f}" if entry["peer"] else "–"
        print(
            f"| `{name}` | {entry['count']} | {entry['epsilon']} "
            f"| {Decimal(entry['ours']['lower']):.11e} | {entry['our_seconds']:.3f} "
            f"| {peer} | {took} |"
        )
    print(f"dp-accounting {version('dp-accounting')}, {platform.platform()}")
    if arguments.json:
        machine = {"platform": platform.platform(), "python": platform.python_version()}
        arguments.json.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Compositions and one subsampled release, beside dp-accounting: δ(ε), and seconds.

    python -P benchmarks/composition.py [--json FILE]
    python -P benchmarks/composition.py --widths

Without --widths each row asks for δ at one ε: our enclosure (30 digits), and dp-accounting's
optimistic and pessimistic distribution at its default grid of 1e-4, built, composed and asked.
Times are cold.

With --widths, ε(δ) and δ(ε) there of losses with atoms, asked for a relative width of 1e-9, for δ
down to 1e-100: the widths reached, and CPU seconds for both.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dp_accounting.pld import privacy_loss_distribution as pld

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.mechanisms import (
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
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import profile

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


DELTAS = ("1e-5", "1e-20", "1e-50", "1e-100")
RELEASES: list[tuple[Mechanism, tuple[int, ...], str | None]] = [
    (Laplace(scale=10), (10, 100, 1000, 10_000), None),
    (Laplace(scale=1000), (10**6, 10**9, 10**12), None),
    (Laplace(scale=10), (10**6, 10**9, 10**12), None),
    (Laplace(scale=1), (10**6, 10**9, 10**12), None),
    (DiscreteGaussian(parameter=25), (100,), "add-remove"),
    (DiscreteLaplace(scale=10), (10, 100), "add-remove"),
    (RandomizedResponse(epsilon="0.1"), (10, 100), None),
    (DiscreteGaussian(parameter=2), (10**6, 10**9, 10**12), "add-remove"),
    (DiscreteGaussian(parameter=25), (10**6, 10**9, 10**12), "add-remove"),
    (DiscreteLaplace(scale=10), (10**6, 10**9, 10**12), "add-remove"),
    (RandomizedResponse(epsilon="0.1"), (10**6, 10**9, 10**12), None),
    (PoissonSubsampled(DiscreteGaussian(parameter=25), "0.01"), (100, 10_000), "add-remove"),
    (PoissonSubsampled(DiscreteLaplace(scale=1), "0.01"), (100, 10_000), "add-remove"),
    (PoissonSubsampled(Laplace(scale=1), "0.01"), (100, 10_000), "add-remove"),
    (Composed([Laplace(scale=10), Gaussian(standard_deviation=10)]), (50, 10_000), None),
]
# δ above the probability 1 − (1 − p(D))^count with which the output is impossible for a neighbour
LEAKY: list[tuple[Mechanism, int, tuple[str, ...]]] = [
    (BINOMIAL, 10, ("0.4756", "0.5", "0.9")),
    (BINOMIAL, 100, ("0.9985", "0.9999", "0.999999")),
    (COUNT_NOISE, 10, ("0.52", "0.6", "0.9")),
    (COUNT_NOISE, 100, ("0.9994", "0.9999", "0.999999")),
    (BoundedCountNoise(epsilon="1.5", eta="1/2", support=4), 10, ("0.0169", "0.1", "0.5")),
    (BoundedCountNoise(epsilon="1.5", eta="1/2", support=4), 100, ("0.156", "0.2", "0.5")),
    (BoundedCountNoise(epsilon=3, eta="1/2", support=8), 10, ("1e-8", "1e-5", "0.1")),
    (BoundedCountNoise(epsilon=3, eta="1/2", support=8), 100, ("1e-7", "1e-5", "0.1")),
]
WIDTH = Fraction(1, 10**9)


def widths() -> None:
    """Print the table of widths, or what was reached where the width was not."""
    print("| release | count | δ | ε(δ) | width of ε | width of δ(ε) | s |")
    print("|---|---|---|---|---|---|---|")
    asked: list[tuple[Mechanism, int, str | None, tuple[str, ...]]] = [
        (mechanism, count, relation, DELTAS)
        for mechanism, counts, relation in RELEASES
        for count in counts
    ]
    asked += [(mechanism, count, "add-remove", deltas) for mechanism, count, deltas in LEAKY]
    for mechanism, count, relation, deltas in asked:
        for delta in deltas:
            started = time.process_time()
            cells = width_cells(Composed(mechanism, count), delta, relation)
            seconds = time.process_time() - started
            print(f"| `{mechanism!r}` | {count} | {delta} | {cells} | {seconds:.2f} |", flush=True)


def width_cells(whole: Mechanism, delta: str, relation: str | None) -> str:
    """Return ε(δ) and both widths."""
    try:
        found = profile.epsilon(whole, delta, adjacency=relation, relative_width=WIDTH)
        there = profile.delta(whole, found.lower, adjacency=relation, relative_width=WIDTH)
    except (NotApplicableError, UndecidedError) as refusal:
        return f"refused: {str(refusal)[:90]} | | "
    return (
        f"{found} | {float(found.relative_width or 0):.0e} | {float(there.relative_width or 0):.0e}"
    )


def main() -> None:
    """Print the table; with --json, write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--widths", action="store_true")
    arguments = parser.parse_args()
    if arguments.widths:
        widths()
        return
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

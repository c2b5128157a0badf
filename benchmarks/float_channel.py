"""What the bits of floating-point outputs tell: Lebeda's mechanism four ways.

Each construction, in doubles and in single precision, is audited against the exact curve of the
real mechanism that it stands for, at significance 1e-6, with growing numbers of runs a side; the
table says with how many it was refuted first. The discrete embedding and the lattice release are
audited in the same way. (Samplers of numpy and others: `float_samplers.py`.)

    python -P benchmarks/float_channel.py [--most 10000] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from dpassay.accountant.mechanisms import (
    CorrelatedGaussian,
    DiscreteCorrelatedGaussian,
)
from dpassay.accountant.numbers.reading import few
from dpassay.verifier.audit import audit

Draw = Callable[[Any, int, np.random.Generator], Any]
RUNS = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)
LEVEL = 1e-6


@dataclass(frozen=True)
class Subject:
    """One construction, its claim, and neighbouring answers."""

    name: str
    draw: Draw
    claim: Any
    pairs: Sequence[tuple[Any, Any]]
    leaks: bool


def lebeda(d: int, counts: int, kind: Any = np.float64) -> list[Subject]:
    """Return the constructions of Algorithm 1 with d counts, μ = 1, around a number of records.

    An answer is (f_1, …, f_d, n), of doubles or single precision. The neighbour has one record of
    ones more.
    """
    records = 2 * counts
    answer = np.array([counts] * d + [records], dtype=kind)
    pairs = [(answer, answer + 1)]
    root = math.sqrt(d)
    eta_spread, z_spread = math.sqrt(root + 1) / 2, math.sqrt(d + root) / 2
    c = kind(d**0.25)
    real = CorrelatedGaussian(d, 1)
    rational = DiscreteCorrelatedGaussian(d, 1, f"{round(64 * c)}/64")

    def noise(size: int, rng: np.random.Generator) -> tuple[Any, Any]:
        return own(eta_spread, (size, 1), rng), own(z_spread, (size, d), rng)

    def own(spread: float, shape: tuple[int, int], rng: np.random.Generator) -> Any:
        return kind(spread) * rng.standard_normal(shape, dtype=kind)

    def noise_first(value: Any, size: int, rng: np.random.Generator) -> Any:
        eta, z = noise(size, rng)
        return np.hstack([value[:d] + (eta + z), value[d:] + 2 * eta])

    def shared_first(value: Any, size: int, rng: np.random.Generator) -> Any:
        eta, z = noise(size, rng)
        return np.hstack([(value[:d] + eta) + z, value[d:] + 2 * eta])

    def embedded(value: Any, size: int, rng: np.random.Generator) -> Any:
        g = np.append(2 * value[:d] - value[d], c * value[d])
        g = g + own(math.sqrt(d + root), (size, d + 1), rng)
        last = g[:, d:] / c
        return np.hstack([(g[:, :d] + last) / 2, last])

    def undone(value: Any, size: int, rng: np.random.Generator) -> Any:
        """Undo the map of the embedding, as whoever reads the outputs may."""
        released = embedded(value, size, rng)
        return np.hstack([2 * released[:, :d] - released[:, d:], c * released[:, d:]])

    def discrete(value: Any, size: int, rng: np.random.Generator) -> Any:
        return rational.release(value, size, rng=rng)

    def on_lattice(value: Any, size: int, rng: np.random.Generator) -> Any:
        return real.release(value, size, rng=rng)

    where = f"d = {d}, f = {counts}" + ", single" * (kind is np.float32)
    mu = {"mu": 1}
    found = [
        Subject(f"x + (η + z), {where}", noise_first, mu, pairs, True),
        Subject(f"(x + η) + z, {where}", shared_first, mu, pairs, True),
        Subject(f"embedding in d + 1, {where}", embedded, mu, pairs, True),
        Subject(f"embedding, map undone, {where}", undone, mu, pairs, True),
    ]
    if kind is np.float64:
        found += [
            Subject(f"discrete embedding, {where}", discrete, rational, pairs, False),
            Subject(f"lattice, {where}", on_lattice, mu, pairs, False),
        ]
    return found


def table(subjects: Sequence[Subject], most: int) -> list[dict[str, Any]]:
    """Audit each with growing numbers of runs."""
    rows = []
    for subject in subjects:
        row: dict[str, Any] = {"construction": subject.name, "refuted_at": None}
        started = time.perf_counter()
        for runs in (count for count in RUNS if count <= most):
            if not subject.leaks and runs not in (10_000, most):
                continue
            result = audit(
                subject.draw,
                subject.claim,
                pairs=subject.pairs,
                samples=runs,
                significance=LEVEL,
                seed=20_24,
                adjacency="add-remove",
                bits=True,
            )
            row |= {
                "runs": runs,
                "p_value": result.p_value,
                "epsilon_at_delta": [result.epsilon, float(result.point.delta)],
                "event": result.rule.feature.name,
            }
            if result.refuted:
                row["refuted_at"] = runs
                break
        row["seconds"] = round(time.perf_counter() - started, 1)
        rows.append(row)
        print(line(row), flush=True)
    return rows


def line(row: dict[str, Any]) -> str:
    """Return one row of a Markdown table."""
    verdict = f"refuted at {row['refuted_at']}" if row["refuted_at"] else f"not at {row['runs']}"
    epsilon, delta = row["epsilon_at_delta"]
    found = f"ε({delta:.3g}) ≥ {epsilon:.2f}"
    shown = [row["construction"], verdict, few(row["p_value"], 2), found, row["event"]]
    return "| " + " | ".join(shown) + " |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=10_000)
    parser.add_argument("--dimensions", type=int, nargs="*", default=[1, 10, 16, 100])
    parser.add_argument("--counts", type=int, nargs="*", default=[0, 1, 40])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}\n")
    head = "| construction | verdict | p-value | bound | event |\n|---|---|---|---|---|"
    rows = []
    print(head)
    for d in options.dimensions:
        for counts in options.counts:
            for kind in (np.float64, np.float32):
                rows += table(lebeda(d, counts, kind), options.most)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()

"""The mechanisms of five papers, audited as they are, at parameters that the papers use.

- Ji and Li, "Less is More": R1SMG at M = 7921, ε = 1e-5, δ = 1e-7; matrix-variate and isotropic
  Gaussian noise as its comparisons.
- Sadeghi, Asoodeh, Calmon: bounded noise for one count (support D = 8).
- Andersson, Pagh, Torkamani, "Count on Your Elders": k = 19 with subtraction, and others.
- Lebeda, "Better Gaussian Mechanism using Correlated Noise": d up to 1000.
- Poulsen: elliptical Gaussian noise.

Each is audited black box with default settings, at significance 1e-6, by its own releases, on a
pair of answers at which its worst case is attained. R1SMG claims what its paper claims; all others
claim their exact guarantee.

    python -P benchmarks/audit_papers.py [--runs 20000] [--only NAME] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpassay.accountant import notation
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.verifier.audit import audit
from dpassay.verifier.audit.runs.target import PerBlock

LEVEL = 1e-6
RANK_ONE = 'RankOneGaussian(dimension=7921, sigma_star="402110.1", l2_sensitivity="sqrt(2)")'


@dataclass(frozen=True)
class Subject:
    """A mechanism with its claim and a pair of answers (None: the pair the package knows)."""

    paper: str
    text: str
    claim: Any
    """None: its own profile."""
    pair: tuple[Any, Any] | None = None
    runs: int | None = None
    note: str = ""

    def audited(self, runs: int) -> Any:
        """Audit it."""
        mechanism = notation.parse(self.text)
        assert isinstance(mechanism, Mechanism)
        claim = mechanism if self.claim is None else self.claim
        common: dict[str, Any] = {
            "samples": self.runs or runs,
            "significance": LEVEL,
            "seed": 1,
            "adjacency": "add-remove",
        }
        if self.pair is None:
            return audit(mechanism, claim, **common)
        released = PerBlock(lambda v, n, rng: mechanism.release(v, n, rng=rng), self.text)
        return audit(released, claim, pairs=[self.pair], **common)


def subjects() -> list[Subject]:
    """Return what the papers propose."""
    direction = np.random.default_rng(79).standard_normal(7921)
    direction *= math.sqrt(2) / np.linalg.norm(direction)
    zero = np.zeros(7921)
    axis = zero.copy()
    axis[0] = math.sqrt(2)
    less, counts, elders, better, ellipse = (
        "Less is More",
        "Count queries",
        "Count on Your Elders",
        "Correlated noise",
        "Elliptical",
    )
    rank_one = ("1e-5", "1e-7")
    square = "Isotropic(dimension=89, variance={})"
    grouped = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    return [
        Subject(less, RANK_ONE, rank_one, None, 2000, "along an axis"),
        Subject(less, RANK_ONE, rank_one, (zero, direction), 4000, "unknown direction"),
        Subject(
            less,
            'Gaussian(standard_deviation="sqrt(55000/7921)", l2_sensitivity="sqrt(2)")',
            {"mu": "sqrt(15842/55000)"},
            (zero, axis),
            2000,
        ),
        Subject(
            less,
            "MatrixVariateGaussian("
            f'row_covariance={square.format(4)}, column_covariance={square.format(1)})',
            {"mu": "1/2"},
            (zero, axis / math.sqrt(2)),
            300,
        ),
        *(
            Subject(counts, text, None)
            for text in (
                'BoundedCountNoise(epsilon="1.1", eta="1/2", support=8)',
                'BoundedCountNoise(epsilon="2.2", eta="4/5", support=8)',
                "IntegerNoise(probabilities=['33/400', '33/80', '1/100', '33/80', '33/400'], "
                "lowest=-2)",
                "DiscreteLaplace(scale=1)",
            )
        ),
        *(
            Subject(elders, text, 1, (np.zeros(steps), _first(steps)))
            for steps, text in (
                (180, "KaryTree(steps=180, arity=19, epsilon=1)"),
                (170, "KaryTree(steps=170, arity=18, epsilon=1)"),
                (255, "KaryTree(steps=255, arity=4, epsilon=1, subtraction=False)"),
                (62, "DiscreteKaryTree(steps=62, arity=5, epsilon=1)"),
            )
        ),
        *(
            Subject(better, f"CorrelatedGaussian(dimension={d}, mu=1)", {"mu": 1})
            for d in (1, 10, 100, 1000)
        ),
        Subject(
            better,
            'DiscreteCorrelatedGaussian(dimension=10, mu=1, c="114/64")',
            None,
            (np.zeros(11), np.ones(11)),
        ),
        Subject(
            better,
            "DisjointGroupsGaussian(groups=2, dimension=2, mu=1, adjacency='add-remove')",
            {"mu": 1},
            (np.zeros(6), grouped),
        ),
        Subject(better, "CountEllipse(dimension=20, sparsity=10, mu=1)", {"mu": 1}),
        Subject(better, "OptimalEllipse(dimension=20, sparsity=15, mu=1)", {"mu": 1}),
        *(
            Subject(ellipse, f"EllipticalGaussian(sensitivities={shown}, mu=1)", {"mu": 1})
            for shown in ("[1, 1, 1]", "[1, 10, 100]", "['0.1', 1, 1, 5]")
        ),
    ]  # fmt: skip


def _first(steps: int) -> Any:
    stream = np.zeros(steps)
    stream[0] = 1
    return stream


def main(runs: int, only: list[str], path: Path | None) -> None:
    """Print the table."""
    print("| paper | mechanism | claim | runs a side | verdict | p-value | bound | s |")
    print("|---|---|---|---|---|---|---|---|")
    rows = []
    for subject in subjects():
        if only and not any(part in subject.text for part in only):
            continue
        started = time.process_time()
        result = subject.audited(runs)
        at, bound = float(result.point.delta), result.epsilon
        row = {
            "paper": subject.paper,
            "mechanism": subject.text + (f" ({subject.note})" if subject.note else ""),
            "claim": "its profile" if subject.claim is None else result.guarantee.description,
            "runs": subject.runs or runs,
            "verdict": "**refuted**" if result.refuted else "not refuted",
            "p": f"{result.p_value:.1e}",
            "bound": f"ε({at:.3g}) ≥ {bound:.3g}, δ({float(result.point.epsilon):.3g}) "
            f"≥ {result.delta(float(result.point.epsilon)):.3g}",
            "seconds": round(time.process_time() - started, 1),
        }
        rows.append(row)
        print("| " + " | ".join(str(value) for value in row.values()) + " |", flush=True)
    if path is not None:
        path.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    main(options.runs, options.only, options.json)

"""Counters and their exact errors, how fast they run, what they store; print JSON.

Run: python -P benchmarks/streams.py [SECONDS [PYTHON]]

The errors are exact, in units of 1/ε² (Laplace) or 1/μ² (Gaussian noise). The best arity is that
of all up to 400. PYTHON is that of an environment with other libraries (`streams_peers.py`).
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from dpassay.accountant.budget.target import EpsilonDelta
from dpassay.accountant.counting.best_counter import best_arities, best_counter, named_counter
from dpassay.accountant.counting.counters import LinearCounter
from dpassay.accountant.counting.grids import Digits, Tree, best_levels, honaker_mean_squared_error
from dpassay.accountant.counting.streams import StreamCounter, counter_of
from dpassay.accountant.mechanisms import (
    BridgedTree,
    DelannoyCounter,
    HonakerTree,
    KaryTree,
    SmoothBinary,
    SquareRootFactorization,
)
from dpassay.accountant.questions import accuracy

LARGEST_ARITY = 400
BLOCK = 1 << 20
LINES = 2_000_000


def best(steps: int, digits: Digits, arities: Iterable[int]) -> dict[str, object]:
    """Return the arity with the least error (the smallest of several)."""
    trees = [Tree(arity, steps, digits) for arity in arities]
    tree = min(trees, key=Tree.mean_squared_error)
    error = tree.mean_squared_error()
    return {"arity": tree.arity, "height": tree.height, "exact": str(error), "mse": float(error)}


def errors(steps: int) -> dict[str, object]:
    """Return the best tree of each kind for a number of steps."""
    binary = Tree(2, steps, Digits.PLAIN).mean_squared_error()
    k19 = Tree(19, steps, Digits.SIGNED).mean_squared_error()
    return {
        "steps": steps,
        "binary": float(binary),
        "honaker": float(honaker_mean_squared_error(steps)),
        "plain": best(steps, Digits.PLAIN, range(2, LARGEST_ARITY + 1)),
        "odd": best(steps, Digits.SIGNED, range(3, LARGEST_ARITY + 1, 2)),
        "even": best(steps, Digits.SIGNED, range(2, LARGEST_ARITY + 1, 2)),
        "arity_19": float(k19),
        **ours(steps),
    }


def ours(steps: int) -> dict[str, object]:
    """Return the errors of the counters that are not k-ary trees."""
    chains = best_levels(steps)
    bridged = named_counter("BridgedTree", steps, EpsilonDelta(1))
    assert isinstance(bridged, BridgedTree)
    budget = EpsilonDelta(1, "1e-6")
    approximate = best_counter(steps, budget)
    return {
        "smooth_binary": mse(SmoothBinary(steps, epsilon=1)),
        "delannoy": {
            "levels": chains.levels,
            "reach": chains.reach,
            "exact": str(chains.mean_squared_error()),
            "mse": float(chains.mean_squared_error()),
        },
        "bridged": {
            "arities": bridged.arities,
            "exact": str(bridged.exact_mean_squared_error()),
            "mse": mse(bridged),
        },
        "square_root_mu_1": mse(SquareRootFactorization(steps, mu=1)),
        "best_at_epsilon_1_delta_1e-6": {
            "mechanism": repr(approximate.mechanism),
            "mse": float(approximate.error.upper),
        },
    }


def least_squares(
    steps: int, arities: tuple[int, ...], shares: tuple[float, ...] | None = None
) -> float:
    """Return the error of least squares on a tree whose last cells end with the stream.

    Every level measures its cells with Laplace noise, the last cell of a level only up to
    `steps`; `shares` are the parts of ε, from the root's children to the leaves (equal if None).
    The prefix sums are estimated from all measurements (floats, O(n³)).
    """
    information, width = np.zeros((steps, steps)), 1
    for arity, share in zip(
        reversed(arities), reversed(shares or (1 / len(arities),) * len(arities)), strict=True
    ):
        cells = np.arange(steps) // width
        information += (cells[:, None] == cells) * (share**2 / 2)
        width *= arity
    sums = np.linalg.inv(information).cumsum(0).cumsum(1)
    return float(np.diag(sums).mean())


def best_shares(steps: int, arities: tuple[int, ...]) -> dict[str, object]:
    """Return the shares of the levels with the least error that Nelder and Mead's search finds."""

    def shares(logits: np.ndarray) -> tuple[float, ...]:
        weights = np.exp(np.append(logits, 0))
        return tuple((weights / weights.sum()).tolist())

    found = minimize(
        lambda logits: least_squares(steps, arities, shares(logits)),
        np.zeros(len(arities) - 1),
        method="Nelder-Mead",
    )
    return {"shares": shares(found.x), "mse": float(found.fun)}


def mse(mechanism: LinearCounter) -> float:
    """Return the mean squared error, rounded."""
    return float(accuracy.mean_squared_error(mechanism).upper)


def most_stored(mechanism: LinearCounter) -> int:
    """Return the most numbers with noise that are kept, over the first hundred thousand outputs.

    For a `BridgedTree` that is the most of all: every level begins there, and stores less later.
    """
    counter = counter_of(mechanism, rng=np.random.default_rng(0), insecure_floats=True)
    most = 0
    for _ in range(100_000):
        counter.update(1.0)
        most = max(most, counter.stored)
    return most


def throughput(mechanism: LinearCounter, seconds: float) -> dict[str, object]:
    """Count ones for a while: as it is released, and as it is simulated."""
    simulated = counter_of(mechanism, rng=np.random.default_rng(0), insecure_floats=True)
    return {
        "mechanism": repr(mechanism),
        "outputs_per_second": speed(counter_of(mechanism), seconds, 1 << 17),
        "outputs_per_second_insecure_floats": speed(simulated, seconds, BLOCK),
        "most_stored": most_stored(mechanism),
    }


def speed(counter: StreamCounter, seconds: float, block: int) -> dict[str, int]:
    """Count in blocks and one by one; seconds are those of the processor."""
    ones = np.ones(block)
    counter.extend(ones)
    done, start = 0, time.process_time()
    while (spent := time.process_time() - start) < seconds:
        counter.extend(ones)
        done += block
    blocks = done / spent
    done, start, update = 0, time.process_time(), counter.update
    while (spent := time.process_time() - start) < seconds:
        for _ in range(10_000):
            update(1.0)
        done += 10_000
    return {"in_blocks": round(blocks), "one_by_one": round(done / spent)}


def command_line(*, state: bool) -> dict[str, object]:
    """Count two million lines of 0 and 1 with the program, from a file to a file."""
    mechanism = f"KaryTree(steps={LINES}, arity=19, epsilon=1)"
    with tempfile.TemporaryDirectory() as folder:
        bits = Path(folder, "bits")
        bits.write_bytes(b"0\n1\n" * (LINES // 2))
        command = [sys.executable, "-m", "dpassay", "stream", "--mechanism", mechanism]
        command += ["--state", str(Path(folder, "state"))] if state else []
        with bits.open("rb") as source, Path(folder, "counts").open("wb") as target:
            start = time.perf_counter()
            subprocess.run(command, stdin=source, stdout=target, check=True)
            spent = time.perf_counter() - start
    return {"lines": LINES, "state": state, "lines_per_second": round(LINES / spent)}


def peers(python: str | None) -> object:
    """Run the other libraries, where an environment with them is given."""
    if python is None:
        return "not run: no Python with other libraries was given"
    script = Path(__file__).with_name("streams_peers.py")
    done = subprocess.run([python, str(script)], capture_output=True, check=True)
    return json.loads(done.stdout)


def main(seconds: float, python: str | None) -> dict[str, object]:
    """Run everything."""
    report = {
        "benchmark": "continual counting",
        "errors": [errors(10**power) for power in range(3, 10)],
        "cut_off_least_squares": {
            str(arities): {
                "equal_shares": least_squares(1000, arities),
                **best_shares(1000, arities),
            }
            for arities in ((6, 14, 14), (5, 16, 14), (5, 14, 16))
        },
        "throughput": [
            throughput(mechanism, seconds)
            for mechanism in (
                *(BridgedTree(10**9, best_arities(10**9), epsilon=1, pooled=r) for r in (0, 1)),
                DelannoyCounter(10**9, best_levels(10**9).levels, epsilon=1),
                KaryTree(10**9, 19, 1),
                KaryTree(10**9, 18, 1),
                KaryTree(10**9, 2, 1, subtraction=False),
                HonakerTree(10**9, epsilon=1),
                SmoothBinary(10**9, epsilon=1),
            )
        ],
        "peak_memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "command_line": [command_line(state=False), command_line(state=True)],
    }
    return {
        **report,
        "command_line_peak_memory_mib": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        // 1024,
        "other_libraries": peers(python),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.platform(),
        "cores": os.cpu_count(),
    }


if __name__ == "__main__":
    given = dict(enumerate(sys.argv[1:]))
    print(json.dumps(main(float(given.get(0, 2)), given.get(1)), indent=2))

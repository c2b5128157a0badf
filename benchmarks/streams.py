"""Best counting trees and their exact errors, and how fast they run; print JSON.

Run: python benchmarks/streams.py [SECONDS]

The errors are exact, in units of 1/ε². The best arity is that of all up to 400.
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

from accountant.mechanisms import KaryTree
from accountant.streams import TreeCounter
from accountant.tree import Digits, Tree, honaker_mean_squared_error

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
    }


def throughput(mechanism: KaryTree, seconds: float) -> dict[str, object]:
    """Count ones for a while, in blocks and one by one."""
    counter = TreeCounter(mechanism, rng=np.random.default_rng(0))
    ones = np.ones(BLOCK)
    counter.extend(ones)
    done, start = 0, time.perf_counter()
    while (spent := time.perf_counter() - start) < seconds:
        counter.extend(ones)
        done += BLOCK
    blocks = done / spent
    done, start, update = 0, time.perf_counter(), counter.update
    while (spent := time.perf_counter() - start) < seconds:
        for _ in range(10_000):
            update(1.0)
        done += 10_000
    return {
        "mechanism": repr(mechanism),
        "outputs_per_second_in_blocks": round(blocks),
        "outputs_per_second_one_by_one": round(done / spent),
    }


def most_stored(steps: int, arity: int) -> int:
    """Return the largest number of noise sums that are kept: when all digits are lowest."""
    tree = Tree(arity, steps, Digits.SIGNED)
    return tree.height * max(1, tree.lowest)


def command_line(*, state: bool) -> dict[str, object]:
    """Count two million lines of 0 and 1 with the program, from a file to a file."""
    mechanism = f"KaryTree(steps={LINES}, arity=19, epsilon=1)"
    root = Path(__file__).resolve().parent.parent
    with tempfile.TemporaryDirectory() as folder:
        bits = Path(folder, "bits")
        bits.write_bytes(b"0\n1\n" * (LINES // 2))
        command = [sys.executable, str(root / "dpassay.py"), "stream", "--mechanism", mechanism]
        command += ["--state", str(Path(folder, "state"))] if state else []
        with bits.open("rb") as source, Path(folder, "counts").open("wb") as target:
            start = time.perf_counter()
            subprocess.run(command, stdin=source, stdout=target, check=True)
            spent = time.perf_counter() - start
    return {"lines": LINES, "state": state, "lines_per_second": round(LINES / spent)}


def main(seconds: float) -> dict[str, object]:
    """Run everything."""
    report = {
        "benchmark": "continual counting with k-ary trees",
        "errors": [errors(10**power) for power in range(3, 10)],
        "throughput": [
            throughput(KaryTree(10**9, 19, 1), seconds),
            throughput(KaryTree(10**9, 18, 1), seconds),
            throughput(KaryTree(10**9, 2, 1, subtraction=False), seconds),
        ],
        "most_stored_for_1e9_steps_arity_19": most_stored(10**9, 19),
        "peak_memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "command_line": [command_line(state=False), command_line(state=True)],
    }
    return {
        **report,
        "command_line_peak_memory_mib": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        // 1024,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.platform(),
        "cores": os.cpu_count(),
    }


if __name__ == "__main__":
    print(json.dumps(main(float(sys.argv[1]) if len(sys.argv) > 1 else 2.0), indent=2))

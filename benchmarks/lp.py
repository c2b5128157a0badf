"""Optimal count noise beside floating-point models of the same program: time, memory, error.

    python -P benchmarks/lp.py cells [--limit SECONDS] [--json FILE]
    python -P benchmarks/lp.py solvers
    python -P benchmarks/lp.py goal

`cells`: ε = 1.5, η = 1/2, N in 20, 100, 500, 1000, 10^6 and D in 4, 8, 16, 32, 64, for a first
user's cvxpy model (a scalar variable and a constraint for every probability and comparison), the
vectorised cvxpy model of Proposition 2 with each solver, scipy's HiGHS on sparse matrices, and
`optimal_count_noise`. Every cell runs in a process of its own, which reports the processor time
of building and of solving, so that other programs do not count, and the growth of its peak
memory; a cell beyond the limits says so. "error" is |δ − δ*|/δ* against the certified optimum.
`solvers`: each solver of cvxpy over ε, η and D. `goal`: every N up to 10^6 and D up to 16 on one
core, with width and time.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

EPSILON, ETA = "1.5", "1/2"
COUNTS = (20, 100, 500, 1000, 10**6)
SUPPORTS = (4, 8, 16, 32, 64)
MEMORY = 4 << 30
SOLVERS = ("HIGHS", "CLARABEL", "SCS", "OSQP")
WAYS = ("scalar", *SOLVERS, "scipy", "ours")


def _cells(count: int, support: int) -> tuple[list[tuple[int, int]], dict[tuple[int, int], int]]:
    cells = [(n, z) for n in range(1, count + 1) for z in range(-min(n, support), support + 1)]
    return cells, {cell: i for i, cell in enumerate(cells)}


def _rows(count: int, support: int) -> Iterator[tuple[int, int, int]]:
    """Yield (n, n', y) for every comparison that is not trivial: p(y | n) is not always 0."""
    for n in range(1, count + 1):
        for other in (n - 1, n + 1):
            if 1 <= other <= count:
                for y in range(n - min(n, support), n + support + 1):
                    yield n, other, y


def scalar(count: int, support: int) -> tuple[Callable[[], float], float]:
    """Build a first user's model: a cvxpy variable for each number, each line a constraint."""
    import cvxpy as cp

    started = time.process_time()
    cells, index = _cells(count, support)
    p = [cp.Variable(nonneg=True) for _ in cells]
    delta = cp.Variable(nonneg=True)
    ratio, eta = math.exp(float(EPSILON)), float(Fraction(ETA))
    constraints = []
    for n in range(1, count + 1):
        own = range(-min(n, support), support + 1)
        constraints += [
            sum(p[index[n, z]] for z in own) == 1,
            sum(z * p[index[n, z]] for z in own) == 0,
            p[index[n, 0]] == eta,
        ]
    for n, other, y in _rows(count, support):
        right = index.get((other, y - other))
        bound = delta if right is None else ratio * p[right] + delta
        constraints.append(p[index[n, y - n]] <= bound)
    program = cp.Problem(cp.Minimize(delta), constraints)
    built = time.process_time() - started
    return (lambda: float(program.solve(solver="HIGHS"))), built


def vectorised(solver: str, count: int, support: int) -> tuple[Callable[[], float], float]:
    """Build Proposition 2 as printed, `dpassay.lp.reference`, for one solver."""
    from dpassay.lp.problem import CountNoiseProblem
    from dpassay.lp.reference import ReferenceModel

    started = time.process_time()
    problem = CountNoiseProblem(eta=ETA, support=support, epsilon=EPSILON, max_count=count)
    model = ReferenceModel(problem).build()
    built = time.process_time() - started
    return (lambda: model.solve(solver)), built


def direct(count: int, support: int) -> tuple[Callable[[], float], float]:
    """Build sparse matrices, with the laws as variables, for scipy's HiGHS."""
    import numpy as np
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    started = time.process_time()
    cells, index = _cells(count, support)
    ratio, eta = math.exp(float(EPSILON)), float(Fraction(ETA))
    size = len(cells) + 1
    n = np.array([cell[0] for cell in cells])
    z = np.array([cell[1] for cell in cells])
    where = np.arange(len(cells))
    zeros = where[z == 0]
    equal = csr_array(
        (
            np.concatenate([np.ones(len(cells)), z.astype(float), np.ones(count)]),
            (
                np.concatenate([3 * (n - 1), 3 * (n - 1) + 1, 3 * (n[zeros] - 1) + 2]),
                np.concatenate([where, where, zeros]),
            ),
        ),
        shape=(3 * count, size),
    )
    sides = np.tile([1.0, 0.0, eta], count)
    rows, columns, values = [], [], []
    number = 0
    for number, (first, other, y) in enumerate(_rows(count, support), start=1):
        rows += [number - 1] * 2
        columns += [index[first, y - first], size - 1]
        values += [1.0, -1.0]
        if (other, y - other) in index:
            rows.append(number - 1)
            columns.append(index[other, y - other])
            values.append(-ratio)
    above = csr_array((values, (rows, columns)), shape=(number, size))
    cost = np.zeros(size)
    cost[-1] = 1
    built = time.process_time() - started

    def solve() -> float:
        answer = linprog(cost, above, np.zeros(number), equal, sides)
        if answer.fun is None:
            raise ArithmeticError(answer.message)
        return float(answer.fun)

    return solve, built


def ours(count: int, support: int) -> tuple[Callable[[], float], float]:
    """Return the certified solver; its program is built while it is solved."""
    from dpassay.lp.count_noise import optimal_count_noise
    from dpassay.lp.problem import CountNoiseProblem

    problem = CountNoiseProblem(eta=ETA, support=support, epsilon=EPSILON, max_count=count)
    return (lambda: float(optimal_count_noise(problem).delta.lower)), 0.0


def worker(way: str, count: int, support: int, limit: int) -> None:
    """Run one cell in this process and print what it took, as JSON."""
    import cvxpy
    import scipy.optimize  # noqa: F401  # imports are not part of any time

    import dpassay.lp.count_noise  # noqa: F401
    from dpassay.accountant.errors import DpassayError

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    spent = math.ceil(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (spent + limit, spent + limit + 5))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    warnings.simplefilter("ignore")
    make = {"scalar": scalar, "scipy": direct, "ours": ours}
    result: dict[str, Any]
    try:
        if way in make:
            solve, built = make[way](count, support)
        else:
            solve, built = vectorised(way, count, support)
        started = time.process_time()
        value = solve()
        result = {"build": built, "solve": time.process_time() - started, "value": value}
    except MemoryError:
        result = {"stopped": f"> {MEMORY >> 30} GiB"}
    except (ArithmeticError, ValueError, DpassayError, cvxpy.SolverError) as error:
        result = {"stopped": f"{type(error).__name__}: {str(error)[:60]}"}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({**result, "memory": (peak - before) / 1024, "base": before / 1024}))


def run(way: str, count: int, support: int, limit: int) -> dict[str, Any]:
    """Run one cell in a process of its own."""
    # -P: the folder of this file has an accountant.py of its own
    command = [
        sys.executable,
        "-P",
        __file__,
        "worker",
        way,
        *(str(n) for n in (count, support, limit)),
    ]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), "1")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **threads}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return {"stopped": f"> {limit} s"}
    if done.returncode < 0:  # allocations that fail inside a solver end the process
        return {"stopped": f"> {MEMORY >> 30} GiB (signal {-done.returncode})"}
    if done.returncode > 0:
        return {"stopped": done.stderr.splitlines()[-1][:80]}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def certified(count: int | None, epsilon: str, eta: str, support: int) -> Fraction:
    """Return the certified optimum, to the width that its solver promises."""
    from dpassay.lp.count_noise import optimal_count_noise
    from dpassay.lp.problem import CountNoiseProblem

    problem = CountNoiseProblem(eta=eta, support=support, epsilon=epsilon, max_count=count)
    return Fraction(optimal_count_noise(problem).delta.lower)


def shown(result: dict[str, Any], optimum: Fraction) -> str:
    """Return time, memory and error of a cell, or why there are none."""
    from dpassay.accountant.numbers.reading import few

    if "stopped" in result:
        return str(result["stopped"])
    difference = abs(Fraction(result["value"]) - optimum)
    error = few(difference / optimum, 1) if optimum else f"{few(difference, 1)} abs."
    seconds = f"{result['build']:.2f}+{result['solve']:.2f} s"
    return f"{seconds}, {result['memory']:.0f} MB, {error}"


def cells(limit: int, output: Path | None) -> None:
    """Print the table of every way at every size.

    A way that ran out of time or memory is not tried at a larger N of the same D: it says
    "beyond", with the N at which it stopped.
    """
    from dpassay.accountant.numbers.reading import few

    kept: dict[str, dict[str, Any]] = {}
    print("| D | N | optimum | " + " | ".join(WAYS) + " |")
    print("|---|---|---|" + "---|" * len(WAYS))
    for support in SUPPORTS:
        stopped: dict[str, int] = {}
        for count in COUNTS:
            optimum = certified(count, EPSILON, ETA, support)
            row = []
            for way in WAYS:
                if way in stopped:
                    row.append(f"beyond (see N = {stopped[way]})")
                    continue
                result = run(way, count, support, limit)
                if str(result.get("stopped", "")).startswith(">"):
                    stopped[way] = count
                kept[f"{way}/{count}/{support}"] = result
                row.append(shown(result, optimum))
                if output is not None:  # an interrupted run keeps its finished cells
                    output.write_text(json.dumps(kept, indent=1), "utf-8")
            value = few(optimum, 4)
            print(f"| {support} | {count} | {value} | " + " | ".join(row) + " |", flush=True)


def solvers() -> None:
    """Print the true relative error of each solver over ε, η and D, for one law for all n ≥ D."""
    import cvxpy as cp
    import numpy as np

    from dpassay.accountant.numbers.reading import few

    warnings.simplefilter("ignore")
    errors: dict[str, list[tuple[float, str]]] = {solver: [] for solver in SOLVERS}
    failed: dict[str, list[str]] = {solver: [] for solver in SOLVERS}
    head = " | ".join(SOLVERS)
    print(f"| ε | η | D | certified δ* | {head} |\n|---|---|---|---|" + "---|" * len(SOLVERS))
    for epsilon in ("1.5", "2.2", "2.5", "3", "4"):
        for eta in ("0.3", "0.5", "0.7", "0.8"):
            for support in (6, 8, 10, 12, 16, 20):
                optimum = certified(None, epsilon, eta, support)
                law, delta = cp.Variable(2 * support + 1, nonneg=True), cp.Variable(nonneg=True)
                ratio, z = math.exp(float(epsilon)), np.arange(-support, support + 1)
                constraints = [cp.sum(law) == 1, z @ law == 0, law[support] == float(eta)]
                constraints += [law[0] <= delta, law[-1] <= delta]
                constraints += [law[1:] <= ratio * law[:-1] + delta]
                constraints += [law[:-1] <= ratio * law[1:] + delta]
                program = cp.Problem(cp.Minimize(delta), constraints)
                row = []
                for solver in SOLVERS:
                    cell = f"ε={epsilon}, η={eta}, D={support}"
                    try:
                        value = float(program.solve(solver=solver))
                    except cp.SolverError:
                        value = math.nan
                    if not math.isfinite(value):
                        failed[solver].append(cell)
                        row.append(str(program.status))
                        continue
                    error = float(abs(Fraction(value) - optimum) / optimum)
                    errors[solver].append((error, cell))
                    row.append(f"{few(value, 3)} ({few(error, 1)})")
                cells_ = " | ".join(row)
                print(f"| {epsilon} | {eta} | {support} | {few(optimum, 5)} | {cells_} |")
    print("\n| solver | cells | no answer | error ≤ 1e-3 | first digit wrong | median | worst |")
    print("|---|---|---|---|---|---|---|")
    for solver in SOLVERS:
        found = sorted(errors[solver])
        good = sum(error <= 1e-3 for error, _ in found)
        wrong = sum(error >= 0.1 for error, _ in found)
        median, worst = found[len(found) // 2][0], found[-1]
        print(
            f"| {solver} | {len(found)} | {len(failed[solver])} | {good} | {wrong} "
            f"| {few(median, 2)} | {few(worst[0], 2)} at {worst[1]} |"
        )


def goal() -> None:
    """Print the slowest and widest certified answers over N up to 10^6 and D up to 16."""
    from dpassay.accountant.numbers.reading import few
    from dpassay.lp.count_noise import optimal_count_noise
    from dpassay.lp.problem import CountNoiseProblem

    optimal_count_noise(CountNoiseProblem(eta="0.5", support=4, epsilon="1"))  # imports
    print("| D | cells | slowest, s | at | widest, relative | least δ* > 0 |")
    print("|---|---|---|---|---|---|")
    for support in (4, 8, 16):
        slowest, widest, least, number = (0.0, ""), Fraction(0), Fraction(1), 0
        for epsilon in ("0.1", "0.5", "1.5", "2.2", "4"):
            for eta in ("0.02", "0.3", "0.8"):
                for count in (None, support, 10**6):
                    problem = CountNoiseProblem(
                        eta=eta, support=support, epsilon=epsilon, max_count=count
                    )
                    started = time.process_time()
                    delta = optimal_count_noise(problem).delta
                    seconds = time.process_time() - started
                    number += 1
                    slowest = max(slowest, (seconds, f"ε={epsilon}, η={eta}, N={count}"))
                    if delta.upper > 0:
                        width = Fraction(delta.upper) - Fraction(delta.lower)
                        widest = max(widest, width / Fraction(delta.upper))
                        least = min(least, Fraction(delta.upper))
        print(
            f"| {support} | {number} | {slowest[0]:.2f} | {slowest[1]} "
            f"| {few(widest, 1)} | {few(least, 2)} |",
            flush=True,
        )


def main() -> None:
    """Read the command line."""
    if sys.argv[1:2] == ["worker"]:
        worker(sys.argv[2], *(int(text) for text in sys.argv[3:6]))
        return
    parser = argparse.ArgumentParser(description="Optimal count noise beside float models.")
    parser.add_argument("table", choices=["cells", "solvers", "goal"])
    parser.add_argument("--limit", type=int, default=20)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    packages = ("cvxpy", "highspy", "clarabel", "scs", "osqp", "scipy")
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, ")
    print(", ".join(f"{name} {version(name)}" for name in packages) + "\n")
    if arguments.table == "cells":
        cells(arguments.limit, arguments.json)
    elif arguments.table == "solvers":
        solvers()
    else:
        goal()


if __name__ == "__main__":
    main()

"""Random questions about mechanisms of every class: are they answered, how fast, and is it true?

    python -P benchmarks/soundness.py [--number 300] [--seed 1] [--seconds 5] [--width 1e-6]

Every question has `--seconds` of computing time for the answer, in a process of its own, and four
times as many for a second route: another engine for the same product (`method=`), or the mpmath
route of a single release. An answer is wrong if the two enclosures have no number in common.
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import multiprocessing
import os
import random
import resource
import signal
import statistics
import time
from decimal import Decimal
from fractions import Fraction
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"


def scale(rng: random.Random, low: float, high: float) -> str:
    """Return a decimal between two numbers, uniform on a logarithmic scale."""
    return f"{math.exp(rng.uniform(math.log(low), math.log(high))):.4g}"


def release(rng: random.Random) -> tuple[str, bool]:
    """Return one release, and whether neighbours differ by their number of records."""
    kind = rng.randrange(14)
    gaussian = f"Gaussian(standard_deviation='{scale(rng, 0.5, 20)}')"
    laplace = f"Laplace(scale='{scale(rng, 0.5, 50)}')"
    if kind < 4:
        q = scale(rng, 1e-4, 0.3)
        return f"PoissonSubsampled({gaussian}, sampling_prob='{q}')", True
    if kind == 4:
        q = scale(rng, 1e-3, 0.3)
        return f"PoissonSubsampled({laplace}, sampling_prob='{q}')", True
    names = [
        gaussian,
        laplace,
        laplace,
        f"DiscreteLaplace(scale='{scale(rng, 0.5, 30)}')",
        f"DiscreteGaussian(parameter={rng.randrange(1, 100)})",
        f"Staircase(epsilon='{scale(rng, 0.05, 2)}', gamma='1/3')",
        f"RandomizedResponse(epsilon='{scale(rng, 0.05, 2)}', categories={rng.randrange(2, 6)})",
        f"LaplaceVector(scale='{scale(rng, 5, 50)}', shifts=[1, {rng.randrange(1, 5)}])",
        "Tabulated(p=['1/2', '1/3', '1/6'], q=['1/4', '1/4', '1/2'])",
    ]
    return names[kind - 5], False


def question(rng: random.Random) -> dict[str, Any]:
    """Return a mechanism, what is asked of it, and where."""
    parts, sampled = [], False
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        text, by_number = release(rng)
        sampled |= by_number
        parts.append(f"Composed({text}, count={rng.choice((1, 1, 2, 5, 20, 100, 1000, 10000))})")
    asked = rng.choice(("delta", "epsilon", "epsilon", "beta"))
    at = scale(rng, 0.01, 5) if asked == "delta" else f"1e-{rng.randrange(2, 12)}"
    adjacency = "replace-one" if sampled and rng.random() < 0.15 else "add-remove"
    return {
        "mechanism": f"Composed([{', '.join(parts)}])",
        "question": asked,
        "at": at,
        "adjacency": adjacency if sampled else "",
    }


def answered(row: dict[str, Any], method: str, width: str) -> list[str] | str:
    """Return the two ends, or what was said instead."""
    import dpassay

    ask = getattr(dpassay, row["question"])
    options: dict[str, Any] = {"relative_width": Fraction(width)}
    if row["adjacency"]:
        options["adjacency"] = row["adjacency"]
    if method != "auto":
        options["method"] = method
    try:
        found = ask(dpassay.parse(row["mechanism"]), row["at"], **options)
    except dpassay.UndecidedError as error:
        found = getattr(error, "interval", None)
        if found is None:
            return f"undecided: {str(error)[:80]}"
    except dpassay.DpassayError as error:
        return f"{type(error).__name__}: {str(error)[:80]}"
    return [str(found.lower), str(found.upper)]


def timed(row: dict[str, Any], method: str, width: str, seconds: float) -> tuple[Any, float]:
    """Answer in a process of its own, within a limit of computing time."""
    ours, theirs = multiprocessing.Pipe(duplex=False)

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds) + 1, -1))
        signal.signal(signal.SIGPROF, lambda *_: os._exit(1))
        signal.setitimer(signal.ITIMER_PROF, seconds)
        start = time.process_time()
        try:
            found = answered(row, method, width)
        except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:
            found = f"CRASH {error!r}"
        theirs.send((found, time.process_time() - start))

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    theirs.close()
    try:
        found = ours.recv()
    except EOFError:
        found = f"more than {seconds:g} s", seconds
    process.join()
    return found


def away(first: list[str], second: list[str]) -> bool:
    """Whether two enclosures have no number in common."""
    low, high = map(Decimal, first)
    below, above = map(Decimal, second)
    return high < below or above < low


def second_route(row: dict[str, Any], first: list[str], seconds: float) -> str:
    """Say whether an engine other than the one of "auto" agrees."""
    for method in ("exact", "fourier", "grid"):
        found, _ = timed(row, method, "1e-3", seconds)
        if "CRASH" in found:
            return f"{method}: {found}"
        if isinstance(found, list) and found != first:
            return "WRONG" if away(first, found) else "agrees"
    return "no second route"


def main() -> None:
    """Print what is not answered or wrong, and the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--width", default="1e-6")
    options = parser.parse_args()
    import dpassay

    dpassay.delta(dpassay.Gaussian(standard_deviation=1), 1)  # imports are not counted
    rng = random.Random(options.seed)
    counts: collections.Counter[str] = collections.Counter()
    times = []
    for _ in range(options.number):
        row = question(rng)
        found, took = timed(row, "auto", options.width, options.seconds)
        times.append(took)
        if isinstance(found, str):
            counts["not answered"] += 1
            print(json.dumps(row | {"answer": found}, ensure_ascii=False), flush=True)
            continue
        low, high = map(Decimal, found)
        narrow = high - low <= Decimal(options.width) * abs(low)
        counts["answered" if narrow else "answered, wider"] += 1
        if not narrow:
            width = float((high - low) / low) if low else math.inf
            print(json.dumps(row | {"width": f"{width:.0e}"}, ensure_ascii=False), flush=True)
        verdict = second_route(row, found, 4 * options.seconds)
        counts[verdict] += 1
        if verdict == "WRONG" or "CRASH" in verdict:
            print(json.dumps(row | {"answer": found, "second": verdict}), flush=True)
    times.sort()
    print(json.dumps(counts, indent=1))
    tail = times[min(len(times) - 1, math.ceil(0.99 * len(times)))]
    print(f"median {statistics.median(times):.3f} s, 99 % within {tail:.2f} s")


if __name__ == "__main__":
    main()

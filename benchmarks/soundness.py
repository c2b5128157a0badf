"""Random questions about all classes of mechanisms, with answers judged by an independent method.

    python -P benchmarks/soundness.py [--number 300] [--seed 1] [--seconds 5] [--width 1e-6]
                                      [--only CLASS …] [--json FILE]
    python -P benchmarks/soundness.py --report FILE [FILE …]

Classes are taken in turn; their parameters, partners, counts (up to 10⁵), sampling, question and
argument are random. Each question gets `--seconds` of computing time in its own process, forked
after all imports. The reference does not use the package: `route_laws.py` writes the worst pairs as
arrays of masses, and `routes.py` composes them by FFT in floats. An answer is wrong if it differs
from the reference by more than the error of the reference. Releases that can choose among several
worst pairs adaptively have only two bounds; such answers are counted separately, and so are
probabilities that are proved to be below 1e-50.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import json
import math
import multiprocessing
import os
import pkgutil
import platform
import random
import resource
import signal
import statistics
import sys
import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
sys.path.append(str(Path(__file__).resolve().parent))  # after the packages: names are shared

from route_laws import ALONE, KINDS, SAMPLED, Kind, decimal
from routes import Profile

COUNTS = (2, 3, 5, 20, 100, 1000, 10000, 100000)
QUESTIONS = (
    "delta",
    "delta",
    "epsilon",
    "epsilon",
    "epsilon",
    "beta",
    "total_variation",
    "renyi",
    "rho",
)
PROBABILITIES, LEAST = ("delta", "total_variation", "beta"), Fraction(1, 10**50)


def question(rng: random.Random, name: str) -> tuple[dict[str, Any], list[Any]]:
    """Return a question, and the alternatives: products of pairs, one of which is worst."""
    count = rng.choice((1, rng.choice(COUNTS))) if name not in ALONE else 1
    names = [name]
    if name not in ALONE and rng.random() < 0.3:
        names += rng.sample(sorted(set(KINDS) - set(ALONE)), rng.choice((1, 1, 2)))
    total = math.exp(rng.uniform(math.log(0.2), math.log(4)))  # near the μ of all together
    parts: list[tuple[Kind, int]] = []
    for one in names:
        times = count if one == name else rng.choice((1, 2, 20))
        kind = KINDS[one](rng, total / math.sqrt(times * len(names)))
        if one in SAMPLED and rng.random() < 0.3:
            kind = kind.sampled(decimal(math.exp(rng.uniform(math.log(1e-4), math.log(0.5)))))
        parts.append((kind, times))
    if len({kind.adjacency for kind, _ in parts if kind.adjacency}) > 1:
        parts = parts[:1]
    text = ", ".join(f"Composed({kind.text}, {n})" if n > 1 else kind.text for kind, n in parts)
    loose = len(parts) > 1 or parts[0][1] > 1
    products: list[list[Any]] = [[]]
    for kind, n in parts:
        products = [x + [(law, n * k) for law, k in y] for x in products for y in kind.pairs]
    asked = rng.choice([q for q in QUESTIONS if all(q not in kind.never for kind, _ in parts)])
    least = max(kind.least for kind, _ in parts)
    at = {
        "delta": decimal(total * math.exp(rng.uniform(-2, 1.8))),
        "epsilon": f"{10 ** rng.uniform(least, -3):.3e}",
        "beta": f"{10 ** rng.uniform(max(least, -12), -0.5):.3g}",
        "renyi": decimal(1 + rng.uniform(0.1, min(40, 15 / total))),
    }.get(asked, "")
    row = {
        "class": name,
        "mechanism": text if len(parts) == 1 else f"Composed([{text}])",
        "question": asked,
        "at": at,
        "adjacency": next((kind.adjacency for kind, _ in parts if kind.adjacency), ""),
        "route": " + ".join(dict.fromkeys(kind.route for kind, _ in parts)),
        "error": max(kind.error for kind, _ in parts),
        "floor": max(kind.floor * n for kind, n in parts),
        "bound": loose and any(kind.envelope for kind, _ in parts),
    }
    return row, products


def answered(row: dict[str, Any], width: str) -> list[str] | str:
    """Return the two ends of the answer, or the error message."""
    import dpassay

    options: dict[str, Any] = {"relative_width": Fraction(width)}
    if row["adjacency"]:
        options["adjacency"] = row["adjacency"]
    places = (row["at"],) if row["at"] else ()
    try:
        found = getattr(dpassay, row["question"])(row["mechanism"], *places, **options)
    except dpassay.UndecidedError as error:
        found = getattr(error, "interval", None)
        if found is None:
            return f"undecided: {str(error)[:150]}"
    except dpassay.DpassayError as error:
        return f"{type(error).__name__}: {str(error)[:150]}"
    return [str(found.lower), str(found.upper)]


def timed(row: dict[str, Any], width: str, seconds: float) -> tuple[Any, float]:
    """Answer in a separate process, within a limit of computing time."""
    ours, theirs = multiprocessing.Pipe(duplex=False)

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds) + 1, -1))
        signal.signal(signal.SIGPROF, lambda *_: os._exit(1))
        signal.setitimer(signal.ITIMER_PROF, seconds)
        start = time.process_time()
        try:
            found = answered(row, width)
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


def route_interval(asked: str, at: float, profiles: Sequence[Profile]) -> tuple[float, float]:
    """Return the ends of the reference: the worst alternative."""
    if asked in ("delta", "total_variation"):
        found = [one.delta(at) for one in profiles]
        return max(v - off for v, off in found), max(v + off for v, off in found)
    if asked == "beta":
        found = [one.beta(at) for one in profiles]
        return min(v - off for v, off in found), min(v + off for v, off in found)
    orders = [at] if asked == "renyi" else [1 + math.exp(x / 4) for x in range(-24, 29)]
    curve = [max(one.renyi(a) for one in profiles) for a in orders]
    if asked == "renyi":
        return curve[0][0] - curve[0][1], curve[0][0] + curve[0][1]
    values = [(v - off) / a for (v, off), a in zip(curve, orders, strict=True)]
    best = max(range(len(orders)), key=values.__getitem__)
    inside = 0 < best < len(orders) - 1 and values[-1] < 0.98 * values[best]
    return values[best], values[best] * 1.02 if inside else math.inf  # of orders between these


def beyond(row: dict[str, Any], value: float, side: int) -> float:
    """Return a number of the reference, shifted by the error of its laws."""
    return value * (1 + side * row["error"]) + side * row["floor"]


def verdict(row: dict[str, Any], answer: list[str], products: Sequence[Any]) -> str:
    """Compare an answer with the reference."""
    low, high = map(float, answer)
    both = [[(law if side else law.swapped(), n) for law, n in x]
            for x in products
            for side in ((1,) if all(law.mirrored for law, _ in x) else (0, 1))]  # fmt: skip
    profiles = [Profile(x) for x in both]
    asked, at = row["question"], float(row["at"] or 0)
    if row["floor"] and asked in ("renyi", "rho"):
        return "no route"  # moments of what floats have no digits of
    if asked == "epsilon":
        slack = 1e-13 * high  # floats do not tell ε from the largest loss any better
        above = route_interval("delta", low - slack, profiles)[1] if 0 < low < math.inf else 1.0
        below = route_interval("delta", high + slack, profiles)[0] if high < math.inf else 0.0
        above, below = beyond(row, above, 1), beyond(row, below, -1)
        away = [] if row["bound"] or above >= at else [f"δ({low}) ≤ {above} < {at}"]
        away += [] if below <= at else [f"δ({high}) ≥ {below} > {at}"]
        return "WRONG: " + "; ".join(away) if away else "agrees"
    lower, upper = route_interval(asked, at, profiles)
    lower, upper = beyond(row, lower, -1), beyond(row, upper, 1)
    if row["bound"] and asked != "beta":  # some alternatives of an adaptive choice, not all
        upper = math.inf
    elif row["bound"]:
        lower = 0.0
    # of less than 1e-100 floats may have nothing left
    apart = high * (1 + 1e-12) + 1e-100 < lower or low * (1 - 1e-12) > upper + 1e-100
    return f"WRONG: route {lower} to {upper}" if apart else "agrees"


def main() -> None:
    """Print unanswered and wrong questions, and the counts of each class."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--width", default="1e-6")
    parser.add_argument("--only", nargs="+", default=[""])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--report", type=Path, nargs="+", help="only print what files say together")
    options = parser.parse_args()
    if options.report:
        files = [json.loads(path.read_text()) for path in options.report]
        report([row for file in files for row in file["rows"]], files[0]["imports"])
        return
    start = time.process_time()
    import dpassay.accountant

    for module in pkgutil.walk_packages(dpassay.accountant.__path__, "dpassay.accountant."):
        importlib.import_module(module.name)
    imports = time.process_time() - start
    machine = f"{platform.platform()}, Python {platform.python_version()}"
    about = {"machine": machine, "seed": options.seed, "imports": imports}
    rng = random.Random(options.seed)
    names = [name for name in KINDS if any(part in name for part in options.only)]
    rows = []
    for index in range(options.number):
        row, products = question(rng, names[index % len(names)])
        answer, row["seconds"] = timed(row, options.width, options.seconds)
        row["answer"], row["verdict"] = answer, ""
        if isinstance(answer, list):
            low, high = map(Fraction, (x if "Inf" not in x else "1e999" for x in answer))
            narrow = high - low <= Fraction(options.width) * abs(low)
            row["verdict"] = verdict(row, answer, products)
            ends = row["bound"] and high < Fraction("1e999")
            row["outcome"] = "answered" if narrow else "two ends" if ends else "wider"
            most = 1 if row["question"] in PROBABILITIES else Fraction("1e999")
            if low <= 0 and high >= most:
                row["outcome"] = "vacuous"
            if not narrow and row["question"] in PROBABILITIES and high < LEAST:
                row["outcome"] = "below 1e-50"
        else:
            row["outcome"] = "no answer"
        rows.append(row)
        if row["outcome"] != "answered" or row["verdict"].startswith("WRONG"):
            print(json.dumps(row, ensure_ascii=False), flush=True)
        if options.json:  # what is done is kept
            options.json.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")
    report(rows, imports)


def report(rows: Sequence[dict[str, Any]], imports: float) -> None:
    """Print a line for each class, and one for all classes."""
    outcomes = ("answered", "two ends", "below 1e-50", "wider", "vacuous", "no answer")
    print(f"\n| class | route | asked | {' | '.join(outcomes)} | wrong | median s | slowest s |")
    print("|---" * 12 + "|")
    for name in [*dict.fromkeys(row["class"] for row in rows), ""]:
        own = [row for row in rows if name in ("", row["class"])]
        counts = collections.Counter(row["outcome"] for row in own)
        wrong = sum(row["verdict"].startswith("WRONG") for row in own)
        times = sorted(row["seconds"] for row in own)
        cells = [name or "all", own[0]["route"] if name else "", len(own)]
        cells += [counts[x] for x in outcomes]
        cells += [wrong, f"{statistics.median(times):.3f}", f"{times[-1]:.2f}"]
        print("| " + " | ".join(map(str, cells)) + " |")
    tail = times[min(len(times) - 1, math.ceil(0.99 * len(times)) - 1)]
    print(f"99 % within {tail:.2f} s of computing time; all imports, once, {imports:.2f} s")


if __name__ == "__main__":
    main()

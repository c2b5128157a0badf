"""Recorded enclosures of the accountant, with computing times, and a comparison with them.

    python -P benchmarks/oracle.py freeze FILE [--limit SECONDS]   answer, and write FILE
    python -P benchmarks/oracle.py compare FILE [--limit SECONDS]  answer again; compare

`compare` prints each question whose enclosure is disjoint from the recorded one, that is no longer
answered, whose enclosure was requested at a larger width or is more than ten times as wide, or that
takes more than twice the computing time (and at least 50 ms more). The exit code is 1 if there is a
question of the first two kinds.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

if Path(sys.path[0]) == Path(__file__).resolve().parent:
    sys.path.pop(0)  # this folder has a script of the name of the package

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

from dpassay.accountant.errors import DpassayError
from dpassay.accountant.notation import parse
from dpassay.accountant.questions import guarantees, profile, tradeoff

WIDTHS = (Fraction(1, 10**12), Fraction(1, 10**9), Fraction(1, 10**6), Fraction(1, 100))
SLOWER, LEAST_SECONDS, WIDER = 2.0, 0.05, 10

SINGLE = [
    "Gaussian(standard_deviation='1.1')",
    "Laplace(scale='3/2')",
    "DiscreteLaplace(scale=2)",
    "DiscreteGaussian(parameter=4)",
    "Staircase(epsilon=1, gamma='1/3')",
    "RandomizedResponse(epsilon='1/2', categories=4)",
    "RankOneGaussian(dimension=20, sigma_star=900)",
    "LaplaceVector(scale=10, shifts=[1, 2, '1/2'])",
    "BoundedCountNoise(epsilon=1, eta='1/2', support=6)",
]
COMPOSED = [
    ("Laplace(scale=3)", (10, 1000)),
    ("DiscreteLaplace(scale=5)", (10, 1000)),
    ("DiscreteGaussian(parameter=25)", (10, 1000)),
    ("RandomizedResponse(epsilon='1/10')", (10, 10000)),
    ("Staircase(epsilon='1/2', gamma='1/3')", (3, 30)),
    ("Tabulated(p=['1/2', '1/3', '1/6'], q=['1/4', '1/4', '1/2'])", (5, 200)),
]
SAMPLED = [
    ("0.6", "0.05", (1, 3, 100)),
    ("0.8", "0.01", (2, 1000, 100000)),
    ("1.1", "256/60000", (7032,)),
    ("0.6", "0.001", (2,)),
    ("2", "0.001", (1000000,)),
    ("10", "0.5", (50, 5000)),
    ("1", "1e-4", (10000,)),
    ("0.5", "0.01", (10000,)),
]
MIXED = [
    "Composed([PoissonSubsampled(Gaussian(standard_deviation='0.8'), sampling_prob='0.01'), "
    "Gaussian(standard_deviation=5)], count=100)",
    "Composed([PoissonSubsampled(Gaussian(standard_deviation='0.8'), sampling_prob='0.01'), "
    "PoissonSubsampled(Gaussian(standard_deviation='1.3'), sampling_prob='0.02')], count=50)",
    "Composed([Laplace(scale=20), PoissonSubsampled(Gaussian(standard_deviation=1), "
    "sampling_prob='0.01')], count=20)",
    "Composed([DiscreteLaplace(scale=10), Laplace(scale=20)], count=5)",
    "Composed([PoissonSubsampled(Laplace(scale=1), sampling_prob='0.01')], count=10)",
    "Composed([DiscreteLaplace(scale=4), Gaussian(standard_deviation=5)], count=10)",
]
REPLACED = [
    "Composed(PoissonSubsampled(Gaussian(standard_deviation='1.1'), sampling_prob='0.01'), "
    "count=1000)",
    "SampledWithoutReplacement(Gaussian(standard_deviation=2), sample_size=10, population=1000)",
]
FINEST = {
    **{
        "Composed(["
        + ", ".join(
            f"PoissonSubsampled(Gaussian(standard_deviation='{1 + Fraction(i, 50)}'), "
            "sampling_prob='0.01')"
            for i in range(kinds)
        )
        + "], count=10)": "1e-6"
        for kinds in (60, 80, 100)
    },
    "Tuned(Composed(PoissonSubsampled(Gaussian(standard_deviation='1.1'), "
    "sampling_prob='256/60000'), count=7032), 10)": "1e-2",
}
"""Mechanisms that take long, and the finest width that is asked for."""
DELTAS = ("1e-3", "1e-6", "1e-12", "1e-50")


def questions() -> Iterator[dict[str, str]]:
    """Yield every question: a mechanism, what is asked, at which point, under which relation."""

    def ask(mechanism: str, what: str, at: str, adjacency: str = "", **more: str) -> dict[str, str]:
        return {"mechanism": mechanism, "question": what, "at": at, "adjacency": adjacency} | more

    for mechanism in SINGLE:
        for what, at in (("delta", "1/2"), ("epsilon", "1e-6"), ("beta", "1/20")):
            yield ask(mechanism, what, at)
    yield ask(SINGLE[0], "renyi", "8")
    yield ask(SINGLE[3], "renyi", "8")
    for mechanism, counts in COMPOSED:
        for count, delta in itertools.product(counts, ("1e-3", "1e-12")):
            yield ask(f"Composed({mechanism}, count={count})", "epsilon", delta)
        yield ask(f"Composed({mechanism}, count={counts[0]})", "delta", "1/2")
    for sigma, q, counts in SAMPLED:
        for count in counts:
            sample = (
                f"PoissonSubsampled(Gaussian(standard_deviation='{sigma}'), sampling_prob='{q}')"
            )
            mechanism = f"Composed({sample}, count={count})"
            for delta in DELTAS:
                yield ask(mechanism, "epsilon", delta, "add-remove")
            yield ask(mechanism, "delta", "1", "add-remove")
    for mechanism in MIXED:
        yield ask(mechanism, "epsilon", "1e-6", "add-remove")
        yield ask(mechanism, "delta", "1/2", "add-remove")
    for mechanism in REPLACED:
        yield ask(mechanism, "epsilon", "1e-6", "replace-one")
        yield ask(mechanism, "delta", "1/2", "replace-one")
    for mechanism, finest in FINEST.items():
        yield ask(mechanism, "epsilon", "1e-5", "add-remove", finest=finest)


ASK: dict[str, Any] = {
    "delta": profile.delta,
    "epsilon": profile.epsilon,
    "beta": tradeoff.beta,
    "renyi": guarantees.renyi,
}


class TooLongError(Exception):
    """The time limit of a question is exceeded."""


def _over(*_: object) -> None:
    raise TooLongError


def answer(question: dict[str, str], limit: float) -> dict[str, Any]:
    """Ask at the first of the widths that is reached in time; say what it took."""
    mechanism = parse(question["mechanism"])
    adjacency = question["adjacency"] or None
    refusal = ""
    finest = Fraction(question.get("finest", WIDTHS[0]))
    for width in (width for width in WIDTHS if width >= finest):
        began = time.process_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, limit)
        try:
            found = ASK[question["question"]](
                mechanism, question["at"], adjacency=adjacency, relative_width=width
            )
        except (DpassayError, TooLongError) as error:
            refusal = str(error) or "too long"
            continue
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        seconds = time.process_time() - began
        return {**question, **found.to_json(), "width": f"{float(width):.0e}", "seconds": seconds}
    return {**question, "refused": refusal[:200]}


def _gap(answer: dict[str, Any]) -> Decimal:
    """Return how far apart the ends of an answer are, and at least a unit of the tenth digit."""
    lower, upper = Decimal(answer["lower"]), Decimal(answer["upper"])
    return Decimal(0) if lower == upper else max(upper - lower, Decimal("1e-10") * abs(upper))


def freeze(path: Path, limit: float) -> int:
    """Answer every question and write the answers."""
    entries = []
    for question in questions():
        entries.append(answer(question, limit))
        print(json.dumps(entries[-1]), flush=True)
    path.write_text(json.dumps(entries, indent=1) + "\n", "utf-8")
    return 0


def compare(path: Path, limit: float) -> int:
    """Answer all recorded questions again and print what has become worse."""
    lost = slow = coarse = 0
    entries = json.loads(path.read_text("utf-8"))
    for before in entries:
        keys = ("mechanism", "question", "at", "adjacency", "finest")
        now = answer({key: before[key] for key in keys if key in before}, limit)
        if "refused" in before:
            continue
        if "refused" in now:
            lost += 1
            print("no answer any more:", json.dumps(now))
        elif Decimal(now["lower"]) > Decimal(before["upper"]) or Decimal(now["upper"]) < Decimal(
            before["lower"]
        ):
            lost += 1
            print("APART:", json.dumps(before), json.dumps(now))
        elif float(now["width"]) > float(before["width"]) or _gap(now) > WIDER * _gap(before):
            coarse += 1
            print(f"coarser: {now['width']}, [{now['lower']}, {now['upper']}]:", before)
        elif now["seconds"] > SLOWER * before["seconds"] + LEAST_SECONDS:
            slow += 1
            print(f"slower: {before['seconds']:.2f} s, now {now['seconds']:.2f} s:", before)
    print(
        f"{len(entries)} questions, {lost} lost or apart, {coarse} to a larger width, "
        f"{slow} more than twice as slow"
    )
    return 1 if lost else 0


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("freeze", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--limit", type=float, default=30.0, help="computing seconds a question")
    options = parser.parse_args()
    signal.signal(signal.SIGVTALRM, _over)
    return (freeze if options.what == "freeze" else compare)(options.file, options.limit)


if __name__ == "__main__":
    raise SystemExit(main())

"""Compositions of subsampled Gaussian releases: ours, dp-accounting and prv-accountant.

    python -P benchmarks/accountant.py settings  [--peers-python PYTHON] [--limit SECONDS]
    python -P benchmarks/accountant.py soundness [--number N] [--seed S] [--seconds SECONDS]
                                                 [--digits N] [--limit SECONDS]
                                                 [--peers-python PYTHON]
    python -P benchmarks/accountant.py speed
    python -P benchmarks/accountant.py ratios    --peers-python PYTHON [--limit SECONDS]
    python -P benchmarks/accountant.py gaussian

Every question asks for ε at δ under add/remove. The certified enclosure (relative width 1e-9)
is the judge: a peer's ε is below the truth if it is below the lower end. `PYTHON` is an
interpreter that has the peers; without it they are left out.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import platform
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

if Path(sys.path[0]) == Path(__file__).resolve().parent:
    sys.path.pop(0)  # this script has the name of the package

os.environ["OMP_NUM_THREADS"] = "1"  # one core, for the peers too; read by numpy
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

from dpassay.accountant.budget.allotment import Share, largest_sampling_prob, most_releases
from dpassay.accountant.budget.calibrate import Calibration, calibrate
from dpassay.accountant.budget.target import EpsilonDelta
from dpassay.accountant.composition.fourier.engine import FOURIER
from dpassay.accountant.composition.fourier.measure import estimator
from dpassay.accountant.composition.losses.transform import float_mixture
from dpassay.accountant.composition.product import Product
from dpassay.accountant.core.adjacency import Direction
from dpassay.accountant.errors import DpassayError
from dpassay.accountant.mechanisms import Composed, Gaussian, PoissonSubsampled
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.numbers.reading import few
from dpassay.accountant.questions import estimate, profile

SETTINGS: list[tuple[str, str, int]] = [
    ("1.1", "256/60000", 7032),
    ("0.8", "0.01", 10**3),
    ("0.8", "0.01", 10**4),
    ("0.8", "0.01", 10**5),
    ("0.8", "0.01", 10**6),
    ("2", "0.001", 10**6),
    ("0.5", "0.01", 10**4),
    ("0.6", "1e-4", 2 * 10**5),
    ("0.3", "0.5", 100),
    ("20", "0.9", 10**5),
    ("1", "1e-4", 10**4),
    ("0.8", "0.01", 2),
]
DELTAS = ("1e-5", "1e-8", "1e-12", "1e-20", "1e-50", "1e-200")
WIDTH = Fraction(1, 10**9)
COARSE = Fraction(1, 10**6)
FINE = Fraction(1, 10**15)
LIMIT = 30
Part = tuple[str, str, int]


class TooLongError(Exception):
    """The time of a question is over."""


def ring(*_: object) -> None:
    """Give up on a question."""
    raise TooLongError


def composed(parts: Sequence[Part]) -> Composed:
    """Return the composition of subsampled Gaussian releases."""
    return Composed(
        [
            Composed(PoissonSubsampled(Gaussian(standard_deviation=sigma), q), count)
            for sigma, q, count in parts
        ]
    )


def certified(
    mechanism: Composed,
    delta: str,
    widths: Sequence[Fraction] = (WIDTH, COARSE),
    *,
    limit: int = LIMIT,
) -> tuple[Interval | str, float]:
    """Return the enclosure of ε, of the first width that is reached, and the seconds it took."""
    started = time.process_time()
    found: Interval | str = ""
    signal.setitimer(signal.ITIMER_PROF, limit)  # of computing time, whatever else runs
    for width in widths:
        try:
            found = profile.epsilon(mechanism, delta, adjacency="add-remove", relative_width=width)
            break
        except DpassayError as error:
            found = f"{type(error).__name__}: {error}"
        except TooLongError:
            found = f"more than {limit} s"
            break
    signal.setitimer(signal.ITIMER_PROF, 0)
    return found, time.process_time() - started


def estimated(mechanism: Composed, delta: str) -> tuple[float | None, float]:
    """Return the public estimate of ε, and its seconds with nothing computed before."""
    forget()
    started = time.process_time()
    try:
        log_delta = float(Decimal(delta).ln())
        found = estimate.estimate_epsilon(mechanism, log_delta=log_delta, adjacency="add-remove")
    except DpassayError:
        return None, time.process_time() - started
    return float(found), time.process_time() - started


def forget() -> None:
    """Forget float engines: each keeps its nodes for the next question."""
    estimator.cache_clear()
    float_mixture.cache_clear()


def ask_peers(python: str | None, questions: list[list[Any]], limit: int) -> list[dict[str, Any]]:
    """Return one answer for each question, or none at all."""
    if python is None:
        return [{} for _ in questions]
    here = Path(__file__).with_name("accountant_peers.py")
    done = subprocess.run(
        [python, str(here), str(limit)],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def judge(answer: list[Any], truth: Interval | str) -> str:
    """Say how a peer's upper bound stands to the truth."""
    upper = answer[-1]
    if isinstance(upper, str):
        return upper
    if isinstance(truth, str):
        return f"{upper:.6g}"
    away = upper / float(truth.lower) - 1
    below = Fraction(upper) < Fraction(truth.lower)
    return f"{upper:.7g} ({few(away, 1, sign='+')}{', BELOW' if below else ''})"


def settings(options: argparse.Namespace) -> None:
    """Print the table of the settings."""
    rows = [(part, delta) for part in SETTINGS for delta in options.deltas.split(",")]
    peers = ask_peers(
        options.peers_python,
        [[[[sigma, float(Fraction(q)), count]], delta] for (sigma, q, count), delta in rows],
        options.limit,
    )
    names = list(peers[0])
    print("| σ | q | count | δ | ε | s | estimate | ms |", *(f" {n} | s |" for n in names), sep="")
    print("|---|---|---|---|---|---|---|---|" + "---|---|" * len(names))
    for (part, delta), answers in zip(rows, peers, strict=True):
        mechanism = composed([part])
        truth, seconds = certified(mechanism, delta)
        guess, fast = estimated(mechanism, delta)
        shown = truth if isinstance(truth, str) else str(truth)
        off = "–"
        if guess is not None and not isinstance(truth, str):
            finer, _ = certified(mechanism, delta, (FINE, WIDTH))
            if isinstance(finer, Interval):
                truth = finer
                off = few(abs(guess / float(finer.lower) - 1), 1)
        line = [*map(str, part), delta, shown, f"{seconds:.3f}", off, f"{1e3 * fast:.2f}"]
        for name in names:
            found, took = answers[name]
            line += [judge(found, truth), f"{took:.2f}"]
        print("| " + " | ".join(line) + " |", flush=True)


def random_parts(rng: random.Random) -> list[Part]:
    """Draw σ, q and count on logarithmic scales; now and then several mechanisms."""

    def scale(low: float, high: float) -> float:
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    number = 1 if rng.random() < 0.8 else round(scale(2, 100))
    return [
        (f"{scale(0.3, 100):.4g}", f"{min(1.0, scale(1e-6, 1)):.4g}", int(scale(1, 1e9)))
        for _ in range(number)
    ]


def soundness(options: argparse.Namespace) -> None:
    """Ask random questions; count widths, failures, and peers below the truth."""
    rng = random.Random(options.seed)
    counts: dict[str, int] = {}
    times = []

    def count(key: str) -> None:
        counts[key] = counts.get(key, 0) + 1

    questions = [
        (random_parts(rng), f"{10 ** -rng.uniform(2, options.digits):.3g}")
        for _ in range(options.number)
    ]
    peers = ask_peers(options.peers_python, [list(one) for one in questions], options.limit)
    with contextlib.suppress(KeyboardInterrupt):  # what was counted is printed
        for (parts, delta), answers in zip(questions, peers, strict=True):
            mechanism = composed(parts)
            truth, seconds = certified(mechanism, delta, limit=options.seconds)
            times.append(seconds)
            if isinstance(truth, str):
                count("refused" if "more than" not in truth[:10] else "too long")
                print("refused", parts, delta, truth[:100], flush=True)
                continue
            width = truth.relative_width
            count("width above 1e-9" if width is None or width > WIDTH else "width up to 1e-9")
            guess, _ = estimated(mechanism, delta)
            if guess is not None:
                count("estimated")
                if abs(guess / float(truth.lower) - 1) > 1e-8:
                    count("estimate off by more than 1e-8")
                    print("estimate", parts, delta, guess, truth, flush=True)
            for name, (found, _) in answers.items():
                upper = found[-1]
                if isinstance(upper, str):
                    count(f"{name}: {upper}")
                elif Fraction(upper) < Fraction(truth.lower):
                    count(f"{name}: below the truth")
                else:
                    count(f"{name}: upper bound")
    times.sort()
    middle, slow = statistics.median(times), times[int(0.99 * len(times))]
    print(json.dumps(counts, indent=1))
    print(f"certified epsilon: median {middle:.3f} s, 99 % within {slow:.3f} s")


def speed(options: argparse.Namespace) -> None:
    """Time estimates and enclosures of δ and ε."""
    print("| what | median ms |\n|---|---|")
    for count in (10**3, 10**6, 10**9):
        part = ("1.1", "0.004", count)
        print(f"| ln δ, count {few(count, 1)} | {_time([part], 'delta'):.3f} |")
        print(f"| ε, count {few(count, 1)} | {_time([part], 'epsilon'):.3f} |")
    many = [(f"{1 + i / 50}", f"{(i + 1) / 1000}", 100 + i) for i in range(100)]
    print(f"| ε, count 1e6, each of 1000 δ | {_many():.3f} |")
    print(f"| ln δ, 100 mechanisms | {_time(many, 'delta'):.3f} |")
    for count in (10**3, 10**6, 10**9):
        part = ("1.1", "0.004", count)
        samples = [certified(composed([part]), f"1e-{n}")[1] for n in (5, 6, 7, 8, 9)]
        print(
            f"| ε certified to 1e-9, count {few(count, 1)} "
            f"| {1e3 * statistics.median(samples):.0f} |"
        )
    print(f"| σ calibrated to 1e-12 | {_calibrated(_least_noise):.0f} |")
    print(f"| q calibrated to 1e-12 | {_calibrated(_largest_rate):.0f} |")
    print(f"| most releases | {_calibrated(_most_releases):.0f} |")


def ratios(options: argparse.Namespace) -> None:
    """Compare times with those of dp-accounting on its default grid, and on its finest that ends.

    Beside the estimate, an enclosure that is at least as narrow as the peer's ε is wrong.
    """
    delta = "1e-5"
    questions = [[[[sigma, float(Fraction(q)), count]], delta] for sigma, q, count in SETTINGS]
    peers = ask_peers(options.peers_python, questions, options.limit)
    row = "σ | q | count | grid | off by | s | estimate, ms | ratio | enclosed as well, ms | ratio"
    print(f"| {row} |", "|---" * (row.count("|") + 1) + "|", sep="\n")
    for part, answers in zip(SETTINGS, peers, strict=True):
        mechanism = composed([part])
        truth, _ = certified(mechanism, delta)
        names = [name for name, (found, _) in answers.items() if not isinstance(found[-1], str)]
        grids = [name for name in names if name.startswith("dp-accounting")]
        if isinstance(truth, str) or not grids:
            continue
        estimate_ms = _estimated(mechanism, delta)
        for turn, name in enumerate(dict.fromkeys((DEFAULT_GRID, grids[-1]))):
            (found, seconds) = answers[name]
            line = [*map(str, part), name.split()[1], *(["–"] * 6)]
            if name in grids:
                off = abs(found[-1] / float(truth.lower) - 1)
                width = Fraction(max(off, 1e-9)).limit_denominator(10**12)
                enclosed_ms = _enclosed(part, delta, width, turn)
                line[4:] = [few(off, 1), f"{seconds:.2f}", *_beside(seconds, estimate_ms)]
                line += _beside(seconds, enclosed_ms)
            print("| " + " | ".join(line) + " |", flush=True)


DEFAULT_GRID = "dp-accounting 0.0001"


def _beside(seconds: float, ours: float | None) -> list[str]:
    """Return our milliseconds, and how many times as long a peer took."""
    return ["refused", "–"] if ours is None else [f"{ours:.2f}", f"{1e3 * seconds / ours:.0f}"]


def _estimated(mechanism: Composed, delta: str, times: int = 50) -> float | None:
    """Return the milliseconds of an estimate of ε, engines made anew; None if refused."""
    known: dict[str, Any] = {"adjacency": "add-remove"}
    try:
        estimate.estimate_epsilon(mechanism, float(delta), **known)
    except DpassayError:
        return None
    started = time.process_time()
    for _ in range(times):
        forget()
        estimate.estimate_epsilon(mechanism, float(delta), **known)
    return 1e3 * (time.process_time() - started) / times


def _enclosed(part: Part, delta: str, width: Fraction, turn: int) -> float:
    """Return the milliseconds of an enclosure of ε of a release that was not asked about before."""
    sigma, q, count = part
    point = "" if "." in sigma else "."
    alike = [composed([(f"{sigma}{point}000{turn}{i}", q, count)]) for i in range(1, 8)]
    return 1e3 * statistics.median(certified(one, delta, [width])[1] for one in alike)


BUDGETS = [
    ("1", "1e-5", "0.01", 1000),
    ("1", "1e-6", "0.01", 1000),
    ("2", "1e-5", "0.004", 7000),
    ("8", "1e-6", "0.05", 2000),
    ("1", "1e-8", "0.001", 10**5),
    ("3", "1e-5", "0.2", 50),
    ("1/2", "1e-5", "0.001", 10**6),
    ("1", "1e-5", "0.5", 10),
    ("1", "1e-5", "0.0001", 10**7),
]
"""ε, δ, q and count."""


def _calibrated(solve: Callable[[EpsilonDelta, str, int, Gaussian], object]) -> float:
    """Return the median milliseconds of one kind of calibration over the budgets."""
    samples = []
    for epsilon, delta, q, count in BUDGETS:
        target, beside = EpsilonDelta(epsilon, delta), EpsilonDelta(epsilon, f"1.1{delta[1:]}")
        near = _least_noise(beside, q, count, Gaussian(standard_deviation=1)).least
        noise = Gaussian(standard_deviation=f"{float(near.lower):.2g}")
        forget()
        started = time.process_time()
        solve(target, q, count, noise)
        samples.append(1e3 * (time.process_time() - started))
    return statistics.median(samples)


def _least_noise(target: EpsilonDelta, q: str, count: int, noise: Gaussian) -> Calibration:
    return calibrate("Gaussian", target, adjacency="add-remove", count=count, sampling_prob=q)


def _largest_rate(target: EpsilonDelta, q: str, count: int, noise: Gaussian) -> Share:
    return largest_sampling_prob(noise, target, count)


def _most_releases(target: EpsilonDelta, q: str, count: int, noise: Gaussian) -> int:
    return most_releases(PoissonSubsampled(noise, q), target, adjacency="add-remove")


def _time(parts: list[Part], what: str) -> float:
    """Return the median milliseconds of the public estimate for REMOVE, engines made anew."""
    mechanism = composed(parts)
    known: dict[str, Any] = {
        "adjacency": "add-remove",
        "direction": Direction.REMOVE,
    }
    epsilon = estimate.estimate_epsilon(mechanism, log_delta=-12.0, **known)
    samples = []
    for _ in range(101):
        forget()
        started = time.process_time()
        if what == "delta":
            estimate.estimate_log_delta(mechanism, epsilon, **known)
        else:
            estimate.estimate_epsilon(mechanism, log_delta=-12.0, **known)
        samples.append(1e3 * (time.process_time() - started))
    return statistics.median(samples)


def _many() -> float:
    """Return milliseconds for each of a thousand δ of one array."""
    points = np.linspace(-5.0, -400.0, 1000)
    started = time.process_time()
    estimate.estimate_epsilon(
        composed([("1.1", "0.004", 10**6)]), log_delta=points, adjacency="add-remove",
        direction=Direction.REMOVE,
    )  # fmt: skip
    return 1e3 * (time.process_time() - started) / len(points)


def gaussian(options: argparse.Namespace) -> None:
    """Hold the engine against the closed form for Gaussian releases up to count 10¹²."""
    print("| count | δ | closed form | contour | estimate off by |\n|---|---|---|---|---|")
    for count in (10**3, 10**6, 10**9, 10**12):
        for delta in ("1e-5", "1e-100"):
            release = Gaussian(standard_deviation=100)
            closed = profile.epsilon(Composed(release, count), delta)
            (pair,) = release.worst_case(None).remove
            smooth = Product(((pair, count),), FOURIER)
            guess = smooth.known.epsilon(math.log(float(delta)))
            assert guess is not None
            at = Interval(closed.lower, closed.lower).ball()
            from dpassay.accountant.composition.product import ends

            value = smooth.hockey_stick(ends(at)[0])
            print(
                f"| {few(count, 1)} | {delta} | {closed} | δ = {Interval.of_ball(value)} "
                f"| {few(abs(guess / float(closed.lower) - 1), 1)} |"
            )


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("settings", "soundness", "speed", "ratios", "gaussian"))
    parser.add_argument("--peers-python")
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--seconds", type=int, default=LIMIT, help="for one certified answer")
    parser.add_argument("--deltas", default=",".join(DELTAS))
    parser.add_argument("--number", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--digits", type=float, default=300, help="delta from 1e-2 to 1e-DIGITS")
    options = parser.parse_args()
    signal.signal(signal.SIGPROF, ring)
    globals()[options.part](options)
    print(f"{platform.platform()}, Python {sys.version.split()[0]}, numpy {np.__version__}")


if __name__ == "__main__":
    main()

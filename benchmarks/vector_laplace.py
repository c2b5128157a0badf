"""Laplace noise on a vector of known shifts: exact answers, and what a theorem asks for.

    python -P benchmarks/vector_laplace.py [TABLE]

The tables are speed, different, scale, theorem and crossover; without a name, all of them are
printed, in Markdown. Seconds are CPU time of a cold call.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial

from flint import arb, ctx

from dpassay.accountant.budget.calibrate import calibrate
from dpassay.accountant.budget.target import EpsilonDelta
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.mechanisms import Gaussian, LaplaceVector
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.numbers.reading import few
from dpassay.accountant.questions import profile, tradeoff

WIDTH = Fraction(1, 10**9)
SEED = 1


def timed(ask: Callable[[], Interval]) -> str:
    """Return the value, its relative width and the seconds."""
    started = time.process_time()
    try:
        found = ask()
    except UndecidedError as refusal:
        return f"{str(refusal)[:60]}… | | {time.process_time() - started:.2f}"
    seconds = time.process_time() - started
    return f"{found} | {few(found.relative_width or 0, 1)} | {seconds:.2f}"


def speed() -> None:
    """Print δ, ε and β of many equal shifts."""
    print("| d | shift / scale | question | value | width | s |\n|---|---|---|---|---|---|")
    for d, scale in ((100, 10), (1000, 10), (1000, 131), (10_000, 10)):
        mechanism = LaplaceVector(scale, [1] * d)
        name = f"| {d} | 1/{scale} "
        middle = str(round(d / scale**2 * 2 + 1))
        print(
            f"{name}| δ({middle}) |",
            timed(partial(profile.delta, mechanism, middle, relative_width=WIDTH)),
            "|",
        )
        for delta in ("1e-5", "1e-20", "1e-100"):
            print(
                f"{name}| ε({delta}) |",
                timed(partial(profile.epsilon, mechanism, delta, relative_width=WIDTH)),
                "|",
                flush=True,
            )
        print(
            f"{name}| β(0.05) |",
            timed(partial(tradeoff.beta, mechanism, "0.05", relative_width=WIDTH)),
            "|",
        )


def different() -> None:
    """Print δ(1) for shifts that all differ, of l2 norm 1."""
    chosen = random.Random(SEED)
    print("| d | scale | relative width asked | δ(1) | width | s |\n|---|---|---|---|---|---|")
    for d, scale in ((30, 3), (100, 4), (1000, 5)):
        sizes = [chosen.random() for _ in range(d)]
        norm = math.sqrt(math.fsum(size**2 for size in sizes))
        shifts = [Fraction(round(size / norm * 10**9), 10**9) for size in sizes]
        for width in ("1e-6", "1e-9"):
            mechanism, asked = LaplaceVector(scale, shifts), Fraction(width)
            found = timed(partial(profile.delta, mechanism, 1, relative_width=asked))
            print(f"| {d} | {scale} | {width} | {found} |", flush=True)


def theorem_scale(epsilon: float, log_inverse: float) -> float:
    """Return the scale of Lemma 5.4 for l2 sensitivity 1."""
    return 1 / (math.sqrt(2) * (math.sqrt(log_inverse + epsilon) - math.sqrt(log_inverse)))


def theorem_epsilon(first: float, second: float, log_inverse: float) -> float:
    """Return the ε of Theorem 1.3 for norms in units of the scale."""
    return min(first, second * (second / 2 + math.sqrt(2 * log_inverse)))


def scale_table() -> None:
    """Print the least scale of d equal shifts of l2 norm 1 at ε = 1, and what others ask for."""
    print("| d | δ | λ, Lemma 5.4 | least λ | variance wasted | Laplace / Gaussian variance | s |")
    print("|---|---|---|---|---|---|---|")
    for d in (1, 4, 16, 64, 256, 1000):
        for delta in ("1e-6", "1e-12"):
            printed = min(math.sqrt(d), theorem_scale(1, -math.log(float(delta))))
            started = time.process_time()
            least = least_of_equal(d, delta)
            seconds = time.process_time() - started
            sigma = calibrate(Gaussian, EpsilonDelta(1, delta)).least
            ratio = 2 * float(least.upper) ** 2 / float(sigma.upper) ** 2
            print(
                f"| {d} | {delta} | {printed:.4f} | {float(least.upper):.10g} "
                f"| {(printed / float(least.upper)) ** 2:.3f} | {ratio:.3f} | {seconds:.2f} |",
                flush=True,
            )


def least_of_equal(d: int, delta: str) -> Interval:
    """Return the least scale for d shifts of 1/√d at ε = 1, to 1e-12."""
    return calibrate(LaplaceVector, EpsilonDelta(1, delta), shifts=[f"sqrt(1/{d})"] * d).least


def theorem() -> None:
    """Print the ε of Theorem 1.3 and the exact one."""
    print("| d | l2 / λ | δ | ε, Theorem 1.3 | exact ε | theirs / exact | δ at their ε |")
    print("|---|---|---|---|---|---|---|")
    for d, second in ((10, "1"), (100, "1"), (1000, "1"), (1000, "1/5"), (100, "3")):
        size = Fraction(second)
        mechanism = LaplaceVector(1, [f"sqrt({size**2 / d})"] * d)
        for delta in ("1e-5", "1e-12"):
            stated = theorem_epsilon(
                float(size) * math.sqrt(d), float(size), -math.log(float(delta))
            )
            least = profile.epsilon(mechanism, delta, relative_width=WIDTH)
            there = profile.delta(mechanism, f"{stated:.12g}", relative_width=WIDTH)
            print(
                f"| {d} | {second} | {delta} | {stated:.5f} | {least} "
                f"| {stated / float(least.upper):.3f} | {few(there.upper, 3)} |",
                flush=True,
            )


def crossover() -> None:
    """Print the largest d at which Laplace noise on d equal shifts has less variance."""
    print(
        "| δ | d with less Laplace variance, ε = 1 | Laplace / Gaussian variance there, and next |"
    )
    print("|---|---|---|")
    for delta in ("1e-5", "1e-6", "1e-9", "1e-12", "1e-20", "1e-50"):
        sigma = calibrate(Gaussian, EpsilonDelta(1, delta)).least

        def ratio(d: int, delta: str = delta, sigma: Interval = sigma) -> arb:
            with ctx.workprec(128):
                return 2 * (least_of_equal(d, delta).ball() / sigma.ball()) ** 2

        low, high = 1, 2
        while ratio(high) < 1:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if ratio(middle) < 1 else (low, middle)
        print(
            f"| {delta} | {low} | {float(ratio(low)):.4f}, {float(ratio(high)):.4f} |", flush=True
        )


TABLES: dict[str, Callable[[], None]] = {
    "speed": speed,
    "different": different,
    "scale": scale_table,
    "theorem": theorem,
    "crossover": crossover,
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", nargs="?", choices=sorted(TABLES))
    arguments = parser.parse_args()
    for name, table in TABLES.items():
        if arguments.table in {None, name}:
            print(f"\n{name}\n")
            table()


if __name__ == "__main__":
    main()

"""Ask dp-accounting and prv-accountant the questions of `accountant.py`, one JSON line each.

Read from stdin: a list of [parts, delta], a part being [standard deviation, sampling probability,
count]. Answers are {peer: [epsilon, or lower and upper, or a text that says what went wrong;
seconds]}. The limit is one of computing time: C code is not interrupted, so that an answer may
take longer.
"""

from __future__ import annotations

import json
import math
import signal
import sys
import time
import warnings
from collections.abc import Callable
from functools import reduce
from typing import Any

GRIDS = (1e-3, 1e-4, 1e-5)
Part = tuple[float, float, int]


class TooLongError(Exception):
    """The time of a question is over."""


def dp_accounting(grid: float) -> Callable[..., list[float]]:
    """Return a question to the pessimistic distribution at a grid, add/remove."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    def ask(parts: list[Part], delta: float) -> list[float]:
        laws = [
            pld.from_gaussian_mechanism(
                sigma, sampling_prob=q, value_discretization_interval=grid
            ).self_compose(count)
            for sigma, q, count in parts
        ]
        together = reduce(lambda first, second: first.compose(second), laws)
        return [float(together.get_epsilon_for_delta(delta))]

    return ask


def prv_accountant(parts: list[Part], delta: float) -> list[float]:
    """Return lower bound and upper bound."""
    from prv_accountant import PRVAccountant
    from prv_accountant.privacy_random_variables import PoissonSubsampledGaussianMechanism

    prvs = [
        PoissonSubsampledGaussianMechanism(noise_multiplier=sigma, sampling_probability=q)
        for sigma, q, _ in parts
    ]
    counts = [count for _, _, count in parts]
    accountant = PRVAccountant(
        prvs=prvs, max_self_compositions=counts, eps_error=0.1, delta_error=delta / 1000
    )
    low, _, high = accountant.compute_epsilon(delta=delta, num_self_compositions=counts)
    return [float(low), float(high)]


def answer(ask: Callable[..., list[float]], question: list[Any], limit: int) -> list[Any]:
    """Ask with a time limit; return what came out, and the seconds."""
    parts, delta = question
    started = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, limit)
    found: list[Any]
    try:
        found = [
            value if math.isfinite(value) else str(value)
            for value in ask(
                [(float(sigma), float(q), count) for sigma, q, count in parts], float(delta)
            )
        ]
    except TooLongError:
        found = [f"more than {limit} s"]
    except (ArithmeticError, ImportError, MemoryError, RuntimeError, ValueError) as error:
        found = [type(error).__name__]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return [found, time.process_time() - started]


def main() -> None:
    """Answer all questions."""

    def ring(*_: object) -> None:
        raise TooLongError

    signal.signal(signal.SIGPROF, ring)
    warnings.simplefilter("ignore")
    limit = int(sys.argv[1])
    peers = {f"dp-accounting {grid:g}": dp_accounting(grid) for grid in GRIDS}
    peers["prv-accountant"] = prv_accountant
    for question in json.load(sys.stdin):
        row = {name: answer(ask, question, limit) for name, ask in peers.items()}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()

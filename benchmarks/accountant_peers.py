"""Ask dp-accounting and prv-accountant the questions of `accountant.py`, one JSON line each.

Read from stdin: a list of [standard deviation, sampling probability, count, delta]. Answers are
{peer: [epsilon, or lower and upper, or a text that says what went wrong; seconds]}.
"""

from __future__ import annotations

import json
import math
import signal
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

GRIDS = (1e-3, 1e-4, 1e-5)


class TooLongError(Exception):
    """The time of a question is over."""


def dp_accounting(grid: float) -> Callable[..., list[float]]:
    """Return a question to the pessimistic distribution at a grid, add/remove."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    def ask(sigma: float, q: float, count: int, delta: float) -> list[float]:
        one = pld.from_gaussian_mechanism(
            sigma, sampling_prob=q, value_discretization_interval=grid
        )
        return [float(one.self_compose(count).get_epsilon_for_delta(delta))]

    return ask


def prv_accountant(sigma: float, q: float, count: int, delta: float) -> list[float]:
    """Return lower bound and upper bound."""
    from prv_accountant import PRVAccountant
    from prv_accountant.privacy_random_variables import PoissonSubsampledGaussianMechanism

    prv = PoissonSubsampledGaussianMechanism(noise_multiplier=sigma, sampling_probability=q)
    accountant = PRVAccountant(
        prvs=[prv], max_self_compositions=[count], eps_error=0.1, delta_error=delta / 1000
    )
    low, _, high = accountant.compute_epsilon(delta=delta, num_self_compositions=[count])
    return [float(low), float(high)]


def answer(ask: Callable[..., list[float]], question: list[Any], limit: int) -> list[Any]:
    """Ask with a time limit; return what came out, and the seconds."""
    sigma, q, count, delta = question
    started = time.perf_counter()
    signal.alarm(limit)
    found: list[Any]
    try:
        found = [
            value if math.isfinite(value) else str(value)
            for value in ask(float(sigma), float(q), count, float(delta))
        ]
    except TooLongError:
        found = [f"more than {limit} s"]
    except (ArithmeticError, ImportError, MemoryError, RuntimeError, ValueError) as error:
        found = [type(error).__name__]
    finally:
        signal.alarm(0)
    return [found, time.perf_counter() - started]


def main() -> None:
    """Answer all questions."""

    def ring(*_: object) -> None:
        raise TooLongError

    signal.signal(signal.SIGALRM, ring)
    warnings.simplefilter("ignore")
    limit = int(sys.argv[1])
    peers = {f"dp-accounting {grid:g}": dp_accounting(grid) for grid in GRIDS}
    peers["prv-accountant"] = prv_accountant
    for question in json.load(sys.stdin):
        row = {name: answer(ask, question, limit) for name, ask in peers.items()}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()

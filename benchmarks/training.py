"""Random allocation in forty settings: ε, its width and seconds, beside our Poisson number.

    python -P benchmarks/training.py [FILE.json] [--only one|several]
                                     [--peer-python PYTHON] [--limit SECONDS] [--samples N]

All are asked for to 1e-9. The seconds are computing time, of a question whose lines are not known.
PYTHON is an interpreter that has PLD_accounting, dp-accounting and jax-privacy. It answers beside
ours in direction REMOVE, the larger one: PLD_accounting's two ends of ε, where they come within
--limit seconds; dp-accounting's ε for Poisson samples (it has no event for random allocation); and
for one epoch at δ = 0.01 the δ of JAX-Privacy's Monte Carlo at our ε, of N samples.
"""

from __future__ import annotations

import argparse
import json
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

ONE = [
    (sigma, steps, 1, delta, direction)
    for sigma, steps in (
        ("0.6", 10),
        ("0.6", 100),
        ("1", 10),
        ("1", 1000),
        ("2", 100),
        ("3", 10000),
    )
    for delta in ("1e-2", "1e-5", "1e-8", "1e-12")
    for direction in ("REMOVE", "ADD")
    if delta in ("1e-5", "1e-12") or direction == "REMOVE"
][:28]
SEVERAL = [
    (sigma, steps, epochs, delta, direction)
    for sigma, steps, epochs, delta in (
        ("0.6", 100, 10, "1e-5"),
        ("1", 100, 10, "1e-8"),
        ("1", 1000, 30, "1e-5"),
        ("2", 100, 100, "1e-5"),
        ("2", 1000, 10, "1e-12"),
        ("0.6", 3, 3, "1e-5"),
    )
    for direction in ("REMOVE", "ADD")
]


def asked(sigma: str, steps: int, epochs: int, delta: str, direction: str) -> dict[str, Any]:
    """Return one row."""
    import dpassay
    from accountant.pairs import allocation_sum

    release = dpassay.RandomAllocation(dpassay.Gaussian(standard_deviation=sigma), steps)
    whole = release if epochs == 1 else dpassay.Composed(release, epochs)
    row: dict[str, Any] = {
        "sigma": sigma,
        "steps": steps,
        "epochs": epochs,
        "delta": delta,
        "direction": direction,
    }
    allocation_sum.line.cache_clear()
    start = time.process_time()
    try:
        found = dpassay.epsilon(
            whole,
            delta,
            adjacency="add-remove",
            direction=dpassay.Direction[direction],
            relative_width=Fraction(1, 10**9),
        )
    except dpassay.DpassayError as error:
        return row | {"error": str(error)[:100], "seconds": time.process_time() - start}
    row["seconds"] = time.process_time() - start
    row |= {"lower": str(found.lower), "upper": str(found.upper)}
    row["width"] = float(found.relative_width or 0)
    poisson = dpassay.epsilon(
        dpassay.Composed(
            dpassay.PoissonSubsampled(release.mechanism, Fraction(1, steps)), steps * epochs
        ),
        delta,
        adjacency="add-remove",
        direction=dpassay.Direction[direction],
    )
    return row | {"poisson": f"{poisson:.6g}"}


def peers(row: dict[str, Any], limit: float, samples: int) -> dict[str, Any]:
    """Return what three libraries say, each with its seconds; a text where one does not answer."""
    sigma, steps, epochs, delta = (float(row[key]) for key in _KEYS[:4])

    def allocated() -> list[float]:
        from PLD_accounting import gaussian_allocation_epsilon_range

        upper, lower = gaussian_allocation_epsilon_range(
            delta=delta, sigma=sigma, num_steps=int(steps), num_epochs=int(epochs)
        )
        return [lower, upper]

    def sampled() -> float:
        from dp_accounting import dp_event, pld

        one = dp_event.PoissonSampledDpEvent(1 / steps, dp_event.GaussianDpEvent(sigma))
        accountant = pld.PLDAccountant().compose(one, int(steps * epochs))
        return float(accountant.get_epsilon(delta))

    def drawn() -> float:
        import numpy as np
        from jax_privacy import batch_selection
        from jax_privacy.experimental.monte_carlo import delta_calculation, sample_generation

        scheme = batch_selection.BallsInBinsSampling(int(steps), int(steps))
        rng = np.random.default_rng(1)
        losses = [
            sample_generation.get_privacy_loss_sample(scheme, sigma, np.ones(1), rng)[0]
            for _ in range(samples)
        ]
        return float(delta_calculation.delta_from_epsilon_and_samples(row["epsilon"], losses))

    found = {"pld_accounting": timed(allocated, limit), "dp_accounting": timed(sampled, limit)}
    if epochs == 1 and delta >= _SAMPLED:
        found["jax_privacy_delta"] = timed(drawn, limit)
    return found


def timed(ask: Callable[[], Any], limit: float) -> dict[str, Any]:
    """Return an answer and its seconds."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"more than {limit:g} s")

    signal.signal(signal.SIGPROF, stop)
    start = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        answer = ask()
    except Exception as error:  # noqa: BLE001  # whatever another library raises is its answer
        answer = f"{type(error).__name__}: {error}"[:80]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return {"answer": answer, "seconds": round(time.process_time() - start, 3)}


def answers(python: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Ask all, with what another interpreter says in direction REMOVE."""
    settings = {"one": ONE, "several": SEVERAL}.get(options.only, ONE + SEVERAL)
    serve = [python, "-P", __file__, "--serve", "--limit", options.limit]
    serve += ["--samples", options.samples]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    server = subprocess.Popen(list(map(str, serve)), text=True, **pipes) if python else None
    for setting in settings:
        row = asked(*setting)
        if server is not None and row["direction"] == "REMOVE" and "lower" in row:
            assert server.stdin is not None
            assert server.stdout is not None
            print(json.dumps(row | {"epsilon": float(row["lower"])}), file=server.stdin, flush=True)
            row |= json.loads(server.stdout.readline())
        yield row


def main() -> None:
    """Ask all, and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?")
    parser.add_argument("--only", choices=("one", "several"))
    parser.add_argument("--peer-python", default="")
    parser.add_argument("--limit", type=float, default=180)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        for line in sys.stdin:
            print(json.dumps(peers(json.loads(line), options.limit, options.samples)), flush=True)
        return
    rows = []
    for row in answers(options.peer_python, options):
        rows.append(row)
        print(*(row[k] if k in _KEYS else f"{k}={row[k]}" for k in row), flush=True)
    seconds = sorted(row["seconds"] for row in rows)
    print(
        f"{len(rows)} settings; seconds: median {seconds[len(seconds) // 2]:.2f}, "
        f"most {seconds[-1]:.2f}"
    )
    if options.file:
        with open(options.file, "w", encoding="utf-8") as file:
            json.dump(
                {"machine": platform.machine(), "python": platform.python_version(), "rows": rows},
                file,
                indent=1,
            )


_KEYS = ("sigma", "steps", "epochs", "delta", "direction")
_SAMPLED = 0.01
"""The least δ for which samples are drawn: smaller ones need more than a minute of them."""

if __name__ == "__main__":
    main()

"""Random allocation in forty settings: ε, its width and seconds, beside three other libraries.

    python -P benchmarks/training.py [FILE.json] [--peer-python PYTHON] [--limit SECONDS]
                                     [--samples N] [--markdown FILE.md]

All are asked for to 1e-9. The seconds are computing time, of a question whose lines are not known.
PYTHON is an interpreter that has PLD_accounting, dp-accounting and jax-privacy, which answer beside
ours: PLD_accounting's two ends of ε in either direction, where they come within --limit seconds;
dp-accounting's ε for Poisson samples (it has no event for random allocation, and no direction: it
says the larger one); and for one epoch at δ = 0.01 the δ of JAX-Privacy's Monte Carlo at our ε, of
N samples in direction REMOVE. --markdown writes the table of docs/training.md.
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
    if delta == "1e-5" or direction == "REMOVE"
]
SEVERAL = [
    (sigma, steps, epochs, delta, direction)
    for sigma, steps, epochs, delta in (
        ("0.6", 100, 10, "1e-5"),
        ("1", 100, 10, "1e-8"),
        ("1", 1000, 30, "1e-5"),
        ("2", 100, 100, "1e-5"),
        ("2", 1000, 10, "1e-12"),
    )
    for direction in ("REMOVE", "ADD")
]


def asked(sigma: str, steps: int, epochs: int, delta: str, direction: str) -> dict[str, Any]:
    """Return one row."""
    import dpassay
    from dpassay.accountant.pairs import allocation

    release = dpassay.RandomAllocation(dpassay.Gaussian(standard_deviation=sigma), steps)
    whole = release if epochs == 1 else dpassay.Composed(release, epochs)
    row: dict[str, Any] = {
        "sigma": sigma,
        "steps": steps,
        "epochs": epochs,
        "delta": delta,
        "direction": direction,
    }
    allocation.line.cache_clear()
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
    return row | {
        "poisson": str(poisson.upper),
        "poisson_width": float(poisson.relative_width or 0),
    }


def peers(row: dict[str, Any], limit: float, samples: int) -> dict[str, Any]:
    """Return what three libraries say, each with its seconds; a text where one does not answer."""
    sigma, steps, epochs, delta = (float(row[key]) for key in _KEYS[:4])
    remove = row["direction"] == "REMOVE"

    def one_direction(*, params: Any, config: Any, bound_type: Any) -> Any:
        from PLD_accounting import random_allocation_api as api

        law = api.gaussian_allocation_directional_pld(
            params=params,
            config=config,
            bound_type=bound_type,
            direction=api.Direction[row["direction"]],
        )
        return api.compose_full_pld(remove_dist=law, add_dist=law, bound_type=bound_type)

    def allocated() -> list[float]:
        from PLD_accounting.random_allocation_api import (
            PrivacyParams,
            gaussian_allocation_epsilon_range,
            optimize_allocation_epsilon_range,
        )

        run = {"delta": delta, "sigma": sigma, "num_steps": int(steps), "num_epochs": int(epochs)}
        if remove:
            upper, lower = gaussian_allocation_epsilon_range(**run)
            return [lower, upper]
        found = optimize_allocation_epsilon_range(
            params=PrivacyParams(**run), target_accuracy=-1.0, pld_builder=one_direction
        )
        return [found.lower_bound, found.upper_bound]

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

    found = {"pld_accounting": timed(allocated, limit)}
    if remove:
        found["dp_accounting"] = timed(sampled, limit)
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
    """Ask all, with what another interpreter says."""
    serve = [python, "-P", __file__, "--serve", "--limit", options.limit]
    serve += ["--samples", options.samples]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    server = subprocess.Popen(list(map(str, serve)), text=True, **pipes) if python else None
    for setting in ONE + SEVERAL:
        row = asked(*setting)
        if server is not None and "lower" in row:
            assert server.stdin is not None
            assert server.stdout is not None
            print(json.dumps(row | {"epsilon": float(row["lower"])}), file=server.stdin, flush=True)
            row |= json.loads(server.stdout.readline())
        yield row


def summary(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield what all rows say together."""
    seconds = sorted(row["seconds"] for row in rows)
    widths = max(row["width"] for row in rows)
    yield (
        f"{len(rows)} settings; widest {widths:.2g}; seconds: median "
        f"{seconds[len(seconds) // 2]:.2f}, most {seconds[-1]:.2f}"
    )
    for direction in ("REMOVE", "ADD"):
        ratios = sorted(worse(row) for row in rows if row["direction"] == direction)
        yield (
            f"{direction}: epsilon above that of Poisson samples in "
            f"{sum(ratio > 1 for ratio in ratios)} of {len(ratios)} settings; ratios from "
            f"{ratios[0]:.3f} to {ratios[-1]:.3f}"
        )


def worse(row: dict[str, Any]) -> float:
    """Return ε over that of Poisson samples in the same direction."""
    return float(row["lower"]) / float(row["poisson"])


def markdown(rows: list[dict[str, Any]], limit: float) -> Iterator[str]:
    """Yield the table of the docs."""
    heads = ["σ", "steps", "epochs", "δ", "", "ε", "s", "PLD_accounting", "s"]
    heads += ["Poisson", "dp-accounting", "ratio"]
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    for row in rows:
        cells = [row[key] for key in _KEYS[:4]] + [row["direction"]]
        cells += [f"{float(row['upper']):.9g}", f"{row['seconds']:.2f}"]
        theirs = row.get("pld_accounting", {"answer": "", "seconds": 0})
        if isinstance(theirs["answer"], list):
            low, high = theirs["answer"]
            cells += [f"{low:.4g} to {high:.4g}", f"{theirs['seconds']:.1f}"]
        else:
            slow = "Timeout" in theirs["answer"]
            cells += ["–", f"> {limit:g}" if slow else theirs["answer"]]
        sampled = row.get("dp_accounting", {"answer": "–"})["answer"]
        cells += [f"{float(row['poisson']):.4g}"]
        cells += [f"{sampled:.4g}" if isinstance(sampled, float) else "–", f"{worse(row):.3f}"]
        yield f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    """Ask all, and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?")
    parser.add_argument("--peer-python", default="")
    parser.add_argument("--limit", type=float, default=180)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--markdown")
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
    print(*summary(rows), sep="\n")
    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as file:
            print(*markdown(rows, options.limit), sep="\n", file=file)
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

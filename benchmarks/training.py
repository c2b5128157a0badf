"""Random allocation in forty settings: ε, its width and seconds, beside our Poisson number.

    python -P benchmarks/training.py [FILE.json] [--only one|several]

All are asked for to 1e-9. The seconds are of this process alone, and of a question whose lines are
not known. dp-accounting 0.6.0 has no event for random allocation, so that no peer is shown.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from fractions import Fraction
from typing import Any

import dpassay
from accountant.pairs import allocation_sum

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


def main() -> None:
    """Ask all, and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?")
    parser.add_argument("--only", choices=("one", "several"))
    options = parser.parse_args()
    settings = {"one": ONE, "several": SEVERAL}.get(options.only, ONE + SEVERAL)
    rows = []
    for setting in settings:
        row = asked(*setting)
        rows.append(row)
        print(*setting, *(f"{k}={row[k]}" for k in row if k not in _KEYS), flush=True)
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

if __name__ == "__main__":
    main()

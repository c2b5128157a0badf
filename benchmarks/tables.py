"""Tables of rational numbers and reports of one person: what docs/local.md shows.

    python -P benchmarks/tables.py

Random tables have entries 1 to 29 over their sum, drawn from a fixed seed. Times are CPU seconds.

"""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.mechanisms import (
    Channel,
    Composed,
    HadamardResponse,
    LocalHashing,
    RandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
)
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import accuracy, guarantees, profile

DELTA = "1e-6"


def table(size: int) -> Channel:
    """Return a random square table."""
    rows = np.random.default_rng(size).integers(1, 30, (size, size))
    return Channel([[Fraction(int(entry), int(row.sum())) for entry in row] for row in rows])


def shown(found: Interval, digits: int = 6) -> str:
    """Print a number, or both of its ends."""
    low, high = (f"{float(end):.{digits}g}" for end in (found.lower, found.upper))
    return low if low == high else f"{low} … {high}"


def channels() -> None:
    """Print what is known of random tables, alone and composed."""
    print("| table | δ(½) | largest loss | CPU s | ε(1e-6) of 10 | CPU s | of 1000 | CPU s |")
    print("|---|---|---|---|---|---|---|---|")
    for size in (2, 5, 10, 20, 50):
        made, cells = table(size), [f"{size} × {size}"]
        start = time.process_time()
        cells += [shown(profile.delta(made, "1/2")), shown(profile.epsilon(made, 0))]
        cells.append(f"{time.process_time() - start:.2f}")
        for count in (10, 1000):
            start = time.process_time()
            cells.append(shown(profile.epsilon(Composed(made, count), DELTA)))
            cells.append(f"{time.process_time() - start:.2f}")
        print(f"| {' | '.join(cells)} |")


def reports(epsilon: int, categories: int = 100) -> None:
    """Print reports of one category with the same largest loss."""
    print(f"\nepsilon {epsilon}, {categories} categories")
    listed: dict[str, Mechanism] = {
        "`RandomizedResponse`": RandomizedResponse(epsilon, categories),
        "`UnaryEncoding`": UnaryEncoding(epsilon, categories),
        "`UnaryEncoding(optimised=True)`": UnaryEncoding(epsilon, categories, optimised=True),
        "`LocalHashing`": LocalHashing(epsilon, categories),
        "`HadamardResponse`": HadamardResponse(epsilon, categories),
        "`SubsetSelection`": SubsetSelection(epsilon, categories),
    }
    for name, mechanism in listed.items():
        if isinstance(mechanism, RandomizedResponse):  # a subset of one
            (variance,) = accuracy.variance(SubsetSelection(epsilon, categories, size=1))
        else:
            (variance,) = accuracy.variance(mechanism)
        start = time.process_time()
        cells = [
            shown(variance),
            shown(profile.delta(mechanism, Fraction(epsilon, 2))),
            shown(guarantees.rho(mechanism)),
            shown(profile.epsilon(Composed(mechanism, 100), DELTA)),
        ]
        print(f"| {name} | {' | '.join(cells)} | {time.process_time() - start:.2f} |")


if __name__ == "__main__":
    channels()
    for each in (1, 3):
        reports(each)

"""Single releases, beside dp-accounting: our enclosure against its optimistic and pessimistic δ.

    python -P benchmarks/agreement.py [--json FILE]

For each mechanism and ε in [0, 40] the exact δ lies in [ours.lower, ours.upper]. dp-accounting's
two privacy-loss distributions should bracket it. Where one does not, the independent mpmath route
says who is right.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mpmath
from dp_accounting.pld import privacy_loss_distribution as pld

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import profile
from tests.accountant.composition.mpmath_route import by_mpmath

EPSILONS = ("0", "0.1", "0.5", "1", "2", "3", "5", "8", "12", "20", "30", "40")
INTERVAL = 1e-4
ROUNDING = Fraction(1, 10**11)
DEEP = -400

Peer = Callable[[bool], Any]
CASES: list[tuple[Mechanism, Peer]] = [
    (
        Gaussian(standard_deviation=s),
        lambda p, s=s: pld.from_gaussian_mechanism(
            float(s), pessimistic_estimate=p, value_discretization_interval=INTERVAL
        ),
    )
    for s in ("0.5", "1", "4")
]
CASES += [
    (
        Laplace(scale=b),
        lambda p, b=b: pld.from_laplace_mechanism(
            float(b), pessimistic_estimate=p, value_discretization_interval=INTERVAL
        ),
    )
    for b in ("0.25", "1", "8")
]
CASES += [
    (
        DiscreteLaplace(scale=b, sensitivity=s),
        # the peer's parameter is 1/b
        lambda p, b=b, s=s: pld.from_discrete_laplace_mechanism(
            1 / float(b), s, pessimistic_estimate=p, value_discretization_interval=INTERVAL
        ),
    )
    for b, s in (("0.5", 1), ("2", 3), ("8", 1))
]
CASES += [
    (
        DiscreteGaussian(parameter=v),
        lambda p, v=v: pld.from_discrete_gaussian_mechanism(
            float(v) ** 0.5, pessimistic_estimate=p, value_discretization_interval=INTERVAL
        ),
    )
    for v in ("0.25", "1", "9", "100")
]


def compare(mechanism: Mechanism, peer: Peer) -> list[dict[str, Any]]:
    """Return one row for each ε."""
    started = time.perf_counter()
    low, high = peer(False), peer(True)
    build = time.perf_counter() - started
    rows = []
    for epsilon in EPSILONS:
        started = time.perf_counter()
        ours = profile.delta(mechanism, epsilon)
        seconds = time.perf_counter() - started
        started = time.perf_counter()
        theirs = [float(side.get_delta_for_epsilon(float(epsilon))) for side in (low, high)]
        rows.append(
            {
                "mechanism": repr(mechanism),
                "epsilon": epsilon,
                "ours": ours.to_json(),
                "optimistic": theirs[0],
                "pessimistic": theirs[1],
                "verdict": judge(mechanism, epsilon, ours, theirs),
                "our_seconds": seconds,
                "their_seconds": time.perf_counter() - started,
                "their_build_seconds": build,
            }
        )
    return rows


def judge(mechanism: Mechanism, epsilon: str, ours: Interval, theirs: list[float]) -> str:
    """Say whether the peer's two values bracket δ, and if not, by how much and who is right."""
    if ours.upper == 0:
        return "agree" if theirs[0] == 0 else "optimistic above: the true delta is 0"
    true = Fraction(ours.lower)
    worst = max((Fraction(theirs[0]) - true) / true, (true - Fraction(theirs[1])) / true)
    if Fraction(theirs[0]) <= Fraction(ours.upper) and true <= Fraction(theirs[1]):
        return "agree"
    if worst < ROUNDING:
        return f"within its rounding ({float(worst):.0e})"
    side = "optimistic above" if theirs[0] > ours.upper else "pessimistic below"
    if ours.lower.adjusted() < DEEP:
        return f"{side} (many orders); beyond the reach of the mpmath sums and of floats"
    pair = mechanism.worst_case(None).remove[0]
    digits = 30 - ours.lower.adjusted() // 2  # the reference sums down to far below delta
    with mpmath.workdps(digits):
        reference = by_mpmath(pair).hockey_stick(exact(epsilon), digits)
        distance = float(abs(reference / mpmath.mpf(str(ours.lower)) - 1))
    size = "many orders" if worst > 10**6 else f"{float(worst):.0e}"
    return f"{side} ({size}); the mpmath route is within {distance:.0e} of ours"


def main() -> None:
    """Print the table; with --json, write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = [row for case in CASES for row in compare(*case)]
    for row in rows:
        lower = Decimal(row["ours"]["lower"])
        print(
            f"{row['mechanism']:45} {row['epsilon']:>4} {row['optimistic']:.6e} {lower:.9e} "
            f"{row['pessimistic']:.6e}  {row['verdict']}"
        )
    agree = sum(row["verdict"] == "agree" for row in rows)
    rounding = sum(row["verdict"].startswith("within") for row in rows)
    print(
        f"dp-accounting {version('dp-accounting')}: {agree} of {len(rows)} bracketed, {rounding} "
        f"missed by its rounding alone, {len(rows) - agree - rounding} missed by more"
    )
    ours = sorted(row["our_seconds"] for row in rows)
    theirs = sorted(row["their_build_seconds"] for row in rows)
    print(f"median seconds: ours {ours[len(ours) // 2]:.2e}, one distribution pair "
          f"{theirs[len(theirs) // 2]:.2e}")  # fmt: skip
    if arguments.json:
        machine = {"platform": platform.platform(), "python": platform.python_version()}
        arguments.json.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()

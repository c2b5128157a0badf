"""Comparisons that people ask for, with calibrations held against dp-accounting.

    python -P benchmarks/compare.py [--only NAME]

Prints each comparison, how long it took, and by how much the calibrated noise of the scalar laws
differs from what dp-accounting's own closed forms ask for: its Gaussian loss at any number of
releases, its Laplace and discrete Laplace losses at one, each solved for δ by bisection.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

from dp_accounting.pld import privacy_loss_mechanism as losses

from dpassay.accountant.budget.target import EpsilonDelta
from dpassay.accountant.geometry.workload import BoundedSum, Count, Counts, PrefixSums, Workload
from dpassay.accountant.mechanisms import DiscreteLaplace, Gaussian, Laplace
from dpassay.verifier.compare import Budget, Comparison, compare
from dpassay.verifier.compare.output import best_lines, table

APPROXIMATE = EpsilonDelta(1, "1e-6")
ASKED: dict[str, tuple[Budget, Workload]] = {
    "one count": (Budget(APPROXIMATE), Count()),
    "one count, 16 releases": (Budget(APPROXIMATE, releases=16), Count()),
    "one count, 1000 releases": (Budget(APPROXIMATE, releases=1000), Count()),
    **{
        f"1000 counts, {k} a person": (Budget(APPROXIMATE), Counts(1000, k))
        for k in (1, 10, 100, 500, 1000)
    },
    "a stream of a million bits": (Budget(EpsilonDelta(1)), PrefixSums(10**6)),
    "ten skewed coordinates": (
        Budget(APPROXIMATE),
        BoundedSum([1, 1, 1, 1, 1, 2, 4, 8, 16, 32]),
    ),
}


def main() -> None:
    """Compare, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="comparisons with this in their name")
    options = parser.parse_args()
    started, disagreements = time.perf_counter(), 0
    for name, (budget, workload) in ASKED.items():
        if options.only not in name:
            continue
        found = compare(budget, workload)
        print(f"\n{name}: {found.seconds:.2f} s")
        show(found)
        for text in against_peer(found):
            print(f"  {text}")
        wrong = [row for row in found.rows if row.simulation and not row.simulation.agrees]
        disagreements += len(wrong)
    print(f"\nall: {time.perf_counter() - started:.1f} s; {disagreements} simulations disagree")


def show(found: Comparison) -> None:
    """Print the table and what is best."""
    lines = table(found)
    widths = [max(len(line[j]) for line in lines) for j in range(len(lines[0]))]
    for line, row in zip(lines, [None, *found.rows], strict=True):
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        print("  " + "  ".join(cells), f"{row.seconds:6.2f} s" if row else "seconds")
    for text in best_lines(found)[:1]:
        print(f"  {text}")


def against_peer(found: Comparison) -> list[str]:
    """Return the relative difference of each calibration to dp-accounting's closed form."""
    target = found.budget.target
    if not isinstance(target, EpsilonDelta) or target.delta.sign == 0:
        return []
    epsilon, delta = float(target.epsilon), float(target.delta)
    texts = []
    for row in found.rows:
        if row.found.least is None:
            continue
        ours = float(row.found.least.lower)
        theirs = peer(
            row.found.mechanism, row.found.whole == row.found.mechanism, found, epsilon, delta
        )
        if theirs is not None:
            difference = abs(ours / theirs - 1)
            texts.append(
                f"{row.candidate.name}: dp-accounting asks for {theirs:.12g}, {difference:.1e} off"
            )
    return texts


def peer(
    mechanism: object, alone: bool, found: Comparison, epsilon: float, delta: float
) -> float | None:
    """Return the noise by dp-accounting's closed form, where it has one."""
    if isinstance(mechanism, Gaussian):
        # k releases of sensitivity Δ are one of sensitivity Δ√k
        distance = float(mechanism.l2_sensitivity) * math.sqrt(found.budget.releases)
        return distance * least(losses.GaussianPrivacyLoss, epsilon, delta)
    if isinstance(mechanism, Laplace) and alone:
        return float(mechanism.l1_sensitivity) * least(losses.LaplacePrivacyLoss, epsilon, delta)
    if isinstance(mechanism, DiscreteLaplace) and alone and mechanism.sensitivity == 1:
        return least(lambda s: losses.DiscreteLaplacePrivacyLoss(1 / s, 1), epsilon, delta)
    return None


def least(
    loss: Callable[[float], losses.MonotonePrivacyLoss], epsilon: float, delta: float
) -> float:
    """Bisect for the noise at which a closed form gives δ."""
    low, high = 1e-3, 1e3
    for _ in range(100):
        middle = math.sqrt(low * high)
        if loss(middle).get_delta_for_epsilon(epsilon) > delta:
            low = middle
        else:
            high = middle
    return high


if __name__ == "__main__":
    main()

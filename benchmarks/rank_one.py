"""Time the exact δ of the rank-one Gaussian mechanism at the sizes of its case studies.

Prints JSON with the machine's description: the true δ at the noise that Theorem 5 of Ji and Li
prescribes for (ε, δ) = (ε, 1e-7), the relative width of its enclosure, and seconds.

Run: python -P benchmarks/rank_one.py [--calibrate]
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from fractions import Fraction

from flint import ctx

from dpassay.accountant.budget.calibrate import EpsilonDelta, calibrate
from dpassay.accountant.mechanisms.shapes.general_gaussian import RankOneGaussian
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.pairs.rank_one import theorem_5_sigma_star
from dpassay.accountant.questions import profile

DELTA = "1e-7"
WIDTH = Fraction(1, 10**15)
_PCA = "sqrt(45000/2253001)"  # 2400√2/24016
CASES = (
    (7921, "1e-5", "sqrt(2)"),
    (5760000, "0.2e-7", _PCA),
    (5760000, "0.8e-7", _PCA),
    (5760000, "1.6e-7", _PCA),
    (26010, "0.71", "1"),
    (3, "0.3", "1"),
    (4, "0.2", "1"),
)


def printed_noise(dimension: int, epsilon: str, sensitivity: str) -> Fraction:
    """Return Theorem 5's σ_*, to 20 digits."""
    with ctx.workprec(200):
        shift = exact(sensitivity).ball()
        ball = theorem_5_sigma_star(exact(epsilon).ball(), exact(DELTA).ball(), dimension, shift)
        return Fraction(Interval.of_ball(ball, 20).upper)


def row(dimension: int, epsilon: str, sensitivity: str, *, least: bool) -> dict[str, object]:
    """Measure one case."""
    sigma_star = printed_noise(dimension, epsilon, sensitivity)
    mechanism = RankOneGaussian(dimension, sigma_star, sensitivity)
    start = time.perf_counter()
    found = profile.delta(mechanism, epsilon, relative_width=WIDTH)
    seconds = time.perf_counter() - start
    width = found.relative_width
    result: dict[str, object] = {
        "dimension": dimension,
        "epsilon": epsilon,
        "sigma_star": f"{float(sigma_star):.8g}",
        "delta": str(found),
        "relative_width": None if width is None else f"{float(width):.1e}",
        "seconds": round(seconds, 3),
    }
    if least:
        start = time.perf_counter()
        needed = calibrate(
            "RankOneGaussian",
            EpsilonDelta(epsilon, DELTA),
            dimension=dimension,
            l2_sensitivity=sensitivity,
        )
        result["least_sigma_star"] = str(needed.least)
        result["calibration_seconds"] = round(time.perf_counter() - start, 1)
    return result


def main(*, least: bool) -> dict[str, object]:
    """Measure every case."""
    return {
        "benchmark": "rank-one Gaussian, exact delta",
        "claimed_delta": DELTA,
        "rows": [row(*case, least=least) for case in CASES],
        "python": platform.python_version(),
        "machine": platform.platform(),
        "cores": os.cpu_count(),
    }


if __name__ == "__main__":
    print(json.dumps(main(least="--calibrate" in sys.argv[1:]), indent=2, ensure_ascii=False))

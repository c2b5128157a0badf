"""Time the optimal ellipse with its dual certificates; print JSON with the machine's description.

Run: python -P benchmarks/ellipse.py [DIMENSION]
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time

from dpassay.accountant.geometry.ellipse import optimal_ellipse
from dpassay.accountant.geometry.spaces import defects


def main(dimension: int) -> dict[str, object]:
    """Solve and prove every sparsity of one dimension."""
    start = time.perf_counter()
    ellipses = [optimal_ellipse(dimension, sparsity) for sparsity in range(1, dimension + 1)]
    solved = time.perf_counter()
    unproved = sum(bool(defects(ellipse)) for ellipse in ellipses)
    proved = time.perf_counter()
    return {
        "benchmark": "optimal ellipse, every sparsity",
        "dimension": dimension,
        "solve_seconds": round(solved - start, 4),
        "prove_seconds": round(proved - solved, 4),
        "unproved": unproved,
        "python": platform.python_version(),
        "machine": platform.platform(),
        "cores": os.cpu_count(),
    }


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000), indent=2))

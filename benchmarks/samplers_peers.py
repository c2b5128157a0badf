"""How fast OpenDP adds exact noise to a vector; print JSON.

Run: python -P benchmarks/samplers_peers.py, with the Python that has OpenDP.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import time
from typing import Any

SIZE = 1 << 16
SCALES = (1, 10, 1000)


def per_second(measure: Any, data: list[Any]) -> int:
    """Count the numbers of one call, by the time of the processor."""
    measure(data)
    start = time.process_time()
    measure(data)
    return round(len(data) / (time.process_time() - start))


def main() -> dict[str, Any]:
    """Noise for integers (discrete laws) and for doubles (on its own lattice)."""
    dp: Any = importlib.import_module("opendp.prelude")
    dp.enable_features("contrib")
    found: dict[str, Any] = {"opendp": importlib.metadata.version("opendp")}
    whole = dp.vector_domain(dp.atom_domain(T=int))
    real = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    for scale in SCALES:
        laplace = dp.m.make_laplace(whole, dp.l1_distance(T=int), scale=float(scale))
        gaussian = dp.m.make_gaussian(whole, dp.l2_distance(T=float), scale=float(scale))
        found[f"discrete Laplace, scale {scale}"] = per_second(laplace, [0] * SIZE)
        found[f"discrete Gaussian, sigma {scale}"] = per_second(gaussian, [0] * SIZE)
    laplace = dp.m.make_laplace(real, dp.l1_distance(T=float), scale=1.0)
    gaussian = dp.m.make_gaussian(real, dp.l2_distance(T=float), scale=1.0)
    found["real Laplace on a lattice"] = per_second(laplace, [0.0] * SIZE)
    found["real Gaussian on a lattice"] = per_second(gaussian, [0.0] * SIZE)
    return found


if __name__ == "__main__":
    print(json.dumps(main()))

"""Exact noise, how fast it is drawn, and by whom; print JSON.

Run: python -P benchmarks/samplers.py [SECONDS [PYTHON]]

Every law is drawn with the operating system's secure generator, the default of every release, and
with a generator of NumPy, which can be guessed. PYTHON is that of an environment with OpenDP
(`samplers_peers.py`). Seconds are those of the processor.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dpassay.accountant.core.randomness import SECURE
from dpassay.accountant.mechanisms import Gaussian, Laplace
from dpassay.accountant.release import sampling

SIZE = 1 << 18
SCALES = (1, 10, 1000)


def per_second(draw: Callable[[], object], seconds: float) -> int:
    """Count the numbers of some calls that draw `SIZE` each."""
    draw()
    done, start = 0, time.process_time()
    while (spent := time.process_time() - start) < seconds:
        draw()
        done += SIZE
    return round(done / spent)


def laws(rng: Any) -> dict[str, Callable[[], object]]:
    """Return what draws `SIZE` numbers of each law."""
    zeros = np.zeros(SIZE)
    found: dict[str, Callable[[], object]] = {
        "uniform words": partial(rng.integers, 0, 1 << 64, SIZE, dtype=np.uint64),
        "real Laplace on a lattice": partial(Laplace(1).release, zeros, rng=rng),
        "real Gaussian on a lattice": partial(Gaussian(1).release, zeros, rng=rng),
    }
    for scale in SCALES:
        t = Fraction(scale)
        laplace = partial(sampling.discrete_laplace, t, SIZE, rng=rng)
        gaussian = partial(sampling.discrete_gaussian, t**2, SIZE, rng=rng)
        found[f"discrete Laplace, scale {scale}"] = laplace
        found[f"discrete Gaussian, sigma {scale}"] = gaussian
    return found


def peers(python: str | None) -> object:
    """Run OpenDP, where an environment with it is given."""
    if python is None:
        return "not run: no Python with OpenDP was given"
    script = Path(__file__).with_name("samplers_peers.py")
    done = subprocess.run([python, str(script)], capture_output=True, check=True)
    return json.loads(done.stdout)


def main(seconds: float, python: str | None) -> dict[str, object]:
    """Run everything."""
    generators = {"secure": SECURE, "numpy_generator": np.random.default_rng(0)}
    return {
        "benchmark": "exact samplers, numbers per second",
        **{
            name: {law: per_second(draw, seconds) for law, draw in laws(rng).items()}
            for name, rng in generators.items()
        },
        "opendp": peers(python),
        "sampcert": "not run: it is extracted from Lean, and no package of it is on PyPI",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.platform(),
    }


if __name__ == "__main__":
    given = dict(enumerate(sys.argv[1:]))
    print(json.dumps(main(float(given.get(0, 1)), given.get(1)), indent=2))

"""Audits of 10⁹ runs and more: speed, memory, and how small a δ they see.

    python -P benchmarks/scale.py speed                           values drawn and counted a second
    python -P benchmarks/scale.py memory                          peak memory for 10⁶ to 10⁸ runs
    python -P benchmarks/scale.py audit                           10⁹ runs a side, all cores
    python -P benchmarks/scale.py audit --samples 1e12 --device torch:cuda

`audit` has two claims that are false by little. *Cut noise*: p(z) ∝ (3/8)^|z| on −B … B is claimed
to be (1, 0)-DP, which it would be without the cut; B is such that at least seventy of the runs on
one dataset show what the other never does. *Gaussian*: σ = 3.65 is 2 % below what (1, 1e-5)-DP
needs. Both events come from the exact laws. Seconds are time on the clock.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import nullcontext
from fractions import Fraction
from typing import Any

import numpy as np

from accountant.core.mechanism import Mechanism
from accountant.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    EllipticalGaussian,
    Gaussian,
    IntegerNoise,
    Laplace,
    PoissonSubsampled,
    RandomizedResponse,
    Staircase,
)
from accountant.questions import profile
from verify.audit import audit
from verify.audit.device import Device, law
from verify.audit.laws import neighbours

_RATIO = Fraction(3, 8)
_SHOWN = 70
_SIGNIFICANCE = 1e-6
_SECONDS = 0.5
_LAWS: list[Mechanism] = [
    Laplace(1),
    Gaussian(1),
    Staircase(1, "0.3"),
    DiscreteLaplace(1),
    DiscreteGaussian(100),
    RandomizedResponse(1),
    PoissonSubsampled(Gaussian(1), "0.1"),
    EllipticalGaussian([1] * 100, 1),
]


def devices() -> list[str]:
    """Return the devices that this machine has."""
    found = ["numpy"]
    for name in ("torch:cpu", "torch:cuda"):
        try:
            Device.read(name)
        except ValueError as missing:
            print(f"not measured: {missing}")
        else:
            found.append(name)
    return found


def speed() -> None:
    """Print values drawn and compared with a threshold a second, by one core or one card."""
    names = devices()
    print(f"| mechanism | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    for mechanism in _LAWS:
        own = law(mechanism, neighbours(mechanism)[-1][1])
        cells = [f"{_rate(own, Device.read(name)):.2g}" for name in names]
        shown = "EllipticalGaussian, 100 coordinates" if own.parts else repr(mechanism)
        print(f"| `{shown}` | {' | '.join(cells)} |", flush=True)


def _rate(own: Any, device: Device) -> float:
    piece = (1 << 26 if device.is_accelerator else 1 << 14) // own.words_per_run
    words = device.words(1, (0, 0))
    spent, done = 0.0, -1
    with device.one_thread():
        while spent < _SECONDS:
            clock = time.perf_counter if device.is_accelerator else time.process_time
            started = clock()
            for _ in range(32):
                count = device.xp.count_nonzero(own.draw(words, piece, device) >= 1.0)
            int(count)  # waits for a card
            spent += (clock() - started) * (done >= 0)  # the first round warms up
            done += 1
    return 32 * done * piece / spent


_PROGRAMS = {
    "device": "audit(DiscreteLaplace(1), '0.99', samples=n, seed=1, device='numpy')",
    "black box": "audit(noisy, '0.9', pairs=[(0, 1)], samples=n, seed=1)",
}
_PROGRAM = """
import resource, sys
from accountant.mechanisms import DiscreteLaplace
from verify.audit import audit
def noisy(dataset, size, rng):
    return dataset + rng.geometric(0.6, size) - rng.geometric(0.6, size)
n = int(sys.argv[1])
{call}
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def memory() -> None:
    """Print the peak memory of whole audits, each in a process of its own."""
    sizes = [10**6, 10**7, 10**8]
    print(f"| audit | {' | '.join(f'{n:.0e} runs a side' for n in sizes)} |\n|---|---|---|---|")
    for name, call in _PROGRAMS.items():
        peaks = []
        for n in sizes:
            program = [sys.executable, "-c", _PROGRAM.format(call=call), str(n)]
            done = subprocess.run(program, capture_output=True, text=True, check=True)
            peaks.append(f"{int(done.stdout) / 1024:.0f} MB")
        print(f"| {name} | {' | '.join(peaks)} |", flush=True)


def cut_noise(samples: int) -> Mechanism:
    """Return p(z) ∝ (3/8)^|z| cut where about `_SHOWN` of the runs show it."""
    reach = 1
    while True:
        weights = [_RATIO ** abs(z) for z in range(-reach - 1, reach + 2)]
        if samples * weights[0] / sum(weights) < _SHOWN:
            break
        reach += 1
    weights = weights[1:-1]
    return IntegerNoise([w / sum(weights) for w in weights], lowest=-reach)


def audits(samples: int, name: str, workers: int, cases: list[str]) -> None:
    """Audit both claims and print what was found."""
    listed: dict[str, tuple[Mechanism, tuple[str, str]]] = {
        "cut noise": (cut_noise(samples), ("1", "0")),
        "Gaussian": (Gaussian("3.65"), ("1", "1e-5")),
    }
    print(
        "| mechanism | runs a side | claim | exact δ(1) | found δ(1) ≥ | p-value | s | CPU s | GB |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for case in cases:
        mechanism, claim = listed[case]
        alone = workers == 1 or Device.read(name).is_accelerator
        context: Any = nullcontext(None) if alone else ProcessPoolExecutor(workers)
        started, worked = time.perf_counter(), _processor_time()
        with context as executor:
            result = _audit(mechanism, claim, samples, name, executor)
        spent, worked = time.perf_counter() - started, _processor_time() - worked
        exact = float(profile.delta(mechanism, 1).upper)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"| {case} | {samples:.0e} | ({claim[0]}, {claim[1]}) | {exact:.3g} | "
            f"{result.delta:.3g} | {result.p_value:.2g} | {spent:.0f} | {worked:.0f} | "
            f"{peak:.2f} |",
            flush=True,
        )
        for note in result.notes:
            print(f"  {note}")


def _processor_time() -> float:
    """Return seconds of all cores, by this process and by those that ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _audit(
    mechanism: Mechanism, claim: Any, samples: int, name: str, executor: Executor | None
) -> Any:
    return audit(
        mechanism,
        claim,
        samples=samples,
        significance=_SIGNIFICANCE,
        seed=1,
        device=name,
        executor=executor,
    )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["speed", "memory", "audit"])
    parser.add_argument("--samples", type=float, default=1e9)
    parser.add_argument("--device", default="numpy")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--case", action="append", choices=["cut noise", "Gaussian"])
    options = parser.parse_args()
    if options.what == "audit":
        cases = options.case or ["cut noise", "Gaussian"]
        audits(int(options.samples), options.device, options.workers, cases)
    elif options.what == "memory":
        memory()
    else:
        print(f"{os.cpu_count()} cores; one of them; numpy {np.__version__}\n")
        speed()


if __name__ == "__main__":
    main()

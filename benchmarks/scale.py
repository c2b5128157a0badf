"""Audits of 10⁹ runs and more: speed, memory, and how small a δ they see.

    python -P benchmarks/scale.py speed                           values drawn and counted a second
    python -P benchmarks/scale.py memory                          peak memory for 10⁶ to 10⁸ runs
    python -P benchmarks/scale.py agreement --device torch:cuda   every tail against the exact law
    python -P benchmarks/scale.py crossover --device torch:cuda   whole audits on a card and a core
    python -P benchmarks/scale.py audit                           10⁹ runs a side, all cores
    python -P benchmarks/scale.py audit --samples 1e12 --device torch:cuda

`audit` has claims that are false by little. *Cut noise*: p(z) ∝ (3/8)^|z| on −B … B is claimed
to be (1, 0)-DP, which it would be without the cut; B is such that at least seventy of the runs on
one dataset show what the other never does. *Gaussian*: σ = 3.65 is 2 % below what (1, 1e-5)-DP
needs. *Laplace*: its ε is claimed 20/√n too small. *R1SMG*: the paper's parameters. All events come
from the exact laws. Seconds are time on the clock.

`agreement` draws `--samples` numbers of every law on the device. Every tail is tested against the
exact binomial law, and the first 10⁶ numbers, tail by tail, against the mechanism's own sampler
(Fisher's exact test). Both p-values are the smallest over the tails, times their number: below
10⁻⁶ the device draws another law.
"""

from __future__ import annotations

import argparse
import math
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
from scipy import stats

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    EllipticalGaussian,
    Gaussian,
    IntegerNoise,
    Laplace,
    PoissonSubsampled,
    RandomizedResponse,
    RankOneGaussian,
    Staircase,
)
from dpassay.accountant.questions import profile
from dpassay.verifier.audit import audit
from dpassay.verifier.audit.runs.device import Device, law
from dpassay.verifier.audit.runs.laws import neighbours

_RATIO = Fraction(3, 8)
_SHOWN = 70
_SIGNIFICANCE = 1e-6
_SECONDS = 0.5
_DEFAULT_CASES = ["cut noise", "Gaussian"]
_TAILS = 12
_RUNS_OF_TAIL = 100
_NUMBERS_OF_SAMPLER = 10**6
_R1SMG = RankOneGaussian(7921, "402110.1", "sqrt(2)")
_LAWS: list[Mechanism] = [
    Laplace(1),
    Gaussian(1),
    Staircase(1, "0.3"),
    DiscreteLaplace(1),
    DiscreteGaussian(100),
    RandomizedResponse(1),
    PoissonSubsampled(Gaussian(1), "0.1"),
    EllipticalGaussian([1] * 100, 1),
    _R1SMG,
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
        print(f"| `{_shown(mechanism)}` | {' | '.join(cells)} |", flush=True)


def _shown(mechanism: Mechanism) -> str:
    if isinstance(mechanism, EllipticalGaussian):
        return "EllipticalGaussian, 100 coordinates"
    return repr(mechanism)


def _rate(own: Any, device: Device) -> float:
    piece = (1 << 26 if device.is_accelerator else 1 << 14) // own.width
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
    return float(32 * done * piece / spent)


def agreement(samples: int, name: str) -> None:
    """Print the smallest p-values of the tails of every law."""
    device = Device.read(name)
    print(f"{device.description}\n\n| mechanism | runs | p, exact law | p, own sampler | s |")
    print("|---|---|---|---|---|")
    for mechanism in _LAWS:
        answer = neighbours(mechanism)[-1][1]
        own = law(mechanism, answer)
        runs = samples // own.width
        cuts = np.unique(own.cuts())
        inner = cuts[np.minimum(own.upper(cuts), own.lower(cuts)) > min(0.25, _RUNS_OF_TAIL / runs)]
        edges = inner[np.linspace(0, len(inner) - 1, _TAILS).astype(int)]
        started = time.perf_counter()
        first, counts = _tails(own, edges, runs, device)
        spent = time.perf_counter() - started
        chances = np.minimum(own.upper(edges), 1.0)
        exact = [
            stats.binomtest(int(k), runs, float(p)).pvalue
            for k, p in zip(counts, chances, strict=True)
        ]
        beside = _own_scores(mechanism, own, answer, len(first))
        fisher = [
            stats.fisher_exact(np.array([[np.sum(x >= e), np.sum(x < e)] for x in (first, beside)]))
            for e in edges
        ]
        least = min(exact), min(float(one.pvalue) for one in fisher)
        found = " | ".join(f"{min(1.0, _TAILS * p):.2g}" for p in least)
        print(f"| `{_shown(mechanism)}` | {runs:.1e} | {found} | {spent:.1f} |", flush=True)


def _tails(own: Any, edges: Any, runs: int, device: Device) -> tuple[Any, Any]:
    """Return some of the scores of a device, and how many of all reach each edge."""
    most = (1 << 26 if device.is_accelerator else 1 << 20) // own.width
    words, counts, first = device.words(7, (0, 0)), np.zeros(len(edges), dtype=np.int64), None
    for start in range(0, runs, most):
        scores = own.draw(words, min(most, runs - start), device)
        counts += np.array([int(device.xp.count_nonzero(scores >= float(e))) for e in edges])
        if first is None:
            first = scores[: _NUMBERS_OF_SAMPLER // own.width]
            first = np.asarray(first.cpu() if device.namespace == "torch" else first)
    return first, counts


def _own_scores(mechanism: Mechanism, own: Any, answer: Any, size: int) -> Any:
    """Return the scores of the mechanism's own sampler."""
    rng = np.random.default_rng(8)
    parts = []
    for start in range(0, size, 1000):
        count = min(1000, size - start)
        outputs = np.asarray(mechanism.outputs(answer, count, rng=rng)).reshape(count, -1)
        parts.append(outputs @ np.array(own.weights) if own.weights else outputs[:, 0])
    return np.concatenate(parts)


def crossover(name: str) -> None:
    """Print the seconds of whole audits of `Laplace(1)`, by one core and by a device."""
    print(f"| runs a side | numpy, one core | {name} |\n|---|---|---|")
    _audit(Laplace(1), ("0.9", "0"), 10**5, name, None)  # loads the libraries
    for power in range(5, 12):
        cells = []
        for place, largest in (("numpy", 9), (name, 11)):
            started = time.perf_counter()
            if power <= largest:
                _audit(Laplace(1), ("0.9", "0"), 10**power, place, None)
            cells.append(f"{time.perf_counter() - started:.2f}" if power <= largest else "")
        print(f"| 10^{power} | {' | '.join(cells)} |", flush=True)


_PROGRAMS = {
    "device": "audit(DiscreteLaplace(1), '0.99', samples=n, seed=1, device='numpy')",
    "black box": "audit(noisy, '0.9', pairs=[(0, 1)], samples=n, seed=1)",
}
_PROGRAM = """
import resource, sys
from dpassay.accountant.mechanisms import DiscreteLaplace
from dpassay.verifier.audit import audit
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
        "Laplace": (Laplace(1), (str(1 - 20 / Fraction(math.isqrt(samples))), "0")),
        "R1SMG": (_R1SMG, ("1e-5", "1e-7")),
    }
    print("| mechanism | runs a side | claim | exact δ | found δ ≥ | p-value | s | CPU s | GB |")
    print("|---|---|---|---|---|---|---|---|---|")
    for case in cases:
        mechanism, claim = listed[case]
        alone = workers == 1 or Device.read(name).is_accelerator
        context: Any = nullcontext(None) if alone else ProcessPoolExecutor(workers)
        started, worked = time.perf_counter(), _processor_time()
        with context as executor:
            result = _audit(mechanism, claim, samples, name, executor)
        spent, worked = time.perf_counter() - started, _processor_time() - worked
        exact = float(profile.delta(mechanism, claim[0]).upper)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        epsilon = float(Fraction(claim[0]))
        print(
            f"| {case} | {samples:.0e} | ({epsilon:.8g}, {claim[1]}) | {exact:.3g} | "
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
    parser.add_argument("what", choices=["speed", "memory", "audit", "agreement", "crossover"])
    parser.add_argument("--samples", type=float, default=1e9)
    parser.add_argument("--device", default="numpy")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--case", action="append", choices=[*_DEFAULT_CASES, "Laplace", "R1SMG"])
    options = parser.parse_args()
    if options.what == "audit":
        cases = options.case or _DEFAULT_CASES
        audits(int(options.samples), options.device, options.workers, cases)
    elif options.what == "memory":
        memory()
    elif options.what == "agreement":
        agreement(int(options.samples), options.device)
    elif options.what == "crossover":
        crossover(options.device)
    else:
        print(f"{os.cpu_count()} cores; one of them; numpy {np.__version__}\n")
        speed()


if __name__ == "__main__":
    main()

"""One audit with any executor; as a program, with the processes of MPI.

mpiexec -n 3 python -m mpi4py.futures executed.py
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import Executor
from typing import Any

import numpy as np

from dpassay.accountant.mechanisms import Laplace
from dpassay.verifier.audit import audit

CASES = ("black box", "device")


def noisy(dataset: float, size: int, rng: np.random.Generator) -> Any:
    """Rounded noise of ε = 1.1."""
    return dataset + np.rint(rng.laplace(0.0, 1 / 1.1, size)).astype(np.int64)


def evidence(case: str, executor: Executor | None) -> dict[str, Any]:
    """Return everything that an audit found but the time it took."""
    if case == "device":
        result = audit(
            Laplace(1), "0.998", samples=6_000_000, seed=3, device="numpy", executor=executor
        )
    else:
        result = audit(noisy, 1, pairs=[(0, 1)], samples=40_000, seed=3, executor=executor)
    found = {k: v for k, v in result.certificate().items() if k not in ("seconds", "seal")}
    return {**found, "p_value": repr(result.p_value)}


if __name__ == "__main__":
    from mpi4py.futures import MPIPoolExecutor

    with MPIPoolExecutor() as executor:
        workers = executor.num_workers
        json.dump([workers, *(evidence(case, executor) for case in CASES)], sys.stdout)

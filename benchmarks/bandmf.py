"""BandMF at settings like those of its paper: the authors' program (JAX-Privacy) and dpassay.

    python -P benchmarks/bandmf.py --peer-python PYTHON

Choquette-Choo, Ganesh, McKenna, McMahan, Rush, Thakurta and Xu 2023, "(Amplified) Banded Matrix
Factorization": CIFAR-10, 20 epochs of 100 batches of 500 records, δ = 1e-5, with cyclic Poisson
sampling; StackOverflow, 6 epochs of 342 rounds, δ = 1e-6, participations 342 rounds apart. PYTHON
has jax-privacy. It optimises the bands (its Toeplitz ones, of norm 1, rounded to sixteen digits,
which we take for exact) and says their sensitivity, errors and ε at noise multiplier 1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from fractions import Fraction
from typing import Any

CIFAR = [
    {"name": "CIFAR-10", "steps": 2000, "bands": b, "separation": 100, "share": [b, 100]}
    for b in (2, 5, 10, 20)
]
SETTINGS = [
    *CIFAR,
    {"name": "StackOverflow", "steps": 2052, "bands": 342, "separation": 342, "share": [1, 1]},
]
DELTAS = {"CIFAR-10": "1e-5", "StackOverflow": "1e-6"}


def theirs(row: dict[str, Any]) -> dict[str, Any]:
    """Return the coefficients of JAX-Privacy, and its sensitivity, errors and ε."""
    import dp_accounting
    import jax
    from jax_privacy.experimental import accounting
    from jax_privacy.matrix_factorization import toeplitz

    jax.config.update("jax_enable_x64", True)
    n, bands, delta = row["steps"], row["bands"], float(DELTAS[row["name"]])
    coefficients = toeplitz.optimize_banded_toeplitz(n, bands)
    errors = toeplitz.per_query_error(strategy_coef=coefficients, n=n)
    square = toeplitz.minsep_sensitivity_squared(coefficients, row["separation"], n=n)
    share = row["share"][0] / row["share"][1]
    if share < 1:
        event = accounting.amplified_bandmf_event(1.0, n, num_bands=bands, sampling_prob=share)
    else:
        event = dp_accounting.GaussianDpEvent(1 / float(square) ** 0.5)
    accountant = dp_accounting.pld.PLDAccountant().compose(event)
    return {
        "coefficients": [f"{float(c):.16g}" for c in coefficients],
        "sensitivity": float(square) ** 0.5,
        "mean": float(errors.mean()),
        "last": float(errors[-1]),
        "epsilon": float(accountant.get_epsilon(delta)),
    }


def ours(row: dict[str, Any], coefficients: list[str]) -> dict[str, Any]:
    """Return the same numbers for an exact strategy."""
    import dpassay

    n, b, delta = row["steps"], row["separation"], DELTAS[row["name"]]
    made = dpassay.MatrixMechanism(coefficients, 1, n, "min-separation", separation=b)
    share, asked, relation = Fraction(*row["share"]), made, None
    if share < 1:
        asked = dpassay.MatrixMechanism(
            coefficients, 1, n, "cyclic", separation=row["bands"], step_sampling_prob=share
        )
        relation = "add-remove"
    errors = made.variances()
    return {
        "sensitivity": made.sensitivity(),
        "mean": sum(errors) / n,
        "last": errors[-1],
        "epsilon": dpassay.epsilon(asked, delta, adjacency=relation),
    }


def main() -> None:
    """Print both results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-python", required=True)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    if "--serve" in sys.argv:
        print(json.dumps([theirs(row) for row in SETTINGS]))
        return
    options = parser.parse_args()
    asked = [options.peer_python, "-P", __file__, "--serve"]
    served = subprocess.run(asked, capture_output=True, text=True, check=True)
    print("| | bands | q | sensitivity | mean error | last error | ε at noise multiplier 1 |")
    print("|---|---|---|---|---|---|---|")
    for row, their in zip(SETTINGS, json.loads(served.stdout), strict=True):
        own = ours(row, their["coefficients"])
        cells = [row["name"], str(row["bands"]), str(Fraction(*row["share"]))]
        for name in ("sensitivity", "mean", "last", "epsilon"):
            value = own[name]
            text = f"{value:.9g}" if name in ("sensitivity", "epsilon") else f"{float(value):.9g}"
            cells.append(f"{text}; {their[name]:.9g}")
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()

"""Audit mechanisms of diffprivlib and OpenDP as they are installed, each against its own claim.

The libraries may live in another Python: its runs come through files, so that nothing of theirs
needs to be importable here.

    python -P benchmarks/third_party_audits.py --peer-python PATH [--runs 10000] [--json FILE]

Every mechanism is audited twice: with all features, and (where its outputs are numbers) for one
fixed lattice. Significance is 1e-6 per audit.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import subprocess
import sys
import tempfile
import time
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

LEVEL = 1e-6
ONE_APART = [(0.0, 1.0), (0.1, 1.1), (7.5, 8.5)]
COUNTS = [(0, 1), (5, 6)]
EDGES = [(0.0, 1.0), (0.1, 1.1), (9.0, 10.0)]
SCORES = [([0.0, 1, 0, 0], [1.0, 0, 1, 1]), ([2.0, 0, 0, 0], [1.0, 1, 1, 1])]
ROWS = [((0.0, 0.0), (0.5, 0.5)), ((0.1, 5.0), (0.6, 4.5))]

# name: (claim, pairs); the claim is what the library states for these arguments
CASES: dict[str, tuple[Any, list[Any]]] = {
    "diffprivlib Laplace": (1, ONE_APART),
    "diffprivlib LaplaceTruncated": (1, EDGES),
    "diffprivlib LaplaceFolded": (1, EDGES),
    "diffprivlib LaplaceBoundedDomain": (1, EDGES),
    "diffprivlib LaplaceBoundedNoise": ((1, "0.1"), ONE_APART),
    "diffprivlib Geometric": (1, COUNTS),
    "diffprivlib GeometricTruncated": (1, [(0, 1), (9, 10)]),
    "diffprivlib GeometricFolded": (1, [(0, 1), (9, 10)]),
    "diffprivlib Gaussian": (("0.9", "0.01"), ONE_APART),
    "diffprivlib GaussianAnalytic": ((1, "0.01"), ONE_APART),
    "diffprivlib GaussianDiscrete": ((1, "0.01"), COUNTS),
    "diffprivlib Staircase": (1, ONE_APART),
    "diffprivlib Snapping": (1, EDGES),
    "diffprivlib Uniform": ((0, "0.25"), ONE_APART),
    "diffprivlib Binary": (1, [("a", "b")]),
    "diffprivlib Exponential": (1, SCORES),
    "diffprivlib PermuteAndFlip": (1, SCORES),
    "opendp laplace (float)": (1, ONE_APART),
    "opendp laplace (int)": (1, COUNTS),
    "opendp laplace (float vector)": (1, ROWS),
    "opendp geometric": (1, COUNTS),
    "opendp geometric (bounds)": (1, [(0, 1), (9, 10)]),
    "opendp gaussian (float)": ({"mu": 1}, ONE_APART),
    "opendp gaussian (int)": ({"mu": 1}, COUNTS),
    "opendp randomized response": (1, [(False, True)]),
    "opendp noisy max": (1, SCORES),
    "numpy laplace (for comparison)": (1, ONE_APART),
}


# --- in the other Python -------------------------------------------------------------------------


def diffprivlib_call(name: str, dataset: Any) -> Any:
    """Return a function of no argument that runs one mechanism once."""
    # Only its mechanisms are needed; its models may not import with a newer scikit-learn.
    sys.modules.setdefault("diffprivlib.models", types.ModuleType("diffprivlib.models"))
    from diffprivlib import mechanisms as m

    box = {"lower": 0.0, "upper": 10.0}
    made: dict[str, Any] = {
        "Laplace": lambda: m.Laplace(epsilon=1, sensitivity=1),
        "LaplaceTruncated": lambda: m.LaplaceTruncated(epsilon=1, sensitivity=1, **box),
        "LaplaceFolded": lambda: m.LaplaceFolded(epsilon=1, sensitivity=1, **box),
        "LaplaceBoundedDomain": lambda: m.LaplaceBoundedDomain(epsilon=1, sensitivity=1, **box),
        "LaplaceBoundedNoise": lambda: m.LaplaceBoundedNoise(epsilon=1, delta=0.1, sensitivity=1),
        "Geometric": lambda: m.Geometric(epsilon=1),
        "GeometricTruncated": lambda: m.GeometricTruncated(epsilon=1, lower=0, upper=10),
        "GeometricFolded": lambda: m.GeometricFolded(epsilon=1, lower=0, upper=10),
        "Gaussian": lambda: m.Gaussian(epsilon=0.9, delta=0.01, sensitivity=1),
        "GaussianAnalytic": lambda: m.GaussianAnalytic(epsilon=1, delta=0.01, sensitivity=1),
        "GaussianDiscrete": lambda: m.GaussianDiscrete(epsilon=1, delta=0.01),
        "Staircase": lambda: m.Staircase(epsilon=1, sensitivity=1),
        "Snapping": lambda: m.Snapping(epsilon=1, sensitivity=1, **box),
        "Uniform": lambda: m.Uniform(delta=0.25, sensitivity=1),
        "Binary": lambda: m.Binary(epsilon=1, value0="a", value1="b"),
    }
    if name in ("Exponential", "PermuteAndFlip"):
        chosen = getattr(m, name)(epsilon=1, sensitivity=1, utility=list(dataset))
        return chosen.randomise
    mechanism = made[name]()
    return lambda: mechanism.randomise(dataset)


def opendp_call(name: str, dataset: Any) -> Any:
    """Return a function of no argument that runs one measurement once."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    real = dp.atom_domain(T=float, nan=False)
    whole = dp.atom_domain(T=int)
    vector = dp.vector_domain(real, size=len(dataset)) if isinstance(dataset, list) else None
    made: dict[str, Any] = {
        "laplace (float)": lambda: dp.m.make_laplace(real, dp.absolute_distance(T=float), 1.0),
        "laplace (int)": lambda: dp.m.make_laplace(whole, dp.absolute_distance(T=int), 1.0),
        "laplace (float vector)": lambda: dp.m.make_laplace(vector, dp.l1_distance(T=float), 1.0),
        "geometric": lambda: dp.m.make_geometric(whole, dp.absolute_distance(T=int), 1.0),
        "geometric (bounds)": lambda: dp.m.make_geometric(
            whole, dp.absolute_distance(T=int), 1.0, bounds=(0, 10)
        ),
        "gaussian (float)": lambda: dp.m.make_gaussian(real, dp.absolute_distance(T=float), 1.0),
        "gaussian (int)": lambda: dp.m.make_gaussian(whole, dp.absolute_distance(T=int), 1.0),
        "randomized response": lambda: dp.m.make_randomized_response_bool(
            prob=float(np.exp(1) / (1 + np.exp(1)))
        ),
        "noisy max": lambda: dp.m.make_noisy_max(
            vector, dp.linf_distance(T=float), dp.max_divergence(), 2.0
        ),
    }
    measurement = made[name]()
    return lambda: measurement(dataset)


def worker() -> None:
    """Answer requests, one JSON line each, with files of samples."""
    for request in map(json.loads, sys.stdin):
        library, _, name = request["case"].partition(" ")
        dataset = request["dataset"]
        if library == "numpy":
            rng = np.random.default_rng(request["seed"])
            runs: list[Any] = list(dataset + rng.laplace(0, 1, request["size"]))
        else:
            call = (diffprivlib_call if library == "diffprivlib" else opendp_call)(name, dataset)
            runs = [call() for _ in range(request["size"])]
        np.save(request["file"], np.array(runs))
        print("done", flush=True)


# --- in this one ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Peer:
    """A mechanism that runs in the other Python."""

    case: str
    process: subprocess.Popen[str]
    folder: Path

    @property
    def name(self) -> str:
        """What the report calls it."""
        return self.case

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """Ask for runs."""
        file = self.folder / "runs.npy"
        request = {
            "case": self.case,
            "dataset": dataset,
            "size": size,
            "seed": int(rng.integers(2**62)),
            "file": str(file),
        }
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        if self.process.stdout.readline().strip() != "done":
            raise RuntimeError(f"{self.case} did not run: see the error above.")
        outputs = np.load(file)
        return outputs if outputs.dtype.kind in "iuf" else outputs.tolist()


def audited(peer: Peer, runs: int) -> dict[str, Any]:
    """Audit one mechanism."""
    from dpassay.verifier.audit import audit

    claim, pairs = CASES[peer.case]
    started = time.perf_counter()
    result = audit(peer, claim, pairs=pairs, samples=runs, significance=LEVEL, seed=1, bits=True)
    row = {
        "case": peer.case,
        "claim": result.guarantee.description,
        "verdict": result.outcome.value,
        "p_value": result.p_value,
        "pair": [str(side) for side in result.pair],
        "bound": [result.epsilon, float(result.point.delta)],
        "event": result.rule.feature.name,
    }
    row["seconds"] = round(time.perf_counter() - started, 1)
    return row


def line(row: dict[str, Any]) -> str:
    """Return one row of a Markdown table."""
    from dpassay.accountant.numbers.reading import few

    epsilon, delta = row["bound"]
    shown = [
        row["case"],
        row["claim"],
        row["verdict"].replace("_", " ").lower(),
        few(row["p_value"], 2),
        f"ε({delta:.3g}) ≥ {epsilon:.2f}",
        row["event"],
    ]
    return "| " + " | ".join(shown) + " |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--versions", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.versions:
        print(versions())
        return
    if options.worker:
        worker()
        return
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    rows = []
    command = [options.peer_python, __file__, "--worker"]
    subprocess.run([options.peer_python, __file__, "--versions"], check=True)
    print("\n| mechanism | claim | verdict | p-value | bound | event |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if options.only not in case:
                continue
            with subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            ) as process:
                try:
                    rows.append(audited(Peer(case, process, Path(folder)), options.runs))
                    print(line(rows[-1]), flush=True)
                except (RuntimeError, BrokenPipeError) as error:
                    print(f"| {case} | not audited: {error} |", flush=True)
                finally:
                    if process.stdin is not None and not process.stdin.closed:
                        process.stdin.close()
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


def versions() -> str:
    """Return the versions of the libraries, where this Python has them."""
    found = []
    for package in ("diffprivlib", "opendp", "numpy"):
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"{package} missing")
    return ", ".join(found)


if __name__ == "__main__":
    main()

"""What a VALID rests on is pinned: a change of the trusted lines or lemmas is seen in review."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dpassay.verifier.kernel import trust

PINNED = Path(__file__).parents[1] / "trust.txt"
FRAME = {"__main__", "check", "schema", "theorem", "numbers"}
POINTS = FRAME | {"notation", "expressions", "cases", "lemmas", "laws", "quantities"}
HOLDS = {"verdict": "HOLDS", "kind": "approximate-dp"}
DP_SGD = "Composed(PoissonSubsampled(Gaussian(1), 1/100), 100)"


def test_what_is_trusted_is_what_was_reviewed() -> None:
    """After a change: `dpassay check --trust > tests/verify/trust.txt`, and read the difference."""
    assert trust().splitlines() == PINNED.read_text("utf-8").splitlines()


@pytest.mark.parametrize(
    ("theorem", "files"),
    [
        ({**HOLDS, "mechanism": "Gaussian(3)", "epsilon": "1", "delta": "1/100"}, {"releases"}),
        (
            {"kind": "pure-dp", "verdict": "REFUTED", "mechanism": "Laplace(3)", "epsilon": "1/4"},
            {"releases"},
        ),
        (
            {**HOLDS, "mechanism": DP_SGD, "epsilon": "2", "delta": "1e-3"}
            | {"adjacency": "add-remove"},
            {"releases", "compositions", "lattice"},
        ),
        (
            {"kind": "relation", "verdict": "REFUTED", "claim": "mu(Gaussian(3)) <= 1/4"},
            {"questions"},
        ),
        (
            {"kind": "relation", "verdict": "HOLDS", "claim": "mu(Gaussian(s)) <= 1/s"}
            | {"for_all": {"s": {"above": "0"}}},
            {"statements", "boxes", "proofs", "formulas", "particular", "noises"},
        ),
    ],
)
def test_a_certificate_rests_on_the_files_that_were_loaded(
    theorem: dict[str, Any], files: set[str], tmp_path: Path
) -> None:
    """No other file can make it VALID; `docs/kernel.md` has the table."""
    path = tmp_path / "c.json"
    certificate = {"version": 2, "theorem": theorem, "lemmas": [], "witness": {}}
    path.write_text(json.dumps(certificate), "utf-8")
    call = [sys.executable, "-P", "-m", "dpassay", "check", str(path), "--json"]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    (found,) = json.loads(done.stdout)["certificates"]
    assert found["outcome"] == "VALID"
    assert {*found["files"]} <= POINTS | files

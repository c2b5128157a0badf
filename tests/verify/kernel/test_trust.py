"""What a VALID rests on is pinned: a change of the trusted lines or lemmas is seen in review."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dpassay.verifier import kernel
from dpassay.verifier.kernel import trust

KERNEL = Path(kernel.__file__).parent
PINNED = Path(__file__).parents[1] / "trust.txt"
FRAME = {"check", "schema", "theorem", "numbers"}
POINTS = FRAME | {"notation", "expressions", "cases", "lemmas", "laws", "quantities"}
HOLDS = {"verdict": "HOLDS", "kind": "approximate-dp"}
DP_SGD = "Composed(PoissonSubsampled(Gaussian(1), 1/100), 100)"
SINGLE, COMPOSED = 3000, 3700
"""Lines that a certificate of one release, and of a composition, may rest on."""
RANGES = {"statements", "boxes", "proofs", "functions", "particular", "noises"}
OPTIMUM = {
    **{"kind": "count-noise", "verdict": "OPTIMAL", "lower": "0", "upper": "0", "epsilon": "1"},
    **{"support": 1, "max_count": 1, "eta": "1/2", "objective": "singular"},
}
LAW = {"first": 1, "last": 1, "lowest": -1, "probabilities": ["1/4", "1/2", "1/4"]}
AUDIT = {
    **{"kind": "audit", "verdict": "REFUTED", "target": "", "significance": "1/20"},
    **{"p_value": "1/1000", "tested": {"epsilon": "1/10", "delta": "0"}},
    "claim": {"kind": "epsilon-delta", "points": [{"epsilon": "1/10", "delta": "0"}]}
    | {"description": ""},
}
RUNS = {
    **{"seed": "1", "design": "guesses", "favours": "first", "marks": [1, -1]},
    "histogram": [[90, 10], [10, 90]],
}


def test_what_is_trusted_is_what_was_reviewed() -> None:
    """After a change: `dpassay check --trust > tests/verify/trust.txt`, and read the difference."""
    assert trust().splitlines() == PINNED.read_text("utf-8").splitlines()


@pytest.mark.parametrize(
    ("theorem", "files", "most"),
    [
        (
            {**HOLDS, "mechanism": "Gaussian(3)", "epsilon": "1", "delta": "1/100"},
            POINTS | {"releases"},
            SINGLE,
        ),
        (
            {"kind": "pure-dp", "verdict": "REFUTED", "mechanism": "Laplace(3)", "epsilon": "1/4"},
            POINTS | {"releases"},
            SINGLE,
        ),
        (
            {**HOLDS, "mechanism": DP_SGD, "epsilon": "2", "delta": "1e-3"}
            | {"adjacency": "add-remove"},
            POINTS | {"releases", "compositions", "lattice"},
            COMPOSED,
        ),
        (
            {"kind": "relation", "verdict": "REFUTED", "claim": "mu(Gaussian(3)) <= 1/4"},
            POINTS | {"questions"},
            3100,
        ),
        (
            {"kind": "relation", "verdict": "HOLDS", "claim": "mu(Gaussian(s)) <= 1/s"}
            | {"for_all": {"s": {"above": "0"}}},
            POINTS - {"quantities"} | RANGES,
            5700,
        ),
        (OPTIMUM, FRAME | {"notation", "programs"}, 1750),
        (AUDIT, FRAME | {"statistics"}, 1400),
    ],
)
def test_a_certificate_rests_on_the_files_that_were_loaded(
    theorem: dict[str, Any], files: set[str], most: int, tmp_path: Path
) -> None:
    """No other file can make it VALID; `docs/kernel.md` has the table."""
    witness = {"count-noise": {"ratio": ["2", "3"], "laws": [LAW]}, "audit": RUNS}
    path, kind = tmp_path / "c.json", str(theorem["kind"])
    certificate = {"version": 2, "theorem": theorem, "lemmas": []}
    path.write_text(json.dumps({**certificate, "witness": witness.get(kind, {})}), "utf-8")
    call = [sys.executable, "-P", "-m", "dpassay", "check", str(path), "--json"]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    (found,) = json.loads(done.stdout)["certificates"]
    assert found["outcome"] == ("CONDITIONAL" if kind == "audit" else "VALID"), found
    assert {*found["files"]} <= files
    texts = [(KERNEL / f"{name}.py").read_text("utf-8") for name in found["files"]]
    assert sum(len(text.splitlines()) for text in texts) <= most

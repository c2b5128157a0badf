"""What a command loads and keeps: a simple verdict loads no composition, and no checker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from verify import batch, document

QUESTIONS = [
    (["Gaussian(standard_deviation=3)", "--epsilon", "1", "--delta", "1e-5"], 1),
    (["Laplace(scale=2)", "--epsilon", "0.5"], 0),
]
PROGRAM = """
import sys
from verify.cli import main
code = main(["verify", *sys.argv[1:], "--quiet"])
heavy = (
    *(f"accountant.composition.{room}" for room in ("choose", "fourier", "losses")),
    *("verify.checker", "numpy", "scipy", "mpmath"),
)
sys.exit(code if not (found := [m for m in sys.modules if m.startswith(heavy)]) else str(found))
"""


@pytest.mark.parametrize(("question", "code"), QUESTIONS)
def test_a_simple_verdict_loads_nothing_heavy(question: list[str], code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *question], capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr


def claims(count: int) -> str:
    return "schema_version = 1\n" + "\n".join(
        f'[[claims]]\nid = "c{i}"\nstatement = "c"\nkind = "pure-dp"\n'
        f'mechanism = "Laplace(scale={1 + i % 7})"\nepsilon = "{1 + i % 3}/5"'
        for i in range(count)
    )


def test_many_claims_are_decided_in_parts(tmp_path: Path) -> None:
    """Each of them once, by several processes, without certificates where none is wanted."""
    read = document.read_text(claims(300)).claims
    found = dict(batch.decide_all(read, jobs=2, certified=False))
    assert sorted(found) == list(range(300))
    for index, claim in enumerate(read):
        finding = found[index].finding
        assert finding is not None
        assert finding.id == claim.id
        assert (finding.verdict.value == "HOLDS") == ((1 + index % 3) * (1 + index % 7) >= 5)
        assert found[index].certificate is None
    kept = tmp_path / "kept.jsonl"
    resumed = dict(batch.decide_all(read[:9], keep=kept))
    assert all(outcome.certificate for outcome in resumed.values())

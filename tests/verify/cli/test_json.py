"""Every command with --json prints JSON on stdout and nothing else: a document, or one a line."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
INPUTS = ROOT / "benchmarks" / "freeze"


def one_of_each() -> list[str]:
    """The first command with --json of each subcommand, and of each kind of optimum."""
    found: dict[tuple[str, ...], str] = {}
    for line in (INPUTS / "commands.txt").read_text(encoding="utf-8").splitlines():
        words = shlex.split(line)
        if "--json" in words and "--paper" not in words:
            found.setdefault(tuple(words[: 2 if words[0] == "optimal" else 1]), line)
    return list(found.values())


@pytest.mark.slow
@pytest.mark.parametrize("line", one_of_each())
def test_stdout_is_json(line: str, tmp_path: Path) -> None:
    folder = shutil.copytree(INPUTS, tmp_path / "inputs")
    run = subprocess.run(
        [sys.executable, "-m", "dpassay", *shlex.split(line)],
        input=(INPUTS / "bits").read_text(encoding="utf-8"),
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    assert run.returncode in (0, 1, 2, 3), run.stderr
    documents = run.stdout.splitlines() if line.startswith("stream") else [run.stdout]
    assert documents
    assert all(json.loads(document) is not None for document in documents)

"""Tables of a test that are kept as text beside it."""

from __future__ import annotations

from pathlib import Path


def rows(path: Path) -> list[list[str]]:
    """Read a row a line, its cells between " | "; empty lines and those from # on are left out."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    kept = [line for line in lines if line and not line.startswith("#")]
    assert kept, f"{path.name} has no rows"
    return [[cell.strip() for cell in line.split(" | ")] for line in kept]

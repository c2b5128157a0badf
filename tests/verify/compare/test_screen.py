"""A comparison on a terminal of 80 or 120 columns."""

from __future__ import annotations

import io
import re

import pytest

import dpassay
from verify.compare import Comparison, output, screen

ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def found() -> Comparison:
    return dpassay.compare(
        "VectorSum(dimension=50, l2_sensitivity=1)", epsilon=1, delta="1e-6", published=True
    )


def shown(found: Comparison) -> str:
    terminal = Terminal()
    facts = [("workload", repr(found.workload)), ("release", output.release_code(found))]
    screen.show(found, facts, output.table(found), output.best_lines(found), terminal)
    return terminal.getvalue()


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_it_fits_and_keeps_every_row(
    found: Comparison, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm-256color")
    lines = ESCAPE.sub("", shown(found)).splitlines()
    assert max(len(line.rstrip()) for line in lines) <= columns
    text = "\n".join(lines)
    assert text.startswith("Use `Gaussian(")
    for row in found.rows:
        assert row.candidate.name.split()[0] in text
    assert ("simulated rmse" in text) == (columns > 60)


def test_what_is_not_private_is_struck_out(
    found: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    struck = [line for line in shown(found).splitlines() if "\x1b[2;9m" in line]
    assert [ESCAPE.sub("", line).split()[0] for line in struck] == ["R1SMG"]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in shown(found)

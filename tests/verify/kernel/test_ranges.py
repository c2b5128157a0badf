"""Claims over ranges, next to each other: the true ones are proved, the false ones are not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dpassay.verifier.kernel import Outcome, check

LINES = Path(__file__).with_name("ranges.txt").read_text("utf-8").splitlines()[1:]
DOMAIN = re.compile(r"(?:(\S+) (<=?) )?(\w+)(?: (<=?) (.*?))?( whole)?")


def domains(text: str) -> dict[str, Any]:
    found = {}
    for part in text.split("; "):
        parts = DOMAIN.fullmatch(part)
        assert parts
        low, over, name, under, high, whole = parts.groups()
        ends = {"low" if over == "<=" else "above": low, "high" if under == "<=" else "below": high}
        found[name] = {key: end for key, end in ends.items() if end} | {"integer": bool(whole)}
    return found


@pytest.mark.parametrize("line", LINES)
def test_a_claim_is_proved_exactly_if_it_is_true(line: str) -> None:
    true, method, claim, over = line.split(" | ")
    ranges = domains(over)
    theorem = {"kind": "relation", "verdict": "HOLDS", "claim": claim, "for_all": ranges}
    witness = {"proof": {"method": method, "variable": next(iter(ranges))}}
    data = {"version": 2, "theorem": theorem, "lemmas": [], "witness": witness}
    assert (check(data).outcome is Outcome.VALID) is (true == "true")

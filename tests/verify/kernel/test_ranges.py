"""Claims over ranges, next to each other: the true ones are proved, the false ones are not."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dpassay.verifier.claims import KINDS
from dpassay.verifier.kernel import Outcome, check
from dpassay.verifier.kernel.check import prove
from dpassay.verifier.kernel.numbers import Budget, NotProved, Wrong
from dpassay.verifier.kernel.schema import require
from dpassay.verifier.proof import theorem_of
from tests.quick import quick

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


# Every proof that docs/proofs.md shows is accepted, and none of a claim that is false.


PAGE = (Path(__file__).parents[3] / "docs" / "proofs.md").read_text(encoding="utf-8")
CLAIMS = {
    claim["id"]: claim
    for block in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    for claim in tomllib.loads(block)["claims"]
}
FALSE: dict[str, dict[str, Any]] = {
    "identity": {"claim": "(C - (C*P - E**k)/S*P)/E**k == (P - C*(A - 2*P))/S"},
    "positive": {"for_all": {"d": {"low": "1", "integer": True}}},
    "sweep": {
        "for_all": {"epsilon": {"above": "0", "below": "9"}, "delta": {"above": "0", "below": "1"}}
    },
    "cases": {"claim": "sqrt(3 + 2*sqrt(2)) == 1 + sqrt(2) + 1e-300"},
    "derivative": {"for_all": {"t": {"low": "-1"}}},
    "split": {"claimed": "16"},
    "induction": {"claim": "sum(j, 1, n, 1/j**2) <= 3/2"},
    "tanh": {"for_all": {"y": {"low": "-1"}}},
    "combine": {"for_all": {"x": {"low": "-1"}}},
    "each": {"claim": "x >= max(x/2, x + 1)"},
    "branch": {"claim": "abs(x - y) < 1"},
    "form": {"claim": "mills(x) < 0.99/x"},
    "both": {"for_all": {"x": {"low": "-1"}}},
    "monotone": {"over": {"above": "0", "high": "10.01"}},
    "continuity": {"limit": "0.5000001"},
    "rate": {"rate": "1/(3*sqrt(d))"},
    "mechanism": {"mu": "sqrt(2)*m"},
}
"""Id → what makes the claim false."""


def is_valid(claim: Mapping[str, Any]) -> bool:
    domains = {name: {"grid": [], **ends} for name, ends in claim.get("for_all", {}).items()}
    points = {"at": ["2", "3"]} if "expression" in claim else {}
    whole = msgspec.convert({**points, **claim, "for_all": domains}, KINDS[claim["kind"]])
    theorem = theorem_of(whole, "HOLDS")
    lemmas = [
        {k: v for k, v in x.items() if k != "kind"}
        for x in CLAIMS.values()
        if x["kind"] == "relation"
    ]
    witness = {"proof": claim["proof"], "lemmas": lemmas}
    data = {"version": 2, "theorem": theorem, "lemmas": [], "witness": witness}
    try:
        read = require(data)
        prove(read["theorem"], read["witness"], Budget(seconds=20))
    except (NotProved, Wrong):
        return False
    return True


@pytest.mark.parametrize("name", CLAIMS)
def test_documented_proofs_are_accepted(name: str) -> None:
    assert is_valid(CLAIMS[name])


@pytest.mark.parametrize("name", quick(CLAIMS, 0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14))
def test_false_variants_of_documented_claims_are_not_proved(name: str) -> None:
    assert not is_valid({**CLAIMS[name], **FALSE[name]})

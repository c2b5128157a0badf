"""Every example of docs/proofs.md is proved, and none survives a change that makes it false."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from verify.checker.kernel import ProofError, prove

_PAGE = Path(__file__).parents[3] / "docs" / "proofs.md"


def _claims() -> dict[str, dict[str, Any]]:
    blocks = re.findall(r"```toml\n(.*?)```", _PAGE.read_text(encoding="utf-8"), re.DOTALL)
    found = [claim for block in blocks for claim in tomllib.loads(block)["claims"]]
    return {claim["id"]: claim for claim in found}


CLAIMS = _claims()
CHANGES: dict[str, dict[str, Any]] = {
    "identity": {"claim": "(C - (C*P - E**k)/S*P)/E**k == (P - C*(A - 2*P))/S"},
    "positive": {"for_all": {"d": {"low": "1", "integer": True}}},
    "sweep": {
        "for_all": {
            "epsilon": {"above": "0", "below": "9"},
            "delta": {"above": "0", "below": "1"},
        },
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
    "rate": {"rate": "1/2"},
    "mechanism": {"mu": "sqrt(2)*m"},
}  # fmt: skip


@pytest.mark.parametrize("name", CLAIMS)
def test_documented_proofs_go_through(name: str) -> None:
    """What the page shows is proved."""
    assert prove(CLAIMS[name], CLAIMS).theorem


@pytest.mark.parametrize("name", CLAIMS)
def test_false_variants_of_documented_claims_are_not_proved(name: str) -> None:
    """One number changed makes each false, and then its proof fails."""
    with pytest.raises(ProofError):
        prove({**CLAIMS[name], **CHANGES[name]}, CLAIMS)

"""Optimality by a dual, and its refutation by a rival: what is accepted, and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier.ask import verify
from dpassay.verifier.claims import Optimality
from dpassay.verifier.verdict import Verdict

BOX = {"type": "Box", "bounds": ["1", "10", "1000"]}
SPARSE = {
    "type": "SparseBox", "dimension": "9", "sparsity": "9", "bound": "1", "signed": False,
}  # fmt: skip
NOISE = {"type": "IntegerNoise", "E": "3", "eta": "1/2", "support": "2"}
RIVAL = {"probabilities": ["1/16", "3/16", "1/2", "3/16", "1/16"], "lowest": "-2"}


def among(space: dict[str, Any], mu: str = "1", objective: str = "total") -> dict[str, Any]:
    return {"type": "Gaussian", "space": space, "mu": mu, "objective": objective}


@pytest.mark.parametrize(
    ("value", "family", "dual"),
    [
        # (1 + 10 + 1000)²/μ²
        ("1011**2/4", among(BOX, "2"), {"law": "corners"}),
        ("1011**2/12", among(BOX, "2", "mean"), {"law": "corners"}),
        # nine counts: ((s + 1)/2)² each at s = 3
        ("4", among(SPARSE, objective="mean"), {"law": "sparse", "ones": "6"}),
        # replace-one: d for each query
        ("9", among({**SPARSE, "signed": True}, objective="mean"), {"law": "sparse", "ones": "9"}),
        ("1", among({**SPARSE, "dimension": "1", "sparsity": "1"}), {"law": "sparse", "ones": "1"}),
    ],
)
def test_a_dual_that_reaches_the_value_proves_it(
    value: str, family: dict[str, Any], dual: dict[str, Any]
) -> None:
    assert verify(Optimality(id="x", value=value, among=family, dual=dual)).verdict is Verdict.HOLDS
    above = Optimality(id="x", value=f"{value} + 1e-30", among=family, dual=dual)
    assert verify(above).verdict is Verdict.UNDECIDED


@pytest.mark.parametrize(
    ("family", "dual", "message"),
    [
        (among(BOX), {"law": "sparse", "ones": "1"}, "corners"),
        (among(BOX, "0"), {"law": "corners"}, "Expected .0. > 0"),
        (among({**BOX, "bounds": ["-1"]}), {"law": "corners"}, "Expected .-1. >= 0"),
        (among({**BOX, "bounds": ["1) + (5"]}), {"law": "corners"}, "expected an expression"),
        (among({**BOX, "radius": "1"}), {"law": "corners"}, "nothing else"),
        (among({"type": "Ball"}), {"law": "corners"}, "expected space to have"),
        (among(BOX, objective="least"), {"law": "corners"}, "total or mean"),
        (among(SPARSE), {"law": "sparse", "ones": "10"}, "10. <= .9."),
        (among(SPARSE), {"law": "sparse", "ones": "1/2"}, "floor..1/2.. == .1/2."),
        (among({**SPARSE, "sparsity": "10"}), {"law": "sparse", "ones": "1"}, "10. <= .9."),
        (among({**SPARSE, "signed": "no"}), {"law": "sparse", "ones": "1"}, "true or false"),
    ],
)
def test_a_dual_of_another_family_is_refused(
    family: dict[str, Any], dual: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        verify(Optimality(id="x", value="1", among=family, dual=dual))


def test_a_rival_of_the_family_refutes() -> None:
    found = verify(Optimality(id="x", value="1/10", among=NOISE, rival=RIVAL))
    assert found.verdict is Verdict.REFUTED
    assert found.true["competitor"] == {"lower": "0.0625", "upper": "0.0625"}
    best = Optimality(id="x", value="1/16", among=NOISE, rival=RIVAL)
    assert verify(best).verdict is Verdict.UNDECIDED


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"probabilities": ["1/16", "3/16", "1/2", "3/16", "1/8"]}, "== 1"),
        ({"probabilities": ["-1/16", "5/16", "1/2", "5/16", "-1/16"]}, ">= 0"),
        ({"probabilities": ["1/8", "3/8", "1/2"]}, ""),
        ({"probabilities": ["0", "1/16", "3/16", "1/2", "1/4"], "lowest": "-3"}, "<= .2."),
        ({"probabilities": ["1/4", "1/4", "1/4", "1/4"], "lowest": "-2"}, "== .1/2."),
        ({"lowest": "1"}, "with 0 in its support"),
    ],
)
def test_a_law_that_is_no_rival_is_refused(change: dict[str, Any], message: str) -> None:
    claim: dict[str, Any] = {"id": "x", "value": "1/10", "among": NOISE}
    if not message:  # one-sided, but of the family
        assert verify(Optimality(**claim, rival={**RIVAL, **change})).verdict is Verdict.UNDECIDED
        return
    with pytest.raises(InvalidInputError, match=message):
        verify(Optimality(**claim, rival={**RIVAL, **change}))

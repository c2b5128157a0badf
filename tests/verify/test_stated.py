"""Kinds of claims that the kernel does not have are stated to it as comparisons, and no weaker."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dpassay.verifier.ask import verify
from dpassay.verifier.claims import KINDS
from dpassay.verifier.expression import renamed
from dpassay.verifier.kernel import Outcome, check
from dpassay.verifier.proof import theorem_of
from dpassay.verifier.verdict import Verdict
from tests.verify.forge import certified

STATED = {
    "profile/holds": "approximate-dp",
    "profile/refuted": "approximate-dp",
    "tradeoff/refuted": "relation",
    "monotone/supported": "relation",
    "monotone/refuted": "relation",
    "minimiser/holds": "relation",
    "minimiser/refuted": "relation",
    "printed-number/holds": "relation",
    "printed-number/refuted": "relation",
    "limit/supported": "relation",
    "optimality/refuted": "relation",
}


@pytest.mark.parametrize("name", STATED)
def test_every_kind_has_a_certificate_that_is_valid(name: str) -> None:
    data = certified(name)
    assert data["theorem"]["kind"] == STATED[name]
    assert check(data).outcome is Outcome.VALID


def outcome(proof: dict[str, Any], **fields: Any) -> Outcome:
    """Check the theorem that a claim would have if it held."""
    claim = msgspec.convert(
        {"id": "c", "variable": "n", "at": ["1", "2"], **fields}, KINDS[fields["kind"]]
    )
    witness = {"proof": proof} if proof else {}
    theorem = theorem_of(claim, "HOLDS")
    return check({"version": 2, "theorem": theorem, "lemmas": [], "witness": witness}).outcome


SUM = {"let": {"S": "sum(j, 0, n, j)", "T": "S*2"}, "expression": "T - n"}


@pytest.mark.parametrize(
    ("true", "fields"),
    [
        # names of let that see the variable are put at n + 1, too: T − n = n²
        (True, {**SUM, "direction": "increasing", "over": {"low": "0", "integer": True}}),
        (False, {**SUM, "direction": "decreasing", "over": {"low": "0", "integer": True}}),
        (False, {**SUM, "direction": "increasing", "over": {"low": "-3", "integer": True}}),
        (True, {"expression": "n**2", "direction": "increasing", "over": {"low": "0"}}),
        (False, {"expression": "n**2", "direction": "increasing", "over": {"low": "-1"}}),
        (False, {"expression": "0*n", "direction": "increasing", "over": {"low": "0"}}),
        # at every integer up to the end, not beyond it
        (
            True,
            {"expression": "n*(7 - n)", "direction": "increasing"}
            | {"over": {"low": "1", "high": "2", "integer": True}},
        ),
        (
            False,
            {"expression": "n*(7 - n)", "direction": "increasing"}
            | {"over": {"low": "1", "high": "4", "integer": True}},
        ),
    ],
)
def test_monotone_functions(true: bool, fields: dict[str, Any]) -> None:
    found = outcome({"method": "positive"}, kind="monotone", **fields)
    assert (found is Outcome.VALID) is true


@pytest.mark.parametrize(
    ("true", "fields"),
    [
        (True, {"expression": "(n - 3)**2", "claimed": "3", "over": {"low": "0"}}),
        (False, {"expression": "(n - 3)**2", "claimed": "2", "over": {"low": "0"}}),
        (True, {"expression": "n", "claimed": "0", "over": {"low": "0"}}),
        (False, {"expression": "n", "claimed": "0", "over": {"low": "-1"}}),
        (
            True,
            {"let": {"S": "n - 3"}, "expression": "S**2", "claimed": "7/2 - 1/2"}
            | {"over": {"above": "-inf"}},
        ),
    ],
)
def test_least_points(true: bool, fields: dict[str, Any]) -> None:
    found = outcome({"method": "positive"}, kind="minimiser", **fields)
    assert (found is Outcome.VALID) is true


WORDS = {"source": "", "proof": {"method": "positive"}}


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "monotone", "expression": "n**2", "direction": "increasing"},
        {"kind": "minimiser", "expression": "n**2", "claimed": "1"},
    ],
)
def test_points_do_not_hold_by_a_proof(fields: dict[str, Any]) -> None:
    """A proof of the listed values is none of the claim."""
    given = {"id": "c", **WORDS, **fields}
    given |= {"variable": "n", "at": ["1", "2"]}
    claim = msgspec.convert(given, KINDS[fields["kind"]])
    assert verify(claim).verdict is Verdict.SUPPORTED


@pytest.mark.parametrize(
    ("true", "value", "printed"),
    [
        (True, "1/8", "0.13"), (True, "1/8", "0.125"), (False, "1/8", "0.12499"),
        (True, "-1/8", "-0.13"), (False, "-1/8", "0.13"), (True, "1234", "1.2e3"),
        (False, "1251", "1.2e3"),
    ],
)  # fmt: skip
def test_printed_numbers(true: bool, value: str, printed: str) -> None:
    claim = {"id": "c", "kind": "printed-number", "expression": value, "printed": printed}
    theorem = theorem_of(msgspec.convert(claim, KINDS["printed-number"]), "HOLDS")
    found = check({"version": 2, "theorem": theorem, "lemmas": [], "witness": {}})
    assert (found.outcome is Outcome.VALID) is true


def test_names_are_put_where_they_stand_alone() -> None:
    put = {"n": "(n + 1)", "mu": "m"}
    assert renamed("n + nn*f(n, 'n', mu=mu)\n- 1e-3", put) == (
        "(n + 1) + nn*f((n + 1), 'n', mu=m) - 1e-3"
    )
    # a variable may be called as what is asked of a mechanism: the question stays what it is
    assert renamed("delta(Gaussian(3), delta)", {"delta": "1/2"}) == "delta(Gaussian(3), 1/2)"

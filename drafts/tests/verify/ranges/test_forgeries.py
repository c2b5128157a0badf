"""Statements that are false or undefined, each dressed as a proof; and the documented proofs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from dpassay.verifier.ranges import ProofError, prove

_FROM_ONE = {"low": "1", "integer": True}
_REALS = {"above": "-inf"}


def _relation(claim: str, method: str | dict[str, Any], **for_all: Any) -> dict[str, Any]:
    proof = {"method": method} if isinstance(method, str) else method
    return {"kind": "relation", "claim": claim, "proof": proof, "for_all": for_all}


def _minimiser(claimed: str, **more: Any) -> dict[str, Any]:
    base = {"kind": "minimiser", "expression": "x**2", "variable": "x", "over": _REALS}
    return {**base, "claimed": claimed, "proof": {"method": "identity"}, **more}


def _limit(expression: str, limit: str, over: dict[str, Any], **more: Any) -> dict[str, Any]:
    base = {"kind": "limit", "variable": "n", "proof": {"method": "continuity"}, **more}
    return {**base, "expression": expression, "limit": limit, "over": over}


_SQUARINGS = {"a0": "x + 1", **{f"a{i}": f"a{i - 1}*a{i - 1}" for i in range(1, 60)}}
_FORGERIES: dict[str, dict[str, Any]] = {
    "an empty range of an index hides n = 1 (a sum of -1 terms)": _relation(
        "sum(i, 1, n - 1, 1) + sum(j, 1, n - 2, 1) == 2*n - 3", "identity", n=_FROM_ONE
    ),
    "an empty range of an index hides n = 1 (a division by 0)": _relation(
        "sum(i, 1, n - 1, 1) + (n - 1)/(n - 1) == n", "identity", n=_FROM_ONE
    ),
    "an end that is too large to evaluate is no empty range": _relation(
        "m <= 5", "cases", n={"low": "1", "high": "2", "integer": True},
        m={"low": "1", "high": "binomial(20000*(n - 1) + 5, 1)", "integer": True},
    ),
    "each argument of a max that has none": _relation("max() <= -5", "each"),
    "each argument of a min that has none": _relation("5 < min()", "each"),
    "every point minimises": _minimiser("x"),
    "a listed value hides the variable of a minimiser": _minimiser("5", where={"x": [3]}),
    "a name hides the variable of a minimiser": _minimiser("5", let={"x": "3"}),
    "a name hides the variable of a limit": _limit("1/n", "1/5", {"low": "1"}, let={"n": "5"}),
    "a theorem that shows the index of a sum and a variable alike": {
        **_relation("sum(i, 1, n, c) == n*c", "identity", n=_FROM_ONE, i=_FROM_ONE),
        "let": {"c": "i"},
    },
    "a bound rounded to a number of digits that there is not": _relation(
        "x <= round_up(x, -5)", "identity", x={"above": "0"}
    ),
    "a Renyi divergence of an order below 1": _relation(
        "renyi(Gaussian(standard_deviation=1), 1/2) <= 1", "cases"
    ),
    "a limit of a mechanism that there is not": _limit(
        "mu(Gaussian(standard_deviation=-n))", "0", {"low": "1"}
    ),
    "a limit of a formula beyond its condition": _limit(
        "variance(OptimalEllipse(dimension=n, sparsity=n, mu=1))", "1",
        {"low": "2", "integer": True}, proof={"method": "continuity", "form": "1"},
    ),
    # each of these took minutes or gigabytes before any limit was seen
    "names that double an expression": {
        **_relation("a59 >= 0", "positive", x={"low": "0"}), "let": _SQUARINGS,
    },
    "many numbers": _relation(f"max({', '.join(['1'] * 30_000)}) <= 0", "cases"),
    "a product of many terms": _relation(
        "(x + y + 1)**190*(z + w + 1)**190 >= 0", "positive",
        **{name: {"low": "0"} for name in "wxyz"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("claim", _FORGERIES.values(), ids=_FORGERIES)
def test_forgeries_are_not_proved(claim: dict[str, Any]) -> None:
    """False or undefined at one value at least, or too long to tell."""
    with pytest.raises(ProofError):
        prove(claim, seconds=10)


_PLAIN = _relation("1 <= 2", "identity")


@pytest.mark.parametrize(
    "claim",
    [
        None,
        [],
        "1 <= 2",
        {**_PLAIN, "for_all": []},
        {**_PLAIN, "for_all": None},
        {**_PLAIN, "for_all": {1: {"low": "0"}}},
        {**_PLAIN, "where": [1]},
        {**_PLAIN, "let": [1]},
        {**_PLAIN, "assume": 3},
        {**_PLAIN, "proof": {"method": "combine", "from": [{"claim": "none"}]}},
    ],
)
def test_data_of_a_wrong_shape_end_in_an_error(claim: Any) -> None:
    """Lists, numbers and None where a table belongs."""
    with pytest.raises(ProofError):
        prove(claim, {"none": None})  # type: ignore[dict-item]  # what a hostile file may hold


def test_a_theorem_about_the_best_of_a_family_says_what_its_names_mean() -> None:
    """With μ = 1/10 no Gaussian noise over the box has less than 900 in total."""
    family = {"type": "Gaussian", "mu": "m", "objective": "total"}
    claim = {
        "kind": "optimality",
        "among": {**family, "space": {"type": "Box", "bounds": ["1", "2"]}},
        "dual": {"law": "corners"},
        "let": {"m": "1/10"},
        "value": "900",
        "proof": {"method": "cases"},
    }
    assert "m = 1/10" in prove(claim).theorem


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

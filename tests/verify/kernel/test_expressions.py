"""Formulas of claims: their values, their scopes, and what no claim may do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpassay.verifier.kernel.check import prove
from dpassay.verifier.kernel.expressions import parse, show, value
from dpassay.verifier.kernel.numbers import Budget, NotProved, Wrong
from dpassay.verifier.kernel.schema import require


def outcome(witness: dict[str, Any] | None = None, verdict: str = "HOLDS", **theorem: Any) -> str:
    data = {
        "version": 2,
        "theorem": {"verdict": verdict, **theorem},
        "lemmas": [],
        "witness": witness or {},
    }
    try:
        found = require(data)
        prove(found["theorem"], found["witness"], Budget(seconds=10))
    except Wrong as error:
        return f"INVALID {error.field}"
    except NotProved:
        return "CONDITIONAL"
    return "VALID"


def relation(claim: str, **more: Any) -> str:
    return outcome(kind="relation", claim=claim, **more)


@pytest.mark.parametrize(
    "claim",
    [
        "1/3 + 1/6 == 1/2",
        "sqrt(2)*sqrt(8) == 4",
        "sqrt(3 + 2*sqrt(2)) == 1 + sqrt(2)",
        "exp(1) < 2.7182818285",
        "sum(i, 1, 10, i**2) == 385",
        "product(i, 1, 5, i) == 120",
        "Phi(Phi_inverse(0.1)) > 0.0999999",
        "round_up(1/3) > 1/3",
        "floor(7/2) == 3",
        "ceil(7/2) == 4",
        "abs(-3) == max(1, 3)",
        "binomial(10, 3) == 120",
        "log(8) == 3*log(2)",
        "count_noise_delta(2, 1/2, 3) > 0",
        "tree_mse(2, 1) == 2",
        "mse(RankOneGaussian(dimension=5, sigma_star=7))*5 == 7",
        "abs(r1smg_sigma_star(1/10, 1/100, 4, 1) - 4000) < 1e-9",
    ],
)
def test_a_relation_of_numbers_is_decided(claim: str) -> None:
    assert relation(claim) == "VALID"
    assert relation(claim, let={"zero": "0"}, where={"n": ["1", "2"]}) == "VALID"


@pytest.mark.parametrize("claim", ["1/3 == 0.333", "sqrt(2) > 1.5", "exp(1) == 3", "1 != 1"])
def test_a_false_relation_is_invalid(claim: str) -> None:
    assert relation(claim).startswith("INVALID")


@pytest.mark.parametrize("name", ["pi", "inf", "exp", "sum", "Gaussian", "_1", "nan", "max"])
def test_no_variable_has_the_name_of_something_else(name: str) -> None:
    assert relation(f"{name} == 1", where={name: ["1"]}).startswith("INVALID")
    assert relation(f"{name} == 1", let={name: "1"}).startswith("INVALID")
    domains = {name: {"low": "1", "high": "1"}}
    assert relation(f"{name} == 1", for_all=domains).startswith("INVALID")


def test_a_name_has_one_meaning() -> None:
    assert relation("x == 1", where={"x": ["1"]}, let={"x": "2"}).startswith("INVALID")
    assert relation("a == 1", let={"a": "b", "b": "a"}).startswith("INVALID")
    assert relation("sum(x, 1, 2, x) == 3", where={"x": ["1"]}).startswith("VALID")
    assert relation("x == 3", where={"x": ["3"]}, let={"y": "sum(x, 1, 2, x)"}) == "VALID"
    assert relation("z == 1").startswith("INVALID")


BENT = {"low": "2", "high": "3 + 10**9*max(0, x - 5)", "integer": True}
LIMIT: dict[str, Any] = {"kind": "limit", "expression": "1/x", "variable": "x"}


@pytest.mark.parametrize(
    "more",
    [
        {"over": BENT},
        {"over": {**BENT, "high": "h"}, "let": {"h": "3 + 10**9*max(0, x - 5)"}},
        {"over": {"above": "x - 1"}},
    ],
)
def test_no_end_sees_the_variable_that_it_bounds(more: dict[str, Any]) -> None:
    assert outcome(limit="0", **{**LIMIT, **more}).startswith("INVALID theorem")
    ranges = {"x": {"low": "0", "high": "y"}, "y": {"low": "0", "high": "x"}}
    assert relation("x*y >= 0", for_all=ranges).startswith("INVALID theorem")


def test_no_limit_sees_its_variable() -> None:
    over = {"low": "1"}
    false = outcome({"proof": {"method": "continuity"}}, limit="1/(2*x)", over=over, **LIMIT)
    assert false.startswith("INVALID")
    assert outcome({"proof": {"method": "continuity"}}, limit="0", over=over, **LIMIT) == "VALID"
    through: dict[str, Any] = {"let": {"z": "1/(2*x)"}, "limit": "z"}
    assert outcome({"proof": {"method": "continuity"}}, over=over, **LIMIT, **through) != "VALID"
    rate = {"limit": "0", "rate": "1/x**2"}
    assert outcome({"proof": {"method": "continuity"}}, over=over, **LIMIT, **rate) != "VALID"
    wrong = {"proof": {"method": "continuity"}, "limit": "1/(2*x)"}
    assert outcome(wrong, "REFUTED", limit="0", over=over, **LIMIT) != "VALID"


def test_points_outside_the_range_refute_nothing() -> None:
    domain = {"x": {"low": "0", "integer": True}}
    for case in ("-1", "1/2"):
        refuted = outcome(
            {"case": {"x": case}}, "REFUTED", kind="relation", claim="x**2 >= x", for_all=domain
        )
        assert refuted.startswith("INVALID")


@pytest.mark.parametrize(
    "theorem",
    [
        {"claim": "10**(10**(10**10)) >= 1"},
        {"claim": "x60 >= 1", "let": {"x0": "3", **{f"x{i + 1}": f"x{i}**3" for i in range(60)}}},
        pytest.param(
            {"claim": "a + b >= 0", "where": {c: ["1"] * 10 for c in "abcdefghij"}},
            marks=pytest.mark.slow,
        ),
        {"claim": "sum(i, 1, 10**9, i) >= 1"},
        {"claim": "binomial(10**9, 5*10**8) >= 1"},
        pytest.param(
            {"claim": "sum(i, 1, 10**6, sum(j, 1, 10**6, j)) >= 1"}, marks=pytest.mark.slow
        ),
    ],
)
def test_a_bomb_ends_in_one_line(theorem: dict[str, Any]) -> None:
    assert outcome(kind="relation", **theorem) in ("CONDITIONAL", "VALID")


formulas = st.recursive(
    st.sampled_from(["1", "2/3", "0.5", "7"]),
    lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), inner),
    max_leaves=8,
)


@settings(max_examples=50, deadline=None)
@given(formulas)
def test_a_formula_shown_reads_back_with_its_value(text: str) -> None:
    node = parse(text)
    assert value(node, Budget()) == value(parse(show(node)), Budget())
    assert parse(show(node)) is node


HIDDEN = (
    "mu(CorrelatedGaussian(dimension=2, mu=1, c=2, release_size=False), adjacency='add-remove')"
)


@pytest.mark.parametrize(
    "claim",
    [
        f"{HIDDEN} == sqrt(8/9)",
        f"{HIDDEN} <= sqrt(8/9)",
        "floor(sqrt(2) + 1)*sqrt(8) == sqrt(32)",
        "max(sqrt(2), 1)*sqrt(2) >= 2",
    ],
)
def test_irrational_numbers_that_are_equal_are_found_equal(claim: str) -> None:
    assert relation(claim) == "VALID"


@pytest.mark.parametrize(
    "claim",
    [
        f"{HIDDEN} < sqrt(8/9)",
        "log(sqrt(2) - sqrt(2)) == log(sqrt(2) - sqrt(2))",
        "1/(sqrt(2) - sqrt(2)) == 1/(sqrt(2) - sqrt(2))",
        "sqrt(2)*sqrt(3) == sqrt(6) + 1e-3000",
        "floor(sqrt(2)*sqrt(2)) == 1",
    ],
)
def test_what_is_not_equal_or_has_no_value_is_not_proved(claim: str) -> None:
    assert relation(claim) != "VALID"

"""What the checker's exact arithmetic must leave open, and what it must find to the last digit."""

from __future__ import annotations

import copy
import json
from fractions import Fraction
from typing import Any

import msgspec
import pytest

from accountant.errors import InvalidInputError
from accountant.numbers.precision import ctx
from verify import checker, document, seal
from verify.certificate import certify
from verify.checker.language import evaluate
from verify.checker.reals import compare
from verify.claims import ApproximateDP, Minimiser

TWICE = """
schema_version = 1
name = "Names"

[[claims]]
kind = "relation"
id = "twice"
claim = "x <= 1"
where = {x = [1]}
"""


def test_the_product_reads_a_name_once() -> None:
    for field in ("let", "for_all"):
        given = {"let": "2", "for_all": "{low = 0, grid = [1]}"}[field]
        with pytest.raises(InvalidInputError, match="the name 'x' is given twice"):
            document.read_text(f"{TWICE}{field} = {{x = {given}}}\n", "names.toml")


def _forged(**fields: Any) -> dict[str, Any]:
    claim = document.read_text(TWICE, "names.toml").claims[0]
    data = copy.deepcopy(msgspec.to_builtins(certify(claim)[1]))
    data["claim"] |= fields
    del data["seal"]
    return {**data, "seal": seal.seal(data)}


def test_the_checker_reads_a_name_once() -> None:
    assert checker.check(_forged()).valid
    assert not checker.check(_forged(let={"y": "2"})).problems
    for fields in ({"let": {"x": "2"}}, {"for_all": {"x": {"low": "0", "grid": ["1"]}}}):
        problems = checker.check(_forged(**fields)).problems
        assert problems[0] == ("case", "cannot be checked: the name x is given twice")


def test_a_relation_names_neighbours_in_its_questions_alone() -> None:
    with pytest.raises(InvalidInputError, match="only a claim about a mechanism has one"):
        document.read_text(f'{TWICE}adjacency = "replace-one"\n', "names.toml")
    problems = checker.check(_forged(adjacency="replace-one")).problems
    assert problems == [("claim.adjacency", "does not fit")]


@pytest.mark.parametrize(
    "text",
    [
        "0*gamma(-1)",
        "gamma(-1) - gamma(-1)",
        "log(1 - pi()) - log(1 - pi())",
        "0*max_loss(Gaussian(standard_deviation=1))",
    ],
)
def test_what_is_no_number_does_not_cancel(text: str) -> None:
    with ctx.workprec(200):
        assert compare(evaluate(text), "==", Fraction(0)) is None


@pytest.mark.parametrize(("dimension", "sparsity"), [("5/2", "1"), ("3", "3/2"), ("3", "5")])
def test_an_ellipse_has_whole_sizes(dimension: str, sparsity: str) -> None:
    with pytest.raises(ValueError, match=r"integer|sparsity"):
        evaluate(f"ellipse_defects({dimension}, {sparsity})")


def test_the_worst_record_of_many_counts_is_found_among_all() -> None:
    """μ² = 4j(B − j)/B² for the integer j next to B/2 is at least 1 − 1/B², here 1 − 1e-40."""
    c = "CorrelatedGaussian(dimension=10**20, mu=1, c=3*pi()*10**9, release_size=False)"
    with ctx.workprec(400):
        mu = evaluate(f'mu({c}, adjacency="add-remove")')
        assert compare(mu, ">=", 1 - Fraction(1, 10**39)) is True


def test_a_power_of_very_many_digits_is_not_written_out() -> None:
    with ctx.workprec(200):
        assert compare(evaluate("exp(1000000*log(10**1000 + 1))"), ">", Fraction(1)) is True


def test_a_point_without_a_value_is_refused() -> None:
    claim = Minimiser(
        id="points",
        expression="(k - 1)/log2(k)**3",
        variable="k",
        at=["15", "16", "17", "18"],
        claimed="18",
    )
    _, data = certify(claim)
    assert data is not None
    assert checker.check(data).problems == []
    data["claim"]["at"][0] = "-15"
    data["seal"] = seal.seal({key: value for key, value in data.items() if key != "seal"})
    assert any(field == "claim.at" for field, _ in checker.check(data).problems)


@pytest.mark.parametrize("delta", ["7/5", "-1/10"])
def test_a_delta_that_is_no_probability_is_refused(delta: str) -> None:
    claim = ApproximateDP(id="d", mechanism="Laplace(scale=1)", epsilon="1/2", delta="0.4")
    _, data = certify(claim)
    assert data is not None
    forged = json.loads(json.dumps(data).replace('"0.4"', f'"{delta}"'))
    forged["seal"] = seal.seal({key: value for key, value in forged.items() if key != "seal"})
    assert checker.check(data).problems == []
    assert checker.check(forged).outcome is checker.Outcome.INVALID

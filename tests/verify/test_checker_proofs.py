"""What the checker proves again besides cases: identities, other limits, optima."""

from __future__ import annotations

from typing import Any

import pytest

from tests.verify.forge import sealed
from verify import checker, document
from verify.certificate import certify
from verify.checker import optimum

LIMIT = (
    'kind = "limit"\nexpression = "1/2 + 1/n"\nvariable = "n"\nat = [1, 2]\nlimit = "1"\n'
    'over = {low = 1}\nproof = {method = "continuity", limit = "1/2"}'
)
LEAST = (
    'kind = "minimiser"\nexpression = "(n - 2)**2"\nvariable = "n"\nat = [1, 2, 3]\nclaimed = 2\n'
    "over = {low = 1, high = 3, integer = true}"
)
BEST = (
    'kind = "optimality"\nvalue = "4"\ndual = {law = "sparse", ones = 2}\n[claims.among]\n'
    'type = "Gaussian"\nmu = 1\nobjective = "total"\n'
    'space = {type = "SparseBox", dimension = 2, sparsity = 2, bound = 1, signed = true}'
)


def certificate(text: str) -> dict[str, Any]:
    read = document.read_text(f'schema_version = 1\n[[claims]]\nid = "c"\n{text}')
    found = certify(read.claims[0])[1]
    assert found is not None
    return found


def problems(data: dict[str, Any]) -> list[str]:
    return [path for path, _ in checker.check(sealed(data)).problems]


def test_an_equality_without_a_proof_is_decided_by_an_identity() -> None:
    equal = "sqrt(3 + 2*sqrt(2)) == 1 + sqrt(2)"
    checked = checker.check(certificate(f'kind = "relation"\nclaim = "{equal}"'))
    assert not checked.problems
    assert not checked.taken_as_given


def test_another_limit_is_proved_again() -> None:
    data = certificate(LIMIT)
    assert data["verdict"] == "REFUTED"
    checked = checker.check(data)
    assert not checked.problems
    assert not checked.taken_as_given
    assert "it tends to 1/2" in str(checked.theorem)
    data["claim"]["expression"] = data["facts"][0]["expression"] = "3/4 + 1/(4*n)"
    assert "claim.proof" in problems(data)


@pytest.mark.parametrize("end", ["4", "inf"])
def test_points_prove_what_they_are_all_of(end: str) -> None:
    data = certificate(LEAST)
    assert data["verdict"] == "HOLDS"
    assert problems(data) == []
    data["claim"]["over"]["high"] = end
    assert problems(data) == ["verdict"]


def test_the_conditions_of_a_dual_are_required() -> None:
    data = certificate(BEST)
    assert data["verdict"] == "HOLDS"
    checked = checker.check(data)
    assert not checked.problems
    assert not checked.taken_as_given
    assert "no Gaussian noise that is (1)-GDP" in str(checked.theorem)
    data["claim"]["among"]["space"]["sparsity"] = 1  # fewer than the ones of the law
    text = optimum.compared(data["claim"]).text
    data["facts"][1]["expression"] = text
    assert "claim.among" in problems(data)


def test_a_rival_within_the_tolerance_refutes_nothing() -> None:
    text = (
        'kind = "optimality"\nvalue = "1/10"\ntolerance = "10"\n[claims.among]\n'
        'type = "IntegerNoise"\nE = 3\neta = "1/2"\nsupport = 2\n[claims.rival]\n'
        'probabilities = ["1/16", "3/16", "1/2", "3/16", "1/16"]\nlowest = -2'
    )
    read = document.read_text(f'schema_version = 1\n[[claims]]\nid = "c"\n{text}')
    finding, _ = certify(read.claims[0])
    assert finding.verdict.value == "UNDECIDED"

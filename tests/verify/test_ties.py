"""Claims that are just met: balls never prove an equality, exact numbers do."""

from __future__ import annotations

from fractions import Fraction

import pytest

from verify.claims import KINDS
from verify.exact import verify
from verify.verdict import Verdict


@pytest.mark.parametrize(
    ("kind", "mechanism", "fields"),
    [
        ("pure-dp", "Laplace(scale=10)", {"epsilon": "0.1"}),
        ("pure-dp", "DiscreteLaplace(scale=3, sensitivity=2)", {"epsilon": "2/3"}),
        ("gaussian-dp", "Gaussian(standard_deviation=10)", {"mu": "0.1"}),
        ("gaussian-dp", "Gaussian(standard_deviation='sqrt(2)')", {"mu": "sqrt(1/2)"}),
        ("gaussian-dp", "EllipticalGaussian(sensitivities=[1, 2], mu='0.3')", {"mu": "0.3"}),
        ("zcdp", "Gaussian(standard_deviation=10)", {"rho": "0.005"}),
        ("renyi-dp", "Gaussian(standard_deviation=10)", {"order": "3", "epsilon": "0.015"}),
    ],
)
def test_a_claim_that_is_just_met_holds(kind: str, mechanism: str, fields: dict[str, str]) -> None:
    assert verify(KINDS[kind](id="tie", mechanism=mechanism, **fields)).verdict is Verdict.HOLDS
    *others, (name, value) = fields.items()
    less = {**dict(others), name: f"({value}) * (1 - 1e-12)"}
    found = verify(KINDS[kind](id="less", mechanism=mechanism, **less))
    assert found.verdict is Verdict.REFUTED


@pytest.mark.parametrize(("relation", "mu"), [("add-remove", "0.1"), ("replace-one", "0.2")])
def test_size_released_beside_the_counts(relation: str, mu: str) -> None:
    mechanism = "KnownSizeGaussian(dimension=3, mu='0.1')"
    claim = KINDS["gaussian-dp"](id="tie", mechanism=mechanism, mu=mu, adjacency=relation)
    assert verify(claim).verdict is Verdict.HOLDS


def test_a_divergence_below_rho_times_its_order_is_not_refuted_by_it() -> None:
    # ρ = 8, but at orders that are no integer the divergence of integer noise is below ρ·order
    mechanism = "DiscreteCorrelatedGaussian(dimension=2, mu=4, c=1)"
    fields = {"mechanism": mechanism, "adjacency": "add-remove", "order": "3/2"}
    holds = verify(KINDS["renyi-dp"](id="below", epsilon="11.7", **fields))
    assert holds.verdict is Verdict.HOLDS
    assert Fraction(holds.true["epsilon"]["upper"]) < Fraction("11.41")
    refuted = verify(KINDS["renyi-dp"](id="above", epsilon="11.4", **fields))
    assert refuted.verdict is Verdict.REFUTED

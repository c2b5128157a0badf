"""A claim about a mechanism of this package is decided exactly; runs are for the rest."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import dpassay
from dpassay.accountant.errors import AdjacencyError
from dpassay.verifier.audit import PrivacyError
from dpassay.verifier.audit.result import AuditResult
from dpassay.verifier.cli import main
from dpassay.verifier.verdict import Finding


def test_a_claim_that_runs_would_hardly_refute_is_refuted() -> None:
    with pytest.raises(PrivacyError, match=r"REFUTED: Gaussian.* is \(1, 1e-5\)-DP"):
        dpassay.assert_private(dpassay.Gaussian("3.7"), epsilon=1, delta="1e-5")


def test_what_holds_is_proved_without_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(*_: Any, **__: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(dpassay.Gaussian, "sample", drawn)
    found = dpassay.assert_private(dpassay.Gaussian("3.74"), epsilon=1, delta="1e-5")
    assert isinstance(found, Finding)
    assert found.holds


@pytest.mark.parametrize(
    ("mechanism", "claim", "refuted"),
    [
        ("Laplace(2)", {"epsilon": "0.5"}, False),
        ("Laplace(2)", {"epsilon": "0.4999"}, True),
        ("Gaussian(2)", {"mu": "0.5"}, False),
        ("Gaussian(2)", {"mu": "0.49999"}, True),
        ("Gaussian(2)", {"rho": "0.125"}, False),
        ("Gaussian(2)", {"rho": "0.1249"}, True),
        ("RandomizedResponse(1)", {"epsilon": 1}, False),
        ("RandomizedResponse(1)", {"epsilon": "0.99999"}, True),
    ],
)
def test_every_notion_is_decided(mechanism: str, claim: dict[str, Any], refuted: bool) -> None:
    found = dpassay.audit(mechanism, **claim)
    assert isinstance(found, Finding)
    assert found.refuted is refuted
    assert found.holds is not refuted
    if refuted:
        with pytest.raises(PrivacyError):
            dpassay.assert_private(dpassay.parse(mechanism), **claim)


def test_of_several_points_the_refuted_one_counts() -> None:
    found = dpassay.audit(dpassay.Laplace(2), [("0.5", 0), ("0.4", "1e-3")])
    assert found.refuted
    true = dpassay.audit(dpassay.Laplace(2), [("0.5", 0), ("0.6", 0)])
    assert isinstance(true, Finding)
    assert true.holds


def test_runs_that_are_asked_for_are_drawn_and_the_truth_is_said() -> None:
    found = dpassay.audit("Gaussian(3.7)", epsilon=1, delta="1e-5", samples=2000, seed=1)
    assert isinstance(found, AuditResult)
    assert found.outcome == "NOT_REFUTED"
    assert found.verdict == "REFUTED"
    assert found.refuted
    assert str(found).startswith("REFUTED  ")
    data = found.to_json()
    assert data["verdict"] == "REFUTED"
    assert data["notes"][0].startswith("known exactly, without any run: REFUTED: Gaussian")
    assert found.certificate()["theorem"]["verdict"] == "NOT_REFUTED"  # all that these runs prove
    with pytest.raises(PrivacyError, match="REFUTED"):
        dpassay.assert_private(dpassay.Gaussian("3.7"), (1, "1e-5"), samples=2000)


@pytest.mark.parametrize("until", [False, True])
@pytest.mark.parametrize(("claim", "code"), [("1,1e-5", 1), ("1.1,1e-5", 0)])
def test_the_command_line_has_the_same_rule(
    until: bool, claim: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["audit", "Gaussian(3.7)", "--claim", claim, "--samples", "2000", "--seed", "1"]
    assert main([*asked, "--json", *["--until-refuted"] * until]) == code
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == ("REFUTED" if code else "NOT_REFUTED")
    assert ("REFUTED" in found["notes"][0]) == bool(code)


def test_a_relation_that_matters_has_to_be_given() -> None:
    noise = dpassay.parse('PoissonSubsampled(Gaussian(1), "0.1")')
    with pytest.raises(AdjacencyError):
        dpassay.assert_private(noise, epsilon=1, delta="1e-5")
    options: dict[str, Any] = {"epsilon": 1, "delta": "1e-1", "adjacency": "add-remove"}
    found = dpassay.assert_private(noise, **options)
    assert isinstance(found, Finding)
    assert found.holds


def test_a_program_is_sampled() -> None:
    def mechanism(dataset: float, size: int, rng: np.random.Generator) -> Any:
        return np.where(rng.random(size) < 0.3, 1 - dataset, dataset)

    found = dpassay.assert_private(mechanism, 1, pairs=[(0, 1)], samples=2000)
    assert isinstance(found, AuditResult)
    assert not any(note.startswith("known") for note in found.notes)

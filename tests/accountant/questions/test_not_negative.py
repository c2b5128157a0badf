"""How private a release is, is said by ε ≥ 0; the profile below 0 has to be asked for by name."""

from __future__ import annotations

from decimal import Decimal

import pytest

import dpassay
from dpassay.accountant.questions import profile


def test_a_training_run_that_is_private_at_zero_says_zero() -> None:
    run = dpassay.dpsgd(
        noise_multiplier=1, batch_size=105, dataset_size=100000, steps=1, delta="1e-3"
    )
    assert run.epsilon == 0


@pytest.mark.parametrize(
    "given",
    [
        {"mu": 1},
        {"mu": 0},
        {"zcdp": "0.5"},
        {"pure": 1},
        {"approximate": (1, "0.1")},
        {"renyi": (2, 1)},
    ],
)
def test_conversions_agree_that_the_least_epsilon_is_zero(given: dict[str, object]) -> None:
    assert dpassay.convert(**given, delta="0.99") == 0  # type: ignore[arg-type]


def test_the_question_and_its_estimate_agree() -> None:
    for noise in ("Gaussian(1)", "Laplace(1)", "RandomizedResponse(1)", "DiscreteLaplace(1)"):
        assert dpassay.epsilon(noise, "0.9") == 0
        assert dpassay.estimate_epsilon(noise, 0.9) == 0
        assert dpassay.epsilon(noise, 1) == 0


def test_the_inverse_of_the_profile_is_there_by_name() -> None:
    found = profile.signed_epsilon(dpassay.Gaussian(1), "0.9")
    assert found.upper < Decimal(-1)
    back = dpassay.delta(dpassay.Gaussian(1), found.upper)
    assert abs(back.upper - Decimal("0.9")) < Decimal("1e-10")


def test_a_claim_below_zero_is_decided_with_a_word() -> None:
    finding = dpassay.verify("Gaussian(1) is (-1, 0.9)-DP")
    assert finding.verdict == "HOLDS"
    assert "Epsilon is below 0" in finding.reason
    assert Decimal(finding.true["epsilon"]["upper"]) < -1
    assert "below 0" not in dpassay.verify("Gaussian(1) is (0, 0.9)-DP").reason

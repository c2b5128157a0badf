"""Claims of μ, of ρ-zCDP and of a Rényi divergence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from accountant.errors import InvalidInputError
from verify import checker
from verify.audit import AuditResult, audit, guarantee
from verify.audit.exact_test import gaussian_delta
from verify.seal import seal


def gaussian(value: float, size: int, rng: np.random.Generator) -> Any:
    """Gaussian noise on a lattice: 1-GDP and 1/2-zCDP."""
    return np.rint((value + rng.normal(size=size)) * 2**20) / 2**20


def audited(claim: Any) -> AuditResult:
    return audit(gaussian, claim, pairs=[(1.0, 0.0)], samples=20_000, significance=1e-6, seed=1)


def test_mu_is_bounded() -> None:
    found = audited({"mu": "0.5"})
    assert found.refuted
    assert found.mu is not None
    assert 0.8 < found.mu <= 1
    assert not checker.check(found.certificate()).problems
    data = {key: value for key, value in found.certificate().items() if key != "seal"}
    forged = {**data, "mu_lower_bound": found.mu * 1.01}
    problems = checker.check({**forged, "seal": seal(forged)}).problems
    assert [path for path, _ in problems] == ["mu_lower_bound"]


def test_the_curve_of_zcdp_is_above_that_of_a_gaussian() -> None:
    claimed = guarantee({"rho": "1/2"})
    assert claimed.delta_at(1.0) > float(gaussian_delta(1.0, 1.0))
    assert guarantee({"rho": "1/8"}).delta_at(1.0) < claimed.delta_at(1.0)


@pytest.mark.slow
def test_too_small_a_rho_is_refuted_through_its_curve_and_the_true_one_is_not() -> None:
    found = audited({"rho": "0.1"})
    assert found.refuted
    assert "0.1-zCDP implies" in str(found) or "1/10-zCDP implies" in str(found)
    assert not audited({"rho": "0.5"}).refuted


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ({"rho": 0}, "rho"),
        ({"order": 1, "renyi": 1}, "order"),
        ({"order": 8}, "order=8,renyi=0.5"),
        ({"tcdp": 1}, "rho=0.1"),
    ],
)
def test_what_cannot_be_read_says_what_can(claim: Any, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        guarantee(claim)

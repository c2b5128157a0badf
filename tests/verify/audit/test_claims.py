"""Claims of audits: curves, rare outcomes, and events in words."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier import kernel as checker
from dpassay.verifier.audit import AuditResult, audit, audit_samples, guarantee
from dpassay.verifier.audit.exact_test import gaussian_delta
from dpassay.verifier.audit.features import Alphabet
from dpassay.verifier.audit.learn import choose


def answers(rate: float) -> Any:
    """Randomised response of ε = 1 that says 2 now and then, of the first dataset alone."""

    def answer(dataset: int, size: int, rng: np.random.Generator) -> Any:
        told = np.where(rng.random(size) < math.e / (1 + math.e), dataset, 1 - dataset)
        return np.where((rng.random(size) < rate) & (dataset == 1), 2, told)

    return answer


@pytest.mark.parametrize("seed", range(2))
def test_a_rare_outcome_is_found(seed: int) -> None:
    found = audit(answers(1e-3), 1, pairs=[(1, 0)], samples=70_000, seed=seed)
    assert found.refuted
    assert found.counts.misses == 0
    assert 0 < found.rule.share < 0.05
    data = found.certificate()
    assert not checker.check(data).problems
    data["theorem"]["share"] = str(found.rule.share / 2)
    assert checker.check(data).problems


@given(st.integers(0, 3))
def test_shares_of_the_significance_add_up_to_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 50, (2, 400, 1))
    rule = choose(first, second, guarantee(1), runs=1000, significance=0.05).values
    assert math.isclose(sum(each.share for each in rule.rules), 1, rel_tol=1e-15)
    assert len(rule.rules) <= 5


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
    data = found.certificate()
    assert not checker.check(data).problems
    data["theorem"]["epsilon_lower_bound"] = str(found.epsilon * 1.01)
    problems = checker.check(data).problems
    assert [path for path, _ in problems] == ["theorem.epsilon_lower_bound"]


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


def named(dataset: int, size: int, rng: np.random.Generator) -> Any:
    return list(
        rng.choice(["ann", "bob", "cyd"], size, p=[[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]][dataset])
    )


def test_events_over_texts_print_them() -> None:
    found = audit(named, "0.1", pairs=[(0, 1)], samples=3000, seed=1)
    assert found.refuted
    shown = str(found) + str(found.certificate()["witness"]["event"])
    assert "{'cyd'}" in shown or "{'ann'}" in shown
    assert "np.str_" not in shown
    rng = np.random.default_rng(1)
    given = audit_samples(named(0, 700, rng), named(1, 800, rng), "0.1", seed=1)
    assert "'ann'" in str(given) or "'cyd'" in str(given)


def test_complex_outputs_are_pairs_of_reals() -> None:
    values = np.array([1 + 2j, -0.5j, 3.0])
    wanted = [[1.0, 2.0], [0.0, -0.5], [3.0, 0.0]]
    assert Alphabet().matrix(values).tolist() == wanted
    assert Alphabet().matrix(values.tolist()).tolist() == wanted
    assert Alphabet().matrix(values.astype(np.complex64)).dtype == np.float32
    assert Alphabet().matrix(np.array([values, values])).shape == (2, 6)
    mixed = Alphabet().matrix([1 + 2j, "text"])
    assert mixed[0].tolist()[0] == 2.0

    def rotated(dataset: int, size: int, rng: np.random.Generator) -> Any:
        return 1j * (dataset + np.round(rng.laplace(0, 1, size)))

    assert audit(rotated, "0.3", pairs=[(0, 1)], samples=3000, seed=1).refuted

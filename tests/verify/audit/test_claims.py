"""Claims of audits, and their certificates: the kernel agrees, and forgeries are named."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from dpassay.accountant import notation
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.questions import profile
from dpassay.verifier import kernel as checker
from dpassay.verifier.audit import (
    AuditResult,
    Counts,
    Design,
    audit,
    audit_samples,
    epsilon_lower_bound,
    guarantee,
    p_value,
)
from dpassay.verifier.audit.auditor import replay
from dpassay.verifier.audit.exact_test import gaussian_delta
from dpassay.verifier.audit.features import Alphabet
from dpassay.verifier.audit.learn import choose
from dpassay.verifier.kernel import Outcome, statistics
from dpassay.verifier.kernel.statistics import binomial_tail
from tests.quick import slow


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


# Certificates of audits: the kernel agrees, and forgeries are named.


@pytest.fixture(scope="module")
def guessed() -> AuditResult:
    return audit(notation.parse("Laplace(scale=1)"), "0.8", samples=20_000, seed=1)


@pytest.fixture(scope="module")
def one_sided() -> AuditResult:
    def rare(dataset: int, size: int, rng: np.random.Generator) -> Any:
        return (rng.random(size) < [0.02, 0.08][dataset]).astype(int)

    return audit(rare, ("1.2", "1e-3"), pairs=[(0, 1)], samples=20_000, seed=1)


def test_certificates_of_both_designs_are_valid(
    guessed: AuditResult, one_sided: AuditResult
) -> None:
    assert {guessed.rule.design, one_sided.rule.design} == set(Design)
    for result in (guessed, one_sided):
        found = checker.check(result.certificate())
        assert found.outcome is Outcome.CONDITIONAL, found.problems
        assert str(found.theorem).startswith("REFUTED")
        assert "on neighbouring datasets" in found.assumptions[0]


def test_runs_that_cannot_be_drawn_again_are_not_said_to_be() -> None:
    """A replay of an honest certificate called it INVALID."""

    def own(dataset: int, size: int) -> Any:
        return dataset + np.random.default_rng().integers(0, 3, size)

    how = {"target": "somewhere:own", "samples": 2000}
    data = audit(own, 1, pairs=[(0, 1)], samples=2000, seed=1).certificate(how)
    assert "replay" not in data["witness"]
    assert "does not say how" in replay((data, True)).not_replayed


def test_a_claimed_curve_is_checked() -> None:
    noise = notation.parse("Gaussian(standard_deviation=2)")
    data = audit(noise, {"mu": "sqrt(0.16)"}, samples=20_000, seed=1).certificate()
    tested = data["theorem"]["tested"]
    assert data["theorem"]["verdict"] == "REFUTED"
    assert checker.check(data).problems == ()
    tested["delta"] = str(float(tested["delta"]) * 0.9)
    assert "theorem.tested" in dict(checker.check(data).problems)


@pytest.mark.parametrize(
    "text",
    [
        slow("Gaussian(standard_deviation=2)"),
        "Laplace(scale='sqrt(2)')",
        slow("DiscreteLaplace(scale=2)"),
        "DiscreteGaussian(parameter=2)",
        slow("Staircase(epsilon=1, gamma=0.4)"),
    ],
)
def test_the_curve_of_a_claimed_mechanism_is_computed_again(text: str) -> None:
    """A claim of a billionth less than δ(1/8) is found out, of a billionth more is not."""
    noise = notation.parse(text)
    data = audit(noise, noise, samples=2_000, seed=1).certificate()
    found = checker.check(data)
    assert found.problems == ()
    assert not any("profile" in given for given in found.assumptions)
    true = Fraction(profile.delta(noise, "1/8").lower)
    for factor, wrong in ((1 - Fraction(1, 10**9), True), (1 + Fraction(1, 10**9), False)):
        data["theorem"]["tested"] = {"epsilon": "1/8", "delta": str(true * factor)}
        assert ("theorem.tested" in dict(checker.check(data).problems)) == wrong


@pytest.mark.parametrize("delta", [0.0, 1e-4])
@pytest.mark.parametrize(
    "counts",
    [
        Counts(30, 60, 4, 70),
        Counts(3, 2000, 0, 1000),
        slow(Counts(30_000, 200_000, 9_000, 150_000)),
        Counts(400, 500, 90, 500, Design.GUESSES),
        Counts(300_000, 2_000_000, 70_000, 2_000_000, Design.GUESSES),
    ],
)
def test_both_programs_find_the_same(counts: Counts, delta: float) -> None:
    """Guesses to 1e-5; sides within the slack of the cells, of which the kernel has more."""
    epsilon = epsilon_lower_bound(counts, delta, 0.05)
    first = p_value(counts, epsilon, delta, spared=5e-4)
    again = (counts.hits, counts.runs, counts.misses, counts.other_runs)
    with ctx.workprec(statistics.BITS):
        second = getattr(statistics, counts.design.value)(again, math.exp(epsilon), delta, 5e-4)
    assert second <= first * (1 + 1e-6)
    assert second >= first * (1 - 1e-5 if counts.design is Design.GUESSES else 0.9)


@pytest.mark.parametrize("level", [5e-9, 1e-4, 0.3])
@pytest.mark.parametrize(
    ("hits", "runs"),
    [
        (1, 5),
        (5, 5),
        (42, 19_238_310),
        (53_590_292, 53_590_720),
        pytest.param(10**11, 10**12, marks=pytest.mark.slow),
    ],
)
def test_the_ends_of_rates_are_ends(hits: int, runs: int, level: float) -> None:
    """The tail is at most the level there, and above it within 1e-9 of the rate or its rest."""
    with ctx.workprec(statistics.BITS):
        found = statistics.least_rate(hits, runs, level)
        assert found > 0
        assert binomial_tail(hits, runs, found) <= level
        beyond = found + found.min(1 - found) * arb(1e-9)
        assert binomial_tail(hits, runs, beyond) > level

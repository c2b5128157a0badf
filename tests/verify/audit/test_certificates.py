"""Certificates of audits: the kernel agrees, and forgeries are named."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb

from dpassay.accountant import notation
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.questions import profile
from dpassay.verifier import kernel as checker
from dpassay.verifier.audit import (
    AuditResult,
    Counts,
    Design,
    audit,
    epsilon_lower_bound,
    p_value,
)
from dpassay.verifier.audit.auditor import replay
from dpassay.verifier.kernel import Outcome, statistics
from dpassay.verifier.kernel.statistics import binomial_tail
from tests.quick import quick


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
    quick(
        [
            "Gaussian(standard_deviation=2)",
            "Laplace(scale='sqrt(2)')",
            "DiscreteLaplace(scale=2)",
            "DiscreteGaussian(parameter=2)",
            "Staircase(epsilon=1, gamma=0.4)",
        ],
        1,
        3,
    ),
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
        Counts(30_000, 200_000, 9_000, 150_000),
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

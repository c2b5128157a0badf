"""Laplace noise that is cut off, against quadrature of its densities."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from accountant.errors import InvalidInputError
from accountant.mechanisms import Composed, TruncatedLaplace
from accountant.numbers.interval import Interval
from accountant.questions import accuracy, profile, utility
from verify.certificate import certify
from verify.checker import Outcome, check
from verify.claims import ApproximateDP
from verify.verdict import Verdict

FALSE_ALARM = 1e-6


def mpf(value: Interval) -> mpmath.mpf:
    return (mpmath.mpf(str(value.lower)) + mpmath.mpf(str(value.upper))) / 2


def test_the_bound_of_its_authors_is_met_exactly() -> None:
    # A = (Δ/ε) ln(1 + (e^ε − 1)/(2δ)), with A rounded to 30 digits
    with mpmath.workdps(40):
        bound = mpmath.nstr(2 * mpmath.log1p(mpmath.expm1(0.5) / 2e-5), 30)
        found = profile.delta(TruncatedLaplace(2, bound), "1/2")
        assert abs(mpf(found) / mpmath.mpf(1e-5) - 1) < 1e-15


def test_a_composition_has_the_mass_at_infinity_of_its_parts() -> None:
    twice = profile.delta(Composed(TruncatedLaplace(1, 8), 2), 5)
    one = mpf(profile.delta(TruncatedLaplace(1, 8), 5))
    assert twice.lower <= 2 * one - one**2 <= twice.upper


def test_accuracy_agrees_with_the_law_and_samples_are_within_the_bound() -> None:
    about = TruncatedLaplace("0.7", 2)
    a = mpmath.mpf(2) / mpmath.mpf("0.7")

    def mean(power: int) -> mpmath.mpf:
        weight = mpmath.quad(lambda x: x**power * mpmath.exp(-x), [0, a])
        return mpmath.mpf("0.7") ** power * weight / -mpmath.expm1(-a)

    assert abs(mpf(accuracy.mean_absolute_error(about)) - mean(1)) < 1e-14
    assert abs(mpf(utility.mean_squared_error(about)) - mean(2)) < 1e-14
    assert float(np.abs(about.sample(40_000, rng=np.random.default_rng(1))).max()) <= 2


def test_noise_that_is_cut_off_too_soon_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="bound"):
        TruncatedLaplace(1, bound="0.9")


@pytest.mark.parametrize(
    ("delta", "verdict"), [("0.0952", Verdict.HOLDS), ("0.0951", Verdict.REFUTED)]
)
def test_the_checker_derives_the_same(delta: str, verdict: Verdict) -> None:
    claim = ApproximateDP(
        id="test/truncated",
        source="test",
        statement="cut off",
        mechanism="TruncatedLaplace(scale=2, bound=20)",
        epsilon="0.3",
        delta=delta,
    )
    finding, certificate = certify(claim)
    assert finding.verdict is verdict
    assert certificate is not None
    assert check(certificate).outcome is Outcome.VALID

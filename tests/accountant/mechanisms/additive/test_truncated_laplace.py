"""Laplace noise that is cut off, against quadrature of its densities."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from accountant.errors import InvalidInputError
from accountant.mechanisms import Composed, TruncatedLaplace
from accountant.numbers.exact import exact
from accountant.numbers.interval import Interval, enclose
from accountant.questions import accuracy, profile, utility
from verify.certificate import certify
from verify.checker import Outcome, check
from verify.claims import ApproximateDP
from verify.verdict import Verdict

DIGITS = 25
FALSE_ALARM = 1e-6


def mpf(value: Interval) -> mpmath.mpf:
    return (mpmath.mpf(str(value.lower)) + mpmath.mpf(str(value.upper))) / 2


@pytest.mark.parametrize("law", [("2", "5", "1"), ("1/3", "4/3", "4/3"), ("sqrt(2)", "9", "2")])
@pytest.mark.parametrize("epsilon", ["-5", "-0.1", "0", "0.3", "0.6"])
def test_the_profile_and_the_tails_agree_with_the_densities(
    law: tuple[str, str, str], epsilon: str
) -> None:
    pair, eps = TruncatedLaplace(*law).worst_case(None).remove[0], exact(epsilon)
    with mpmath.workdps(DIGITS + 10):
        delta = pair.reference().hockey_stick(eps, DIGITS)
        p_above, q_above = pair.reference().tails(eps, DIGITS)
        for ours, theirs in [
            (lambda: pair.hockey_stick(eps), delta),
            (lambda: pair.tails(eps).p_above, p_above),
            (lambda: pair.tails(eps).q_above, q_above),
            (lambda: 1 - pair.tails(eps).p_below, p_above),
            (lambda: 1 - pair.tails(eps).q_below, q_above),
        ]:
            assert abs(mpf(enclose(ours)) - theirs) <= mpmath.mpf("1e-20")


def test_the_bound_of_its_authors_is_met_exactly() -> None:
    # A = (Δ/ε) ln(1 + (e^ε − 1)/(2δ)), with A rounded to 30 digits
    with mpmath.workdps(40):
        bound = mpmath.nstr(2 * mpmath.log1p(mpmath.expm1(0.5) / 2e-5), 30)
        found = profile.delta(TruncatedLaplace(2, bound), "1/2")
        assert abs(mpf(found) / mpmath.mpf(1e-5) - 1) < 1e-15


def test_a_smaller_shift_is_never_worse() -> None:
    for epsilon in ("0", "0.3", "1.9"):
        shifts = [Fraction(k, 10) for k in range(1, 21)]
        found = [profile.delta(TruncatedLaplace(1, 2, shift), epsilon).upper for shift in shifts]
        assert found == sorted(found)


def test_a_composition_has_the_mass_at_infinity_of_its_parts() -> None:
    twice = profile.delta(Composed(TruncatedLaplace(1, 8), 2), 5)
    one = mpf(profile.delta(TruncatedLaplace(1, 8), 5))
    assert twice.lower <= 2 * one - one**2 <= twice.upper


def test_accuracy_and_samples_agree_with_the_law() -> None:
    about, size = TruncatedLaplace("0.7", 2), 40_000
    a = mpmath.mpf(2) / mpmath.mpf("0.7")

    def mean(power: int) -> mpmath.mpf:
        weight = mpmath.quad(lambda x: x**power * mpmath.exp(-x), [0, a])
        return mpmath.mpf("0.7") ** power * weight / -mpmath.expm1(-a)

    assert abs(mpf(accuracy.mean_absolute_error(about)) - mean(1)) < 1e-14
    assert abs(mpf(utility.mean_squared_error(about)) - mean(2)) < 1e-14
    # DKW: 2e^{−2nt²} = FALSE_ALARM
    apart = np.sqrt(np.log(2 / FALSE_ALARM) / (2 * size))
    drawn = np.sort(about.sample(size, rng=np.random.default_rng(1)))
    assert float(np.abs(drawn).max()) <= 2
    for level in np.linspace(0, 1, 21):
        x = float(utility.quantile(about, float(level)).upper)
        assert abs(np.searchsorted(drawn, x, side="right") / size - level) <= apart


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

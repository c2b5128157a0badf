from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from accountant.errors import NotApplicableError
from accountant.mechanisms.wrappers.randomized_response import RandomizedResponse
from accountant.numbers.exact import exact
from accountant.numbers.interval import Interval, enclose
from accountant.questions import guarantees, profile, tradeoff, utility


def mpf(value: Interval) -> mpmath.mpf:
    return (mpmath.mpf(str(value.lower)) + mpmath.mpf(str(value.upper))) / 2


@pytest.mark.parametrize("epsilon", ["0.2", "1", "30"])
@pytest.mark.parametrize("categories", [2, 3, 10**9])
def test_profile_is_the_sum_over_the_reports(epsilon: str, categories: int) -> None:
    mechanism = RandomizedResponse(epsilon, categories)
    for at in ("-40", "-0.1", "0", "0.1", "0.19"):
        delta = profile.delta(mechanism, at)
        with mpmath.workdps(60):
            odds, factor = mpmath.exp(exact(epsilon).mpf()), mpmath.exp(exact(at).mpf())
            p = [odds, mpmath.mpf(1), mpmath.mpf(categories - 2)]
            q = [mpmath.mpf(1), odds, mpmath.mpf(categories - 2)]
            terms = [max(a - factor * b, mpmath.mpf(0)) for a, b in zip(p, q, strict=True)]
            expected = sum(terms) / (odds + categories - 1)
            assert abs(mpf(delta) - expected) <= mpmath.mpf("1e-30") * expected
        assert delta.relative_width is not None
        assert delta.relative_width <= Fraction(1, 10**30)


def test_trade_off_of_a_bit_has_two_pieces() -> None:
    # β = max(1 − e^ε α, e^{−ε}(1 − α)), Kairouz, Oh and Viswanath
    mechanism = RandomizedResponse("1")
    for alpha in ("1e-300", "0.1", "0.2689", "0.269", "0.5", "0.999"):
        beta = tradeoff.beta(mechanism, alpha)
        with mpmath.workdps(60):
            a = exact(alpha).mpf()
            expected = max(1 - mpmath.e * a, (1 - a) / mpmath.e)
            assert abs(mpf(beta) - expected) <= mpmath.mpf("1e-30") * expected


def test_no_information_at_zero() -> None:
    mechanism = RandomizedResponse(0, 3)
    assert profile.delta(mechanism, 0).upper == 0
    assert guarantees.total_variation(mechanism).upper == 0
    assert guarantees.rho(mechanism).upper == 0


def test_utility() -> None:
    bit = RandomizedResponse("1")
    with mpmath.workdps(60):
        wrong = 1 / (1 + mpmath.e)
        assert abs(mpf(utility.variance(bit)[0]) - wrong * (1 - wrong)) <= mpmath.mpf("1e-30")
        assert abs(mpf(utility.mean_squared_error(bit)) - wrong) <= mpmath.mpf("1e-30")
        many = RandomizedResponse("1", 7)
        error = mpf(enclose(many.error_probability))
        assert abs(error - 6 / (mpmath.e + 6)) <= mpmath.mpf("1e-30")
    with pytest.raises(NotApplicableError, match="7 categories has no variance"):
        utility.variance(many)
    with pytest.raises(NotApplicableError, match="error_probability"):
        utility.mean_squared_error(many)


def test_samples_follow_the_law() -> None:
    # Hoeffding on each of 4 frequencies: 4·2e^{−2nt²} ≤ 1e-6
    mechanism, size = RandomizedResponse("1", 4), 40_000
    draws = mechanism.sample(size, rng=np.random.default_rng(3))
    bound = np.sqrt(np.log(8e6) / (2 * size))
    expected = np.array([np.e, 1, 1, 1]) / (np.e + 3)
    assert np.abs(np.bincount(draws, minlength=4) / size - expected).max() <= bound

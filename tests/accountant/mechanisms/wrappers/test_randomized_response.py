from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest

from accountant.mechanisms.wrappers.randomized_response import RandomizedResponse
from accountant.numbers.exact import exact
from accountant.numbers.interval import Interval
from accountant.questions import guarantees, profile


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


def test_no_information_at_zero() -> None:
    mechanism = RandomizedResponse(0, 3)
    assert profile.delta(mechanism, 0).upper == 0
    assert guarantees.total_variation(mechanism).upper == 0
    assert guarantees.rho(mechanism).upper == 0

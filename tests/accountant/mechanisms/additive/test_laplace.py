from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from accountant.mechanisms import Laplace
from accountant.numbers.exact import exact
from accountant.numbers.interval import Interval
from accountant.questions import guarantees, profile, utility

LAWS = [("1", "1"), ("0.3", "2"), ("sqrt(2)", "1/3")]


def mpf(value: Interval) -> mpmath.mpf:
    return (mpmath.mpf(str(value.lower)) + mpmath.mpf(str(value.upper))) / 2


@pytest.mark.parametrize("order", ["1.5", "4"])
def test_renyi_agrees_with_quadrature(order: str) -> None:
    mechanism = Laplace("0.8")
    pair = mechanism.worst_case(None).remove[0]
    with mpmath.workdps(60):
        reference = pair.reference().renyi(exact(order), 50)
        assert abs(mpf(guarantees.renyi(mechanism, order)) - reference) <= mpmath.mpf("1e-30")


def test_the_closed_profile() -> None:
    with mpmath.workdps(60):
        value = mpf(profile.delta(Laplace("0.5"), "0.5"))
        assert abs(value - (1 - mpmath.exp(mpmath.mpf("-0.75")))) <= mpmath.mpf("1e-30")


def test_the_pure_guarantee_is_exact() -> None:
    mechanism = Laplace("0.3", 2)
    assert Fraction(20, 3) in profile.epsilon(mechanism, 0)
    assert profile.delta(mechanism, "20/3") == Interval.of_exact(0)
    assert profile.delta(mechanism, Fraction(20, 3) - Fraction(1, 10**500)).lower > 0


def test_quantile_is_the_inverse_of_the_distribution() -> None:
    mechanism = Laplace(3)
    with mpmath.workdps(400):
        for level in ("1e-300", "0.2", "1/2", "0.51", 1 - Fraction(1, 10**100)):
            x = mpf(utility.quantile(mechanism, level)) / 3
            p = exact(level).mpf()
            tail, target = mpmath.exp(-abs(x)) / 2, min(p, 1 - p)
            assert abs(tail - target) <= mpmath.mpf("1e-27") * target
            assert (x > 0) == (p > mpmath.mpf(1) / 2)


def test_samples_follow_the_distribution() -> None:
    # DKW: 2e^{−2nt²} = 1e-6
    mechanism, size = Laplace("0.7"), 40_000
    draws = np.sort(mechanism.sample(size, rng=np.random.default_rng(4)))
    bound = np.sqrt(np.log(2e6) / (2 * size))
    for level in np.linspace(0.01, 0.99, 99):
        x = float(utility.quantile(mechanism, float(level)).upper)
        assert abs(np.searchsorted(draws, x) / size - level) <= bound

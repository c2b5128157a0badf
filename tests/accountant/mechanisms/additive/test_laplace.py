from __future__ import annotations

from fractions import Fraction

import mpmath

from accountant.mechanisms import Laplace
from accountant.numbers.exact import exact
from accountant.numbers.interval import Interval
from accountant.questions import profile, utility


def mpf(value: Interval) -> mpmath.mpf:
    return (mpmath.mpf(str(value.lower)) + mpmath.mpf(str(value.upper))) / 2


def test_the_closed_profile() -> None:
    with mpmath.workdps(60):
        value = mpf(profile.delta(Laplace("0.5"), "0.5"))
        assert abs(value - (1 - mpmath.exp(mpmath.mpf("-0.75")))) <= mpmath.mpf("1e-30")


def test_quantile_is_the_inverse_of_the_distribution() -> None:
    mechanism = Laplace(3)
    with mpmath.workdps(400):
        for level in ("1e-300", "0.2", "1/2", "0.51", 1 - Fraction(1, 10**100)):
            x = mpf(utility.quantile(mechanism, level)) / 3
            p = exact(level).mpf()
            tail, target = mpmath.exp(-abs(x)) / 2, min(p, 1 - p)
            assert abs(tail - target) <= mpmath.mpf("1e-27") * target
            assert (x > 0) == (p > mpmath.mpf(1) / 2)

from __future__ import annotations

from fractions import Fraction

import mpmath

from accountant.mechanisms import Gaussian
from accountant.numbers.exact import exact
from accountant.numbers.interval import Interval, enclose
from accountant.questions import profile, utility


def mpf(value: Interval) -> mpmath.mpf:
    return (mpmath.mpf(str(value.lower)) + mpmath.mpf(str(value.upper))) / 2


def test_known_values() -> None:
    # Φ(1/2) − Φ(−1/2) = erf(1/√8), and Balle and Wang's analytic Gaussian at ε = 1
    with mpmath.workdps(60):
        total = mpmath.erf(1 / mpmath.sqrt(8))
        assert abs(mpf(profile.delta(Gaussian(1), 0)) - total) <= mpmath.mpf("1e-30")
        analytic = mpmath.ncdf(mpmath.mpf("-0.5")) - mpmath.e * mpmath.ncdf(mpmath.mpf("-1.5"))
        assert abs(mpf(profile.delta(Gaussian(1), 1)) - analytic) <= mpmath.mpf("1e-30")


def test_only_the_ratio_matters() -> None:
    assert profile.delta(Gaussian(2, 3), "0.5") == profile.delta(Gaussian("2/3"), "0.5")


def test_tails_beyond_every_float() -> None:
    # erfc of an inexact ball loses its accuracy at such arguments unless its ends are taken
    pair = Gaussian("1e-9").worst_case(None).remove[0]
    below = enclose(lambda: pair.tails(exact(1)).p_below)
    assert below.relative_width is not None
    assert below.relative_width <= Fraction(1, 10**30)
    assert below.lower.adjusted() == -54286810237906488


def test_noise() -> None:
    mechanism = Gaussian("0.25")
    assert Fraction(1, 16) in utility.variance(mechanism)[0]
    with mpmath.workdps(60):
        quantile = mpf(utility.quantile(mechanism, "0.975"))
        assert abs(mpmath.ncdf(4 * quantile) - mpmath.mpf("0.975")) <= mpmath.mpf("1e-29")

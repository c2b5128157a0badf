from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from accountant import guarantees, profile, utility
from accountant.errors import InvalidInputError
from accountant.interval import Interval, enclose
from accountant.mechanisms import Gaussian
from accountant.number import exact

LAWS = [("1", "1"), ("0.3", "1"), ("sqrt(50)", "sqrt(2)"), ("40", "1/3")]


def mpf(value: Interval) -> mpmath.mpf:
    return (mpmath.mpf(str(value.lower)) + mpmath.mpf(str(value.upper))) / 2


@pytest.mark.parametrize(("sigma", "sensitivity"), LAWS)
@pytest.mark.parametrize("epsilon", ["-1", "0", "0.3", "2"])
def test_two_routes_agree(sigma: str, sensitivity: str, epsilon: str) -> None:
    pair = Gaussian(sigma, sensitivity).worst_case(None).remove[0]
    eps = exact(epsilon)
    with mpmath.workdps(60):
        delta = mpf(enclose(lambda: pair.hockey_stick(eps)))
        assert abs(delta - pair.reference().hockey_stick(eps, 50)) <= mpmath.mpf("1e-30")
        p_above, q_above = pair.reference().tails(eps, 50)
        assert abs(mpf(enclose(lambda: pair.tails(eps).p_above)) - p_above) <= mpmath.mpf("1e-30")
        assert abs(mpf(enclose(lambda: pair.tails(eps).q_above)) - q_above) <= mpmath.mpf("1e-30")
        assert abs(mpf(enclose(lambda: pair.tails(eps).p_below)) + p_above - 1) <= mpmath.mpf(
            "1e-30"
        )


@pytest.mark.parametrize("order", ["1.5", "4"])
def test_renyi_agrees_with_quadrature(order: str) -> None:
    mechanism = Gaussian("0.8")
    pair = mechanism.worst_case(None).remove[0]
    with mpmath.workdps(60):
        reference = pair.reference().renyi(exact(order), 50)
        assert abs(mpf(guarantees.renyi(mechanism, order)) - reference) <= mpmath.mpf("1e-30")


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
    size = 40_000  # Hoeffding: 2e^{−2nt²} = 1e-6
    draws = mechanism.sample(size, rng=np.random.default_rng(11))
    bound = np.sqrt(np.log(2e6) / (2 * size))
    assert abs((draws <= 0.25 * 1.959963984540054).mean() - 0.975) <= bound


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1,), r"Expected standard_deviation=-1 > 0\. Give a positive number\."),
        ((0,), r"Expected standard_deviation=0 > 0"),
        (("nan",), r"Expected standard_deviation='nan' to be a number"),
        ((float("nan"),), r"Expected standard_deviation=nan to be finite"),
        ((1, "0.0"), r"Expected l2_sensitivity='0\.0' > 0"),
        ((True,), r"not a truth value"),
    ],
)
def test_bad_input(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Gaussian(*arguments)

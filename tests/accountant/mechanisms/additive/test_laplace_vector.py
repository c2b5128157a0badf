from __future__ import annotations

from fractions import Fraction

import numpy as np

from accountant import notation
from accountant.mechanisms import Laplace, LaplaceVector
from accountant.questions import guarantees, profile, tradeoff, utility


def test_only_the_absolute_ratios_matter() -> None:
    one = profile.delta(LaplaceVector(2, [1, -3, 0]), "0.7")
    assert one == profile.delta(LaplaceVector("1/2", ["0.75", "1/4"]), "0.7")


def test_one_coordinate_is_laplace() -> None:
    vector, scalar = LaplaceVector("sqrt(2)", [1]), Laplace("sqrt(2)")
    for epsilon in ("-1", "0", "0.5", "0.70710678"):
        assert profile.delta(vector, epsilon).overlaps(profile.delta(scalar, epsilon))
    for alpha in ("1e-300", "0.4", "0.6", "0.999999"):
        assert tradeoff.beta(vector, alpha).overlaps(tradeoff.beta(scalar, alpha))
    assert guarantees.rho(vector).overlaps(guarantees.rho(scalar))
    assert utility.quantile(vector, "0.9") == utility.quantile(scalar, "0.9")
    assert utility.variance(vector) == utility.variance(scalar)


def test_inverse_and_trade_off_of_several_coordinates() -> None:
    mechanism = LaplaceVector(10, [1] * 20)
    epsilon = profile.epsilon(mechanism, "1e-6")
    assert (
        profile.delta(mechanism, epsilon.lower).upper
        >= profile.delta(mechanism, epsilon.upper).lower
    )
    assert Fraction(1, 10**6) in profile.delta(mechanism, epsilon.lower).hull(
        profile.delta(mechanism, epsilon.upper)
    )
    power = tradeoff.power(mechanism, "0.05")
    # a test of level 0.05 that looks at nothing has power 0.05, and none is certain
    assert 0.05 < float(power.lower) < 1
    assert power.relative_width is not None
    assert power.relative_width <= Fraction(1, 10**11)


def test_delta_is_far_below_one_coordinate_with_the_whole_distance() -> None:
    vector = profile.delta(LaplaceVector(100, [1] * 100), "0.5")
    whole = profile.delta(Laplace(100, 100), "0.5")
    assert vector.upper * 1000 < whole.lower


def test_notation_and_shape() -> None:
    mechanism = LaplaceVector("1/3", [1, "0.5", "sqrt(4)"])
    assert notation.parse(repr(mechanism)) == mechanism
    assert mechanism.dimension == 3
    draws = mechanism.sample(20_000, rng=np.random.default_rng(1))
    assert draws.shape == (20_000, 3)
    # Chebyshev would do for the mean; here the median, by Hoeffding at 1e-6 per coordinate
    bound = np.sqrt(np.log(6e6) / (2 * 20_000))
    assert np.abs((draws > 0).mean(axis=0) - 0.5).max() <= bound

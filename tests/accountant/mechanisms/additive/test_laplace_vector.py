from __future__ import annotations

from accountant.mechanisms import Laplace, LaplaceVector
from accountant.questions import guarantees, profile, tradeoff, utility


def test_one_coordinate_is_laplace() -> None:
    vector, scalar = LaplaceVector("sqrt(2)", [1]), Laplace("sqrt(2)")
    for epsilon in ("-1", "0", "0.5", "0.70710678"):
        assert profile.delta(vector, epsilon).overlaps(profile.delta(scalar, epsilon))
    for alpha in ("1e-300", "0.4", "0.6", "0.999999"):
        assert tradeoff.beta(vector, alpha).overlaps(tradeoff.beta(scalar, alpha))
    assert guarantees.rho(vector).overlaps(guarantees.rho(scalar))
    assert utility.quantile(vector, "0.9") == utility.quantile(scalar, "0.9")
    assert utility.variance(vector) == utility.variance(scalar)


def test_delta_is_far_below_one_coordinate_with_the_whole_distance() -> None:
    vector = profile.delta(LaplaceVector(100, [1] * 100), "0.5")
    whole = profile.delta(Laplace(100, 100), "0.5")
    assert vector.upper * 1000 < whole.lower

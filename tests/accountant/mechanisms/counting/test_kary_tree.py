"""The k-ary tree."""

from __future__ import annotations

import numpy as np
import pytest

from dpassay.accountant import notation
from dpassay.accountant.counting.grids import factorisation
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms import KaryTree, LaplaceVector
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.questions import accuracy, profile

TREES = [
    KaryTree(13, 3, 1),
    KaryTree(40, 3, "1/2"),
    KaryTree(10, 4, 2),
    KaryTree(15, 2, 1, subtraction=False),
    KaryTree(7, 5, "sqrt(2)", subtraction=False),
]


@pytest.mark.parametrize("mechanism", TREES, ids=repr)
def test_errors_agree(mechanism: KaryTree) -> None:
    """The noise of every vertex has the scale that the profile is that of."""
    vertices = LaplaceVector(mechanism.scale, [1] * mechanism.tree.height)
    assert profile.delta(mechanism, "1/4") == profile.delta(vertices, "1/4")
    left = np.array(factorisation(mechanism.tree)[0], dtype=int)
    unit = 2 * float(mechanism.scale) ** 2
    shared = left @ left.T
    covariance = [[float(entry) for entry in row] for row in mechanism.covariance_matrix()]
    # entries are integers below 2^53 times one number: a few roundings
    np.testing.assert_allclose(covariance, unit * shared, rtol=1e-14, atol=0)
    variances = [float(entry) for entry in mechanism.variances()]
    np.testing.assert_allclose(variances, unit * np.diag(shared), rtol=1e-14, atol=0)
    mean = accuracy.mean_squared_error(mechanism)
    assert mechanism.exact_mean_squared_error().rational in mean
    assert float(mean.lower) == pytest.approx(np.mean(variances), rel=1e-13, abs=0)


def test_profile_is_refused_where_the_product_is_not_attained() -> None:
    for steps in (14, 26):
        with pytest.raises(NotApplicableError, match="Ask for steps=27, or for steps=13"):
            profile.delta(KaryTree(steps, 3, 1), "0.5")
    for steps in (13, 27):
        assert profile.delta(KaryTree(steps, 3, 1), "0.5").lower > 0
    # without subtraction there is no such number of steps
    for steps in range(1, 60):
        KaryTree(steps, 3, 1, subtraction=False).worst_case(None)


def test_contributions_multiply_the_noise() -> None:
    """A person in three positions: three times the scale, nine times the error, ε as asked for."""
    one, three = KaryTree(100, 3, 2), KaryTree(100, 3, 2, contributions=3)
    assert three.scale == one.scale * ExactReal.of_rational(3)
    assert three.exact_mean_squared_error() == (
        one.exact_mean_squared_error() * ExactReal.of_rational(9)
    )
    ratio = three.variances()[50] / one.variances()[50]
    assert abs(ratio - 9) < 1e-20
    with pytest.raises(NotApplicableError, match=r"Guaranteed\(epsilon=2\)"):
        profile.delta(three, 2)
    assert notation.parse(repr(three)) == three

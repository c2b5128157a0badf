"""A random shift under Gaussian noise: closed cases, the independent route, refusals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.core.adjacency import Direction
from accountant.errors import AdjacencyError
from accountant.mechanisms import Gaussian, MixtureOfGaussians, PoissonSubsampled
from accountant.questions import profile, utility

THREE = MixtureOfGaussians(1, [0, 1, 2], ["0.2", "0.6", "0.2"])
BOTH = MixtureOfGaussians("3/2", [1, "sqrt(2)"], ["0.2", "0.8"])  # every loss can be far below 0


def test_losses_have_the_ends_of_their_limits() -> None:
    # ADD: the loss is at most −ln of the weight of 0, here ln 5
    for epsilon, positive in (("1.60943", True), ("1.60944", False)):
        found = profile.delta(THREE, epsilon, adjacency="add-remove", direction=Direction.ADD)
        assert (found.lower > 0) is positive
    far = profile.delta(THREE, -2, adjacency="add-remove", direction=Direction.REMOVE)
    assert Fraction(far.lower) <= 1 - Fraction(str(np.exp(-2))) + Fraction(1, 10**15)
    everything = PoissonSubsampled(Gaussian(1), "0.5")  # whose losses are all above −2 too
    assert far == profile.delta(everything, -2, adjacency="add-remove", direction=Direction.REMOVE)


@settings(max_examples=25)
@given(
    st.lists(st.integers(0, 40), min_size=2, max_size=4),
    st.integers(1, 30),
    st.fractions(0, 2, max_denominator=20),
)
def test_more_contribution_never_has_less_delta(
    tenths: list[int], sigma: int, epsilon: Fraction
) -> None:
    share = [Fraction(1, len(tenths))] * len(tenths)
    small = MixtureOfGaussians(Fraction(sigma, 10), [Fraction(t, 10) for t in tenths], share)
    large = MixtureOfGaussians(Fraction(sigma, 10), [Fraction(t, 9) for t in tenths], share)
    values = [profile.delta(each, epsilon, adjacency="add-remove") for each in (small, large)]
    assert values[0].lower <= values[1].upper


def test_refusals_and_utility() -> None:
    assert str(utility.variance(BOTH)[0]) == "2.25"
    assert THREE.sample(3, rng=np.random.default_rng(1)).shape == (3,)
    with pytest.raises(AdjacencyError, match="add-remove"):
        profile.delta(THREE, 1)
    with pytest.raises(AdjacencyError, match="replace-one"):
        profile.delta(THREE, 1, adjacency="replace-one")

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from accountant.mechanisms.additive.discrete_laplace import DiscreteLaplace
from accountant.mechanisms.additive.truncated_geometric import TruncatedGeometric
from accountant.numbers.exact import exact

PRECISION = 200
NARROW = arb(2) ** -150


def brute_force(mechanism: TruncatedGeometric, n: int, other: int, epsilon: arb) -> arb:
    factor = epsilon.exp()
    pairs = zip(mechanism.masses(n), mechanism.masses(other), strict=True)
    return sum(((p - factor * q).max(arb(0)) for p, q in pairs), start=arb(0))


@given(
    scale=st.fractions(Fraction(1, 10), 8, max_denominator=12),
    low=st.integers(-4, 2),
    width=st.integers(1, 6),
    epsilon=st.fractions(-3, 3, max_denominator=9),
)
def test_every_pair_of_counts_at_one_distance_has_the_untruncated_profile(
    scale: Fraction, low: int, width: int, epsilon: Fraction
) -> None:
    high = low + width
    mechanism = TruncatedGeometric(scale, low, high)
    eps = exact(epsilon)
    with ctx.workprec(PRECISION):
        for n in range(low, high + 1):
            for other in range(low, high + 1):
                if n == other:
                    continue
                (pair,) = DiscreteLaplace(scale, abs(n - other)).worst_case(None).remove
                difference = brute_force(mechanism, n, other, eps.ball()) - pair.hockey_stick(eps)
                assert difference.contains(0)
                assert difference.rad() < NARROW


@pytest.mark.parametrize("count", [0, 1, 3, 5])
def test_moments_at_a_count_are_those_of_the_masses(count: int) -> None:
    mechanism = TruncatedGeometric("1.5", 0, 5)
    with ctx.workprec(PRECISION):
        masses = mechanism.masses(count)
        mean = sum((y * p for y, p in enumerate(masses)), start=arb(0))
        error = sum(((y - count) ** 2 * p for y, p in enumerate(masses)), start=arb(0))
        variance = sum(((y - mean) ** 2 * p for y, p in enumerate(masses)), start=arb(0))
        for difference in (
            sum(masses, start=arb(0)) - 1,
            mean - mechanism.mean_at(count),
            error - mechanism.mean_squared_error_at(count),
            variance - mechanism.variance_at(count),
        ):
            assert difference.contains(0)
            assert difference.rad() < NARROW


def test_releases_stay_in_the_range() -> None:
    mechanism = TruncatedGeometric(3, -1, 2)
    released = mechanism.release(2, 1000, rng=np.random.default_rng(7))
    assert set(released.tolist()) == {-1, 0, 1, 2}

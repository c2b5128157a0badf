from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant.core.adjacency import Direction
from accountant.mechanisms.wrappers.tabulated import Tabulated
from accountant.numbers.interval import Interval
from accountant.questions import guarantees, profile, tradeoff

INFINITE = Interval(Decimal("Infinity"), Decimal("Infinity"))
SKEWED = Tabulated(["1/2", "1/3", "1/6"], ["1/6", "1/3", "1/2"])
WITH_ZEROS = Tabulated(["1/3", "2/3", 0], [0, "1/3", "2/3"])


def test_total_variation_is_exact() -> None:
    assert Fraction(1, 3) in guarantees.total_variation(SKEWED)
    width = guarantees.total_variation(SKEWED).relative_width
    assert width is not None
    assert width <= Fraction(1, 10**30)


def test_directions() -> None:
    table = Tabulated(["1/10", "9/10"], ["1/2", "1/2"])
    remove = profile.delta(table, "0.4", direction=Direction.REMOVE)
    add = profile.delta(table, "0.4", direction=Direction.ADD)
    swapped = Tabulated(table.q, table.p)
    assert remove == profile.delta(swapped, "0.4", direction=Direction.ADD)
    assert add == profile.delta(swapped, "0.4", direction=Direction.REMOVE)
    assert profile.delta(table, "0.4") == max(remove, add, key=lambda v: v.lower)


def test_masses_at_infinity() -> None:
    assert Fraction(1, 3) in profile.delta(WITH_ZEROS, 100, direction=Direction.REMOVE)
    assert profile.epsilon(WITH_ZEROS, "0.3") == INFINITE
    # at δ = P(L = ∞) the largest finite loss, ln 2 in REMOVE; ADD still has more mass there
    at = profile.epsilon(WITH_ZEROS, "1/3", direction=Direction.REMOVE)
    assert abs(at.lower - Decimal(2).ln()) < Decimal("1e-27")
    assert profile.epsilon(WITH_ZEROS, "1/3", direction=Direction.ADD) == INFINITE
    assert guarantees.renyi(WITH_ZEROS, 2) == INFINITE
    assert guarantees.rho(WITH_ZEROS) == INFINITE


@pytest.mark.parametrize("alpha", ["1/3", "1/2", "0.999"])
def test_no_type_two_error_once_all_of_p_can_be_rejected(alpha: str) -> None:
    assert tradeoff.beta(WITH_ZEROS, alpha, direction=Direction.REMOVE) == Interval.of_exact(0)
    assert tradeoff.power(WITH_ZEROS, alpha, direction=Direction.REMOVE) == Interval.of_exact(1)


masses = st.lists(st.integers(0, 20), min_size=2, max_size=6)


def law(weights: list[int]) -> list[Fraction]:
    return [Fraction(weight, sum(weights)) for weight in weights]


@given(masses, st.data())
def test_trade_off_is_the_exact_linear_program(first: list[int], data: st.DataObject) -> None:
    """Neyman–Pearson in fractions: reject outcomes by falling p/q until the level is spent."""
    second = data.draw(st.lists(st.integers(0, 20), min_size=len(first), max_size=len(first)))
    if not sum(first) or not sum(second):
        return
    p, q = law(first), law(second)
    corners = [sum(q[:i], start=Fraction(0)) for i in range(len(q) + 1)]
    alpha = data.draw(st.one_of(st.sampled_from(corners), st.fractions(0, 1, max_denominator=50)))
    left, power = alpha, Fraction(0)
    order = sorted(
        range(len(p)), key=lambda i: (q[i] == 0, p[i] / q[i] if q[i] else 0), reverse=True
    )
    for i in order:
        share = min(Fraction(1), left / q[i]) if q[i] else Fraction(1)
        power += share * p[i]
        left -= share * q[i]
    value = tradeoff.beta(Tabulated(p, q), alpha, direction=Direction.REMOVE)
    assert 1 - power in value
    if power != 1:
        assert value.relative_width is not None
        assert value.relative_width <= Fraction(1, 10**30)
    else:
        assert value.upper == 0
    assert power in tradeoff.power(Tabulated(p, q), alpha, direction=Direction.REMOVE)


@given(masses, st.data())
def test_profile_at_zero_is_exact(first: list[int], data: st.DataObject) -> None:
    second = data.draw(st.lists(st.integers(0, 20), min_size=len(first), max_size=len(first)))
    if not sum(first) or not sum(second):
        return
    p, q = law(first), law(second)
    distance = sum((max(a - b, Fraction(0)) for a, b in zip(p, q, strict=True)), start=Fraction(0))
    assert distance in guarantees.total_variation(Tabulated(p, q))
    if 0 < distance < 1:  # δ(0) is the total variation, so 0 inverts it
        zero = profile.epsilon(Tabulated(p, q), distance)
        assert 0 in zero
        assert zero.upper - zero.lower <= Decimal("1e-25")


def test_samples_follow_p() -> None:
    # Hoeffding on each of 3 frequencies: 3·2e^{−2nt²} ≤ 1e-6
    size = 40_000
    draws = SKEWED.sample(size, rng=np.random.default_rng(5))
    bound = np.sqrt(np.log(6e6) / (2 * size))
    expected = np.array([1 / 2, 1 / 3, 1 / 6])
    assert np.abs(np.bincount(draws, minlength=3) / size - expected).max() <= bound

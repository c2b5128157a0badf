from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.errors import InvalidInputError
from accountant.geometry.worst_shift import BoundedShifts, least_scale
from accountant.mechanisms import Gaussian, LaplaceVector
from accountant.numbers.exact import exact
from accountant.questions import guarantees, profile

SHIFTS = st.lists(st.integers(0, 12), min_size=1, max_size=6).filter(any)


@given(SHIFTS, st.sampled_from(["1.1", "2", "5", "40"]), st.integers(1, 30))
def test_no_shift_has_a_larger_renyi_divergence(shifts: list[int], order: str, size: int) -> None:
    square = sum(shift**2 for shift in shifts)
    scale = Fraction(size, 3)
    bounds = BoundedShifts(scale, sum(shifts), f"sqrt({square})", len(shifts))
    own = guarantees.renyi(LaplaceVector(scale, shifts), order)
    assert own.lower <= bounds.renyi(order).upper


@settings(max_examples=12)
@given(SHIFTS, st.integers(0, 9), st.integers(1, 30))
def test_no_shift_has_a_larger_delta(shifts: list[int], tenths: int, size: int) -> None:
    square = sum(shift**2 for shift in shifts)
    scale = Fraction(size, 3)
    bounds = BoundedShifts(scale, sum(shifts), f"sqrt({square})", len(shifts))
    epsilon = Fraction(sum(shifts) * tenths, 10) / scale
    own = profile.delta(LaplaceVector(scale, shifts), epsilon, relative_width=Fraction(1, 10**6))
    assert own.lower <= bounds.delta_bound(epsilon).upper


def test_equal_coordinates_attain_the_renyi_divergence() -> None:
    bounds = BoundedShifts(2, 6, "sqrt(12)", 10)
    assert bounds.coordinates() == 3
    for order in ("1.5", "7"):
        assert bounds.renyi(order).overlaps(guarantees.renyi(LaplaceVector(2, [2] * 3), order))
        gaussian = guarantees.renyi(
            Gaussian(standard_deviation=2, l2_sensitivity="sqrt(12)"), order
        )
        assert bounds.renyi(order).upper < gaussian.lower


def test_norms_that_imply_each_other() -> None:
    wide, narrow = BoundedShifts(1, 100, 1, 4), BoundedShifts(1, 1, 100, 4)
    assert wide.norms() == (exact(2), exact(1))
    assert narrow.norms() == (exact(1), exact(1))


def test_one_coordinate_of_the_whole_size_is_worst_where_the_norms_agree() -> None:
    found = BoundedShifts(2, 3, 3, 5).worst("0.4")
    assert found.shifts[0][1] == 1
    assert found.bound.overlaps(profile.delta(LaplaceVector(2, [3]), "0.4"))


def test_nothing_is_lost_from_the_l1_norm_on() -> None:
    for epsilon in (4, 5):
        found = BoundedShifts(1, 4, 1, 50).worst(epsilon)
        assert found.attained.upper == found.bound.upper == 0


@pytest.mark.parametrize(
    ("bounds", "epsilon", "factor"),
    [
        (BoundedShifts("4.15", 10, 1, 1000), "1", "5"),
        (BoundedShifts(1, "1.5", 1, 3), "0.7", "1.2"),
        (BoundedShifts(1, 3, "1.2", 300), "2", "1.5"),
        (BoundedShifts(10, 25, 2, 300), "1.2", "6"),
    ],
)
def test_the_bound_is_near_what_is_attained(
    bounds: BoundedShifts, epsilon: str, factor: str
) -> None:
    found = bounds.worst(epsilon)
    assert found.attained.upper <= found.bound.lower
    assert found.bound.upper <= found.attained.upper * Decimal(factor)


def test_the_least_scale_is_below_the_theorem() -> None:
    """Lemma 5.4 of Andersson, Pagh and Torkamani asks for 5.35 where 4.2 is the truth."""
    found = least_scale(1, "1e-6", l1=10, l2=1, dimension=256)
    mechanism = LaplaceVector(f"{found.lower:.12g}", [Fraction(1, 10)] * 100)
    near = profile.delta(mechanism, 1, relative_width=Fraction(1, 10**9))
    assert near.lower > Fraction(999, 10**9)
    bounds = BoundedShifts(f"{found.upper:.30g}", 10, 1, 256)
    assert bounds.delta_bound(1).lower <= Fraction(1, 10**6)
    assert found.upper < Decimal("1.07") * found.lower
    log = math.log(1e6)
    assert float(found.upper) < 1 / (math.sqrt(2) * (math.sqrt(log + 1) - math.sqrt(log)))


def test_bad_input() -> None:
    with pytest.raises(InvalidInputError, match="Expected l1=0 > 0"):
        BoundedShifts(1, 0, 1, 4)
    with pytest.raises(InvalidInputError, match="epsilon=-1 ≥ 0"):
        BoundedShifts(1, 1, 1, 4).worst(-1)
    with pytest.raises(InvalidInputError, match="order=1 > 1"):
        BoundedShifts(1, 1, 1, 4).renyi(1)
    with pytest.raises(InvalidInputError, match="delta=1 in"):
        least_scale(1, 1, l1=1, l2=1, dimension=1)

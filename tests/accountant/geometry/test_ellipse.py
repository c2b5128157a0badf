from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import isqrt

import pytest

from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.geometry.ellipse import count_ellipse, optimal_ellipse
from dpassay.accountant.geometry.spaces import defects
from dpassay.accountant.numbers.exact import exact


def test_every_ninth_sparsity_is_proved_in_dimension_1000() -> None:
    for sparsity in range(1, 1001, 9):
        assert defects(optimal_ellipse(1000, sparsity)) == ()


@pytest.mark.parametrize("dimension", [*range(1, 13), 24, 25, 26, 60])
def test_every_sparsity_is_proved_in_small_dimensions(dimension: int) -> None:
    for sparsity in range(1, dimension + 1):
        ellipse = optimal_ellipse(dimension, sparsity)
        assert defects(ellipse) == ()
        # privacy again, constraint by constraint, and tight somewhere
        norms = [ellipse.squared_norm(j, j) for j in range(1, sparsity + 1)]
        excess = [(norm - exact(1)).sign for norm in norms]
        assert max(excess) == 0
        # replace-one: the noise along (1, …, 1) is never the smaller one
        assert (ellipse.axis_ones - ellipse.axis_rest).sign >= 0


@pytest.mark.parametrize("dimension", [10**6, 10**6 - 1, 10**6 + 1, 10**12 + 1, 10**12 + 7])
def test_large_dimensions(dimension: int) -> None:
    middle = (dimension + isqrt(dimension)) // 2
    for sparsity in (1, dimension // 3, dimension // 2, middle, middle + 1, dimension):
        assert defects(optimal_ellipse(dimension, sparsity)) == ()


def test_wrong_ellipses_are_refused() -> None:
    good = optimal_ellipse(7, 7)
    smaller = replace(good, axis_rest=good.axis_rest.times(Fraction(99, 100)))
    assert any("v'Σ⁻¹v ≤ 1" in defect for defect in defects(smaller))
    larger = replace(good, axis_ones=good.axis_ones.times(Fraction(101, 100)))
    assert any("dual bound" in defect for defect in defects(larger))
    assert "sum to 1" in defects(replace(good, weights=((4, Fraction(1, 2)),)))[0]
    assert "within 1..7" in defects(replace(good, weights=((8, Fraction(1)),)))[0]
    assert "within 1..7" in defects(replace(good, weights=()))[0]
    assert "positive axes" in defects(replace(good, axis_ones=exact(0)))[0]
    assert "between 1 and dimension" in defects(replace(good, sparsity=8))[0]
    shifted = replace(good, weights=((good.weights[0][0] + 1, Fraction(1)),))
    assert any("dual bound" in defect for defect in defects(shifted))


def test_the_count_ellipse_ends_at_half_the_dimension() -> None:
    with pytest.raises(InvalidInputError, match=r"Expected sparsity=4 ≤ dimension/2 = 3\.5"):
        count_ellipse(7, 4)
    assert count_ellipse(1, 1).query_variance == exact(1)

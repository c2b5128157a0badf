"""The order of shifts: δ grows with every size, and when sizes move apart."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from accountant.composition.exact.laplace_product import of_distances
from accountant.geometry.shift_order import majorant
from accountant.mechanisms import LaplaceVector
from accountant.numbers.exact import ExactReal, exact
from accountant.numbers.interval import ball
from accountant.questions import profile

SIZES = st.lists(st.integers(1, 30), min_size=2, max_size=5)


@given(SIZES, st.integers(0, 8), st.integers(1, 20))
def test_delta_grows_where_sizes_move_apart(sizes: list[int], tenths: int, share: int) -> None:
    epsilon = Fraction(sum(sizes) * tenths, 100)
    first, *others, last = sorted(sizes)
    moved = Fraction(first * share, 20)
    near = profile.delta(LaplaceVector(10, sizes), epsilon)
    apart = profile.delta(LaplaceVector(10, [first - moved, *others, last + moved]), epsilon)
    assert near.lower <= apart.upper


@pytest.mark.parametrize("epsilon", ["0", "0.3", "0.9"])
def test_the_derivative_along_two_sizes(epsilon: str) -> None:
    """½ e^{(ε − a − b)/2} where ε < a − b, and 0 where ε is larger."""
    a, b, h = Fraction(3, 2), Fraction(1, 2), Fraction(1, 10)
    near = profile.delta(LaplaceVector(1, [a, b]), epsilon)
    apart = profile.delta(LaplaceVector(1, [a + h, b - h]), epsilon)
    with ctx.workprec(128):
        rate = ((exact(epsilon).ball() - ball(a + b)) / 2).exp() / 2
        assert (apart.ball() - near.ball()).overlaps(rate * ball(h))
    beyond = Fraction(5, 4)
    near, apart = (
        profile.delta(LaplaceVector(1, shifts), beyond) for shifts in ([a, b], [a + h, b - h])
    )
    assert near.overlaps(apart)


@given(SIZES, st.integers(0, 9))
def test_the_majorant_has_the_largest_delta(sizes: list[int], tenths: int) -> None:
    square = sum(size**2 for size in sizes)
    kappa = Fraction(sum(sizes) ** 2, square)
    above = majorant(ExactReal.of_root(Fraction(square)), kappa)
    epsilon = ExactReal.of_rational(Fraction(sum(sizes) * tenths, 10))
    own = of_distances([ExactReal.of_rational(size) for size in sizes])
    with ctx.workprec(192):
        assert not above.hockey_stick(epsilon) < own.hockey_stick(epsilon)


def test_the_partial_sums_of_the_majorant() -> None:
    pair = majorant(exact(3), Fraction(15, 2))
    sizes = sorted((float(p.max_loss()) for p, n in pair.factors for _ in range(n)), reverse=True)
    for count in range(1, 9):
        expected = 3 * math.sqrt(min(count, 7.5))
        assert expected <= sum(sizes[:count]) * (1 + 1e-15) <= expected * (1 + 1e-5)


def test_one_size_is_its_own_majorant() -> None:
    pair = majorant(exact("sqrt(2)"), Fraction(1))
    assert pair.exact_max_loss() == exact("sqrt(2)")
    with ctx.workprec(128):
        one = -((1 - arb(2).sqrt()) / 2).expm1()
        assert pair.hockey_stick(exact(1)).overlaps(one)

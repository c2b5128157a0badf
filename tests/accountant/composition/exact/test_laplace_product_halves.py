"""Products of Laplace laws with many different shifts: two halves against all signs."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction

import pytest
from flint import ctx
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from accountant.composition.exact.laplace_product import lattice
from accountant.composition.exact.laplace_product_plan import Kernel
from accountant.composition.exact.laplace_product_sums import _Integral, _reach
from accountant.composition.grid.product import GRID
from accountant.mechanisms import LaplaceVector
from accountant.numbers.exact import ExactReal, exact
from accountant.numbers.interval import enclose
from accountant.questions import profile
from tests.near import narrow
from tests.quick import quick

NARROW = Fraction(1, 10**9)


def different(count: int, scale: int) -> LaplaceVector:
    """Return shifts of nine digits that have no small common unit, of ℓ2 norm about 1."""
    chosen = random.Random(1)
    sizes = [Fraction(round(chosen.random() * 10**9), 10**9) for _ in range(count)]
    norm = Fraction(round(float(sum(size**2 for size in sizes)) ** 0.5 * 10**6), 10**6)
    return LaplaceVector(scale, [size / norm for size in sizes])


@pytest.mark.parametrize("epsilon", ["-0.4", "0", "0.2", "0.9"])
@pytest.mark.parametrize("kernel", list(Kernel))
@pytest.mark.parametrize("parts", [2, 3, 4, 6])
def test_two_halves_have_the_terms_of_all_signs(parts: int, kernel: Kernel, epsilon: str) -> None:
    law, eps = lattice(different(11, 3).pair()), exact(epsilon)
    with ctx.workprec(192):
        whole = _Integral(law.groups, law.unit, eps, kernel, at_least=False)
        assert whole._of_halves(parts).overlaps(whole._exact(parts))
        assert whole._of_halves(parts).rel_accuracy_bits() > 100


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(st.integers(1, 40), st.integers(1, 5), min_size=2, max_size=5),
    st.integers(-60, 200),
    st.booleans(),
    st.sampled_from(Kernel),
)
def test_equal_shifts_and_ties_are_counted_as_in_one_sum(
    shifts: dict[int, int], place: int, at_least: bool, kernel: Kernel
) -> None:
    """ε on a jump, which counts only for l ≥ ε."""
    groups = tuple(sorted(shifts.items()))
    assume(place < _reach(groups))
    unit, eps = exact("0.01"), ExactReal.of_rational(Fraction(place, 100))
    with ctx.workprec(192):
        whole = _Integral(groups, unit, eps, kernel, at_least)
        assert (whole._of_halves(3) - whole._exact(3)).contains(0)


@pytest.mark.parametrize("epsilon", quick(["0.5", "1"], 0))
def test_many_different_shifts_to_nine_digits(epsilon: str) -> None:
    mechanism = different(24, 3)
    found = profile.delta(mechanism, epsilon, relative_width=NARROW)
    assert narrow(found, NARROW)
    grid, width = mechanism.pair().asked(GRID), Fraction(1, 100)
    rough = enclose(lambda: grid.hockey_stick(exact(epsilon)), relative_width=width)
    assert found.overlaps(rough)


@pytest.mark.slow
def test_epsilon_of_many_different_shifts() -> None:
    """At 1e-20 near the largest loss, where cosh of a tilt is beyond floats."""
    mechanism = different(24, 3)
    for target in ("1e-5", "1e-20"):
        found = profile.epsilon(mechanism, target, relative_width=NARROW)
        assert narrow(found, NARROW)
        ends = [
            profile.delta(mechanism, str(end), relative_width=Fraction(1, 10**6))
            for end in (found.lower, found.upper)
        ]
        assert ends[1].lower < Decimal(target) < ends[0].upper


def test_forty_shifts_on_a_grid_to_nine_digits() -> None:
    found = profile.delta(
        LaplaceVector(1, [t * Fraction(1, 9) for t in range(1, 41)]), 3, relative_width=NARROW
    )
    assert narrow(found, NARROW)

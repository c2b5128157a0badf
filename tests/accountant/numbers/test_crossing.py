"""Crossings: signs are certain at both ends, unless one is an end of what is searched."""

from fractions import Fraction

import pytest
from flint import arb

from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import crossing


@pytest.mark.parametrize("root", ["1/3", "1e-30", "-7/5", "1000001/1000", "0"])
@pytest.mark.parametrize("power", [1, 3])
def test_signs_are_certain_and_ends_near(root: str, power: int) -> None:
    place = Fraction(root)

    def rise(x: Fraction) -> arb:
        return ball(x - place) ** power

    with ctx.workprec(128):
        low, high = crossing(rise, Fraction(-2000), Fraction(1 << 40), 60)
    assert low < place < high
    assert high - low < max(abs(place), Fraction(1, 1 << 20)) / 10**15


def test_an_end_stays_where_no_sign_is_certain_before_it() -> None:
    def rise(x: Fraction) -> arb:
        return ball(x) + arb(0, "0.01")  # 0 ± 0.01 on the way to the end

    with ctx.workprec(64):
        low, high = crossing(rise, Fraction(-1, 1000), Fraction(1), 40)
    assert low == Fraction(-1, 1000)
    assert high > Fraction(1, 100)

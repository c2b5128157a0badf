""""""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers import solve
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval, ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import crossing, halved
from tests.near import narrow

WIDTH = Fraction(1, 10**30)


class Counted:
    """A function that counts its evaluations."""

    def __init__(self, function: solve.Function) -> None:
        self.function, self.calls = function, 0

    def __call__(self, x: ExactReal) -> arb:
        self.calls += 1
        return self.function(x)


def find(function: solve.Function, width: Fraction = WIDTH) -> Interval:
    return solve.root(function, solve.bracket(function, Fraction(1)), relative_width=width)


@given(st.fractions(-(10**6), 10**6))
def test_linear_root(at: Fraction) -> None:
    root = find(lambda x: ExactReal.of_rational(at).ball() - x.ball())
    assert at in root
    if at:
        assert narrow(root, WIDTH)


def test_a_jump_is_found() -> None:
    third = Fraction(1, 3)
    root = find(lambda x: arb(1 if x < ExactReal.of_rational(third) else -1))
    assert third in root
    assert narrow(root, WIDTH)


def test_infinite_values_are_no_obstacle() -> None:
    # ln((1 − x)₊): −∞ from 1 on
    one = ExactReal.of_rational(1)

    def logarithm(x: ExactReal) -> arb:
        return arb.neg_inf() if x >= one else (2 * (1 - x.ball())).log()

    assert Fraction(1, 2) in find(logarithm)


def test_a_root_right_beside_a_pole() -> None:
    # ln(1 − x) = −690: the root is within 1e-299 of 1
    def logarithm(x: ExactReal) -> arb:
        return arb.neg_inf() if x >= ExactReal.of_rational(1) else (1 - x.ball()).log() + 690

    root = find(logarithm)
    assert Fraction(root.lower) <= 1 - Fraction(1, 10**299) <= Fraction(root.upper)
    assert narrow(root, WIDTH)


def test_bracket_directions_and_floor() -> None:
    def above(x: ExactReal) -> arb:
        return 1000 - x.ball()

    low, high = solve.bracket(above, Fraction(1))
    assert low <= 1000 <= high
    low, high = solve.bracket(lambda x: -1000 - x.ball(), Fraction(1))
    assert low <= -1000 <= high
    low, high = solve.bracket(above, Fraction(1, 8), floor=Fraction(10))
    assert low >= 10
    with pytest.raises(UndecidedError, match="No change of sign"):
        solve.bracket(lambda _: arb(1), Fraction(1))


@pytest.mark.parametrize("middle", [300, -300, 0, 14])
def test_a_wide_ball_proves_no_end(middle: int) -> None:
    """The root may be anywhere within 200 of the middle: no end lies inside."""

    def wide(x: ExactReal) -> arb:
        return arb(middle, 200) - x.ball()

    low, high = solve.bracket(wide, Fraction(1))
    assert low <= middle - 200
    assert middle + 200 <= high
    with pytest.raises(UndecidedError) as refusal:
        find(wide)
    assert refusal.value.interval is not None
    assert refusal.value.interval.lower <= middle - 200
    assert refusal.value.interval.upper >= middle + 200


def test_the_near_end_of_a_plateau_counts_as_the_root() -> None:
    # on [1, 2] the function is 0 but for its rounding; from ≥ 0 to ≤ 0 it passes at 1
    def plateau(x: ExactReal) -> arb:
        noise = arb(2).sqrt() ** 2 - 2
        value = x.ball()
        return (1 - value).max(arb(0)) - (value - 2).max(arb(0)) + noise

    assert 1 in find(plateau)


def test_a_root_that_cannot_be_proved_is_refused() -> None:
    # around 1/3 no precision tells the sign
    third = Fraction(1, 3)

    def flat(x: ExactReal) -> arb:
        distance = third - (x.rational or 0)
        noise = arb(2).sqrt() ** 2 - 2
        return noise if abs(distance) < Fraction(1, 10) else arb(1 if distance > 0 else -1)

    with pytest.raises(UndecidedError, match="could not be proved to relative width") as refusal:
        find(flat, Fraction(1, 10**6))
    reached = re.search(r"reached \[(.*), (.*)\]", str(refusal.value))
    assert reached is not None
    lower, upper = map(Fraction, reached.groups())
    assert lower < third - Fraction(1, 10) < third + Fraction(1, 10) < upper
    assert upper - lower < 1


@pytest.mark.parametrize("share", ["0.1", "0.4", "0.6", "0.9", "1.5", "3"])
@pytest.mark.parametrize("width", [Fraction(1, 10**9), Fraction(1, 10), Fraction(2)])
def test_the_width_that_is_asked_for_is_reached_or_refused(share: str, width: Fraction) -> None:
    """Where signs are told apart only `share` widths away, four widths were once returned."""
    at = Fraction(1, 3)

    def blurred(x: ExactReal) -> arb:
        distance = (at - (x.rational or 0)) / (at * width)
        noise = arb(0, float(Fraction(share) / 2))
        return ExactReal.of_rational(distance).ball() + noise

    between = (Fraction(0), Fraction(10))
    try:
        found = solve.root(blurred, between, relative_width=width)
    except UndecidedError:
        assert Fraction(share) > Fraction(1, 2) or width == 2
    else:
        assert at in found
        assert narrow(found, width)


def test_a_refusal_beyond_the_range_of_floats_is_one() -> None:
    between = Fraction(10**400), Fraction(2 * 10**400)
    with pytest.raises(UndecidedError, match=r"\[1e\+400, 2e\+400\]"):
        solve.root(lambda _: arb(0, 1), between, relative_width=Fraction(1, 10**6))


# Crossings: signs are certain at both ends, unless one is an end of what is searched


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


# Searches by a property: both ends keep their sides, and integers are found exactly


@given(st.fractions(0, 1), st.integers(1, 40))
def test_halved_keeps_the_change_between_its_ends(change: Fraction, steps: int) -> None:
    low, high = halved(lambda at: at < change, Fraction(-1), Fraction(2), steps)
    assert low <= change <= high
    assert high - low == Fraction(3, 2**steps)

"""Intervals and bounds of numbers: ends, rounding, Chernoff's factor, Landau's constants."""

from __future__ import annotations

import operator
from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest
from flint import arb, ctx, fmpq
from hypothesis import assume, given
from hypothesis import strategies as st

from dpassay.accountant.errors import InvalidInputError, UndecidedError
from dpassay.accountant.mechanisms import SquareRootFactorization
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import MAX_PRECISION, Interval, ball, enclose, sign
from dpassay.accountant.numbers.solve import log_peak, rough_log_peak
from dpassay.accountant.numbers.theta import coefficients, landau
from dpassay.accountant.questions import accuracy

# interval


fractions = st.fractions(-(10**9), 10**9, max_denominator=10**9)


def test_no_end_is_nan() -> None:
    with pytest.raises(UndecidedError, match="NaN ball"):
        Interval.of_ball(arb.nan())


@given(fractions, st.integers(2, 60))
def test_of_exact_contains_and_is_as_narrow_as_its_digits(value: Fraction, digits: int) -> None:
    interval = Interval.of_exact(value, digits)
    assert value in interval
    width = interval.relative_width
    assert width is not None
    assert width <= Fraction(1, 10 ** (digits - 1))


@given(fractions, st.integers(20, 300), st.integers(2, 50))
def test_of_ball_rounds_outward(value: Fraction, bits: int, digits: int) -> None:
    with ctx.workprec(bits):
        enclosed = arb(fmpq(value.numerator, value.denominator))
    interval = Interval.of_ball(enclosed, digits)
    assert value in interval
    low, high = Fraction(interval.lower), Fraction(interval.upper)
    with ctx.workprec(500):
        assert ball(low) <= enclosed.lower()
        assert ball(high) >= enclosed.upper()


@given(fractions)
def test_ball_and_interval_contain_each_other(value: Fraction) -> None:
    interval = Interval.of_exact(value, 20)
    with ctx.workprec(200):
        assert interval.ball().contains(ball(value))
        assert value in Interval.of_ball(interval.ball())


def test_infinite_ends() -> None:
    infinite = Interval.of_ball(arb.pos_inf())
    assert infinite.lower == infinite.upper == Decimal("Infinity")
    assert str(infinite) == "Infinity"
    half = Interval(Decimal(1), Decimal("Infinity"))
    assert half.relative_width is None
    assert Fraction(10**400) in half
    assert Fraction(1, 2) not in half
    assert half.overlaps(infinite)


@pytest.mark.parametrize("digits", [140, 200])  # of 140, 512 bits leave 47: too few
def test_enclose_climbs_until_it_is_narrow(digits: int) -> None:
    seen: list[int] = []

    def cancelling() -> arb:
        seen.append(int(ctx.prec))
        return (1 + arb(fmpq(1, 10**digits))) - 1

    value = enclose(cancelling)
    assert Fraction(1, 10**digits) in value
    assert value.relative_width is not None
    assert value.relative_width <= Fraction(1, 10**30)
    assert seen == sorted(set(seen))
    assert seen[-1] >= 700


@given(st.integers(1, 10**6), st.integers(4, 60))
def test_ladder_answers_contain_one_another(n: int, digits: int) -> None:
    """A narrower answer lies in a wider one: both contain √n."""
    wide = enclose(lambda: arb(n).sqrt(), relative_width=Fraction(1, 10**4))
    narrow = enclose(lambda: arb(n).sqrt(), relative_width=Fraction(1, 10**digits))
    assert wide.overlaps(narrow)
    assert Fraction(narrow.lower) ** 2 <= n <= Fraction(narrow.upper) ** 2
    assert narrow.relative_width is not None
    assert narrow.relative_width <= Fraction(1, 10**digits)


def test_enclose_says_what_it_reached() -> None:
    with pytest.raises(
        UndecidedError, match=rf"1\.0e-30 was not reached at {MAX_PRECISION} bits.*Ask for"
    ):
        enclose(lambda: arb("0 +/- 1"))
    with pytest.raises(UndecidedError, match="no enclosure"):
        enclose(arb.nan)
    for width in (Fraction(0), Fraction(1), Fraction(-1)):
        with pytest.raises(InvalidInputError, match="relative_width"):
            enclose(lambda: arb(1), relative_width=width)


def test_precision_is_left_alone() -> None:
    before = ctx.prec
    enclose(lambda: arb(2).sqrt())
    sign(lambda: arb(2).sqrt() - 1)
    assert ctx.prec == before


def test_sign() -> None:
    tiny = Fraction(1, 10**2000)
    assert sign(lambda: ball(1 + tiny) - 1) == 1
    assert sign(lambda: 1 - ball(1 + tiny)) == -1
    assert sign(lambda: arb(0)) == 0
    assert sign(lambda: arb(2).sqrt() ** 2 - 2, max_precision=512) is None


OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


@given(fractions, fractions, st.sampled_from("+-*/"), st.booleans())
def test_arithmetic_encloses_what_it_does_to_the_numbers(
    first: Fraction, second: Fraction, operation: str, plain: bool
) -> None:
    assume(operation != "/" or second)
    apply = OPERATIONS[operation]
    left = Interval.of_exact(first)
    found = apply(left, second if plain else Interval.of_exact(second))
    mirrored = apply(first, Interval.of_exact(second))
    exact = apply(first, second)
    for interval in (found, mirrored):
        assert exact in interval
        width = Fraction(interval.upper) - Fraction(interval.lower)
        scale = abs(first) + abs(second) if operation in "+-" else abs(exact)
        assert width <= scale * Fraction(1, 10**38)


@given(fractions, fractions, fractions, st.sampled_from("+-*"))
def test_arithmetic_of_wide_intervals_contains_every_pair(
    first: Fraction, second: Fraction, third: Fraction, operation: str
) -> None:
    low, high = sorted((first, second))
    wide = Interval.of_exact(low).hull(Interval.of_exact(high))
    apply = OPERATIONS[operation]
    for x in (low, (low + high) / 2, high):
        assert apply(x, third) in apply(wide, third)
        assert apply(x, third) in apply(wide, Interval.of_exact(third))
    assert -low in -wide
    assert -high in -wide


@pytest.mark.parametrize(
    ("end", "text"),
    [("1.75E-8", "1.75e-8"), ("2.0E+9", "2.0e9"), ("0.5", "0.5"), ("Infinity", "Infinity")],
)
def test_ends_are_written_as_claims_are(end: str, text: str) -> None:
    enclosed = Interval(Decimal(end), Decimal(end))
    assert enclosed.to_json() == {"lower": text, "upper": text}
    assert Decimal(text) == Decimal(end)


def test_arithmetic_without_bounds_and_with_what_is_no_number() -> None:
    above = Interval(Decimal(1), Decimal("Infinity"))
    assert above + 1 == Interval(Decimal(2), Decimal("Infinity"))
    assert above - above == Interval(Decimal("-Infinity"), Decimal("Infinity"))
    assert above * 0 == 0
    assert str(1 / above) == "[0, 1]"
    with pytest.raises(UndecidedError, match="divisor may be 0"):
        above / Interval(Decimal(-1), Decimal(1))
    with pytest.raises(InvalidInputError, match="nan to be finite"):
        above + float("nan")
    wrong: object
    for wrong in (None, True, {}):
        with pytest.raises(TypeError, match="unsupported operand"):
            above * wrong  # type: ignore[operator]
    assert Fraction(1, 3) in Interval.of_exact(1) * "1/3"


# Bounds of numbers: Chernoff's factor, one profile below another, Landau's constants, surds


@pytest.mark.parametrize("c", ["1e-30", "1e-3", "0.5", "1", "40", "1e9"])
def test_it_is_the_value_at_the_peak_and_no_other_value_is_larger(c: str) -> None:
    with ctx.workprec(256), mpmath.workdps(60):
        found = log_peak(arb(c))
        assert float(found.rad()) < 1e-25 * abs(float(found.mid()))
        at = mpmath.mpf(c)

        def log_value(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.log(-mpmath.expm1(-x)) - at * x

        peak = mpmath.log1p(1 / at)
        upper = mpmath.mpf(found.upper().str(50, radius=False))
        assert mpmath.almosteq(log_value(peak), upper, 1e-20, 0)
        assert all(log_value(peak * share) < upper for share in (0.01, 0.9, 0.999, 1.001, 3))
    assert rough_log_peak(float(c)) == pytest.approx(float(found.mid()), rel=1e-6, abs=0)


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 200, 257, 1000, 3000])
def test_against_the_exact_sum(count: int) -> None:
    """The ball contains the rational sum and is narrow, at two precisions."""
    exact = sum((entry**2 for entry in coefficients(count)), Fraction(0))
    for precision in (128, 256):
        with ctx.workprec(precision):
            ball = landau(count)
            assert ball.contains(fmpq(exact.numerator, exact.denominator))
            assert ball.rad() < arb(2) ** (20 - precision)


@pytest.mark.parametrize("steps", [1, 7, 300, 1500])
def test_two_routes_to_the_error(steps: int) -> None:
    """The enclosed error contains the rational one."""
    for counter in (
        SquareRootFactorization(steps, mu="1/3", contributions=2),
        SquareRootFactorization(steps, mu=2),
    ):
        exact = counter.exact_mean_squared_error().rational
        assert exact is not None
        found = accuracy.mean_squared_error(counter)
        assert exact in found
        width = found.relative_width
        assert width is not None
        assert width < Fraction(1, 10**29)


RATIONALS = st.fractions(min_value=-50, max_value=50, max_denominator=30)
RADICANDS = st.fractions(min_value=0, max_value=60, max_denominator=12)


def surd(a: Fraction, b: Fraction, r: Fraction) -> ExactReal:
    return exact(a) + ExactReal.of_root(r).times(b)


@given(RATIONALS, RATIONALS, RADICANDS)
def test_the_sign_of_a_surd(a: Fraction, b: Fraction, r: Fraction) -> None:
    number = surd(a, b, r)
    with ctx.workprec(400):
        ball = number.ball()
    assert number.sign == (ball > 0) - (ball < 0)
    assert (number.sign == 0) == (ball.contains(0))


@given(RATIONALS, RATIONALS, RATIONALS, RATIONALS, RADICANDS)
def test_surds_of_one_field(
    a: Fraction, b: Fraction, c: Fraction, d: Fraction, r: Fraction
) -> None:
    left, right = surd(a, b, r), surd(c, d, r)
    total = left + right
    assert total == surd(a + c, b + d, r)
    assert total - right == left
    if left.sign:
        assert exact(1) / (exact(1) / left) == left
        assert left * right / left == right

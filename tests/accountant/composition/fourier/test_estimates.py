"""Compositions of subsampled Gaussian releases: certified contours, estimates, and each other."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from flint import ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from dpassay.accountant.composition.choose import smooth
from dpassay.accountant.composition.product import Product
from dpassay.accountant.core.adjacency import Adjacency, Direction
from dpassay.accountant.mechanisms import Composed, Gaussian, PoissonSubsampled
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import guarantees, profile, tradeoff
from tests.accountant.composition.two_releases import two_releases
from tests.near import narrow
from tests.quick import slow

BOTH = (Direction.REMOVE, Direction.ADD)
NARROW = Fraction(1, 10**9)


def training(sigma: str, q: str, count: int) -> Composed:
    return Composed(PoissonSubsampled(Gaussian(standard_deviation=sigma), q), count)


def pairs(mechanism: Composed) -> tuple[Product, Product]:
    worst = mechanism.worst_case(Adjacency.ADD_REMOVE)
    remove, add = smooth(worst.remove[0]), smooth(worst.add[0])
    assert remove is not None
    assert add is not None
    return remove, add


def near(value: Interval, reference: float, relative: float) -> bool:
    return abs(float(value.lower) / reference - 1) < relative


@pytest.mark.slow
def test_two_releases_against_an_integral_over_the_first_outcome() -> None:
    """H₂(ε) = ∫ p(x) H₁(ε − L(x)) dx, with H₁ in closed form: no contour is involved."""
    for direction in BOTH:
        found = profile.delta(
            training("2", "0.3", 2),
            "0.5",
            adjacency="add-remove",
            direction=direction,
            relative_width=NARROW,
        )
        expected = two_releases("2", "0.3", "0.5", mixed_first=direction is Direction.REMOVE)
        assert near(found, float(expected), 1e-9)
        assert narrow(found, NARROW)


def test_the_setting_of_the_issue() -> None:
    """The reference: mpmath contour integrals at 30 digits."""
    width = Fraction(1, 10**30)
    value = profile.delta(
        training("1.1", "256/60000", 7032), 2, adjacency="add-remove", relative_width=width
    )
    reference = Decimal("2.4147996886841946736957519530346214e-7")
    assert abs(value.lower - reference) < Decimal("1e-40")
    assert narrow(value, width)


@settings(max_examples=5)
@given(sigma=st.integers(8, 40), q=st.integers(1, 90), count=st.integers(2000, 10**6))
def test_monotone_in_q_and_count(sigma: int, q: int, count: int) -> None:
    def delta(share: int, times: int, epsilon: float) -> Interval:
        step = PoissonSubsampled(
            Gaussian(standard_deviation=Fraction(sigma, 10)), Fraction(share, 100)
        )
        return profile.delta(
            Composed(step, times),
            epsilon,
            adjacency="add-remove",
            direction=Direction.REMOVE,
            relative_width=NARROW,
        )

    remove, _ = pairs(training(f"{sigma / 10}", f"{q / 100}", count))
    epsilon = remove.known.epsilon(-12.0)
    assert epsilon is not None
    value = delta(q, count, epsilon)
    assert near(value, math.exp(-12), 1e-9)
    assert value.upper < delta(q + 5, count, epsilon).lower
    assert value.upper < delta(q, count + count // 10, epsilon).lower


@pytest.mark.parametrize(
    ("sigma", "q", "count", "delta"),
    [
        slow("1.1", "256/60000", 7032, "1e-5"),
        ("2", "0.001", 10**6, "1e-12"),
        slow("20", "0.9", 10**5, "1e-300"),
        slow("0.8", "0.01", 10**9, "1e-2"),
    ],
)
def test_estimates_against_enclosures(sigma: str, q: str, count: int, delta: str) -> None:
    for pair, direction in zip(pairs(training(sigma, q, count)), BOTH, strict=True):
        epsilon = pair.known.epsilon(math.log(float(delta)))
        assert epsilon is not None
        value = profile.log_delta(
            training(sigma, q, count),
            epsilon,
            adjacency="add-remove",
            direction=direction,
            relative_width=NARROW / 1000,
        )
        assert near(value, math.log(float(delta)), 1e-11)
        known = pair.known.log_delta(epsilon)
        assert known is not None
        assert near(value, known, 1e-11)


def test_epsilon_is_the_inverse_of_delta() -> None:
    mechanism = training("0.8", "0.01", 1000)
    epsilon = profile.epsilon(mechanism, "1e-8", adjacency="add-remove", relative_width=NARROW)
    for end, above in ((epsilon.lower, True), (epsilon.upper, False)):
        value = profile.delta(mechanism, end, adjacency="add-remove")
        assert (value.upper >= Decimal("1e-8")) if above else (value.lower <= Decimal("1e-8"))
    assert narrow(epsilon, NARROW)


@pytest.mark.slow
def test_the_trade_off_function_and_the_tails_fit() -> None:
    mechanism = training("1", "0.02", 300)
    beta = tradeoff.beta(
        mechanism, "0.05", adjacency="add-remove", relative_width=Fraction(1, 10**6)
    )
    assert 0 < beta.lower <= beta.upper < Decimal("0.95")
    assert narrow(beta, Fraction(1, 10**6))
    for pair in pairs(mechanism):
        for epsilon in ("-0.5", "0", "0.5"):
            at = exact(epsilon)
            with ctx.workprec(128):
                tails, value = pair.tails(at), pair.hockey_stick(at)
                assert (tails.p_above - at.ball().exp() * tails.q_above).overlaps(value)
                assert (tails.p_above + tails.p_below).overlaps(tails.q_above + tails.q_below)
                back = pair.reverse().hockey_stick(-at)
                assert (1 - at.ball().exp() + at.ball().exp() * back).overlaps(value)


def test_renyi_divergences_of_any_order() -> None:
    mechanism = training("1.1", "0.01", 50)
    whole = guarantees.renyi(
        mechanism, 3, adjacency="add-remove", direction=Direction.REMOVE, relative_width=NARROW
    )
    step = mechanism.parts()[0][0]
    one = guarantees.renyi(step, 3, adjacency="add-remove", direction=Direction.REMOVE)
    assert near(whole, 50 * float(one.lower), 1e-12)
    between = guarantees.renyi(mechanism, "2.5", adjacency="add-remove", relative_width=NARROW)
    assert between.upper < whole.lower

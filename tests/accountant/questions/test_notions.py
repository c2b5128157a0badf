"""Conversions: two outcomes by brute force, round trips, and the order of the known bounds."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.mechanisms import Gaussian, Laplace
from dpassay.accountant.numbers.exact import Number, exact
from dpassay.accountant.numbers.interval import Interval, ball, enclose
from dpassay.accountant.questions import guarantees, notions, profile, tradeoff
from tests.near import narrow

CASES = [
    (2, "0.5", "1e-3"),
    (8, 1, "1e-5"),
    ("3/2", 0, "1e-2"),
    (30, 3, "1e-12"),
    (200, 2, "1e-40"),
    ("1.3", "7.125", "1e-19"),  # the sum is 1 up to 1e-18
]


def least_divergence(order: Number, epsilon: Number, delta: Number) -> Interval:
    a, e, d = (exact(each, "number") for each in (order, epsilon, delta))
    return enclose(lambda: notions.budget(a.ball(), e.ball(), d.ball()))


@pytest.mark.parametrize(("order", "epsilon", "delta"), CASES[:3])
def test_budget_is_the_least_divergence_of_two_outcomes(
    order: str, epsilon: str, delta: str
) -> None:
    a, e, d = float(Fraction(order)), float(Fraction(epsilon)), float(delta)
    q = np.exp(np.linspace(-25, np.log((1 - d) * np.exp(-e)) - 1e-9, 400_001))
    p = d + np.exp(e) * q
    moment = p * (p / q) ** (a - 1) + (1 - p) * ((1 - p) / (1 - q)) ** (a - 1)
    least = float(np.log(moment.min()) / (a - 1))
    found = least_divergence(order, epsilon, delta)
    # the grid of ln q has step 6e-5: its least value is above the true one by O(step²)
    assert float(found.lower) <= least * (1 + 1e-12)
    assert least <= float(found.upper) * (1 + 1e-7)
    assert narrow(found, Fraction(1, 10**30))


def test_budget_where_the_whole_event_is_certain() -> None:
    # δ a ≥ 1: the least divergence is that of p = 1, q = (1 − δ)e^{−ε}
    found = least_divergence(4, 1, "1/2")
    assert 1.6931471805599453 in found or abs(float(found.lower) - 1.6931471805599453) < 1e-15
    near = least_divergence(10, 1, "0.1")
    assert abs(float(near.lower) - (1 - np.log(0.9))) < 1e-12


def test_zcdp() -> None:
    for rho_given, epsilon in (("0.1", 1), ("0.5", 3)):
        bounds = notions.delta_of_zcdp(rho_given, epsilon)
        gaussian = Gaussian(standard_deviation=1, l2_sensitivity=f"sqrt({2 * float(rho_given)})")
        assert bounds.lower <= profile.delta(gaussian, epsilon).upper
        assert bounds.upper < 4 * bounds.lower
        # the classical conversion: δ = exp(−(ε − ρ)²/(4ρ))
        r = float(rho_given)
        assert float(bounds.upper) < np.exp(-((epsilon - r) ** 2) / (4 * r))
    pair = notions.epsilon_of_zcdp("0.1", "1e-5")
    assert pair.lower < pair.upper
    assert float(pair.upper) < 0.1 + 2 * np.sqrt(0.1 * np.log(1e5))


@pytest.mark.parametrize(
    ("order", "divergence", "alpha"),
    [(2, "0.5", "0.1"), (16, "0.7", "1e-6"), ("1.01", "0.1", "0.3")],
)
def test_power_is_the_largest_of_two_outcomes(order: str, divergence: str, alpha: str) -> None:
    a, most, q = float(order), float(divergence), float(alpha)
    p = np.linspace(q, 1, 2_000_001)[:-1]
    spent = np.log(p**a * q ** (1 - a) + (1 - p) ** a * (1 - q) ** (1 - a)) / (a - 1)
    largest = float(p[spent <= most].max())
    found = notions.power_of_renyi(order, divergence, alpha)
    assert largest <= float(found.upper)
    assert float(found.lower) <= largest + 1e-6
    assert narrow(found, Fraction(1, 10**18))


def test_no_attack_beats_the_power_of_its_divergence() -> None:
    for mechanism in (Gaussian(standard_deviation=2), Laplace(scale=3)):
        for alpha in ("1e-300", "1e-4", "0.3"):
            true = tradeoff.power(mechanism, alpha)
            for order in (2, 5, 20):
                divergence = guarantees.renyi(mechanism, order)
                assert true.lower <= notions.power_of_renyi(order, divergence.upper, alpha).upper
    for alpha in ("1e-300", "0.2"):
        bounds = notions.power_of_zcdp("1/8", alpha)
        assert bounds.lower <= tradeoff.power(Gaussian(standard_deviation=2), alpha).upper
        assert bounds.upper < 2 * bounds.lower


def test_power_at_the_ends() -> None:
    assert str(notions.power_of_renyi(2, 3, "0.2")) == "1"  # −ln 0.2 < 3
    assert str(notions.power_of_renyi(2, 3, 0)) == "0"
    assert str(notions.power_of_renyi(2, 0, "0.2")) == "0.2"
    assert str(notions.power_of_zcdp("0.1", 1)) == "1"
    with pytest.raises(InvalidInputError, match="alpha"):
        notions.power_of_renyi(2, 1, 2)


def test_orders_near_one_whose_worst_pair_nearly_has_no_other_outcome() -> None:
    """The least divergence is at 1 − p of about e^−20000: ε − ln(1 − δ), but for as little."""
    found = least_divergence("1.0003", "2", "0.99895")
    with ctx.workprec(200):
        known = 2 - (-arb("0.99895")).log1p()
        assert ball(Fraction(found.lower)) <= known <= ball(Fraction(found.upper))
    assert narrow(found, Fraction(1, 10**10))
    delta = notions.delta_of_zcdp("10", "2")
    other = notions.delta_of_renyi("1.01", "10.1", "2")
    assert Decimal("0.9") < delta.lower < delta.upper < other.upper < 1

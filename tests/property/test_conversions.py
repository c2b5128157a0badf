"""Round trips of the conversions, and the order in which the notions imply each other."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.mechanisms import Guaranteed, Laplace, RandomizedResponse
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import enclose
from accountant.questions import guarantees, notions, profile

ORDERS = st.fractions(Fraction(11, 10), 64, max_denominator=10)
EPSILONS = st.fractions(0, 8, max_denominator=16)
EXPONENTS = st.integers(2, 40)
CLOSE = Decimal("1e-15")


@settings(max_examples=12)
@given(ORDERS, EPSILONS, EXPONENTS)
def test_renyi_to_delta_and_back(order: Fraction, epsilon: Fraction, exponent: int) -> None:
    delta = Fraction(1, 10**exponent)
    a, e, d = (ExactReal.of_rational(each) for each in (order, epsilon, delta))
    budget = enclose(lambda: notions.budget(a.ball(), e.ball(), d.ball()))
    back = notions.delta_of_renyi(order, budget.upper, epsilon)
    assert abs(back.upper * 10**exponent - 1) < CLOSE
    again = notions.epsilon_of_renyi(order, budget.upper, delta)
    assert abs(Fraction(again.upper) - epsilon) < Fraction(CLOSE)


@settings(max_examples=12)
@given(ORDERS, st.fractions(Fraction(1, 100), 3, max_denominator=100), EXPONENTS)
def test_renyi_to_power_and_back(order: Fraction, divergence: Fraction, exponent: int) -> None:
    alpha = Fraction(1, 10**exponent)
    power = notions.power_of_renyi(order, divergence, alpha)
    if power.upper == 1:
        assert divergence >= Fraction(math.log(10) * exponent) * Fraction(999, 1000)
        return
    # the two outcomes of the test have the divergence themselves
    p, q, a = float(power.upper), float(alpha), float(order)
    spent = a * math.log(p) + (1 - a) * math.log(q)
    rest = a * math.log1p(-p) + (1 - a) * math.log1p(-q)
    top = max(spent, rest)
    total = top + math.log(math.exp(spent - top) + math.exp(rest - top))
    # ln of a sum near 1 keeps 1e-15; p is rounded to a float
    assert abs(total / (a - 1) - float(divergence)) < 1e-11 * (1 + abs(spent)) / (a - 1)


@settings(max_examples=15)
@given(st.fractions(Fraction(1, 10), 3, max_denominator=10))
def test_pure_dp_to_the_others(epsilon: Fraction) -> None:
    worst = Guaranteed(epsilon)
    assert profile.epsilon(worst, 0).upper == profile.epsilon(RandomizedResponse(epsilon), 0).upper
    rho = guarantees.rho(RandomizedResponse(epsilon), relative_width=Fraction(1, 10**6))
    assert Fraction(rho.upper) <= epsilon**2 / 2 * Fraction(1000001, 1000000)
    for order in (2, 8):
        most = guarantees.renyi(RandomizedResponse(epsilon), order)
        assert guarantees.renyi(Laplace(1 / epsilon), order).lower <= most.upper
        assert most.lower <= min(Decimal(float(epsilon)), order * rho.upper) * (1 + CLOSE)

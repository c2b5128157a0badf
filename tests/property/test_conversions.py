"""Round trips of the conversions, and the order in which the notions imply each other."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.mechanisms import Gaussian, Guaranteed, Laplace, RandomizedResponse
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import enclose
from accountant.questions import guarantees, notions, profile, tradeoff
from accountant.questions.gaussian_bounds import gaussian_bounds

ORDERS = st.fractions(Fraction(11, 10), 64, max_denominator=10)
EPSILONS = st.fractions(0, 8, max_denominator=16)
EXPONENTS = st.integers(2, 40)
SHIFTS = st.fractions(Fraction(1, 20), 4, max_denominator=20)
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


@settings(max_examples=12)
@given(SHIFTS, EXPONENTS)
def test_profile_to_trade_off_and_back(mu: Fraction, exponent: int) -> None:
    """f(α) = sup over ε of 1 − δ(ε) − e^ε α, attained where the test rejects at ε."""
    mechanism, alpha = Gaussian(1, mu), Fraction(1, 10**exponent)
    beta = tradeoff.beta(mechanism, alpha)
    epsilon = profile.epsilon(mechanism, "1e-3")
    for at in (epsilon.upper, Decimal(0), Decimal("0.5")):
        line = 1 - float(profile.delta(mechanism, at).lower) - math.exp(at) * float(alpha)
        assert float(beta.upper) >= line - 1e-14
    power = tradeoff.power(mechanism, alpha)
    assert abs(float(beta.lower) + float(power.lower) - 1) < 1e-14
    back = tradeoff.power(mechanism, beta.upper)  # a symmetric pair: f is its own inverse
    assert abs(float(back.upper) - (1 - float(alpha))) < 1e-12


@settings(max_examples=12)
@given(SHIFTS, EPSILONS)
def test_epsilon_and_delta_are_inverse(mu: Fraction, epsilon: Fraction) -> None:
    mechanism = Gaussian(1, mu)
    delta = profile.delta(mechanism, epsilon)
    back = profile.epsilon(mechanism, delta.upper)
    assert abs(Fraction(back.upper) - epsilon) < Fraction(1, 10**15)


@settings(max_examples=12)
@given(SHIFTS)
def test_gaussian_dp_to_zcdp_and_back(mu: Fraction) -> None:
    bounds = notions.epsilon_of_zcdp(mu**2 / 2, "1e-6")
    true = profile.epsilon(Gaussian(1, mu), "1e-6")
    assert max(bounds.lower, Decimal(0)) <= max(true.upper, Decimal(0)) + CLOSE
    assert true.lower <= bounds.upper
    for order in (2, 9):
        divergence = guarantees.renyi(Gaussian(1, mu), order)
        assert order * mu**2 / 2 in divergence


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


@settings(max_examples=6)
@given(st.fractions(Fraction(1, 5), 2, max_denominator=10))
def test_the_best_mu_encloses_the_profile(epsilon: Fraction) -> None:
    """What is μ-GDP has the profile of the best μ as a bound, and no smaller μ does."""
    bounds = gaussian_bounds(Laplace(1 / epsilon))
    above = Gaussian(1, bounds.upper.upper)
    for at in (Fraction(0), epsilon / 3, epsilon):
        assert profile.delta(Laplace(1 / epsilon), at).lower <= profile.delta(above, at).upper
    assert bounds.lower.lower <= bounds.upper.upper
    assert bounds.regret.upper >= 0

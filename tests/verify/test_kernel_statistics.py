"""What the kernel says of counts: tests of the level they claim, by summing over all outcomes."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from flint import arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.kernel.statistics import binomial_tail, guesses, one_run_bound, sides
from tests.quick import slow

BITS = 192


def mass(k: int, n: int, p: Fraction) -> Fraction:
    return math.comb(n, k) * p**k * (1 - p) ** (n - k)


@pytest.mark.parametrize("level", [slow(0.3), 0.05, slow(0.01)])
@pytest.mark.parametrize(("epsilon", "delta"), [("0", "0"), ("1", "0"), ("0.5", "0.1")])
def test_sides_accuse_at_most_at_their_level(epsilon: str, delta: str, level: float) -> None:
    """P(p-value ≤ level) ≤ level for p = e^ε q + δ, at 40 rates q, by exact sums."""
    n, m, d = 7, 9, Fraction(delta)
    factor = Fraction(math.nextafter(math.exp(float(epsilon)), math.inf))
    with ctx.workprec(BITS):
        accused = [
            (a, b)
            for a, b in itertools.product(range(n + 1), range(m + 1))
            if sides((a, n, b, m), float(factor), float(d), level / 100) <= level
        ]
    rates = [i * (1 - d) / factor / 40 for i in range(41)]
    worst = max(
        sum(mass(a, n, min(Fraction(1), factor * q + d)) * mass(b, m, q) for a, b in accused)
        for q in rates
    )
    assert worst <= level
    assert accused or level < 0.05


@pytest.mark.parametrize("level", [0.3, 0.05])
@pytest.mark.parametrize(("epsilon", "delta"), [("0", "0"), ("1", "0"), ("0.5", "0.1")])
def test_guesses_accuse_at_most_at_their_level(epsilon: str, delta: str, level: float) -> None:
    """The same where P(right) = e^ε P(wrong) + δ, at 40 probabilities of a wrong guess."""
    n, d = 12, Fraction(delta)
    factor = Fraction(math.nextafter(math.exp(float(epsilon)), math.inf))
    with ctx.workprec(BITS):
        accused = [
            (right, wrong)
            for right in range(n + 1)
            for wrong in range(n + 1 - right)
            if guesses((right, n, wrong, n), float(factor), float(d), level / 100) <= level
        ]
    most = (1 - d) / (1 + factor)
    worst = Fraction(0)
    for i in range(41):
        w = most * i / 40
        r = factor * w + d
        worst = max(
            worst,
            sum(
                (
                    math.comb(n, a) * math.comb(n - a, b) * r**a * w**b * (1 - r - w) ** (n - a - b)
                    for a, b in accused
                ),
                Fraction(0),
            ),
        )
    assert worst <= level
    assert accused


@pytest.mark.parametrize(("n", "p"), [(12, "1/3"), (400, "1/7"), (400, "99/100")])
def test_tails_are_sums_of_masses(n: int, p: str) -> None:
    """Balls that contain the exact tail and are narrow, on both sides of the mean."""
    rate = Fraction(p)
    for k in {0, 1, n // 7, n // 3, n - 1, n, n + 1}:
        exact = sum((mass(j, n, rate) for j in range(k, n + 1)), Fraction(0))
        with ctx.workprec(BITS):
            found = binomial_tail(k, n, arb(rate.numerator) / rate.denominator)
            true = arb(exact.numerator) / exact.denominator
            assert found.overlaps(true)
            assert found.rad() <= abs(true) * arb(2) ** -80


def test_one_run_is_bounded_by_what_mechanisms_do() -> None:
    """Randomised response on every coin attains the bound at δ = 0; with δ more is allowed."""
    m, v, epsilon = 30, 24, "0.5"
    with ctx.workprec(BITS):
        e = arb(epsilon)
        attained = binomial_tail(v, m, e.exp() / (1 + e.exp()))
        assert one_run_bound(v, m, m, [(e, arb(0))]).overlaps(attained)
        assert one_run_bound(v, m, m, [(e, arb("0.01"))]) > attained
        assert one_run_bound(0, m, m, [(e, arb(0))]) == 1

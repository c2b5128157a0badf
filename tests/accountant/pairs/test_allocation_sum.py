"""The sum of a random allocation: moments, profiles, and the event of its lower end."""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import norm

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.mechanisms import Gaussian
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.allocation import AllocationSum, MeanLognormal
from dpassay.accountant.pairs.gaussian import GaussianPair

PERIOD = Fraction(6)


def mean(sigma: str, steps: int) -> MeanLognormal:
    return MeanLognormal(ExactReal.of_rational(1 / Fraction(sigma)), steps)


def mid(value: arb) -> mpmath.mpf:
    return mpmath.mpf(value.mid().str(40, radius=False))


@functools.cache
def moment_of_two(mu: float, tau: float) -> mpmath.mpc:
    """E W^{1−z} for t = 2 by integrals over Z₁ + Z₂, which W is proportional to, and Z₁ − Z₂."""
    with mpmath.workdps(25):
        power = mpmath.mpc(0.5, -tau)
        half = mpmath.mpf(mu) / mpmath.sqrt(2)
        common = mpmath.exp(power * (half * half / 2 * power - mpmath.mpf(mu) ** 2 / 2))
        apart = mpmath.quad(
            lambda y: mpmath.npdf(y) * mpmath.cosh(half * y) ** power, mpmath.linspace(-14, 14, 15)
        )
        return common * apart


@pytest.mark.parametrize("sigma", ["3/5", "1", "3"])
@pytest.mark.parametrize("bits", [40, 90])
def test_moments_of_two_steps_are_integrals(sigma: str, bits: int) -> None:
    """Balls contain them, and are as narrow as was asked."""
    count = 12
    found = mean(sigma, 2).on_line(PERIOD, count, bits)
    for j in (1, count):
        with mpmath.workdps(25), ctx.workprec(140):
            tau = 2 * mpmath.pi * j * PERIOD.denominator / PERIOD.numerator
            wanted = moment_of_two(float(1 / Fraction(sigma)), float(tau))
            for ball, value in ((found[j].real, wanted.real), (found[j].imag, wanted.imag)):
                # 1e-15: τ is a float for mpmath, and |dM/dτ| is at most 1 here
                assert abs(mid(ball) - value) <= float(ball.rad()) + 1e-15
                assert float(ball.rad()) < 2.0 ** (4 - bits)


@pytest.mark.parametrize(("sigma", "steps"), [("3/5", 7), ("1", 300), ("3", 2000)])
def test_coarse_moments_contain_fine_ones(sigma: str, steps: int) -> None:
    """All steps, ends and orders differ, so that a wrong bound of an error would show."""
    fine = mean(sigma, steps).on_line(PERIOD, 20, 130)
    for bits in (8, 16, 30, 60):
        coarse = mean(sigma, steps).on_line(PERIOD, 20, bits)
        for one, other in zip(coarse, fine, strict=True):
            assert one.contains(other) or one.overlaps(other)
            assert float(one.real.rad()) < 2.0 ** (9 - bits)


@pytest.mark.parametrize("epochs", [1, 7])
@pytest.mark.parametrize("at", ["-2", "0", "1/4", "3"])
def test_coarse_profiles_contain_fine_ones(epochs: int, at: str) -> None:
    whole = AllocationSum(((mean("4/5", 20), epochs),))
    epsilon = ExactReal.of_rational(Fraction(at))
    for mixed_first in (True, False):
        with ctx.workprec(110):
            fine = whole.hockey_stick(epsilon, mixed_first=mixed_first)
        for bits in (8, 24, 64):
            with ctx.workprec(bits):
                coarse = whole.hockey_stick(epsilon, mixed_first=mixed_first)
            assert coarse.overlaps(fine)


@settings(max_examples=25)
@given(st.fractions(-6, 6, max_denominator=64), st.integers(1, 4))
def test_profiles_and_tails_agree(at: Fraction, epochs: int) -> None:
    """H = P(L > ε) − e^ε Q(L > ε), and the directions are those of one pair."""
    whole = AllocationSum(((mean("3/2", 6), epochs),))
    epsilon = ExactReal.of_rational(at)
    with ctx.workprec(64):
        growth = epsilon.ball().exp()
        for mixed_first in (True, False):
            tails = whole.tails(epsilon, mixed_first=mixed_first)
            value = whole.hockey_stick(epsilon, mixed_first=mixed_first)
            assert value.overlaps(tails.p_above - growth * tails.q_above)
            assert value <= whole.bound(epsilon, mixed_first=mixed_first) * (1 + arb(2) ** -50)
        other = whole.hockey_stick(-epsilon, mixed_first=True)
        assert value.overlaps(1 - growth + growth * other)


def test_one_step_is_gaussian() -> None:
    """t = 1 has ln W = μZ − μ²/2: k epochs are a Gaussian pair of √k μ, as are Gaussian terms."""
    normal = GaussianPair(Gaussian("5/3"), Adjacency.ADD_REMOVE)
    three = GaussianPair(Gaussian("5/6"), Adjacency.ADD_REMOVE)  # √4 times as much
    with ctx.workprec(80):
        for whole in (
            AllocationSum(((mean("5/3", 1), 4),)),
            AllocationSum(((mean("5/3", 1), 1),), ((normal, 3),)),
        ):
            for at in (Fraction(-1), Fraction(1, 3), Fraction(4)):
                epsilon = ExactReal.of_rational(at)
                found = whole.hockey_stick(epsilon, mixed_first=True)
                assert found.overlaps(three.hockey_stick(epsilon))
                assert found.rel_accuracy_bits() > 70


def test_epochs_are_those_of_a_transformed_density() -> None:
    """By another route: the law of W for t = 3 is a plain convolution on a grid of step h.

    X/3 is rounded down or up to it, and W with it; E(W₁W₂ − K)⁺ increases with W, so that the two
    laws bracket it. FFTs and the end of the grid are off by far less than 1e-9.
    """
    mu, steps, at = 0.5, 3, 0.7
    h, n = 1 / 1024, 1 << 13
    edges = h * np.arange(1, n + 1)
    below = norm.cdf((np.log(edges * steps) + mu * mu / 2) / mu)
    masses = np.diff(np.concatenate([[0.0], below]))
    law = np.fft.irfft(np.fft.rfft(masses, 4 * n) ** steps, 4 * n).clip(0)
    ends = []
    for up in (0, 1):
        w = h * (np.arange(4 * n) + steps * up)
        w, mass = w[law > 1e-18], law[law > 1e-18]
        ends.append(_clipped(w, mass, float(np.exp(at))))
    whole = AllocationSum(((MeanLognormal(ExactReal.of_rational(Fraction(1, 2)), steps), 2),))
    with ctx.workprec(64):
        found = float(whole.hockey_stick(ExactReal.of_rational(Fraction(7, 10)), mixed_first=True))
    assert ends[0] - 1e-9 <= found <= ends[1] + 1e-9
    assert ends[1] - ends[0] < 0.2 * found


def _clipped(w: NDArray[Any], mass: NDArray[Any], k: float) -> float:
    """E(W₁W₂ − k)⁺ for two independent copies, by sorted sums."""
    above = np.append(np.cumsum(mass[::-1])[::-1], 0.0)
    times = np.append(np.cumsum((mass * w)[::-1])[::-1], 0.0)
    first = np.searchsorted(w, k / np.maximum(w, 1e-300), side="right")
    return float((mass * (w * times[first] - k * above[first])).sum())


@pytest.mark.parametrize("sigma", ["1", "1000"])
def test_what_takes_too_long_is_refused_at_once(sigma: str) -> None:
    whole = AllocationSum(((mean(sigma, 10**9), 1),))
    with pytest.raises(UndecidedError, match="larger relative_width"), ctx.workprec(64):
        whole.hockey_stick(ExactReal.of_rational(Fraction(0)), mixed_first=True)


def test_far_values_are_bounded_and_never_nan() -> None:
    whole = AllocationSum(((mean("1", 10), 2),))
    for at in (-800, 800):
        for mixed_first in (True, False):
            with ctx.workprec(64):
                epsilon = ExactReal.of_rational(at)
                value = whole.hockey_stick(epsilon, mixed_first=mixed_first)
                tails = whole.tails(epsilon, mixed_first=mixed_first)
            for each in (value, tails.p_above, tails.q_above, tails.p_below, tails.q_below):
                assert each.is_finite()
                assert each.upper() >= 0
                assert each.lower() <= 1
            assert value.overlaps(arb(0) if at > 0 else arb(1))


def test_balls_do_not_grow_along_a_long_line() -> None:
    """Thousands of rotations of a sum: products of balls would grow with each."""
    whole = AllocationSum(((mean("1/2", 20), 1),))
    with ctx.workprec(64):
        found = whole.hockey_stick(ExactReal.of_rational(Fraction(1, 3)), mixed_first=True)
    assert found.rel_accuracy_bits() >= 60

"""Noise that falls with a power of the Euclidean norm: known laws, quadrature, and draws."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import acb, arb

import dpassay
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.geometry.spaces import cap, share
from dpassay.accountant.mechanisms import KNorm
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.falling_noise import BallNoisePair, RoundNoisePair
from dpassay.accountant.questions import profile

FALSE_ALARM = 1e-6


def _gaussian(distance: str) -> Pair:
    """Return the pair of p = 2, which is that of Gaussian noise."""
    (pair,) = KNorm(1, 2, sensitivity=distance, power=2).worst_case(None).remove
    return pair


def by_quadrature(d: int, p: float, t: float, epsilon: float) -> float:
    """Return E_P max(0, 1 − e^{ε−L}) over the radius and the angle around v: no cap, no lens.

    Midpoints in the radius, Gauss and Legendre's rule over the angles where L > ε, which vary
    like sin^{d−2}.
    """
    middle, spread = (d / p) ** (1 / p), 9 / p * (d / p) ** (1 / p - 0.5)
    low, high = max(0.0, middle - spread), middle + spread + (4 if d < 50 else 0)
    r, step = np.linspace(low, high, 40_000, endpoint=False, retstep=True)
    r = (r + step / 2)[:, None]
    x = r**p
    height = ((x + epsilon) ** (2 / p) - r * r - t * t) / (2 * r * t)
    last = np.arccos(np.clip(height, -1, 1))
    first = np.maximum(0, np.pi / 2 - 12 / math.sqrt(d)) if d > 50 else 0.0
    nodes, weights = np.polynomial.legendre.leggauss(80)
    half = np.maximum(last - first, 0) / 2
    angle = first + half * (nodes + 1)
    loss = (r * r + t * t + 2 * r * t * np.cos(angle)) ** (p / 2) - x
    size = math.exp(math.lgamma(d / 2) - math.lgamma((d - 1) / 2)) / math.sqrt(math.pi)
    inner = half * (np.sin(angle) ** (d - 2) * -np.expm1(epsilon - loss)) @ weights[:, None] * size
    density = p * np.exp((d - 1) * np.log(r) - x - math.lgamma(d / p))
    return float(np.sum(density * inner) * step)


@pytest.mark.parametrize(
    ("d", "power", "t", "epsilons"),
    [
        (2, "3/2", "1", ("0", "1/2", "3")),
        (3, "3", "1", ("0", "1/2", "5")),
        (1000, "3/2", "1", ("1/2",)),
    ],
)
def test_delta_is_a_mean_over_radii_and_angles(
    d: int, power: str, t: str, epsilons: tuple[str, ...]
) -> None:
    """The rule of midpoints has an error of about the square of its step where L > ε begins."""
    noise = KNorm(1, d, sensitivity=t, power=power)
    for epsilon in epsilons:
        found, at = profile.delta(noise, epsilon), float(Fraction(epsilon))
        known = by_quadrature(d, float(Fraction(power)), float(Fraction(t)), at)
        assert float(found) == pytest.approx(known, rel=1e-6)
        assert found.relative_width is not None
        assert found.relative_width <= Fraction(1, 10**12)


@pytest.mark.parametrize(("d", "epsilon"), [(2, "-1/3"), (7, "0"), (40, "1/5")])
def test_first_and_second_powers_are_known_laws(d: int, epsilon: str) -> None:
    e, t = exact(epsilon), exact("1/2")
    for power, known in ((1, BallNoisePair(t, d)), (2, _gaussian("1/2"))):
        ours = RoundNoisePair(t, d, Fraction(power))
        value = ours.hockey_stick(e)
        assert value.overlaps(known.hockey_stick(e))
        assert value.rel_accuracy_bits() > 30
        found, other = ours.tails(e), known.tails(e)
        assert found.p_above.overlaps(other.p_above)
        assert found.q_above.overlaps(other.q_above)


def test_a_million_coordinates() -> None:
    value = RoundNoisePair(exact(1), 10**6, Fraction(2)).hockey_stick(exact("1/2"))
    assert value.overlaps(_gaussian("1").hockey_stick(exact("1/2")))
    assert value.rel_accuracy_bits() > 30


@pytest.mark.parametrize(("power", "epsilon"), [(1, "1/5"), (2, "10")])
def test_small_deltas_of_many_coordinates_have_digits(power: int, epsilon: str) -> None:
    """Balls of heights lose no more than a cap changes over them: no integral goes on for ever."""
    e, t = exact(epsilon), exact("1/2")
    known = BallNoisePair(t, 1000) if power == 1 else _gaussian("1/2")
    value = RoundNoisePair(t, 1000, Fraction(power)).hockey_stick(e)
    assert value.overlaps(known.hockey_stick(e))
    assert value.rel_accuracy_bits() > 30


def test_small_deltas_have_digits() -> None:
    pair, known = RoundNoisePair(exact(1), 20, Fraction(2)), _gaussian("1")
    value = pair.hockey_stick(exact(60))
    assert value.overlaps(known.hockey_stick(exact(60)))
    assert value.rel_accuracy_bits() > 16
    assert value < arb("1e-300")


def test_draws_show_it_and_no_shorter_shift_shows_more() -> None:
    """Hoeffding's bound of both frequencies of the event {L > ε}."""
    rng, size, epsilon = np.random.default_rng(11), 200_000, 0.5
    noise = KNorm(1, 3, sensitivity=1, power=3)
    true = float(profile.delta(noise, "1/2"))
    drawn, lengths = noise.sample(size, rng=rng), (1.0, 0.8, 0.5, 0.1)
    slack = math.sqrt(math.log(4 * len(lengths) / FALSE_ALARM) / (2 * size))
    slack *= 1 + math.exp(epsilon)
    for length in lengths:
        shift = np.array([length, 0, 0])
        p, q = (
            np.mean(
                np.linalg.norm(x, axis=1) ** 3 - np.linalg.norm(x - shift, axis=1) ** 3 > epsilon
            )
            for x in (drawn + shift, drawn)
        )
        found = p - math.exp(epsilon) * q
        assert found <= true + slack
        assert length < 1 or found >= true - slack


def test_spheres_that_touch_where_the_noise_is_none() -> None:
    """With (x + ε)^{1/p} = t at x = 0 the integral begins next to 0."""
    found = profile.delta(KNorm(1, 10, power="3/2"), 1)
    assert float(found) == pytest.approx(by_quadrature(10, 1.5, 1, 1), rel=1e-6)


def test_balls_that_hardly_leave_each_other_have_digits() -> None:
    """Next to where the first ball lies in the second its share is far below 2^−128."""
    found = profile.delta(KNorm(10, 100, power="11/10"), "1/2")
    assert found.lower > 0
    assert found.relative_width is not None
    assert found.relative_width <= Fraction(1, 10**12)


def test_epsilon_is_where_delta_is() -> None:
    noise = KNorm(2, 3, power=3)
    found = profile.epsilon(noise, "1/10", relative_width="1e-2")
    low, high = (profile.delta(noise, end) for end in (found.lower, found.upper))
    assert low.upper >= Fraction(1, 10) >= high.lower


def test_no_rho_bounds_a_power_above_two() -> None:
    assert dpassay.rho(KNorm(2, 5, power=3)).lower.is_infinite()


@pytest.mark.parametrize("d", [2, 3, 4, 9, 40])
def test_caps_off_the_line_contain_their_values(d: int) -> None:
    """A ball around a complex height contains I_z(a, a) at its middle, z = (1 − c)/2."""
    rng = np.random.default_rng(3)
    with ctx.workprec(128):
        for real, imag in rng.uniform(-0.9, 0.9, (40, 2)):
            c, half = acb(real, imag / math.sqrt(d)), acb(d - 1) / 2
            known = ((1 - c) / 2).beta_lower(half, half, regularized=True)
            wide = acb(arb(real, 0.01), arb(c.imag, 0.01))
            assert cap(1 + c, 1 - c, d, True).overlaps(known)
            assert cap(1 + wide, 1 - wide, d, True).contains(known.mid())
            exactly = share(1 + c.real, 1 - c.real, d)
            assert exactly.overlaps(
                ((1 - acb(c.real)) / 2).beta_lower(half, half, regularized=True).real
            )

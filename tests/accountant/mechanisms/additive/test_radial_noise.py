"""Noise that falls with a power of a norm: known laws, volumes by counting, and draws."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

import dpassay
from dpassay.accountant.errors import InvalidInputError, NotApplicableError
from dpassay.accountant.mechanisms import AdditiveNoise, Gaussian, KNorm, PoissonSubsampled
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.pairs.falling_noise import RadialNoisePair
from dpassay.accountant.questions import accuracy, profile
from dpassay.accountant.questions import accuracy as utility

FALSE_ALARM = 1e-6


@pytest.mark.parametrize("epsilon", ["-1/2", "0", "1/2", "3"])
def test_one_dimension_is_noise_of_that_density(epsilon: str) -> None:
    ours, known = (
        profile.delta(noise, epsilon)
        for noise in (KNorm(2, 1, power=3), AdditiveNoise("exp(-abs(x)**3)", scale=2))
    )
    width = ours.relative_width
    assert ours.overlaps(known)
    assert width is not None
    assert width <= Fraction(1, 10**11)


def test_squares_in_l2_are_gaussian() -> None:
    ours, known = KNorm(2, 7, power=2), Gaussian("sqrt(2)")
    assert profile.epsilon(ours, "1e-5") == profile.epsilon(known, "1e-5")


def by_integral(d: int, p: float, t: float, epsilon: float) -> float:
    """Return the mean share of a cube that a moved one, or a cross-polytope, does not meet."""

    def share(x: mpmath.mpf) -> mpmath.mpf:
        r, far = x ** (1 / p), (x + epsilon) ** (1 / p)
        side = max(0, min(r, far - t) - max(-r, -far - t)) / (2 * r)  # one axis, both intervals
        return (1 - side**d) * mpmath.exp(-x) * x ** (d / p) / mpmath.gamma(d / p + 1)

    points = [0, 0.01, 0.1, 0.5, 1, 2, 4, 8, 16, 32, 64]
    places = [
        x
        for x in np.linspace(0.001, 20, 4000)
        if abs((x + epsilon) ** (1 / p) - x ** (1 / p) - t) < 0.002
    ]
    return float(mpmath.quad(share, sorted({*points, *places[:1]})))


@pytest.mark.parametrize(("d", "power", "t"), [(2, "2", "1"), (3, "3/2", "1/2"), (5, "4", "1")])
@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_cubes_meet_in_intervals_along_every_axis(d: int, power: str, t: str, norm: str) -> None:
    noise = KNorm(1, d, norm, t, power)
    for epsilon in ("0", "1/2"):
        known = by_integral(d, float(Fraction(power)), float(Fraction(t)), float(Fraction(epsilon)))
        assert float(profile.delta(noise, epsilon).lower) == pytest.approx(known, rel=1e-6)


@pytest.mark.parametrize(("d", "power", "t"), [(2, "2", "1"), (1000, "3/2", "1/50")])
def test_tails_are_the_derivative(d: int, power: str, t: str) -> None:
    pair = RadialNoisePair(exact(t), d, Fraction(power))
    e, step = exact("1/2"), Fraction(1, 10**6)
    found = pair.tails(e)
    assert (found.p_above - e.ball().exp() * found.q_above).overlaps(pair.hockey_stick(e))
    low, high = (float(pair.hockey_stick(exact(Fraction(1, 2) + way * step))) for way in (-1, 1))
    slope = (low - high) / float(2 * step)
    assert math.exp(0.5) * float(found.q_above) == pytest.approx(slope, rel=1e-6)
    other = pair.tails(exact("-1/2"))
    assert other.q_below.overlaps(found.p_above)


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_no_shift_in_the_ball_has_more(norm: str) -> None:
    """By draws: the excess of an event is at most δ, up to Hoeffding's bound."""
    rng, noise, size = np.random.default_rng(5), KNorm(1, 2, norm, power=2), 100_000
    order = 1 if norm == "l1" else np.inf
    drawn = noise.sample(size, rng=rng)
    bound = 2 * math.sqrt(math.log(4 / FALSE_ALARM) / (2 * size))
    most = float(profile.delta(noise, "1/2").upper)
    for angle in np.linspace(0, np.pi / 4, 4):
        shift = np.array([np.cos(angle), np.sin(angle)])
        shift = shift / np.linalg.norm(shift, ord=order)

        def loss(x: Any, shift: Any = shift) -> Any:
            far, near = (np.linalg.norm(y, ord=order, axis=1) ** 2 for y in (x, x - shift))
            return far - near

        p, q = np.mean(loss(drawn + shift) > 0.5), np.mean(loss(drawn) > 0.5)
        assert p - math.exp(0.5) * q <= most + bound * (1 + math.exp(0.5)) / 2


@pytest.mark.parametrize(("norm", "power"), [("l1", 3), ("linf", 2), ("l2", 2), ("l1", 1)])
def test_draws_have_the_moments(norm: str, power: int) -> None:
    noise, size = KNorm(2, 3, norm, power=power), 50_000
    drawn = noise.sample(size, rng=np.random.default_rng(7))
    (variance,) = utility.variance(noise)
    fourth = float(np.mean(drawn[:, 0] ** 4))
    # six standard errors of a mean of squares
    assert abs(np.mean(drawn[:, 0] ** 2) - float(variance.lower)) < 6 * math.sqrt(fourth / size)
    absolute = float(accuracy.mean_absolute_error(noise).lower)
    assert abs(np.mean(np.abs(drawn)) - absolute) < 6 * math.sqrt(float(variance.upper) / size)


def test_a_million_coordinates() -> None:
    noise = KNorm(2, 10**6, "linf", "1/100", 2)
    found = profile.delta(noise, 7)
    width = found.relative_width
    assert width is not None
    assert width <= Fraction(1, 10**11)
    assert profile.delta(noise, 100).upper > 0
    assert float(profile.delta(noise, 100).upper) < 1e-300


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="power"):
        KNorm(1, 3, "l1", power="1/2")
    with pytest.raises(NotApplicableError, match="only enclosed"):
        PoissonSubsampled(KNorm(1, 3, "l1", power=2), "1/2")


def test_no_rho_bounds_a_loss_that_grows_faster_than_that_of_gaussian_noise() -> None:
    """One coordinate: D_a/a of e^{−|x|³} by quadrature, in logarithms, grows with a."""
    assert dpassay.rho(KNorm(2, 5, "l1", power=3)).lower.is_infinite()
    x = np.linspace(-40, 400, 1_000_001)
    weight = np.log(x[1] - x[0]) - np.log(2 * math.gamma(4 / 3))

    def divergence(a: float) -> float:
        inside = -a * np.abs(x - 1) ** 3 + (a - 1) * np.abs(x) ** 3
        return float(np.logaddexp.reduce(inside) + weight) / (a - 1)

    ratios = [divergence(a) / a for a in (2, 8, 32)]
    assert ratios[0] < ratios[1] / 2 < ratios[2] / 4

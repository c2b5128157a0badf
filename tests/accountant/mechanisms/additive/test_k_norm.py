"""Noise whose density falls with a norm: one integral, known laws, and brute force over shifts."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest

from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.geometry.ball_loss import shape
from dpassay.accountant.mechanisms import Composed, KNorm
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import enclose
from dpassay.accountant.pairs.ball_noise import BallNoisePair
from dpassay.accountant.questions import accuracy, guarantees, profile

FALSE_ALARM = 1e-6
CASES = [(2, "1"), (3, "1/2"), (5, "3"), (30, "2")]


def caps(dimension: int, t: float, epsilon: float) -> float:
    """P(‖x‖ − ‖x − v‖ > ε): the radius is Gamma(d), and the angle to v has a cap."""
    d, x = dimension, mpmath.mpf

    def cap(r: mpmath.mpf) -> mpmath.mpf:
        cosine = x(epsilon) / t - (x(t) ** 2 - x(epsilon) ** 2) / (2 * r * t)
        if cosine <= -1:
            return x(1)
        share = mpmath.betainc((d - 1) / x(2), x(1) / 2, 0, 1 - cosine**2, regularized=True) / 2
        return share if cosine > 0 else 1 - share

    def weighted(r: mpmath.mpf) -> mpmath.mpf:
        return r ** (d - 1) * mpmath.exp(-r) / mpmath.gamma(d) * cap(r)

    start = (x(t) - epsilon) / 2
    whole = mpmath.gammainc(d, 0, start, regularized=True)
    return float(whole + mpmath.quad(weighted, [start, start + 1, start + d, 4 * d + 60]))


@pytest.mark.parametrize(("dimension", "distance"), CASES)
def test_the_loss_has_the_law_of_caps_of_spheres(dimension: int, distance: str) -> None:
    t = float(Fraction(distance))
    pair = BallNoisePair(exact(distance), dimension)
    for epsilon in ("-1/5", "0", "1/3"):
        found, at = pair.tails(exact(epsilon)), float(Fraction(epsilon))
        assert float(found.p_above) == pytest.approx(caps(dimension, t, at), rel=1e-9)
        assert float(found.q_below) == pytest.approx(caps(dimension, t, -at), rel=1e-9)
        assert (found.p_above + found.p_below).overlaps(exact("1").ball())
        value = enclose(partial(pair.hockey_stick, exact(epsilon)))
        other = found.p_above - exact(epsilon).ball().exp() * found.q_above
        assert value.upper - value.lower <= value.lower * Decimal("1e-12")
        assert float(value.lower) == pytest.approx(float(other), rel=1e-9)


@pytest.mark.parametrize(("dimension", "distance"), CASES[2:3])
def test_divergences_are_means_over_the_loss(dimension: int, distance: str) -> None:
    """E e^{cL} = e^{−ct} + c ∫ e^{cl} P(L > l) dl, and at c = 1 the mean under Q of e^{2L}."""
    t = float(Fraction(distance))
    nodes, weights = np.polynomial.legendre.leggauss(12)
    tails = [caps(dimension, t, t * node) for node in nodes]
    noise = KNorm(1, dimension, sensitivity=distance)
    for order in (2, 3):
        c = order - 1
        moment = np.exp(-c * t) + c * t * np.sum(weights * np.exp(c * t * nodes) * tails)
        known = np.log(moment) / c
        assert float(guarantees.renyi(noise, order).upper) == pytest.approx(known, rel=1e-4)
    mean = -t + t * np.sum(weights * tails)
    assert float(guarantees.renyi(noise, 1).upper) == pytest.approx(mean, rel=1e-3)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_no_shift_up_to_the_sensitivity_is_worse(norm: str) -> None:
    """Counts of losses above ε in samples, for shifts at random; each bounds H from below."""
    rng, size, epsilon = np.random.default_rng(5), 200_000, 0.2
    noise, order = KNorm(1, 3, norm=norm), {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    drawn = noise.sample(size, rng=rng)
    true = float(profile.delta(noise, "1/5").upper)
    shifts = [noise.worst_shift(), *rng.normal(size=(20, 3))]
    slack = np.sqrt(np.log(2 * len(shifts) / FALSE_ALARM) / (2 * size))  # Hoeffding, of [0, 1]
    for index, shift in enumerate(shifts):
        moved = shift / max(1.0, float(np.linalg.norm(shift, ord=order)))
        loss = np.linalg.norm(drawn + moved, ord=order, axis=1) - np.linalg.norm(
            drawn, ord=order, axis=1
        )
        found = float(np.mean(np.maximum(0, 1 - np.exp(epsilon - loss))))
        assert found <= true + slack
        assert index or found >= true - slack


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_moments_are_those_of_samples(norm: str) -> None:
    noise = KNorm(2, 4, norm=norm)
    drawn = noise.sample(400_000, rng=np.random.default_rng(7))
    (variance,) = accuracy.variance(noise)
    assert np.mean(drawn**2) == pytest.approx(float(variance.lower), rel=0.05)
    absolute = float(noise.mean_absolute_error())
    assert np.mean(np.abs(drawn)) == pytest.approx(absolute, rel=0.02)


def test_compositions_by_the_contour() -> None:
    found = profile.epsilon(Composed(KNorm(5, 10), 100), "1e-6")
    assert float(found.upper) == pytest.approx(2.90776951, rel=1e-8)
    single = [profile.delta(Composed(KNorm(5, 10), 1), "1/10"), profile.delta(KNorm(5, 10), "1/10")]
    assert single[0] == single[1]


@pytest.mark.parametrize(("dimension", "distance"), [(2, "1"), (3, "1/2"), (5, "3")])
def test_two_releases_are_a_mean_of_one_over_the_loss_of_the_other(
    dimension: int, distance: str
) -> None:
    """H₂(ε) = E_P[H₁(ε − L)], by midpoints in the angle, at which L = t sin φ."""
    t, pair = float(Fraction(distance)), BallNoisePair(exact(distance), dimension)
    second = float(shape(pair.distance, dimension)[0])
    noise = KNorm(1, dimension, sensitivity=distance)
    reach = min(np.pi / 2, 12 / np.sqrt(dimension))
    phi = reach * (2 * np.arange(300) + 1 - 300) / 300
    weights = np.cos(phi) ** (dimension - 2) * (np.cos(phi) ** 2 + second)
    weights *= np.exp(t / 2 * np.sin(phi))
    values = [float(pair.hockey_stick(exact(Fraction(0.25 - t * np.sin(x))))) for x in phi]
    known = weights @ values / weights.sum()
    found = profile.delta(Composed(noise, 2), "1/4")
    assert found.upper - found.lower <= found.lower * Decimal("1e-6")
    assert float(found.upper) == pytest.approx(known, rel=1e-3)


def test_a_million_coordinates() -> None:
    noise = KNorm(2, 10**6, sensitivity=500)
    assert float(profile.delta(noise, "1/10").upper) == pytest.approx(0.0603371861503, rel=1e-10)


@pytest.mark.parametrize("noise", [KNorm(2, 3, "l1"), KNorm(2, 1), KNorm(2, 1, "linf")])
def test_releases_of_independent_coordinates_have_the_variance(noise: KNorm) -> None:
    size, answer = 2000, [1.5] * noise.dimension
    released = noise.release(answer, size, rng=np.random.default_rng(3))
    assert released.shape == (size, noise.dimension)
    (variance,) = accuracy.variance(noise)
    squares = ((released - 1.5) ** 2).ravel()
    bound = 6 * np.std(squares) / np.sqrt(len(squares))  # six standard errors
    assert abs(np.mean(squares) - float(variance.lower)) < bound


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_a_release_of_dependent_coordinates_is_refused(norm: str) -> None:
    with pytest.raises(NotApplicableError, match="norm='l1'"):
        KNorm(2, 3, norm).release([1.0, 2.0, 3.0])

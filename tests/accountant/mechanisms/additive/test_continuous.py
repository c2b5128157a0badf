"""Noise on the reals: closed forms, compositions, random and mixed shifts, limits of floats."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

from dpassay.accountant.core.adjacency import Direction
from dpassay.accountant.mechanisms import (
    Gaussian,
    Laplace,
    Logistic,
    MixtureOfGaussians,
    PoissonSubsampled,
)
from dpassay.accountant.mechanisms.additive.laplace import optimal_gamma
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import enclose
from dpassay.accountant.questions import guarantees, profile
from dpassay.accountant.release.lattice import InvertedNoise
from tests.near import mpf, narrow


def test_tails_beyond_every_float() -> None:
    # erfc of an inexact ball loses its accuracy at such arguments unless its ends are taken
    pair = Gaussian("1e-9").worst_case(None).remove[0]
    below = enclose(lambda: pair.tails(exact(1)).p_below)
    assert narrow(below, Fraction(1, 10**30))
    assert below.lower.adjusted() == -54286810237906488


def test_the_doubles_of_a_release_are_within_their_bound() -> None:
    declared = Logistic("0.7").inverse_noise()
    noise, places = InvertedNoise(declared), [0.0, 1e-9, 0.3, 2.0, 35.0, -1e-3, -7.0]
    found, bound = noise.floats(np.array(places)[:, np.newaxis], np.array([1.0]))
    with mpmath.workdps(40):
        for x, value, error in zip(places, found[:, 0], bound[:, 0], strict=True):
            true = mpmath.mpf("0.7") * mpmath.log(2 * mpmath.exp(abs(x)) - 1) * mpmath.sign(x)
            assert abs(mpmath.mpf(float(value)) - true) <= error <= 1e-13
    # the slope 2e^y/(2e^y − 1) is largest at 0
    assert declared.slope == 2


def test_optimal_gamma_is_the_published_one() -> None:
    # γ* = 1/(1 + e^{ε/2}) for the ℓ1 cost, and for ℓ2 the cubic root as printed
    with mpmath.workdps(50):
        b = mpmath.exp(-1)
        assert abs(mpf(optimal_gamma(1, "absolute")) - 1 / (1 + mpmath.exp(0.5))) < 1e-30
        printed = -b / (1 - b) + mpmath.cbrt(b - 2 * b**2 + 2 * b**4 - b**5) / (
            mpmath.cbrt(2) * (1 - b) ** 2
        )
        assert abs(mpf(optimal_gamma(1, "variance")) - printed) < 1e-30


THREE = MixtureOfGaussians(1, [0, 1, 2], ["0.2", "0.6", "0.2"])
BOTH = MixtureOfGaussians("3/2", [1, "sqrt(2)"], ["0.2", "0.8"])  # every loss can be far below 0


def test_losses_have_the_ends_of_their_limits() -> None:
    # ADD: the loss is at most −ln of the weight of 0, here ln 5
    for epsilon, positive in (("1.60943", True), ("1.60944", False)):
        found = profile.delta(THREE, epsilon, adjacency="add-remove", direction=Direction.ADD)
        assert (found.lower > 0) is positive
    far = profile.delta(THREE, -2, adjacency="add-remove", direction=Direction.REMOVE)
    assert Fraction(far.lower) <= 1 - Fraction(str(np.exp(-2))) + Fraction(1, 10**15)
    everything = PoissonSubsampled(Gaussian(1), "0.5")  # whose losses are all above −2 too
    assert far == profile.delta(everything, -2, adjacency="add-remove", direction=Direction.REMOVE)


@pytest.mark.parametrize("noise", [THREE, BOTH])
@pytest.mark.parametrize("epsilon", [-0.5, 0.3, 2.0])
def test_replaced_records_have_opposite_shifts(noise: MixtureOfGaussians, epsilon: float) -> None:
    """By midpoints: off by 1e-6 of δ."""
    sigma, edges = float(noise.standard_deviation), np.linspace(-25, 25, 400_001)
    masses = [
        sum(
            float(w) * np.diff(ndtr((edges - sign * float(s)) / sigma))
            for w, s in zip(noise.sampling_probs, noise.sensitivities, strict=True)
        )
        for sign in (1, -1)
    ]
    wanted = np.maximum(masses[0] - np.exp(epsilon) * masses[1], 0).sum()
    found = profile.delta(noise, epsilon, adjacency="replace-one")
    assert float(found.lower) == pytest.approx(wanted, rel=1e-6, abs=0)


@pytest.mark.parametrize("t", ["1/1000", "1/2", "3", "40"])
def test_rho_of_laplace_noise_is_its_divergence_of_order_one(t: str) -> None:
    """D_a/a falls from there on: here by the sums of an integral of three exponentials."""
    with mpmath.workdps(50):
        at = mpmath.mpf(Fraction(t).numerator) / Fraction(t).denominator
        last = at + mpmath.exp(-at) - 1
        found = guarantees.rho(Laplace(1, t))
        assert float(found.upper) == pytest.approx(float(last), rel=1e-9)
        for a in map(mpmath.mpf, ("1.001", "1.1", "1.5", "2", "4", "30", "1000")):
            high, low = mpmath.exp((a - 1) * at), mpmath.exp(-a * at)
            ends, between = (high + low) / 2, (high - low) / (2 * (2 * a - 1))
            share = mpmath.log(ends + between) / (a - 1) / a
            assert share < last
            last = share

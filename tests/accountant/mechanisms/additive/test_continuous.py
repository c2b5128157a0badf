"""Noise on the reals: closed forms, compositions, random and mixed shifts, limits of floats."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

import dpassay
from dpassay.accountant.core.adjacency import Direction
from dpassay.accountant.errors import AdjacencyError
from dpassay.accountant.mechanisms import (
    Composed,
    Gaussian,
    Laplace,
    LaplaceVector,
    Logistic,
    MixtureOfGaussians,
    PoissonSubsampled,
    TruncatedLaplace,
)
from dpassay.accountant.mechanisms.additive.laplace import Staircase, optimal_gamma
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.accountant.questions import accuracy, guarantees, profile
from dpassay.accountant.release.lattice import InvertedNoise
from tests.near import mpf, narrow


def test_tails_beyond_every_float() -> None:
    # erfc of an inexact ball loses its accuracy at such arguments unless its ends are taken
    pair = Gaussian("1e-9").worst_case(None).remove[0]
    below = enclose(lambda: pair.tails(exact(1)).p_below)
    assert narrow(below, Fraction(1, 10**30))
    assert below.lower.adjusted() == -54286810237906488


def test_delta_is_far_below_one_coordinate_with_the_whole_distance() -> None:
    vector = profile.delta(LaplaceVector(100, [1] * 100), "0.5")
    whole = profile.delta(Laplace(100, 100), "0.5")
    assert vector.upper * 1000 < whole.lower


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


def composed(t: mpmath.mpf, count: int, epsilon: mpmath.mpf) -> mpmath.mpf:
    """Return H(ε) of so many releases by the n-fold convolution of the density of the loss.

    Under P it is e^{l/2}/(4 sinh(t/2)) on [−t, t], so that of the sum is e^{l/2}/(4 sinh(t/2))^n
    times Σ_k (−1)^k C(n, k) ((n − 2k)t − l)₊^{n−1}/(n − 1)!.
    """
    ends = [(count - 2 * k) * t for k in range(count + 1)]

    def term(loss: mpmath.mpf) -> mpmath.mpf:
        powers = (
            (-1) ** k * mpmath.binomial(count, k) * (end - loss) ** (count - 1)
            for k, end in enumerate(ends)
            if end > loss
        )
        weight = -mpmath.expm1(epsilon - loss) * mpmath.exp(loss / 2)
        return weight * mpmath.fsum(powers)

    places = sorted([epsilon, *(end for end in ends if end > epsilon)])
    whole = mpmath.quad(term, places) / mpmath.factorial(count - 1)
    return whole / (4 * mpmath.sinh(t / 2)) ** count


@pytest.mark.parametrize(("count", "epsilon"), [(4, "1"), (10, "2"), (10, "-1/3"), (30, "12")])
def test_compositions_agree_with_the_density_of_the_sum(count: int, epsilon: str) -> None:
    whole = Composed(Logistic(2), count)
    found = profile.delta(whole, epsilon, relative_width=Fraction(1, 10**7))
    with mpmath.workdps(50):
        expected = composed(mpmath.mpf(1) / 2, count, exact(epsilon).mpf())
        assert mpmath.mpf(str(found.lower)) <= expected <= mpmath.mpf(str(found.upper))


def test_the_bound_of_its_authors_is_met_exactly() -> None:
    # A = (Δ/ε) ln(1 + (e^ε − 1)/(2δ)), with A rounded to 30 digits
    with mpmath.workdps(40):
        bound = mpmath.nstr(2 * mpmath.log1p(mpmath.expm1(0.5) / 2e-5), 30)
        found = profile.delta(TruncatedLaplace(2, bound), "1/2")
        assert abs(mpf(found) / mpmath.mpf(1e-5) - 1) < 1e-15


def test_a_composition_has_the_mass_at_infinity_of_its_parts() -> None:
    twice = profile.delta(Composed(TruncatedLaplace(1, 8), 2), 5)
    one = mpf(profile.delta(TruncatedLaplace(1, 8), 5))
    lower, upper = mpmath.mpf(str(twice.lower)), mpmath.mpf(str(twice.upper))
    assert lower <= 2 * one - one**2 <= upper


LAWS = [("1", "1/4", "1"), ("2", "0.5", "3"), ("1/3", "0.9", "sqrt(2)"), ("1", 0, 1), ("4", 1, 2)]


def density(mechanism: Staircase, x: mpmath.mpf) -> mpmath.mpf:
    """The density in units of Δ, written down again from the paper's definition."""
    b, gamma = mpmath.exp(-mechanism.epsilon.mpf()), mechanism.gamma.mpf()
    a = (1 - b) / (2 * (gamma + b * (1 - gamma)))
    k = mpmath.floor(abs(x))
    return a * b**k * (1 if abs(x) - k < gamma else b)


def pieces(mechanism: Staircase, reach: int) -> list[mpmath.mpf]:
    gamma = mechanism.gamma.mpf()
    cuts = {k + part for k in range(reach) for part in (mpmath.mpf(0), gamma)}
    return sorted(cuts | {mpmath.mpf(reach)})


@pytest.mark.parametrize("law", LAWS)
def test_the_full_shift_is_the_worst(law: tuple[str, str, str]) -> None:
    # the profile of a smaller shift, by quadrature over both densities
    mechanism = Staircase(*law)
    with mpmath.workdps(30):
        for shift in (mpmath.mpf(1) / 7, mpmath.mpf(1) / 2, mpmath.mpf("0.93")):
            cuts = pieces(mechanism, 6)
            line = sorted({-c for c in cuts} | set(cuts))
            line = sorted(set(line) | {c + shift for c in line})
            for epsilon in ("0", "0.2"):
                eps = exact(epsilon).mpf()
                total = mpmath.mpf(0)
                for low, high in pairwise(line):
                    middle = (low + high) / 2
                    gain = density(mechanism, middle - shift) - mpmath.exp(eps) * density(
                        mechanism, middle
                    )
                    total += max(gain, mpmath.mpf(0)) * (high - low)
                # at least the mass within 6 sensitivities; the full shift is worse by far more
                assert total <= mpf(profile.delta(mechanism, epsilon)) * (1 + mpmath.mpf("1e-20"))


@pytest.mark.parametrize("epsilon", ["0.1", "1", "5"])
def test_optimal_gamma_beats_its_neighbours(epsilon: str) -> None:
    for cost in ("absolute", "variance"):
        best = optimal_gamma(epsilon, cost)
        assert narrow(best, Fraction(1, 10**30))

        def value(gamma: Fraction, cost: str = cost) -> Interval:
            mechanism = Staircase(epsilon, gamma)
            compute = (
                mechanism.mean_absolute_error
                if cost == "absolute"
                else mechanism.mean_squared_error
            )
            return enclose(compute)

        middle, step = Fraction(best.lower), Fraction(1, 10**6)
        assert value(middle).upper < value(middle + step).lower
        assert value(middle).upper < value(middle - step).lower


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


@settings(max_examples=25)
@given(
    st.lists(st.integers(0, 40), min_size=2, max_size=4),
    st.integers(1, 30),
    st.fractions(0, 2, max_denominator=20),
)
def test_more_contribution_never_has_less_delta(
    tenths: list[int], sigma: int, epsilon: Fraction
) -> None:
    share = [Fraction(1, len(tenths))] * len(tenths)
    small = MixtureOfGaussians(Fraction(sigma, 10), [Fraction(t, 10) for t in tenths], share)
    large = MixtureOfGaussians(Fraction(sigma, 10), [Fraction(t, 9) for t in tenths], share)
    values = [profile.delta(each, epsilon, adjacency="add-remove") for each in (small, large)]
    assert values[0].lower <= values[1].upper


@pytest.mark.parametrize(("adjacency", "shift"), [("add-remove", 3), ("replace-one", 6)])
def test_a_sure_shift_is_composed_like_a_gaussian(adjacency: str, shift: int) -> None:
    sure = MixtureOfGaussians(2, [0, 3], [0, 1])
    assert dpassay.epsilon(
        dpassay.Composed(sure, 4), "0.1", adjacency=adjacency
    ) == dpassay.epsilon(dpassay.Gaussian(1, shift), "0.1")


@pytest.mark.parametrize("noise", [THREE, BOTH, MixtureOfGaussians(2, [3], [1])])
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


def test_two_cases_are_a_sampled_release_whose_record_is_replaced() -> None:
    mixture = MixtureOfGaussians(1, [0, 1], ["0.9", "0.1"])
    sampled = PoissonSubsampled(Gaussian(1), "0.1")
    found = [profile.delta(each, 1, adjacency="replace-one") for each in (mixture, sampled)]
    assert found[0] == found[1]


def test_refusals_and_utility() -> None:
    assert str(accuracy.variance(BOTH)[0]) == "2.25"
    assert THREE.sample(3, rng=np.random.default_rng(1)).shape == (3,)
    with pytest.raises(AdjacencyError, match="add-remove"):
        profile.delta(THREE, 1)


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

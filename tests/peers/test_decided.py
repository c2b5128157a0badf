"""What is right where a table of another library differs: by closed forms and mpmath alone."""

from __future__ import annotations

import math
import sys
import tomllib
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from mpmath import mp, mpf

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.mechanisms import (
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Guaranteed,
    Laplace,
    MixtureOfGaussians,
    PoissonSubsampled,
    Tabulated,
)
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.questions import guarantees, profile
from dpassay.verifier.ask import verify
from dpassay.verifier.foreign import events
from tests.peers.rows import FOLDER, event_of

BOTH = Adjacency.ADD_REMOVE


def test_every_decision_names_its_proof() -> None:
    decided = tomllib.loads((FOLDER / "decided.toml").read_text(encoding="utf-8"))["decided"]
    proofs = {entry["proof"] for entry in decided}
    assert proofs <= set(vars(sys.modules[__name__]))


def test_a_sample_of_nothing_tells_nothing() -> None:
    for one in (Gaussian(1), Laplace(1), DiscreteLaplace(1), DiscreteGaussian(1)):
        assert str(profile.delta(PoissonSubsampled(one, 0), 0, adjacency=BOTH)) == "0"


def test_a_whole_number_may_have_a_decimal_point() -> None:
    assert DiscreteLaplace(1, sensitivity="1.0") == DiscreteLaplace(1, sensitivity=1)  # type: ignore[arg-type]


def test_a_target_below_zero_is_met() -> None:
    # H(ε) = 1 − e^ε + e^ε H(−ε) for a pair that is its own reverse; it is 0.0952 + … at ε = −0.1
    with mp.workdps(30):
        mu, e = mpf(1) / 1000, mpf("-0.1")
        delta = mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu)
    assert delta < mpf("0.1")
    found = profile.delta(Gaussian(1000), "-0.1")
    assert abs(float(found.lower) - float(delta)) < 1e-15


def test_the_ends_of_randomised_response_are_laws() -> None:
    truth = events.mechanism_of(_event(noise=0.0, buckets=3), "REPLACE_SPECIAL")
    # P = (1, 0, 0) against Q = (1/3, 1/3, 1/3): Q charges what P does not with 2/3
    assert Fraction(2, 3) in profile.delta(truth, 1, adjacency=BOTH)
    assert profile.epsilon(truth, "0.01", adjacency=BOTH).lower == math.inf
    one = events.mechanism_of(_event(noise=0.5, buckets=1), "REPLACE_ONE")
    assert str(profile.delta(one, 0)) == "0"


def _event(noise: float, buckets: int) -> object:
    made = {"noise_parameter": noise, "num_buckets": buckets}
    return type("RandomizedResponseDpEvent", (), made)()


def test_less_laplace_noise_suffices_for_a_positive_delta() -> None:
    # H(ε) = 1 − e^{(ε − 1/b)/2} for one Laplace release: δ = 0.1 is met from 1/b = 1 − 2 ln 0.9 on
    scale = 1 / (1 - 2 * math.log(0.9))
    assert scale < 0.83
    assert profile.delta(Laplace(scale * (1 + 1e-12)), 1).upper <= Fraction(1, 10)
    # H(1) = (1 − e r)/(1 + r) for a discrete one of ratio r = e^{−1/b}: 0.1 is met up to b = 0.876
    ratio = 0.9 / (math.e + 0.1)
    assert -1 / math.log(ratio) < 0.88
    assert profile.delta(DiscreteLaplace("0.88"), 1).upper <= Fraction(1, 10)


def test_losses_of_the_discrete_gaussian_are_finite() -> None:
    # the loss at x is (2x − 1)/(2σ²), up to sign: 12.5 at x = −13, σ = 1, where it is called ∞
    for pair in DiscreteGaussian(1).worst_case(BOTH).pairs(None):
        assert pair.infinity_mass() == 0
        tails = pair.tails(exact("13.4"))
        assert tails.p_above > 0


def test_the_least_noise_of_one_sample() -> None:
    with mp.workdps(30):
        q, e = mpf("0.01"), mpf(1)

        def delta(sigma: mpf) -> mpf:
            inner = mp.log(1 + mp.expm1(e) / q)
            mu = 1 / sigma
            own = mp.ncdf(mu / 2 - inner / mu) - mp.exp(inner) * mp.ncdf(-mu / 2 - inner / mu)
            return q * own

        least = mp.findroot(lambda sigma: delta(sigma) - mpf("1e-5"), (mpf("0.67"), mpf("0.68")))
        said = mpf("0.67379294682")
    assert 5e-8 < float(said - least) < 6e-8


@pytest.mark.slow
def test_twenty_five_rare_samples() -> None:
    # less noise suffices: by the enclosure, and by the library's own upper bound on a finer grid
    said = Fraction("3.20956502598")
    for less, fits in (("3e-6", True), ("4e-6", False)):
        sigma = said - Fraction(less)
        steps = Composed(PoissonSubsampled(Gaussian(sigma, 6), "0.001"), 25)
        found = profile.delta(steps, 1, adjacency=BOTH, relative_width=Fraction(1, 10**6))
        assert found.upper < 1e-5 if fits else found.lower > 1e-5
    one = pld.from_gaussian_mechanism(
        float(said - Fraction("2e-6")), sensitivity=6, sampling_prob=0.001,
        value_discretization_interval=3e-5, use_connect_dots=True,
    )  # fmt: skip
    assert one.self_compose(25).get_delta_for_epsilon(1) < 1e-5


def test_the_least_total_between_two_of_the_lattice() -> None:
    # KOV: H of 30 releases of (1, 0.001), by its sum over the number of losses of +1
    k, own = 30, mpf("0.001")
    with mp.workdps(30):
        odds = mp.e / (1 + mp.e)

        def delta(epsilon: mpf) -> mpf:
            inner = sum(
                mp.binomial(k, i) * odds**i * (1 - odds) ** (k - i)
                * max(0, 1 - mp.exp(epsilon - (2 * i - k)))
                for i in range(k + 1)
            )  # fmt: skip
            return 1 - (1 - own) ** k * (1 - inner)

        for total, at_most in (("0.06", 22), ("0.1", 20)):
            least = mp.findroot(lambda e, t=total: delta(e) - mpf(t), (at_most - 1.5, at_most))
            assert at_most - 2 < least < at_most
            found = profile.epsilon(Composed(Guaranteed(1, "0.001"), k), total)
            assert found.lower <= Decimal(mp.nstr(least, 25)) <= found.upper
            assert found.upper - found.lower < Decimal("1e-7")


def test_five_mixtures_on_a_contour() -> None:
    # δ(ε) = (1/2πi) ∫ M(z) e^{−zε}/(z(z + 1)) dz, M(z) = E_Q[(p/q)^{z+1}], both by trapezoidal sums
    x, step = np.arange(-14, 24, 0.02), 0.02
    z = 1.2 + 1j * np.arange(0, 60, step)

    def log_moment(shifts: list[float], weights: list[float]) -> np.ndarray:
        ratio = sum(w * np.exp(s * x - s * s / 2) for s, w in zip(shifts, weights, strict=True))
        bell = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * 0.02
        return np.log(np.exp(np.outer(z + 1, np.log(ratio))) @ bell)

    whole = 3 * log_moment([0, 1, 2], [0.2, 0.6, 0.2])
    whole += 2 * log_moment([0, 1, 1.5], [0.33, 0.34, 0.33])
    terms = np.exp(whole - z * 17.193115) / (z * (z + 1))
    terms[0] /= 2
    delta = float(terms.sum().real) * step / math.pi
    assert abs(delta - 9.999993566e-7) < 1e-15
    assert abs(delta - 1e-6) < 1e-12  # the tolerance of the library's test


@pytest.mark.slow
def test_five_mixtures() -> None:
    first = MixtureOfGaussians(1, [0, 1, 2], ["0.2", "0.6", "0.2"])
    second = MixtureOfGaussians(2, [0, 2, 3], ["0.33", "0.34", "0.33"])
    whole = Composed([Composed(first, 3), Composed(second, 2)])
    delta = profile.delta(whole, "17.193115", adjacency=BOTH, relative_width=Fraction(1, 1000))
    assert float(delta.lower) < 9.999993566e-7 < float(delta.upper)
    assert delta.upper - delta.lower < 1e-9


def test_a_sample_without_noise_has_the_delta_of_its_rate() -> None:
    # P = (0.9, 0.1) against Q = (1, 0): sup P(S) − e^ε Q(S) = 0.1; ADD: 1 − 0.9e^ε or 0
    bare = PoissonSubsampled(Tabulated([1, 0], [0, 1]), "0.1")
    assert Fraction(1, 10) in profile.delta(bare, 1, adjacency=BOTH)
    assert Fraction(1, 10) in profile.delta(bare, 50, adjacency=BOTH)


def test_delta_one_allows_everything() -> None:
    assert profile.epsilon(events.EVERYTHING, 1).upper <= 0  # every ε, the least is −∞
    assert str(profile.delta(events.EVERYTHING, 1000)) == "1"


def test_a_fractional_renyi_divergence_by_quadrature() -> None:
    with mp.workdps(30):
        q, sigma, order = mpf("0.01"), mpf("2.5"), mpf("1.5")

        def integrand(x: mpf) -> mpf:
            ratio = 1 - q + q * mp.exp((2 * x - 1) / (2 * sigma**2))
            return mp.npdf(x, 0, sigma) * ratio**order

        moment = mp.quad(integrand, [-mp.inf, -20, -5, 0, 5, 20, 40, mp.inf])
        total = 50 * mp.log(moment) / (order - 1)
    assert abs(float(total) / 6.70579741e-04 - 1) > 0.03  # what the library expects
    step = PoissonSubsampled(Gaussian("2.5"), "0.01")
    own = guarantees.renyi(step, "1.5", adjacency=BOTH, relative_width=Fraction(1, 10**12))
    assert abs(50 * float(own.lower) / float(total) - 1) < 1e-11


def test_the_upper_end_of_prv_is_no_estimate() -> None:
    # dp-accounting brackets the exact ε between its optimistic and its pessimistic distribution
    ends = []
    for pessimistic in (False, True):
        one = pld.from_gaussian_mechanism(
            1.5, sampling_prob=0.04, value_discretization_interval=1e-3,
            pessimistic_estimate=pessimistic, use_connect_dots=pessimistic,
        )  # fmt: skip
        ends.append(one.self_compose(2249).get_epsilon_for_delta(1e-5))
    assert ends[0] < 6.767044 < ends[1] < 6.777395712150674 - 0.009
    event = {
        "type": "SelfComposed",
        "count": 2249,
        "event": {
            "type": "PoissonSampled",
            "sampling_probability": "0.04",
            "event": {"type": "Gaussian", "noise_multiplier": "1.5"},
        },
    }
    claim = events.claim(event_of(event), "6.777395712150674", "1e-5")
    found = verify(claim)
    assert found.verdict.value == "HOLDS"
    assert mpmath.almosteq(float(found.true["epsilon"]["upper"]), 6.767044, abs_eps=1e-5)

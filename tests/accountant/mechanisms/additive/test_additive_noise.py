"""Additive noise: any density, known laws, and integers."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

import dpassay
from dpassay.accountant.core.adjacency import Direction
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import exact_infinity_mass, max_finite_loss
from dpassay.accountant.density.pieces import pieces, second_rise
from dpassay.accountant.density.ranges import Ranges
from dpassay.accountant.density.text import read
from dpassay.accountant.errors import InvalidInputError, UndecidedError
from dpassay.accountant.mechanisms import (
    AdditiveNoise,
    Composed,
    Gaussian,
    Laplace,
    Logistic,
    MixtureOfGaussians,
    PoissonSubsampled,
)
from dpassay.accountant.mechanisms.additive.integers import (
    DiscreteGaussian,
    DiscreteLaplace,
    IntegerNoise,
    TruncatedGeometric,
)
from dpassay.accountant.mechanisms.additive.laplace import optimal_gamma
from dpassay.accountant.numbers.exact import ExactReal, Number, exact
from dpassay.accountant.numbers.interval import Interval, ball, enclose
from dpassay.accountant.pairs.finite import FinitePair
from dpassay.accountant.pairs.own_density import OwnDensityPair
from dpassay.accountant.questions import accuracy as utility
from dpassay.accountant.questions import guarantees, profile
from dpassay.accountant.release.lattice import InvertedNoise
from tests.near import mpf, narrow
from tests.quick import slow

FALSE_ALARM = 1e-6


@pytest.mark.parametrize(
    ("density", "largest"),
    [
        ("exp(-abs(x))", "1"),
        ("exp(-x)/(1+exp(-x))**2", "1"),
        ("1/cosh(2*x)", "2"),
        ("exp(-abs(x)**3)", None),
    ],
)
def test_a_pure_guarantee_is_exact(density: str, largest: str | None) -> None:
    found = profile.epsilon(AdditiveNoise(density), 0)
    if largest is None:
        assert not found.lower.is_finite()
    else:
        assert found == Interval.of_exact(int(largest))
        assert profile.delta(AdditiveNoise(density), largest) == Interval.of_exact(0)


ONE_MODE = [
    "exp(-x**4)",
    "exp(-(x-1/3)**4)",
    "exp(-sqrt(abs(x)))",
    "1/cosh(x)",
    "max(1-x**2,0)**2",
    "max(1-x**2/2,0)",
    "(abs(x)<1)",
    "1 if x < 2 and x > -1 else 0",
    "exp(-x-exp(-x))",
    "(sqrt(x)*exp(-x)) if x > 0 else 0",
    "min(1, 1/x**2)",
    "exp(-abs(x))*(2 if x > 0 else 1)",
    "0.5*exp(-x**2/2)+0.5*exp(-(x-1.9)**2/2)",
    "exp(-abs(x)+abs(x)/x)",
    "1/(1+max(0,x**2-2)**1.5)",
    "1/(1+max(0,abs(x)-1)**(1/2))**4",
]
SEVERAL = [
    "exp(-(x-3)**2/2)+exp(-(x+3)**2/2)",
    "0.5*exp(-x**2/2)+0.5*exp(-(x-2.1)**2/2)",
    "(abs(x)<1)+0.5*(abs(x-3)<1)",
    "x**2*exp(-x**2)",
    "exp(-abs(x))*(1 if x < 1 else 2)",
    "exp(-abs(x)+3*max(0,x-1)/(x-1))",
    "exp(-abs(x+1)+abs(x)/x)",
    "exp(-abs(x+1)+3*sqrt(max(0,x-1)/(x-1)))",
    "exp(-abs(x)) if x < 1 else exp(-x+(x-1)/(x**2-1))",
    "exp(-abs(x+1))*(1+1/(1+exp(-1/x)) if x > 0 else exp(x)*(1+1/(1+exp(-1/x))))",
]


@pytest.mark.parametrize("density", ONE_MODE)
def test_one_mode_is_proved(density: str) -> None:
    assert second_rise(pieces(read(density, "density"), "density")) is None


@pytest.mark.parametrize("density", SEVERAL)
def test_several_modes_are_refused(density: str) -> None:
    with pytest.raises(InvalidInputError, match=r"one mode|be bounded"):
        AdditiveNoise(density)


SYMMETRIC = [
    "exp(-abs(x-1/3)**3)",
    "exp(-(x**2-4*x+4)**2)",
    "(1 if x < 1 else 2 if x < 2 else 1) if x > 0 and x < 3 else 0",
    "1/cosh(x-2)",
]


@pytest.mark.parametrize("density", SYMMETRIC)
def test_a_density_that_is_symmetric_about_any_point_has_one_side(density: str) -> None:
    assert len(AdditiveNoise(density).worst_case(None).remove) == 1
    for epsilon in (Fraction(0), Fraction(1, 3), Fraction(2)):
        one, other = (
            OwnDensityPair(density, Fraction(3, 4), mirrored).hockey_stick(
                ExactReal.of_rational(epsilon)
            )
            for mirrored in (False, True)
        )
        assert one.overlaps(other)


@pytest.mark.parametrize(
    "density", ["exp(-x-exp(-x))", "(1 if x < 1 else 2 if x < 2 else 1) if x > 0 and x < 4 else 0"]
)
def test_a_lopsided_density_has_two_sides(density: str) -> None:
    assert len(AdditiveNoise(density).worst_case(None).remove) == 2


@pytest.mark.parametrize(("density", "level"), [("(x**2<2)*1", 0), ("(x**2<2)*exp(-x)", 0)])
def test_a_quantile_at_an_irrational_end_is_enclosed(density: str, level: str) -> None:
    with mpmath.workdps(120):
        for digits in (12, 70, 85):
            try:
                width = Fraction(1, 10**digits)
                found = utility.quantile(AdditiveNoise(density), level, relative_width=width)
            except UndecidedError:
                continue
            low, high = mpmath.mpf(str(found.lower)), mpmath.mpf(str(found.upper))
            assert low <= -mpmath.sqrt(2) <= high


@pytest.mark.parametrize("density", ["exp(-abs(x)**3)", "1/(1+x**2)", "exp(-x) if x>0 else 0"])
def test_draws_have_the_distribution(density: str) -> None:
    made, size = AdditiveNoise(density, scale=2), 40_000
    # DKW: 2e^{−2nt²} = FALSE_ALARM
    bound = np.sqrt(np.log(2 / FALSE_ALARM) / (2 * size))
    drawn = np.sort(made.sample(size, rng=np.random.default_rng(3)))
    for level in ("1/100", "1/4", "1/2", "9/10", "999/1000"):
        x = float(utility.quantile(made, level))
        assert abs(np.searchsorted(drawn, x) / size - Fraction(level)) <= bound


@given(st.floats(-30, 30), st.floats(0, 5), st.sampled_from([*ONE_MODE, *SEVERAL]))
@settings(max_examples=60)
def test_ranges_contain_the_values(low: float, width: float, density: str) -> None:
    for part in pieces(read(density, "density"), "density").parts:
        a = low if part.low is None else max(low, float(part.low.high))
        b = low + width if part.high is None else min(low + width, float(part.high.low))
        if part.is_zero or not a < b:
            continue
        for tree in (part.tree, part.log, part.slope, part.bend):
            least, most = Ranges(np.array([a]), np.array([b]), part.known)(tree)
            for x in np.linspace(a, b, 7)[1:-1]:
                one, other = Ranges(np.array([x]), np.array([x]), part.known)(tree)
                assert least[0] <= other[0]
                assert one[0] <= most[0]


@pytest.mark.slow
def test_a_slope_that_tends_to_its_bound_tells_a_pure_guarantee_from_a_smaller_one() -> None:
    """−(ln f)′ = x/√(1 + x²) < 1 tends to 1, so ε(0) = 1, and no claim below it holds."""
    noise = AdditiveNoise("exp(-sqrt(1+x**2))")
    found = dpassay.epsilon(noise, delta=0)
    assert found.lower <= 1 <= found.upper
    assert found.upper - found.lower < Decimal("1e-4")
    assert dpassay.verify(noise, epsilon="0.99").verdict.value == "REFUTED"
    assert dpassay.verify(noise, epsilon="1.01").verdict.value == "HOLDS"


DENSITY = AdditiveNoise("exp(-x**2/2)", scale=4), Gaussian(4)


@pytest.mark.slow  # two densities on cells
def test_a_density_without_symmetry_is_composed() -> None:
    found = profile.epsilon(Composed(AdditiveNoise("exp(-x-exp(-x))"), 10), "1e-6")
    assert narrow(found, Fraction(1, 50))
    one = profile.epsilon(AdditiveNoise("exp(-x-exp(-x))"), "1e-6")
    assert one.upper < found.lower


WITH = Gaussian(3)
COMPOSED: list[tuple[Mechanism, Mechanism]] = [
    slow(Composed(DENSITY[0], 8), Composed(DENSITY[1], 8)),
    (Composed([DENSITY[0], WITH]), Composed([DENSITY[1], WITH])),
]


@pytest.mark.parametrize(("own", "known"), COMPOSED)
def test_compositions_of_known_laws_have_their_answers(own: Mechanism, known: Mechanism) -> None:
    found = profile.delta(own, "1")
    assert narrow(found, Fraction(1, 1000))  # atoms of the loss lie between grid points
    assert found.overlaps(profile.delta(known, "1"))
    assert profile.delta(own, profile.epsilon(known, "1e-5").lower).upper >= Decimal("1e-5")


# Noise on the reals: closed forms, compositions, random and mixed shifts, limits of floats.


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
        assert float(found.upper) == pytest.approx(float(last), rel=1e-9, abs=0)
        for a in map(mpmath.mpf, ("1.001", "1.1", "1.5", "2", "4", "30", "1000")):
            high, low = mpmath.exp((a - 1) * at), mpmath.exp(-a * at)
            ends, between = (high + low) / 2, (high - low) / (2 * (2 * a - 1))
            share = mpmath.log(ends + between) / (a - 1) / a
            assert share < last
            last = share


# Noise on the integers: brute force over masses, exact fractions, limits.


@pytest.mark.parametrize("epsilon", ["0", "1e-3", "0.01", "0.3", "1", "7.7", "40"])
@pytest.mark.parametrize("parameter", ["1e-3", "1", "1e6", "1e12"])
def test_profile_is_narrow_over_the_whole_range(parameter: str, epsilon: str) -> None:
    found = profile.delta(DiscreteGaussian(parameter), epsilon)
    assert 0 < found.lower <= found.upper
    assert (found.upper - found.lower) / found.lower < Decimal("1e-27")


@pytest.mark.parametrize("epsilon", ["1e-7", "1e-6", "2e-6"])
def test_the_continuous_gaussian_is_the_limit(epsilon: str) -> None:
    # σ² = 1e12: the two profiles differ by the discretisation, of relative order 1/σ = 1e-6
    discrete = profile.delta(DiscreteGaussian("1e12"), epsilon)
    continuous = profile.delta(Gaussian("1e6"), epsilon)
    ratio = Fraction(discrete.lower) / Fraction(continuous.lower)
    assert abs(ratio - 1) < Fraction(1, 10**5)


LAW = [Fraction(1, 8), Fraction(0), Fraction(1, 2), Fraction(1, 4), Fraction(1, 8)]

weights = st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any)


def law_of(counts: list[int]) -> list[Fraction]:
    return [Fraction(count, sum(counts)) for count in counts]


def shifted(law: list[Fraction], shift: int) -> list[tuple[Fraction, Fraction]]:
    padding = [Fraction(0)] * shift
    return list(zip(padding + law, law + padding, strict=True))


@given(counts=weights, shift=st.integers(1, 3), epsilon=st.fractions(-3, 3, max_denominator=8))
def test_hockey_stick_is_the_sum_of_the_excesses(
    counts: list[int], shift: int, epsilon: Fraction
) -> None:
    law = law_of(counts)
    pair = FinitePair(IntegerNoise(law, 0, shift), shift)
    with ctx.workprec(200):
        eps = exact(epsilon)
        factor = eps.ball().exp()
        expected = sum(
            ((ball(p) - factor * ball(q)).max(arb(0)) for p, q in shifted(law, shift)), start=arb(0)
        )
        difference = pair.hockey_stick(eps) - expected
        assert difference.contains(0)
        assert difference.rad() < arb(2) ** -150
        tails = pair.tails(eps)
        assert (tails.p_above - factor * tails.q_above - expected).contains(0)
        assert (tails.p_above + tails.p_below - 1).contains(0)
        assert (tails.q_above + tails.q_below - 1).contains(0)


def test_every_divergence_is_infinite_where_the_end_of_the_support_moves() -> None:
    pair = FinitePair(IntegerNoise(LAW, 0), 1)
    with ctx.workprec(128):
        assert pair.renyi(arb(2)) == arb.pos_inf()
        assert pair.renyi(arb(1)) == arb.pos_inf()
        assert pair.max_loss() == arb.pos_inf()
    assert guarantees.rho(IntegerNoise(LAW, 0)).lower == math.inf


def test_infinity_mass_is_exact() -> None:
    # shift 1: outcomes with mass of Z + 1 and none of Z are the hole at 1 and the top end 5
    pair = FinitePair(IntegerNoise(LAW, 0), 1)
    assert exact_infinity_mass(pair) == exact("1/4")
    assert exact_infinity_mass(pair.reverse()) == exact("5/8")
    assert Fraction(1, 4) in Interval.of_ball(pair.infinity_mass())
    assert profile.epsilon(IntegerNoise(LAW, 0), "1/5").lower == math.inf
    with ctx.workprec(128):
        assert max_finite_loss(pair).overlaps(arb(2).log())


def test_a_smaller_shift_may_be_worse() -> None:
    # even outcomes only: neighbours at distance 1 never collide, at distance 2 they mostly do
    law: list[Number] = ["1/5", 0, "1/5", 0, "1/5", 0, "1/5", 0, "1/5"]
    near, far = IntegerNoise(law, 0, 2).worst_case(None).remove
    with ctx.workprec(128):
        assert near.hockey_stick(exact(0)).overlaps(arb(1))
        assert far.hockey_stick(exact(0)).overlaps(arb(1) / 5)
    assert 1 in profile.delta(IntegerNoise(law, 0, 2), 0)


def test_both_directions_are_listed() -> None:
    # a falling law: upward shifts free the bottom (mass 1/2), downward ones the top (mass 1/6)
    mechanism = IntegerNoise(["1/2", "1/3", "1/6"], 0)
    worst = mechanism.worst_case(None)
    with ctx.workprec(128):
        for pairs in (worst.remove, worst.add):  # a record may raise the answer or lower it
            found = [pair.infinity_mass() for pair in pairs]
            assert found[0].overlaps(arb(1) / 6)
            assert found[1].overlaps(arb(1) / 2)
    assert Fraction(1, 2) in profile.delta(mechanism, 40)


def test_ties_are_decided_exactly_at_zero() -> None:
    # p = q on three of five outcomes: loss 0 is not above 0
    pair = FinitePair(IntegerNoise(["1/4", "1/4", "1/4", "1/4"], 0), 1)
    tails = pair.tails(exact(0))
    assert (tails.p_above - arb("0.25")).is_zero()
    assert (tails.q_above).is_zero()
    assert pair.describe_event(exact(0)) == "the outcomes {4}"
    assert pair.describe_event(exact(-1)) == "the outcomes {1..4}"


PRECISION = 200
NARROW = arb(2) ** -150


def brute_force(mechanism: TruncatedGeometric, n: int, other: int, epsilon: arb) -> arb:
    factor = epsilon.exp()
    pairs = zip(mechanism.masses(n), mechanism.masses(other), strict=True)
    return sum(((p - factor * q).max(arb(0)) for p, q in pairs), start=arb(0))


@given(
    scale=st.fractions(Fraction(1, 10), 8, max_denominator=12),
    low=st.integers(-4, 2),
    width=st.integers(1, 6),
    epsilon=st.fractions(-3, 3, max_denominator=9),
)
def test_every_pair_of_counts_at_one_distance_has_the_untruncated_profile(
    scale: Fraction, low: int, width: int, epsilon: Fraction
) -> None:
    high = low + width
    mechanism = TruncatedGeometric(scale, low, high)
    eps = exact(epsilon)
    with ctx.workprec(PRECISION):
        for n in range(low, high + 1):
            for other in range(low, high + 1):
                if n == other:
                    continue
                (pair,) = DiscreteLaplace(scale, abs(n - other)).worst_case(None).remove
                difference = brute_force(mechanism, n, other, eps.ball()) - pair.hockey_stick(eps)
                assert difference.contains(0)
                assert difference.rad() < NARROW


@pytest.mark.parametrize("count", [0, 1, 3, 5])
def test_moments_at_a_count_are_those_of_the_masses(count: int) -> None:
    mechanism = TruncatedGeometric("1.5", 0, 5)
    with ctx.workprec(PRECISION):
        masses = mechanism.masses(count)
        mean = sum((y * p for y, p in enumerate(masses)), start=arb(0))
        error = sum(((y - count) ** 2 * p for y, p in enumerate(masses)), start=arb(0))
        variance = sum(((y - mean) ** 2 * p for y, p in enumerate(masses)), start=arb(0))
        for difference in (
            sum(masses, start=arb(0)) - 1,
            mean - mechanism.mean_at(count),
            error - mechanism.mean_squared_error_at(count),
            variance - mechanism.variance_at(count),
        ):
            assert difference.contains(0)
            assert difference.rad() < NARROW

"""Samples: Poisson batches, batches of one size, and one step of several for each record."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb, ctx

from dpassay.accountant.core.adjacency import Adjacency, Direction
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import BetweenError
from dpassay.accountant.mechanisms import (
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    IntegerNoise,
    Laplace,
    Logistic,
    PoissonSubsampled,
    RandomAllocation,
    RandomizedResponse,
    SampledWithoutReplacement,
    Tabulated,
)
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.pairs.allocation import RandomAllocationPair
from dpassay.accountant.questions import guarantees, profile, tradeoff
from dpassay.accountant.reference import laws
from tests.near import narrow
from tests.quick import quick, slow

RELEASES: list[Mechanism] = [
    Gaussian(standard_deviation="1.1"),
    Laplace(scale=2),
    DiscreteLaplace(scale=1, sensitivity=3),
    DiscreteGaussian(parameter=3),
    IntegerNoise(["1/6", "2/3", "1/6"], lowest=-1),
    Tabulated(["1/2", "1/4", "1/4"], ["1/4", "1/4", "1/2"]),
]
EPSILONS = ("-2", "-0.1", "0", "0.05", "0.6")


@pytest.mark.parametrize(
    ("release", "direction"),
    quick([*zip(RELEASES, [*Direction] * 3, strict=True), (RELEASES[2], [*Direction][1])], 2, 4, 6),
    ids=repr,
)
def test_profile_and_tails_against_mpmath(release: Mechanism, direction: Direction) -> None:
    subsampled = PoissonSubsampled(release, "0.3")
    (pair,) = subsampled.worst_case(Adjacency.ADD_REMOVE).pairs(direction)
    with mpmath.workdps(40):
        (known,) = laws(subsampled, Adjacency.ADD_REMOVE)[direction is Direction.ADD]
    for epsilon in EPSILONS:
        interval = profile.delta(subsampled, epsilon, adjacency="add-remove", direction=direction)
        with mpmath.workdps(40):
            at = exact(epsilon).mpf()
            value = known.hockey_stick(at)
            above = known.integrate(lambda p, _: p, at)
            below = known.integrate(lambda _, q: q, at)
        tails = pair.tails(exact(epsilon))
        for ball, other in ((tails.p_above, above), (tails.q_above, below)):
            assert abs(float(ball.mid()) - float(other)) <= 1e-13 * abs(float(other))
        with mpmath.workdps(50):
            middle = (mpmath.mpf(str(interval.lower)) + mpmath.mpf(str(interval.upper))) / 2
            if value == 0:
                assert interval == Interval.of_exact(0)
            else:
                assert abs(middle / value - 1) < mpmath.mpf("1e-26")


NOISES: list[Mechanism] = [
    Gaussian(standard_deviation=2),
    Laplace(scale=2),
    Laplace(scale="1/5"),
    Logistic(scale=2),
    Logistic(scale="1/5"),
    DiscreteGaussian(parameter=4),
    DiscreteGaussian(parameter="1/4", sensitivity=2),
]


@pytest.mark.parametrize(
    ("noise", "order"),
    [
        *quick([(noise, "2") for noise in NOISES], 1, 3, 5),
        *quick([(NOISES[0], order) for order in ("1", "1.25", "7.5")], 0),
    ],
)
def test_divergences_of_samples_against_quadrature(noise: Mechanism, order: str) -> None:
    step = PoissonSubsampled(noise, "1/10")
    worst = step.worst_case(Adjacency.ADD_REMOVE)
    with mpmath.workdps(30):
        found = [law.renyi(exact(order).mpf()) for (law,) in laws(step, Adjacency.ADD_REMOVE)]
    for pair, divergence in zip((worst.remove[0], worst.add[0]), found, strict=True):
        with ctx.workprec(128):
            at = exact(order).ball()
            value = pair.renyi(at)
            if pair == worst.add[0] and not isinstance(noise, Gaussian):
                assert 0 < float(divergence) < float(value.upper())
                continue
            assert value.rel_accuracy_bits() > 90
        assert abs(float(value.mid()) / float(divergence) - 1) < 1e-13
    # a composition adds them up, and the limits of small and of large orders are those of zCDP
    whole = guarantees.renyi(Composed(step, 50), order, adjacency="add-remove")
    one = guarantees.renyi(step, order, adjacency="add-remove")
    assert abs(float(whole.lower) / float(one.lower) / 50 - 1) < 1e-14


def _divergence(
    q: float, first: tuple[float, float], second: tuple[float, float], at: float
) -> float:
    """Return H(ε) of two mixtures of normal laws in the plane, by the sum over a fine grid."""
    line = np.linspace(-9, 9, 361)
    x, y = np.meshgrid(line, line)

    def density(centre: tuple[float, float]) -> np.ndarray:
        return np.exp(-((x - centre[0]) ** 2 + (y - centre[1]) ** 2) / 2) / (2 * math.pi)

    p, r = ((1 - q) * density((0, 0)) + q * density(centre) for centre in (first, second))
    area = (line[1] - line[0]) ** 2
    return float(np.maximum(p - math.exp(at) * r, 0).sum() * area)


@pytest.mark.parametrize("at", ["-1.2", "0", "0.4", "1.5"])
@pytest.mark.parametrize("q", ["1/10", slow("2/3")])
def test_no_two_shifts_in_the_plane_are_worse_than_opposite_ones(q: str, at: str) -> None:
    step = PoissonSubsampled(Gaussian(standard_deviation=1), q)
    worst = float(profile.delta(step, at, adjacency="replace-one").upper)
    share, eps = float(Fraction(q)), float(at)
    attained = _divergence(share, (1, 0), (-1, 0), eps)
    slack = 3e-4 * max(worst, 1e-2)  # of the sum: (step²/8) times the slopes along the kink
    assert abs(attained - worst) < slack
    rng = np.random.default_rng(3)
    for _ in range(25):
        radii, turns = np.sqrt(rng.uniform(size=2)), rng.uniform(0, 2 * math.pi, size=2)
        shifts = [(r * math.cos(t), r * math.sin(t)) for r, t in zip(radii, turns, strict=True)]
        assert _divergence(share, shifts[0], shifts[1], eps) <= worst + slack


def test_replaced_records_compose_and_end_in_gaussian_noise() -> None:
    relation = {"adjacency": "replace-one"}
    whole, twice = PoissonSubsampled(Gaussian(3), 1), Gaussian(3, l2_sensitivity=2)
    assert guarantees.mu(whole, **relation).overlaps(guarantees.mu(twice))
    assert str(profile.delta(PoissonSubsampled(Gaussian(1), 0), 1, **relation)) == "0"  # type: ignore[arg-type]
    values = [
        profile.delta(PoissonSubsampled(Gaussian(1), q), "0.5", **relation)  # type: ignore[arg-type]
        for q in ("1/100", "1/10", "1/2", "9/10", "1")
    ]
    assert all(low.upper < high.lower for low, high in itertools.pairwise(values))
    step = PoissonSubsampled(Gaussian(standard_deviation=2), "1/4")
    replaced, added = (
        profile.delta(Composed(step, 4), "1/2", adjacency=adjacency, relative_width=Fraction(1, 50))
        for adjacency in ("replace-one", "add-remove")
    )
    assert added.upper < replaced.lower


@pytest.mark.parametrize("order", ["256.1", "40", "1000/3"])
def test_renyi_divergences_that_large_losses_make_up(order: str) -> None:
    step = PoissonSubsampled(Gaussian(standard_deviation="0.1"), "1e-5")
    found = guarantees.renyi(step, order, adjacency="add-remove")
    with mpmath.mp.workdps(60):
        a, mu = mpmath.mpf(Fraction(order).numerator) / Fraction(order).denominator, 10
        q = mpmath.mpf(1) / 10**5
        peak, top = a * mu, a * mpmath.log(q) + a * (a - 1) * mu * mu / 2

        def integrand(x: mpmath.mpf) -> mpmath.mpf:
            ratio = 1 - q + q * mpmath.exp(mu * x - mu * mu / 2)
            return mpmath.exp(-x * x / 2 + a * mpmath.log(ratio) - top)

        moment = mpmath.quad(integrand, [peak + 8 * i for i in range(-5, 6)])
        moment /= mpmath.sqrt(2 * mpmath.pi)
        truth = (top + mpmath.log(moment)) / (a - 1)
        slack = abs(truth) * mpmath.mpf(10) ** -28
        assert mpmath.mpf(str(found.lower)) <= truth + slack
        assert mpmath.mpf(str(found.upper)) >= truth - slack


def test_only_the_loss_of_an_added_record_is_bounded() -> None:
    step = PoissonSubsampled(Gaussian(standard_deviation="1.1"), "256/60000")
    added = profile.epsilon(step, 0, adjacency="add-remove", direction=Direction.ADD)
    with ctx.workprec(200):
        assert added.ball().overlaps(-(-exact("256/60000").ball()).log1p())
    removed = profile.epsilon(step, 0, adjacency="add-remove", direction=Direction.REMOVE)
    assert removed.lower.is_infinite()


# Sampling without replacement: every pair of neighbours by brute force, closed forms, refusals.


def test_closed_form() -> None:
    # δ(ε) = γ δ_M(ln(1 + (e^ε − 1)/γ)) for ε ≥ 0
    step = SampledWithoutReplacement(Laplace(scale=1), 1, 4)
    for epsilon in (0.1, 0.3):
        inner = math.log1p(math.expm1(epsilon) * 4)
        expected = -math.expm1((inner - 1) / 2) / 4
        found = profile.delta(step, epsilon)
        assert abs(float(found.lower) - expected) < 1e-15
    assert str(profile.delta(step, epsilon=math.log1p(math.expm1(1) / 4) + 1e-9)) == "0"


def test_every_pair_of_neighbours_by_brute_force() -> None:
    # one randomised bit of the sampled record (m = 1) of n = 3: all databases of bits
    odds = math.e
    keep = odds / (1 + odds)
    step = SampledWithoutReplacement(RandomizedResponse(epsilon=1), 1, 3)

    def law(bits: tuple[int, ...]) -> float:
        return sum(keep if bit else 1 - keep for bit in bits) / 3

    for epsilon in (-0.3, 0.0, 0.1, 0.25):
        worst = 0.0
        for bits in itertools.product((0, 1), repeat=3):
            other = (1 - bits[0], *bits[1:])
            p, q = law(bits), law(other)
            factor = math.exp(epsilon)
            value = max(p - factor * q, 0) + max(1 - p - factor * (1 - q), 0)
            worst = max(worst, value)
        found = profile.delta(step, epsilon, adjacency="replace-one")
        assert abs(float(found.upper) - worst) < 1e-14


STEP = SampledWithoutReplacement(Gaussian(standard_deviation=1), 1, 10)


def test_neighbours_between_the_extremes_may_have_larger_divergences() -> None:
    """The bounds are those of the pair with the largest profile: its moments, by quadrature."""
    share, order = 0.1, 3.0
    x = np.linspace(-40, 40, 400_001)
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    w = 1 - share + share * np.exp(x - 0.5)
    # ∫ (e^{(a−1)ε} + e^{−aε}) H over ε > 0 of the mixture against N(0, 1), in closed form inside
    inner = w**order - 1 - order * (w - 1) + w ** (1 - order) - 1 + (order - 1) * (w - 1)
    whole = float((density * inner)[w > 1].sum())
    least = float((density * (w**order - 1)).sum())
    envelope = math.log1p(whole) / (order - 1)
    with pytest.raises(BetweenError, match="one end is attained by a pair of neighbours") as caught:
        guarantees.renyi(STEP, order, relative_width=Fraction(1, 10**9))
    assert guarantees.renyi(STEP, order).overlaps(Interval(caught.value.lower, caught.value.upper))
    assert float(caught.value.lower) == pytest.approx(
        math.log1p(least) / (order - 1), rel=1e-9, abs=0
    )
    assert float(caught.value.lower) < envelope < float(caught.value.upper)
    wide = guarantees.renyi(STEP, order, relative_width=Fraction(99, 100))
    assert wide.lower <= caught.value.lower < caught.value.upper <= wide.upper
    one = guarantees.renyi(STEP, order, direction=Direction.REMOVE)
    assert float(one.lower) == pytest.approx(float(caught.value.lower), rel=1e-15, abs=0)
    everything = SampledWithoutReplacement(Gaussian(standard_deviation=1), 10, 10)
    assert str(guarantees.renyi(everything, 2)) == "1"


def test_a_straight_line_shortens_the_trade_off_function() -> None:
    """β is that of the envelope: at most the smaller curve, and less where both cross."""
    width = Fraction(1, 10**9)
    assert str(tradeoff.beta(STEP, "0.3", relative_width=width))[:10] == "0.66171798"
    total = guarantees.total_variation(STEP)
    with pytest.raises(BetweenError, match="Reached beta") as caught:
        tradeoff.beta(STEP, "0.5", relative_width=width)
    assert abs(caught.value.lower - (Decimal("0.5") - total.lower)) < Decimal("1e-12")
    with pytest.raises(BetweenError, match="Reached power") as again:
        tradeoff.power(STEP, "0.5", relative_width=width)
    assert abs(again.value.upper + caught.value.lower - 1) < Decimal("1e-12")
    curves = [
        tradeoff.beta(STEP, "0.5", direction=direction, relative_width=width).lower
        for direction in Direction
    ]
    assert abs(min(curves) - caught.value.upper) < Decimal("1e-8")


RELATION = Adjacency.ADD_REMOVE


def pair(sigma: str, steps: int, *, mixed_first: bool = True) -> RandomAllocationPair:
    return RandomAllocationPair(ExactReal.of_rational(1 / Fraction(sigma)), steps, mixed_first)


def two_steps(mu: mpmath.mpf, epsilon: mpmath.mpf, *, remove: bool) -> mpmath.mpf:
    """E(W − K)⁺ or E(1 − KW)⁺ for t = 2: the other lognormal variable has a closed form."""
    k = mpmath.exp(epsilon) if remove else mpmath.exp(-epsilon)

    def inside(z: mpmath.mpf) -> mpmath.mpf:
        strike = 2 * k - mpmath.exp(mu * z - mu**2 / 2)
        if strike <= 0:
            value = (1 - strike) if remove else mpmath.mpf(0)
        else:
            d = (-mpmath.log(strike) + mu**2 / 2) / mu
            call = mpmath.ncdf(d) - strike * mpmath.ncdf(d - mu)
            put = strike * mpmath.ncdf(mu - d) - mpmath.ncdf(-d)
            value = call if remove else put
        return mpmath.npdf(z) * value / 2

    kink = (mpmath.log(2 * k) + mu**2 / 2) / mu
    found = mpmath.quad(inside, sorted([-14, -4, 0, kink, 4, 14]))
    return found if remove else found * mpmath.exp(epsilon)


SETTINGS = [("1", "1/2"), slow("3/5", "-1"), slow("3", "1")]


@pytest.mark.parametrize(("sigma", "epsilon"), SETTINGS)
@pytest.mark.parametrize("remove", [True, False])
def test_two_steps_are_an_integral_of_closed_forms(
    sigma: str, epsilon: str, *, remove: bool
) -> None:
    with mpmath.workdps(30):
        at, mu = Fraction(epsilon), 1 / Fraction(sigma)
        wanted = two_steps(
            mpmath.mpf(mu.numerator) / mu.denominator,
            mpmath.mpf(at.numerator) / at.denominator,
            remove=remove,
        )
        with ctx.workprec(80):
            found = pair(sigma, 2, mixed_first=remove).hockey_stick(ExactReal.of_rational(at))
            assert found.rel_accuracy_bits() > 30
            text = found.str(25, radius=False)
        assert abs(mpmath.mpf(text) / wanted - 1) < 1e-14


def test_directions_are_those_of_one_pair() -> None:
    """H(ε) = 1 − e^ε + e^ε H'(−ε), and P(L > ε) − e^ε Q(L > ε) = H(ε)."""
    at = ExactReal.of_rational(Fraction(1, 3))
    one, other = pair("1", 8), pair("1", 8, mixed_first=False)
    with ctx.workprec(64):
        value, growth = one.hockey_stick(at), at.ball().exp()
        assert value.overlaps(1 - growth + growth * other.hockey_stick(-at))
        tails = one.tails(at)
        assert value.overlaps(tails.p_above - growth * tails.q_above)
        assert float((tails.p_above - growth * tails.q_above).rad()) < 1e-12


@pytest.mark.parametrize("order", [2, 12, 400])
def test_renyi_divergences_are_moments(order: int) -> None:
    """E W² = 1 + (e^{μ²} − 1)/t; and t^{1−a} e^{a(a−1)μ²/2} ≤ E W^a ≤ e^{a(a−1)μ²/2}."""
    found = pair("1", 5).renyi(arb(order))
    if order == 2:
        assert found.exp().overlaps(1 + arb(1).expm1() / 5)
    assert found < order / 2
    assert not found < order / 2 - arb(5).log()


@pytest.mark.parametrize("remove", [True, False])
def test_two_participations_are_between_both_ends(*, remove: bool) -> None:
    """W = Σ_{i<j} X_i X_j / C(t, 2) in 10^5 runs: six standard errors."""
    two, t, at = RandomAllocation(Gaussian(1), 8, 2), 8, Fraction(1, 2)
    direction = Direction.REMOVE if remove else Direction.ADD
    found = profile.delta(two, at, adjacency=RELATION, direction=direction)
    x = np.exp(np.random.default_rng(3).normal(-0.5, 1, (100_000, t)))
    ratio = (x.sum(axis=1) ** 2 - (x**2).sum(axis=1)) / (t * (t - 1))
    gain = np.maximum(ratio - np.exp(0.5) if remove else 1 - np.exp(0.5) * ratio, 0.0)
    error = 6 * gain.std() / np.sqrt(len(gain))
    assert float(found.lower) - error < gain.mean() < float(found.upper) + error
    assert found.upper < profile.delta(Composed(Gaussian(1), 2), at, adjacency=RELATION).upper


def test_outputs_have_the_answer_in_one_step() -> None:
    rng = np.random.default_rng(1)
    drawn = RandomAllocation(Gaussian("1/1000"), 5, 2).outputs(1.0, 50, rng=rng)
    assert drawn.shape == (50, 5)
    assert np.array_equal(np.rint(drawn).sum(axis=1), np.full(50, 2.0))


def test_two_epochs_are_more_than_one_and_less_than_poisson() -> None:
    """Two epochs of 10 steps at σ = 2; the sample of every step is worse at this δ."""
    one = RandomAllocation(Gaussian(2), 10)

    def delta(mechanism: RandomAllocation | Composed) -> Decimal:
        return profile.delta(
            mechanism, "1/2", adjacency=RELATION, direction=Direction.REMOVE,
            relative_width=Fraction(1, 1000),
        ).upper  # fmt: skip

    both = delta(Composed(one, 2))
    assert delta(one) < both < delta(Composed(PoissonSubsampled(Gaussian(2), "1/10"), 20))


def test_epochs_have_the_epsilon_of_an_earlier_program() -> None:
    """Which inverted Laplace transforms for the density of ln W, and took moments from that."""
    whole = Composed(RandomAllocation(Gaussian(2), 100), 10)
    remove, add = "0.603096445", "0.599449231"
    for direction, wanted in ((Direction.REMOVE, remove), (Direction.ADD, add)):
        found = profile.epsilon(whole, "1e-5", adjacency=RELATION, direction=direction)
        assert abs(found.lower - Decimal(wanted)) < Decimal("1e-9")
        assert narrow(found, Fraction(1, 10**9))


def test_a_delta_that_floats_do_not_tell_from_one() -> None:
    """H(ε) ≥ 1 − e^ε, which such an ε attains."""
    allocated = RandomAllocation(Gaussian("1/2"), 3, participations=2)
    found = profile.signed_epsilon(allocated, 1 - Fraction(1, 10**20), adjacency=RELATION)
    assert float(found) == pytest.approx(-20 * math.log(10), rel=1e-12, abs=0)

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb

import dpassay
from dpassay.accountant.core.adjacency import Adjacency, Direction
from dpassay.accountant.errors import DpassayError
from dpassay.accountant.mechanisms import (
    Composed,
    Gaussian,
    Laplace,
    PoissonSubsampled,
    RandomAllocation,
)
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.allocation import RandomAllocationPair
from dpassay.accountant.questions import profile
from tests.near import narrow

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


SETTINGS = [("1", "1/2"), ("3/5", "-1"), ("3", "1")]


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


def test_a_run_is_as_private_as_unsampled_steps_at_small_levels() -> None:
    run = Composed(RandomAllocation(Gaussian(2), 50), 9)
    assert dpassay.mu(run, adjacency=RELATION) == Interval.of_exact(Fraction(3, 2))


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


@pytest.mark.parametrize(
    ("mechanism", "relation", "words"),
    [
        (RandomAllocation(Laplace(1), 4, 2), RELATION, "Use Gaussian"),
        (RandomAllocation(Gaussian(1), 4), Adjacency.REPLACE_ONE, "add-remove"),
        (RandomAllocation(Gaussian(1), 4), None, "adjacency"),
    ],
)
def test_what_is_not_known_is_refused(
    mechanism: RandomAllocation, relation: Adjacency | None, words: str
) -> None:
    with pytest.raises(DpassayError, match=words):
        mechanism.worst_case(relation)


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


def test_several_participations_are_asked_alone() -> None:
    with pytest.raises(DpassayError, match="known between two ends only"):
        Composed(RandomAllocation(Gaussian(1), 4, 2), 3)
    ends = profile.epsilon(RandomAllocation(Gaussian(2), 5, 4), "1e-5", adjacency=RELATION)
    whole = profile.epsilon(Composed(Gaussian(2), 4), "1e-5", adjacency=RELATION)
    assert ends.lower < ends.upper <= whole.upper


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
    assert float(found) == pytest.approx(-20 * math.log(10), rel=1e-12)

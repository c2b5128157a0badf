"""Few Laplace releases beside smooth ones: jump by jump, against quadrature and other engines."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest
from flint import arb, ctx

from accountant import profile
from accountant.adjacency import Adjacency
from accountant.composition.atoms import AtomicPair
from accountant.composition.expanded import MOST_TERMS, ExpandedPair, applies, damped
from accountant.composition.ladder import LadderPair
from accountant.composition.saddle_pair import SmoothPair
from accountant.interval import narrowed
from accountant.mechanism import Mechanism
from accountant.mechanisms import (
    Composed,
    Gaussian,
    Guaranteed,
    Laplace,
    PoissonSubsampled,
    RandomizedResponse,
)
from accountant.number import exact
from accountant.pair import Pair

NINE = Fraction(1, 10**9)
BOTH = Adjacency.ADD_REMOVE
STEP = PoissonSubsampled(Gaussian(standard_deviation=1), "1/20")
SIDES = (0, 1)


def side_of(mechanism: Mechanism, side: int) -> Pair:
    worst = mechanism.worst_case(BOTH)
    return (worst.remove if side == 0 else worst.add)[0]


def exact_profile(side: int) -> Callable[[float], float]:
    """Return δ of one subsampled release in floats, from its closed form."""
    pair = side_of(STEP, side)

    def value(epsilon: float) -> float:
        with ctx.workprec(80):
            return float(pair.hockey_stick(exact(repr(float(epsilon)))).mid())

    return value


def kinks(side: int, epsilon: float) -> list[float]:
    """Return the losses at which H(ε − l) is not analytic."""
    end = math.log1p(-0.05)
    return [epsilon - (end if side == 0 else -end)]


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("epsilon", ["1/2", "21/20", "3/2"])
def test_one_laplace_release_against_quadrature(side: int, epsilon: str) -> None:
    t, at = 1.5, float(Fraction(epsilon))
    smooth = exact_profile(side)
    cuts = sorted({-t, t, *(x for x in kinks(side, at) if -t < x < t)})
    with mpmath.workdps(20):
        spread = mpmath.quad(
            lambda x: math.exp((float(x) - t) / 2) / 4 * smooth(at - float(x)),
            [p + (q - p) * k / 8 for p, q in itertools.pairwise(cuts) for k in range(9)],
        )
    expected = smooth(at - t) / 2 + math.exp(-t) * smooth(at + t) / 2 + float(spread)
    both = Composed([STEP, Laplace(scale="2/3")])
    pair = ExpandedPair(((side_of(STEP, side), 1), (side_of(Laplace(scale="2/3"), 0), 1)))
    with narrowed(NINE):
        found = pair.hockey_stick(exact(epsilon))
    assert float(found.mid()) == pytest.approx(expected, rel=1e-10, abs=0)
    assert 2 * found.rad() < 1e-9 * found
    whole = side_of(both, side)
    assert isinstance(whole, LadderPair)
    assert isinstance(whole.rungs[0], ExpandedPair)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("epsilon", ["-1", "-1/25", "1/10", "3/2"])
def test_means_over_exponential_variables_against_quadrature(
    side: int, times: int, epsilon: str
) -> None:
    at, smooth = float(Fraction(epsilon)), exact_profile(side)

    def term(u: mpmath.mpf) -> float:
        x = float(u)
        density = (x / 2) ** (times - 1) * math.exp(-x / 2) / (2 * math.factorial(times - 1))
        return density * smooth(at + x)

    ends = [0.0, *sorted(-x for x in kinks(side, at) if x < 0), 2.0, 5.0, 10.0, 20.0, 40.0, 60.0]
    with mpmath.workdps(20):
        expected = float(mpmath.quad(term, sorted(set(ends))))
    pair = SmoothPair(((side_of(STEP, side), 1),))
    with ctx.workprec(128):
        found = damped(pair, (0,) * times + (1,), exact(epsilon), 40)
    if expected == 0:
        assert found.is_zero()
        return
    assert float(found.mid()) == pytest.approx(expected, rel=1e-8, abs=0)
    assert found.rel_accuracy_bits() >= 30


@pytest.mark.parametrize("epsilon", ["-1/3", "1/3", "2", "6"])
def test_several_releases_of_two_scales_against_inversion(epsilon: str) -> None:
    normal = side_of(Gaussian(standard_deviation=2), 0)
    factors = (
        (normal, 1),
        (side_of(Laplace(scale=1), 0), 2),
        (side_of(Laplace(scale="4/3"), 0), 1),
    )
    with narrowed(NINE), ctx.workprec(128):
        found = ExpandedPair(factors).hockey_stick(exact(epsilon))
        other = AtomicPair(factors).hockey_stick(exact(epsilon))
    assert found.overlaps(other)
    assert 2 * found.rad() < 1e-9 * found


def test_a_list_of_losses_adds_its_values() -> None:
    guarantee = Guaranteed(epsilon="1/5", delta="1/1000")
    rest = Composed([Composed(STEP, 50), Laplace(scale=1)])
    mechanism = Composed([rest, guarantee])
    found = profile.delta(mechanism, "1/2", adjacency=BOTH, relative_width=NINE)
    share = Fraction(999, 1000)
    odds = math.exp(0.2)
    expected = 1e-3
    for weight, at in ((odds, "3/10"), (1.0, "7/10")):
        value = profile.delta(rest, at, adjacency=BOTH, relative_width=NINE)
        expected += float(share) * weight / (1 + odds) * float(value.lower)
    assert float(found.lower) == pytest.approx(expected, rel=1e-8, abs=0)


def test_epsilon_is_enclosed_to_the_width_that_is_asked_for() -> None:
    mechanism = Composed([Composed(STEP, 50), Laplace(scale=1)], 2)
    found = profile.epsilon(mechanism, "1e-5", adjacency=BOTH, relative_width=NINE)
    assert found.relative_width is not None
    assert found.relative_width <= NINE
    ends = [
        profile.delta(mechanism, end, adjacency=BOTH, relative_width=NINE)
        for end in (found.lower, found.upper)
    ]
    assert ends[1].lower <= Decimal("1e-5") <= ends[0].upper


def test_where_it_applies() -> None:
    step, noise = side_of(STEP, 0), side_of(Laplace(scale=1), 0)
    assert applies(((step, 50), (noise, 2)))
    assert not applies(((step, 50),))
    assert not applies(((noise, 2),))
    most = math.isqrt(MOST_TERMS)
    assert applies(((step, 1), (noise, most - 1)))
    assert not applies(((step, 1), (noise, most)))
    assert not applies(((step, 1), (side_of(STEP, 1), 1), (noise, 1)))
    answers = RandomizedResponse(epsilon=1).worst_case(None).remove[0]
    assert applies(((step, 1), (noise, 1), (answers, 1)))


def test_what_is_beyond_the_largest_loss_is_nothing() -> None:
    pair = ExpandedPair(((side_of(STEP, 1), 1), (side_of(Laplace(scale=1), 0), 1)))
    assert pair.hockey_stick(exact(2)) == arb(0)

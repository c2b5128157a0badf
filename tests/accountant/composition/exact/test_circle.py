"""Lattices of losses at any count: sums over the circle against exact sums and other engines."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest
from flint import arb, ctx

from dpassay.accountant.composition.exact.convolution import CIRCLE, SUMS, applies
from dpassay.accountant.composition.product import Factor, Product, UnsuitedError
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair, refined
from dpassay.accountant.mechanisms import (
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    IntegerNoise,
    RandomizedResponse,
    TruncatedGeometric,
)
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import enclose
from dpassay.accountant.pairs.discrete import DiscreteGaussianPair
from dpassay.accountant.pairs.finite import FinitePair, finite
from dpassay.accountant.questions import profile
from tests.near import narrow
from tests.quick import quick

NARROW = Fraction(1, 10**9)
FINE = Fraction(1, 10**30)
TAILS = ("p_above", "p_below", "q_above", "q_below")


def worst(mechanism: Mechanism) -> Pair:
    relation = None if isinstance(mechanism, RandomizedResponse) else Adjacency.ADD_REMOVE
    return mechanism.worst_case(relation).remove[0]


def factors(*parts: tuple[Mechanism, int]) -> tuple[Factor, ...]:
    return tuple((worst(mechanism), count) for mechanism, count in parts)


def small(pair: Pair) -> FinitePair:
    found = finite(pair)
    assert found is not None
    return found


COIN, GEOMETRIC = RandomizedResponse(epsilon="0.1"), DiscreteLaplace(scale=10, sensitivity=3)
LEAKY = IntegerNoise(["1/8", "3/8", "3/8", "1/8"], lowest=0)
CASES = [
    (factors((COIN, 300)), ("-20", "-3.01", "0", "0.05", "5", "5.2", "29.7")),
    (factors((GEOMETRIC, 60)), ("-1", "0.3", "4", "11.1", "17.8")),
    (factors((COIN, 60), (RandomizedResponse(epsilon="0.25"), 40)), ("-2", "1", "5", "9")),
    (factors((COIN, 80), (DiscreteLaplace(scale=20), 50)), ("-1", "0.65", "4", "9")),
    (factors((LEAKY, 4)), ("-2", "0", "0.5", "2")),
    (factors((RandomizedResponse(epsilon="sqrt(2)"), 60)), ("-5", "1", "12", "40")),
]


@pytest.mark.parametrize(("product", "points"), quick(CASES, 1, 4, 5))
def test_the_circle_agrees_with_the_law_of_the_sum(
    product: tuple[Factor, ...], points: tuple[str, ...]
) -> None:
    """Thirty digits of H and of all tails, at lattice points, too, and with infinite losses."""
    assert applies(product)
    circle = Product(product, CIRCLE)
    listed = Product(tuple((small(pair), count) for pair, count in product), SUMS)
    for side, other in ((circle, listed), (circle.reverse(), listed.reverse())):
        for text in points:
            eps = exact(text)
            one, two = (
                enclose(lambda: pair.hockey_stick(eps), relative_width=FINE)  # noqa: B023
                for pair in (side, other)
            )
            assert one.overlaps(two)
            assert narrow(one, FINE)
            for name in TAILS:
                one, two = (
                    enclose(lambda: getattr(pair.tails(eps), name), relative_width=FINE)  # noqa: B023
                    for pair in (side, other)
                )
                assert one.overlaps(two)


@pytest.mark.parametrize("epsilon", ["-4", "0", "10", "17.5", "80"])
def test_discrete_gaussian_releases_agree_with_powers_of_polynomials(epsilon: str) -> None:
    pair = worst(DiscreteGaussian(parameter=2))
    other = DiscreteGaussianPair(exact(2), 1, 40)
    one, two = (
        enclose(lambda: each.hockey_stick(exact(epsilon)), relative_width=FINE)  # noqa: B023
        for each in (Product(((pair, 40),), CIRCLE), other)
    )
    assert one.overlaps(two)
    assert narrow(one, FINE)


def test_a_coarse_question_before_does_not_make_an_answer_coarse() -> None:
    whole = Composed(RandomizedResponse(epsilon="0.01"), 20_000)
    pair, eps = whole.worst_case(None).remove[0], exact(2)
    with ctx.workprec(128):
        coarse, fine = (refined(pair, Fraction(1, 10**n)).hockey_stick(eps) for n in (2, 20))
    assert coarse.rel_accuracy_bits() < 60
    assert fine.rel_accuracy_bits() > 67


ANY: list[tuple[Mechanism, str | None]] = [
    (RandomizedResponse(epsilon="0.1"), None),
    (RandomizedResponse(epsilon="0.001"), None),
    (DiscreteLaplace(scale=20), "add-remove"),
    (DiscreteLaplace(scale=10, sensitivity=30), "add-remove"),
    (TruncatedGeometric(scale=10, low=0, high=100), "add-remove"),
    (DiscreteGaussian(parameter=2), "add-remove"),
    (DiscreteGaussian(parameter=25), "add-remove"),
    (Composed([COIN, RandomizedResponse(epsilon="0.25")]), None),
    (
        Composed([DiscreteGaussian(parameter=2), DiscreteLaplace(scale=2, sensitivity=3)]),
        "add-remove",
    ),
]


@pytest.mark.parametrize("count", quick([10**6, 10**9, 10**12], 2))
@pytest.mark.parametrize(("mechanism", "adjacency"), ANY)
def test_any_count_is_enclosed_to_nine_digits(
    mechanism: Mechanism, adjacency: str | None, count: int
) -> None:
    whole = Composed(mechanism, count)
    for target in ("0.01", "1e-5", "1e-100"):
        found = profile.epsilon(whole, target, adjacency=adjacency, relative_width=NARROW)
        ends = [
            profile.delta(whole, str(end), adjacency=adjacency, relative_width=NARROW)
            for end in (found.lower, found.upper)
        ]
        assert ends[1].lower <= Decimal(target) <= ends[0].upper
        assert all(narrow(interval, NARROW) for interval in (found, *ends))


def test_a_trillion_coins_are_nearly_gaussian() -> None:
    """P(L > ε) = 1e-5 at 4.265 deviations; δ is all of it but for 1/σ, as σ = 10⁵."""
    found = profile.epsilon(Composed(COIN, 10**12), "1e-5", relative_width=NARROW)
    with mpmath.workdps(40):
        tilt = mpmath.tanh(mpmath.mpf("0.05"))
        mean, variance = tilt / 10, (1 - tilt**2) / 100
        away = (mpmath.mpf(str(found.lower)) - mean * 10**12) / mpmath.sqrt(variance * 10**12)
    assert abs(away - 4.2649) < 1e-3


def test_an_exact_tie_is_decided() -> None:
    """A lattice point counts on the side ≤: H is continuous, the tails are not."""
    whole = Composed(COIN, 10**9)
    pair = whole.worst_case(None).remove[0]
    with ctx.workprec(128):
        at, below = pair.tails(exact(5005000)), pair.tails(exact("5004999.95"))
        mass = below.p_above - at.p_above
    assert mass > 0
    # the mass of the point, with 500000000 + 25025000 heads of 10⁹
    with mpmath.workdps(50):
        n, k = 10**9, (10**9 + 50050000) // 2
        log_mass = mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1)
        p = 1 / (1 + mpmath.exp(mpmath.mpf("-0.1")))
        log_mass += k * mpmath.log(p) + (n - k) * mpmath.log(1 - p)
    assert math.isclose(float(mass.log().mid()), float(log_mass), rel_tol=1e-12, abs_tol=0)


def test_beyond_all_losses() -> None:
    circle = Product(factors((COIN, 5000)), CIRCLE)
    with ctx.workprec(128):
        assert circle.hockey_stick(ExactReal.of_rational(501)) == 0
        assert circle.tails(ExactReal.of_rational(-501)).p_above == 1
        leaky = Product(factors((LEAKY, 3)), CIRCLE)
        outside = leaky.tails(ExactReal.of_rational(9))
        assert outside.p_above.overlaps(1 - (1 - arb(1) / 8) ** 3)
        assert outside.q_above == 0
    # at the end, where one value is left
    with pytest.raises(UnsuitedError, match="contour was not found"):
        enclose(lambda: circle.hockey_stick(ExactReal.of_rational(500)), relative_width=FINE)
    assert profile.delta(Composed(COIN, 5000), 500).upper == 0
    for first, second in itertools.pairwise(("499.7", "499.8", "499.9")):
        one, two = (profile.delta(Composed(COIN, 5000), eps) for eps in (first, second))
        assert 0 < two.upper < one.lower


def test_an_epsilon_just_below_the_largest_loss_is_for_other_engines() -> None:
    """At the saddle all losses but one have no weight in floats."""
    answer = worst(RandomizedResponse(epsilon="26/17"))
    near = exact(Fraction(52, 17) - Fraction(1, 10**33))
    pair = Product(((answer, 2),), CIRCLE)
    with ctx.workprec(128), pytest.raises(UnsuitedError, match="from an end of the losses"):
        pair.hockey_stick(near)

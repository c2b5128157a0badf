"""Single releases: what holds for every mechanism, each law said once for all of them.

What is special to one, its closed forms above all, is in a file of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Logistic,
    TruncatedLaplace,
)
from dpassay.accountant.notation import parse
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.accountant.pairs.discrete import DiscreteGaussianProductPair
from dpassay.accountant.questions import accuracy, guarantees, profile
from tests.accountant.composition.mpmath_route import by_mpmath
from tests.near import mpf, narrow
from tests.quick import quick

CLOSE = mpmath.mpf("1e-29")
DIGITS = {
    **dict.fromkeys(("Gaussian", "Laplace", "Staircase"), 35),
    **dict.fromkeys(("Logistic", "TruncatedLaplace", "MixtureOfGaussians"), 25),
}
"""Of quadratures, which take long; sums have 50."""
FALSE_ALARM = 1e-6
"""Of all the statistical tests here together."""
WHERE = {
    "Gaussian": ["-1", "0", "0.3", "2"],
    "Laplace": ["-9", "-0.1", "0", "0.2", "0.9", "9"],
    "DiscreteLaplace": ["0", "0.3", "-0.7", "-3", "1/7", "1.01", "sqrt(1/2)"],
    "DiscreteGaussian": ["0", "0.3", "-0.7", "1/7", "3.01", "sqrt(1/2)"],
    "Skellam": ["0", "0.3", "-0.7", "1/7", "2.5", "sqrt(1/2)"],
    "Staircase": ["-5", "-0.3", "0", "0.1", "0.29"],
    "IntegerNoise": ["0.3", "-0.6", "1/3", "2", "sqrt(2)"],
    "BoundedCountNoise": ["0.31", "-0.4", "1.7"],
    "MixtureOfGaussians": ["1/3"],
    "RandomizedResponse": ["-3", "-1", "0", "1", "1.4"],
    "Logistic": ["-0.1", "0", "0.2", "9"],
    "TruncatedLaplace": ["-5", "-0.1", "0", "0.3", "0.6"],
}
"""Values of epsilon, atoms of the losses among them where both routes compare exactly."""
LAWS: dict[str, list[tuple[object, ...]]] = {
    "Gaussian(standard_deviation={}, l2_sensitivity={})": [
        (1, 1), ("'sqrt(50)'", "'sqrt(2)'"), (40, "'1/3'"),
    ],
    "Laplace(scale={}, l1_sensitivity={})": [(1, 1), ("0.3", 2), ("'sqrt(2)'", "'1/3'")],
    "DiscreteLaplace(scale={}, sensitivity={})": [
        (2, 3), ("0.3", 1), ("'sqrt(2)'", 4),
    ],
    "DiscreteGaussian(parameter={}, sensitivity={})": [
        ("0.05", 1), (1, 1), ("'sqrt(2)'", 3), (40, 7),
    ],
    "Skellam(variance={}, sensitivity={})": [("0.25", 1), ("'sqrt(2)'", 2), (40, 7)],
    "Staircase(epsilon={}, gamma={}, sensitivity={})": [
        (1, "'1/4'", 1), (2, "0.5", "'sqrt(2)'"), (1, 0, 1), (4, 1, 2),
    ],
    "IntegerNoise(probabilities=['1/8', 0, '1/2', '1/4', '1/8'], lowest=-2, sensitivity={})": [
        (1,), (2,),
    ],
    "BoundedCountNoise(epsilon={}, eta={}, support={})": [
        ("2.18", "0.8", 6), ("1.1", "0.02", 8), (1, "'sqrt(0.2)'", 4), (0, "'1/3'", 1),
        (0, "0.5", 4), (0, "0.2", 5),
    ],
    "MixtureOfGaussians(standard_deviation={}, sensitivities={}, sampling_probs={})": [
        (1, [0, 1, 2], ["0.2", "0.6", "0.2"]), ("'3/2'", [1, "sqrt(2)"], ["0.2", "0.8"]),
    ],
    "RandomizedResponse(epsilon={}, categories={})": [("1.5", 4)],
    "Logistic(scale={}, sensitivity={})": [("0.3", 2), ("'sqrt(2)'", "'1/3'")],
    "TruncatedLaplace(scale={}, bound={}, sensitivity={})": [
        (2, 5, 1), ("'1/3'", "'4/3'", "'4/3'"), ("'sqrt(2)'", 9, 2),
    ],
}  # fmt: skip
CASES = [law.format(*given) for law, several in LAWS.items() for given in several]


def assert_both_agree(pair: Pair, epsilon: str, *, tails: bool = True, digits: int = 50) -> None:
    eps = exact(epsilon)
    with mpmath.workdps(60), ctx.workprec(200):
        reference = by_mpmath(pair)  # whose knots have these digits
        assert_close(pair.hockey_stick(eps), reference.hockey_stick(eps, digits), digits)
        if tails:
            found, (p, q) = pair.tails(eps), reference.tails(eps, digits)
            for mine, other in (
                (found.p_above, p),
                (found.q_above, q),
                (1 - found.p_below, p),
                (1 - found.q_below, q),
            ):
                assert_close(mine, other, digits)


def assert_close(found: arb, known: mpmath.mpf, digits: int = 50) -> None:
    close = CLOSE if digits >= 35 else mpmath.mpf("1e-20")
    assert abs(mpmath.mpf(found.mid().str(55, radius=False)) - known) <= close
    assert float(found.rad()) <= 1e-30


@pytest.mark.parametrize("text", quick(CASES, 0, 3, 6, 9, 10, 13, 17, 18, 23, 24, 26, 27, 29))
def test_two_routes_agree(text: str) -> None:
    worst = parse(text).worst_case(Adjacency.ADD_REMOVE if "Mixture" in text else None)
    name = text.partition("(")[0]
    for pair in {*worst.remove, *worst.add}:
        for index, epsilon in enumerate(WHERE[name]):
            assert_both_agree(pair, epsilon, tails=index % 3 == 0, digits=DIGITS.get(name, 50))


SMOOTH = [
    *(text for text in CASES if text.partition("(")[0] in (
        "Gaussian", "Laplace", "DiscreteLaplace", "DiscreteGaussian", "Staircase", "Logistic",
        "RandomizedResponse",
    )),
    "LaplaceVector(scale=2, shifts=[1, '1/2'])",
    "Tabulated(p=['1/2', '1/3', '1/6'], q=['1/6', '1/3', '1/2'])",
]  # fmt: skip
"""Of which every divergence is finite."""


@pytest.mark.parametrize("text", quick(SMOOTH, 0, 4, 7, 10, 14, len(SMOOTH) - 1))
def test_divergences_are_those_of_the_densities(text: str) -> None:
    """Rényi's of several orders, and the mean of the loss."""
    name, mechanism = text.partition("(")[0], parse(text)
    assert isinstance(mechanism, Mechanism)
    digits = DIGITS.get(name, 50)
    pair = mechanism.worst_case(None).remove[0]
    for order in ("1", "3/2", "4"):
        found = guarantees.renyi(mechanism, order)
        with mpmath.workdps(digits + 10):
            reference = by_mpmath(pair)
            if order == "1":
                known = reference.integrate(lambda p, q: p * mpmath.log(p / q) if q else q, None)
            else:
                known = reference.renyi(exact(order), digits)
            close = mpmath.mpf("1e-25" if digits >= 35 else "1e-15")
            assert abs(mpf(found) - known) <= close * known
        assert narrow(found, Fraction(1, 10**25))


@pytest.mark.parametrize(
    ("text", "largest"),
    [
        ("Laplace(scale='0.3', l1_sensitivity=2)", "20/3"),
        ("Logistic(scale='0.3', sensitivity=2)", "20/3"),
        ("LaplaceVector(scale=4, shifts=[1, '1/3', '-1/2'])", "11/24"),
        ("DiscreteLaplace(scale='sqrt(2)', sensitivity=4)", "sqrt(8)"),
        ("TruncatedGeometric(scale=3, low=0, high=10, sensitivity=2)", "2/3"),
        ("Staircase(epsilon=1, gamma='0.3')", "1"),
        ("RandomizedResponse(epsilon='0.75', categories=5)", "0.75"),
    ],
)
def test_the_pure_guarantee_is_exact(text: str, largest: str) -> None:
    """δ is 0 from the largest loss on, and positive just below it."""
    mechanism, at = parse(text), exact(largest)
    assert isinstance(mechanism, Mechanism)
    assert profile.delta(mechanism, at) == Interval.of_exact(0)
    assert profile.delta(mechanism, at * exact(1 - Fraction(1, 10**200))).lower > 0
    assert profile.epsilon(mechanism, 0).overlaps(enclose(at.ball))
    assert guarantees.loss_survival(mechanism, at) == Interval.of_exact(0)


SHIFTED: list[Callable[[int], Mechanism]] = [
    lambda shift: Gaussian(3, shift),
    lambda shift: Laplace(3, shift),
    lambda shift: Logistic(3, shift),
    lambda shift: TruncatedLaplace(3, 7, shift),
    lambda shift: DiscreteLaplace("7/3", shift),
    lambda shift: DiscreteGaussian("5/3", shift),
]


@given(st.sampled_from(SHIFTED), st.fractions(-3, 4, max_denominator=16))
def test_the_full_shift_is_worst(of: Callable[[int], Mechanism], epsilon: Fraction) -> None:
    pairs = [of(shift).worst_case(None).remove[0] for shift in range(1, 6)]
    with ctx.workprec(200):
        found = [pair.hockey_stick(exact(epsilon)) for pair in pairs]
    assert all(not found[i] > found[i + 1] for i in range(4))


@pytest.mark.parametrize(
    "text",
    [
        "Gaussian(standard_deviation='0.25')",
        "Laplace(scale='0.7')",
        "Logistic(scale='0.7')",
        "TruncatedLaplace(scale='0.7', bound=2)",
        "Staircase(epsilon=1, gamma='0.3')",
    ],
)
def test_samples_have_the_quantiles(text: str) -> None:
    """DKW: 2e^{−2nt²} is the false alarm, for each of nine empirical distributions."""
    mechanism = parse(text)
    assert isinstance(mechanism, Mechanism)
    levels = np.linspace(0.01, 0.99, 99)
    places = [float(accuracy.quantile(mechanism, float(level)).upper) for level in levels]
    rng = np.random.default_rng(4)
    both = [mechanism.sample(200_000, rng=rng)]
    if mechanism.adds_real_noise():
        both.append(mechanism.release(np.zeros(40_000), rng=rng))
    for drawn in both:
        bound = np.sqrt(np.log(18 / FALSE_ALARM) / (2 * len(drawn)))
        shares = np.searchsorted(np.sort(drawn), places) / len(drawn)
        assert np.abs(shares - levels).max() <= bound


@pytest.mark.parametrize(
    "text",
    [
        "KaryTree(steps=13, arity=3, epsilon=1)",
        "KaryTree(steps=10, arity=4, epsilon=2)",
        "KaryTree(steps=7, arity=5, epsilon='sqrt(2)', subtraction=False)",
        "CorrelatedGaussian(dimension=3, mu=1, c='sqrt(2)')",
        "OptimalEllipse(dimension=5, sparsity=5, mu=1)",
        "DisjointGroupsGaussian(groups=2, dimension=2, mu=1, adjacency='add-remove')",
    ],
)
def test_two_routes_agree_in_one_value(text: str) -> None:
    """The route for a tree integrates over its coordinates: of height 2 and 3."""
    relation = Adjacency.ADD_REMOVE if "Gaussian" in text or "Ellipse" in text else None
    assert_both_agree(parse(text).worst_case(relation).remove[0], "0.3", tails=False)


@pytest.mark.parametrize(
    ("parameter", "numbers"),
    [("2", (1, 1, 1, 1)), ("5/4", (2, 1, 2, 3)), ("3", (2, 2, 1, 0)), ("1/2", (3, 1, 1, 2))],
)
@pytest.mark.parametrize("epsilon", ["0.01", "0.25", "-0.7", "1.9", "sqrt(2)"])
def test_two_routes_agree_about_sums(
    parameter: str, numbers: tuple[int, int, int, int], epsilon: str
) -> None:
    rational = exact(parameter).rational
    assert rational is not None
    assert_both_agree(DiscreteGaussianProductPair(rational, *numbers), epsilon)

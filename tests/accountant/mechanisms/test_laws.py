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
from dpassay.accountant.questions import accuracy, guarantees, profile
from dpassay.accountant.reference import laws
from tests.near import mpf, narrow
from tests.quick import quick

CLOSE, DIGITS = mpmath.mpf("1e-28"), 30
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


def assert_both_agree(text: str, epsilon: str, *, tails: bool = True) -> None:
    mechanism, relation = parse(text), Adjacency.ADD_REMOVE if "Mixture" in text else None
    eps, worst = exact(epsilon), mechanism.worst_case(relation)
    with mpmath.workdps(DIGITS), ctx.workprec(200):
        remove, add = laws(mechanism, relation)
        sides = [(worst.remove, remove), (worst.add, add)]
        if len(worst.remove) > len(remove):  # shifts to both sides, each way round
            sides = [(worst.remove, remove + add)]
        for pairs, known in sides:
            found = [pair.hockey_stick(eps) for pair in pairs]
            delta = max(law.hockey_stick(eps.mpf()) for law in known)
            assert_close(max(found, key=lambda value: float(value.mid())), delta)
            if not tails or len(pairs) > 1:
                continue
            mine, (law,) = pairs[0].tails(eps), known
            p, q = (law.integrate(side, eps.mpf()) for side in (lambda p, _: p, lambda _, q: q))
            for value, other in (
                (mine.p_above, p),
                (mine.q_above, q),
                (1 - mine.p_below, p),
                (1 - mine.q_below, q),
            ):
                assert_close(value, other)


def assert_close(found: arb, known: mpmath.mpf) -> None:
    assert abs(mpmath.mpf(found.mid().str(55, radius=False)) - known) <= CLOSE
    assert float(found.rad()) <= 1e-30


@pytest.mark.parametrize("text", quick(CASES, 3, 6, 9, 10, 13, 17, 18, 20, 24, 27))
def test_two_routes_agree(text: str) -> None:
    for index, epsilon in enumerate(WHERE[text.partition("(")[0]]):
        assert_both_agree(text, epsilon, tails=index % 3 == 0)


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
    mechanism = parse(text)
    assert isinstance(mechanism, Mechanism)
    for order in ("1", "3/2", "4"):
        found = guarantees.renyi(mechanism, order)
        with mpmath.workdps(DIGITS):
            known = max(law.renyi(exact(order).mpf()) for law in laws(mechanism)[0])
            assert abs(mpf(found) - known) <= CLOSE * 100 * known
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

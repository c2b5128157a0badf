"""Enclosures against the textbook's integrals and sums in mpmath."""

from __future__ import annotations

import math

import pytest

from dpassay import DiscreteLaplace, Gaussian, estimate_beta, estimate_delta, estimate_epsilon
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import AdjacencyError, InvalidInputError, NotApplicableError
from dpassay.accountant.mechanisms import DESCRIPTIONS
from dpassay.accountant.notation import parse
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import guarantees, profile, tradeoff
from dpassay.accountant.reference import Reference, laws
from tests.accountant.mechanisms.laws import LAWS
from tests.quick import quick, slow

SINGLE = [
    "Laplace(2)",
    "AdditiveNoise(density='exp(-abs(x)**3)', scale=2)",
    "AdditiveNoise(density='1/(1+x**2)')",
    "AdditiveNoise(density='exp(-x) if x > 0 else exp(2*x)', sensitivity='3/4')",
    "DiscreteLaplace(scale=2, sensitivity=3)",
    "UnaryEncoding(epsilon=1, categories=10)",
    "UnaryEncoding(epsilon=1, categories=10, optimised=True)",
    "Rappor(flip='1/2', categories=10)",
    "SubsetSelection(epsilon=1, categories=10, size=3)",
    "Tabulated(p=['2/3', '1/4', '1/12'], q=['1/4', '3/4', 0])",
    "Guaranteed(epsilon='0.1', delta='1e-6')",
    "Channel(matrix=[['2/3', '1/3'], ['1/4', '3/4']])",
    "LaplaceVector(scale=4, shifts=[1, 2, 3])",
    "PoissonSubsampled(mechanism=Gaussian(standard_deviation=1), sampling_prob='1/10')",
    "PoissonSubsampled(mechanism=DiscreteGaussian(parameter=4), sampling_prob='1/10')",
]
"""Those of one formula are compared to thirty digits in `mechanisms/test_laws.py`."""
SEVERAL = [
    "Composed(Laplace(4), count=5)",
    "Composed([Laplace(4), Laplace(7)])",
    "Composed(RandomizedResponse(epsilon='1/2'), count=12)",
    "Composed(RandomizedResponse(epsilon='0.3', categories=4), count=9)",
    "Composed(DiscreteGaussian(9), count=10)",
    "Composed([Gaussian(3), Laplace(3)])",
    "Composed(mechanism=PoissonSubsampled(Gaussian(1), '1/10'), count=20)",
]
CLOSE = 1e-12
"""Relative: the digits that the reference has."""


def relation(text: str) -> Adjacency | None:
    return Adjacency.ADD_REMOVE if "Poisson" in text or "Mixture" in text else None


def assert_close(found: float, enclosure: Interval) -> None:
    low, high = float(enclosure.lower), float(enclosure.upper)
    assert low * (1 - CLOSE) <= found <= high * (1 + CLOSE)


@pytest.mark.parametrize("text", quick(SINGLE, *range(4, 12)))
def test_single_releases(text: str) -> None:
    mechanism, adjacency = parse(text), relation(text)
    known = Reference.of(mechanism, adjacency)
    for epsilon in ("-1/2", "1.1"):
        assert_close(known.delta(epsilon), profile.delta(mechanism, epsilon, adjacency=adjacency))


@pytest.mark.parametrize("text", quick(["Gaussian(3)", *SINGLE[:5], *SINGLE[-3:]], 5))
def test_inverses(text: str) -> None:
    mechanism, adjacency = parse(text), relation(text)
    known = Reference.of(mechanism, adjacency)
    assert_close(known.epsilon("1e-3"), profile.epsilon(mechanism, "1e-3", adjacency=adjacency))
    assert_close(known.beta("0.1"), tradeoff.beta(mechanism, "0.1", adjacency=adjacency))


@pytest.mark.parametrize("text", quick(SINGLE[4:], *range(8)))
def test_divergences(text: str) -> None:
    mechanism, adjacency = parse(text), relation(text)
    known = Reference.of(mechanism, adjacency)
    sampled = text.startswith("PoissonSubsampled(mechanism=DiscreteGaussian")  # at integers alone
    for order in ("2", "5") if sampled else ("1", "2", "7/2"):
        found = known.renyi(order)
        enclosure = guarantees.renyi(mechanism, order, adjacency=adjacency)
        if math.isinf(found):
            assert enclosure.lower == math.inf
        else:
            assert_close(found, enclosure)


@pytest.mark.parametrize("text", quick(SEVERAL, 0, 2, 3))
def test_compositions(text: str) -> None:
    mechanism, adjacency = parse(text), relation(text)
    known = Reference.of(mechanism, adjacency)
    assert_close(known.delta("0.3"), profile.delta(mechanism, "0.3", adjacency=adjacency))


def test_every_mechanism_that_has_densities_is_compared_with_them() -> None:
    """A new one needs a row in `mechanisms/laws.py`, or in a list of this file."""
    rows = [*SINGLE, *SEVERAL, *(law.notation for law in LAWS)]
    compared = {text.partition("(")[0] for text in rows}
    for name, kind in DESCRIPTIONS.items():
        if issubclass(kind, Mechanism) and name not in compared:
            with pytest.raises((AdjacencyError, NotApplicableError)):
                laws(parse(kind.example), Adjacency.ADD_REMOVE)


def test_each_direction_has_its_own_pair() -> None:
    mechanism = parse("PoissonSubsampled(Gaussian(1), '1/10')")
    found = {
        side: Reference.of(mechanism, "add-remove", side).delta(1) for side in ("remove", "add")
    }
    assert found["remove"] > found["add"] == 0  # where L ≤ −ln(1 − q)


def test_estimates_ask_it_by_name() -> None:
    noise = DiscreteLaplace(3)
    close = pytest.approx
    asked = estimate_delta(noise, [0.1, 0.2], method="mpmath")
    assert asked == close(estimate_delta(noise, [0.1, 0.2]), rel=CLOSE, abs=0)
    asked = estimate_epsilon(noise, 1e-5, method="mpmath")
    assert asked == close(estimate_epsilon(noise, 1e-5), rel=CLOSE, abs=0)
    asked = estimate_beta(noise, 0.05, method="mpmath")
    assert asked == close(estimate_beta(noise, 0.05), rel=CLOSE, abs=0)


def test_no_epsilon_serves_where_some_outcomes_are_impossible() -> None:
    noise = parse("IntegerNoise(probabilities=['1/4', '1/2', '1/4'], lowest=-1)")
    assert Reference.of(noise).epsilon("0.1") == math.inf
    assert Reference.of(noise).epsilon("0.9") == 0


@pytest.mark.parametrize(
    "text",
    [
        slow("Composed([Gaussian(3), Guaranteed(epsilon='0.1', delta='1e-3')])"),
        "Gaussian(standard_deviation='1/50')",
        "Laplace('1/30')",
        "Composed(Laplace('1/9'), count=6)",
    ],
)
def test_large_losses_and_infinite_ones(text: str) -> None:
    mechanism = parse(text)
    epsilon = "1/2" if "Guaranteed" in text else "30"
    assert_close(Reference.of(mechanism).delta(epsilon), profile.delta(mechanism, epsilon))


@pytest.mark.slow
def test_no_delta_is_left_above_the_largest_loss() -> None:
    mechanism = parse("Composed(PoissonSubsampled(Gaussian(1), '1/10'), count=20)")
    assert Reference.of(mechanism, "add-remove", "add").delta("2.2") == 0  # 20 ln(10/9) = 2.107
    assert Reference.of(Gaussian(3)).epsilon(0) == math.inf
    assert Reference.of(Gaussian(1000)).epsilon(0) == math.inf
    assert Reference.of(parse("Laplace(2)")).epsilon(0) == pytest.approx(0.5, rel=1e-12, abs=0)


def test_what_would_be_wrong_or_late_is_refused() -> None:
    for text in (
        "Gaussian(standard_deviation='1e-4')",
        "TruncatedLaplace(scale=1, bound=100000)",
        "Composed(Laplace(4), count=40)",
        "Staircase(epsilon='1/1000', gamma='1/2')",
        "DiscreteGaussian(10000000)",
    ):
        with pytest.raises(NotApplicableError, match="Ask without it"):
            Reference.of(parse(text)).delta(1)
    with pytest.raises(InvalidInputError, match="order"):
        Reference.of(Gaussian(3)).renyi("1/2")


@pytest.mark.slow
@pytest.mark.parametrize("text", ["DiscreteGaussian(9)", "RandomizedResponse(1, 4)", *SINGLE])
def test_no_relation_is_answered_with_the_pairs_of_another(text: str) -> None:
    mechanism, asked = parse(text), 0.3
    for each in Adjacency:
        try:
            known = profile.delta(mechanism, asked, adjacency=each.value)
            found = estimate_delta(mechanism, asked, adjacency=each.value, method="mpmath")
        except (AdjacencyError, NotApplicableError):
            continue
        assert float(known.lower) * (1 - 1e-9) <= float(found) <= float(known.upper) * (1 + 1e-9)


def test_refusals_say_what_to_ask() -> None:
    with pytest.raises(NotApplicableError, match="Ask without it"):
        Reference.of(parse("RankOneGaussian(dimension=5, sigma_star=400)"))
    with pytest.raises(AdjacencyError, match="add-remove"):
        Reference.of(parse("PoissonSubsampled(Gaussian(1), '1/10')"))
    with pytest.raises(AdjacencyError, match="mixtures under add-remove"):
        Reference.of(parse("MixtureOfGaussians(1, [1, 2], ['0.2', '0.8'])"), "replace-one")
    with pytest.raises(NotApplicableError, match="atoms"):
        Reference.of(parse("Composed([Laplace(3), TruncatedLaplace(scale=1, bound=9)])"))
    with pytest.raises(NotApplicableError, match="do not fall"):
        Reference.of(parse("DiscreteGaussian(parameter='1e12')"))
    with pytest.raises(InvalidInputError, match="alpha"):
        Reference.of(Gaussian(3)).beta(2)

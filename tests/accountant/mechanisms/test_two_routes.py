"""Profiles and tails of single releases: enclosures against sums and integrals in mpmath."""

from __future__ import annotations

import mpmath
import pytest
from flint import arb, ctx

from accountant.core.adjacency import Adjacency
from accountant.core.pair import Pair
from accountant.notation import parse
from accountant.numbers.exact import exact
from accountant.pairs.discrete_gaussian_product import DiscreteGaussianProductPair
from tests.accountant.composition.mpmath_route import by_mpmath
from tests.quick import quick

CLOSE = mpmath.mpf("1e-29")
WHERE = {
    "Gaussian": ["-1", "0", "0.3", "2"],
    "Laplace": ["-9", "-0.1", "0", "0.2", "0.9", "9"],
    "DiscreteLaplace": ["0", "0.3", "-0.7", "-3", "1/7", "1.01", "sqrt(1/2)"],
    "DiscreteGaussian": ["0", "0.3", "-0.7", "1/7", "3.01", "sqrt(1/2)"],
    "Staircase": ["-5", "-0.3", "0", "0.1", "0.29"],
    "IntegerNoise": ["0.3", "-0.6", "1/3", "2", "sqrt(2)"],
    "BoundedCountNoise": ["0.31", "-0.4", "1.7"],
    "MixtureOfGaussians": ["1/3"],
    "RandomizedResponse": ["-3", "-1", "0", "1", "1.4"],
}
"""Values of epsilon, atoms of the losses among them where both routes compare exactly."""
LAWS: dict[str, list[tuple[object, ...]]] = {
    "Gaussian(standard_deviation={}, l2_sensitivity={})": [
        (1, 1), ("0.3", 1), ("'sqrt(50)'", "'sqrt(2)'"), (40, "'1/3'"),
    ],
    "Laplace(scale={}, l1_sensitivity={})": [(1, 1), ("0.3", 2), ("'sqrt(2)'", "'1/3'")],
    "DiscreteLaplace(scale={}, sensitivity={})": [
        (2, 3), ("0.3", 1), ("'sqrt(2)'", 4), ("'5/7'", 2), ("3.25", 1),
    ],
    "DiscreteGaussian(parameter={}, sensitivity={})": [
        ("0.05", 1), ("0.3", 2), (1, 1), ("'sqrt(2)'", 3), ("12.5", 1), (40, 7),
    ],
    "Staircase(epsilon={}, gamma={}, sensitivity={})": [
        (1, "'1/4'", 1), (2, "0.5", 3), ("'1/3'", "0.9", "'sqrt(2)'"), (1, 0, 1), (4, 1, 2),
    ],
    "IntegerNoise(probabilities=['1/8', 0, '1/2', '1/4', '1/8'], lowest=-2, sensitivity={})": [
        (1,), (2,),
    ],
    "BoundedCountNoise(epsilon={}, eta={}, support={})": [
        ("2.18", "0.8", 6), ("1.1", "0.5", 8), ("1.1", "0.02", 8), ("0.3", "0.6", 4),
        (2, "0.9", 3), (1, "'sqrt(0.2)'", 4), (0, "'1/3'", 1), (0, "0.5", 4), (0, "0.2", 5),
    ],
    "MixtureOfGaussians(standard_deviation={}, sensitivities={}, sampling_probs={})": [
        (1, [0, 1, 2], ["0.2", "0.6", "0.2"]), ("'3/2'", [1, "sqrt(2)"], ["0.2", "0.8"]),
    ],
    "RandomizedResponse(epsilon={}, categories={})": [("1.5", 4)],
}  # fmt: skip
CASES = [law.format(*given) for law, several in LAWS.items() for given in several]


def assert_both_agree(pair: Pair, epsilon: str, *, tails: bool = True) -> None:
    eps, reference = exact(epsilon), by_mpmath(pair)
    with mpmath.workdps(60), ctx.workprec(200):
        assert_close(pair.hockey_stick(eps), reference.hockey_stick(eps, 50))
        if tails:
            found, (p, q) = pair.tails(eps), reference.tails(eps, 50)
            for mine, other in (
                (found.p_above, p),
                (found.q_above, q),
                (1 - found.p_below, p),
                (1 - found.q_below, q),
            ):
                assert_close(mine, other)


def assert_close(found: arb, known: mpmath.mpf) -> None:
    assert abs(mpmath.mpf(found.mid().str(55, radius=False)) - known) <= CLOSE
    assert float(found.rad()) <= 1e-30


@pytest.mark.parametrize("text", quick(CASES, 0, 4, 7, 10, 12, 14, 18, 23, 25, 28, 31, 34, 36))
def test_two_routes_agree(text: str) -> None:
    worst = parse(text).worst_case(Adjacency.ADD_REMOVE if "Mixture" in text else None)
    for pair in {*worst.remove, *worst.add}:
        for index, epsilon in enumerate(WHERE[text.partition("(")[0]]):
            assert_both_agree(pair, epsilon, tails=index % 3 == 0)


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

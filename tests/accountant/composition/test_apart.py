"""Products of products are products of all the factors, and losses without a unit compose too."""

from __future__ import annotations

from fractions import Fraction

import pytest

from accountant.core.adjacency import Adjacency
from accountant.mechanisms import (
    Composed,
    DiscreteCorrelatedGaussian,
    DiscreteGaussian,
    DiscreteKaryTree,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonSubsampled,
)
from accountant.numbers.interval import Interval
from accountant.questions import profile

NINE = Fraction(1, 10**9)
BOTH = Adjacency.ADD_REMOVE


@pytest.mark.parametrize("epsilon", ["1/100", "1/2", "3"])
def test_trees_of_discrete_noise_are_their_vertices(epsilon: str) -> None:
    tree = DiscreteKaryTree(steps=8, arity=2, epsilon="1/2")
    vertices = Composed(DiscreteLaplace(scale=tree.scale), 2 * tree.continuous.tree.height)
    found = profile.delta(Composed(tree, 2), epsilon)
    assert found == profile.delta(vertices, epsilon)
    assert found.relative_width is not None
    assert found.relative_width <= 1e-30


def test_a_tree_beside_subsampled_releases_is_inverted() -> None:
    tree = DiscreteKaryTree(steps=8, arity=2, epsilon="1/2")
    steps = Composed(PoissonSubsampled(Gaussian(standard_deviation=1), "1/10"), 20)
    vertices = Composed(DiscreteLaplace(scale=tree.scale), tree.continuous.tree.height)
    found, other = (
        profile.delta(Composed([steps, noise]), 1, adjacency=BOTH, relative_width=NINE)
        for noise in (tree, vertices)
    )
    assert found == other


def test_discrete_noise_on_coordinates_is_that_of_the_coordinates() -> None:
    thrice = DiscreteCorrelatedGaussian(dimension=3, mu="1/2", c=1)  # four coordinates, v = 16
    seven = DiscreteCorrelatedGaussian(dimension=7, mu="sqrt(1/2)", c=1)  # eight, v = 16
    for epsilon in ("1/10", "2"):
        found = profile.delta(Composed(thrice, 2), epsilon, adjacency=BOTH)
        assert found == profile.delta(seven, epsilon, adjacency=BOTH)
    replaced = profile.delta(Composed(thrice, 2), 1, adjacency=Adjacency.REPLACE_ONE)
    assert replaced.relative_width is not None
    assert replaced.relative_width <= 1e-30


def test_laplace_noise_of_irrational_ratio_lies_between_rational_neighbours() -> None:
    width = Fraction(1, 10**5)

    def ask(scale: str, epsilon: str) -> Interval:
        noise = Composed([Laplace(scale=1), Laplace(scale=scale)], 5)
        return profile.delta(noise, epsilon, relative_width=width)

    for epsilon in ("1/3", "4"):
        found = ask("sqrt(2)", epsilon)
        less, more = ask("1.415", epsilon), ask("1.413", epsilon)
        assert less.lower < found.lower <= found.upper < more.upper


def test_discrete_gaussian_noise_of_an_irrational_parameter_lies_between_neighbours() -> None:
    def ask(parameter: str) -> Interval:
        noise = Composed(DiscreteGaussian(parameter), 3)
        return profile.delta(noise, 1, relative_width=NINE)

    found = ask("sqrt(2)")
    assert found.relative_width is not None
    assert found.relative_width <= NINE
    ends = ask("1.41421356"), ask("1.41421357")
    assert min(e.lower for e in ends) < found.lower <= found.upper < max(e.upper for e in ends)


@pytest.mark.slow
def test_a_sample_of_a_sample_is_one_sample() -> None:
    noise = Gaussian(standard_deviation=1)
    once = PoissonSubsampled(noise, "1/20")
    twice = PoissonSubsampled(PoissonSubsampled(noise, "1/5"), "1/4")
    for mechanism, other in ((once, twice), (Composed(once, 3), Composed(twice, 3))):
        found = profile.delta(mechanism, "1/2", adjacency=BOTH, relative_width=NINE)
        assert found == profile.delta(other, "1/2", adjacency=BOTH, relative_width=NINE)

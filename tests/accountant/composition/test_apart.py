"""Products of products are products of all the factors, and losses without a unit compose too."""

from __future__ import annotations

from fractions import Fraction

from accountant.core.adjacency import Adjacency
from accountant.mechanisms import (
    Composed,
    DiscreteGaussian,
    Laplace,
)
from accountant.numbers.interval import Interval
from accountant.questions import profile
from tests.near import narrow

NINE = Fraction(1, 10**9)
BOTH = Adjacency.ADD_REMOVE


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
    assert narrow(found, NINE)
    ends = ask("1.41421356"), ask("1.41421357")
    assert min(e.lower for e in ends) < found.lower <= found.upper < max(e.upper for e in ends)

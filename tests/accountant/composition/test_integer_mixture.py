"""Laplace noise beside discrete Gaussian noise, against inversion and sums over two integers."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from flint import arb, ctx

from accountant.composition.conditional import CONDITIONAL, _masses
from accountant.composition.grid.product import GRID
from accountant.composition.product import Product
from accountant.core.adjacency import Adjacency
from accountant.core.pair import Pair
from accountant.mechanisms import Composed, DiscreteGaussian, Laplace, PoissonSubsampled
from accountant.numbers.exact import exact
from accountant.numbers.interval import narrowed
from accountant.pairs.discrete_gaussian import DiscreteGaussianPair
from accountant.pairs.theta import theta
from accountant.questions import profile
from tests.near import narrow
from tests.quick import quick

NINE = Fraction(1, 10**9)


def pair_of(mechanism: Laplace | DiscreteGaussian | Composed) -> Pair:
    return mechanism.worst_case(None).remove[0]


@pytest.mark.parametrize(("parameter", "shift", "count"), quick([("4", 1, 1), ("5/2", 2, 3)], 0))
@pytest.mark.parametrize("epsilon", quick(["-1", "0", "5"], 1))
def test_against_the_grid(parameter: str, shift: int, count: int, epsilon: str) -> None:
    integer = DiscreteGaussianPair(exact(parameter), shift)
    first = pair_of(Composed(Laplace(scale=1), 4))
    found = Product(((first, 1), (integer, count)), CONDITIONAL)
    grid = Product(((pair_of(Laplace(scale=1)), 4), (integer, count)), GRID)
    with ctx.workprec(128):
        with narrowed(NINE):
            value = found.hockey_stick(exact(epsilon))
        with narrowed(Fraction(1, 100)):
            assert value.overlaps(grid.hockey_stick(exact(epsilon)))
    assert 2 * value.rad() < 1e-9 * value


def test_no_outcome_is_lost() -> None:
    with ctx.workprec(100):
        masses, missing = _masses(exact("7/3"), 5, 100)
        assert (masses[0] + 2 * sum(masses[1:], start=arb(0)) + arb(0).union(missing)).contains(1)
        assert missing < arb(2) ** -98
        v = arb(7) / 3
        single = [(-arb(z * z) / (2 * v)).exp() / theta(exact("7/3")) for z in range(40)]
        two, _ = _masses(exact("7/3"), 2, 100)
        expected = single[0] ** 2 + 2 * sum((p**2 for p in single[1:]), start=arb(0))
        assert two[0].overlaps(expected)
        assert abs(float(two[0] - expected)) < 1e-28


def test_ten_of_each_to_nine_digits() -> None:
    mechanism = Composed([Laplace(scale=1), DiscreteGaussian(parameter=4)], 10)
    found = profile.epsilon(mechanism, "1e-20", relative_width=NINE)
    assert narrow(found, NINE)
    assert str(found).startswith("24.47445")


@pytest.mark.parametrize(
    ("count", "delta", "near"), quick([(2, "1e-6", 3.29214037), (10, "1e-12", 11.98563303)], 0)
)
def test_sampled_laplace_noise_beside_integers(count: int, delta: str, near: float) -> None:
    """Atoms of two lattices: a grid has two digits. Reference: Fourier inversion to nine digits."""
    sample = PoissonSubsampled(Laplace(scale=1), "0.01")
    mechanism = Composed([sample, DiscreteGaussian(parameter=4)], count)
    found = profile.epsilon(mechanism, delta, adjacency=Adjacency.ADD_REMOVE, relative_width="0.01")
    assert (found.relative_width or 0) <= Fraction(1, 100)
    assert found.lower <= Decimal(str(near)) <= found.upper

"""Products of several families of losses: lists beside contours, integers, irrational ratios."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from flint import arb, ctx

from accountant.composition.choose import Ladder
from accountant.composition.conditional import CONDITIONAL, _masses
from accountant.composition.grid.product import GRID
from accountant.composition.product import Product
from accountant.core.adjacency import Adjacency
from accountant.core.mechanism import Mechanism
from accountant.core.pair import Pair
from accountant.mechanisms import (
    Composed,
    DiscreteGaussian,
    Gaussian,
    Guaranteed,
    Laplace,
    MixtureOfGaussians,
    PoissonSubsampled,
    Staircase,
)
from accountant.numbers.exact import ExactReal, exact
from accountant.numbers.interval import Interval
from accountant.numbers.theta import theta
from accountant.pairs.discrete_gaussian import DiscreteGaussianPair
from accountant.questions import profile
from tests.near import narrow
from tests.quick import quick

BOTH = Adjacency.ADD_REMOVE
NINE = Fraction(1, 10**9)
STEP = PoissonSubsampled(Gaussian(standard_deviation=1), "0.01")
WHOLE = Composed([Composed(Staircase(epsilon=1, gamma="0.3"), 10), Composed(STEP, 200)])
LEAKY = Composed([Guaranteed(epsilon="1/3", delta="1e-9"), Composed(STEP, 50)], 4)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Fraction]:
    """Note the widths that contour integrals are asked for."""
    found: list[Fraction] = []
    before = Ladder.profile

    def noted(self: Ladder, product: Product, epsilon: ExactReal) -> arb:
        found.append(product.relative_width or Fraction(0))
        return before(self, product, epsilon)

    monkeypatch.setattr(Ladder, "profile", noted)
    return found


@pytest.mark.parametrize(
    ("mechanism", "epsilon"), quick([(WHOLE, "5"), (WHOLE, "11"), (LEAKY, "5")], 2)
)
def test_the_sum_is_the_same(mechanism: Mechanism, epsilon: str, asked: list[Fraction]) -> None:
    pair = mechanism.worst_case(BOTH).remove[0]
    assert isinstance(pair, Product)
    assert pair.engine == CONDITIONAL
    with ctx.workprec(64):
        plain = pair.hockey_stick(exact(epsilon))
        terms = len(asked)
        found = pair.to_width(NINE).hockey_stick(exact(epsilon))
        bound = pair.bound(exact(epsilon))
    assert found.overlaps(plain)
    assert 2 * found.rad() < 2e-9 * found
    assert len(asked) - terms <= terms
    assert max(asked) > NINE
    assert not bound < found


def test_a_mixture_of_normal_laws_composes() -> None:
    """Pairs that know their loss at a point are not taken for pairs with a transform."""
    noise = MixtureOfGaussians(1, [0, 1], ["1/2", "1/2"])
    both = Composed(noise, 2)
    found = profile.delta(both, "1/2", adjacency="add-remove", relative_width=Fraction(1, 1000))
    assert found.overlaps(
        profile.delta(
            both, "1/2", adjacency="add-remove", method="grid", relative_width=Fraction(1, 10)
        )
    )


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
        value = found.to_width(NINE).hockey_stick(exact(epsilon))
        assert value.overlaps(grid.to_width(Fraction(1, 100)).hockey_stick(exact(epsilon)))
    assert 2 * value.rad() < 1e-9 * value


def test_no_outcome_is_lost() -> None:
    with ctx.workprec(100):
        masses, missing = _masses(exact("7/3"), 5, 100)
        assert missing < arb(2) ** -98
    with ctx.workprec(300):  # sums that add no rounding of the size of what is missing
        assert (masses[0] + 2 * sum(masses[1:], start=arb(0)) + arb(0).union(missing)).contains(1)
        assert not (masses[0] + 2 * sum(masses[1:], start=arb(0))).contains(1)
    with ctx.workprec(100):
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

"""Products of several families of losses: lists beside contours, integers, irrational ratios."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from flint import ctx

import dpassay
from dpassay.accountant.composition.choose import CONDITIONAL, product
from dpassay.accountant.composition.product import Product
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.mechanisms import (
    Composed,
    DiscreteGaussian,
    Gaussian,
    Guaranteed,
    Laplace,
    PoissonSubsampled,
    Staircase,
)
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.numbers.precision import watched
from dpassay.accountant.pairs.finite import FinitePair
from dpassay.accountant.questions import profile
from tests.near import narrow
from tests.quick import slow

BOTH = Adjacency.ADD_REMOVE
FIVE = Fraction(1, 10**5)
STEP = PoissonSubsampled(Gaussian(standard_deviation=1), "0.01")
WHOLE = Composed([Composed(Staircase(epsilon=1, gamma="0.3"), 10), Composed(STEP, 200)])
LEAKY = Composed([Guaranteed(epsilon="1/3", delta="1e-9"), Composed(STEP, 50)], 4)


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize(
    ("mechanism", "epsilon"),
    [slow(WHOLE, "5"), slow(WHOLE, "11"), (LEAKY, "5"), slow(LEAKY, "-1/2")],
)
def test_a_grid_of_all_and_a_sum_over_lists_agree(
    mechanism: Composed, epsilon: str, *, add: bool
) -> None:
    """Also where losses are infinite, of either sign, with some probability."""
    case = mechanism.worst_case(BOTH)
    (pair,) = case.add if add else case.remove
    assert isinstance(pair, Product)
    lists = [each for each in pair.factors if isinstance(each[0], FinitePair)]
    others = [each for each in pair.factors if not isinstance(each[0], FinitePair)]
    summed = Product(((product(others), 1), *lists), CONDITIONAL)
    with ctx.workprec(64):
        found = pair.to_width(FIVE).hockey_stick(exact(epsilon))
        assert found.overlaps(summed.to_width(FIVE).hockey_stick(exact(epsilon)))
        assert not pair.known.bound(exact(epsilon)) < found
    assert 2 * found.rad() < 1e-5 * found


@pytest.mark.parametrize("noise", [(Gaussian("1.2"),), ()], ids=["noise", "samples alone"])
@pytest.mark.parametrize("epsilon", ["-1/4", "3/4", "4"])
def test_laplace_noise_on_a_line_and_on_a_grid(noise: tuple[Gaussian, ...], epsilon: str) -> None:
    """Lines know nine digits, and the grid of the same losses six of them."""
    releases = [Composed(STEP, 300), Laplace("5/2"), Composed(Laplace(7), 2), *noise]
    line = profile.delta(Composed(releases), epsilon, adjacency=BOTH)
    assert narrow(line, Fraction(1, 10**8))
    for method, width in (("fourier", Fraction(1, 10**8)), ("grid", Fraction(1, 10**5))):
        found = profile.delta(
            Composed(releases), epsilon, adjacency=BOTH, method=method, relative_width=width
        )
        assert narrow(found, width)
        assert found.overlaps(line)


@pytest.mark.parametrize(
    ("count", "delta", "near"), [(2, "1e-6", 3.29214037), slow(10, "1e-12", 11.98563303)]
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
        return profile.delta(noise, 1, relative_width=Fraction(1, 10**6))

    found = ask("sqrt(2)")
    assert narrow(found, Fraction(1, 10**6))
    ends = ask("1.414"), ask("1.415")
    assert min(e.lower for e in ends) < found.lower <= found.upper < max(e.upper for e in ends)


def test_contours_of_gaussian_and_laplace_noise_are_not_called_proved() -> None:
    """Their sums are formed in floats with a ledger of errors, which verdicts have to say."""
    mechanism = dpassay.parse("Composed([Gaussian(4), Laplace(5)], 10)")
    with watched() as used:
        dpassay.epsilon(mechanism, "1e-5", adjacency="add-remove", method="fourier")
    assert used

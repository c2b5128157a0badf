from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest

from dpassay.accountant.core.adjacency import Adjacency, Direction
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.mechanisms import (
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    KaryTree,
    Laplace,
    LaplaceVector,
    PoissonSubsampled,
    RandomizedResponse,
    Staircase,
    Tabulated,
    TruncatedGeometric,
)
from dpassay.accountant.questions import guarantees, profile
from tests.near import mpf, narrow
from tests.quick import slow

BOUNDED: list[Mechanism] = [
    Laplace("0.5"),
    Laplace(30),
    DiscreteLaplace("2", 3),
    Staircase("1", "0.3"),
    RandomizedResponse("1.5", 4),
    LaplaceVector(2, [1, "1/2", 3]),
    Tabulated(["1/2", "1/3", "1/6"], ["1/6", "1/3", "1/2"]),
]


def test_loss_distribution_counts_an_atom_below() -> None:
    with mpmath.workdps(50):
        # P(L = t) = 1/2 for the Laplace mechanism
        assert 1 in guarantees.loss_cdf(Laplace(1), 1)
        just_below = guarantees.loss_cdf(Laplace(1), 1 - Fraction(1, 10**50))
        assert abs(mpf(just_below) - mpmath.mpf("0.5")) < mpmath.mpf("1e-35")
    table = Tabulated(["9/10", "1/10"], ["1/2", "1/2"])
    remove = guarantees.loss_survival(table, 0, direction=Direction.REMOVE)
    add = guarantees.loss_survival(table, 0, direction=Direction.ADD)
    assert Fraction(9, 10) in remove
    assert Fraction(1, 2) in add
    assert Fraction(1, 10) in guarantees.loss_cdf(table, 0, direction=Direction.REMOVE)
    assert Fraction(1, 2) in guarantees.loss_cdf(table, 0, direction=Direction.ADD)


def test_renyi_near_order_one_tends_to_kullback_leibler() -> None:
    for mechanism in BOUNDED:
        near = guarantees.renyi(mechanism, 1 + Fraction(1, 10**20))
        at = guarantees.renyi(mechanism, 1)
        assert narrow(near, Fraction(1, 10**30))
        assert at.lower <= near.upper
        assert float(near.upper - at.lower) < 1e-18


@pytest.mark.parametrize("mechanism", BOUNDED, ids=lambda m: type(m).__name__)
def test_rho_is_the_supremum_of_renyi_over_order(mechanism: Mechanism) -> None:
    rho = guarantees.rho(mechanism)
    assert narrow(rho, Fraction(2, 10**6))
    ratios = []
    for order in ("1", "1.01", "1.3", "2", "3", "5", "11", "60"):
        value = guarantees.renyi(mechanism, order)
        ratios.append(Fraction(value.lower) / Fraction(Decimal(order)))
    assert max(ratios) <= Fraction(rho.upper)
    # no better than ε²/2, the bound for pure ε-DP
    epsilon = Fraction(profile.epsilon(mechanism, 0).upper)
    assert Fraction(rho.lower) <= epsilon**2 / 2


@pytest.mark.parametrize(
    ("mechanism", "rho"),
    [
        (TruncatedGeometric(scale="1e100", low=0, high=10), "5e-201"),
        (KaryTree(steps=10**6, arity=19, epsilon="8e-100"), "6.4e-200"),
        (DiscreteLaplace(scale="1e60", sensitivity=3), "4.5e-120"),
    ],
)
def test_rho_of_tiny_losses_is_half_the_sum_of_their_squares(
    mechanism: Mechanism, rho: str
) -> None:
    """Its digits take more than 256 bits; as ε tanh(ε/2) < ρ ≤ ε²/2, this is what it is."""
    found = guarantees.rho(mechanism)
    assert abs(Fraction(found.lower) / Fraction(rho) - 1) < Fraction(1, 10**6)
    assert narrow(found, Fraction(1, 10**6))


BOTH = Adjacency.ADD_REMOVE
SAMPLED = PoissonSubsampled(Gaussian(2), "0.01")


@pytest.mark.parametrize(
    ("mechanism", "rho"),
    [
        (SAMPLED, "1/8"),
        (Composed(SAMPLED, 1000), "125"),
        (Composed([Composed(SAMPLED, 8), Gaussian(1)]), "3/2"),
        (PoissonSubsampled(SAMPLED, "0.5"), "1/8"),
        (PoissonSubsampled(DiscreteGaussian(parameter=4), "0.1"), "1/8"),
    ],
)
def test_sampling_gains_no_rho(mechanism: Mechanism, rho: str) -> None:
    """D_a >= D_a(whole) + a ln q/(a - 1): the limit of D_a/a is that of the releases as a whole."""
    found = guarantees.rho(mechanism, adjacency=BOTH)
    assert Fraction(rho) in found
    assert narrow(found, Fraction(1, 10**25))


@pytest.mark.parametrize("epsilon", ["1/100", slow("1/1000")])
def test_rho_is_told_from_a_bound_that_is_nearly_met(epsilon: str) -> None:
    """ε²/8 is 1e-6 and 1e-8 above: many ranges of orders are needed."""
    size = Fraction(epsilon)
    found = guarantees.rho(
        ExponentialMechanism(epsilon=size), relative_width=Fraction(1, 10**6) * size
    )
    assert Fraction(found.lower) > size**2 / 8 * (1 - size**2)
    assert Fraction(found.upper) < size**2 / 8

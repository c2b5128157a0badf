"""Estimates of rank-one noise, and mixtures of normal laws."""

from __future__ import annotations

from fractions import Fraction

import pytest
from flint import arb

import dpassay
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.own_density import mixture_renyi
from dpassay.accountant.pairs.subsampled import GaussianMixturePair

MIXTURE = dpassay.MixtureOfGaussians(2, [0, 1, 2], ["0.5", "0.3", "0.2"])


@pytest.mark.parametrize("order", [150, 190])
def test_large_losses_give_the_integral(order: int) -> None:
    (pair,) = MIXTURE.worst_case(dpassay.Adjacency.ADD_REMOVE).remove
    assert isinstance(pair, GaussianMixturePair)
    with ctx.workprec(53):
        closed = pair.renyi(arb(order))
        p, q = (
            [(arb(w.numerator) / w.denominator, m.ball()) for w, m in s] for s in (pair.p, pair.q)
        )
        integral = mixture_renyi(p, q, arb(order))
    assert closed.overlaps(integral)
    assert closed.rad() < closed.mid() * 1e-12


def test_the_least_rho_is_that_of_the_largest_shift() -> None:
    rho = dpassay.rho(MIXTURE, adjacency="add-remove")
    assert Fraction(1, 2) in rho
    assert rho.upper - rho.lower < 1e-6
    both = dpassay.Composed([MIXTURE, dpassay.Gaussian(standard_deviation=1)], 3)
    assert Fraction(3) in dpassay.rho(both, adjacency="add-remove")

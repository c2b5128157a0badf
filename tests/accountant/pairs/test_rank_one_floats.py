"""Floats of rank-one noise, and mixtures of normal laws."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flint import arb

import dpassay
from accountant.mechanisms import RankOneGaussian
from accountant.numbers.exact import ExactReal
from accountant.numbers.precision import ctx
from accountant.pairs.density_moments import mixture_renyi
from accountant.pairs.gaussian_mixture import GaussianMixturePair
from accountant.pairs.rank_one.pair import RankOnePair


def pair(dimension: int, sigma_star: str) -> RankOnePair:
    (found,) = RankOneGaussian(dimension, sigma_star).worst_case(None).pairs(None)
    assert isinstance(found, RankOnePair)
    return found


@pytest.mark.parametrize(
    ("dimension", "sigma_star", "epsilon"),
    [
        (3, "1", "0"),
        (3, "1", "30"),
        (4, "0.01", "1"),
        (10, "10", "1"),
        (10, "10", "110"),
        (100, "227671373375", "1"),
        (1000, "1000", "9990"),
    ],
)
def test_log_delta_is_near_its_enclosure(dimension: int, sigma_star: str, epsilon: str) -> None:
    noise = pair(dimension, sigma_star)
    found = noise.estimate_log_delta(float(epsilon))
    with ctx.workprec(53):
        exact = noise.hockey_stick(ExactReal.of_rational(Fraction(epsilon))).log()
    assert found is not None
    assert math.isclose(found, float(exact.mid()), rel_tol=1e-8, abs_tol=1e-8)


@pytest.mark.parametrize("target", [1e-3, 1e-6, 1e-30])
def test_epsilon_inverts_it(target: float) -> None:
    noise = pair(10, "10")
    epsilon = noise.estimate_epsilon(math.log(target))
    assert epsilon is not None
    found = noise.estimate_log_delta(epsilon)
    assert found is not None
    assert math.isclose(found, math.log(target), rel_tol=1e-10)


def test_what_floats_do_not_know_is_none() -> None:
    noise = pair(10, "10")
    assert noise.estimate_log_delta(-1.0) is None
    assert noise.estimate_epsilon(0.0) is None


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

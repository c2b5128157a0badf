"""Verdicts by the least μ and ρ: their certificates, and the checker's own bounds."""

from __future__ import annotations

from fractions import Fraction

import pytest
from flint import ctx

import dpassay
from verify.checker import suprema
from verify.checker.arithmetic import UnknownError, compare
from verify.checker.facts import mechanism
from verify.checker.mechanisms import pairs, under

SAMPLES = (
    "Composed(mechanism=PoissonSubsampled(mechanism=Laplace(scale=1), sampling_prob='1/10'), "
    "count=20)"
)
COINS = "Composed(mechanism=[RandomizedResponse(epsilon='0.1'), RandomizedResponse(epsilon=1)])"
MIXED = "Composed(mechanism=[Gaussian(standard_deviation=2), Laplace(scale=2)], count=3)"
STAIRS = "Staircase(epsilon=1, gamma='0.4')"


@pytest.mark.parametrize("noise", [SAMPLES, COINS, MIXED, STAIRS, "DiscreteLaplace(scale=2)"])
def test_the_searched_rho_is_the_one_of_the_accountant(noise: str) -> None:
    relation = "replace-one" if "Response" in noise else "add-remove"
    least = dpassay.rho(dpassay.parse(noise), adjacency=relation)
    above, below = Fraction(least.upper) * 1001 / 1000, Fraction(least.lower) * 999 / 1000
    with ctx.workprec(160):
        laws = pairs(under(mechanism(noise), relation))
        found = [suprema.bounded_rho(law, above) for law in laws]
        assert all(value <= above for value in found)
        assert any(compare(value, ">=", below) for value in found)
        found = [suprema.bounded_rho(law, below) for law in laws]
        assert any(value > below for value in found)


def test_no_least_mu_is_known_of_other_losses() -> None:
    (law,) = pairs(mechanism("Laplace(scale=1)"))
    with pytest.raises(UnknownError, match="least mu"):
        suprema.least_mu(law, Fraction(1))

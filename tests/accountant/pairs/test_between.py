"""A pair with two ends: what one end alone says is no answer."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

from flint import arb

from dpassay.accountant.mechanisms import Gaussian
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.pairs.between import Between, passes
from dpassay.accountant.pairs.gaussian import GaussianPair

LOW, HIGH = (GaussianPair(Gaussian(sigma), None) for sigma in (2, 1))


def test_a_lower_end_that_is_not_known_is_zero() -> None:
    unknown: Any = SimpleNamespace(renyi=lambda order: arb.nan())
    found = Between((unknown,), HIGH, "all").renyi(arb(2))
    assert found.contains(arb(0))
    assert found.contains(arb(1))


def test_infinite_ends_are_infinite() -> None:
    endless: Any = SimpleNamespace(renyi=lambda order: arb.pos_inf())
    assert Between((endless,), endless, "all").renyi(arb(2)) == arb.pos_inf()


def test_a_bound_that_is_0_but_for_its_error_is_below() -> None:
    def bound(epsilon: ExactReal) -> arb:
        return (arb("0.5") - epsilon.ball()).max(arb(0)) + arb(0, 1e-20)

    found = passes(bound, exact("0.1"), Fraction(1))
    assert found.lower < Fraction(2, 5) < found.upper

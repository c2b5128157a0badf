"""Where a bound of which only so much is known passes δ."""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.pairs.between import passes


def test_a_bound_that_is_0_but_for_its_error_is_below() -> None:
    def bound(epsilon: ExactReal) -> arb:
        return (arb("0.5") - epsilon.ball()).max(arb(0)) + arb(0, 1e-20)

    found = passes(bound, exact("0.1"), Fraction(1))
    assert found.lower < Fraction(2, 5) < found.upper

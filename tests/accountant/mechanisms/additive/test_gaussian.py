from __future__ import annotations

from fractions import Fraction

from accountant.mechanisms import Gaussian
from accountant.numbers.exact import exact
from accountant.numbers.interval import enclose


def test_tails_beyond_every_float() -> None:
    # erfc of an inexact ball loses its accuracy at such arguments unless its ends are taken
    pair = Gaussian("1e-9").worst_case(None).remove[0]
    below = enclose(lambda: pair.tails(exact(1)).p_below)
    assert below.relative_width is not None
    assert below.relative_width <= Fraction(1, 10**30)
    assert below.lower.adjusted() == -54286810237906488

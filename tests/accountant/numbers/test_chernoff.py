"""The factor of Chernoff's bound is the largest value of what it bounds."""

import mpmath
import pytest
from flint import arb, ctx

from accountant.numbers.chernoff import log_peak, rough_log_peak


@pytest.mark.parametrize("c", ["1e-30", "1e-3", "0.5", "1", "40", "1e9"])
def test_it_is_the_value_at_the_peak_and_no_other_value_is_larger(c: str) -> None:
    with ctx.workprec(256), mpmath.workdps(60):
        found = log_peak(arb(c))
        assert float(found.rad()) < 1e-25 * abs(float(found.mid()))
        at = mpmath.mpf(c)

        def log_value(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.log(-mpmath.expm1(-x)) - at * x

        peak = mpmath.log1p(1 / at)
        upper = mpmath.mpf(found.upper().str(50, radius=False))
        assert mpmath.almosteq(log_value(peak), upper, 1e-20, 0)
        assert all(log_value(peak * share) < upper for share in (0.01, 0.9, 0.999, 1.001, 3))
    assert rough_log_peak(float(c)) == pytest.approx(float(found.mid()), rel=1e-6, abs=0)

"""The ledger of the note on elliptical noise: every verdict, and its numbers a second time."""

from __future__ import annotations

import pytest
from mpmath import exp, log, mp, mpf, ncdf, sqrt


@pytest.mark.parametrize("epsilon", ["0.001", "0.5", "0.999"])
@pytest.mark.parametrize("delta", ["1e-100", "1e-5", "0.5", "0.999"])
def test_the_classic_theorem_without_its_second_term(epsilon: str, delta: str) -> None:
    """δ(ε) ≤ Φ(−x) ≤ 0.6 e^{−x²/2} ≤ δ with x = c − ε/(2c), c = √(2 ln(1.25/δ))."""
    with mp.workdps(140):
        eps, claimed = mpf(epsilon), mpf(delta)
        c = sqrt(2 * log(mpf("1.25") / claimed))
        x = c - eps / (2 * c)
        true = ncdf(-x) - exp(eps) * ncdf(-eps / (2 * c) - c)
        steps = [true, ncdf(-x), mpf("0.6") * exp(-(x**2) / 2), claimed]
        assert x >= mpf("-0.1")
        assert steps == sorted(steps)

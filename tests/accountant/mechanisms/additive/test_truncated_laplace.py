"""Laplace noise that is cut off, against quadrature of its densities."""

from __future__ import annotations

import mpmath
import pytest

from accountant.errors import InvalidInputError
from accountant.mechanisms import Composed, TruncatedLaplace
from accountant.numbers.interval import Interval
from accountant.questions import profile


def mpf(value: Interval) -> mpmath.mpf:
    return (mpmath.mpf(str(value.lower)) + mpmath.mpf(str(value.upper))) / 2


def test_the_bound_of_its_authors_is_met_exactly() -> None:
    # A = (Δ/ε) ln(1 + (e^ε − 1)/(2δ)), with A rounded to 30 digits
    with mpmath.workdps(40):
        bound = mpmath.nstr(2 * mpmath.log1p(mpmath.expm1(0.5) / 2e-5), 30)
        found = profile.delta(TruncatedLaplace(2, bound), "1/2")
        assert abs(mpf(found) / mpmath.mpf(1e-5) - 1) < 1e-15


def test_a_composition_has_the_mass_at_infinity_of_its_parts() -> None:
    twice = profile.delta(Composed(TruncatedLaplace(1, 8), 2), 5)
    one = mpf(profile.delta(TruncatedLaplace(1, 8), 5))
    assert twice.lower <= 2 * one - one**2 <= twice.upper


def test_noise_that_is_cut_off_too_soon_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="bound"):
        TruncatedLaplace(1, bound="0.9")

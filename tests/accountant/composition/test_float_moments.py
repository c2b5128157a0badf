"""Bounds of real moments in floats, beside those in balls and beside mpmath."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from accountant.adjacency import Adjacency
from accountant.composition.float_moments import log_moment
from accountant.composition.saddle_pair import transform
from accountant.composition.saddle_transform import Cut, MixtureTransform
from accountant.mechanisms import Gaussian, PoissonSubsampled


def mixture(sigma: float, q: float) -> MixtureTransform:
    release = PoissonSubsampled(Gaussian(standard_deviation=f"{sigma:.4g}"), f"{q:.4g}")
    found = transform(release.worst_case(Adjacency.ADD_REMOVE).remove[0])
    assert isinstance(found, MixtureTransform)
    return found


@given(
    log_sigma=st.floats(-1.2, 4.6),
    log_q=st.floats(-14.0, -0.1),
    log_size=st.floats(-9.0, 5.0),
    above=st.booleans(),
)
def test_the_moment_lies_between_the_bounds(
    log_sigma: float, log_q: float, log_size: float, above: bool
) -> None:
    of = mixture(math.exp(log_sigma), math.exp(log_q))
    s = math.exp(log_size) if above else -math.exp(log_size)
    bounds = log_moment(of.floats(), s)
    assert bounds is not None
    with ctx.workprec(128):
        value = of.value(Fraction(s) - 1).log()
    assert arb(bounds[0]) < value < arb(bounds[1])
    # the mean of 2^−45 (1 + x² + |s|(|ln(1 − q)| + p(2 + ln|odds|))) on both sides
    mean = abs(s) / math.exp(log_sigma)
    sharp = 2.0**-45 * (2 + mean * mean + abs(s) * 60) + 1e-16
    assert bounds[1] - bounds[0] < 2.0 * sharp


def test_a_moment_beside_mpmath() -> None:
    bounds = log_moment(mixture(0.6, 0.01).floats(), 2.5)
    assert bounds is not None
    with mpmath.workdps(30):
        mu, q = 1 / mpmath.mpf("0.6"), mpmath.mpf("0.01")

        def term(x: mpmath.mpf) -> mpmath.mpf:
            w = 1 - q + q * mpmath.exp(mu * x - mu * mu / 2)
            return mpmath.npdf(x) * w ** mpmath.mpf("2.5")

        value = mpmath.log(mpmath.quad(term, range(-12, 20)))
        assert bounds[0] < value < bounds[1] < bounds[0] + 1e-10


def test_laws_that_are_cut_and_tilts_beyond_floats_are_left_to_others() -> None:
    of = mixture(1.1, 0.004)
    cut = replace(of, cut=Cut(Fraction(8), Fraction(1)))
    assert log_moment(cut.floats(), 2.0) is None
    assert log_moment(of.floats(), 1e15) is None
    with ctx.workprec(64):
        assert cut.log_upper(Fraction(1)) >= cut.value(Fraction(1)).log().lower()


@pytest.mark.parametrize("c", [Fraction(-3), Fraction(-1, 2), Fraction(0), Fraction(7, 3)])
def test_upper_bounds_of_both_orders_of_a_pair(c: Fraction) -> None:
    for of in (mixture(0.8, 0.01), replace(mixture(0.8, 0.01), mixed_first=False)):
        with ctx.workprec(96):
            value = of.value(c).log()
            assert value < of.log_upper(c) < value + arb("1e-10")

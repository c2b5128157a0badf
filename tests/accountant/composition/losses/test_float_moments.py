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

from accountant.composition.fourier.pair import transform
from accountant.composition.losses.decay import log_lower, log_upper
from accountant.composition.losses.transform import Cut, MixtureTransform
from accountant.core.adjacency import Adjacency
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
    lower, upper = log_lower(of.floats(), s), log_upper(of.floats(), s)
    assert lower is not None
    assert upper is not None
    with ctx.workprec(128):
        value = of.value(Fraction(s) - 1).log()
    assert arb(lower) < value < arb(upper)
    # the mean of 2^−45 (1 + x² + |s|(|ln(1 − q)| + p(2 + ln|odds|))) on both sides
    mean = abs(s) / math.exp(log_sigma)
    sharp = 2.0**-45 * (2 + mean * mean + abs(s) * 60) + 1e-16
    assert upper - lower < 2.0 * sharp


@pytest.mark.parametrize("at", ["1/2", "6", "20"])
@pytest.mark.parametrize("width", ["1", "1/8", "1/50"])
@pytest.mark.parametrize("s", [-7.5, 0.0, 1.0, 40.0])
def test_an_upper_bound_of_a_law_that_is_cut_or_begins(at: str, width: str, s: float) -> None:
    cut = Cut(Fraction(at), Fraction(width))
    whole = mixture(1.1, 0.004)
    for of in (replace(whole, cut=cut), replace(whole, rise=cut)):
        upper = log_upper(of.floats(), s)
        assert upper is not None
        assert log_lower(of.floats(), s) is None
        with ctx.workprec(128):
            value = of.value(Fraction(s) - 1).log()
        # beyond 5√2 widths χ is rounded up to the first term of its series, by 1/50 at most
        far = s == 40 if of.rise is None else at == "20"
        most = "0.02" if far else "1e-10"
        assert value < arb(upper) < value + arb(most)


def test_a_guard_is_left_out_where_it_hardly_matters() -> None:
    cut = Cut(Fraction(8), Fraction(1), guarded=True)
    floats = replace(mixture(1.1, 0.004), cut=cut).floats()
    upper = log_upper(floats, 3.0)
    assert upper is not None
    assert upper == log_upper(replace(floats, guard=math.inf), 3.0)
    assert log_upper(replace(floats, guard=2.0), 3.0) is None


def test_a_moment_beside_mpmath() -> None:
    floats = mixture(0.6, 0.01).floats()
    with mpmath.workdps(30):
        mu, q = 1 / mpmath.mpf("0.6"), mpmath.mpf("0.01")

        def term(x: mpmath.mpf) -> mpmath.mpf:
            w = 1 - q + q * mpmath.exp(mu * x - mu * mu / 2)
            return mpmath.npdf(x) * w ** mpmath.mpf("2.5")

        value = mpmath.log(mpmath.quad(term, range(-12, 20)))
        lower, upper = log_lower(floats, 2.5), log_upper(floats, 2.5)
        assert lower is not None
        assert upper is not None
        assert lower < value < upper < lower + 1e-10


def test_tilts_beyond_floats_are_left_to_others() -> None:
    floats = mixture(1.1, 0.004).floats()
    assert log_upper(floats, 1e15) is None
    assert log_lower(floats, 1e15) is None


@pytest.mark.parametrize("c", [Fraction(-3), Fraction(-1, 2), Fraction(0), Fraction(7, 3)])
def test_upper_bounds_of_both_orders_of_a_pair(c: Fraction) -> None:
    for of in (mixture(0.8, 0.01), replace(mixture(0.8, 0.01), mixed_first=False)):
        with ctx.workprec(96):
            value = of.value(c).log()
            assert value < of.log_upper(c) < value + arb("1e-10")

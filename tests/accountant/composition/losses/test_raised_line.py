"""Moments from nodes above the real axis, beside those from nodes on it and beside mpmath."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from flint import ctx

from accountant.composition.fourier.pair import transform
from accountant.composition.losses.raised_line import RaisedLine, raised_line
from accountant.composition.losses.transform import MixtureTransform
from accountant.core.adjacency import Adjacency
from accountant.errors import UndecidedError
from accountant.mechanisms import Gaussian, PoissonSubsampled

STEP = Fraction(5, 64)


def mixture(sigma: str, q: str) -> MixtureTransform:
    release = PoissonSubsampled(Gaussian(standard_deviation=sigma), q)
    found = transform(release.worst_case(Adjacency.ADD_REMOVE).remove[0])
    assert isinstance(found, MixtureTransform)
    return found


def raised(of: MixtureTransform, s: Fraction) -> RaisedLine:
    return raised_line(of.pair, of.sampling_prob, of.floats(), s)


@pytest.mark.parametrize(("sigma", "q"), [("0.6", "1e-4"), ("0.3", "1/2"), ("20", "9/10")])
@pytest.mark.parametrize("s", [Fraction(0), Fraction(1, 3), Fraction(5), Fraction(61, 2)])
@pytest.mark.parametrize("precision", [64, 160])
def test_the_ratios_are_those_from_the_axis(
    sigma: str, q: str, s: Fraction, precision: int
) -> None:
    of = mixture(sigma, q)
    with ctx.workprec(precision):
        found = raised(of, s).line(STEP, 120)
        other = of._quadrature(s, float(120 * STEP)).line(STEP, 120)
        assert all(a.overlaps(b) for a, b in zip(found, other, strict=True))
        widest = max(float(a.real.rad() + a.imag.rad()) for a in found)
        assert widest < 2.0 ** (8 - precision)


def test_a_ratio_far_out_beside_mpmath() -> None:
    of, s, t = mixture("1.1", "0.004"), Fraction(7, 2), 300 * STEP
    with ctx.workprec(96):
        found = raised(of, s).line(STEP, 301)[300]
    with mpmath.workdps(40):
        mu, share = 1 / mpmath.mpf("1.1"), mpmath.mpf("0.004")

        def moment(at: mpmath.mpc) -> mpmath.mpc:
            def term(x: mpmath.mpf) -> mpmath.mpc:
                z = mpmath.mpc(x, 1)
                w = 1 - share + share * mpmath.exp(mu * z - mu * mu / 2)
                return mpmath.exp(at * mpmath.log(w) - z * z / 2)

            return mpmath.quad(term, range(-14, 19))

        true = moment(mpmath.mpc(s, t)) / moment(mpmath.mpc(s, 0)).real
        for ball, value in ((found.real, true.real), (found.imag, true.imag)):
            assert abs(mpmath.mpf(float(ball.mid())) - value) < mpmath.mpf(10) ** -16
            assert float(ball.rad()) < 1e-26


def test_too_many_terms_are_refused() -> None:
    with pytest.raises(UndecidedError, match="Ask for a larger relative_width"):
        raised(mixture("0.6", "1e-4"), Fraction(5)).line(STEP, 10**6)

"""Sampled Laplace noise on a line: its transform and its fall, against mpmath and a grid."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flint import acb
from mpmath import mp, mpc, mpf

from dpassay.accountant.composition.losses.laplace import SampledLaplaceTransform
from dpassay.accountant.mechanisms.additive.laplace import Laplace
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.mechanisms.wrappers.sampling import PoissonSubsampled
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.questions import profile

LAWS = [("1", "0.01"), ("1/10", "1/2"), ("3", "0.3")]
TILTS = [Fraction(5, 2), Fraction(-5)]
PRECISION = 70


def moment(distance: str, q: str, s: mpc) -> mpc:
    """Return E_B[w^s] by mpmath's quadrature of the definition."""
    tau, share = (mpf(Fraction(text).numerator) / Fraction(text).denominator for text in
                  (distance, q))  # fmt: skip

    def density(x: mpf) -> mpc:
        return mp.exp(-x) / 2 * (1 - share + share * mp.exp(2 * x - tau)) ** s

    below, above = ((1 - share + share * mp.exp(end)) ** s / 2 for end in (-tau, tau))
    return below + mp.exp(-tau) * above + mp.quad(density, [0, tau / 2, tau])


@pytest.mark.parametrize("mixed_first", [True, False])
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("c", TILTS)
def test_ratios_contain_those_of_mpmath_and_do_not_exceed_the_fall(
    law: tuple[str, str], c: Fraction, mixed_first: bool
) -> None:
    loss = SampledLaplaceTransform(exact(law[0]), exact(law[1]), mixed_first)
    step, count = Fraction(2), 4
    s = float(c + 1 if mixed_first else -c)
    with mp.workdps(25), ctx.workprec(PRECISION):
        found, fall = loss.line(c, step, count), loss.decay(c)
        whole = moment(*law, mpc(s))
        for j, value in list(enumerate(found))[1::2]:
            turn = 2 * j if mixed_first else -2 * j
            known = moment(*law, mpc(s, turn)) / whole
            near = acb(mp.nstr(known.real, 20), mp.nstr(known.imag, 20))
            assert abs(value - near) < 1e-17
            assert abs(value).rad() < 1e-15
            assert mp.log(abs(known)) <= fall.log_ratio(2.0 * j) + 1e-18


@pytest.mark.parametrize("relation", ["remove", "add"])
def test_many_have_twelve_digits_and_agree_with_a_grid(relation: str) -> None:
    mechanism = Composed(PoissonSubsampled(Laplace(1), "0.01"), 1000)
    options = {"adjacency": "add-remove", "direction": relation}
    fine = profile.epsilon(mechanism, "1e-6", relative_width="1e-12", **options)  # type: ignore[arg-type]
    grid = profile.epsilon(mechanism, "1e-6", relative_width="1e-3", method="grid", **options)  # type: ignore[arg-type]
    assert fine.overlaps(grid)
    assert fine.relative_width is not None
    assert fine.relative_width <= Fraction(1, 10**12)


@pytest.mark.parametrize("q", ["1e-13", "1e-17", "1e-30"])
def test_tiny_samples_fall_as_small_ones_do_at_the_same_turns(q: str) -> None:
    """The loss is about q(e^l − 1): its turns and their bound have nothing of q but the unit."""
    tau, small = exact("0.7"), exact("1e-6")
    length = 2 * math.sinh(0.7)
    falls = [
        SampledLaplaceTransform(tau, share, True).decay(Fraction(-1, 2)).log_ratio(turn)
        for share in (small, exact(q))
        for turn in [4.0 / (length * float(share))]
    ]
    assert falls[0] < -0.05
    assert falls[1] == pytest.approx(falls[0], rel=1e-3)

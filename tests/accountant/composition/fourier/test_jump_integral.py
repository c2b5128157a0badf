"""Losses that decide alone: what cuts take away in closed form."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from dpassay.accountant.composition.fourier import estimates as saddle
from dpassay.accountant.composition.fourier.engine import FOURIER
from dpassay.accountant.composition.fourier.jumps import (
    beyond,
    cut_for,
    deciding_cut,
    jump_integral,
)
from dpassay.accountant.composition.fourier.measure import (
    Kernel,
    Loss,
    cut_off,
    integral,
    lost_masses,
)
from dpassay.accountant.composition.fourier.saddle import Strip
from dpassay.accountant.composition.losses.bounds import Mixture
from dpassay.accountant.composition.losses.transform import Cut, MixtureTransform
from dpassay.accountant.composition.product import Product
from dpassay.accountant.core.adjacency import Adjacency, Direction
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.mechanisms import Gaussian, PoissonSubsampled
from dpassay.accountant.numbers.exact import exact
from tests.accountant.composition.fourier.test_jumps import cut_mixtures
from tests.quick import slow

BITS = 48
PRECISION = 110
TILT = 20.0


def one_release(sigma: str, q: str) -> Product:
    """A composition of one: there is a closed form beside the contour."""
    mechanism = PoissonSubsampled(Gaussian(standard_deviation=sigma), q)
    (found,) = mechanism.worst_case(Adjacency.ADD_REMOVE).pairs(Direction.REMOVE)
    return Product(((found, 1),), FOURIER)


@pytest.mark.parametrize(
    ("kernel", "strip"),
    [
        (Kernel.CALL, saddle.CALL),
        (Kernel.ABOVE_P, saddle.ABOVE_P),
        (Kernel.ABOVE_Q, saddle.ABOVE_Q),
    ],
)
def test_one_release_in_parts(kernel: Kernel, strip: Strip) -> None:
    """The integral below the cut, and what is beyond it, against the closed form."""
    pair = one_release("1", "0.3")
    ((one, _),) = pair.factors
    at, bits = exact("3.5", "epsilon"), 24
    with ctx.workprec(PRECISION):
        tails = one.tails(at)
        known = {
            Kernel.CALL: one.hockey_stick(at),
            Kernel.ABOVE_P: tails.p_above,
            Kernel.ABOVE_Q: tails.q_above * at.ball().exp(),
        }[kernel]
        found = jump_integral(FOURIER.loss(pair), kernel, strip, at, bits)
        assert found.overlaps(known)
        assert found.rel_accuracy_bits() > bits - 12


def test_what_is_beyond_a_deciding_cut_matters_and_is_known() -> None:
    loss, at = FOURIER.loss(one_release("3", "0.0001")), exact("0.01", "epsilon")
    log_delta = -110.0
    cut = deciding_cut(loss, 0.01, log_delta - BITS * math.log(2), TILT)
    with ctx.workprec(PRECISION):
        ((one, _),) = one_release("3", "0.0001").factors
        known = one.hockey_stick(at)
        more = beyond(loss, cut, Kernel.CALL, at, known, BITS)
        assert known * arb(2) ** -20 < more < known
        assert more.rel_accuracy_bits() > 20


@pytest.mark.parametrize("kernel", [Kernel.CALL, Kernel.ABOVE_P, Kernel.ABOVE_Q])
@pytest.mark.parametrize(
    ("place", "epsilon"),
    [
        *(("1", "-0.3"), ("3", "0.5"), slow("1", "0.5"), slow("3", "-0.3")),
        *(slow("-1", "0"), slow("2.5", "2"), slow("4", "0"), slow("4", "2")),
    ],
)
def test_beyond_a_cut_anywhere(kernel: Kernel, place: str, epsilon: str) -> None:
    """The enclosure of ∫ φ(1 − χ) g also where outcomes beyond the cut do not decide."""
    ((part, _),) = FOURIER.loss(one_release("0.8", "0.1")).factors
    assert isinstance(part, MixtureTransform)
    cut = Cut(Fraction(place), Fraction(1, 4))
    whole, at = Loss(((part, 1),)), exact(epsilon, "epsilon")
    kept = Loss(((replace(part, cut=cut), 1),))
    with mp.workdps(30):
        share, mu, growth = mpf("0.1"), mpf(1) / mpf("0.8"), mp.exp(mpf(epsilon))

        def term(x: mpf) -> mpf:
            w = 1 - share + share * mp.exp(mu * x - mu * mu / 2)
            gain = {
                Kernel.CALL: max(w - growth, mpf(0)),
                Kernel.ABOVE_P: w if w > growth else mpf(0),
                Kernel.ABOVE_Q: growth if w > growth else mpf(0),
            }[kernel]
            return mp.npdf(x) * mp.erfc((mpf(place) - x) * 4 / mp.sqrt(2)) / 2 * gain

        odds = (growth - 1 + share) / share
        edge = mp.log(odds) / mu + mu / 2 if odds > 0 else mpf(-12)
        known = mp.quad(term, [max(edge, -12), max(edge, -12) + 3, 8, 16])
    with ctx.workprec(PRECISION):
        found = beyond(whole, kept, kernel, at, arb(0), BITS)
        assert found.overlaps(arb(mp.nstr(known, 20), 1e-15))
        assert found < 1.0000001 * max(1, float(growth))


@pytest.mark.parametrize("epsilon", ["0", slow("0.02"), slow("0.3")])
@pytest.mark.parametrize("kernel", [Kernel.CALL, Kernel.ABOVE_P, Kernel.ABOVE_Q])
def test_below_a_cut_where_losses_decide_a_line_agrees_with_that_of_all(
    kernel: Kernel, epsilon: str
) -> None:
    ((pair, _),) = one_release("0.9", "0.003").factors
    loss, at, strip = (
        FOURIER.loss(Product(((pair, 400),), FOURIER)),
        exact(epsilon),
        Strip(max(kernel.poles), math.inf, kernel.poles),
    )
    cut = cut_for(loss, strip, float(at), BITS)
    with ctx.workprec(PRECISION):
        whole = integral(loss, kernel, strip, at, BITS)
        found = integral(cut, kernel, strip, at, BITS)
        assert not found.overlaps(whole)
        found += beyond(loss, cut, kernel, at, found, BITS)
        assert found.overlaps(whole)
        assert found.rel_accuracy_bits() > BITS - 14


def test_no_loss_outweighs_all_others_below_zero() -> None:
    with pytest.raises(UndecidedError, match="No single loss"):
        cut_for(FOURIER.loss(one_release("1", "0.3")), saddle.CALL, -0.01, BITS)


def test_what_is_negligible_is_only_bounded() -> None:
    loss = FOURIER.loss(one_release("1", "0.3"))
    cut = cut_off(loss, 60.0)
    with ctx.workprec(PRECISION):
        found = beyond(loss, cut, Kernel.CALL, exact("3.5", "epsilon"), arb(1), BITS)
        assert found.contains(0)
        assert found < arb(2) ** -BITS
        assert not lost_masses(cut)[0] < found.mid()


@given(
    mixture=cut_mixtures(0.0625, 0.125, 0.25),
    scale=st.floats(0.1, 30.0),
    away=st.floats(0.5, 60.0),
    turn=st.floats(0.0, 1e4),
    height=st.floats(1e-4, 1.0),
)
@settings(max_examples=80)
def test_on_a_line_above_the_integrand_stays_below_its_geometric_bound(
    mixture: Mixture, scale: float, away: float, turn: float, height: float
) -> None:
    """f = φχ|w|^s e^{τ arg w} on a line at some height."""
    height = min(height, mixture.largest_shift)
    s = scale * mixture.cut / (mixture.mu * math.exp(mixture.log_share + 0.5 * mixture.mu))
    high = mixture.cut + away * mixture.width
    _, rate = mixture.rates(-40.0, high, s, turn, height)
    x = high + np.geomspace(1e-6, 1e4, 3000)

    def values(at: np.ndarray) -> np.ndarray:
        size, angle = mixture.at_angle(at, mixture.mu * height)
        return mixture.bell(at) + s * size + turn * angle

    allowed = values(np.array([high]))[0] - rate * (x - high)
    found = values(x)
    assert np.all(found <= allowed + 1e-9 * (1 + np.abs(found) + s + turn))

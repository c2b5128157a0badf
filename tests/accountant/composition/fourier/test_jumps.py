"""Rare large losses taken apart from small ones: their transforms, lines and integrals."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy.special import log_ndtr

from dpassay import estimate_epsilon
from dpassay.accountant.composition.choose import smooth
from dpassay.accountant.composition.fourier.engine import FOURIER
from dpassay.accountant.composition.fourier.measure import Loss, cut_off
from dpassay.accountant.composition.losses.bounds import Mixture
from dpassay.accountant.composition.losses.transform import MixtureTransform
from dpassay.accountant.core.adjacency import Adjacency, Direction
from dpassay.accountant.core.arrays import Array
from dpassay.accountant.mechanisms import Composed, Gaussian, PoissonSubsampled
from dpassay.accountant.questions import profile
from tests.accountant.composition.two_releases import two_releases
from tests.near import narrow
from tests.quick import slow

WIDTH, COARSE = Fraction(1, 10**9), Fraction(1, 10**5)
BITS = 48
PRECISION = 110


def loss_of(*parts: tuple[str, str, int]) -> Loss:
    mechanism = Composed(
        [
            Composed(PoissonSubsampled(Gaussian(standard_deviation=sigma), q), count)
            for sigma, q, count in parts
        ]
    )
    (found,) = mechanism.worst_case(Adjacency.ADD_REMOVE).pairs(Direction.REMOVE)
    product = smooth(found)
    assert product is not None
    return FOURIER.loss(product)


@pytest.mark.parametrize(
    ("parts", "delta", "epsilon"),
    [
        slow((("1.668", "0.002014", 182),), "2.58e-72", "4.59777725"),
        slow((("1", "1e-4", 10000),), "1e-8", "0.062303267"),
        slow((("0.5897", "1.804e-6", 99048),), "8.89e-6", "0.0061045829"),  # a mixture of both
    ],
)
def test_epsilon_is_enclosed(
    parts: tuple[tuple[str, str, int], ...], delta: str, epsilon: str
) -> None:
    ((sigma, q, count),) = parts
    mechanism = Composed(PoissonSubsampled(Gaussian(standard_deviation=sigma), q), count)
    found = profile.epsilon(mechanism, delta, adjacency="add-remove", relative_width=WIDTH)
    assert str(found).startswith(epsilon)
    assert narrow(found, WIDTH)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sigma", "q", "delta"), [("0.4173", "4.194e-05", "0.0006"), ("45.24", "1.744e-06", "1e-4")]
)
def test_a_delta_above_that_of_zero_has_an_epsilon_below_zero(
    sigma: str, q: str, delta: str
) -> None:
    """1 − δ = e^ε (1 − H′(−ε)), H′ the profile of the reversed pair by an integral in mpmath."""
    mechanism = Composed(PoissonSubsampled(Gaussian(standard_deviation=sigma), q), 2)
    found = profile.signed_epsilon(mechanism, delta, adjacency="add-remove", relative_width=COARSE)
    assert found.upper < 0
    assert narrow(found, COARSE)
    ends = []
    with mp.workdps(30):
        for end in (found.lower, found.upper):
            least = min(
                mp.exp(mpf(str(end)))
                * (1 - two_releases(sigma, q, str(-end), mixed_first=mixed_first))
                for mixed_first in (True, False)
            )
            ends.append(1 - least)
    assert ends[0] > mpf(delta) > ends[1]


def cut_mixtures(*widths: float) -> st.SearchStrategy[Mixture]:
    """Return mixtures with a cut of one of the widths."""
    return st.builds(
        Mixture,
        mu=st.floats(0.02, 2.0),
        log_share=st.floats(-14.0, -1.0),
        log_rest=st.just(-1e-7),
        cut=st.floats(6.0, 30.0),
        width=st.sampled_from(widths),
    )


@given(
    mixture=cut_mixtures(0.03, 0.125, 0.5),
    scale=st.floats(0.1, 3.0),
    away=st.floats(0.5, 20.0) | st.floats(40.0, 60.0),
)
@settings(max_examples=100)
def test_beyond_the_cut_the_integrand_stays_below_its_geometric_bound(
    mixture: Mixture, scale: float, away: float
) -> None:
    s = scale * mixture.cut / (mixture.mu * math.exp(mixture.log_share + 0.5 * mixture.mu))
    high = mixture.cut + away * mixture.width
    _, rate = mixture.rates(-40.0, high, s, 0.0)
    x = high + np.geomspace(1e-6, 1e4, 4000)

    def log_size(x: Array) -> Array:
        kept = log_ndtr((mixture.cut - x) / mixture.width)
        size: Array = -0.5 * x * x + kept + s * mixture.log_density(x)
        return size

    values = log_size(x)
    allowed = log_size(np.array([high])) - rate * (x - high)
    assert np.all(values <= allowed + 1e-9 * (1 + np.abs(values)))


@pytest.mark.parametrize("s", [slow(0.0), slow(5.0), 20.0])
def test_the_rule_beside_two_cuts(s: float) -> None:
    """The transform of large losses against a fine sum in mpmath."""
    loss = cut_off(loss_of(("1", "0.01", 2)), 40.0, 30.0)
    ((part, _),) = loss.factors
    assert isinstance(part, MixtureTransform)
    assert part.cut is not None
    large = replace(part, rise=replace(part.cut, at=Fraction(4), width=Fraction(1, 8)))
    with ctx.workprec(PRECISION):
        found = large.value(Fraction(s) - 1)
    with mp.workdps(40):
        q, cut = mpf("0.01"), part.cut

        def kept(x: mpf) -> mpf:
            place, width = mpf(cut.at.numerator) / cut.at.denominator, mpf(float(cut.width))
            above = mp.erfc((4 - x) * 8 / mp.sqrt(2)) / 2
            return above * mp.erfc((x - place) / (width * mp.sqrt(2))) / 2

        def term(x: mpf) -> mpf:
            return mp.npdf(x) * kept(x) * (1 - q + q * mp.exp(x - mpf(1) / 2)) ** mpf(s)

        known = mp.fsum(term(mpf(v) / 64) for v in range(2 * 64, 40 * 64)) / 64
        assert abs(mpf(found.str(35, radius=False)) / known - 1) < mpf(10) ** -25
    assert found.rel_accuracy_bits() > PRECISION - 20


@pytest.mark.parametrize(
    ("sigma", "q", "count", "delta"),
    [("1", "1e-4", 100_000, "1e-8"), ("0.5897", "1.8e-6", 99_048, "1e-5")],
)
def test_an_estimate_of_rare_large_losses_is_what_is_enclosed(
    sigma: str, q: str, count: int, delta: str
) -> None:
    """The estimate is in floats; two signs of balls enclose."""
    mechanism = Composed(PoissonSubsampled(Gaussian(sigma), q), count)
    found = profile.epsilon(mechanism, delta, adjacency=Adjacency.ADD_REMOVE, relative_width="1e-6")
    guess = estimate_epsilon(mechanism, float(delta), adjacency=Adjacency.ADD_REMOVE)
    assert float(found.lower) < guess < float(found.upper)

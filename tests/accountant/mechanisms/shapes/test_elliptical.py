from __future__ import annotations

import itertools
from fractions import Fraction

from flint import ctx
from hypothesis import given
from hypothesis import strategies as st

from accountant.geometry.covariances import Diagonal
from accountant.geometry.spaces import Box
from accountant.mechanisms.shapes.elliptical import EllipticalGaussian
from accountant.mechanisms.shapes.general_gaussian import GeneralGaussian

SENSITIVITIES = st.lists(
    st.fractions(min_value=Fraction(1, 20), max_value=9, max_denominator=20), min_size=1, max_size=5
)


@given(SENSITIVITIES, st.fractions(min_value=Fraction(1, 9), max_value=4, max_denominator=9))
def test_the_corners_of_the_box_have_norm_mu(sensitivities: list[Fraction], mu: Fraction) -> None:
    total = sum(sensitivities, Fraction(0))
    noise = Diagonal([entry * total / mu**2 for entry in sensitivities])
    general = GeneralGaussian(noise, Box(sensitivities))
    mechanism = EllipticalGaussian(sensitivities, mu)
    assert general.exact_gaussian_mu(None) == mechanism.exact_gaussian_mu(None)
    with ctx.workprec(128):
        for mine, other in zip(mechanism.variances(), general.variances(), strict=True):
            assert mine.overlaps(other)
        assert mechanism.gaussian_mu(None).overlaps(general.gaussian_mu(None))


@given(SENSITIVITIES, st.lists(st.integers(1, 30), min_size=5, max_size=5))
def test_no_other_independent_noise_has_less_total_variance(
    sensitivities: list[Fraction], shape: list[int]
) -> None:
    # any variances, scaled so that the corners have norm 1
    raw = [Fraction(entry) for entry in itertools.islice(shape, len(sensitivities))]
    scale = sum((s**2 / v for s, v in zip(sensitivities, raw, strict=True)), Fraction(0))
    assert sum(sensitivities, Fraction(0)) ** 2 <= scale * sum(raw, Fraction(0))

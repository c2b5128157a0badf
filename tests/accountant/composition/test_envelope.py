"""The envelope of the two directions of a sample: its tails in floats, and its compositions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import ctx
from scipy.signal import fftconvolve
from scipy.stats import norm

from dpassay.accountant.composition.adaptive import Adaptive, sequences
from dpassay.accountant.composition.lattice import Place, above
from dpassay.accountant.composition.lattice import bracket_bounds as bounds
from dpassay.accountant.composition.product import Product
from dpassay.accountant.composition.tails import in_balls, releases
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import asked_width, refined
from dpassay.accountant.mechanisms import Composed, Gaussian, Laplace, SampledWithoutReplacement
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.pairs.subsampled import EnvelopePair, envelope

SAMPLES = [
    SampledWithoutReplacement(Gaussian(standard_deviation=1), 1, 4),
    SampledWithoutReplacement(Gaussian(standard_deviation="1/2"), 1, 1000),
    SampledWithoutReplacement(Laplace(scale=1), 3, 10),
]


def enveloped(mechanism: Mechanism) -> EnvelopePair:
    """Return the envelope of both directions under replace-one."""
    pair = envelope(mechanism.worst_case(Adjacency.REPLACE_ONE).pairs(None))
    assert isinstance(pair, EnvelopePair)
    return pair


def test_a_width_is_that_of_the_family() -> None:
    both = Composed((Laplace(1), Gaussian(2)))
    pair = enveloped(SampledWithoutReplacement(both, 1, 4))
    assert asked_width(pair) is None
    width = Fraction(1, 10**5)
    assert asked_width(refined(pair, width)) == width
    assert asked_width(refined(refined(pair, width), None)) is None


@pytest.mark.parametrize("mechanism", SAMPLES)
def test_tails_in_floats_are_those_in_balls(mechanism: SampledWithoutReplacement) -> None:
    pair = enveloped(mechanism)
    ((release, _),) = releases([(pair, 1)])
    assert not release.slow
    # at 0, where the profiles cross, the event is that of either pair
    losses = np.array([-3.0, -0.7, -0.1, -1e-6, 1e-6, 0.05, 0.1, 0.2, 0.7, 3.0])
    found, exact_tails = release.survival(losses), in_balls(pair)(losses)
    for name in ("above_p", "above_q"):
        error = getattr(found, "error" + name[5:]) + getattr(exact_tails, "error" + name[5:])
        assert np.all(abs(getattr(found, name) - getattr(exact_tails, name)) <= error)
    # the grid's upper law is not above the one that balls make
    place = Place(-2.0, 1 / 64, np.arange(257))
    fast, slow = above(release.survival, place), above(in_balls(pair), place)
    assert fast.masses.sum() <= slow.masses.sum() * (1 + 1e-9)


def by_fft(sigma: float, share: float, count: int, epsilon: float) -> float:
    """Return δ of `count` envelopes, the losses above 0 of one direction and below of the other."""
    mu, step, reach = 1 / sigma, 1e-3, 6.0

    def first(l: np.ndarray) -> np.ndarray:  # noqa: E741
        t = 1 + np.expm1(l) / share
        inside = np.where(t > 0, t, 1.0)
        log = np.log(inside)
        value = norm.cdf(mu / 2 - log / mu) - inside * norm.cdf(-mu / 2 - log / mu)
        return np.where(t > 0, share * value, -np.expm1(l))

    half = round(reach / step)
    losses = step * np.arange(-half, half + 1)
    profile = np.where(
        losses >= 0, first(losses), -np.expm1(losses) + np.exp(losses) * first(-losses)
    )
    slopes = np.diff(profile) / np.diff(np.exp(losses))
    masses = law = np.exp(losses[1:-1]) * np.diff(slopes)
    for _ in range(count - 1):
        law = fftconvolve(law, masses)
    sums = count * losses[1] + step * np.arange(len(law))
    return float(law @ np.maximum(0.0, -np.expm1(epsilon - sums)))


@pytest.mark.parametrize(
    ("population", "count", "epsilon", "before"),
    [(4, 3, "1/2", 0.07368489980243868), (10, 10, "1/2", 0.04425822175912752)],
)
def test_the_upper_end_is_the_composed_envelope(
    population: int, count: int, epsilon: str, before: float
) -> None:
    """`before` is the upper end of a grid of 4096 points with tails in balls, 2048 cells a loss."""
    step = SampledWithoutReplacement(Gaussian(standard_deviation=1), 1, population)
    (pair,) = Composed(step, count).worst_case(Adjacency.REPLACE_ONE).pairs(None)
    assert isinstance(pair, Product)
    assert isinstance(pair.engine, Adaptive)
    reference = by_fft(1.0, 1 / population, count, float(Fraction(epsilon)))
    with ctx.workprec(128):
        upper = float(bounds(pair, exact(epsilon), 1 << 14)[1])
        lower = max(float(bounds(each, exact(epsilon), 1 << 14)[0]) for each in sequences(pair))
    assert lower <= upper <= before
    assert math.isclose(upper, reference, rel_tol=2e-5)

"""Tables of losses above a pair and below it, for compositions of noise that falls with a norm."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from dpassay.accountant.composition.choose import product
from dpassay.accountant.core.pair import MirroredPair
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms import Composed, Gaussian, KNorm, PoissonSubsampled
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.pairs.falling_noise import FallingNoisePair, RadialNoisePair, RoundNoisePair
from dpassay.accountant.pairs.finite import LossTables
from dpassay.accountant.questions import guarantees, profile

HALF = exact("1/2")
WIDTH = Fraction(1, 10**5)


@pytest.mark.parametrize(
    ("pair", "known", "width"),
    [
        (RoundNoisePair(HALF, 2, Fraction(2)), KNorm(2, 2, power=2), 1.1),
        (FallingNoisePair("exp(-r)", HALF, 2, "l1"), KNorm(2, 2, "l1"), 1.02),
    ],
    ids=["gaussian", "laplace"],
)
def test_compositions_of_tables_against_closed_forms(
    pair: MirroredPair, known: KNorm, width: float
) -> None:
    """δ of two releases lies between that of both tables."""
    tables = LossTables(pair, 12)
    low, high = (product([(each, 2)]).to_width(WIDTH) for each in (tables.below[0], tables.above))
    for epsilon in ("1/3", "1"):
        found = profile.delta(Composed(known, 2), epsilon)
        least, most = (each.hockey_stick(exact(epsilon)) for each in (low, high))
        assert float(least.lower()) <= float(found.upper)
        assert float(found.lower) <= float(most.upper())
        assert float(most.upper()) <= width * float(least.lower())


@pytest.mark.parametrize(
    "pair",
    [
        RadialNoisePair(HALF, 3, Fraction(3)),
        RadialNoisePair(exact("1e-6"), 3, Fraction(2)),
        FallingNoisePair("exp(-r) if r < 3 else 0", HALF, 2, "l1"),
    ],
)
def test_tables_lie_above_and_below(pair: MirroredPair) -> None:
    """At places and between them, beyond the last one, and for ε < 0."""
    tables = LossTables(pair, 12)
    (below,), places = tables.below, tables.places
    between = [(a + b) / 2 for a, b in pairwise(places)]
    for place in (-places[3], *places[::4], *between[::4], 2 * places[-1]):
        epsilon = ExactReal.of_rational(place)
        here = pair.hockey_stick(epsilon)
        assert not below.hockey_stick(epsilon) > here
        assert not tables.above.hockey_stick(epsilon) < here


def _simulated(noise: KNorm, count: int, epsilon: float) -> tuple[float, float]:
    """Return δ from draws, and how far off it is with a chance below 1e-6 (Hoeffding)."""
    size, p, b = 100_000, float(noise.power), float(noise.scale)
    order = {"l1": 1, "l2": 2, "linf": np.inf}[noise.norm]
    rng, loss = np.random.default_rng(5), np.zeros(size)
    for _ in range(count):
        x = noise.sample(size, rng=rng)
        far = np.linalg.norm(x + noise.worst_shift(), ord=order, axis=1)
        loss += (far / b) ** p - (np.linalg.norm(x, ord=order, axis=1) / b) ** p
    excess = np.maximum(-np.expm1(epsilon - loss), 0)
    return float(excess.mean()), math.sqrt(math.log(2e6) / (2 * size))


@pytest.mark.parametrize(
    ("noise", "width"),
    [
        (KNorm(2, 3, "linf", power=2), 1.01),
        pytest.param(KNorm(2, 10, power="3/2"), 1.02, marks=pytest.mark.slow),
    ],
)
def test_several_releases_against_draws(noise: KNorm, width: float) -> None:
    found = profile.delta(Composed(noise, 5), 1)
    about, off = _simulated(noise, 5, 1.0)
    assert float(found.lower) - off <= about <= float(found.upper) + off
    assert float(found.upper) <= width * float(found.lower)


def test_what_is_known_of_several_releases() -> None:
    one = KNorm(2, 3, "l1", power=3)
    several = Composed([one, one, Gaussian(3)])
    epsilon = profile.epsilon(several, "1e-6")
    assert profile.epsilon(one, "1e-6").upper < epsilon.lower
    assert epsilon.upper < epsilon.lower * Decimal("1.01")
    assert profile.epsilon(several, 0).lower.is_infinite()
    assert guarantees.rho(several).lower.is_infinite()
    with pytest.raises(NotApplicableError, match="only enclosed"):
        PoissonSubsampled(one, "1/2")

"""Bounds of products with rank-one noise: they contain what is known, and say what they reach."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from flint import ctx

from dpassay.accountant.composition.product import Product
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.mechanisms import (
    Composed,
    Laplace,
    PoissonSubsampled,
    RankOneGaussian,
    Staircase,
)
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.pairs.rank_one.heavy import Heavy
from dpassay.accountant.questions import profile
from tests.quick import quick

NOISE = RankOneGaussian(dimension=10, sigma_star=100)
SAMPLE = PoissonSubsampled(NOISE, "0.1")
MIXED = SAMPLE.worst_case(Adjacency.ADD_REMOVE)


@pytest.mark.parametrize("pair", [NOISE.worst_case(None).remove[0], MIXED.remove[0], MIXED.add[0]])
@pytest.mark.parametrize("epsilon", quick(["-1", "3"]))
def test_one_release_is_between_the_bounds(pair: Pair, epsilon: str) -> None:
    alone = Product(((pair, 1),), Heavy())
    with ctx.workprec(53):
        value = pair.hockey_stick(exact(epsilon))
    assert alone.hockey_stick(exact(epsilon)).contains(value)
    assert not alone.bound(exact(epsilon)) < value


@pytest.mark.parametrize(
    ("mechanism", "relative_width"),
    quick(
        [
            (Composed([Staircase(epsilon=1, gamma="0.3"), NOISE], 10), "1e-9"),
            (Composed(NOISE, 10**6), "1e-9"),
            (Composed([NOISE, Laplace(scale=4)], 1000), "0.99"),  # small losses have no lower bound
        ]
    ),
)
def test_a_narrow_width_is_refused_with_both_bounds(
    mechanism: Mechanism, relative_width: str
) -> None:
    with pytest.raises(UndecidedError, match="Reached epsilon in") as caught:
        profile.epsilon(mechanism, "1e-6", relative_width=Fraction(relative_width))
    ends = re.search(r"\[(\S+), (\S+)\]", str(caught.value))
    assert ends is not None
    low, high = float(ends[1]), float(ends[2])
    assert 0 < low < high
    assert caught.value.reached == pytest.approx((high - low) / low, rel=1e-4, abs=0)


def test_without_a_width_both_bounds_are_the_answer() -> None:
    found = profile.epsilon(Composed(RankOneGaussian(3, 50), 4), "1e-6")
    assert 25.2 < found.lower < found.upper < 36


def test_many_losses_below_a_threshold_are_bounded_without_those_above_it() -> None:
    """The law is the same whether k releases are one factor or two, and one is known exactly."""
    sampled = PoissonSubsampled(RankOneGaussian(dimension=5, sigma_star=400), "0.01")
    found = profile.delta(Composed(sampled, 10), 4, adjacency="add-remove")
    assert Decimal("3.7e-4") < found.lower < found.upper < Decimal("5.5e-4")
    (pair,) = sampled.worst_case(Adjacency.ADD_REMOVE).remove
    split = Product(((pair, 4), (pair, 6)), Heavy())
    assert split.bound(exact(4)) < 5.5e-4
    with ctx.workprec(53):
        single = pair.hockey_stick(exact(4))
    assert single <= Product(((pair, 1),), Heavy()).bound(exact(4)) < 1.5 * single


@pytest.mark.slow
@pytest.mark.parametrize(("dimension", "sigma_star", "epsilon"), [(5, 400, 1), (10, 10**4, 4)])
def test_drawn_losses_agree_with_the_bounds(dimension: int, sigma_star: int, epsilon: int) -> None:
    """The mean of (1 − e^{ε−L})⁺ over draws; five of its deviations: one false alarm in 10⁶."""
    rng, draws, kappa = np.random.default_rng(5), 100_000, sigma_star**-0.5
    loss = np.zeros(draws)
    for _ in range(10):
        own, normal = abs(rng.standard_normal(draws)), rng.standard_normal(draws)
        cosine = normal / np.sqrt(normal**2 + rng.chisquare(dimension - 1, draws))
        other = np.sqrt(own**2 + 2 * kappa * own * cosine + kappa**2)
        loss += (dimension - 1) * np.log(other / own) + (other**2 - own**2) / 2
    shown = np.maximum(0, -np.expm1(epsilon - loss))
    room = 5 * shown.std() / draws**0.5
    found = profile.delta(Composed(RankOneGaussian(dimension, sigma_star), 10), epsilon)
    assert float(found.lower) - room <= shown.mean() <= float(found.upper) + room

"""Sampling without replacement: every pair of neighbours by brute force, closed forms, refusals."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpassay.accountant.core.adjacency import Direction
from dpassay.accountant.errors import AdjacencyError, BetweenError
from dpassay.accountant.mechanisms import (
    Gaussian,
    Laplace,
    RandomizedResponse,
    SampledWithoutReplacement,
)
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import guarantees, profile, tradeoff


def test_closed_form() -> None:
    # δ(ε) = γ δ_M(ln(1 + (e^ε − 1)/γ)) for ε ≥ 0
    step = SampledWithoutReplacement(Laplace(scale=1), 1, 4)
    for epsilon in (0.1, 0.3):
        inner = math.log1p(math.expm1(epsilon) * 4)
        expected = -math.expm1((inner - 1) / 2) / 4
        found = profile.delta(step, epsilon)
        assert abs(float(found.lower) - expected) < 1e-15
    assert str(profile.delta(step, epsilon=math.log1p(math.expm1(1) / 4) + 1e-9)) == "0"


def test_every_pair_of_neighbours_by_brute_force() -> None:
    # one randomised bit of the sampled record (m = 1) of n = 3: all databases of bits
    odds = math.e
    keep = odds / (1 + odds)
    step = SampledWithoutReplacement(RandomizedResponse(epsilon=1), 1, 3)

    def law(bits: tuple[int, ...]) -> float:
        return sum(keep if bit else 1 - keep for bit in bits) / 3

    for epsilon in (-0.3, 0.0, 0.1, 0.25):
        worst = 0.0
        for bits in itertools.product((0, 1), repeat=3):
            other = (1 - bits[0], *bits[1:])
            p, q = law(bits), law(other)
            factor = math.exp(epsilon)
            value = max(p - factor * q, 0) + max(1 - p - factor * (1 - q), 0)
            worst = max(worst, value)
        found = profile.delta(step, epsilon, adjacency="replace-one")
        assert abs(float(found.upper) - worst) < 1e-14


def test_refusals() -> None:
    step = SampledWithoutReplacement(Gaussian(standard_deviation=1), 1, 10)
    with pytest.raises(AdjacencyError, match="replace-one"):
        profile.delta(step, 1, adjacency="add-remove")


STEP = SampledWithoutReplacement(Gaussian(standard_deviation=1), 1, 10)


def test_neighbours_between_the_extremes_may_have_larger_divergences() -> None:
    """The bounds are those of the pair with the largest profile: its moments, by quadrature."""
    share, order = 0.1, 3.0
    x = np.linspace(-40, 40, 400_001)
    density = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    w = 1 - share + share * np.exp(x - 0.5)
    # ∫ (e^{(a−1)ε} + e^{−aε}) H over ε > 0 of the mixture against N(0, 1), in closed form inside
    inner = w**order - 1 - order * (w - 1) + w ** (1 - order) - 1 + (order - 1) * (w - 1)
    whole = float((density * inner)[w > 1].sum())
    least = float((density * (w**order - 1)).sum())
    envelope = math.log1p(whole) / (order - 1)
    with pytest.raises(BetweenError, match="some neighbours attain one end") as caught:
        guarantees.renyi(STEP, order, relative_width=Fraction(1, 10**9))
    assert guarantees.renyi(STEP, order).overlaps(Interval(caught.value.lower, caught.value.upper))
    assert float(caught.value.lower) == pytest.approx(math.log1p(least) / (order - 1), rel=1e-9)
    assert float(caught.value.lower) < envelope < float(caught.value.upper)
    wide = guarantees.renyi(STEP, order, relative_width=Fraction(99, 100))
    assert wide.lower <= caught.value.lower < caught.value.upper <= wide.upper
    one = guarantees.renyi(STEP, order, direction=Direction.REMOVE)
    assert float(one.lower) == pytest.approx(float(caught.value.lower), rel=1e-15)
    everything = SampledWithoutReplacement(Gaussian(standard_deviation=1), 10, 10)
    assert str(guarantees.renyi(everything, 2)) == "1"


def test_a_straight_line_shortens_the_trade_off_function() -> None:
    """β is that of the envelope: at most the smaller curve, and less where both cross."""
    width = Fraction(1, 10**9)
    assert str(tradeoff.beta(STEP, "0.3", relative_width=width))[:10] == "0.66171798"
    total = guarantees.total_variation(STEP)
    with pytest.raises(BetweenError, match="Reached beta") as caught:
        tradeoff.beta(STEP, "0.5", relative_width=width)
    assert abs(caught.value.lower - (Decimal("0.5") - total.lower)) < Decimal("1e-12")
    with pytest.raises(BetweenError, match="Reached power") as again:
        tradeoff.power(STEP, "0.5", relative_width=width)
    assert abs(again.value.upper + caught.value.lower - 1) < Decimal("1e-12")
    curves = [
        tradeoff.beta(STEP, "0.5", direction=direction, relative_width=width).lower
        for direction in Direction
    ]
    assert abs(min(curves) - caught.value.upper) < Decimal("1e-8")

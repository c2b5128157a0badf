"""Least μ of unbounded losses beside mpmath: suprema over half-lines, found on their own."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from mpmath import mp

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms import (
    Composed,
    Gaussian,
    Laplace,
    PoissonSubsampled,
    RandomizedResponse,
    RankOneGaussian,
)
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.pairs.subsampled import GaussianMixturePair, Mixture, mixture
from dpassay.accountant.questions.gaussian_bounds import gaussian_bounds
from dpassay.accountant.questions.least_mu import bounds, least_mu
from tests.accountant.questions.least_mu.scores import score
from tests.quick import quick

WIDTH = Fraction(1, 10**6)
_DIGITS = 40


def highest(function: Callable[[Any], Any], low: Any, high: Any) -> Any:
    """Return the largest value, by golden sections beside the best point of a grid."""
    points = mp.linspace(low, high, 17)
    values = [function(x) for x in points]
    best = values.index(max(values))
    low, high = points[max(best - 1, 0)], points[min(best + 1, 16)]
    share = (mp.sqrt(5) - 1) / 2
    inner = [high - share * (high - low), low + share * (high - low)]
    found = [function(x) for x in inner]
    for _ in range(25):
        if found[0] > found[1]:
            high, inner[1], found[1] = inner[1], inner[0], found[0]
            inner[0] = high - share * (high - low)
            found[0] = function(inner[0])
        else:
            low, inner[0], found[0] = inner[0], inner[1], found[1]
            inner[1] = low + share * (high - low)
            found[1] = function(inner[1])
    return max(*values, *found)


def contained(mechanism: Mechanism, relation: str | None, true: Any) -> None:
    """Require the best upper μ to be narrow, and to contain a number that is known to 1e-8."""
    found = gaussian_bounds(mechanism, adjacency=relation, down_to="1e-4").upper
    assert (found.relative_width or 0) <= WIDTH
    assert mp.mpf(str(found.lower)) <= true * (1 + mp.mpf(10) ** -8)
    assert true <= mp.mpf(str(found.upper))


def replaced(q: Any, mu: Any, x: Any) -> Any:
    """Return what (x, ∞) needs of (1 − q)N(0, 1) + qN(±μ, 1)."""
    above = mp.ncdf(-x) * (1 - q)
    return score(above + q * mp.ncdf(-x - mu)) - score(above + q * mp.ncdf(mu - x))


@pytest.mark.parametrize(
    ("q", "deviation", "far"),
    quick([("0.6", 1, 60), ("0.9", 1, 20), ("0.99", 4, 60)], 0),
)
def test_replaced_records_of_many_samples(q: str, deviation: int | str, far: int) -> None:
    with mp.workdps(_DIGITS):
        share, shift = mp.mpf(q), 1 / mp.mpf(Fraction(deviation).numerator)
        shift *= Fraction(deviation).denominator
        true = highest(lambda x: replaced(share, shift, x), mp.zero, mp.mpf(far))
        assert true > shift
        contained(PoissonSubsampled(Gaussian(deviation), q), "replace-one", true)


@pytest.mark.parametrize("q", quick(["0.001", "0.1", "0.49"], 0))
def test_replaced_records_of_few_samples_need_what_they_do_in_the_limit(q: str) -> None:
    step = PoissonSubsampled(Gaussian(2), q)
    assert str(gaussian_bounds(step, adjacency="replace-one", down_to="1e-4").upper) == "0.5"
    many = Composed(step, 16)
    pairs = many.worst_case(Adjacency.REPLACE_ONE).pairs(None)
    assert str(least_mu(pairs, WIDTH)) == "2"
    with mp.workdps(_DIGITS):  # from below: half-lines far out need nearly 1/2, and no more
        needs = [replaced(mp.mpf(q), mp.mpf(1) / 2, mp.mpf(x)) for x in (10, 100, 1000, 10**4)]
        assert needs == sorted(needs)
        assert 0.499 < needs[-1] < 0.5


def with_laplace(mu: Any, t: Any, c: Any) -> Any:
    """Return what {L > c} needs of N(μ, 1) and a Laplace law moved by t scales."""

    def above(side: int) -> Any:
        def tail(loss: Any) -> Any:
            return mp.ncdf((loss - c) / mu + side * mu / 2)

        def inside(x: Any) -> Any:
            return mp.exp(-x if side > 0 else x - t) * tail(t - 2 * x)

        ends = (tail(t), tail(-t))
        most, least = ends if side > 0 else ends[::-1]
        return (most + mp.exp(-t) * least + mp.quad(inside, [0, t])) / 2

    return score(above(-1)) - score(above(1))


@pytest.mark.parametrize(
    ("deviation", "scale", "far"), quick([(2, 2, 20), (10, 1, 12), (1, "1/3", 40)], 0)
)
def test_laplace_noise_beside_gaussian_noise(deviation: int, scale: int | str, far: int) -> None:
    both = Composed([Gaussian(deviation), Laplace(scale)])
    with mp.workdps(16):
        distance = mp.mpf(Fraction(scale).denominator) / Fraction(scale).numerator
        true = highest(
            lambda c: with_laplace(mp.one / deviation, distance, c), mp.zero, mp.mpf(far)
        )
        assert true > mp.one / deviation
        contained(both, None, true)


def test_randomized_response_beside_gaussian_noise() -> None:
    both = Composed([Gaussian(1), RandomizedResponse(1)])

    def needs(c: Any) -> Any:
        odds = mp.e / (1 + mp.e)
        tails = [
            odds * mp.ncdf(1 - c + half) + (1 - odds) * mp.ncdf(-1 - c + half)
            if half > 0
            else odds * mp.ncdf(-1 - c + half) + (1 - odds) * mp.ncdf(1 - c + half)
            for half in (mp.mpf(-1) / 2, mp.mpf(1) / 2)
        ]
        return score(tails[0]) - score(tails[1])

    with mp.workdps(_DIGITS):
        contained(both, "replace-one", highest(needs, mp.zero, mp.mpf(20)))


def test_no_mu_is_enough_for_noise_of_one_rank() -> None:
    with pytest.raises(NotApplicableError, match="No mu is enough"):
        gaussian_bounds(RankOneGaussian(3, 10))


def test_mixtures_of_several_laws_are_enclosed() -> None:
    p = mixture([Fraction(1, 6), Fraction(5, 6)], [exact("0.3"), exact(3)])
    weights = [Fraction(5, 13), Fraction(6, 13), Fraction(2, 13)]
    q = mixture(weights, [exact("-2.9"), exact("-2.2"), exact("-0.6")])

    def needs(x: Any) -> Any:
        return score(above(q, x)) - score(above(p, x))

    def above(side: Mixture, x: Any) -> Any:
        return mp.fsum(mp.mpf(w.numerator) / w.denominator * mp.ncdf(m.mpf() - x) for w, m in side)

    pair = GaussianMixturePair(p, q)
    found = bounds([pair, pair.reverse()], Fraction(1, 10**5))
    with mp.workdps(_DIGITS):
        true = highest(needs, mp.mpf(0), mp.mpf(12))
        assert mp.mpf(str(found.lower)) <= true <= mp.mpf(str(found.upper))

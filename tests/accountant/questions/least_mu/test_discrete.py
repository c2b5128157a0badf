"""Least μ of discrete Gaussian noise beside mpmath: plain sums, test by test."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from mpmath import mp

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.mechanisms import (
    Composed,
    DiscreteGaussian,
    Gaussian,
    Laplace,
    PoissonSubsampled,
)
from dpassay.accountant.questions.least_mu import bounds, least_mu
from tests.accountant.questions.least_mu.scores import score
from tests.quick import quick

WIDTH = Fraction(1, 10**6)


def masses(parameter: Any, count: int, reach: int) -> dict[int, Any]:
    """Return the masses of the sum of `count` variables, by plain convolution."""
    one = {z: mp.exp(-mp.mpf(z * z) / (2 * parameter)) for z in range(-reach, reach + 1)}
    total = mp.fsum(one.values())
    law = {0: mp.one}
    for _ in range(count):
        after: dict[int, Any] = {}
        for a, p in law.items():
            for b, q in one.items():
                after[a + b] = after.get(a + b, mp.zero) + p * q / total
        law = after
    return law


def needs(law: dict[int, Any], shift: int, last: int) -> list[Any]:
    """Return μ_k for k from the middle up to `last`."""
    above, tails = mp.zero, {}
    for z in sorted(law, reverse=True):
        above += law[z]
        tails[z] = above
    scores = {k: score(tails[k]) for k in range(1, last + 1)}
    scores |= {1 - k: -value for k, value in scores.items()}
    return [scores[k] - scores[k - shift] for k in range(shift // 2 + 1, last + 1)]


def upper(mechanism: Mechanism, relation: Adjacency | None = None) -> Any:
    """Return the best upper μ, required to be narrow, as an interval of mpmath."""
    found = least_mu(mechanism.worst_case(relation).pairs(None), WIDTH)
    assert (found.relative_width or 0) <= WIDTH
    return mp.mpf(str(found.lower)), mp.mpf(str(found.upper))


@pytest.mark.parametrize(
    ("parameter", "shift", "last"),
    [("1/100", 1, 5), ("1/4", 1, 12), ("1", 1, 40), ("2", 3, 40), ("4", 1, 60), ("25", 4, 160)],
)
def test_one_release(parameter: str, shift: int, last: int) -> None:
    value = Fraction(parameter)
    with mp.workdps(40):
        v = mp.mpf(value.numerator) / value.denominator
        found = needs(masses(v, 1, last + 200), shift, last)
        low, high = upper(DiscreteGaussian(parameter, shift))
        assert low <= max(found) <= high
        assert max(found) > shift / mp.sqrt(v)
        assert all(one > other for one, other in pairwise(found))  # the middle one is the largest


@pytest.mark.parametrize(("parameter", "count", "last"), [("4", 3, 60)])
def test_sums_of_releases(parameter: str, count: int, last: int) -> None:
    value = Fraction(parameter)
    with mp.workdps(40):
        v = mp.mpf(value.numerator) / value.denominator
        found = needs(masses(v, count, last), count, last)
        low, high = upper(Composed(DiscreteGaussian(parameter), count))
        assert low <= max(found) <= high
        assert max(found) > mp.sqrt(count / v)


def test_much_noise_needs_hardly_more_than_normal_noise() -> None:
    low, high = upper(DiscreteGaussian(4_000_000))
    assert high < mp.mpf("0.0005") * (1 + mp.mpf(10) ** -6)
    assert low > mp.mpf("0.0005")


def sampled(law: dict[int, Any], shift: int, q: Any, reach: int) -> list[Any]:
    """Return what {Z ≥ k} needs of a sample, for |k| up to `reach`."""
    tails, lower, above, below = {}, {}, mp.zero, mp.zero
    for z in sorted(law, reverse=True):
        above += law[z]
        tails[z] = above
    for z in sorted(law):
        lower[z] = below  # of less than z
        below += law[z]

    def t(k: int, share: Any) -> Any:
        high = (1 - share) * tails[k] + share * tails[k - shift]
        low = (1 - share) * lower[k] + share * lower[k - shift]
        return score(high) if high < low else -score(low)

    return [t(k, mp.zero) - t(k, q) for k in range(-reach, reach + 1)]


@pytest.mark.parametrize(
    ("parameter", "shift", "q"), [("1/4", 1, "0.9"), ("1", 1, "0.9"), ("4", 2, "0.999")]
)
def test_samples_lie_between_their_limit_and_the_release(
    parameter: str, shift: int, q: str
) -> None:
    value = Fraction(parameter)
    sample = PoissonSubsampled(DiscreteGaussian(parameter, shift), q)
    with mp.workdps(60):
        v = mp.mpf(value.numerator) / value.denominator
        true = max(sampled(masses(v, 1, 160), shift, mp.mpf(q), 60))
        assert true > shift / mp.sqrt(v)
        pairs = sample.worst_case(Adjacency.ADD_REMOVE).pairs(None)
        ends = bounds(pairs, WIDTH)
        _, whole = upper(DiscreteGaussian(parameter, shift))  # a union has a radius of 30 bits
        assert (
            mp.mpf(str(ends.lower))
            <= true
            <= mp.mpf(str(ends.upper))
            <= whole * (1 + mp.mpf(2) ** -28)
        )


@pytest.mark.parametrize(
    ("mechanism", "known"),
    quick(
        [
            (Composed(DiscreteGaussian("1/4"), 2), r"\[2\.828.*, 3\."),
            (Composed([DiscreteGaussian(4), Gaussian(1)]), r"\[1\.118.*, 1\.1204"),
            (Composed([DiscreteGaussian(4), Laplace(1)]), r"\[1\.03006.*, 1\.147"),
        ],
        0,
    ),
)
def test_what_is_known_is_said_where_no_narrow_enclosure_is(
    mechanism: Mechanism, known: str
) -> None:
    with pytest.raises(UndecidedError, match=known):
        upper(mechanism)

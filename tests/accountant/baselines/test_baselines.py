"""Other accountants: their closed forms, and that no bound is below the exact value."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from dpassay.accountant import baselines
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError, NotApplicableError
from dpassay.accountant.mechanisms import (
    Channel,
    Composed,
    Gaussian,
    Laplace,
    PoissonSubsampled,
    RandomizedResponse,
    Tabulated,
)
from dpassay.accountant.questions import profile

SUBSAMPLED = PoissonSubsampled(Gaussian(standard_deviation="1.1"), "256/60000")


@pytest.mark.parametrize(
    ("mechanism", "count", "delta"),
    [
        (RandomizedResponse(epsilon="0.1"), 100, "1e-6"),
        (Gaussian(standard_deviation=10), 50, "1e-5"),
        (Laplace(scale=10), 30, "1e-4"),
        (Composed([Laplace(scale=10), RandomizedResponse(epsilon="0.2")]), 10, "1e-5"),
    ],
)
def test_every_bound_is_at_least_the_exact_value(
    mechanism: Mechanism, count: int, delta: str
) -> None:
    rows = {row.name: row for row in baselines.compare(mechanism, count, delta)}
    exact = rows["exact"].epsilon
    assert exact is not None
    for row in rows.values():
        assert row.epsilon is not None, row
        if row.is_bound:
            assert row.epsilon.upper >= exact.lower, row
    names = ("renyi-optimal", "renyi-improved", "renyi-classic")
    uppers = [rows[name].epsilon.upper for name in names]  # type: ignore[union-attr]  # all are known here
    assert uppers == sorted(uppers)
    assert not rows["central-limit"].is_bound


def test_kairouz_is_exact_for_randomized_response() -> None:
    for epsilon in ("0", "1/3", "2"):
        whole = Composed(RandomizedResponse(epsilon="0.1"), 40)
        known = baselines.kairouz_delta([("0.1", 0, 40)], epsilon)
        assert known.overlaps(profile.delta(whole, epsilon))
    mixed = Composed([Composed(RandomizedResponse(epsilon="0.1"), 7), RandomizedResponse("0.35")])
    known = baselines.kairouz([("0.1", 0, 7), ("0.35", 0)], "1e-3")
    assert known.overlaps(profile.epsilon(mixed, "1e-3"))


def test_kairouz_closed_sum_for_equal_releases() -> None:
    # KOV Theorem 3.3: the least δ at (k − 2i)ε, with a mass δ₀ at infinity in each release
    k, eps, own, i = 9, 0.2, 1e-3, 2
    total = (
        sum(
            math.comb(k, j) * (math.exp((k - j) * eps) - math.exp((k - 2 * i + j) * eps))
            for j in range(i)
        )
        / (1 + math.exp(eps)) ** k
    )
    expected = 1 - (1 - own) ** k * (1 - total)
    found = baselines.kairouz_delta([(0.2, 1e-3, k)], exact_multiple(k - 2 * i))
    assert abs(float(found.lower) - expected) < 1e-13


def exact_multiple(steps: int) -> float:
    return steps * 0.2


def test_closed_forms() -> None:
    epsilon, delta = baselines.basic([("0.1", "1e-6", 3), ("0.2", 0)])
    assert (str(epsilon), str(delta)) == ("0.500000000000", "0.00000300000000000")
    spread = 0.01 * math.sqrt(2000 * math.log(1e6))
    for sharp, mean in ((False, 10 * math.expm1(0.01)), (True, 10 * math.tanh(0.005))):
        found = baselines.advanced_epsilon([("0.01", 0, 1000)], "1e-6", sharp=sharp)
        assert abs(float(found.lower) - spread - mean) < 1e-14
    assert baselines.advanced_epsilon([("0.1", "1e-3", 2)], "1e-3").lower == float("inf")
    assert str(baselines.advanced_epsilon([("0.1", "1e-3", 2)], "2e-3")) == "0.200000000000"


def test_central_limit_is_labelled_by_its_error() -> None:
    exact = baselines.central_limit(Gaussian(standard_deviation=10), 100, "1e-6")
    assert exact.error is not None
    assert abs(exact.error.upper) < 1e-5
    below = baselines.central_limit(Laplace(scale=1), 4, "1e-300")
    assert below.error is not None
    assert below.error.lower > 1  # the loss of 4 releases is at most 4
    assert float(below.epsilon.lower) > 4
    training = baselines.central_limit(
        SUBSAMPLED, 7032, "1e-5", adjacency="add-remove", with_error=False
    )
    expected = 256 / 60000 * math.sqrt(7032 * math.expm1(1 / 1.1**2))
    assert abs(float(training.mu.lower) - expected) < 1e-13


def test_central_limit_takes_the_worst_pair() -> None:
    rows = [[1 / 2, 1 / 4, 1 / 4], [1 / 4, 1 / 2, 1 / 4], [1 / 10, 1 / 5, 7 / 10]]
    channel = Channel([["1/2", "1/4", "1/4"], ["1/4", "1/2", "1/4"], ["1/10", "1/5", "7/10"]])
    found = baselines.central_limit(channel, 100, "1e-3", with_error=False)
    squares = [
        sum((p - q) * math.log(p / q) for p, q in zip(one, other, strict=True))
        for one, other in itertools.combinations(rows, 2)
    ]
    assert float(found.mu.lower) == pytest.approx(10 * math.sqrt(max(squares)), rel=1e-13, abs=0)


def test_refusals() -> None:
    with pytest.raises(InvalidInputError, match="at least one release"):
        baselines.basic([])
    with pytest.raises(InvalidInputError, match=r"releases\[0\].count=0 ≥ 1"):
        baselines.basic([("0.1", 0, 0)])
    with pytest.raises(InvalidInputError, match="epsilon"):
        baselines.kairouz([("-0.1", 0)], "1e-3")
    with pytest.raises(InvalidInputError, match="conversion='best'"):
        baselines.moments(Laplace(scale=1), 1, "1e-5", conversion="best")
    infinite = Tabulated(p=["1/2", "1/2", 0], q=[0, "1/2", "1/2"])
    with pytest.raises(NotApplicableError, match="finite Rényi"):
        baselines.moments(infinite, 1, "1e-5")
    with pytest.raises(NotApplicableError, match="finite divergences"):
        baselines.central_limit(infinite, 1, "1e-5")


@pytest.mark.parametrize("orders", [None, "2", 3])
def test_orders_that_are_no_list(orders: Any) -> None:
    with pytest.raises(InvalidInputError, match=f"Expected orders={orders!r} to be a list"):
        baselines.moments(SUBSAMPLED, 10, "1e-5", adjacency="add-remove", orders=orders)

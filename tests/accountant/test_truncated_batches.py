"""Poisson batches that are cut: both ends against laws written by hand, and against a peer."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

import dpassay
from tests.near import narrow

WHERE: dict[str, Any] = {"sampling": "truncated-poisson", "delta": "1e-5"}


def test_a_limit_that_is_never_reached_changes_nothing() -> None:
    cut = dpassay.dpsgd("1.1", 3, 30, epochs=2, truncated_batch_size=31, **WHERE)
    whole = dpassay.dpsgd("1.1", 3, 30, epochs=2, delta="1e-5")
    assert cut.epsilon == whole.epsilon
    assert "of more than 31 records 31 are kept" in str(cut)


def test_a_limit_that_is_hardly_ever_reached_costs_nearly_nothing() -> None:
    cut = dpassay.dpsgd("1.1", 256, 60000, epochs=30, truncated_batch_size=400, **WHERE)
    whole = dpassay.dpsgd("1.1", 256, 60000, epochs=30, delta="1e-5")
    assert cut.epsilon.overlaps(whole.epsilon)
    assert narrow(cut.epsilon, Fraction(1, 10**5))
    named = dpassay.epsilon(cut.mechanism, "1e-5", adjacency="add-remove")
    assert named.lower > cut.epsilon.upper  # no untruncated run of sensitivity 1


def hockey_stick(
    first: dict[float, float], second: dict[float, float], sigma: float, epsilon: float
) -> float:
    """Return it between two mixtures of normal laws with deviation sigma."""

    def density(law: dict[float, float], x: float) -> float:
        return sum(float(norm.pdf(x, at, sigma)) * mass for at, mass in law.items())

    def excess(x: float) -> float:
        return max(0.0, density(first, x) - math.exp(epsilon) * density(second, x))

    ends = [*first, *second]
    low, high = min(ends) - 12 * sigma, max(ends) + 12 * sigma
    return quad(excess, low, high, limit=500, points=sorted(set(ends)), epsabs=1e-12)[0]


def cut_sums(
    common: int, q: float, most: int, other: float, new: float | None
) -> dict[float, float]:
    """Return the law of the sum of a cut batch: `common` gradients, and a new record's."""
    law: dict[float, float] = {}
    for j in range(common + 1):
        mass = math.comb(common, j) * q**j * (1 - q) ** (common - j)
        alone = min(j, most) * other
        taken = 0.0 if new is None else q * min(1.0, most / (j + 1))
        law[alone] = law.get(alone, 0.0) + mass * (1 - taken)
        if new is not None:
            together = min(j, most - 1) * other + new
            law[together] = law.get(together, 0.0) + mass * taken
    return law


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(
    size=st.integers(2, 8),
    most=st.integers(1, 8),
    sigma=st.sampled_from(["0.7", "1.5", "4"]),
    other=st.sampled_from([-1.0, 0.0, 1.0]),
    delta=st.sampled_from(["0.1", "0.01", "1e-4"]),
)
def test_no_small_dataset_is_above_and_zeros_are_not_below(
    size: int, most: int, sigma: str, other: float, delta: str
) -> None:
    """δ of one step, by quadrature; to 1e-9, as its absolute error is below 1e-10."""
    batch = max(1, size // 2)
    run = dpassay.dpsgd(
        sigma,
        batch,
        size,
        steps=1,
        delta=delta,
        sampling="truncated-poisson",
        truncated_batch_size=most,
    )
    q = batch / size
    with_new = cut_sums(size, q, most, other, 1.0)
    without = cut_sums(size, q, most, other, None)
    above = max(
        hockey_stick(with_new, without, float(sigma), float(run.epsilon.upper)),
        hockey_stick(without, with_new, float(sigma), float(run.epsilon.upper)),
    )
    assert above <= float(delta) + 1e-9
    if other == 0 and run.epsilon.lower > 0:
        below = hockey_stick(with_new, without, float(sigma), float(run.epsilon.lower))
        assert below >= float(delta) * (1 - 1e-9) - 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "peer"), [(256, "8.92767807"), (330, "1.63860953")])
def test_the_upper_end_is_near_that_of_a_peer(limit: int, peer: str) -> None:
    """`PLDAccountant().compose(TruncatedSubsampledGaussianDpEvent(60000, 256/60000, limit, 1.1),
    7032).get_epsilon(1e-5)` of dp-accounting 0.6.0, an upper bound of another kind."""
    cut = dpassay.dpsgd("1.1", 256, 60000, epochs=30, truncated_batch_size=limit, **WHERE)
    assert cut.epsilon.lower < Decimal(peer)
    assert cut.epsilon.upper < Decimal(peer) * Decimal("1.002")


def test_what_does_not_fit_is_one_line() -> None:
    with pytest.raises(dpassay.InvalidInputError, match="Expected truncated_batch_size with"):
        dpassay.dpsgd(1, 10, 100, epochs=1, **WHERE)
    with pytest.raises(dpassay.InvalidInputError, match="Expected sampling='truncated-poisson'"):
        dpassay.dpsgd(1, 10, 100, epochs=1, delta="1e-5", truncated_batch_size=20)
    with pytest.raises(dpassay.InvalidInputError, match="truncated_batch_size=0 ≥ 1"):
        dpassay.dpsgd(1, 10, 100, epochs=1, truncated_batch_size=0, **WHERE)


def test_noise_for_a_budget() -> None:
    found = dpassay.dpsgd_noise(1, 10, 100, epochs=1, truncated_batch_size=60, **WHERE)
    assert Decimal("0.99") <= found.epsilon.upper <= 1

"""Sampled releases with little noise, and long lists of noise."""

from decimal import Decimal
from fractions import Fraction

import mpmath as mp
import pytest

from dpassay import (
    Composed,
    Gaussian,
    Laplace,
    PoissonSubsampled,
    epsilon,
)
from tests.near import narrow


def sampled(noise: Gaussian, q: str, count: int) -> Composed:
    return Composed(PoissonSubsampled(noise, q), count)


def sum_over_draws(sigma: str, q: str, count: int, eps: mp.mpf) -> mp.mpf:
    """Return Σ_k Bin(T, q)(k) H of k Gaussian releases, with mpmath."""
    mu, q_, total = 1 / mp.mpf(sigma), mp.mpf(q), mp.mpf(0)
    for k in range(min(count, 200) + 1):
        weight = mp.binomial(count, k) * q_**k * (1 - q_) ** (count - k)
        at = eps - k * mp.log(q_) - (count - k) * mp.log(1 - q_)
        if k == 0:
            total += weight * max(mp.mpf(0), 1 - mp.exp(at))
            continue
        m = mu * mp.sqrt(k)
        total += weight * (mp.ncdf(m / 2 - at / m) - mp.exp(at) * mp.ncdf(-m / 2 - at / m))
    return total


@pytest.mark.parametrize(
    ("sigma", "count"),
    [("0.25", 1000), pytest.param("0.2", 100, marks=pytest.mark.slow)],
)
def test_little_noise(sigma: str, count: int) -> None:
    """Contours agree with a grid, and with the sum over the draws, which is below δ."""
    mechanism = sampled(Gaussian(sigma), "0.01", count)
    found = epsilon(mechanism, "1e-5", adjacency="add-remove")
    assert narrow(found, Fraction(1, 10**6))
    coarse = epsilon(
        mechanism, "1e-5", adjacency="add-remove", method="grid", relative_width="1e-4"
    )
    assert found.overlaps(coarse)
    with mp.workdps(60):
        assert sum_over_draws(sigma, "0.01", count, mp.mpf(str(found.upper))) <= mp.mpf("1e-5")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sigma", "expected", "width"),
    [("0.12", "798.6456", "1e-3"), ("0.08", "1924.7450", "1e-2")],
)
def test_hardly_any_noise_has_what_a_grid_has(sigma: str, expected: str, width: str) -> None:
    """The expected numbers are estimates in floats, of contours that are too long for a proof."""
    found = epsilon(sampled(Gaussian(sigma), "0.01", 1000), "1e-5", adjacency="add-remove")
    assert found.lower <= Decimal(expected) <= found.upper
    assert narrow(found, Fraction(width))


@pytest.mark.slow
def test_next_to_no_noise_is_bounded_by_divergences_of_orders_near_one() -> None:
    """25 draws of 1000 have about this probability, and each adds 1/2σ² and some deviations."""
    found = epsilon(sampled(Gaussian("0.02"), "0.01", 1000), "1e-5", adjacency="add-remove")
    assert 25 * 1250 < found.upper < 2 * 25 * 1250


def test_long_lists_of_laplace_scales() -> None:
    found = epsilon(Composed([Laplace(scale=5 + i / 7) for i in range(30)]), delta="1e-6")
    assert narrow(found, Fraction(1, 10**5))
    near = epsilon(Composed([Laplace(scale=f"{35 + i}/7") for i in range(30)]), delta="1e-6")
    assert found.lower <= near.upper
    assert near.lower <= found.upper

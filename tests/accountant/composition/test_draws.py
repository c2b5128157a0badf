"""Sampled releases with little noise, long lists of noise, and bounds that no answer may exceed."""

from fractions import Fraction

import mpmath as mp
import pytest

from dpassay import (
    Channel,
    Composed,
    Gaussian,
    Laplace,
    PoissonSubsampled,
    delta,
    dpsgd_noise,
    epsilon,
)
from tests.quick import quick


def sampled(noise: Gaussian | Laplace, q: str, count: int) -> Composed:
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
    ("sigma", "q", "count", "expected"),
    [
        ("0.01", "0.01", 10, "15238.7954"),
        ("0.01", "0.01", 2, "10171.0329"),
        ("0.01", "0.01", 1000, "129943.569"),
        ("0.015", "0.01", 1000, "57696.650"),
        ("0.02", "0.01", 1000, "32406.523"),
        ("0.05", "0.01", 1000, "5090.3745"),
    ],
)
def test_tiny_noise(sigma: str, q: str, count: int, expected: str) -> None:
    found = epsilon(sampled(Gaussian(sigma), q, count), "1e-5", adjacency="add-remove")
    assert found.relative_width is not None
    assert found.relative_width < Fraction(1, 10**6)
    middle = (Fraction(found.lower) + Fraction(found.upper)) / 2
    assert abs(middle / Fraction(expected) - 1) < Fraction(1, 10**7)
    with mp.workdps(60):
        low, high = (mp.mpf(str(end)) for end in (found.lower, found.upper))
        assert sum_over_draws(sigma, q, count, low) >= mp.mpf("1e-5")
        above = sum_over_draws(sigma, q, count, high)
        assert above <= mp.mpf("1e-5")


@pytest.mark.parametrize(
    ("noise", "q", "count", "at"),
    quick(
        [
            (Gaussian("0.1"), "0.01", 10, "160"),
            (Gaussian("0.09"), "0.1", 2, "150"),
            (Laplace("0.05"), "0.01", 2, "20"),
            (Laplace("0.05"), "0.5", 3, "50"),
        ],
        1,
        2,
        3,
    ),
)
def test_both_ends_contain_what_other_engines_enclose(
    noise: Gaussian | Laplace, q: str, count: int, at: str
) -> None:
    mechanism = sampled(noise, q, count)
    for direction in ("remove", "add"):
        found = delta(mechanism, at, adjacency="add-remove", direction=direction)
        other = delta(
            mechanism, at, adjacency="add-remove", direction=direction, method="grid",
            relative_width="1e-3",
        )  # fmt: skip
        assert found.lower <= other.upper
        assert other.lower <= found.upper


def test_a_profile_that_is_not_told_from_zero_has_no_sign_yet() -> None:
    found = epsilon(
        sampled(Gaussian("0.01"), "0.01", 10), "1e-60", adjacency="add-remove", direction="add",
        relative_width="1e-45",
    )  # fmt: skip
    with mp.workdps(90):
        low, high = (mp.mpf(str(end)) for end in (found.lower, found.upper))
        assert low <= mp.log1p(-mp.mpf("1e-60")) - 10 * mp.log(mp.mpf("0.99")) <= high


@pytest.mark.slow
def test_noise_of_a_large_epsilon() -> None:
    found = dpsgd_noise(10000, 256, 60000, delta="1e-5", epochs=30)
    assert "0.0521350" in str(found)


def test_long_lists_of_laplace_scales() -> None:
    found = epsilon(Composed([Laplace(scale=5 + i / 7) for i in range(30)]), delta="1e-6")
    assert found.relative_width is not None
    assert found.relative_width < Fraction(1, 10**5)
    near = epsilon(Composed([Laplace(scale=f"{35 + i}/7") for i in range(30)]), delta="1e-6")
    assert found.lower <= near.upper
    assert near.lower <= found.upper


def test_no_answer_is_worse_than_basic_composition() -> None:
    rows = [
        ["1/2", "1/2", 0, 0],
        ["49/100", "49/100", "1/100", "1/100"],
        ["12/25", "51/100", "1/100", 0],
    ]
    found = delta(Composed(Channel(rows), count=2), 0)
    assert Fraction(found.upper) <= Fraction("0.04")

"""The largest noisy score, with Laplace and exponential noise: against scores that are searched."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

from dpassay.accountant.mechanisms import Composed, Gaussian, ReportNoisyMax
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.questions import profile
from tests.quick import quick

CELLS = 1000
"""Of e^{−value}, each with an error of one density of at most 1 + e^d on two cells with a jump."""
TINY = Decimal("1e-9")


def exponential(k: int, *, monotone: bool = False) -> ReportNoisyMax:
    """Return the value of exponential noise of scale 2: d = 1/2."""
    return ReportNoisyMax("Exponential", 2, k, monotone=monotone, returns="value")


def excess(u: np.ndarray, moves: np.ndarray, epsilon: float) -> float:
    """Return H of index i and x = e^{−value}, of the density a_i Π_{j≠i} (1 − a_j x), a = e^u."""
    first, second = np.exp(u - u.max()), np.exp(u - u.max() + moves)
    x = (np.arange(CELLS) + 0.5) / (CELLS * first.max())

    def density(a: np.ndarray) -> np.ndarray:
        below = np.maximum(1 - np.outer(a, x), 0)
        each = [a[i] * np.prod(np.delete(below, i, 0), axis=0) for i in range(len(a))]
        return np.asarray(np.array(each) * (a.max() * x < 1))

    both = density(first) - math.exp(epsilon) * density(second)
    return float(np.maximum(both, 0).sum() / (CELLS * first.max()))


@pytest.mark.parametrize("k", quick([2, 3, 10], 1))
@pytest.mark.parametrize("epsilon", ["-3/10", "0", "2"])
@pytest.mark.parametrize("monotone", [False, True])
def test_no_scores_with_exponential_noise_show_more(k: int, epsilon: str, monotone: bool) -> None:
    high, at = float(profile.delta(exponential(k, monotone=monotone), epsilon)), float(
        Fraction(epsilon)
    )  # fmt: skip
    rng, best = np.random.default_rng(k), 0.0
    for spread, sign in ((0.3, 1), (3, 1), (3, -1)):

        def missing(z: np.ndarray, sign: int = sign) -> float:
            share = (1 + np.tanh(z[k:])) / 2 if monotone else np.tanh(z[k:])
            return -excess(z[:k], sign * share / 2, at)

        start = np.concatenate([rng.normal(scale=spread, size=k), rng.normal(size=k)])
        best = max(
            best, -minimize(missing, start, method="Nelder-Mead", options={"maxfev": 80 * k}).fun
        )
    one = np.append(0, np.full(k - 1, -50.0)), np.append(0.5 if at >= 0 else -0.5, np.zeros(k - 1))
    error = 2 * (1 + math.exp(0.5)) / CELLS
    assert best <= high + error
    assert excess(*one, at) == pytest.approx(high, abs=error)


def test_values_with_exponential_noise_are_known() -> None:
    """Several share e^{−nd}; with other noise there are two ends."""
    for count in (1, 10):
        about = Composed(exponential(3), count)
        shared = (-Decimal(count) / 2).exp()
        for epsilon in (0, 3):
            found = profile.delta(about, epsilon)
            assert abs(found.lower - (1 - shared)) < TINY
            assert found.upper - found.lower < TINY
        assert profile.epsilon(about, "1e-3").lower.is_infinite()
    mixed = profile.delta(Composed([exponential(3), Gaussian(3)]), 0)
    assert Decimal("0.40") < mixed.lower < mixed.upper < Decimal("0.48")
    assert profile.signed_epsilon(exponential(3), "1/2").upper < 0


@pytest.mark.parametrize("noise", ["Laplace", "DiscreteLaplace"])
@pytest.mark.parametrize("k", [2, 5])
def test_the_largest_loss_of_a_value_is_that_of_all_scores(noise: str, k: int) -> None:
    """Of k equal scores that fall: at and below 0 every distribution function has a factor e^d."""
    about = ReportNoisyMax(noise, 2, k, returns="value")
    assert profile.epsilon(about, 0) == Fraction(k, 2)
    most = exact(Fraction(k, 2) - Fraction(1, 100))
    below = 0.5 if noise == "Laplace" else 1 / (1 + math.exp(-0.5))
    assert float(profile.delta(about, most).lower) >= below**k * -math.expm1(-0.01) * (1 - 1e-9)


@pytest.mark.parametrize("noise", ["Laplace", "Gaussian", "Gumbel", "Exponential"])
@pytest.mark.parametrize("returns", ["value", "gap"])
def test_outputs_for_an_audit_have_the_law(noise: str, returns: str) -> None:
    """Index and number: the worst pair with exponential noise, and what is far below, are seen."""
    size, about = 20_000, ReportNoisyMax(noise, 2, 3, returns=returns)
    first, second = about.worst_answers()[-1]
    drawn = [about.outputs(x, size, rng=np.random.default_rng(5)) for x in (first, second)]
    assert all(each.shape == (size, 2) for each in drawn)
    spare = 2 * math.sqrt(math.log(2 / 1e-6) / (2 * size))
    shown = float((drawn[0][:, 1] < 1).mean() - (drawn[1][:, 1] < 1).mean())
    assert abs(shown) <= float(profile.delta(about, 0).upper) + spare
    if (noise, returns) == ("Exponential", "value"):
        assert shown == pytest.approx(-math.expm1(-0.5), abs=spare)

"""Sampled releases with little noise, long lists of noise, and profiles and tails far out."""

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import mpmath as mp
import numpy as np
import pytest

from dpassay import Composed, Gaussian, PoissonSubsampled, epsilon
from dpassay.accountant.composition.losses.bounds import Mixture, Terms, log_tilted
from dpassay.accountant.core.adjacency import Direction
from dpassay.accountant.questions import guarantees, profile
from tests.near import narrow
from tests.quick import slow


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


# Profiles and tails so far out that every release has to be a sample, with a very large loss.


NEAR = Fraction(1, 10**9)
Releases = list[tuple[str, str]]


def composed(releases: Releases) -> Composed:
    return Composed(
        [PoissonSubsampled(Gaussian(standard_deviation=sigma), q) for sigma, q in releases]
    )


def gaussian(mu: mpmath.mpf, epsilon: mpmath.mpf) -> mpmath.mpf:
    """Return H of N(μ, 1) against N(0, 1) at e^ε."""
    root = mpmath.sqrt(2)
    above = mpmath.erfc((epsilon / mu - mu / 2) / root) / 2
    return above - mpmath.exp(epsilon) * mpmath.erfc((epsilon / mu + mu / 2) / root) / 2


def bounds(releases: Releases, epsilon: int) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Bound H of the product of mixtures (1 − q)B + qA against B^n.

    With P_S that of the outcomes in which the releases S are samples, of probability p_S,
    H(Σ p_S P_S) is at least p_n H(P_n, e^ε B/p_n), and at most Σ p_S H(P_S, η_S e^ε B/p_S) for
    η_S > 0 that add up to 1.
    """
    everyone, shares = range(len(releases)), []
    with mpmath.workdps(60):
        q = [mpmath.mpf(share) for _, share in releases]
        squares = [1 / mpmath.mpf(sigma) ** 2 for sigma, _ in releases]
        little = mpmath.exp(-60)
        rest = 1 - (2 ** len(releases) - 1) * little
        for size in range(1, len(releases) + 1):
            for chosen in itertools.combinations(everyone, size):
                p = mpmath.fprod(q[i] if i in chosen else 1 - q[i] for i in everyone)
                mu = mpmath.sqrt(mpmath.fsum(squares[i] for i in chosen))
                eta = rest if size == len(releases) else little
                shares.append(p * gaussian(mu, epsilon + mpmath.log(eta / p)))
        lower = p * gaussian(mu, epsilon - mpmath.log(p))
        return lower, mpmath.fsum(shares)


@pytest.mark.parametrize(
    ("releases", "epsilon"),
    [
        ([("0.8", "0.01")] * 2, 1000),
        slow([("2", "0.001")] * 5, 10_000),
        ([("0.8", "0.01")] * 10, 10_000),
        slow([("0.8", "0.01"), ("2", "0.2"), ("0.6", "1e-4")], 3000),
    ],
)
def test_far_out_all_releases_are_samples(releases: Releases, epsilon: int) -> None:
    """The first gave no answer in minutes: rules began where there is no mass."""
    found = profile.log_delta(
        composed(releases), epsilon, adjacency="add-remove", relative_width=NEAR
    )
    assert narrow(found, NEAR)
    with mpmath.workdps(60):
        lower, upper = (mpmath.log(value) for value in bounds(releases, epsilon))
        assert upper - lower < mpmath.mpf(10) ** -15 * abs(lower)
        assert mpmath.mpf(str(found.lower)) <= upper
        assert lower <= mpmath.mpf(str(found.upper))


def test_tails_far_out() -> None:
    """P(L > ε) is q² P(l₁ + l₂ > ε − 2 ln q), l the losses of the noise, up to e^−400 of it."""
    mechanism = composed([("0.8", "0.01")] * 2)
    found = guarantees.loss_survival(
        mechanism, 1000, adjacency="add-remove", direction=Direction.REMOVE, relative_width=NEAR
    )
    with mpmath.workdps(60):
        square = 2 / mpmath.mpf("0.8") ** 2
        away = (1000 - 2 * mpmath.log(mpmath.mpf("0.01")) - square / 2) / mpmath.sqrt(square)
        tail = mpmath.mpf("0.01") ** 2 * mpmath.erfc(away / mpmath.sqrt(2)) / 2
        assert mpmath.mpf(str(found.lower)) <= tail <= mpmath.mpf(str(found.upper))


@pytest.mark.parametrize("cells", [1, 63, 4000])
@pytest.mark.parametrize("s", [40.0, -40.0])
def test_tilted_cells(s: float, cells: int) -> None:
    """∫ φ e^g over cells: the excess is of second order in the width of a cell."""
    law, angle = Mixture(1.25, math.log(0.01), math.log(0.99)), 1.2
    edges = np.linspace(-3, 60, cells + 1)
    wide, at = np.diff(edges), 0.5 * (edges[:-1] + edges[1:])
    if s > 0:
        left, right = (s * law.at_angle(ends, angle)[0] for ends in (edges[:-1], edges[1:]))
        middle, slope = 0.5 * (left + right), (right - left) / wide
    else:
        middle = s * law.at_angle(at, angle)[0]
        slope = s * law.mu * Terms.of(law, at).share(math.cos(angle))
    bound = log_tilted(edges, middle, slope)
    for cell, (left_end, right_end) in enumerate(itertools.pairwise(edges)):
        x = np.linspace(left_end, right_end, 202)
        logs = s * law.at_angle(x, angle)[0] - 0.5 * x * x - 0.5 * math.log(2 * math.pi)
        terms = 0.5 * (logs[1:] + logs[:-1])  # the mean of a log-concave or log-convex function
        integral = np.logaddexp.reduce(terms) + math.log(wide[cell] / 201)
        assert integral <= bound[cell] + 1e-3
        if cells == 4000:
            assert bound[cell] <= integral + wide[cell] ** 2 * (1 + abs(s))

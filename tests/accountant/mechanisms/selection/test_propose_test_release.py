"""Propose-test-release against sums over a fine partition, for every distance up to far ones."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import laplace

from dpassay.accountant.core.adjacency import Direction
from dpassay.accountant.errors import BetweenError, InvalidInputError
from dpassay.accountant.mechanisms import Composed, ProposeTestRelease
from dpassay.accountant.questions import guarantees, profile, tradeoff
from dpassay.verifier.claims import Relation
from dpassay.verifier.kernel import Outcome, check
from dpassay.verifier.prover import decided as certify

FALSE_ALARM = 1e-6
AT = (-1.5, -0.2, 0.0, 0.3, 0.7, 1.0, 1.4, 2.5)
CASES = [("1", "3", "1", "1"), ("2", "27/5", "3", "2"), ("1/2", "7/10", "5", "1"),
         ("3", "8", "1/2", "1/4")]  # fmt: skip


def cells(move: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the masses of Laplace noise at `move` and at 0, in cells between which L is linear."""
    edges = np.concatenate([[-np.inf], np.linspace(0, move, 20_001), [np.inf]])
    return np.diff(laplace.cdf(edges - move)), np.diff(laplace.cdf(edges))


def brute(about: ProposeTestRelease, epsilon: float) -> float:
    """Return the largest H(ε) over all distances up to 40 scales beyond the threshold."""
    tau, s = float(about.threshold), float(about.test_scale)
    p, q = cells(float(about.sensitivity / about.scale))
    factor = math.exp(epsilon)
    passes = laplace.sf(tau, scale=s)
    found = passes + max((1 - passes) * (1 - factor), 0.0)  # unstable neighbours
    chances = laplace.sf(tau - np.arange(math.ceil(tau + 40 * s)), scale=s)
    for low, high in itertools.pairwise(chances):
        for a, b in ((low, high), (high, low), (high, high)):
            noisy = np.maximum(a * p - factor * b * q, 0).sum()
            found = max(found, noisy + max(1 - a - factor * (1 - b), 0.0))
    return float(found)


@pytest.mark.parametrize("given", CASES)
def test_no_distance_is_worse(given: tuple[str, ...]) -> None:
    about = ProposeTestRelease(*given)
    for epsilon in AT:
        known = profile.delta(about, Fraction(epsilon))
        # a cell holds a rest of (its width)² at most where L crosses ε
        assert float(known) == pytest.approx(brute(about, epsilon), rel=1e-6)
        assert float(known.relative_width or 0) < 1e-9


def likely_pass_error(about: ProposeTestRelease, alpha: float, distance: int) -> float:
    """Return β(α) of the tests that say P where a number of at most c is released, c ≥ 0.

    P is one farther from unstable data than Q, which has its number `move` higher.
    """
    s, move = float(about.test_scale), float(about.sensitivity / about.scale)
    tau = float(about.threshold)
    a, b = (laplace.sf(tau - n, scale=s) for n in (distance + 1, distance))
    at = np.linspace(0.0, move + 20, 100_001)
    levels, powers = b * laplace.cdf(at - move), a * laplace.cdf(at)
    return float(1 - np.interp(alpha, levels, powers))


def test_no_distance_has_a_smaller_error() -> None:
    """Of distances between the ends H is not larger at any ε, but a test may err less at one α."""
    about = ProposeTestRelease(1, 12, 1)
    errors = [likely_pass_error(about, 0.3, n) for n in range(12, 30)]
    assert min(errors) < min(errors[0], errors[-1])
    found = tradeoff.beta(about, "3/10")
    assert tradeoff.beta(about, "3/10", direction=Direction.ADD) == found
    assert float(found.lower) <= min(errors)
    assert float(found.upper) == pytest.approx(errors[0], rel=1e-6)  # the worst end
    with pytest.raises(BetweenError):
        tradeoff.beta(about, "3/10", relative_width="1/100")


def test_a_distance_beyond_the_threshold_has_the_least_beta() -> None:
    """At α = 1/5 neighbours at the distances 23 and 22 beat those at the ends of the range."""
    about = ProposeTestRelease(2, 20, 1)
    (p, q), (a, b) = cells(1.0), laplace.sf(20 - np.array([23, 22]), scale=2)
    masses = np.array([[*(a * p), 1 - a], [*(b * q), 1 - b]])
    masses = masses[:, np.argsort(-masses[0] / masses[1])]
    level, power = masses[1].cumsum(), masses[0].cumsum()
    attained = float(1 - np.interp(0.2, level, power))
    assert attained == pytest.approx(0.44496, abs=1e-5)
    found = tradeoff.beta(about, "1/5")
    assert found.lower < Fraction(attained) < found.upper
    assert float(found.relative_width or 0) < 0.05
    _, certificate = certify(Relation(
        id="test/ptr-beta", source="test", statement="a test",
        claim=f"beta({about!r}, 1/5) >= 0.455",
    ))  # fmt: skip
    assert certificate is None or check(certificate).outcome is not Outcome.VALID


def test_the_textbook_guarantee() -> None:
    """The threshold ln(1/δ)/ε gives (2ε, δ)-DP: half of δ is enough, and 2ε is tight."""
    tau = 14
    about = ProposeTestRelease(1, tau, 1)
    tail = math.exp(-tau) / 2
    assert float(profile.delta(about, 2)) == pytest.approx(tail, rel=1e-12)
    assert float(profile.delta(about, 100)) == pytest.approx(tail, rel=1e-12)
    assert profile.epsilon(about, 0).upper.is_infinite()
    assert guarantees.rho(about).lower.is_infinite()
    # below 2 the number that passes at the threshold is worst: half of Laplace noise at ε − 1
    assert float(profile.delta(about, "3/2")) == pytest.approx(-math.expm1(-0.25) / 2, rel=1e-12)


def test_two_ends_of_several() -> None:
    about = ProposeTestRelease(2, 30, 2)
    one, three = (profile.delta(Composed(about, n), 1) for n in (1, 3))
    assert one.lower <= three.lower <= three.upper <= 1
    bound = profile.delta(Composed(about.dominated_by, 3), 1)
    assert three.upper <= Fraction(bound.upper) * Fraction(1001, 1000)
    assert profile.delta(about, 1).upper <= profile.delta(about.dominated_by, 1).upper


def test_what_is_released() -> None:
    about, size = ProposeTestRelease(2, 5, "1/2", 3), 40_000
    rng = np.random.default_rng(5)
    passed, drawn = about.release((10.0, 6), size, rng=rng).T
    passed = passed == 1
    assert not drawn[~passed].any()
    chance = laplace.sf(-1 / 2)
    spare = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * size))
    assert passed.mean() == pytest.approx(chance, abs=spare)
    assert (drawn[passed] <= 10).mean() == pytest.approx(0.5, abs=2 * spare)
    assert about.release((10.0, 10**6)).tolist() == [1, pytest.approx(10, abs=20)]
    assert about.release((10.0, 0)).tolist() in ([0, 0], [1, pytest.approx(10, abs=20)])


@pytest.mark.parametrize("bad", [3, (1.0,), (1.0, -1), (1.0, 1.5), ("a", 1), (1.0, math.nan)])
def test_what_has_no_distance_is_refused(bad: object) -> None:
    with pytest.raises(InvalidInputError, match="a distance, an integer ≥ 0"):
        ProposeTestRelease(1, 5, 1).release(bad)  # type: ignore[arg-type]

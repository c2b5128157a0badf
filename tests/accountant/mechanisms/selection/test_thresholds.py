"""Which keys appear: against recursions, and all that a user can do in a grid of counts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binomtest, norm

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.mechanisms import GaussianThreshold, LaplaceThreshold, PartitionSelection
from dpassay.accountant.questions import profile, tradeoff

ADDED = Adjacency.ADD_REMOVE
FALSE_ALARM = 1e-6
CURVES = [("1", "1e-5"), ("0.1", "1e-9"), ("3", "0.4"), ("1/2", "0.9"), ("8", "1e-300")]


def curve(epsilon: float, delta: float) -> list[float]:
    found = [0.0]
    while found[-1] < 1:
        a = found[-1]
        found.append(
            min(math.exp(epsilon) * a + delta, 1 - math.exp(-epsilon) * (1 - a - delta), 1)
        )
    return found


@pytest.mark.parametrize(("epsilon", "delta"), CURVES)
def test_the_curve_is_that_of_the_recursion(epsilon: str, delta: str) -> None:
    known = curve(float(eval(epsilon)), float(delta))
    about = PartitionSelection(epsilon, delta)
    for n, value in enumerate([*known, 1.0]):
        kept, lost = about.keeps(n)
        assert float(kept.mid()) == pytest.approx(value, rel=1e-11, abs=0)
        assert float((kept + lost).mid()) == pytest.approx(1, rel=1e-15, abs=0)


@pytest.mark.parametrize(("epsilon", "delta"), CURVES[:4])
@pytest.mark.parametrize("share", [-0.5, 0, 0.3, 1, 1.2])
def test_few_numbers_of_users_are_worst(epsilon: str, delta: str, share: float) -> None:
    kept = curve(float(eval(epsilon)), float(delta))
    at = share * float(eval(epsilon))
    worst = max(
        max(0.0, p - math.exp(at) * q, (1 - p) - math.exp(at) * (1 - q), 1 - math.exp(at))
        for a, b in itertools.pairwise(kept)
        for p, q in ((a, b), (b, a))
    )
    found = profile.delta(PartitionSelection(epsilon, delta), at, adjacency=ADDED)
    assert float(found) == pytest.approx(worst, rel=1e-7, abs=0)


def error_of_two(p: float, q: float, alpha: float) -> float:
    """Return β(α) for the laws (p, 1 − p) and (q, 1 − q)."""
    return min(1 - alpha * p / q if alpha <= q else (1 - p) * (1 - alpha) / (1 - q), 1 - alpha)


def test_no_number_of_users_has_a_smaller_error() -> None:
    """H is largest at the ends, but the least error at one α is that of two against one user."""
    about, kept = PartitionSelection(1, "1/1000"), curve(1, 1e-3)
    errors = [
        min(error_of_two(*ends, 1e-3), error_of_two(*ends[::-1], 1e-3))
        for ends in itertools.pairwise(kept)
        if min(ends) > 0
    ]
    found = tradeoff.beta(about, "1/1000", adjacency=ADDED)
    assert float(found.lower) == pytest.approx(min(errors), rel=1e-9, abs=0)
    assert float(found.upper) > min(errors) + 1e-4


def test_keys_are_kept_with_their_probabilities() -> None:
    about, size = PartitionSelection("1/2", "0.01"), 4000
    drawn = about.release([0, 3, 8, 50], size, rng=np.random.default_rng(5))
    assert drawn.shape == (size, 4)
    assert not drawn[:, 0].any()
    assert drawn[:, 3].all()
    for column, users in ((1, 3), (2, 8)):
        chance = float(about.keeps(users)[0].mid())
        assert binomtest(int(drawn[:, column].sum()), size, chance).pvalue > FALSE_ALARM
    with pytest.raises(InvalidInputError, match="numbers of users"):
        about.release([-1])


def laplace(x: float) -> float:
    return math.exp(-abs(x) / 2) / 4


def censored(count: int, tau: float, x: float) -> float:
    return laplace(x - count) if count and x >= tau else 0.0


@pytest.mark.parametrize("at", [0.0, 0.2, 0.49, 1.0])
def test_no_count_of_one_key_is_worse(at: float) -> None:
    """Integrate the released values for every count up to well above the threshold."""
    tau, worst = 6.0, 0.0
    for count in range(30):
        for first, second in ((count, count + 1), (count + 1, count)):
            shown, _ = quad(
                lambda x, a=first, b=second: max(
                    censored(a, tau, x) - math.exp(at) * censored(b, tau, x), 0
                ),
                tau, 80, points=[count, count + 0.5 + at, count + 1, count + 0.5 - at], limit=200,
            )  # fmt: skip
            hidden = [
                1 - quad(lambda x, a=a: censored(a, tau, x), tau, 120, points=[a])[0]
                for a in (first, second)
            ]
            worst = max(worst, shown + max(hidden[0] - math.exp(at) * hidden[1], 0))
    found = float(profile.delta(LaplaceThreshold(2, 6), at, adjacency=ADDED))
    assert worst == pytest.approx(found, rel=1e-6, abs=0)


@pytest.mark.parametrize(("threshold", "at"), [(7, 0.9), (11, 0.2)])
def test_several_keys_are_the_worst_split_of_new_and_old_ones(threshold: int, at: float) -> None:
    sigma, k, found = 2.0, 4, []
    hidden = norm.cdf((threshold - 1) / sigma)
    for new in range(k + 1):
        kept, mu = hidden**new, math.sqrt(k - new) / sigma
        level = at - math.log(kept)  # the loss of no new key is ln kept
        rest = 0.0
        if mu:
            rest = norm.cdf(mu / 2 - level / mu) - math.exp(level) * norm.cdf(-mu / 2 - level / mu)
        found.append(1 - kept + kept * rest)
    ours = float(profile.delta(GaussianThreshold(2, threshold, k), at, adjacency=ADDED))
    assert ours == pytest.approx(max(found), rel=1e-10, abs=0)

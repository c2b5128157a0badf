"""Events of several Gaussian steps of a random allocation."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

from accountant.numbers.exact import ExactReal, exact
from accountant.pairs.allocation_event import AllocationEvent
from accountant.pairs.random_allocation import RandomAllocationPair


def event(sigma: str, steps: int, participations: int, *, mixed_first: bool) -> AllocationEvent:
    mu = ExactReal.of_rational(1 / Fraction(sigma))
    return AllocationEvent(mu, steps, participations, mixed_first)


def mean_below(mu: float, shifted: tuple[int, ...], level: float) -> float:
    """P(W ≤ level) for three steps, some with μ: given two of them, the third has a limit."""
    z = np.linspace(-9, 9, 4001)
    weight = np.exp(-z * z / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    first, second = (np.exp(mu * (z + mu * (i in shifted)) - mu**2 / 2) for i in (0, 1))
    rest = 3 * level - first[:, None] - second[None, :]
    limit = (np.log(np.maximum(rest, 1e-300)) + mu**2 / 2) / mu - mu * (2 in shifted)
    return float(weight @ ndtr(np.where(rest > 0, limit, -np.inf)) @ weight)


@pytest.mark.parametrize("mixed_first", [True, False])
@pytest.mark.parametrize(("sigma", "taken", "epsilon"), [("1", 2, "1/2"), ("2", 2, "1")])
def test_probabilities_of_three_steps_are_integrals(
    sigma: str, taken: int, epsilon: str, *, mixed_first: bool
) -> None:
    found, at = event(sigma, 3, taken, mixed_first=mixed_first), exact(epsilon)
    level, mu = float(np.exp(float(found.log_threshold(at)))), 1 / float(Fraction(sigma))
    sets = list(itertools.combinations(range(3), taken))
    p = float(np.mean([mean_below(mu, chosen, level) for chosen in sets]))
    q = mean_below(mu, (), level)
    wanted = (1 - p, 1 - q) if mixed_first else (q, p)
    tails = found.tails(at)
    assert float(tails.p_above) == pytest.approx(wanted[0], rel=1e-6, abs=0)
    assert float(tails.q_above) == pytest.approx(wanted[1], rel=1e-6, abs=0)
    assert tails.p_above.rel_accuracy_bits() > 45
    gain = float(tails.p_above - at.ball().exp() * tails.q_above)
    assert float(found.hockey_stick(at)) == pytest.approx(gain, rel=1e-9, abs=0)


@pytest.mark.parametrize("mixed_first", [True, False])
@pytest.mark.parametrize("epsilon", ["1/4", "3/2", "-1"])
def test_one_step_has_nearly_all_that_the_best_event_has(
    epsilon: str, *, mixed_first: bool
) -> None:
    """W is then the density of P, so that the best event is one of W."""
    one = RandomAllocationPair(ExactReal.of_rational(1), 20, mixed_first)
    whole = one.hockey_stick(exact(epsilon))
    found = event("1", 20, 1, mixed_first=mixed_first).hockey_stick(exact(epsilon))
    assert not found > whole
    assert found > whole * (1 - 1e-3)


def test_an_event_stays_where_it_is_attained() -> None:
    whole = event("1", 50, 2, mixed_first=True)
    fixed = whole.attained(exact("1"))
    assert fixed.hockey_stick(exact("1")).overlaps(whole.hockey_stick(exact("1")))
    assert fixed.log_threshold(exact("3")) == fixed.log_threshold(exact("1"))
    assert "log_threshold" in fixed.law()
    assert str(fixed.log_threshold(exact("1"))) in fixed.describe_event(exact("1"))

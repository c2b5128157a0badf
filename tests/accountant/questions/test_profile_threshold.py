"""Noise whose profile keeps below another one on a range of ε."""

from __future__ import annotations

from fractions import Fraction

import pytest
from flint import arb

from accountant.budget.calibrate import calibrate
from accountant.budget.target import ProfileBelow
from accountant.core.adjacency import Adjacency
from accountant.core.mechanism import Mechanism
from accountant.errors import InvalidInputError, NotApplicableError
from accountant.mechanisms import Composed, Gaussian, PoissonSubsampled
from accountant.numbers.dominance import proved_below
from accountant.numbers.exact import ExactReal
from accountant.questions import profile
from accountant.questions.profile_threshold import Limit
from tests.quick import quick

BOTH = Adjacency.ADD_REMOVE
WIDTH = Fraction(1, 10**6)
FINE = Fraction(1, 10**12)


def composed(sigma: Fraction | str, q: str, count: int) -> Composed:
    return Composed(PoissonSubsampled(Gaussian(standard_deviation=sigma), q), count)


def gaussian(epsilon: ExactReal) -> arb:
    (pair,) = Gaussian(standard_deviation=3).worst_case(None).remove
    return pair.hockey_stick(epsilon)


def steep(epsilon: ExactReal) -> arb:
    """Return e^{−10ε}/5, which a profile like that of Gaussian noise touches inside."""
    return (-10 * epsilon.ball()).exp() / 5


def room(mechanism: Mechanism, limit: Limit, epsilon: Fraction) -> float:
    """Return 1 − δ/limit, whose sign is proved."""
    own = profile.delta(mechanism, epsilon, adjacency=BOTH, relative_width=FINE)
    found = 1 - own.ball() / limit(ExactReal.of_rational(epsilon))
    assert not found.contains(0)
    return float(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("q", "count", "limit", "stop", "inside"),
    quick(
        [
            ("0.01", 1000, gaussian, Fraction(1), False),
            ("0.5", 20, steep, Fraction(1), True),
        ],
        1,
    ),
)
def test_the_profile_keeps_below_and_hardly_less_noise_does_not(
    q: str, count: int, limit: Limit, stop: Fraction, inside: bool
) -> None:
    target = ProfileBelow(limit, BOTH, stop)
    found = calibrate(
        "Gaussian", target, adjacency=BOTH, count=count, sampling_prob=q, relative_width=WIDTH
    )
    assert found.least.relative_width is not None
    assert found.least.relative_width <= WIDTH
    ratio = found.achieved["ratio"]
    assert ratio.upper == 1
    assert ratio.lower > Fraction(999, 1000)
    grid = [stop * i / 12 for i in range(13)]
    margins = [room(found.whole, limit, at) for at in grid]
    nearest = margins.index(min(margins))
    assert min(margins) > 0
    assert (0 < nearest < 12) is inside
    less = composed(Fraction(found.least.lower) * Fraction(99, 100), q, count)
    assert room(less, limit, grid[nearest]) < 0


def test_an_unbounded_loss_needs_an_end() -> None:
    with pytest.raises(NotApplicableError, match="Give an up_to"):
        calibrate(
            "Gaussian",
            ProfileBelow(Gaussian(standard_deviation=3)),
            adjacency=BOTH,
            count=10,
            sampling_prob="0.1",
        )
    for wrong in (0, -1):
        with pytest.raises(InvalidInputError, match=f"up_to={wrong} to be a rational number > 0"):
            ProfileBelow(Gaussian(standard_deviation=3), up_to=wrong)
    assert str(ProfileBelow(Gaussian(standard_deviation=3), up_to="1/2")).endswith("epsilon=1/2")


def test_a_profile_is_proved_to_keep_below_another_one_or_is_not() -> None:
    def scaled(share: str) -> Limit:
        return lambda at: gaussian(at) * arb(share)

    assert proved_below(scaled("0.99"), gaussian, Fraction(2))
    assert not proved_below(scaled("1.0001"), gaussian, Fraction(2))
    assert not proved_below(gaussian, steep, Fraction(1))

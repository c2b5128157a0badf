"""Laws of estimates in floats: inverses, monotonicity, and the enclosure beside them."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given, reject, settings
from hypothesis import strategies as st

from accountant.core.mechanism import Mechanism
from accountant.errors import UndecidedError
from accountant.mechanisms import Composed, Gaussian, PoissonSubsampled
from accountant.questions import estimate, profile

BOTH = "add-remove"
SIGMAS = st.sampled_from(["0.6", "1", "2.5", "8"])
SHARES = st.sampled_from(["1/50", "1/4", "9/10"])
COUNTS = st.sampled_from([60, 1000, 10**5, 10**8])
LOG_DELTAS = st.floats(min_value=-400, max_value=-1)


@st.composite
def compositions(draw: st.DrawFn) -> Mechanism:
    parts = draw(st.lists(st.tuples(SIGMAS, SHARES, COUNTS), min_size=1, max_size=3))
    return Composed(
        [Composed(PoissonSubsampled(Gaussian(sigma), q), count) for sigma, q, count in parts]
    )


@settings(max_examples=15, deadline=None)
@given(compositions(), LOG_DELTAS, LOG_DELTAS)
def test_epsilon_inverts_delta_and_falls_with_it(
    mechanism: Mechanism, first: float, second: float
) -> None:
    low, high = sorted((first, second))
    try:
        epsilons = estimate.estimate_epsilon(mechanism, log_delta=[low, high], adjacency=BOTH)
    except UndecidedError:  # digits lost: no number
        reject()
    assert not isinstance(epsilons, float)
    assert epsilons[0] >= epsilons[1] * (1 - 1e-12)
    back = estimate.estimate_log_delta(mechanism, epsilons, adjacency=BOTH)
    slopes = estimate.estimate_slope(mechanism, epsilons, adjacency=BOTH)
    assert not isinstance(back, float)
    assert not isinstance(slopes, float)
    for found, wanted, epsilon, slope in zip(back, (low, high), epsilons, slopes, strict=True):
        # an error of 1e-12 of ε moves ln δ by that times the slope
        assert abs(found - wanted) <= 1e-11 * (1 + abs(wanted)) + 1e-12 * abs(slope * epsilon)


@settings(max_examples=8, deadline=None)
@given(compositions(), st.floats(min_value=1e-12, max_value=1 - 1e-9))
def test_trade_off_functions_are_those_of_better_tests(mechanism: Mechanism, alpha: float) -> None:
    beta, power = (
        ask(mechanism, alpha, adjacency=BOTH)
        for ask in (estimate.estimate_beta, estimate.estimate_power)
    )
    assert isinstance(beta, float)
    assert isinstance(power, float)
    assert abs(beta + power - 1) < 1e-12
    assert power >= alpha * (1 - 1e-12)


@settings(max_examples=6, deadline=None)
@given(SIGMAS, SHARES, st.sampled_from([10**3, 10**5, 10**7]), st.integers(2, 60))
def test_the_enclosure_is_beside(sigma: str, q: str, count: int, digits: int) -> None:
    mechanism = Composed(PoissonSubsampled(Gaussian(sigma), q), count)
    truth = profile.epsilon(
        mechanism, f"1e-{digits}", adjacency=BOTH, relative_width=Fraction(1, 10**9)
    )
    found = estimate.estimate_epsilon(mechanism, log_delta=-digits * math.log(10), adjacency=BOTH)
    assert isinstance(found, float)
    slack = 1e-10 * abs(found)
    assert float(truth.lower) - slack <= found <= float(truth.upper) + slack

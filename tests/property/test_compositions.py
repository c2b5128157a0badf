"""Random compositions: order, grouping and engines do not matter; laws of their estimates."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.mechanisms import (
    BoundedCountNoise,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    IntegerNoise,
    Laplace,
    PoissonSubsampled,
)
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import estimate, profile

RELATION = Adjacency.ADD_REMOVE
SINGLE: list[Mechanism] = [
    Laplace(scale=3),
    Laplace(scale="4.5"),
    Gaussian(standard_deviation=4),
    DiscreteLaplace(scale=4, sensitivity=2),
    DiscreteGaussian(parameter=9),
    IntegerNoise(["1/10", "1/5", "2/5", "1/5", "1/10"], lowest=-2),
    BoundedCountNoise(epsilon=1, eta="1/3", support=1),
    PoissonSubsampled(DiscreteLaplace(scale=2), "1/4"),
    PoissonSubsampled(DiscreteGaussian(parameter=4), "1/5"),
]
PARTS = st.lists(st.tuples(st.sampled_from(SINGLE), st.integers(1, 2)), min_size=2, max_size=3)
EPSILONS = st.sampled_from(["-0.4", "0", "0.3", "1.1", "2"])
WIDTH = Fraction(1, 20)


def ask(mechanism: Mechanism, epsilon: str, method: str = "auto") -> Interval | None:
    """Return δ(ε), or None where the engine refuses the width."""
    try:
        return profile.delta(
            mechanism, epsilon, method=method, adjacency=RELATION, relative_width=WIDTH
        )
    except (NotApplicableError, UndecidedError):
        return None


@settings(max_examples=4, deadline=None)
@given(PARTS, EPSILONS)
def test_order_and_grouping_do_not_matter(parts: list[tuple[Mechanism, int]], epsilon: str) -> None:
    (first, n), *rest = parts
    plain = Composed([Composed(part, count) for part, count in parts])
    mirrored = Composed([Composed(part, count) for part, count in reversed(parts)])
    nested = Composed([Composed(first, n), Composed([Composed(*entry) for entry in rest])])
    listed = Composed([part for part, count in parts for _ in range(count)])
    values = [ask(whole, epsilon) for whole in (plain, mirrored, nested, listed)]
    known = [value for value in values if value is not None]
    assert all(value.overlaps(other) for value in known for other in known)
    assert len(known) in {0, 4}


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(SINGLE), st.integers(1, 5), st.integers(1, 5), EPSILONS)
def test_counts_add(mechanism: Mechanism, one: int, other: int, epsilon: str) -> None:
    together = ask(Composed(mechanism, one + other), epsilon)
    apart = ask(Composed([Composed(mechanism, one), Composed(mechanism, other)]), epsilon)
    assert together is None or (apart is not None and together.overlaps(apart))
    more = ask(Composed(mechanism, one + other + 1), epsilon)
    if together is not None and more is not None:
        assert together.lower <= more.upper


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(PARTS, EPSILONS)
def test_engines_agree(parts: list[tuple[Mechanism, int]], epsilon: str) -> None:
    """The chosen engine, Fourier inversion and the grid, wherever they reach five per cent."""
    whole = Composed([Composed(part, count) for part, count in parts])
    values = [ask(whole, epsilon, method) for method in ("auto", "fourier", "grid")]
    known = [value for value in values if value is not None]
    assert values[0] is not None
    assert all(value.overlaps(other) for value in known for other in known)


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

"""Random compositions: the order and the grouping do not matter, and engines agree."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.core.adjacency import Adjacency
from accountant.core.mechanism import Mechanism
from accountant.errors import NotApplicableError, UndecidedError
from accountant.mechanisms import (
    BoundedCountNoise,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    IntegerNoise,
    Laplace,
    PoissonSubsampled,
)
from accountant.numbers.interval import Interval
from accountant.questions import profile

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

"""Products that several engines apply to: whose refusal is raised."""

from __future__ import annotations

from fractions import Fraction

import pytest

import dpassay
from accountant.composition.ladder import LadderPair
from accountant.errors import UndecidedError

SAMPLE = dpassay.PoissonSubsampled(dpassay.Laplace(scale=1), "0.1")


def test_the_refusal_is_that_of_the_narrowest_enclosure() -> None:
    """Inversion reaches 5e-12; the grid, which is asked after it, 2e-2 before it gives up."""
    releases = dpassay.Composed(SAMPLE, 500)
    (pair,) = releases.worst_case(dpassay.Adjacency.ADD_REMOVE).remove
    assert isinstance(pair, LadderPair)
    assert [type(rung).__name__ for rung in pair.rungs] == ["AtomicPair", "GridPair"]
    with pytest.raises(UndecidedError, match="sixteen digits") as refusal:
        dpassay.delta(
            releases,
            "0.5",
            adjacency="add-remove",
            direction=dpassay.Direction.REMOVE,
            relative_width=Fraction(1, 10**12),
        )
    assert 1e-12 < refusal.value.reached < 1e-10
    lower, upper = str(refusal.value).split("[")[1].split("]")[0].split(", ")
    assert 0 < float(upper) - float(lower) < 1e-10

"""Loss distributions for other libraries: the exact profile lies between both ends."""

from __future__ import annotations

import csv
import math
from fractions import Fraction

import pytest

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError, NotApplicableError
from dpassay.accountant.mechanisms import (
    Composed,
    DiscreteGaussian,
    Gaussian,
    IntegerNoise,
    Laplace,
    PoissonSubsampled,
    RandomizedResponse,
    Staircase,
)
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.questions import profile
from dpassay.verifier.exact import verify
from dpassay.verifier.foreign import loss, profile_table
from dpassay.verifier.foreign.table import read_grid
from dpassay.verifier.verdict import Verdict
from tests.peers.discretised import discretised
from tests.quick import quick

STAIRCASE = Staircase(epsilon=1, gamma="1/3")
FLOATS = 1e-12  # relative, of the sums that evaluate a distribution in floats
CASES: list[tuple[Mechanism, str | None, float]] = [
    (Gaussian(2), None, 0.01),
    (Laplace("1.7"), None, 0.01),
    (DiscreteGaussian(9), None, 0.01),
    (PoissonSubsampled(Gaussian(1), "0.25"), "add-remove", 0.01),
    (RandomizedResponse("sqrt(2)"), None, 0.01),
    (Composed(Laplace(2), 2), None, 0.01),
]


@pytest.mark.parametrize(("mechanism", "adjacency", "step"), quick(CASES, 0, 1), ids=str)
def test_the_exact_profile_lies_between_the_two(
    mechanism: Mechanism, adjacency: str | None, step: float
) -> None:
    above = loss.masses(mechanism, step=step, adjacency=adjacency)
    below = loss.masses(mechanism, step=step, above=False, adjacency=adjacency)
    for epsilon in (-0.3, 0.0, 0.123, 0.5, 1.0, 2.5):
        true = profile.delta(mechanism, exact(epsilon), adjacency=adjacency)
        high = max(law.delta(epsilon) for law in above)
        low = max(law.delta(epsilon) for law in below)
        assert low * (1 - FLOATS) <= float(true.upper)
        assert float(true.lower) <= high * (1 + FLOATS)
        assert high - low <= step * math.exp(max(epsilon, 0.0)) * 0.5  # at most a step of loss


def test_losses_that_floats_hardly_see_are_bracketed_too() -> None:
    (above, _), (below, _) = (loss.masses(Laplace("0.01"), above=side) for side in (True, False))
    true = profile.delta(Laplace("0.01"), 99)
    assert below.delta(99.0) <= float(true.lower) <= float(true.upper) <= above.delta(99.0)


def test_masses_above_are_those_that_connect_the_dots() -> None:
    """By balls, at the same grid points: floats err by what the grid allows for."""
    for mechanism in (Laplace("1.7"), STAIRCASE, RandomizedResponse("sqrt(2)")):
        law, _ = loss.masses(mechanism, step=1 / 16)
        (pair,) = mechanism.worst_case(None).remove
        last = law.first + len(law.masses) - 1
        balls = discretised(pair, Fraction(1, 16), law.first, last)
        assert law.masses == pytest.approx([float(mass) for mass in balls], abs=1e-12)


def test_the_distribution_is_one_of_dp_accounting() -> None:
    noise = Gaussian(2)
    true = profile.delta(Composed(noise, 4), 1)
    bounds = []
    for pessimistic in (False, True):
        one = loss.privacy_loss_distribution(noise, pessimistic=pessimistic)
        assert one.get_delta_for_epsilon(0.5) > 0
        bounds.append(float(one.self_compose(4).get_delta_for_epsilon(1.0)))
    assert bounds[0] * (1 - FLOATS) <= float(true.lower)
    assert float(true.upper) <= bounds[1] * (1 + FLOATS)
    assert bounds[1] - bounds[0] < 1e-2


def test_two_directions_are_kept_apart() -> None:
    sampled = PoissonSubsampled(Gaussian(1), "0.25")
    one = loss.privacy_loss_distribution(sampled, adjacency="add-remove")
    true = profile.delta(sampled, 1, adjacency="add-remove")
    value = float(one.get_delta_for_epsilon(1.0))
    assert float(true.lower) <= value * (1 + FLOATS)
    assert value <= float(true.upper) * (1 + 1e-2)


def test_a_distribution_is_heard_as_claims() -> None:
    from dp_accounting.pld import privacy_loss_distribution as peer

    optimistic = peer.from_gaussian_mechanism(2.0, pessimistic_estimate=False)
    pessimistic = loss.privacy_loss_distribution(Gaussian(2))
    said = loss.claims(optimistic, Gaussian(2), [0.5, 1])
    assert [verify(claim).verdict for claim in said] == [Verdict.REFUTED] * 2
    said = loss.claims(pessimistic, Gaussian(2), [0.5, 1], "REPLACE_SPECIAL")
    assert [verify(claim).verdict for claim in said] == [Verdict.HOLDS] * 2


def test_what_cannot_be_exported_is_refused() -> None:
    skewed = IntegerNoise(["1/2", "1/4", "1/8", "1/8"], 0, 2)
    with pytest.raises(NotApplicableError, match="several worst pairs"):
        loss.masses(skewed, adjacency="add-remove")
    with pytest.raises(NotApplicableError, match="points"):
        loss.masses(Gaussian(2), step=1e-9)
    with pytest.raises(InvalidInputError, match="step"):
        loss.masses(Gaussian(2), step=0.0)


def test_a_table_has_both_ends() -> None:
    text = profile_table(Laplace(2), read_grid("0:1:5"))
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["epsilon"] for row in rows] == ["0", "0.25", "0.5", "0.75", "1"]
    assert rows[2]["delta_lower"] == rows[2]["delta_upper"] == "0"
    assert float(rows[0]["delta_lower"]) == pytest.approx(-math.expm1(-0.25), rel=1e-15)
    assert all(float(row["delta_lower"]) <= float(row["delta_upper"]) for row in rows)


@pytest.mark.parametrize("text", ["0:1", "0:1:1", "1:0:5", "a:1:5", "0:1:5:2", "0:1:x", ""])
def test_wrong_grids_are_named(text: str) -> None:
    with pytest.raises(InvalidInputError, match="A:B:N"):
        read_grid(text)

"""dp-accounting's events, with and without the library."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from dp_accounting import NeighboringRelation, dp_event, rdp
from dp_accounting.pld import PLDAccountant

import dpassay
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.errors import AdjacencyError, InvalidInputError, NotApplicableError
from dpassay.accountant.mechanisms import (
    Composed,
    DiscreteGaussian,
    Gaussian,
    Guaranteed,
    PoissonSubsampled,
    SampledWithoutReplacement,
)
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.questions import profile
from dpassay.integrations.dp_accounting import EventAccountant
from dpassay.verifier.foreign import as_mechanism, events
from tests.quick import slow

ADD_REMOVE = NeighboringRelation.ADD_OR_REMOVE_ONE
REPLACE = NeighboringRelation.REPLACE_ONE
SPECIAL = NeighboringRelation.REPLACE_SPECIAL


def guarantee(epsilon: float, delta: float) -> Any:
    """Return an event that releases of dp-accounting after 0.6.0 have."""
    return type("EpsilonDeltaDpEvent", (), {"epsilon": epsilon, "delta": delta})()


CASES: list[tuple[Any, NeighboringRelation]] = [
    (dp_event.GaussianDpEvent(1.5), ADD_REMOVE),
    (dp_event.GaussianDpEvent(1.5), REPLACE),
    (dp_event.LaplaceDpEvent(2.0), SPECIAL),
    (dp_event.DiscreteLaplaceDpEvent(0.5, 2), ADD_REMOVE),
    (dp_event.RandomizedResponseDpEvent(0.25, 4), REPLACE),
    (dp_event.RandomizedResponseDpEvent(0.25, 4), SPECIAL),
    slow(dp_event.PoissonSampledDpEvent(0.25, dp_event.GaussianDpEvent(1.0)), ADD_REMOVE),
    (
        dp_event.ComposedDpEvent(
            [
                dp_event.NoOpDpEvent(),
                dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(4.0), 3),
                dp_event.GaussianDpEvent(2.0),
            ]
        ),
        ADD_REMOVE,
    ),
]


@pytest.mark.parametrize(("event", "relation"), CASES, ids=lambda value: str(value)[:40])
def test_the_mechanism_is_the_one_that_the_library_accounts_for(
    event: Any, relation: NeighboringRelation
) -> None:
    """Its pessimistic profile is at least the exact one, and not far above."""
    peer = PLDAccountant(relation)
    peer.compose(event)
    mechanism = events.mechanism_of(event, relation)
    adjacency = events.neighbours(relation).adjacency
    for epsilon in (0.1, 0.5):
        ours = profile.delta(mechanism, exact(epsilon), adjacency=adjacency)
        theirs = peer.get_delta(epsilon)
        # 1e-12 covers its floats, 2e-4 the distance of its grid points, 1e-4, on both sides
        assert float(ours.lower) * (1 - 1e-12) <= theirs <= float(ours.upper) * (1 + 2e-4) + 1e-4


def test_an_event_is_known_by_its_name_and_attributes_alone() -> None:
    @dataclass
    class GaussianDpEvent:
        noise_multiplier: float

    @dataclass
    class PoissonSampledDpEvent:
        sampling_probability: float
        event: object

    @dataclass
    class SelfComposedDpEvent:
        event: object
        count: int

    event = SelfComposedDpEvent(PoissonSampledDpEvent(0.25, GaussianDpEvent(1.5)), 10)
    wanted = Composed(PoissonSubsampled(Gaussian("1.5"), "0.25"), 10)
    assert events.mechanism_of(event) == wanted
    assert as_mechanism(event) == wanted


def test_a_tree_run_once_is_the_gaussian_of_its_levels() -> None:
    tree = events.mechanism_of(dp_event.SingleEpochTreeAggregationDpEvent(2.0, [3, 8]), SPECIAL)
    assert tree == Gaussian(2, "2")  # eight steps: four levels, each moved by one
    with pytest.raises(AdjacencyError, match="REPLACE_SPECIAL"):
        events.mechanism_of(dp_event.SingleEpochTreeAggregationDpEvent(2.0, 8))


def test_a_sample_without_replacement_is_about_replaced_records() -> None:
    event = dp_event.SampledWithoutReplacementDpEvent(10, 2, dp_event.GaussianDpEvent(1.5))
    wanted = SampledWithoutReplacement(Gaussian("1.5", 2), 2, 10)
    assert events.mechanism_of(event, REPLACE) == wanted
    with pytest.raises(AdjacencyError, match="REPLACE_ONE"):
        events.mechanism_of(event)
    with pytest.raises(InvalidInputError, match="population"):
        events.mechanism_of(
            dp_event.SampledWithoutReplacementDpEvent(2, 10, dp_event.GaussianDpEvent(1.5)), REPLACE
        )


def test_an_accountant_is_read_under_its_own_relation() -> None:
    peer = PLDAccountant(REPLACE)
    peer.compose(dp_event.GaussianDpEvent(3.0), 2)
    mechanism = as_mechanism(peer)
    assert mechanism.exact_gaussian_mu(Adjacency.REPLACE_ONE) == exact("sqrt(8/9)")


def test_a_sampled_record_that_is_replaced_moves_the_sum_both_ways() -> None:
    event = dp_event.PoissonSampledDpEvent(0.25, dp_event.GaussianDpEvent(1.5))
    found = events.mechanism_of(dp_event.SelfComposedDpEvent(event, 3), REPLACE)
    assert found == Composed(PoissonSubsampled(Gaussian("1.5"), "0.25"), 3)
    alone = events.mechanism_of(dp_event.PoissonSampledDpEvent(1.0, event.event), REPLACE)
    wanted = profile.delta(Gaussian("1.5", 2), 1, adjacency="replace-one")
    assert profile.delta(alone, 1, adjacency="replace-one").overlaps(wanted)


@pytest.mark.parametrize("name", ["ExponentialMechanism", "PermuteAndFlip"])
def test_selections_are_read_by_their_epsilon(name: str) -> None:
    event = type(f"{name}DpEvent", (), {"epsilon": 0.5})()
    assert repr(events.mechanism_of(event)) == f"{name}(epsilon='0.5')"


@pytest.mark.parametrize(
    ("mean", "shape", "read"),
    [
        (10.0, 1.0, "Tuned(mechanism=Gaussian(standard_deviation=2), runs=10)"),
        slow(10.0, 0.0, "Tuned(mechanism=Gaussian(standard_deviation=2), runs=10, shape=0)"),
        slow(
            2.5,
            math.inf,
            "Tuned(mechanism=Gaussian(standard_deviation=2), runs='2.5', shape='poisson')",
        ),
    ],
)
def test_repeated_runs_are_tuned_below_what_is_reported(
    mean: float, shape: float, read: str
) -> None:
    event = dp_event.RepeatAndSelectDpEvent(dp_event.GaussianDpEvent(2.0), mean, shape)
    assert repr(events.mechanism_of(event)) == read
    ours = EventAccountant().compose(event).get_epsilon(1e-5)
    assert ours < rdp.RdpAccountant().compose(event).get_epsilon(1e-5)
    with pytest.raises(NotApplicableError, match="Tune a composition"):
        events.mechanism_of(dp_event.SelfComposedDpEvent(event, 2))


@pytest.mark.parametrize(
    "event",
    [
        dp_event.UnsupportedDpEvent(),
        dp_event.ZCDpEvent(0.5),
        dp_event.SampledWithReplacementDpEvent(10, 2, dp_event.GaussianDpEvent(1.0)),
    ],
    ids=lambda event: type(event).__name__,
)
def test_events_without_an_exact_law_are_refused(event: Any) -> None:
    with pytest.raises(NotApplicableError):
        events.mechanism_of(event)


@pytest.mark.parametrize(
    "event",
    [
        dp_event.NonPrivateDpEvent(),
        dp_event.GaussianDpEvent(0.0),
        dp_event.LaplaceDpEvent(0.0),
        dp_event.DiscreteLaplaceDpEvent(0, 1),
        guarantee(1.0, 1.0),
        dp_event.MixtureOfGaussiansDpEvent(0.0, [1.0, 2.0], [0.5, 0.5]),
        dp_event.SelfComposedDpEvent(dp_event.NonPrivateDpEvent(), 3),
    ],
    ids=lambda event: type(event).__name__,
)
def test_without_noise_nothing_is_hidden(event: Any) -> None:
    mechanism = events.mechanism_of(event)
    assert str(profile.delta(mechanism, 5, adjacency="add-remove")) == "1"
    assert profile.epsilon(mechanism, "0.99", adjacency="add-remove").lower == math.inf


def test_a_sample_of_what_has_no_noise_hides_whether_it_was_drawn() -> None:
    event = dp_event.PoissonSampledDpEvent(0.25, dp_event.GaussianDpEvent(0.0))
    found = profile.delta(events.mechanism_of(event), 1, adjacency="add-remove")
    assert str(found) == "0.25"


def test_a_guarantee_is_the_worst_of_what_has_it() -> None:
    one = events.mechanism_of(guarantee(1.0, 0.25))
    assert str(profile.delta(one, 1, adjacency="add-remove")) == "0.25"
    assert str(profile.epsilon(one, "0.25", adjacency="add-remove")) == "1"
    both = events.mechanism_of(
        dp_event.ComposedDpEvent([guarantee(1.0, 0.25), guarantee(2.0, 0.5)])
    )
    assert Fraction(5, 8) in profile.delta(both, 3, adjacency="add-remove")
    known = profile.delta(Composed([Guaranteed(1, "0.25"), Guaranteed(2, "0.5")]), "1.5")
    assert known.overlaps(profile.delta(both, "1.5", adjacency="add-remove"))
    nothing = events.mechanism_of(guarantee(0.0, 0.0))
    assert nothing == events.NOTHING


def test_mixtures_and_discrete_gaussians() -> None:
    mixture = dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0, 2.0], [0.2, 0.6, 0.2])
    found = profile.delta(events.mechanism_of(mixture), 1, adjacency="add-remove")
    assert abs(float(found.lower) - 0.15768284088654105) < 5e-8
    with pytest.raises(AdjacencyError, match="REPLACE_ONE"):
        events.mechanism_of(mixture, REPLACE)
    with pytest.raises(InvalidInputError, match="sum 1"):
        events.mechanism_of(dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.2, 0.6]))
    assert events.mechanism_of(dp_event.MixtureOfGaussiansDpEvent(1.0, [0], [1.0])) == (
        events.NOTHING
    )

    @dataclass
    class DiscreteGaussianDpEvent:
        sigma: float
        sensitivity: float = 1

    assert events.mechanism_of(DiscreteGaussianDpEvent(3.0, 2.0)) == DiscreteGaussian(9, 2)
    with pytest.raises(NotApplicableError, match="integer sensitivity, not 1/2"):
        events.mechanism_of(DiscreteGaussianDpEvent(3.0, 0.5))


def test_wrong_input_is_named() -> None:
    event = dp_event.GaussianDpEvent(1.0)
    with pytest.raises(AdjacencyError, match="ADD_OR_REMOVE_ONE"):
        events.mechanism_of(event, "neighbours")
    with pytest.raises(NotApplicableError, match="replace-one"):
        events.mechanism_of(
            dp_event.PoissonSampledDpEvent(0.1, dp_event.LaplaceDpEvent(1.0)), REPLACE
        )
    with pytest.raises(AdjacencyError, match="exactly one record"):
        events.mechanism_of(dp_event.RandomizedResponseDpEvent(0.5, 3), ADD_REMOVE)
    with pytest.raises(InvalidInputError, match="finite"):
        events.claim(event, math.inf, 1e-5)
    with pytest.raises(InvalidInputError, match="noise_multiplier"):
        events.mechanism_of(type("GaussianDpEvent", (), {})())
    with pytest.raises(InvalidInputError, match="to be a mechanism"):
        as_mechanism(3)


@pytest.mark.slow
def test_the_bound_of_dp_accounting_for_cut_batches_is_another_one() -> None:
    """Both are upper ends; theirs is closer, as a record that is not kept moves nothing."""
    event = dp_event.TruncatedSubsampledGaussianDpEvent(1000, 0.01, 20, 1.0)
    theirs = PLDAccountant(ADD_REMOVE).compose(event).get_epsilon(1e-5)
    ours = dpassay.dpsgd(
        1, 10, 1000, steps=1, delta="1e-5", sampling="truncated-poisson", truncated_batch_size=20
    ).epsilon
    assert float(ours.lower) < theirs < float(ours.upper) < 1.03 * theirs

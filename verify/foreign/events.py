"""dp-accounting's events as mechanisms, and the ε that was reported for them as a claim.

An event is known by the name of its class and its attributes. What a `noise_multiplier` means
depends on the neighbours: the ℓ2 (or ℓ1) norm of one record's value is at most 1, so that adding
or removing a record, or replacing it by a special one of value 0, moves the sum by at most 1, and
replacing it by any other by at most 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from accountant.adjacency import Adjacency
from accountant.errors import AdjacencyError, InvalidInputError, NotApplicableError, expected
from accountant.mechanism import Mechanism
from accountant.mechanisms.composed import Composed
from accountant.mechanisms.discrete_laplace import DiscreteLaplace
from accountant.mechanisms.gaussian import Gaussian
from accountant.mechanisms.laplace import Laplace
from accountant.mechanisms.sampled_without_replacement import SampledWithoutReplacement
from accountant.mechanisms.subsampled import PoissonSubsampled
from accountant.mechanisms.tabulated import Tabulated
from accountant.number import ExactReal
from verify.claim import Claim
from verify.claims import ApproximateDP, PureDP
from verify.foreign.numbers import attribute, count, number


@final
@dataclass(frozen=True)
class Neighbours:
    """A neighbouring relation of dp-accounting."""

    name: str
    adjacency: Adjacency
    """Ours: a special record of value 0 counts as one that is not there."""
    moves: int
    """By how many times its largest norm one record moves a sum."""


RELATIONS = {
    "ADD_OR_REMOVE_ONE": Neighbours("ADD_OR_REMOVE_ONE", Adjacency.ADD_REMOVE, 1),
    "REPLACE_ONE": Neighbours("REPLACE_ONE", Adjacency.REPLACE_ONE, 2),
    "REPLACE_SPECIAL": Neighbours("REPLACE_SPECIAL", Adjacency.ADD_REMOVE, 1),
}
_OURS = {Adjacency.ADD_REMOVE: "ADD_OR_REMOVE_ONE", Adjacency.REPLACE_ONE: "REPLACE_ONE"}
NOTHING = Tabulated([1], [1])
"""A release that says nothing."""


def neighbours(relation: object) -> Neighbours:
    """Read dp-accounting's member or its name, or our adjacency.

    Raises AdjacencyError for anything else.
    """
    name = str(getattr(relation, "name", relation))
    if name in RELATIONS:
        return RELATIONS[name]
    try:
        ours = Adjacency.read(relation)  # type: ignore[arg-type]  # refuses what it does not know
    except AdjacencyError:
        ours = None
    if ours is None:
        raise AdjacencyError(
            f"Expected relation={name!r} to be one of {sorted(RELATIONS)}, 'add-remove' or "
            "'replace-one'."
        )
    return RELATIONS[_OURS[ours]]


def is_event(thing: object) -> bool:
    """Whether a thing is called an event of dp-accounting."""
    return _kind(thing).endswith("DpEvent")


def mechanism_of(event: object, relation: object = "ADD_OR_REMOVE_ONE") -> Mechanism:
    """Return the mechanism that an event stands for.

    Raises
    ------
    NotApplicableError
        For an event whose exact law is not known here, or which promises nothing.
    AdjacencyError
        For an event that is not about the relation.
    """
    known = neighbours(relation)
    kind = _kind(event)
    if kind not in _READERS:
        reason = _WHY_NOT.get(kind, "no mechanism is known for it")
        raise NotApplicableError(f"{kind}: {reason}.")
    return _READERS[kind](event, known)


def claim(
    event: object,
    epsilon: object,
    delta: object,
    relation: object = "ADD_OR_REMOVE_ONE",
    *,
    name: str = "dp-accounting",
) -> Claim:
    """Return the claim that an event is (epsilon, delta)-DP, as a library reported it."""
    eps, d = number("epsilon", epsilon), number("delta", delta)
    known = neighbours(relation)
    statement = f"({eps}, {d})-DP under {known.name}, as reported."
    mechanism = repr(mechanism_of(event, known.name))
    adjacency = known.adjacency.value
    if d.sign == 0:
        return PureDP(
            id=name, source=_kind(event), statement=statement, mechanism=mechanism,
            adjacency=adjacency, epsilon=str(eps),
        )  # fmt: skip
    return ApproximateDP(
        id=name, source=_kind(event), statement=statement, mechanism=mechanism,
        adjacency=adjacency, epsilon=str(eps), delta=str(d),
    )  # fmt: skip


def _kind(thing: object) -> str:
    names = [cls.__name__ for cls in type(thing).__mro__]
    return next((name for name in names if name in _READERS or name in _WHY_NOT), names[0])


def _noise(event: object) -> ExactReal:
    value = number("noise_multiplier", attribute(event, "noise_multiplier"))
    if value.sign <= 0:
        raise NotApplicableError(f"{_kind(event)}: without noise nothing is private.")
    return value


def _gaussian(event: object, relation: Neighbours) -> Mechanism:
    return Gaussian(_noise(event), relation.moves)


def _laplace(event: object, relation: Neighbours) -> Mechanism:
    return Laplace(_noise(event), relation.moves)


def _discrete_laplace(event: object, relation: Neighbours) -> Mechanism:
    rate = number("noise_parameter", attribute(event, "noise_parameter"))
    if rate.sign <= 0:
        raise NotApplicableError("DiscreteLaplaceDpEvent: expected noise_parameter > 0.")
    sensitivity = count("sensitivity", attribute(event, "sensitivity"))
    return DiscreteLaplace(ExactReal.of_rational(1) / rate, relation.moves * sensitivity)


def _randomized_response(event: object, relation: Neighbours) -> Mechanism:
    """Return the laws of the report: a report at random with probability p, else the truth."""
    k = count("num_buckets", attribute(event, "num_buckets"))
    p = number("noise_parameter", attribute(event, "noise_parameter")).rational
    if p is None or not 0 <= p <= 1:
        raise expected("noise_parameter", p, "in [0, 1]")
    if k < 1:
        raise expected("num_buckets", k, "≥ 1")
    if k == 1:
        return NOTHING
    other = p / k
    true = 1 - p + other
    if relation.name == "REPLACE_SPECIAL":
        return Tabulated([true, (k - 1) * other], [Fraction(1, k), Fraction(k - 1, k)])
    if relation.adjacency is Adjacency.ADD_REMOVE:
        raise AdjacencyError(
            "RandomizedResponseDpEvent takes exactly one record: name REPLACE_ONE or "
            "REPLACE_SPECIAL."
        )
    rest = (k - 2) * other
    return Tabulated([true, rest, other], [other, rest, true])


def _self_composed(event: object, relation: Neighbours) -> Mechanism:
    times = count("count", attribute(event, "count"))
    part = mechanism_of(attribute(event, "event"), relation.name)
    return Composed(part, times) if times and part != NOTHING else NOTHING


def _composed(event: object, relation: Neighbours) -> Mechanism:
    events = attribute(event, "events")
    if not isinstance(events, Iterable):
        raise expected("events", events, "to be a list")
    read = (mechanism_of(each, relation.name) for each in events)
    parts = [part for part in read if part != NOTHING]
    return Composed(tuple(parts)) if parts else NOTHING


def _sampled(event: object, relation: Neighbours) -> Mechanism:
    q = number("sampling_probability", attribute(event, "sampling_probability"))
    inner = mechanism_of(attribute(event, "event"), relation.name)
    if relation.adjacency is Adjacency.REPLACE_ONE:
        raise AdjacencyError(
            "PoissonSampledDpEvent: no exact worst pair is known here for REPLACE_ONE. Name "
            "ADD_OR_REMOVE_ONE or REPLACE_SPECIAL."
        )
    return PoissonSubsampled(inner, q)


def _without_replacement(event: object, relation: Neighbours) -> Mechanism:
    inner = mechanism_of(attribute(event, "event"), relation.name)
    if relation.adjacency is not Adjacency.REPLACE_ONE:
        raise AdjacencyError(
            "SampledWithoutReplacementDpEvent has a fixed number of records: name REPLACE_ONE."
        )
    drawn = count("sample_size", attribute(event, "sample_size"))
    population = count("source_dataset_size", attribute(event, "source_dataset_size"))
    return SampledWithoutReplacement(inner, drawn, population) if drawn else NOTHING


def _tree(event: object, relation: Neighbours) -> Mechanism:
    """Return the Gaussian that a tree run once amounts to: a record is in one node per level."""
    if relation.name != "REPLACE_SPECIAL":
        raise AdjacencyError("SingleEpochTreeAggregationDpEvent is about REPLACE_SPECIAL.")
    steps = attribute(event, "step_counts")
    counts = steps if isinstance(steps, Iterable) else [steps]
    most = max((count("step_counts", each) for each in counts), default=0)
    if most == 0:
        return NOTHING
    levels = most.bit_length()
    return Gaussian(_noise(event), ExactReal.of_root(Fraction(levels)))


_READERS: dict[str, Callable[[object, Neighbours], Mechanism]] = {
    "NoOpDpEvent": lambda event, relation: NOTHING,
    "GaussianDpEvent": _gaussian,
    "LaplaceDpEvent": _laplace,
    "DiscreteLaplaceDpEvent": _discrete_laplace,
    "RandomizedResponseDpEvent": _randomized_response,
    "SelfComposedDpEvent": _self_composed,
    "ComposedDpEvent": _composed,
    "PoissonSampledDpEvent": _sampled,
    "SampledWithoutReplacementDpEvent": _without_replacement,
    "SingleEpochTreeAggregationDpEvent": _tree,
}
_WHY_NOT = {
    "NonPrivateDpEvent": "it promises nothing",
    "UnsupportedDpEvent": "it stands for what cannot be described",
    "ZCDpEvent": "it is a guarantee, not a law; verify a zCDP claim of its mechanism",
    "SampledWithReplacementDpEvent": "no exact worst pair is known for sampling with replacement",
    "RepeatAndSelectDpEvent": "its exact law depends on what is selected",
    "MixtureOfGaussiansDpEvent": "mixtures of several shifts are not among the mechanisms",
    "TruncatedSubsampledGaussianDpEvent": "truncated batches are not among the mechanisms",
}


def reported(accountant: object, delta: object) -> float:
    """Ask an accountant object for the ε that it reports at δ.

    Raises InvalidInputError if it reports none that is finite.
    """
    ask = attribute(accountant, "get_epsilon")
    if not callable(ask):
        raise expected("get_epsilon", ask, "to be a method")
    value = float(ask(float(number("delta", delta))))
    if not math.isfinite(value):
        raise InvalidInputError(f"{type(accountant).__name__} reports epsilon={value}.")
    return value

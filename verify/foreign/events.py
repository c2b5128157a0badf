"""dp-accounting's events as mechanisms, and the ε that was reported for them as a claim.

An event is known by the name of its class and its attributes. What a `noise_multiplier` means
depends on the neighbours: the ℓ2 (or ℓ1) norm of one record's value is at most 1, so that adding
or removing a record, or replacing it by a special one of value 0, moves the sum by at most 1, and
replacing it by any other by at most 2. Floats of other libraries are the binary numbers that they
are (`number`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import SupportsFloat, SupportsIndex, final

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import (
    AdjacencyError,
    InvalidInputError,
    NotApplicableError,
    expected,
)
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.additive.integers import DiscreteGaussian, DiscreteLaplace
from dpassay.accountant.mechanisms.additive.laplace import Laplace
from dpassay.accountant.mechanisms.selection.candidates import ExponentialMechanism, PermuteAndFlip
from dpassay.accountant.mechanisms.wrappers.channel import Tabulated
from dpassay.accountant.mechanisms.wrappers.composed import Composed, Guaranteed
from dpassay.accountant.mechanisms.wrappers.sampling import (
    MixtureOfGaussians,
    PoissonSubsampled,
    SampledWithoutReplacement,
)
from dpassay.accountant.mechanisms.wrappers.tuned import Tuned
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.training.schemes import TruncatedBatches
from dpassay.verifier.claims import Claim, guarantee


def number(name: str, value: object) -> ExactReal:
    """Read a float, NumPy's too, an int or a text, exactly.

    Raises InvalidInputError for what is no finite number.
    """
    if isinstance(value, (str, int, ExactReal)):
        return exact(value, name)
    if not isinstance(value, SupportsFloat):
        raise expected(name, value, "to be a number")
    found = float(value)
    if not math.isfinite(found):
        raise expected(name, value, "to be finite", "Nothing can be claimed with it.")
    return exact(found, name)


def count(name: str, value: object) -> int:
    """Read a whole number ≥ 0."""
    if not isinstance(value, SupportsIndex):
        raise expected(name, value, "to be an integer")
    found = value.__index__()
    if found < 0:
        raise expected(name, value, "≥ 0")
    return found


def attribute(thing: object, name: str) -> object:
    """Return an attribute, or say that this is not what it was taken for."""
    try:
        return getattr(thing, name)
    except AttributeError:
        raise expected(
            type(thing).__name__, thing, f"to have the attribute {name!r}", "It was read by name."
        ) from None


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
_ROUNDING = Fraction(1, 10**9)
_OURS = {Adjacency.ADD_REMOVE: "ADD_OR_REMOVE_ONE", Adjacency.REPLACE_ONE: "REPLACE_ONE"}
NOTHING = Tabulated([1], [1])
"""A release that says nothing."""
EVERYTHING = Tabulated([1, 0], [0, 1])
"""A release that tells the neighbours apart for certain."""


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
    """Return the mechanism that an event represents.

    Raises NotApplicableError for an event whose exact law is not known here, or which promises
    nothing, and AdjacencyError for one that is not about the relation.
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
    return guarantee(
        {"epsilon": eps, "delta": d},
        id=name,
        source=_kind(event),
        statement=f"({eps}, {d})-DP under {known.name}, as reported.",
        mechanism=repr(mechanism_of(event, known.name)),
        adjacency=known.adjacency.value,
    )


def _kind(thing: object) -> str:
    names = [cls.__name__ for cls in type(thing).__mro__]
    return next((name for name in names if name in _READERS or name in _WHY_NOT), names[0])


def _nonnegative(event: object, name: str) -> ExactReal:
    value = number(name, attribute(event, name))
    if value.sign < 0:
        raise expected(name, value, "≥ 0")
    return value


def _additive(kind: type[Gaussian | Laplace]) -> Callable[[object, Neighbours], Mechanism]:
    """Read noise of one number by its multiplier."""

    def read(event: object, relation: Neighbours) -> Mechanism:
        noise = _nonnegative(event, "noise_multiplier")
        return kind(noise, relation.moves) if noise.sign else EVERYTHING

    return read


def _discrete_laplace(event: object, relation: Neighbours) -> Mechanism:
    """Return noise of law ∝ e^{−rate|z|}; for a rate of 0, dp-accounting means no noise at all."""
    rate = _nonnegative(event, "noise_parameter")
    if rate.sign == 0:
        return EVERYTHING
    sensitivity = count("sensitivity", attribute(event, "sensitivity"))
    return DiscreteLaplace(ExactReal.of_rational(1) / rate, relation.moves * sensitivity)


def _discrete_gaussian(event: object, relation: Neighbours) -> Mechanism:
    sigma = _nonnegative(event, "sigma")
    moves = number("sensitivity", getattr(event, "sensitivity", 1)).rational
    if moves is None or moves.denominator != 1 or moves < 0:
        raise NotApplicableError(
            f"DiscreteGaussianDpEvent: integer noise needs an integer sensitivity, not {moves}."
        )
    if moves == 0:
        return NOTHING
    if sigma.sign == 0:
        return EVERYTHING
    return DiscreteGaussian(sigma.square, relation.moves * moves.numerator)


def _mixture(event: object, relation: Neighbours) -> Mechanism:
    """Return the sampled sum; weights in floats are taken over their sum, which is 1 up to 1e-9."""
    if relation.adjacency is Adjacency.REPLACE_ONE:
        raise AdjacencyError(
            "MixtureOfGaussiansDpEvent: no exact worst pair is known here for REPLACE_ONE. Name "
            "ADD_OR_REMOVE_ONE or REPLACE_SPECIAL."
        )
    moves = _list(event, "sensitivities")
    weights = [entry.rational for entry in _list(event, "sampling_probs")]
    total = sum((weight for weight in weights if weight is not None), start=Fraction(0))
    if None in weights or abs(total - 1) > _ROUNDING:
        raise expected("sampling_probs", float(total), "to be rational, of sum 1")
    if all(entry.sign == 0 for entry in moves):
        return NOTHING
    noise = _nonnegative(event, "standard_deviation")
    shares = [weight / total for weight in weights if weight is not None]
    if noise.sign:
        return MixtureOfGaussians(noise, moves, shares)
    hidden = sum((w for w, s in zip(shares, moves, strict=True) if s.sign == 0), start=Fraction(0))
    return Tabulated([hidden, 1 - hidden], [1, 0])


def _list(event: object, name: str) -> list[ExactReal]:
    values = attribute(event, name)
    if not isinstance(values, Iterable) or isinstance(values, str):
        raise expected(name, values, "to be a list")
    return [number(f"{name}[{index}]", value) for index, value in enumerate(values)]


def _epsilon_delta(event: object, relation: Neighbours) -> Mechanism:
    """Return the worst of all mechanisms with this guarantee, under whichever relation."""
    epsilon = _nonnegative(event, "epsilon")
    delta = number("delta", attribute(event, "delta"))
    return Guaranteed(epsilon, delta) if epsilon.sign or delta.sign else NOTHING


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
    if part == NOTHING or times == 0:
        return NOTHING
    return part if times == 1 else Composed(part, times)


def _composed(event: object, relation: Neighbours) -> Mechanism:
    events = attribute(event, "events")
    if not isinstance(events, Iterable):
        raise expected("events", events, "to be a list")
    read = (mechanism_of(each, relation.name) for each in events)
    parts = [part for part in read if part != NOTHING]
    return joined(parts)


def joined(parts: list[Mechanism]) -> Mechanism:
    """Return the composition of some releases, one alone as it is."""
    if len(parts) == 1:
        return parts[0]
    return Composed(tuple(parts)) if parts else NOTHING


def _sampled(event: object, relation: Neighbours) -> Mechanism:
    """Return the sampled release; a sensitivity inside is that of a record that is added.

    Raises NotApplicableError for REPLACE_ONE of other noise than Gaussian.
    """
    q = number("sampling_probability", attribute(event, "sampling_probability"))
    replaced = relation.adjacency is Adjacency.REPLACE_ONE
    inner = mechanism_of(
        attribute(event, "event"), "ADD_OR_REMOVE_ONE" if replaced else relation.name
    )
    sampled = PoissonSubsampled(inner, q)
    if replaced:
        sampled.worst_case(relation.adjacency)  # refuses what has no exact pair
    return sampled


def _without_replacement(event: object, relation: Neighbours) -> Mechanism:
    inner = mechanism_of(attribute(event, "event"), relation.name)
    if relation.adjacency is not Adjacency.REPLACE_ONE:
        raise AdjacencyError(
            "SampledWithoutReplacementDpEvent has a fixed number of records: name REPLACE_ONE."
        )
    drawn = count("sample_size", attribute(event, "sample_size"))
    population = count("source_dataset_size", attribute(event, "source_dataset_size"))
    return SampledWithoutReplacement(inner, drawn, population) if drawn else NOTHING


def _tuned(event: object, relation: Neighbours) -> Mechanism:
    """Return the best of a random number of runs; an infinite shape is that of Poisson's law."""
    part = mechanism_of(attribute(event, "event"), relation.name)
    mean, shape = number("mean", attribute(event, "mean")), attribute(event, "shape")
    if part == NOTHING:
        return NOTHING
    return Tuned(part, mean, "poisson" if shape == math.inf else number("shape", shape))


def _selection(
    kind: type[ExponentialMechanism | PermuteAndFlip],
) -> Callable[[object, Neighbours], Mechanism]:
    """Read a selection by its ε, which bounds the loss under every relation."""
    return lambda event, relation: kind(number("epsilon", attribute(event, "epsilon")))


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
    noise = _nonnegative(event, "noise_multiplier")
    return Gaussian(noise, ExactReal.of_root(Fraction(levels))) if noise.sign else EVERYTHING


TRUNCATED = "TruncatedSubsampledGaussianDpEvent"
"""Has no exact law here, but a proved upper end of ε."""


def truncated(event: object, steps: int) -> TruncatedBatches:
    """Return so many steps of Poisson batches that are cut, about an added or removed record."""
    share = number("sampling_probability", attribute(event, "sampling_probability")).rational
    noise = _nonnegative(event, "noise_multiplier")
    if share is None or not 0 < share <= 1:
        raise expected("sampling_probability", share, "in (0, 1]")
    if noise.sign == 0:
        raise expected("noise_multiplier", noise, "> 0")
    size, most = (
        count(name, attribute(event, name)) for name in ("dataset_size", "truncated_batch_size")
    )
    if most < 1:
        raise expected("truncated_batch_size", most, "≥ 1")
    return TruncatedBatches(noise, size, share, most, steps)


_READERS: dict[str, Callable[[object, Neighbours], Mechanism]] = {
    "NoOpDpEvent": lambda event, relation: NOTHING,
    "NonPrivateDpEvent": lambda event, relation: EVERYTHING,
    "EpsilonDeltaDpEvent": _epsilon_delta,
    "GaussianDpEvent": _additive(Gaussian),
    "LaplaceDpEvent": _additive(Laplace),
    "DiscreteLaplaceDpEvent": _discrete_laplace,
    "DiscreteGaussianDpEvent": _discrete_gaussian,
    "MixtureOfGaussiansDpEvent": _mixture,
    "RandomizedResponseDpEvent": _randomized_response,
    "SelfComposedDpEvent": _self_composed,
    "ComposedDpEvent": _composed,
    "PoissonSampledDpEvent": _sampled,
    "SampledWithoutReplacementDpEvent": _without_replacement,
    "SingleEpochTreeAggregationDpEvent": _tree,
    "ExponentialMechanismDpEvent": _selection(ExponentialMechanism),
    "PermuteAndFlipDpEvent": _selection(PermuteAndFlip),
    "RepeatAndSelectDpEvent": _tuned,
}
_WHY_NOT = {
    "UnsupportedDpEvent": "it stands for what cannot be described",
    "ZCDpEvent": (
        "it is a guarantee without a worst law; convert it (dpassay convert --zcdp), or verify a "
        "zCDP claim of its mechanism"
    ),
    "SampledWithReplacementDpEvent": "its exact law is not known; dpassay.dpsgd(…, "
    "sampling='with-replacement') has both ends of epsilon",
    TRUNCATED: "its exact law is not known; dpassay.dpsgd(…, "
    "sampling='truncated-poisson') has both ends of epsilon",
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

"""Reports about events in JSON, and whether a reported ε is an upper bound.

An event is a JSON object whose "type" is the name of dp-accounting's class, with or without the
ending DpEvent, and whose other keys are its attributes:

    {"type": "SelfComposed", "count": 7032, "event":
        {"type": "PoissonSampled", "sampling_probability": "256/60000", "event":
            {"type": "Gaussian", "noise_multiplier": "1.1"}}}

Texts are read as the numbers that they say, floats as the binary numbers that they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import msgspec

from accountant.core.mechanism import Mechanism
from accountant.errors import InvalidInputError, UndecidedError, expected
from accountant.numbers.interval import Interval
from accountant.questions import profile
from verify.claim import Claim
from verify.foreign import events
from verify.foreign.numbers import number

_WIDTHS = (Fraction(1, 10**9), Fraction(1, 10**4), Fraction(1, 10**2))
_ENDING = "DpEvent"


@final
@dataclass(frozen=True, slots=True)
class Judgement:
    """What is true of a reported ε."""

    mechanism: Mechanism
    epsilon: Interval
    """Encloses the exact ε at the δ that was given."""
    is_upper_bound: bool | None
    """None where the enclosure contains the reported ε."""
    excess: Interval
    """Encloses reported/exact − 1: negative where the report is too small."""
    reason: str


def judge(
    event: object, epsilon: object, delta: object, relation: object = "ADD_OR_REMOVE_ONE"
) -> Judgement:
    """Say whether a reported ε is an upper bound at δ, and by how much it is off.

    Parameters
    ----------
    event
        A dp-accounting event, or its JSON object.
    epsilon, delta
        What was reported; ε > 0.
    relation
        dp-accounting's neighbouring relation or ours.

    Raises
    ------
    NotApplicableError
        For an event that no mechanism here stands for.
    """
    reported = number("epsilon", epsilon)
    if reported.sign <= 0:
        raise expected("epsilon", epsilon, "> 0")
    mechanism = events.mechanism_of(_event(event), relation)
    adjacency = events.neighbours(relation).adjacency.value
    true = _epsilon(mechanism, delta, adjacency)
    excess = Interval.of_ball(reported.ball() / true.ball() - 1, 12)
    if excess.lower >= 0:
        reason = f"An upper bound, too large by a share of {float(excess.upper):.1e}."
        return Judgement(mechanism, true, True, excess, reason)
    if excess.upper < 0:
        reason = (
            f"No upper bound: below the exact epsilon by a share of {-float(excess.lower):.1e}. A "
            "lower estimate, the rounding of a convolution, a tail that was cut off, or another "
            "neighbouring relation explain such a gap."
        )
        return Judgement(mechanism, true, False, excess, reason)
    return Judgement(mechanism, true, None, excess, "Not told from the exact epsilon.")


def _epsilon(mechanism: Mechanism, delta: object, adjacency: str) -> Interval:
    target = number("delta", delta)
    for width in _WIDTHS[:-1]:
        try:
            return profile.epsilon(mechanism, target, adjacency=adjacency, relative_width=width)
        except UndecidedError:
            continue
    return profile.epsilon(mechanism, target, adjacency=adjacency, relative_width=_WIDTHS[-1])


def claims(document: object) -> list[Claim]:
    """Return the claim that each report of a JSON document makes.

    A report is {"event": …, "epsilon": …, "delta": …}, with optional "adjacency" ("add-remove"),
    "accountant" (a name) and "id"; a document is one report or a list of them.
    """
    reports = document if isinstance(document, list) else [document]
    found = []
    for index, report in enumerate(reports):
        if not isinstance(report, Mapping) or not {"event", "epsilon", "delta"} <= set(report):
            raise InvalidInputError(
                f"Expected report {index} to be an object with event, epsilon and delta."
            )
        made = events.claim(
            _event(report["event"]),
            report["epsilon"],
            report["delta"],
            report.get("adjacency", "add-remove"),
            name=str(report.get("id", f"event-{index}")),
        )
        source = str(report.get("accountant", made.source))
        found.append(msgspec.structs.replace(made, source=source, cause=cause(source)))
    return found


_CAUSES = (
    (("gdp", "central limit"), "A central limit is an approximation, and no bound in either way."),
    (("estimate", "optimistic"), "An estimate; the accountant's bound is its upper end."),
    (
        ("pld",),
        "Pessimistic rounding of the losses covers the grid, not the rounding errors of the "
        "Fourier transform, about 1e-16 of the largest mass in every grid point.",
    ),
    (("rdp", "renyi"), "The order, the conversion or the neighbouring relation is another."),
)


def cause(accountant: str) -> str:
    """Say why an accountant of this name may report an ε that is too small; empty if unknown."""
    name = accountant.lower()
    for fragments, why in _CAUSES:
        if any(fragment in name for fragment in fragments):
            return why
    return ""


def _event(event: object) -> object:
    """Return an object with the class name and the attributes that a JSON object names."""
    if isinstance(event, list):
        return [_event(entry) for entry in event]
    if not isinstance(event, Mapping):
        return event
    kind = str(event.get("type", ""))
    kind = kind if kind.endswith(_ENDING) else kind + _ENDING
    members = {str(key): _event(value) for key, value in event.items() if key != "type"}
    return type(kind, (), members)()

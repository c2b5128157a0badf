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

import msgspec

from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier.claim import Claim
from dpassay.verifier.foreign import events

_ENDING = "DpEvent"


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

"""Any object that is recognised, as a mechanism."""

from __future__ import annotations

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import expected
from dpassay.verifier.foreign import events, opacus, opendp


def as_mechanism(thing: object, adjacency: object = "add-remove") -> Mechanism:
    """Return the mechanism of an event, a measurement, a history or an accountant; or itself.

    An accountant of dp-accounting (which has a `ledger`) is read under its own relation, a
    measurement at distance 1. What a thing claims about itself is not looked at.

    Raises InvalidInputError for what is not recognised, and NotApplicableError for what is, but
    whose law is not known.
    """
    if isinstance(thing, Mechanism):
        return thing
    if events.is_event(thing):
        return events.mechanism_of(thing, adjacency)
    if opendp.is_measurement(thing):
        return opendp.mechanism_of(thing)
    if hasattr(thing, "ledger"):
        own = getattr(thing, "neighboring_relation", adjacency)
        return events.mechanism_of(thing.ledger, own)
    if hasattr(thing, "history") or (
        isinstance(thing, list) and all(isinstance(entry, tuple) for entry in thing)
    ):
        return opacus.mechanism_of(thing)
    raise expected(
        "candidate",
        thing,
        "to be a mechanism",
        "Or a dp-accounting event or accountant, an OpenDP measurement, or an Opacus history.",
    )

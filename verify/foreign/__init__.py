"""What other libraries describe or claim, read without importing them.

Their objects are recognised by their attributes. A description becomes a mechanism in the notation;
an ε, δ or ρ that a library reports becomes a *claim* about it, to be decided like any other.

>>> from dpassay.verifier.foreign import opacus
>>> opacus.mechanism_of([(2.0, 1.0, 10)])
Composed(mechanism=Gaussian(standard_deviation=2), count=10)
"""

from __future__ import annotations

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import expected
from dpassay.verifier.foreign import events, opacus, opendp

__all__ = ["as_mechanism"]


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

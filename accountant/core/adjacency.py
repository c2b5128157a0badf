"""Neighbouring relations, and the two directions of a pair of neighbours."""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

from dpassay.accountant.errors import (
    AdjacencyError,
    DpassayError,
    InvalidInputError,
    shortened,
    suggestion,
)

E = TypeVar("E", bound=Enum)


class Adjacency(Enum):
    """The definition of neighbouring datasets."""

    ADD_REMOVE = "add-remove"
    """One dataset is the other with one record added or removed."""
    REPLACE_ONE = "replace-one"
    """Both datasets have the same size and differ in one record."""

    @classmethod
    def read(cls, value: Adjacency | str | None) -> Adjacency | None:
        """Convert the name of a relation, such as "add-remove"; a member or None is returned as is.

        Raises AdjacencyError for anything else.
        """
        return _read(cls, "adjacency", value, AdjacencyError)


class Direction(Enum):
    """Which of two neighbours has the law P, the numerator of the likelihood ratio."""

    REMOVE = "remove"
    """P is the law with the record (or of the shifted dataset), Q the law without it."""
    ADD = "add"
    """P is the law without the record, Q the law with it."""

    @classmethod
    def read(cls, value: Direction | str | None) -> Direction | None:
        """Convert the name of a direction; a member or None is returned as is.

        Raises InvalidInputError for anything else.
        """
        return _read(cls, "direction", value, InvalidInputError)


def _read(kind: type[E], name: str, value: E | str | None, error: type[DpassayError]) -> E | None:
    """Return the member with this name; raise the error for an unknown name."""
    if value is None or isinstance(value, kind):
        return value
    try:
        return kind(str(value).replace("_", "-").lower())
    except ValueError:
        known = [member.value for member in kind]
        raise error(
            f"Expected {name}={shortened(repr(value))} to be one of {', '.join(known)}. "
            f"{suggestion(str(value), known, listed=False)}".rstrip()
        ) from None


def require(adjacency: Adjacency | None, mechanism: object) -> Adjacency:
    """Return the adjacency; raise AdjacencyError if it is None, as the guarantee depends on it."""
    if adjacency is None:
        raise AdjacencyError(
            f"Expected adjacency to be named for {type(mechanism).__name__}: its guarantee "
            "differs between neighbouring relations. "
            "Give adjacency='add-remove' or 'replace-one' (--adjacency on the command line)."
        )
    return adjacency


def refuse_added(adjacency: Adjacency | None, mechanism: object) -> None:
    """Raise AdjacencyError for add/remove: the dataset is always a single record."""
    if adjacency is Adjacency.ADD_REMOVE:
        raise AdjacencyError(
            f"{type(mechanism).__name__} takes exactly one record, which cannot be added or "
            "removed. Name adjacency='replace-one', or none."
        )

"""Neighbouring relations and the two directions of a pair."""

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
    """When two datasets are neighbours."""

    ADD_REMOVE = "add-remove"
    """One is the other with one record added or removed."""
    REPLACE_ONE = "replace-one"
    """They have the same size and differ in one record."""

    @classmethod
    def read(cls, value: Adjacency | str | None) -> Adjacency | None:
        """Accept the member, its name on the command line, or None.

        Raises AdjacencyError for anything else.
        """
        return _read(cls, "adjacency", value, AdjacencyError)


class Direction(Enum):
    """Which of two neighbours the numerator of the likelihood ratio belongs to."""

    REMOVE = "remove"
    """P is the law on the larger (or shifted) dataset, Q the law without the record."""
    ADD = "add"
    """P is the law without the record, Q the law with it."""

    @classmethod
    def read(cls, value: Direction | str | None) -> Direction | None:
        """Accept the member, its value, or None.

        Raises InvalidInputError for anything else.
        """
        return _read(cls, "direction", value, InvalidInputError)


def _read(kind: type[E], name: str, value: E | str | None, error: type[DpassayError]) -> E | None:
    """Return the member that is named, None for None; raise the error for anything else."""
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
    """Return the adjacency, or raise: this mechanism's guarantee depends on it."""
    if adjacency is None:
        raise AdjacencyError(
            f"Expected adjacency to be named for {type(mechanism).__name__}: its guarantee "
            "differs between neighbouring relations. "
            "Give adjacency='add-remove' or 'replace-one' (--adjacency on the command line)."
        )
    return adjacency


def refuse_added(adjacency: Adjacency | None, mechanism: object) -> None:
    """Raise AdjacencyError for add/remove: the input is one record."""
    if adjacency is Adjacency.ADD_REMOVE:
        raise AdjacencyError(
            f"{type(mechanism).__name__} takes exactly one record, which cannot be added or "
            "removed. Name adjacency='replace-one', or none."
        )

"""A mechanism as it is named: what the notation says, and nothing computed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final


@final
@dataclass(frozen=True)
class Noise:
    """A name and its arguments: numbers, texts, lists, descriptions or mechanisms.

    `build` in `arguments` is the only place that makes one from a text: there every argument is
    known, in its domain, and has its default where it was left out.
    """

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    adjacency: str | None = None
    """The relation, where it was noted (`under`)."""

    def __getitem__(self, argument: str) -> Any:
        return self.arguments.get(argument)

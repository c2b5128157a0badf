"""Verdicts, rigour levels, and the finding that carries them."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec


class Verdict(Enum):
    """What was decided about a claim."""

    HOLDS = "HOLDS"
    """Proved, over everything that the claim ranges over."""
    REFUTED = "REFUTED"
    """A counterexample was proved."""
    UNDECIDED = "UNDECIDED"
    """Neither side was proved within the precision and time allowed."""
    SUPPORTED = "SUPPORTED"
    """Every case of a stated grid was proved; the claim ranges over more than the grid."""
    PENDING = "PENDING"
    """Not a question about one release; the reason says what it needs."""


class Rigour(Enum):
    """How the numbers behind a verdict were obtained."""

    PROVED = "PROVED"
    """Ball arithmetic or exact rationals."""
    BOUNDED = "BOUNDED"
    """Floating point with an error ledger."""
    TESTED = "TESTED"
    """Statistical, at a stated confidence."""
    NONE = "NONE"
    """No number supports it (pending claims)."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One claim, decided. Enclosures are {"lower": "…", "upper": "…"} decimal strings."""

    id: str
    source: str
    statement: str
    verdict: Verdict
    kind: str
    true: dict[str, Any]
    """What is true: enclosures by name (delta at the claimed epsilon, and so on)."""
    claimed: dict[str, str]
    margin: dict[str, Any]
    """`factor` = true/claimed and `difference` = true − claimed, where they make sense."""
    rigour: Rigour
    witness: dict[str, Any]
    """What can be checked by hand: the case, the pair and the event, or the two sides."""
    reason: str
    adjacency: str | None = None
    route: str = ""
    cause: str = ""
    """The likely cause of an error, where one is known."""
    correction: str = ""
    """The corrected statement, and the id of the claim that proves it."""
    cases: int = 1
    """How many cases were decided."""
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return data

    def _repr_html_(self) -> str:
        """Return the verdict as a badge, and what supports it, for notebooks."""
        from html import escape

        from accountant.notebook import badge, rows

        entries = [
            ("verdict", badge(self.verdict.value)),
            ("statement", escape(self.statement)),
            ("reason", escape(self.reason)),
            *((f"claimed {name}", escape(value)) for name, value in self.claimed.items()),
            *((f"true {name}", _ends(value)) for name, value in self.true.items()),
            ("event", escape(str(self.witness.get("description", "")))),
            ("rigour", escape(self.rigour.value)),
        ]
        return rows(entries)

    def _repr_markdown_(self) -> str:
        """Return the verdict, the statement and the reason as Markdown."""
        return f"**{self.verdict.value}** {self.statement}\n\n{self.reason}"


def _ends(value: Any) -> str:
    from html import escape

    if isinstance(value, dict) and {"lower", "upper"} <= set(value):
        return f"[{escape(str(value['lower']))}, {escape(str(value['upper']))}]"
    return escape(str(value))

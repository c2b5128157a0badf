"""What the checker says about one certificate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import final


@final
class Outcome(Enum):
    """What a check ends with, the worst last."""

    VALID = "VALID"
    """Everything was recomputed."""
    CONDITIONAL = "CONDITIONAL"
    """What was recomputed is right; what the theorem rests on besides is listed."""
    NOT_CHECKED = "NOT CHECKED"
    """The check would take more time, memory or text than it may."""
    INVALID = "INVALID"
    """Something is wrong."""

    @staticmethod
    def worst(outcomes: Iterable[Outcome]) -> Outcome:
        """Return the worst outcome; VALID for none."""
        return max(outcomes, key=[*Outcome].index, default=Outcome.VALID)


@final
@dataclass(frozen=True)
class Theorem:
    """What was checked, in the checker's words, made of checked fields alone."""

    mechanism: str
    """The notation; empty for a relation."""
    adjacency: str
    claimed: str
    verdict: str

    def __str__(self) -> str:
        """Say it in one line."""
        subject = f"{self.mechanism} is " if self.mechanism else ""
        relation = f" under {self.adjacency}" if self.adjacency else ""
        return f"{self.verdict}: {subject}{self.claimed}{relation}"


@final
@dataclass(frozen=True)
class Checked:
    """What the checker found about one certificate."""

    id: str
    """The name that its author gave it: foreign text."""
    verdict: str
    problems: list[tuple[str, str]]
    """The field that is wrong, as a path such as `facts[0].p.lower`, and what is wrong."""
    taken_as_given: list[str]
    """What the checker could not recompute and took from the certificate."""
    seconds: float
    recomputed: list[str] = field(default_factory=list)
    """To how many digits the numbers of a product of laws were enclosed again."""
    theorem: Theorem | None = None
    """What was checked; None where nothing was."""
    not_checked: str = ""
    """Why the check was given up; empty where it was not."""

    @property
    def outcome(self) -> Outcome:
        """The outcome in one word."""
        if self.problems:
            return Outcome.INVALID
        if self.not_checked:
            return Outcome.NOT_CHECKED
        return Outcome.CONDITIONAL if self.taken_as_given else Outcome.VALID

    @property
    def valid(self) -> bool:
        """Whether everything was recomputed, and nothing is wrong."""
        return self.outcome is Outcome.VALID

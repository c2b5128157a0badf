"""The verdict of a statistical test, and a dataset in one line."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dpassay.accountant.errors import shortened

if TYPE_CHECKING:
    from dpassay.verifier.verdict import Finding


class Outcome(StrEnum):
    """The verdict of a statistical test."""

    REFUTED = "REFUTED"
    """The claim is false, or something of probability ≤ significance happened."""
    NOT_REFUTED = "NOT_REFUTED"
    """These runs do not refute the claim; no number of runs can prove it."""

    @staticmethod
    def of(p_value: float, significance: float) -> Outcome:
        """Return what a p-value says at a significance."""
        return Outcome.REFUTED if p_value <= significance else Outcome.NOT_REFUTED


def decided(outcome: Outcome | None, finding: Finding | None) -> Outcome | None:
    """Return what runs say, but REFUTED where a claim is known exactly to be false."""
    return Outcome.REFUTED if finding is not None and finding.refuted else outcome


def shown(dataset: Any) -> str:
    """Return a dataset as one line of text, shortened."""
    text = repr(dataset.tolist()) if hasattr(dataset, "tolist") else repr(dataset)
    if "\n" in text:  # a table of pandas
        text = " ".join(text.split())
    return shortened(text)

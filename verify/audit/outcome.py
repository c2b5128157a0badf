"""The verdict of a statistical test, its arguments, and a dataset in one line."""

from __future__ import annotations

import numbers
import secrets
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dpassay.accountant.errors import expected, shortened

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


def read_significance(value: Any) -> float:
    """Return a significance; raise InvalidInputError where it is none."""
    if isinstance(value, numbers.Real) and 0 < (level := float(value)) < 1:
        return level
    raise expected("significance", value, "in (0, 1)", "Write 0.05, or 1e-6 for a proof.")


def read_count(value: Any, name: str = "samples") -> int:
    """Return a number of runs or the like; raise InvalidInputError where it is none."""
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real) and (number := float(value)).is_integer():
        return int(number)
    raise expected(name, value, "to be a whole number")


def read_seed(value: Any) -> int:
    """Return a seed, drawn where none is given; raise InvalidInputError for what is none."""
    if value is None:
        return secrets.randbits(63)
    if (seed := read_count(value, "seed")) >= 0:
        return seed
    raise expected("seed", value, "≥ 0")


def shown(dataset: Any) -> str:
    """Return a dataset as one line of text, shortened."""
    text = repr(dataset.tolist()) if hasattr(dataset, "tolist") else repr(dataset)
    if "\n" in text:  # a table of pandas
        text = " ".join(text.split())
    return shortened(text)

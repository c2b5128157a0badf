"""Rows of tables, a second time."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dpassay.verifier.checker.reals import UnknownError, compare

_ZERO, _ONE = Fraction(0), Fraction(1)


def misfit(row: list[Any]) -> str:
    """Say what is wrong with the sum of a row; empty if it is 1, or may be."""
    found = compare(sum(row, _ZERO), "==", _ONE)
    if found is None:
        raise UnknownError("whether a row of these formulas adds up to 1")
    return "" if found else "a row of a sum other than 1"

"""Numbers of other libraries: floats, as the binary numbers that they are."""

from __future__ import annotations

import math
from typing import SupportsFloat, SupportsIndex

from dpassay.accountant.errors import expected
from dpassay.accountant.numbers.exact import ExactReal, exact


def number(name: str, value: object) -> ExactReal:
    """Read a float, NumPy's too, an int or a text, exactly.

    Raises InvalidInputError for what is no finite number.
    """
    if isinstance(value, (str, int, ExactReal)):
        return exact(value, name)
    if not isinstance(value, SupportsFloat):
        raise expected(name, value, "to be a number")
    found = float(value)
    if not math.isfinite(found):
        raise expected(name, value, "to be finite", "Nothing can be claimed with it.")
    return exact(found, name)


def count(name: str, value: object) -> int:
    """Read a whole number ≥ 0."""
    if not isinstance(value, SupportsIndex):
        raise expected(name, value, "to be an integer")
    found = value.__index__()
    if found < 0:
        raise expected(name, value, "≥ 0")
    return found


def attribute(thing: object, name: str) -> object:
    """Return an attribute, or say that this is not what it was taken for."""
    try:
        return getattr(thing, name)
    except AttributeError:
        raise expected(
            type(thing).__name__, thing, f"to have the attribute {name!r}", "It was read by name."
        ) from None

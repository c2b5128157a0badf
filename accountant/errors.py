"""What can go wrong, and the one place where its words are put together."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from decimal import Decimal

_MOST_NAMES = 40


class DpassayError(Exception):
    """Base class of every error that this package raises on purpose."""


class InvalidInputError(DpassayError, ValueError):
    """An argument, a claim or a file is not what it must be."""


class AdjacencyError(InvalidInputError):
    """The neighbouring relation is missing, unknown, or does not fit the mechanism."""


class NotApplicableError(DpassayError):
    """The question has no answer for this mechanism (not: the answer could not be found)."""


class UndecidedError(DpassayError):
    """The highest precision of the ladder did not separate the two sides of a question.

    `reached` is the relative width of the enclosure that was found, +∞ where none is known.
    """

    def __init__(self, message: str = "", *, reached: float = math.inf) -> None:
        super().__init__(message)
        self.reached = reached

    def say_reached(self, lower: Decimal, upper: Decimal, width: float) -> None:
        """Add the enclosure that was reached to the message, where it says none."""
        self.reached = width
        self.args = (f"{self} Reached [{lower}, {upper}], of relative width {width:.0e}.",)


class BetweenError(UndecidedError):
    """A number is known to lie between two bounds that no precision brings together."""

    def __init__(self, what: str, lower: Decimal, upper: Decimal) -> None:
        self.lower, self.upper = lower, upper
        super().__init__(
            f"Reached {what} in [{lower:.12g}, {upper:.12g}]: one end is attained, the other is "
            "that of a pair with the largest of the profiles of all neighbours, no one of which "
            "is worst. What lies between is not known. Ask for a larger relative_width.",
            reached=float((upper - lower) / lower) if 0 < lower < upper < math.inf else math.inf,
        )


def expected(argument: str, value: object, requirement: str, remedy: str = "") -> InvalidInputError:
    """Build the error "Expected argument=value requirement. Remedy." and return it.

    Examples
    --------
    >>> print(expected("scale", -1, "> 0", "The scale of the noise is a positive number."))
    Expected scale=-1 > 0. The scale of the noise is a positive number.
    """
    try:
        shown = repr(value) if isinstance(value, str) else str(value)
    except ValueError:  # Python prints no integer of more than 4300 digits
        shown = f"<{type(value).__name__} of thousands of digits>"
    if len(shown) > 80:
        shown = f"{shown[:60]}… ({len(shown)} characters)"
    return InvalidInputError(
        f"Expected {argument}={shown} {requirement}.{' ' * bool(remedy)}{remedy}"
    )


def suggestion(unknown: str, known: Iterable[str]) -> str:
    """Return 'Did you mean X?' for the nearest known name, else the list of known names."""
    known = list(known)
    near = difflib.get_close_matches(unknown, known, n=1, cutoff=0.5)
    if not near:  # the same comparison without regard to case
        folded = {name.casefold(): name for name in known}
        near = [folded[n] for n in difflib.get_close_matches(unknown.casefold(), folded, n=1)]
    if near:
        return f"Did you mean {near[0]!r}?"
    shown = sorted(known)[:_MOST_NAMES]
    rest = len(known) - len(shown)
    return f"Known: {', '.join(shown)}{f' and {rest} more' if rest else ''}."

"""Numbers of certificates that are exact: fractions, roots of fractions, bounds of e^ε."""

from __future__ import annotations

import re
from fractions import Fraction

from mpmath import iv

_MOST_DIGITS = 100_000
_ALLOWANCE = 20
_NUMBER = re.compile(r"[+-]?\d+(/[1-9]\d*|(\.\d+)?([eE][+-]?\d{1,5})?)")


def number(text: object) -> Fraction:
    """Read a fraction or a decimal; raise ValueError for anything else."""
    if not isinstance(text, str) or len(text) > _MOST_DIGITS or not _NUMBER.fullmatch(text):
        raise ValueError(f"not a number: {str(text)[:60]!r}")
    return Fraction(text)


def signed_square(text: object) -> Fraction:
    """Return x|x| for x a number or "sqrt(…)" with or without a minus sign."""
    sign, root = 1, str(text)
    if root.startswith("-sqrt("):
        sign, root = -1, root[1:]
    if root.startswith("sqrt(") and root.endswith(")"):
        return sign * number(root[5:-1])
    value = number(text)
    return value * abs(value)


def integer(value: object, least: int) -> int:
    """Require an integer that is not too small; raise ValueError for anything else."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"not an integer of at least {least}: {str(value)[:60]!r}")
    return value


def encloses_exponential(epsilon: object, ratio: object, lower: Fraction, upper: Fraction) -> bool:
    """Whether 1 ≤ lower ≤ e^ε ≤ upper, decided in interval arithmetic, or for e^ε = ratio."""
    if ratio is not None:
        return epsilon is None and 1 <= lower <= number(ratio) <= upper
    square = signed_square(epsilon)
    if square < 0 or lower < 1:
        return False
    if square == 0:
        return lower == 1
    before = iv.dps
    iv.dps = max(len(str(lower)), len(str(upper))) + _ALLOWANCE
    try:
        power = iv.exp(iv.sqrt(iv.mpf(square.numerator) / square.denominator))
        below = iv.mpf(lower.numerator) / lower.denominator
        above = iv.mpf(upper.numerator) / upper.denominator
        return bool(below.b <= power.a and power.b <= above.a)
    finally:
        iv.dps = before

"""Numbers of certificates of optima: fractions, and bounds of e^ε."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.notation import number as written
from dpassay.verifier.checker.outcome import Theorem, formula
from dpassay.verifier.checker.reals import compare, exp

_MOST_DIGITS = 100_000
"""Characters of one rational number."""
_ALLOWANCE = 20
"""Digits beyond those of the numbers that are enclosed."""
WIDEST_GAP = Fraction(1, 10**6)
"""Of a certified optimum, between what is attained and what is proved, relative to the former."""
_NUMBER = re.compile(r"[+-]?[0-9]+(/[1-9][0-9]*|(\.[0-9]+)?([eE][+-]?[0-9]{1,5})?)")


def number(text: object) -> Fraction:
    """Read a fraction or a decimal; raise ValueError for anything else."""
    if not isinstance(text, str) or len(text) > _MOST_DIGITS or not _NUMBER.fullmatch(text):
        raise ValueError(f"not a number: {str(text)[:60]!r}")
    return Fraction(text)


def integer(value: object, least: int) -> int:
    """Require an integer that is not too small; raise ValueError for anything else."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"not an integer of at least {least}: {str(value)[:60]!r}")
    return value


def encloses_exponential(epsilon: object, ratio: object, lower: Fraction, upper: Fraction) -> bool:
    """Whether 1 ≤ lower ≤ e^ε ≤ upper, decided in balls, or for e^ε = ratio."""
    if ratio is not None:
        return epsilon is None and 1 <= lower <= number(ratio) <= upper
    digits = max(len(str(lower)), len(str(upper))) + _ALLOWANCE
    with ctx.workprec(4 * digits):
        power = exp(written(epsilon))
        return lower >= 1 and all(
            compare(*side) for side in ((lower, "<=", power), (power, "<=", upper))
        )


def gap_problems(path: str, lower: Fraction, upper: Fraction) -> list[tuple[str, str]]:
    """Require two bounds of an optimum to be near each other."""
    if not 0 <= lower <= upper:
        return [(f"{path}.lower", "expected 0 <= lower <= upper")]
    if upper - lower > WIDEST_GAP * upper:
        return [
            (f"{path}.lower", f"leaves a gap of {_rounded_up((upper - lower) / upper)}: no optimum")
        ]
    return []


def optimum(enclosure: Mapping[str, str]) -> str:
    """Say what an optimum is, and to which relative gap: "0.25, optimal within 1e-12"."""
    lower, upper = (number(enclosure[end]) for end in ("lower", "upper"))
    if lower == upper:
        return f"{_decimal(upper)}, exactly optimal"
    gap = _rounded_up((upper - lower) / upper)
    return f"at most {_decimal(upper)}, optimal within a relative gap of {gap}"


def best(what: str, enclosure: Mapping[str, str]) -> Theorem:
    """Return the theorem that something is as small as enclosed."""
    claimed = formula(f"{what} is {optimum(enclosure)}")
    return Theorem(mechanism="", adjacency="", claimed=claimed, verdict="OPTIMAL")


def _rounded_up(value: Fraction) -> str:
    """Return a power of ten that is not below the value."""
    power = len(str(value.numerator)) - len(str(value.denominator)) + 1
    return f"1e{power - 1 if value <= Fraction(10) ** (power - 1) else power}"


def _decimal(value: Fraction) -> str:
    """Return twelve digits, rounded up; a short fraction as it is."""
    if len(str(value)) <= 12:
        return str(value)
    with localcontext(prec=12, rounding=ROUND_CEILING):
        return str(Decimal(value.numerator) / Decimal(value.denominator))

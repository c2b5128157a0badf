"""Exact rationals and balls, decisions about them, and the budget of a proof.

A number is an exact `fmpq`, or an `arb`: a ball that contains it. Balls are computed at the working
precision `ctx.prec`. A predicate on balls is True, False, or None where the balls overlap; `decide`
evaluates it at rising precision until it is decided.

The digits and exponent of a number in text, and the size of an exact power, are limited.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import eq, ge, gt, le, lt, ne
from typing import TypeAlias

from flint import arb, ctx, fmpq, fmpz

Number: TypeAlias = fmpq | arb
MOST_DIGITS = 100_000
"""Limit on the characters of a number in text, and on its decimal exponent."""
MOST_BITS = 1 << 20
"""Limit on the size of an exact number in a formula."""
_DECIMAL = re.compile(r"([+-]?)(\d+)(?:\.(\d*))?(?:[eE]([+-]?\d{1,6}))?")


# --- what a proof ends with ---------------------------------------------------------------------
class Wrong(Exception):
    """A field of a certificate is wrong: INVALID."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field} {reason}")
        self.field, self.reason = field, reason


class NotProved(Exception):
    """The theorem was neither proved nor found wrong: CONDITIONAL."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class TooFewDigits(NotProved):
    """Undecided at the present precision; `decide` tries again with more digits."""


@dataclass
class Proof:
    """The lemmas and assumptions of a proof, and its intermediate results."""

    lemmas: set[str] = field(default_factory=set)
    """Names of rows of the table of lemmas."""
    numbers: dict[str, str] = field(default_factory=dict)
    """Intermediate results, as text for the reader."""
    conditions: list[str] = field(default_factory=list)
    """Unproved assumptions: if there are any, the outcome is CONDITIONAL."""


@dataclass
class Budget:
    """Limits of a proof: processor time in seconds, bits of precision, cases, and list length."""

    seconds: float = 60.0
    bits: int = 4096
    cases: int = 100_000
    size: int = 1 << 22
    started: float = field(default_factory=time.process_time)

    def check(self, cases: int = 0, size: int = 0) -> None:
        """Charge `cases` to the budget; raise NotProved if it or another limit is exceeded."""
        self.cases -= cases
        if self.cases < 0:
            raise NotProved("it has more cases than the limit of a check")
        if size > self.size:
            raise NotProved(f"it needs a list of {size} numbers; a check takes up to {self.size}")
        if time.process_time() - self.started > self.seconds:
            raise NotProved(f"it takes more than {self.seconds:g} s")


# --- texts --------------------------------------------------------------------------------------
def rational(text: object) -> fmpq:
    """Return the exact value of text such as "3", "-1e-300" or "256/60000", or raise ValueError."""
    above, slash, below = str(text).partition("/")
    value, divisor = _decimal(above.strip()), _decimal(below.strip()) if slash else fmpq(1)
    if not divisor:
        raise ValueError(f"{str(text)[:60]!a} divides by 0")
    return value / divisor


def _decimal(text: str) -> fmpq:
    found = _DECIMAL.fullmatch(text) if len(text) <= MOST_DIGITS and text.isascii() else None
    if not found:
        raise ValueError(f"{str(text)[:60]!a} is not a number such as 0.1, 1e-6 or 3/7")
    sign, whole, rest, power = found[1], found[2], found[3] or "", int(found[4] or 0)
    if abs(power) > MOST_DIGITS:
        raise ValueError(f"{str(text)[:60]!a} has an exponent beyond {MOST_DIGITS}")
    power -= len(rest)
    digits = fmpz(whole + rest) * (-1 if sign == "-" else 1)
    ten = fmpz(10) ** abs(power)
    return fmpq(digits * ten) if power >= 0 else fmpq(digits, ten)


# --- arithmetic ---------------------------------------------------------------------------------
def ball(x: Number | int) -> arb:
    """Return a ball that contains a number."""
    return x if isinstance(x, arb) else arb(x)


def divide(a: Number, b: Number) -> Number:
    """Return a/b; raise ValueError if b is exactly 0."""
    if isinstance(b, fmpq) and not b:
        raise ValueError("a formula divides by 0")
    return a / b if isinstance(a, fmpq) and isinstance(b, fmpq) else ball(a) / ball(b)


def power(a: Number, b: Number) -> Number:
    """Return a^b, exact for a rational a and an integer b if the result is of limited size."""
    if b == fmpq(1, 2) and isinstance(b, fmpq):
        return sqrt(a)
    if not isinstance(b, fmpq) or b.q != 1:
        if compare(a, "<", fmpq(0)):
            raise ValueError("a formula has a fractional power of a negative number")
        return ball(a) ** ball(b)
    n = int(b.p)
    if isinstance(a, fmpq) and not a and n < 0:
        raise ValueError("a formula divides by 0")
    if isinstance(a, fmpq) and max(abs(a.p), a.q).bit_length() * abs(n) <= MOST_BITS:
        return a**n if n >= 0 else 1 / a**-n
    if abs(n) >= 1 << 30:
        raise NotProved("a power in it is too large")
    return ball(a) ** n


def sqrt(x: Number) -> Number:
    """Return √x, exact if x is the square of a rational."""
    if compare(x, "<", fmpq(0)):
        raise ValueError("a formula takes the square root of a negative number")
    if isinstance(x, fmpq):
        p, q = x.p.isqrt(), x.q.isqrt()
        if p * p == x.p and q * q == x.q:
            return fmpq(p, q)
    return ball(x).sqrt()


def exp(x: Number) -> Number:
    """Return e^x, exact at 0."""
    return fmpq(1) if isinstance(x, fmpq) and not x else ball(x).exp()


def log(x: Number) -> Number:
    """Return ln x, exact at 1."""
    if compare(x, "<=", fmpq(0)):
        raise ValueError("a formula takes the logarithm of a number that is not positive")
    return fmpq(0) if isinstance(x, fmpq) and x == 1 else ball(x).log()


def maximum(numbers: list[Number]) -> Number:
    """Return the maximum, exact if the balls decide which number it is, else a ball."""
    best = numbers[0]
    for x in numbers[1:]:
        larger = compare(x, ">", best)
        if larger is not False:
            best = x if larger else ball(best).max(ball(x))
    return best


def whole(x: Number) -> int:
    """Return ⌊x⌋; raise TooFewDigits if the ball leaves more than one value."""
    if isinstance(x, fmpq):
        return int(x.floor())
    found = x.floor().unique_fmpz() if abs(x) < arb(2) ** 4096 else None
    if found is None:
        raise TooFewDigits("a number is too near an integer")
    return int(found)


# --- decisions ----------------------------------------------------------------------------------
OPPOSITE = {"<=": ">", "<": ">=", ">=": "<", ">": "<=", "==": "!=", "!=": "=="}
_TRUE = {"<=": le, "<": lt, ">=": ge, ">": gt, "==": eq, "!=": ne}


def compare(a: Number | int, relation: str, b: Number | int) -> bool | None:
    """Return whether a < b (or <=, >, >=, ==, !=), or None if the balls do not decide it."""
    yes, no = _TRUE[relation], _TRUE[OPPOSITE[relation]]
    pair = (arb(a), arb(b)) if isinstance(a, arb) or isinstance(b, arb) else (a, b)
    return True if yes(*pair) else False if no(*pair) else None


def decide(predicate: Callable[[], bool | None], budget: Budget | None = None) -> bool | None:
    """Evaluate a predicate with 64, 128, … bits until it is decided; None at the limit."""
    bits, limit = 64, budget.bits if budget else 4096
    while bits <= limit:
        if budget:
            budget.check()
        with precision(bits):
            try:
                answer = predicate()
            except TooFewDigits:
                answer = None
        if answer is not None:
            return answer
        bits *= 2
    return None


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Set the working precision, in bits, for a block."""
    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


def exactly(x: Number) -> str:
    """Return a text that identifies an exact number or a ball."""
    if isinstance(x, fmpq) or not x.is_finite():
        return str(x)
    return f"{x.mid().man_exp()} {x.rad().man_exp()}"


def shown(x: Number, digits: int = 12) -> str:
    """Return a number as text: exact, or a decimal ball with its radius."""
    return str(x) if isinstance(x, fmpq) and len(str(x)) < 60 else ball(x).str(digits)

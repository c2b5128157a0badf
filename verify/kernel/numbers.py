"""Numbers: exact rationals and balls, what is decided about them, and what a proof may cost.

A number is an `fmpq`, which is exact, or an `arb`, a ball that contains it. A ball is computed at
the working precision `ctx.prec`; `decide` asks the same question again with more digits until the
balls are apart. Every question has three answers: True, False, and None where the balls overlap.

No text can make a number large: its digits, its exponent and the size of every exact power are
limited, and the limits are errors of one line.
"""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from flint import arb, ctx, fmpq, fmpz

Number: TypeAlias = fmpq | arb
MOST_DIGITS = 100_000
"""Of a number as a text, and of its decimal exponent."""
MOST_BITS = 1 << 20
"""Of an exact power in a formula."""
_DECIMAL = re.compile(r"([+-]?)(\d+)(?:\.(\d*))?(?:[eE]([+-]?\d{1,6}))?")


# --- what a proof ends with ---------------------------------------------------------------------
class Wrong(Exception):
    """A field of a certificate is wrong: INVALID."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field} {reason}")
        self.field, self.reason = field, reason


class NotProved(Exception):
    """Nothing was found wrong, and nothing proved: CONDITIONAL."""


@dataclass
class Proof:
    """What a proof rests on and what it computed."""

    lemmas: set[str] = field(default_factory=set)
    """Rows of the table of lemmas."""
    numbers: dict[str, str] = field(default_factory=dict)
    """What was computed, as text, for the reader."""
    conditions: list[str] = field(default_factory=list)
    """What the theorem rests on besides: not empty means CONDITIONAL."""


@dataclass
class Budget:
    """What a proof may cost: processor time and precision."""

    seconds: float = 60.0
    bits: int = 4096
    started: float = field(default_factory=time.process_time)

    def check(self) -> None:
        """Raise NotProved where the time is spent."""
        if time.process_time() - self.started > self.seconds:
            raise NotProved(f"it takes more than {self.seconds:g} s")


# --- texts --------------------------------------------------------------------------------------
def rational(text: object) -> fmpq:
    """Return the exact value of "3", "0.1", "-1e-300" or "256/60000"; else raise ValueError."""
    above, slash, below = str(text).replace(" ", "").partition("/")
    value, divisor = _decimal(above), _decimal(below) if slash else fmpq(1)
    if not divisor:
        raise ValueError(f"{_short(text)} divides by 0")
    return value / divisor


def _decimal(text: str) -> fmpq:
    found = _DECIMAL.fullmatch(text) if len(text) <= MOST_DIGITS and text.isascii() else None
    if not found:
        raise ValueError(f"{_short(text)} is not a number such as 0.1, 1e-6 or 3/7")
    sign, whole, rest, power = found[1], found[2], found[3] or "", int(found[4] or 0)
    if abs(power) > MOST_DIGITS:
        raise ValueError(f"{_short(text)} has an exponent beyond {MOST_DIGITS}")
    power -= len(rest)
    digits = fmpz(whole + rest) * (-1 if sign == "-" else 1)
    ten = fmpz(10) ** abs(power)
    return fmpq(digits * ten) if power >= 0 else fmpq(digits, ten)


def real(text: object) -> Number:
    """Return the value of a number or a formula in numbers: "0.1", "sqrt(2)/10", "log(3)".

    Exact wherever it is rational by arithmetic alone; else a ball at the working precision.
    Raises ValueError for what is no such formula.
    """
    flat = str(text).strip()
    try:
        return rational(flat)
    except ValueError:
        if _DECIMAL.fullmatch(flat) or len(flat) > MOST_DIGITS:
            raise
    try:
        return _value(ast.parse(flat, mode="eval").body, flat)
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError(f"{_short(text)} is not a number or formula") from None


def _value(node: ast.AST, text: str) -> Number:
    match node:
        case ast.Constant(value=int() | float()) if not isinstance(node.value, bool):
            return rational(text[node.col_offset : node.end_col_offset])
        case ast.Name(id="pi"):
            return arb.pi()
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, text)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            return _OPERATIONS[type(op)](_value(left, text), _value(right, text))
        case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](_value(inner, text))
    raise ValueError(f"{_short(text)} is not a formula in numbers")


def _short(text: object) -> str:
    return ascii(str(text)[:60])


# --- arithmetic ---------------------------------------------------------------------------------
def ball(x: Number | int) -> arb:
    """Return a ball around a number."""
    return x if isinstance(x, arb) else arb(x)


def _divide(a: Number, b: Number) -> Number:
    if isinstance(b, fmpq) and not b:
        raise ValueError("a formula divides by 0")
    return a / b if isinstance(a, fmpq) and isinstance(b, fmpq) else ball(a) / ball(b)


def _power(a: Number, b: Number) -> Number:
    """Return a^b, exact for rationals with an integer power of limited size."""
    if not isinstance(b, fmpq) or b.q != 1:
        if a < 0:
            raise ValueError("a formula has a fractional power of a negative number")
        return ball(a).sqrt() if b == fmpq(1, 2) else ball(a) ** ball(b)
    n = int(b.p)
    if isinstance(a, fmpq) and not a and n < 0:
        raise ValueError("a formula divides by 0")
    if isinstance(a, fmpq) and max(abs(a.p), a.q).bit_length() * abs(n) <= MOST_BITS:
        return a**n if n >= 0 else 1 / a**-n
    if abs(n) >= 1 << 30:
        raise NotProved("a power in it is too large")
    return ball(a) ** n


_FUNCTIONS: dict[str, Callable[[Number], Number]] = {
    "sqrt": lambda x: ball(x).sqrt(),
    "exp": lambda x: ball(x).exp(),
    "log": lambda x: ball(x).log(),
}
_OPERATIONS: dict[type, Callable[[Number, Number], Number]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: _divide,
    ast.Pow: _power,
}


# --- decisions ----------------------------------------------------------------------------------
def decide(predicate: Callable[[], bool | None], budget: Budget) -> bool | None:
    """Ask with 64, 128, … bits until the answer is True or False; None at the budget's last."""
    bits = 64
    while bits <= budget.bits:
        budget.check()
        with precision(bits):
            answer = predicate()
        if answer is not None:
            return answer
        bits *= 2
    return None


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Compute with so many bits inside."""
    before: Any = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before

"""Numbers and formulas as terms of Coq."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from flint import arb, fmpq, fmpz

from dpassay.verifier.kernel import expressions, numbers
from dpassay.verifier.kernel.expressions import Node
from dpassay.verifier.kernel.numbers import Number, ball

MOST_DIGITS = 1000
"""Of a number that is written down."""
EXACT = "vm_compute; reflexivity"
"""The tactic that proves an equation by computing it."""
RATIONAL = "unfold Q2R; simpl; lra"
"""The tactic that compares given rationals."""
_FUNCTIONS = {"sqrt": "sqrt", "exp": "exp", "log": "ln"}


class UncoveredError(Exception):
    """A theorem that no Coq file is written for: what it has, to be read after "does not cover"."""


def _whole(x: object) -> str:
    text = str(x)
    if len(text) > MOST_DIGITS:
        raise UncoveredError(f"numbers of more than {MOST_DIGITS} digits")
    return text


def number(x: fmpq) -> str:
    """Return a rational as a real number.

    >>> number(fmpq(-3, 7)), number(fmpq(2))
    ('(-3 / 7)', '2')
    """
    text = _whole(x.p) if x.q == 1 else f"{_whole(x.p)} / {_whole(x.q)}"
    return text if x.q == 1 and x >= 0 else f"({text})"


def fraction(x: fmpq) -> str:
    """Return a rational as an element of Q."""
    return f"({_whole(x.p)} # {_whole(x.q)})"


def listed(entries: Iterable[str]) -> str:
    """Return a list."""
    return f"[{'; '.join(entries)}]"


def real(node: Node) -> str:
    """Return a formula in numbers as a real number."""
    match node.op, node.args:
        case "num", (x,):
            return number(x)
        case "text", (text,):
            return number(numbers.rational(text))
        case ("+" | "-" | "*" | "/") as op, (a, b):
            return f"({real(a)} {op} {real(b)})"
        case "**", (a, Node(op="num", args=(x,))) if x == fmpq(1, 2):
            return f"(sqrt {real(a)})"
        case "**", (a, Node(op="num", args=(x,))) if x.q == 1 and x >= 0:
            return f"({real(a)} ^ {_whole(x.p)})"
        case ("sqrt" | "exp" | "log") as op, (a,):
            return f"({_FUNCTIONS[op]} {real(a)})"
        case "pi", ():
            return "PI"
    raise UncoveredError("formulas of more than + - * / **, sqrt, exp, log and pi")


def read(text: str) -> Node:
    """Return the tree of a formula in numbers."""
    return expressions.parse(text)


def value(text: str) -> Number:
    """Return the value of a formula in numbers, at the precision that is set."""
    return expressions.real(text)


def rational(text: str, what: str) -> fmpq:
    """Return the value of a formula that is a rational number."""
    found = value(text)
    if not isinstance(found, fmpq):
        raise UncoveredError(f"{what} that is not rational")
    return found


def rounded(x: Number, digits: int, *, up: bool = False) -> fmpq:
    """Return a decimal below (or above) the middle of a ball to so many digits after the point."""
    scaled = middle(x) * fmpz(10) ** digits
    return fmpq(scaled.ceil() if up else scaled.floor(), fmpz(10) ** digits)


def middle(x: Number) -> fmpq:
    """Return the middle of a ball."""
    mantissa, exponent = ball(x).mid().man_exp()
    return fmpq(mantissa) * fmpq(2) ** int(exponent)


def power(text: str, *, above: bool, good: Callable[[fmpq], bool]) -> tuple[fmpq, str]:
    """Return a rational on one side of e^ε that is good enough, and the tactic that proves it."""
    node = read(text)
    if node.op == "num" and node.args[0] == 0:
        return fmpq(1), of_power(text, 0)
    if node.op == "log" and len(node.args) == 1 and node.args[0].op == "num":
        return node.args[0].args[0], of_power(text, 0)
    for digits in (3, 6, 12, 24, 48, 96):
        with numbers.precision(4 * digits + 64):
            found = rounded(ball(value(text)).exp(), digits, up=above)
        if good(found):
            return found, of_power(text, 4 * digits + 64)
    raise UncoveredError("a claim that e^epsilon decides with its equality")


def of_power(text: str, bits: int) -> str:
    """Return the tactic that compares e^ε with a rational: by such bits, or exactly."""
    node = read(text)
    if node.op == "num" and node.args[0] == 0:
        return f"rewrite exp_0; {RATIONAL}"
    if node.op == "log" and len(node.args) == 1:
        return f"rewrite exp_ln; {RATIONAL}"
    return f"unfold Q2R; simpl; interval with (i_prec {bits})"


def row(masses: Sequence[fmpq]) -> str:
    """Return a list of rationals."""
    return f"{listed(map(fraction, masses))}%Q"


def least_bits(x: arb) -> int:
    """Return how many bits 1/x has."""
    found = middle(x)
    return max(0, int(found.q).bit_length() - int(found.p).bit_length() + 1)

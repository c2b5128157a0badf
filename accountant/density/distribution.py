"""A distribution function that is written as a formula: its derivative, as a formula too.

F is differentiated piece by piece in the trees of `dpassay.accountant.density.tree`. Checked are
that F has no jump, which would be an atom of the noise, exactly where both values are rational, and
else none above about 1e-77; that F′ is a density; and that F(−∞) = 0 and F(∞) = 1, by the integrals
of F′, to 15 digits. The noise has the density F′ over its integral, whatever F was.
"""

from __future__ import annotations

import functools
from fractions import Fraction
from itertools import pairwise

from flint import arb

from dpassay.accountant.density.balls import real
from dpassay.accountant.density.law import law
from dpassay.accountant.density.pieces import jump, resolved
from dpassay.accountant.density.sweep import Break
from dpassay.accountant.density.text import LONGEST, read
from dpassay.accountant.density.tree import ONE, Node, add, derivative, exp, negative, num, power
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import ctx

_BITS = 64
"""Bits in which F is compared with the integrals of F′."""


@functools.lru_cache(maxsize=64)
def density_of(text: str, argument: str) -> str:
    """Return the derivative of a distribution function, in the grammar of formulas.

    Raises InvalidInputError where the text is no distribution function of a density.
    """
    tree = read(text, argument)
    parts = resolved(tree, argument)
    for (_, place, before), (_, _, after) in pairwise(parts):
        assert place is not None
        if not (size := jump(before, after, place)).contains(0):
            raise InvalidInputError(
                f"{argument} jumps by {float(size):.6g} at x = {float(place.low):.6g}: an atom of "
                "the noise. Write a function without jumps, or mass= for noise on the integers."
            )
    density = written(derivative(tree, quotients=True))
    if len(density) > LONGEST:
        raise InvalidInputError(
            f"The derivative of {argument} has {len(density)} characters, and {LONGEST} are the "
            "most. Write the density itself."
        )
    found = law(density, f"the derivative of {argument}")
    with ctx.workprec(_BITS):
        below, whole = found.mirrored.above(-found.centre), found.total()
        value = _at(parts, found.centre)
    start, stop = value - below, value - below + whole
    if not (start.overlaps(arb(0)) and stop.overlaps(arb(1))):
        raise InvalidInputError(
            f"Expected {argument} to rise from 0 to 1, not from {float(start):.6g} to "
            f"{float(stop):.6g}."
        )
    return density


_Part = tuple[Break | None, Break | None, Node]


def _at(parts: list[_Part], x: Fraction) -> arb:
    """Return F at a point."""
    for _, high, tree in parts:
        if high is None or x < high.low:
            return real(tree, ball(x))
    raise AssertionError


def written(a: Node) -> str:
    """Return a tree that was read, or its derivative, as a formula of the same function."""
    match a.op:
        case "num":
            text = str(a.number)
            return text if text.isdigit() else f"({text})"
        case "x" | "pi":
            return a.op
        case "add":
            return f"({written(a.parts[0])} + {written(a.parts[1])})"
        case "mul":
            return f"{written(a.parts[0])}*{written(a.parts[1])}"
        case "pow":
            base = written(a.parts[0])
            simple = a.parts[0].op in ("x", "pi", "add", "exp", "log")
            return f"{base if simple else f'({base})'}**{written(num(a.number))}"
        case "exp" | "log":
            inner = written(a.parts[0])
            return f"{a.op}{inner if inner.startswith('(') and _closes(inner) else f'({inner})'}"
        case "sigmoid":
            return written(power(add(ONE, exp(negative(a.parts[0]))), Fraction(-1)))
        case "if" | "join":
            u, yes, no = map(written, a.parts)
            return f"({yes} if {u} > 0 else {no})"
    raise ValueError(a.op)


def _closes(text: str) -> bool:
    """Whether the first parenthesis closes at the end."""
    depth = 0
    for i, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if not depth:
            return i == len(text) - 1
    return False

"""Probabilities of tables, a second time: numbers, formulas without names, or intervals.

Of intervals see `between`: points (Q(S), P(S)) of sets S of outcomes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final

from dpassay.verifier.checker.kernel.expressions import Apply, Node, Number, ProofError, parse
from dpassay.verifier.checker.notation import not_negative, number, rational
from dpassay.verifier.checker.reals import UnknownError, compare, exp, power, sqrt

_OPERATIONS: Final[dict[str, Callable[..., Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": power,
    "exp": exp,
    "sqrt": sqrt,
}
Ends = tuple[Fraction, Fraction]
_ZERO, _ONE = Fraction(0), Fraction(1)


def entry(value: Any) -> Any:
    """Require a number ≥ 0, a formula of one, or an interval of rational numbers ≥ 0."""
    if isinstance(value, list):
        found = [not_negative(rational(end)) for end in value]
        if len(found) != 2 or not found[0] < found[1]:
            raise ValueError("an interval [lower, upper]")
        return tuple(found)
    try:
        value = number(value)
    except ValueError:
        if not isinstance(value, str) or not value.isascii():
            raise
        try:
            value = _value(parse(value))
        except (ProofError, ArithmeticError):
            raise ValueError("a number") from None
    return not_negative(value)


def _value(node: Node) -> Any:
    match node:
        case Number(value=value):
            return value
        case Apply(name=name, arguments=parts, named=()) if name in _OPERATIONS:
            if len(parts) == (1 if name in ("exp", "sqrt") else 2):
                return _OPERATIONS[name](*map(_value, parts))
    raise ValueError("a number")


def has_intervals(rows: list[list[Any]]) -> bool:
    """Whether some entry is an interval."""
    return any(isinstance(each, tuple) for row in rows for each in row)


def misfit(row: list[Any]) -> str:
    """Say what is wrong with the sum of a row; empty if it is 1, or may be."""
    if has_intervals([row]):
        if not all(isinstance(each, (tuple, Fraction)) for each in row):
            return "formulas and intervals in one table"
        low, high = (sum((_ends(each)[i] for each in row), _ZERO) for i in (0, 1))
        return "" if low <= 1 <= high else "a row of a sum other than 1"
    found = compare(sum(row, _ZERO), "==", _ONE)
    if found is None:
        raise UnknownError("whether a row of these formulas adds up to 1")
    return "" if found else "a row of a sum other than 1"


def _ends(value: Any) -> Ends:
    return value if isinstance(value, tuple) else (value, value)


def between(listed: list[tuple[list[Any], list[Any]]]) -> list[dict[str, Any]]:
    """Return pairs below those of every table, and one above, of pairs of rows in both orders.

    A set S of the first outcomes has P(S) ≥ p⁻(S) and 1 − p⁺(Sᶜ), Q(S) ≤ q⁺(S) and 1 − q⁻(Sᶜ): a
    test that is no better. P(S) is at most the concave function through (q⁻, p⁺) of sets in falling
    order of p⁺/q⁻, up to P = 1; and at most the same of the reversed pair.
    """
    low: list[dict[str, Any]] = []
    points: list[Ends] = []
    for p, q in listed:
        both = [(_ends(a), _ends(b)) for a, b in zip(p, q, strict=True)]
        both.sort(key=lambda o: _order(sum(o[0], _ZERO), sum(o[1], _ZERO)))
        corners = []
        for n in range(len(both) + 1):
            (p_in, q_in), (p_out, q_out) = _sums(both[:n]), _sums(both[n:])
            corners.append((min(q_in[1], 1 - q_out[0]), max(p_in[0], 1 - p_out[1])))
        if (law := _pair(_hull(corners))) not in low:
            low.append(law)
        x = y = _ZERO
        for (_, most), (least, _) in sorted(both, key=lambda o: _order(o[0][1], o[1][0])):
            share = min(_ONE, (1 - y) / most) if most else _ZERO
            x, y = x + share * least, y + share * most
            points.append((x, y))
    whole, half = _hull(points), []
    for (a, b), (x, y) in pairwise(whole):
        half.append((a, b))
        if x + y > 1:
            share = (1 - a - b) / (x + y - a - b)
            half.append((a + share * (x - a), b + share * (y - b)))
            break
    return [*low, _pair(_hull(half + [(1 - y, 1 - x) for x, y in half]))]


def _sums(outcomes: list[tuple[Ends, Ends]]) -> Any:
    """Return the sums of both ends of P, and of Q."""
    return [[sum((o[law][end] for o in outcomes), _ZERO) for end in (0, 1)] for law in (0, 1)]


def _order(p: Fraction, q: Fraction) -> tuple[bool, Fraction]:
    """Return what sorts p/q, the largest first."""
    return (True, -p / q) if q else (False, -p)


def _hull(points: list[Ends]) -> list[Ends]:
    """Return the corners of the least concave function above points, (0, 0) and (1, 1)."""
    rest = sorted({(_ZERO, _ZERO), (_ONE, _ONE), *points})
    corners = [(_ZERO, _ZERO)]
    while corners[-1] != (_ONE, _ONE):
        a, b = corners[-1]  # go on where the function rises most, as far as it does
        corners.append(
            min(
                (end for end in rest if end > (a, b)),
                key=lambda end: (_order(end[1] - b, end[0] - a), -end[0]),
            )
        )
    return corners


def _pair(corners: list[Ends]) -> dict[str, Any]:
    steps = [(y - b, x - a) for (a, b), (x, y) in pairwise(corners)]
    return {"law": "finite", "p": [p for p, _ in steps], "q": [q for _, q in steps]}

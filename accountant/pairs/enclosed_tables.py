"""Pairs of tables whose masses are only enclosed: rational ones below and above all of them.

The largest P(S) of the sets S with Q(S) ≤ x, randomised, is a concave function of x from (0, 0) to
(1, 1); where that of one pair is below that of another, so is its H at every ε (Blackwell). Masses
in [p⁻, p⁺] and [q⁻, q⁺] give points below the function, and a function above it; their hulls have
straight pieces, and the rises of those are the masses of a pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

Ends: TypeAlias = tuple[Fraction, Fraction]
Point: TypeAlias = tuple[Fraction, Fraction]
Masses: TypeAlias = tuple[tuple[Fraction, ...], tuple[Fraction, ...]]
_ZERO, _ONE = Fraction(0), Fraction(1)


def hull(points: Iterable[Point]) -> list[Point]:
    """Return the corners of the upper hull of (0, 0), (1, 1) and points (Q, P), from the left."""
    found: list[Point] = []
    for x, y in sorted({(_ONE, _ONE), *points}):
        while found and (
            found[-1][0] == x
            or (
                len(found) > 1
                and (found[-1][1] - found[-2][1]) * (x - found[-2][0])
                <= (y - found[-2][1]) * (found[-1][0] - found[-2][0])
            )
        ):
            found.pop()
        found.append((x, y))
    return [(_ZERO, _ZERO), *found]


def masses(corners: Sequence[Point]) -> Masses:
    """Return P and Q of the pair whose function has these corners."""
    steps = [(y - b, x - a) for (a, b), (x, y) in pairwise(corners)]
    kept = [step for step in steps if any(step)]
    return tuple(p for p, _ in kept), tuple(q for _, q in kept)


def over(p: Sequence[Ends], q: Sequence[Ends]) -> list[Point]:
    """Return points on or above the function of all pairs in the ends.

    In falling order of p⁺/q⁻ the sums reach P = 1 somewhere.
    """
    points = [(_ZERO, _ZERO)]
    ends = [(most, least) for (_, most), (least, _) in zip(p, q, strict=True) if most]
    for most, least in sorted(ends, key=lambda o: _ratio(*o), reverse=True):
        x, y = points[-1]
        share = min(_ONE, (1 - y) / most)
        points.append((x + share * least, y + share * most))
    return points


def _ratio(p: Fraction, q: Fraction) -> tuple[bool, Fraction]:
    """Return what sorts p/q, infinite ones last."""
    return (True, p) if not q else (False, p / q)

"""Sums of rational multiples of monomials in atoms, with rational exponents: exact arithmetic.

Atoms are e, π, integers under roots, values of functions at exact numbers, and sums (as
denominators).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypeAlias

from flint import fmpz

Monomial: TypeAlias = frozenset[tuple[tuple[Any, ...], Fraction]]
"""Atoms and their exponents; an atom is the name of a function and its exact arguments."""
Terms: TypeAlias = dict[Monomial, Fraction]
ONE: Monomial = frozenset()

_MOST_EXPANDED = 2000
"""Monomials of a difference whose denominators are multiplied out."""
_LARGEST_FACTORED = 1 << 80
"""Integers up to it are factored to find roots in them: larger ones take too long."""


def product(one: Terms, two: Terms) -> Terms:
    """Multiply two sums."""
    found: Terms = {}
    for left, c in one.items():
        for right, d in two.items():
            exponents = dict(left)
            for atom, exponent in right:
                exponents[atom] = exponents.get(atom, Fraction(0)) + exponent
            monomial, scale = normal(exponents)
            found[monomial] = found.get(monomial, Fraction(0)) + c * d * scale
    return found


def normal(exponents: Mapping[tuple[Any, ...], Fraction]) -> tuple[Monomial, Fraction]:
    """Take whole powers of integers out of a monomial."""
    kept, scale = [], Fraction(1)
    for atom, exponent in exponents.items():
        rest = exponent
        if atom[0] == "integer":
            whole = math.floor(exponent)
            rest, scale = exponent - whole, scale * Fraction(atom[1]) ** whole
        if rest:
            kept.append((atom, rest))
    return frozenset(kept), scale


def factors(whole: int, degree: int) -> list[tuple[int, int]]:
    """Return factors of an integer and their powers: a square root of a large one, or itself."""
    if whole == 1:
        return []
    if whole <= _LARGEST_FACTORED:
        return [(int(p), int(n)) for p, n in fmpz(whole).factor()]
    root = math.isqrt(whole)
    return [(root, 2)] if degree == 2 and root * root == whole else [(whole, 1)]


def vanish(terms: Terms | None) -> bool:
    """Whether a sum is known, and is 0 after its denominators are multiplied out."""
    if terms is None:
        return False
    while terms:
        powers = [(atom, e) for m in terms for atom, e in m if atom[0] == "sum"]
        if not powers:
            return False
        atom, least = min(powers, key=lambda entry: entry[1])
        if any(e.denominator != 1 for one, e in powers if one == atom):
            return False
        expanded: Terms = {}
        for monomial, coefficient in terms.items():
            exponents = dict(monomial)
            times = int(exponents.pop(atom, Fraction(0)) - min(least, Fraction(0)))
            part: Terms = {frozenset(exponents.items()): coefficient}
            for _ in range(times):
                part = product(part, dict(atom[1]))
                if len(part) > _MOST_EXPANDED:
                    return False
            for key, c in part.items():
                expanded[key] = expanded.get(key, Fraction(0)) + c
        terms = {monomial: c for monomial, c in expanded.items() if c}
        if len(terms) > _MOST_EXPANDED:
            return False
    return True

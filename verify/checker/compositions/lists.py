"""Profiles of compositions of lists by adding up all sums of losses, for losses on no lattice.

Losses are integers in units of 10^{−60}, and two within 10^{−45} are one value: their masses add
up. Masses are sums of products of positive numbers, in 100 digits and fewer than 10⁸ operations:
their relative error is below 10^{−80}, and is allowed to be 10^{−60}. Only the comparison with ε
uses the losses: a sum counts as above ε if it is so by more than 10^{−38}. One that is above by
less adds at most 10^{−38} of its mass to H(ε); the other two answers take it for a tie.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TypeAlias

from mpmath import iv, mp

from verify.checker.arithmetic import UnknownError
from verify.checker.compositions.contour import Answers, infinite_mass
from verify.checker.compositions.moments import Factor, Listed

Sums: TypeAlias = list[tuple[int, Any, Any]]
"""A loss and its masses under P and Q, in the order of losses."""

_UNIT = mp.mpf(10) ** 60
_ONE_VALUE = 10**15
"""Units within which two losses are one value: rounding parts equal ones by less."""
_TIE = 10**22
"""Units about ε within which a loss counts as a tie, whose mass is added to the error."""
_MOST_PRODUCTS = 1_000_000
"""Products of two lists: a minute."""


def add_up(factors: tuple[tuple[Factor, int], ...], epsilon: Any) -> Answers:
    """Enclose H(ε), P(L > ε) and Q(L > ε).

    Raises
    ------
    UnknownError
        For other losses than lists, and for too many sums.
    """
    cut = int(mp.floor(mp.mpf(epsilon) * _UNIT)) + _TIE
    above = [(p, q) for loss, p, q in _sums(factors) if loss > cut]
    near = mp.fsum(p for loss, p, _ in _sums(factors) if abs(loss - cut) <= 2 * _TIE)
    p, q, factor = mp.fsum(p for p, _ in above), mp.fsum(q for _, q in above), mp.exp(epsilon)
    over, wide = mp.fsum(p - factor * q for p, q in above), mp.mpf(10) ** -60
    mass = infinite_mass(factors)
    return Answers(
        iv.mpf([over - p * wide, over + p * wide + near * mp.mpf(10) ** -37]) + mass,
        iv.mpf([p * (1 - wide), p * (1 + wide)]) + mass,
        iv.mpf([q * (1 - wide), q * (1 + wide)]),
    )


@lru_cache(maxsize=32)
def _sums(factors: tuple[tuple[Factor, int], ...]) -> Sums:
    """Return all sums of losses."""
    found: Sums = [(0, mp.mpf(1), mp.mpf(1))]
    for factor, count in factors:
        if not isinstance(factor, Listed):
            raise UnknownError("the law of this composition")
        pieces = zip(factor.losses(), factor.masses, strict=True)
        single = _merged((int(mp.nint(x * _UNIT)), p, q) for x, (p, q) in pieces)
        power = single
        for digit in bin(count)[3:]:
            power = _joined(power, power)
            power = _joined(power, single) if digit == "1" else power
        found = _joined(found, power)
    return found


def _joined(one: Sums, other: Sums) -> Sums:
    if len(one) * len(other) > _MOST_PRODUCTS:
        raise UnknownError("the law of this composition: too many sums of losses")
    return _merged((x + y, p * r, q * s) for x, p, q in one for y, r, s in other)


def _merged(terms: Iterator[tuple[int, Any, Any]]) -> Sums:
    """Sort by the loss, equal ones together."""
    found: Sums = []
    for loss, p, q in sorted(terms, key=lambda term: term[0]):
        if found and loss - found[-1][0] <= _ONE_VALUE:
            last, r, s = found[-1]
            found[-1] = (last, p + r, q + s)
        else:
            found.append((loss, p, q))
    return found

"""Profiles of compositions of lists by adding up all sums of losses, for losses on no lattice.

Losses are integers in units of 10^{−60}, and two within 10^{−45} are one value: their masses add
up. Only the comparison with ε uses the losses: a sum counts as above ε if it is so by more than
10^{−38}. One that is above by less adds at most 10^{−37} of its mass to H(ε); the other two answers
take it for a tie.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TypeAlias

from flint import arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.compositions.contour import Answers, infinite_mass
from dpassay.verifier.checker.compositions.losses import BITS, Factors, Listed
from dpassay.verifier.checker.reals import UnknownError

Sums: TypeAlias = list[tuple[int, arb, arb]]
"""A loss and its masses under P and Q, in the order of losses."""

_UNIT = 10**60
"""Units of a loss of 1."""
_ONE_VALUE = 10**15
"""Units within which two losses are one value: rounding parts equal ones by less."""
_TIE = 10**22
"""Units about ε within which a loss counts as a tie, whose mass is added to the error."""
_MOST_PRODUCTS = 1_000_000
"""Products of two lists: a few seconds."""


def add_up(factors: Factors, epsilon: str) -> Answers:
    """Enclose H(ε), P(L > ε) and Q(L > ε).

    Raises
    ------
    UnknownError
        For other losses than lists, and for too many sums.
    """
    with ctx.workprec(BITS):
        eps, (p, q, near) = arb(epsilon), (arb(0), arb(0), arb(0))
        cut = _units(eps) + _TIE
        for loss, one, other in _sums(factors):
            if loss > cut:
                p, q = p + one, q + other
            if abs(loss - cut) <= 2 * _TIE:
                near += one
        mass, slack = infinite_mass(factors), arb(0).union(near * arb(10) ** -37)
        return Answers(p - eps.exp() * q + slack + mass, p + mass, q)


def _units(loss: arb) -> int:
    found = (loss * _UNIT).mid().floor().unique_fmpz()
    if found is None:
        raise UnknownError("the law of this composition")
    return int(found)


@lru_cache(maxsize=32)
def _sums(factors: Factors) -> Sums:
    """Return all sums of losses."""
    found: Sums = [(0, arb(1), arb(1))]
    for factor, count in factors:
        if not isinstance(factor, Listed):
            raise UnknownError("the law of this composition")
        single = _merged((_units(loss), p, q) for loss, p, q in factor.rows())
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


def _merged(terms: Iterable[tuple[int, arb, arb]]) -> Sums:
    """Sort by the loss, equal ones together."""
    found: Sums = []
    for loss, p, q in sorted(terms, key=lambda term: term[0]):
        if found and loss - found[-1][0] <= _ONE_VALUE:
            last, r, s = found[-1]
            found[-1] = (last, p + r, q + s)
        else:
            found.append((loss, p, q))
    return found

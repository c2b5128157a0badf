"""Skellam noise: A − B, independent Poisson variables of mean v/2; masses e^{−v} I_k(v).

Poisson laws are log-concave, so the law of the difference is. The ratio of a mass to the one before
falls: what is beyond the last one is at most a geometric series. The loss does not fall, and
{L > ε} is a half-line from the least integer m with P(m − s) > e^ε P(m).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.declared.law import DeclaredLaw, Pair
from dpassay.verifier.checker.notation import Argument, integer, positive
from dpassay.verifier.checker.reals import INFINITE, FewDigitsError, Real, UnknownError, ball, exp

_MOST = 50_000
"""Masses on one side: more take seconds."""
_ROOM = 32
"""Bits that sums lose."""


@lru_cache(maxsize=8)
def _masses(variance: Any, bits: int) -> tuple[list[arb], arb]:
    """Return the masses of 0, 1, …, N, and a ball of the sum of all further ones.

    N is where Bernstein's bound of the tail, e^{−N²/(2v + 2N/3)}, is small enough. From the last
    two I_{k−1} = I_{k+1} + (2k/v)I_k gives the others: it only adds what is positive.
    """
    v = ball(variance)
    wanted = (bits + _ROOM) * math.log(2)
    last = float((wanted / 3 + ((wanted / 3) ** 2 + 2 * wanted * v).sqrt()).upper())
    if not last < _MOST:
        raise UnknownError("Skellam noise of so large a variance")
    found = [v.bessel_i(arb(math.ceil(last) + k), scaled=True) for k in (1, 0)]
    ratio = found[0] / found[1]
    for k in range(math.ceil(last), 0, -1):
        found.append(found[-2] + 2 * k / v * found[-1])
    return found[::-1], arb(0).union(found[0] * ratio / (1 - ratio))


def _at_least(masses: list[arb], rest: arb, k: int) -> arb:
    if k <= 0:
        return 1 - _at_least(masses, rest, 1 - k)
    return sum(masses[k:], rest)


def _first(masses: list[arb], s: int, epsilon: Any) -> int:
    """Return the least m with P(m − s) > e^ε P(m)."""
    if epsilon == 0:
        return s // 2 + 1
    factor, last = ball(exp(epsilon)), len(masses) - 1
    for m in range(s - last, last + 1):
        one, other = masses[abs(m - s)], factor * masses[abs(m)]
        if one > other and m > s - last:
            return m
        if not one < other:
            break
    raise FewDigitsError("a loss of Skellam noise")


def _tails(pair: Pair, epsilon: Any) -> tuple[Any, Any]:
    with ctx.workprec(2 * ctx.prec + _ROOM):
        masses, rest = _masses(pair["variance"], ctx.prec)
        s = int(pair["shift"])
        m = _first(masses, s, epsilon)
        return tuple(Real(_at_least(masses, rest, k)) for k in (m - s, m))  # type: ignore[return-value]  # two


SKELLAM = DeclaredLaw(
    mechanism="Skellam",
    arguments={"variance": Argument(positive), "sensitivity": Argument(integer(1), Fraction(1))},
    name="skellam",
    parameters=("variance", "shift"),
    pair=lambda noise: {
        "law": "skellam",
        "variance": noise["variance"],
        "shift": noise["sensitivity"],
    },
    tails=_tails,
    largest_loss=lambda pair: INFINITE,
    variance=lambda noise: noise["variance"],
)

"""Skellam noise: A − B, independent Poisson variables of mean v/2.

A Poisson mass is e^{−u} u^j/j!, and P(A − B >= k) the sum over j of P(B = j) P(A >= k + j): sums of
positive terms, cut where each further Poisson mass is below half of the one before it. Poisson laws
are log-concave, so the law of the difference is: the loss does not fall, and {L > ε} is a half-line
from the least integer m with P(m - s) > e^ε P(m), which halving finds.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any

from flint import arb

from accountant.numbers.precision import ctx
from verify.checker.declared.law import DeclaredLaw, Pair
from verify.checker.notation import Argument, integer, positive
from verify.checker.reals import INFINITE, FewDigitsError, Real, UnknownError, ball, exp

_LARGEST = 20_000
"""Variances: sums of more terms take minutes."""
_ROOM = 32
"""Bits that sums lose."""

Lists = tuple[list[arb], list[arb]]


@lru_cache(maxsize=8)
def _poisson(mean: Fraction, bits: int) -> Lists:
    """Return the masses of a Poisson variable, and P(A >= j)."""
    u = ball(mean)
    masses = [(-u).exp()]
    while len(masses) <= 2 * mean or not masses[-1] < arb(2) ** -bits:
        masses.append(masses[-1] * u / len(masses))
    rest = arb(0).union(2 * masses[-1])
    return masses, [*accumulate(reversed(masses), initial=rest)][::-1]


def _lists(pair: Pair) -> Lists:
    variance = pair["variance"]
    if not isinstance(variance, Fraction) or variance > _LARGEST:
        raise UnknownError(f"Skellam noise of an irrational variance, or one above {_LARGEST}")
    return _poisson(variance / 2, ctx.prec)


def _at(pair: Pair, k: int) -> arb:
    masses, _ = _lists(pair)
    k = abs(k)
    found = sum((a * b for a, b in zip(masses, masses[k:], strict=False)), arb(0))
    return found + arb(0).union(2 * masses[-1])


def _at_least(pair: Pair, k: int) -> arb:
    masses, tails = _lists(pair)
    if k <= 0:
        return 1 - _at_least(pair, 1 - k)
    found = sum((a * b for a, b in zip(masses, tails[k:], strict=False)), arb(0))
    return found + arb(0).union(2 * masses[-1])


def _first(pair: Pair, epsilon: Any) -> int:
    """Return the least m with P(m − s) > e^ε P(m)."""
    s = int(pair["shift"])
    if epsilon == 0:
        return s // 2 + 1
    factor = ball(exp(epsilon))

    def above(m: int) -> bool:
        one, other = _at(pair, m - s), factor * _at(pair, m)
        if not (one > other or one < other):
            raise FewDigitsError("a loss of Skellam noise")
        return bool(one > other)

    low, high = -1, 1
    while above(low):
        low *= 2
    while not above(high):
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if above(middle) else (middle, high)
    return high


def _tails(pair: Pair, epsilon: Any) -> tuple[Any, Any]:
    with ctx.workprec(2 * ctx.prec + _ROOM):
        m = _first(pair, epsilon)
        return Real(_at_least(pair, m - int(pair["shift"]))), Real(_at_least(pair, m))


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

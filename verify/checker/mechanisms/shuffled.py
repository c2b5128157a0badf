"""The histogram of the reports of n users by randomised response.

User by user: with g the law of the histogram of the others, a user who holds c adds one report,
c with e^ε times the chance of every other category. One user changes from the first category to the
second, with others who hold anything; the categories after the second have names alone, so that of
their counts one order is enough. A report is ε-DP, and so is what is made of it: no loss exceeds ε.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, TypeAlias

from flint import arb

from accountant.numbers.precision import ctx
from verify.checker.masses import Bounded
from verify.checker.mechanisms.reports import reports
from verify.checker.notation import Noise
from verify.checker.reals import Real, UnknownError, ball, exp

Histogram: TypeAlias = dict[tuple[int, ...], Any]
_MOST_MASSES: Final = 60_000
"""Of all laws together."""
_LARGEST_EPSILON: Final = 100
"""Of one report: the digits of the least mass grow with it."""
_MOST_EXACT: Final = 8
"""Users up to whom masses are kept as polynomials in e^ε, so that equal ones are seen."""
_BITS: Final = 64
"""Bits beyond those of the least mass, for the rounding of n additions."""


def shuffled(noise: Noise) -> Sequence[dict[str, Any]]:
    """Return the pair of every dataset of the others; of many users their bounds."""
    inner, users = noise["mechanism"], int(noise["users"])
    if inner["epsilon"] > _LARGEST_EPSILON:
        raise UnknownError(f"all pairs of {users} users")
    if inner.name != "RandomizedResponse":
        return reports(noise)
    k = int(inner["categories"])
    if (k - 1) * math.log2(users + 1) > math.log2(_MOST_MASSES):
        return reports(noise)
    listed = users if k == 2 else _arrangements(users - 1, k)
    if listed * (users + 1) ** (k - 1) > _MOST_MASSES:
        return reports(noise)
    return _laws(inner["epsilon"], k, users, ctx.prec)


def _arrangements(others: int, k: int) -> int:
    """Return how many datasets of the others are looked at: the counts after the second fall."""
    return sum((s + 1) * _falling(others - s, k - 2, others) for s in range(others + 1))


@lru_cache(maxsize=4096)
def _falling(total: int, parts: int, most: int) -> int:
    """Return how many falling lists of integers from 0 to `most` have a sum."""
    if parts == 0:
        return int(total == 0)
    return sum(_falling(total - m, parts - 1, m) for m in range(min(total, most) + 1))


@lru_cache(maxsize=8)
def _laws(epsilon: Any, k: int, users: int, precision: int) -> list[Bounded]:
    # the least mass is above (e^ε + k)^{−n}, and log2(e^ε + k) ≤ 1.5 ε + k
    spread = users * (math.ceil(1.5 * float(ball(epsilon).upper())) + k)
    found: list[Bounded] = []
    with ctx.workprec(precision + spread + _BITS):
        exact = users <= _MOST_EXACT
        odds, one = (exp(epsilon), Fraction(1)) if exact else (ball(exp(epsilon)), arb(1))
        whole = (odds + (k - 1)) ** users
        for law in _others({(0,) * k: one}, (0, users - 1, users - 1), odds):
            first, second = (_one_more(law, c, odds) for c in (0, 1))
            names = sorted(first, key=lambda counts: counts[-2::-1])
            p, q = ([_number(side[n] / whole) for n in names] for side in (first, second))
            if (len(found) + 1) * len(names) > _MOST_MASSES:
                raise UnknownError(f"all pairs of {users} users")
            found.append(Bounded({"law": "finite", "p": p, "q": q}, (epsilon, Fraction(0))))
    return found[::-1]


def _number(mass: Any) -> Any:
    return mass if isinstance(mass, (Real, Fraction)) else Real(mass)


def _others(law: Histogram, place: tuple[int, int, int], odds: Any) -> Iterator[Histogram]:
    """Yield the weights of the reports where more users hold a category or later ones.

    The place is the category, how many users are left, and the count of the category before.
    """
    category, left, before = place
    ordered = category > 2  # one order of the counts after the second category
    if category == len(next(iter(law))) - 1:
        if ordered and left > before:
            return
        for _ in range(left):
            law = _one_more(law, category, odds)
        yield law
        return
    for count in range((min(left, before) if ordered else left) + 1):
        yield from _others(law, (category + 1, left - count, count), odds)
        law = _one_more(law, category, odds)


def _one_more(law: Histogram, holds: int, odds: Any) -> Histogram:
    """Return the weights with one more user, who holds a category."""
    after: Histogram = {}
    for counts, weight in law.items():
        for report in range(len(counts)):
            counted = (*counts[:report], counts[report] + 1, *counts[report + 1 :])
            share = odds * weight if report == holds else weight
            after[counted] = after[counted] + share if counted in after else share
    return after

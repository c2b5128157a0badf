"""The moments accountant: Rényi divergences add up, and the best of a list of orders is taken."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from dpassay.accountant.composition.invert import most
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair, WorstCase
from dpassay.accountant.core.validate import probability
from dpassay.accountant.errors import NotApplicableError, UndecidedError, expected
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.numbers.exact import ExactReal, Number, exact
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.accountant.pairs.subsampled import SubsampledPair
from dpassay.accountant.questions import notions
from dpassay.accountant.questions.guarantees import enveloped_renyi

ORDERS: tuple[Fraction, ...] = (
    Fraction(5, 4), Fraction(3, 2), Fraction(7, 4), *(Fraction(n) for n in range(2, 65)),
    *(Fraction(n) for n in (80, 96, 128, 192, 256, 384, 512, 1024)),
)  # fmt: skip
"""The orders that are tried unless others are given."""

CONVERSIONS = {
    "classic": notions.classic_epsilon_of_renyi,
    "improved": notions.improved_epsilon_of_renyi,
    "optimal": notions.epsilon_of_renyi,
}
_WIDTH = Fraction(1, 10**15)
_NEAREST = 4
"""Orders, best by the quicker conversion, whose optimal one is asked for: the best is among
them."""


@final
@dataclass(frozen=True, slots=True)
class Moments:
    """The ε of the best order."""

    epsilon: Interval
    order: ExactReal
    divergence: Interval
    """The total divergence of that order."""


def moments(
    mechanism: Mechanism,
    count: int,
    delta: Number,
    *,
    adjacency: Adjacency | str | None = None,
    orders: Iterable[Number] = ORDERS,
    conversion: str = "optimal",
) -> Moments:
    """Return the least ε over a list of orders (Abadi et al. 2016; Mironov 2017).

    Parameters
    ----------
    mechanism, count
        What is run, and how often; a list may be given as a `Composed`.
    orders
        Orders > 1. Those at which a divergence is not known are left out: of a subsampled
        release whose noise is not Gaussian, all that are no integers.
    conversion
        "classic" (Mironov), "improved" (Canonne, Kamath and Steinke) or "optimal", the last at
        the four orders at which "improved" is best.

    Raises
    ------
    NotApplicableError
        If no order has a finite divergence.
    """
    if conversion not in CONVERSIONS:
        raise expected("conversion", conversion, f"to be one of {', '.join(CONVERSIONS)}")
    if isinstance(orders, str) or not isinstance(orders, Iterable):
        raise expected("orders", orders, "to be a list of numbers above 1")
    target, relation = probability("delta", delta), Adjacency.read(adjacency)
    whole = Composed(mechanism, count)
    known = _known(whole, relation, orders)
    if not known:
        raise NotApplicableError("No order of the list has a finite Rényi divergence.")
    if conversion == "optimal":  # it is slower, and little better: its best order is near theirs
        known.sort(key=lambda row: CONVERSIONS["improved"](row[0], row[1].upper, target).upper)
        known = known[:_NEAREST]
    found = [
        Moments(CONVERSIONS[conversion](a, total.upper, target), a, total) for a, total in known
    ]
    return min(found, key=lambda each: each.epsilon.upper)


def _known(
    whole: Composed, relation: Adjacency | None, orders: Iterable[Number]
) -> list[tuple[ExactReal, Interval]]:
    """Return the orders at which the total divergence is known and finite, and that."""
    rows = []
    for order in orders:
        a = exact(order, "orders")
        try:
            divergence = _divergence(whole, relation, a)
        except (NotApplicableError, UndecidedError):
            continue
        if divergence.upper.is_finite():
            rows.append((a, divergence))
    return rows


@functools.lru_cache(maxsize=1024)
def _divergence(whole: Composed, relation: Adjacency | None, order: ExactReal) -> Interval:
    parts = [(part.worst_case(relation), n) for part, n in whole.parts()]
    return enclose(lambda: _total(parts, order), relative_width=_WIDTH)


def _total(parts: list[tuple[WorstCase, int]], order: ExactReal) -> arb:
    total = arb(0)
    for case, count in parts:
        pairs = case.pairs(None)
        if case.enveloped:
            total += count * enveloped_renyi(pairs, order.ball())
        else:
            total += count * most([pair.renyi(order.ball()) for pair in _needed(pairs)])
    return total


def _needed(pairs: tuple[Pair, ...]) -> list[Pair]:
    """Leave out (B, mixture) where (mixture, B) has the larger divergence of every order.

    That is so where an involution exchanges A and B (Mironov, Talwar and Zhang 2019, Theorem 5):
    where the pair equals its own reverse.
    """
    found = []
    for pair in pairs:
        smaller = (
            isinstance(pair, SubsampledPair)
            and not pair.mixed_first
            and pair.inner.reverse() == pair.inner
            and pair.reverse() in pairs
        )
        if not smaller:
            found.append(pair)
    return found

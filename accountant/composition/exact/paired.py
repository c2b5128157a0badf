"""Few draws of listed losses: sums over pairs of sums of half of them, in balls of any precision.

With the draws in two halves, every sum of losses is a + b, and

    H(ε) = P(L = ∞) + Σ_a (p_a P(b > ε − a) − e^ε q_a Q(b > ε − a)) + R,  0 ≤ R ≤ m,

where m bounds the mass under P of outcomes that are not listed: each of them adds at least 0 and
at most its mass. The values b are sorted, their masses are running sums, and so each a costs one
search. Where the precision does not decide whether a + b exceeds ε, p_a p_b (1 − e^{ε − a − b})⁺ is
added, a ball around 0.

No tilt and no float is in it, so that δ may come from a rare loss that no tilt shows alone, and
be as small as the lists reach.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from flint import arb

from accountant.composition.exact.convolution import Table, Value
from accountant.composition.losses.lists import LossList, loss_list
from accountant.composition.product import Engine, Factor, Product, UnsuitedError
from accountant.numbers import ledger
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import ball
from accountant.numbers.precision import ctx

MAX_VALUES = 1 << 16
"""Most sums of one half."""
_FIRST = -80.0  # natural logarithm of the mass that lists lack at first
_STEP = 16.0
"""Steps of that logarithm: neighbouring questions share their lists."""
_SHARE = 16
"""The lists may lack this part of the width."""
_PRECISION = 128  # of estimates
_SPARE = 40.0  # natural logarithm of what they may lack of δ
_NEWTON = 200
"""Steps of an estimate: bisection alone takes a quarter."""
_FINE = 1e-13
"""Relative size of the last step: nearly that of floats."""


def applies(factors: Sequence[Factor]) -> bool:
    """Whether these losses are listed, and the halves are short."""
    with ctx.workprec(64):
        return _laws(factors, _FIRST) is not None


@final
@dataclass(frozen=True)
class Halves(Engine):
    """Sums over pairs of sums, for products that `applies` to."""

    def profile(self, product: Product, epsilon: ExactReal) -> arb:
        """Return a ball around H(ε), at flint's precision.

        Raises UnsuitedError where lists that lack less than the width allows are too long.
        """
        ledger.note("lists")
        infinity = product.infinity_mass()
        asked = product.relative_width
        enough = ball(asked) / _SHARE if asked else arb(2) ** -ctx.prec
        log_missing = _FIRST
        while True:
            halves = _halves(product.factors, log_missing, ctx.prec)
            value = halves.at(epsilon.ball())[0]
            total = infinity + (arb(0) if value is None else value)
            narrow = halves.missing.is_zero() or halves.missing <= enough * total
            if narrow or (value is not None and not total > 0):  # more bits may tell it from 0
                return (total + arb(0).union(halves.missing)).max(arb(0)).min(arb(1))
            log_missing = min(log_missing - _STEP, 2 * log_missing if value is None else 0.0)
            if value is not None:
                log_missing = min(log_missing, _rounded(float((enough * total).log().mid())))

    def estimate_log_delta(self, product: Product, epsilon: float) -> float | None:
        """Return ln H(ε) from floats, None where the first lists lack too much for it."""
        try:
            value = _floats(product.factors)(epsilon)[0] + product.infinity_mass()
        except UnsuitedError:
            return None
        found = float(value.log().mid()) if value > 0 else -math.inf
        return found if found > _FIRST + _SPARE else None

    def estimate_epsilon(self, product: Product, log_delta: float) -> float | None:
        """Return about ε(e^log_delta), by Newton's method for ln H between bounds that close in."""
        with ctx.workprec(_PRECISION):
            try:
                halves = _halves(product.factors, _rounded(log_delta - _SPARE), _PRECISION)
            except UnsuitedError:
                return None
            infinity = product.infinity_mass()
            high = float(halves.first.values[-1].loss + halves.second.values[-1].loss)
            low = float(halves.first.values[0].loss + halves.second.values[0].loss)
            near, at = min(max(low, 0.0), high), halves.in_floats()
            for _ in range(_NEWTON):
                value, second = at(near)
                total = infinity + value
                miss = float(total.log().mid()) - log_delta if total > 0 else -math.inf
                low, high = (near, high) if miss > 0 else (low, near)
                slope = float((second / total).mid()) if second > 0 and total > 0 else 0.0
                step = miss / slope if slope > 0 else math.inf
                if not low < near + step < high:
                    step = (low + high) / 2 - near
                near += step
                if abs(step) <= _FINE * abs(near):
                    return near
        return None


def _told_apart(terms: Sequence[tuple[arb, arb]]) -> Table:
    """Return losses with masses under P as a table; those that are not told apart become one."""
    found: list[tuple[arb, arb]] = []
    for loss, mass in sorted(terms, key=lambda term: term[0].lower()):
        if found and found[-1][0].overlaps(loss):
            found[-1] = found[-1][0].union(loss), found[-1][1] + mass
        else:
            found.append((loss, mass))
    return Table.of([Value(loss, None, p, p * (-loss).exp()) for loss, p in found])


@final
@dataclass(frozen=True)
class _Halves:
    first: Table
    second: Table
    missing: arb
    """m, a number."""

    def at(self, epsilon: arb) -> tuple[arb | None, arb]:
        """Return a ball around the sum over the lists, and one near e^ε Q(L > ε).

        The former is None where no sum exceeds ε.
        """
        other, total, second, found = self.second, arb(0), arb(0), False
        for value in self.first.values:
            threshold = epsilon - value.loss
            below, above = other.cut(threshold)
            if below == len(other.values):
                continue
            found = True
            total += value.p * other.p_from[above]
            second += value.q * other.q_from[above]
            for each in other.values[below:above]:
                total -= value.p * each.p * (threshold - each.loss).expm1().min(arb(0))
        second *= epsilon.exp()
        return (total - second if found else None), second

    def in_floats(self) -> Callable[[float], tuple[arb, arb]]:
        """Return the same in floats."""
        rows = [(float(each.loss), float(each.p), float(each.q)) for each in self.first.values]
        a, p, q = np.array(rows).T
        b = np.array([float(each.loss) for each in self.second.values])
        p_from, q_from = (
            np.array(list(map(float, sums))) for sums in (self.second.p_from, self.second.q_from)
        )

        def at(epsilon: float) -> tuple[arb, arb]:
            above = np.searchsorted(b, epsilon - a, side="right")
            second = math.exp(epsilon) * float(q @ q_from[above])
            return arb(float(p @ p_from[above]) - second), arb(second)

        return at


def _rounded(log_missing: float) -> float:
    """Return a step at or below it, so that neighbours share their lists."""
    return min(_FIRST, _STEP * math.floor(log_missing / _STEP))


def _shares(factors: Sequence[Factor]) -> list[tuple[int, int]]:
    """Return how many draws of each factor are in either half: as many in all, but for one."""
    shares, lead = [], 0
    for _, count in factors:
        first = (count + (1 if lead <= 0 else 0)) // 2
        lead += 2 * first - count
        shares.append((first, count - first))
    return shares


def _laws(factors: Sequence[Factor], log_missing: float) -> list[LossList] | None:
    """Return the lists, None for losses without one, or where the halves have too many sums."""
    sizes, laws = [1, 1], []
    for (pair, _), draws in zip(factors, _shares(factors), strict=True):
        law = loss_list(pair, log_missing) if sum(draws) <= MAX_VALUES else None
        if law is None:
            return None
        for half in (0, 1):
            sizes[half] *= math.comb(len(law.p) + draws[half] - 1, draws[half])
        if max(sizes) > MAX_VALUES:
            return None
        laws.append(law)
    return laws


@functools.lru_cache(maxsize=8)
def _floats(factors: tuple[Factor, ...]) -> Callable[[float], tuple[arb, arb]]:
    with ctx.workprec(_PRECISION):
        return _halves(factors, _FIRST, _PRECISION).in_floats()


@functools.lru_cache(maxsize=8)
def _halves(factors: tuple[Factor, ...], log_missing: float, precision: int) -> _Halves:
    """List the sums of both halves. Raises UnsuitedError where they are too many."""
    with ctx.workprec(precision):
        laws = _laws(factors, log_missing)
        if laws is None:
            raise UnsuitedError(
                f"Half of these losses have more than {MAX_VALUES} sums that count. Ask with "
                "another method, for a larger delta or a larger relative_width."
            )
        sides: list[list[tuple[arb, arb]]] = [[(arb(0), arb(1))], [(arb(0), arb(1))]]
        missing = arb(0)
        for law, draws in zip(laws, _shares(factors), strict=True):
            missing += sum(draws) * law.missing_p
            terms = list(zip(law.losses, law.p, strict=True))
            for half in (0, 1):
                sums = _sums(terms, draws[half])
                sides[half] = [(a + b, p * r) for a, p in sides[half] for b, r in sums]
        for half in (0, 1):  # what is rare in one half is rarer with the other
            least = arb(log_missing).exp() / len(sides[half])
            missing += sum((p for _, p in sides[half] if p < least), start=arb(0))
            sides[half] = [(a, p) for a, p in sides[half] if not p < least]
        return _Halves(_told_apart(sides[0]), _told_apart(sides[1]), missing.upper())


def _sums(terms: Sequence[tuple[arb, arb]], count: int) -> list[tuple[arb, arb]]:
    """Return the sum of each multiset of `count` losses, and its multinomial mass."""
    found = [(arb(0), arb(math.factorial(count)), count)]
    for index, (part, p) in enumerate(terms):
        shares = [p**times / math.factorial(times) for times in range(count + 1)]
        last = index == len(terms) - 1
        found = [
            (loss + times * part, mass * shares[times], left - times)
            for loss, mass, left in found
            for times in ((left,) if last else range(left + 1))
        ]
    return [(loss, mass) for loss, mass, _ in found]

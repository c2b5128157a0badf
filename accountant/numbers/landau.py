"""The entries f_j = C(2j, j)/4ʲ of the square root of prefix sums, and Landau's constants.

f_j² = ∫ xʲ dm(x) for a positive measure m on [0, 1] (f_j itself is the j-th moment of the arcsine
law, so f_j² is that of a product of two). So x ↦ f_x² = (Γ(x + ½)/Γ(x + 1))²/π is completely
monotone: its derivatives alternate in sign. In the formula of Euler and Maclaurin the remainder
then is at most the first term left out, in absolute value. That encloses S_n = Σ_{j<n} f_j² for
any n, from a sum of some hundred terms, an integral and some derivatives.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Literal, overload

from flint import arb, arb_series

from dpassay.accountant.numbers.precision import ctx

_LEAST_SUMMED = 64
"""Terms that are summed at least: the series of the rest wants a large argument."""


@functools.lru_cache(maxsize=8)
def coefficients(count: int) -> list[Fraction]:
    """Return f_0, …, f_{count−1}, exactly."""
    found, entry = [], Fraction(1)
    for j in range(1, count + 1):
        found.append(entry)
        entry *= Fraction(2 * j - 1, 2 * j)
    return found


@overload
def central(index: int) -> Fraction: ...
@overload
def central(index: int, *, exact: Literal[False]) -> arb: ...
def central(index: int, *, exact: bool = True) -> Fraction | arb:
    """Return f_index, exactly or at flint's current precision."""
    if exact:
        return Fraction(math.comb(2 * index, index), 4**index)
    return _squared(arb(index)).sqrt()


def landau(count: int) -> arb:
    """Return S_count = Σ_{j < count} f_j², Landau's constant G_{count−1}."""
    summed = max(_LEAST_SUMMED, int(ctx.prec))
    head = min(count, summed)
    total, entry = arb(0), arb(1)
    for j in range(1, head + 1):
        total += entry**2
        entry = entry * (2 * j - 1) / (2 * j)
    return total if head == count else total + _tail(summed, count)


def _squared(x: arb) -> arb:
    """Return (Γ(x + ½)/Γ(x + 1))²/π for large x without overflow."""
    half = arb(1) / 2
    return (2 * ((x + half).lgamma() - (x + 1).lgamma())).exp() / arb.pi()


def _tail(first: int, last: int) -> arb:
    """Return Σ f_j² over first ≤ j < last, by Euler and Maclaurin."""
    terms = max(4, int(ctx.prec) // 8)
    with ctx.workprec(int(ctx.prec) + 40):
        low, high = _derivatives(first, 2 * terms), _derivatives(last, 2 * terms)
        total = _integral(first, last, terms) - (high[0] - low[0]) / 2
        for i in range(1, terms):
            total += _term(i, low, high)
        return total + arb(0, abs(_term(terms, low, high)).upper())


def _term(i: int, low: list[arb], high: list[arb]) -> arb:
    """Return B_{2i}/(2i)! times the difference of the derivatives of order 2i − 1."""
    return arb.bernoulli(2 * i) / (2 * i) * (high[2 * i - 1] - low[2 * i - 1])


def _derivatives(at: int, order: int) -> list[arb]:
    """Return the Taylor coefficients of f_x² at a point, up to an order."""
    with ctx.workcap(order + 1):
        x = arb_series([arb(at), arb(at)])  # in units of the point, where all are of one size
        series = (2 * ((x + arb(1) / 2).lgamma() - (x + 1).lgamma())).exp() / arb.pi()
        return [series[index] / arb(at) ** index for index in range(order + 1)]


def _integral(first: int, last: int, terms: int) -> arb:
    """Return ∫ f_x² dx, by the same formula, with many steps from each number to its double."""
    steps = int(ctx.prec) // 2
    total, low, left = arb(0), first, _derivatives(first, 2 * terms)
    while low < last:
        high = min(2 * low, last)
        right = _derivatives(high, 2 * terms)
        width = arb(high - low) / steps
        inner = sum((_squared(low + width * step) for step in range(1, steps)), start=left[0])
        total += width * (inner + (right[0] - left[0]) / 2)
        for i in range(1, terms):
            total -= _term(i, left, right) * width ** (2 * i)
        total += arb(0, abs(_term(terms, left, right) * width ** (2 * terms)).upper())
        low, left = high, right
    return total

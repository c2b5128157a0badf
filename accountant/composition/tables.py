"""Many tables of rational numbers, of which a release is one: what bounds all of them together.

*Their envelope.* H of a pair is the largest p(S) − e^ε q(S) over the sets of outcomes of largest
p/q. Over all tables it is the largest over the corners of the upper convex hull of their points
(q(S), p(S)). The steps between corners are the masses of a pair with this profile: a table.

*Their moments.* Whatever was chosen before, E[e^{(a−1)L}] of the next release is at most the
largest of the tables'. So D_a of all releases is at most the sum of the largest, which one choice
throughout attains; and δ ≤ e^{(a−1)(D_a − ε)} (1 − 1/a)^{a−1}/a (Canonne, Kamath and Steinke 2020,
Proposition 12).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from flint import arb

from accountant.core.pair import Pair
from accountant.mechanisms.wrappers.tabulated import Tabulated
from accountant.numbers.exact import ExactReal
from accountant.pairs.enclosed_tables import hull, masses
from accountant.pairs.finite import FinitePair

if TYPE_CHECKING:
    from numpy.typing import NDArray


_ORDERS = 1 + 2.0 ** (np.arange(-96, 65) / 8)
"""Orders that are tried, from 1.0002 to 257, a factor of 2^{1/8} apart above 1."""
_SPREAD = 5
"""Standard deviations above the mean at which losses are compared: δ of 3e-7."""
_LOOKED = 8
"""Tables with the largest losses, by which the order is chosen."""

Table: TypeAlias = tuple[Sequence[Fraction], Sequence[Fraction]]
Families: TypeAlias = Sequence[tuple[Sequence[Pair], int]]
"""The pairs of every release, and how often it is run."""


def tables(family: Sequence[Pair]) -> list[Table] | None:
    """Return P and Q of every pair, or of one above it, where neighbours have no others."""
    found = []
    for pair in family:
        if not isinstance(pair, FinitePair):
            return None
        known = pair.source.table_above(pair.index)
        if known is None or (len(family) > 1 and not pair.source.every_pair_listed):
            return None
        found.append(known[::-1] if pair.flipped else known)
    return found


def envelope_of(listed: Sequence[Table]) -> FinitePair:
    """Return the table whose profile is the largest of theirs at every ε."""
    points = {(Fraction(0), Fraction(0))}
    for p, q in listed:
        x = y = Fraction(0)
        points.add((x, y))
        outcomes = [(a, b) for a, b in zip(p, q, strict=True) if a]
        for a, b in sorted(outcomes, key=lambda o: o[1] / o[0]):
            x, y = x + b, y + a
            points.add((x, y))
    return FinitePair(Tabulated(*masses(hull(points))), 0)


def by_size(listed: Sequence[Table]) -> list[int]:
    """Return the numbers of the tables, those with the largest losses first, roughly."""

    def size(table: Table) -> tuple[float, float]:
        rows = [(float(a), float(b)) for a, b in zip(*table, strict=True) if a]
        infinite = sum(a for a, b in rows if not b)
        losses = [(a, math.log(a / b)) for a, b in rows if b]
        mean = sum(a * loss for a, loss in losses)
        return infinite, mean + _SPREAD * sum(a * (loss - mean) ** 2 for a, loss in losses) ** 0.5

    return sorted(range(len(listed)), key=lambda i: size(listed[i]), reverse=True)


def largest_renyi(families: Families, order: arb) -> arb:
    """Return the largest D_order of all releases."""
    total = arb(0)
    for family, count in families:
        total += count * functools.reduce(arb.max, [pair.renyi(order) for pair in family])
    return total


def best_order(families: Families, *, log_delta: float | None = None, epsilon: float = 0) -> arb:
    """Return an order whose moment bounds ε at a δ well, or δ at an ε where no δ is given."""
    moments = sum(count * _log_moments(tables(family) or []) for family, count in families)
    less = _ORDERS - 1
    rest = moments + less * np.log1p(-1 / _ORDERS) - np.log(_ORDERS)
    bound = rest - less * epsilon if log_delta is None else (rest - log_delta) / less
    return arb(float(_ORDERS[np.argmin(bound)]))


def _log_moments(listed: Sequence[Table]) -> NDArray[np.float64]:
    """Return the largest (a − 1)D_a of some tables, for every order, in floats."""
    found = np.zeros(len(_ORDERS))
    for i in by_size(listed)[:_LOOKED]:
        p, q = (np.array([float(mass) for mass in law]) for law in listed[i])
        with np.errstate(divide="ignore"):
            losses = np.log(p[p > 0]) - np.log(q[p > 0])
        exponents = np.outer(_ORDERS - 1, losses) + np.log(p[p > 0])
        highest = exponents.max(axis=1)
        with np.errstate(invalid="ignore"):
            sums = np.exp(exponents - highest[:, np.newaxis]).sum(axis=1)
        found = np.fmax(found, highest + np.log(sums))
    return found


def upper_epsilon(families: Families, delta: ExactReal) -> arb:
    """Return an ε at which all releases have at most δ > 0."""
    log_delta = delta.ball().log()
    a = best_order(families, log_delta=float(log_delta))
    rest = (log_delta + a.log()) / (a - 1)
    return largest_renyi(families, a) + (1 - 1 / a).log() - rest


def upper_delta(families: Families, epsilon: ExactReal) -> arb:
    """Return a bound of H(ε) of all releases."""
    a = best_order(families, epsilon=float(epsilon))
    exponent = largest_renyi(families, a) - epsilon.ball() + (1 - 1 / a).log()
    return ((a - 1) * exponent - a.log()).exp()

"""Rényi divergences of orders a in (0, 1), of every pair, from its profile.

D_a = −ln M/(1 − a), M = ∫ p^a q^{1−a}. With H and H' the profiles of a pair and of its reverse,

    1 − M = a(1 − a) ∫_1^∞ (u^{a−2} H(ln u) + u^{−a−1} H'(ln u)) du.

Both are convex in u, with the slope −Q(L > ln u): chords bound them above, tangents below, and
integrals of lines are known. The ranges with the largest gaps are halved. D_a of a product is a
sum, of a table a sum over its outcomes, of Gaussian noise a times ρ.
"""

from __future__ import annotations

import heapq
import itertools
from fractions import Fraction
from typing import NamedTuple

from flint import arb

from dpassay.accountant.composition.product import Product
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.pairs.finite import FinitePair
from dpassay.accountant.pairs.gaussian import GaussianPair

_FIRST, _MOST = 8, 300
"""Ranges of a profile at first, and at most: each takes one value and its slope."""
_NEGLIGIBLE = Fraction(1, 10**9)
"""Share of what lies beyond the last range."""
_FARTHEST = 1 << 20
"""Largest ε of a range: what lies beyond counts with its bounds."""


def missing(pair: Pair, order: arb, width: Fraction) -> arb:
    """Return 1 − M, relative to a width if the ranges suffice."""
    if isinstance(pair, FinitePair):
        p, q = pair.source.masses(pair.index)
        a = 1 - order if pair.flipped else order
        shared = (
            (a * x.log() + (1 - a) * y.log()).exp()
            for x, y in zip(p, q, strict=True)
            if not (x.is_zero() or y.is_zero())
        )
        return 1 - sum(shared, start=arb(0))
    if isinstance(pair, GaussianPair):
        return -((order - 1) * pair.renyi(order)).expm1()
    if isinstance(pair, Product) and pair.is_product:
        logs = (count * (-missing(part, order, width)).log1p() for part, count in pair.factors)
        return -sum(logs, start=arb(0)).expm1()
    one = _integral(pair, order - 2, width)
    other = _integral(pair.reverse(), -1 - order, width)
    return (order * (1 - order) * (one + other)).max(arb(0)).min(arb(1))


def divergence(missed: arb, order: arb) -> arb:
    """Return D_a for 1 − M."""
    if missed >= 1:
        return arb.pos_inf()
    if missed.upper() >= 1:
        return ((-missed.lower()).log1p() / (order - 1)).union(arb.pos_inf())
    return (-missed).log1p() / (order - 1)


class _Node(NamedTuple):
    epsilon: Fraction
    u: arb
    height: arb
    fall: arb
    """Minus the slope to the right."""


def _integral(pair: Pair, power: arb, width: Fraction) -> arb:
    """Return ∫_1^∞ u^power H(ln u) du, for a power < −1."""

    def node(epsilon: Fraction) -> _Node:
        at = ExactReal.of_rational(epsilon)
        return _Node(epsilon, ball(epsilon).exp(), pair.hockey_stick(at), pair.tails(at).q_above)

    last, largest = Fraction(1), -power - 1
    while last < _FARTHEST:
        rest = pair.hockey_stick(ExactReal.of_rational(last)) * (-largest * ball(last)).exp()
        if rest <= ball(_NEGLIGIBLE) * pair.hockey_stick(ExactReal.of_rational(Fraction(0))):
            break
        last *= 2
    nodes = [node(last * Fraction(j, _FIRST) ** 2) for j in range(_FIRST + 1)]
    ranges: list[tuple[float, Fraction, _Node, _Node, arb]] = []

    def add(left: _Node, right: _Node) -> None:
        found = _between(left, right, power)
        heapq.heappush(ranges, (-float(found.rad()), left.epsilon, left, right, found))

    for left, right in itertools.pairwise(nodes):
        add(left, right)
    end = nodes[-1]
    weight = (-largest * ball(end.epsilon)).exp() / largest
    beyond = (weight * pair.infinity_mass()).union(weight * end.height)
    while True:
        total = sum((each[-1] for each in ranges), start=beyond)
        if len(ranges) >= _MOST or total.rad() * 2 <= ball(width / 4) * abs(total).lower():
            return total
        for _ in range(max(1, len(ranges) // 8)):
            _, _, left, right, _ = heapq.heappop(ranges)
            middle = node((left.epsilon + right.epsilon) / 2)
            add(left, middle)
            add(middle, right)


def _between(left: _Node, right: _Node, power: arb) -> arb:
    """Enclose the integral between two points: below the chord, above the tangents."""
    u, v = left.u, right.u
    whole = (v ** (power + 1) - u ** (power + 1)) / (power + 1)
    moment = (v ** (power + 2) - u ** (power + 2)) / (power + 2)
    chord = (right.height - left.height) / (v - u)
    above = left.height * whole + chord * (moment - u * whole)
    below = (left.height * whole - left.fall * (moment - u * whole)).max(
        right.height * whole + right.fall * (v * whole - moment)
    )
    return below.max(right.height * whole).union(above)

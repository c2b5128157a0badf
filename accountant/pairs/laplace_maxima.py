"""Bounds of the profile of the report of a noisy maximum: Laplace noise, k candidates.

As for Gaussian noise (`accountant.pairs.gaussian_maxima`) let X and Y be the largest of s and of
k − s noisy scores. In units of b, r = f/F at −ln F = y is min(e^y − 1, 1): convex, then flat, so
that unequal scores may be worse than equal ones. The largest Σ r(y_i) of s terms with Σ y_i = y is
j − 1 + e^{y − j ln 2} for j = ⌊y/ln 2⌋ < s, and s from s ln 2 on: all y_i but one at 0 or ln 2. So
the density of X where its distribution function is G is at most

    φ(G) = 2^{−j} + (j − 1)G for 2^{−j−1} < G ≤ 2^{−j}, j < s, and sG for G ≤ 2^{−s}.

φ is concave, so the law of this density, the *envelope*, is log-concave, and steps 2 and 3 of the
Gaussian proof hold: H(ε) is at most that of the difference of two envelopes at distance t. That
grows with their sizes; envelopes of more than 64 differ from that of 64 below 2^{−64} alone, and a
change of two variables there changes a probability by at most 2^{−63}. For k = 2 both are Laplace
laws, and this is exact. Equal scores of some of the candidates, the others far below, are a lower
bound. And the loss is at most t: whatever the other noises are, a candidate wins by exceeding a
number, which moves by at most t.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, TypeAlias, final

from flint import arb

from accountant.core.pair import Tails
from accountant.errors import UndecidedError
from accountant.numbers import solve
from accountant.numbers.exact import ExactReal, exact
from accountant.numbers.interval import START_PRECISION, Interval, enclose
from accountant.numbers.precision import ctx
from accountant.pairs.maximum import MaximumPair
from accountant.pairs.two_candidates import TwoCandidates

_EQUAL, _ALL_SIZES, _MOST = 5, 6, 64
"""Candidates of equal scores, of which more are not worse; candidates up to which each size of S is
bounded on its own; size of the largest envelope that is used."""
_ASIDE = (1e-12, 1e-8, 1e-4)
"""How far on both sides of a level found in floats the best one is shown to lie."""
_FAR, _NEAR, _ROUGH = 60.0, 1e-14, 64
"""Levels looked for (beyond the distance), how near one is found, and bits of the numbers."""
_TWO = 2
"""Candidates for which the bounds are one."""
_ROUGH_WIDTH = Fraction(1, 10**6)
"""Relative width of bounds of ε that are far apart."""
_ALIKE = 0.05
"""How far apart the levels of a large envelope and of a small one usually are."""

Term: TypeAlias = tuple[arb, int, int]
"""c x^p e^{λx} as (c, p, λ); p is 0 or 1."""
Law: TypeAlias = tuple[tuple[arb, tuple[Term, ...]], ...]
"""A distribution function: where each piece begins, from −∞ on, and its terms."""
Sizes: TypeAlias = tuple[int, int, bool]
"""The sizes of S and of the others, and whether the scores in each are equal (else: envelopes)."""
End: TypeAlias = tuple[arb, arb, arb, arb]
"""F(a + t), f(a + t), F(a) and f(a)."""


@lru_cache(maxsize=64)
def _envelope(s: int, precision: int) -> Law:
    """Return the distribution function of the envelope, from −∞ on, with ½ at 0."""
    ends = [arb(0)]  # where G is ½, ¼, …, 2^{−s}
    pieces: list[tuple[arb, tuple[Term, ...]]] = [(ends[0], ((arb(1), 0, 0), (arb("-0.5"), 0, -1)))]
    for j in range(1, s):
        top = ends[-1]
        if j == 1:
            ends.append(arb("-0.5"))
            terms: tuple[Term, ...] = ((arb("0.5"), 0, 0), (arb("0.5"), 1, 0))
        else:
            rate, height = j - 1, arb(2) ** -j
            ends.append(top - (arb(2 * j) / (j + 1)).log() / rate)
            rise = height * j / rate * (-rate * top).exp()
            terms = ((-height / rate, 0, 0), (rise, 0, rate))
        pieces.append((ends[-1], terms))
    pieces.append((arb.neg_inf(), ((arb(2) ** -s * (-s * ends[-1]).exp(), 0, s),)))
    return tuple(reversed(pieces))


@lru_cache(maxsize=64)
def _equal(s: int, precision: int) -> Law:
    """Return the distribution function of the largest of s Laplace variables."""
    terms = tuple((math.comb(s, i) * arb("-0.5") ** i, 0, -i) for i in range(s + 1))
    return (arb.neg_inf(), ((arb("0.5") ** s, 0, s),)), (arb(0), terms)


def _slope(terms: Sequence[Term]) -> list[Term]:
    """Return the derivative of a sum of terms."""
    found = [(c * rate, p, rate) for c, p, rate in terms if rate]
    return found + [(c, 0, rate) for c, p, rate in terms if p]


def _moved(terms: Sequence[Term], a: arb) -> list[Term]:
    """Return a sum of terms at x + a."""
    found = [(c * (rate * a).exp(), p, rate) for c, p, rate in terms]
    return found + [(c * a, 0, rate) for c, p, rate in found if p]


def _primitive(x: arb, p: int, rate: int) -> arb:
    """Return a primitive of x^p e^{λx}, 0 at the infinite end where it is integrable."""
    if not x.is_finite():
        return arb(0)
    if rate == 0:
        return x ** (p + 1) / (p + 1)
    return (x / rate - arb(1) / rate**2 if p else arb(1) / rate) * (rate * x).exp()


def _integral(one: Sequence[Term], other: Sequence[Term], low: arb, high: arb) -> arb:
    found = arb(0)
    for c, p, rate in one:
        for d, q, also in other:
            ends = (_primitive(x, p + q, rate + also) for x in (high, low))
            found += c * d * (next(ends) - next(ends))
    return found


def _overlaps(
    one: Law, other: Law, a: arb
) -> Iterator[tuple[Sequence[Term], Sequence[Term], arb, arb]]:
    """Yield the terms of X and of Y, moved by a, between neighbouring starts of pieces of either.

    Where it is not known which start is first the two are not told apart.
    """
    starts = sorted(
        [*((at, 0) for at, _ in one[1:]), *((at - a, 1) for at, _ in other[1:])],
        key=lambda start: float(start[0].mid()),
    )
    place, low = [0, 0], arb.neg_inf()
    for high, which in [*starts, (arb.pos_inf(), 0)]:
        yield one[place[0]][1], _moved(other[place[1]][1], a), low, high
        place[which] += 1
        low = high


def _difference(one: Law, other: Law, a: arb) -> tuple[arb, arb]:
    """Return P(Y − X < a) and its derivative, for X and Y of the laws `one` and `other`."""
    mass, density = arb(0), arb(0)
    for terms, shifted, low, high in _overlaps(one, other, a):
        if low < high:
            weight = _slope(terms)
            mass += _integral(weight, shifted, low, high)
            density += _integral(weight, _slope(shifted), low, high)
        else:  # a tie: no density is above the size
            off = _MOST**2 * abs(high - low).upper()
            mass, density = mass + off.union(-off), density + off.union(-off)
    return mass, density


def _rough_density(one: Law, other: Law, a: float) -> arb:
    """Return the derivative of P(Y − X < a), without what is between ties."""
    found = arb(0)
    for terms, shifted, low, high in _overlaps(one, other, arb(a)):
        if low < high:
            found += _integral(_slope(terms), _slope(shifted), low, high)
    return found


def difference(k: int, s: int, a: arb) -> tuple[arb, arb]:
    """Return P(Y − X < a) and its derivative, the largest of k − s and of s Laplace variables."""
    return _difference(*_laws((s, k - s, True)), a)


def _laws(sizes: Sizes) -> tuple[Law, Law]:
    law = _equal if sizes[2] else _envelope
    return law(sizes[0], ctx.prec), law(sizes[1], ctx.prec)


@lru_cache(maxsize=64)
def _level(sizes: Sizes, distance: float, epsilon: float) -> float:
    """Return the a with f(a + t) = e^ε f(a), roughly."""
    from scipy.optimize import brentq  # takes half a second

    laws = _laws(sizes)

    def excess(a: float) -> float:
        above, here = (_rough_density(*laws, x) for x in (a + distance, a))
        return float((above / here).log().mid()) - epsilon

    with ctx.workprec(_ROUGH):
        for low, high in _brackets(sizes, distance, epsilon):
            at_low, at_high = excess(low), excess(high)
            if at_low > 0 > at_high:
                return float(brentq(excess, low, high, xtol=_NEAR))
    return low if at_low <= 0 else high


def _brackets(sizes: Sizes, distance: float, epsilon: float) -> Iterator[tuple[float, float]]:
    """Yield where the level may lie: large envelopes are like small ones but for rare values."""
    few = min(sizes[0], _ALL_SIZES), min(sizes[1], _ALL_SIZES), sizes[2]
    if few != sizes and not sizes[2]:
        near = _level(few, distance, epsilon)
        yield near - _ALIKE, near + _ALIKE
    yield -_FAR - distance, _FAR


@final
@dataclass(frozen=True)
class LaplaceMaximaPair(MaximumPair):
    """Bounds of the profiles of all pairs of the report of a noisy maximum, Laplace noise."""

    law_name = "noisy-maxima"

    candidates: int
    distance: ExactReal

    @property
    def only_bounded(self) -> bool:
        """Which scores of more than two candidates are worst is not known."""
        return self.candidates > _TWO

    usual_width: ClassVar = Fraction(1, 10**12)
    """1e-12, for two candidates; for more the bounds are far apart."""

    def _ends(self, sizes: Sizes, epsilon: ExactReal) -> tuple[End, End, bool]:
        """Return two levels, and whether F(a + t) − e^ε F(a) is surely largest between them.

        It is concave in F(a), with the slope f(a + t)/f(a) − e^ε, which is ≥ 0 at the lower one and
        ≤ 0 at the upper one.
        """
        t, factor = self.distance.ball(), epsilon.ball().exp()
        near = _level(sizes, float(self.distance), float(epsilon))
        for aside in _ASIDE:
            low, high = (
                (*_difference(*_laws(sizes), a + t), *_difference(*_laws(sizes), a))
                for a in (arb(near - aside), arb(near + aside))
            )
            if low[1] >= factor * low[3] and high[1] <= factor * high[3]:
                return low, high, True
        return low, high, False

    def _bounds(self, sizes: Sizes, epsilon: ExactReal) -> tuple[arb, arb]:
        """Return F(a + t) − e^ε F(a) near its maximum, and a bound of it: the tangent at a.

        That is at most its value at the next level, or where that is not known at F(a) = 0 or 1.
        """
        factor = epsilon.ball().exp()
        (p, p_slope, q, q_slope), (p_end, _, q_end, _), found = self._ends(sizes, epsilon)
        value, slope = p - factor * q, p_slope / q_slope - factor
        most = slope * (q_end - q) if found else (slope * (1 - q)).max(-slope * q)
        return value.max(p_end - factor * q_end), value + most if most.is_finite() else arb(1)

    def _best(self, epsilon: ExactReal) -> tuple[Sizes, tuple[End, End, bool]]:
        """Return the equal scores whose event shows most, for |ε| < t, with their ends."""
        few, factor = min(self.candidates, _EQUAL), epsilon.ball().exp()
        known = [
            ((s, few - s, True), self._ends((s, few - s, True), epsilon)) for s in range(1, few)
        ]
        return max(known, key=lambda entry: float((entry[1][0][0] - factor * entry[1][0][2]).mid()))

    def _below(self, epsilon: ExactReal) -> arb:
        """Return the best of some equal scores, for |ε| < t."""
        few, found = min(self.candidates, _EQUAL), -epsilon.ball().expm1()
        for s in range(1, few):
            found = found.max(self._bounds((s, few - s, True), epsilon)[0])
        return found

    def _above(self, epsilon: ExactReal) -> arb:
        """Return an upper bound for |ε| < t: that of the envelopes."""
        k, most, found = self.candidates, min(self.candidates - 1, _MOST), arb(0)
        for sizes in [(s, k - s) for s in range(1, k)] if k <= _ALL_SIZES else [(most, most)]:
            found = found.max(self._bounds((*sizes, False), epsilon)[1])
        if k > _MOST + 1:
            found += 2 * arb(2) ** -_MOST * (1 + epsilon.ball().exp())
        return found

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return a ball from the best of some equal scores up to that of the envelopes."""
        if epsilon >= self.distance:
            return arb(0)
        least = -epsilon.ball().expm1()
        if epsilon <= -self.distance:
            return least
        if self.candidates > _TWO:
            return self._between(epsilon)
        low = self._below(epsilon).max(arb(0))
        return low.union(self._above(epsilon).max(low).min(arb(1)))

    @lru_cache(maxsize=64)  # noqa: B019  # pairs are small
    def _between(self, epsilon: ExactReal) -> arb:
        """Return the same at one precision: more digits of bounds that are apart help nobody."""
        with ctx.workprec(START_PRECISION):
            low = self._below(epsilon).max(arb(0))
            return low.union(self._above(epsilon).max(low).min(arb(1)))

    def inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Return where the two bounds pass δ; raise UndecidedError, with it, where that is wide."""
        highest = enclose(self.max_loss)
        ends = Fraction(-highest.lower), Fraction(highest.lower)

        def passed(bound: Callable[[ExactReal], arb], width: Fraction) -> Interval:
            return solve.root(lambda at: bound(at) - delta.ball(), ends, relative_width=width)

        if (exact(ends[0]).ball().expm1() + delta.ball()) >= 0:
            return enclose(lambda: arb.log1p(-delta.ball()), relative_width=relative_width)
        if self.candidates == _TWO:
            return passed(self._above, relative_width)
        width = max(relative_width, _ROUGH_WIDTH)
        found = Interval(passed(self._below, width).lower, passed(self._above, width).upper)
        raise UndecidedError(
            f"The epsilon of {self.candidates} candidates with Laplace noise lies in {found}: no "
            "exact profile is known.",
            reached=float(found.relative_width or math.inf),
            interval=found,
        )

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return those of the event that shows most; for two candidates it is {L > ε}."""
        if not -self.distance < epsilon < self.distance:
            p = q = arb(int(epsilon.sign < 0))
        else:
            _, ((p, _, q, _), (p_end, _, q_end, _), found) = self._best(epsilon)
            if not self.only_bounded:
                p, q = (p.union(p_end), q.union(q_end)) if found else (arb(0).union(arb(1)),) * 2
        return Tails(p, 1 - p, q, 1 - q)

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the candidates that rise."""
        (s, others, equal), _ = self._best(epsilon)
        level = _level((s, others, equal), float(self.distance), float(epsilon))
        rest = "; all other scores are far below" if self.candidates > _EQUAL else ""
        which = "a certain candidate" if s == 1 else f"one of {s} candidates of equal scores"
        return (
            f"{which} is reported, {level:.6g} scales of the noise above each of {others} others "
            f"under Q, and {self.distance} more under P{rest}"
        )

    def _lower(self, order: arb | None) -> arb:
        """Return the largest D_order that was found of two candidates (order 1 for None)."""
        return TwoCandidates("Laplace", self.distance).divergence(order)

    def renyi(self, order: arb) -> arb:
        """Return a wide ball: from two candidates up to what a loss in [−t, t] allows."""
        return self._lower(order).union(order * self.rho_bound())

    def kullback_leibler(self) -> arb:
        """Return a wide ball: from two candidates up to what a loss in [−t, t] allows."""
        return self._lower(None).union(self.rho_bound())

    def closed_rho(self) -> arb:
        """Return the same wide ball: ρ is at least D_1."""
        return self.kullback_leibler()

    def law(self) -> dict[str, object]:
        """Return {"law": "noisy-maxima", "candidates": k, "distance": t, "gaussian": False}."""
        return {**super().law(), "gaussian": False}

"""Which of two sets of scores with Laplace noise holds the largest one.

Let X and Y be the largest of s and of r independent noises, in units of the scale. Where the s
scores are equal, and the r, the s win with probability F(a) = P(Y − X ≤ a), a by how much they are
ahead. Where they rise by t it is F(a + t). So H(ε) is the largest F(a + t) − e^ε F(a). On the
integers, P(Z = z) ∝ q^{|z|}, a is any integer: one less where an equal score of the others wins.

*The density or mass f of Y − X is log-concave*, so that f(a + t)/f(a) falls: the best a is the last
one where it is at least e^ε, and F(a + t) − e^ε F(a) is concave in F(a), of the slope
f(a + t)/f(a) − e^ε. On the integers: let F_Z be the distribution function of Z. For x ≥ −1,
F_Z(x) = 1 − q^{x+1}/(1 + q) is that of an exponential variable; so for x ≥ 0 P(X = x) is the mass
of the largest of s such variables, of a log-concave density, in a window of length 1, and
log-concave (Prékopa). For x ≤ 0 it is (1 − q^s)(q^{−x}/(1 + q))^s. Both are joined at 0, where
P(X = 1) ≤ q^{−s} P(X = 0): (1 + q − q²)^s − 1 ≤ q^{−s}(1 − q^s), as q(1 + q − q²) ≤ 1. So X and Y
have log-concave laws, and so has their difference.

*Of any scores of any number of candidates* an upper bound is the H of the noise of one score moved
by t. Whatever the noise of the others, a set of candidates wins if one of it, of noise z_i, has
z_i ≥ c_i, and with scores that are 1 higher if one has z_i ≥ c_i − 1. Given the latter, the first
such i has z_i ≥ c_i with a chance of at least q, for P(Z ≥ m + 1) ≥ q P(Z ≥ m). With p(j) for a
rise of j: q p(j + 1) ≤ p(j), and, with the others in the role of the set, q(1 − p(j)) ≤
1 − p(j + 1). The most that this allows in t steps is what Z moved by t allows: its trade-off
function has the corner of one step at P(Z ≥ 1) and passes from one integer to the next. So it is
with steps of any length, of continuous noise.

*With Laplace noise* less bounds any scores of k candidates. In units of the scale, the density of
one noise where its distribution function is e^{−y} is e^{−y} r(y), r(y) = min(e^y − 1, 1). So that
of the largest of s scores where its own is e^{−y} is e^{−y} Σ r(y_i) with Σ y_i = y. As r is convex
and then flat, all y_i but one are 0 or ln 2 at the largest sum, which is j − 1 + e^y/2^j for
j = ⌊y/ln 2⌋ < s, and s from there on. With p = e^{−y} the density is so at most

    φ(p) = min of 2^{−j} + (j − 1)p, 0 ≤ j < s, and of sp:

two neighbours of these lines cross at p = 2^{−j−1}, and at 2^{−s}. φ is concave, so the law with
this density at its quantiles p, the *envelope*, is log-concave, and a noisy maximum is a function
of a variable of that law, of a slope ≥ 1. So steps 2 and 3 at the head of `gaussian_maxima` hold
with envelopes in the place of X and Y: H is at most that of their difference, moved by t. Without
some of the lines φ is larger, and so is H: the first ones are enough for any s.

That equal scores are worst is not proved. It is not so against any one set of others: of two scores
against one at t = 1/10 and ε = 3/100, unequal ones 1.653 and 0.665 below reach 0.011612784, equal
ones 0.011602201, one alone 0.011568089. But there one against two reaches more, 0.015228760.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any, ClassVar, TypeAlias, final

from flint import arb

from dpassay.accountant.core.pair import MirroredPair, Pair, Tails
from dpassay.accountant.mechanisms.additive.laplace import LaplacePair
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.halving import first, halved
from dpassay.accountant.numbers.interval import START_PRECISION, Interval, enclose
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.finite import Balls, FiniteLaws, FinitePair, largest_divergence
from dpassay.accountant.pairs.two_candidates import STEPS

_ROUGH = 128
"""Bits of the numbers by which a level is looked for."""
_FINE, _FARTHEST = Fraction(1, 1 << 48), 1 << 40
"""How near a level that is no integer is found, and the largest that is looked for."""
_ASIDE = (1e-12, 1e-8, 1e-4)
"""How far on both sides of that the best one is shown to lie."""
_NEAR = 4
"""Integers next to a level among which the best one is shown to be."""
_DENSE = 4
"""A product of densities of maxima is less than that times their sizes."""
_LINES, _ROUGHLY = 8, Fraction(1, 1 << 12)
"""Lines of an envelope, of which more change less than 1e-3 of H; how near its level is found: its
square is the relative error of H."""
_EACH = 6
"""Candidates up to which each size of the set is bounded on its own."""

Terms: TypeAlias = list[tuple[arb, int, int]]
"""A sum of c x^n e^{λx}, as (c, λ, n), n ≤ 1, x in units of the scale; of c q^{−λx} on integers."""
Law: TypeAlias = list[tuple[arb | int | None, Terms]]
"""What a function of x is from one point on, −∞ for the first (None), in their order."""


@final
@dataclass(frozen=True)
class MaximaPair(Pair):
    """The largest of the profiles of s candidates of equal scores against r of equal scores.

    Of divergences only bounds are known: those of two outcomes, and what a loss in [−t, t] has.

    Parameters
    ----------
    candidates, others
        s and r; both 1 are all pairs of two candidates.
    distance
        t, in units of the noise.
    shift
        The same as an integer, for discrete noise; None for Laplace noise.
    equal
        Whether scores are equal; else both maxima have the laws of envelopes.
    """

    candidates: int
    others: int
    distance: ExactReal
    shift: int | None = None
    equal: bool = True

    usual_width: ClassVar = Fraction(1, 10**12)
    """A level that is no integer is found to that and less."""

    def _move(self) -> arb | int:
        return self.distance.ball() if self.shift is None else self.shift

    def _rate(self) -> arb:
        """Return −ln q, or 1 for continuous noise."""
        if self.shift is None:
            return arb(1)
        return self.distance.ball() / self.shift

    def chance(self, a: arb | int) -> arb:
        """Return F(a)."""
        return self._sum(self._largest(self.candidates), self._below(self.others), a)

    def rest(self, a: arb | int) -> arb:
        """Return 1 − F(a), as a chance of the others, which keeps its digits."""
        return self.reverse().chance(-a if self.shift is None else -a - 1)

    def density(self, a: arb | int) -> arb:
        """Return f(a)."""
        return self._sum(self._largest(self.candidates), self._largest(self.others), a)

    def _largest(self, s: int) -> Law:
        """Return the density or mass of the largest of s noises."""
        half, rate = self._half(), self._rate()
        if not self.equal:
            return [
                (start, [(c if n else c * each, each, 0) for c, each, n in terms if n or each])
                for start, terms in _envelope(s)
            ]
        signs = [(math.comb(s, i) * (-half) ** i, i) for i in range(1, s + 1)]
        if self.shift is None:
            return [(None, [(s * half**s, s, 0)]), (0, [(-i * c, -i, 0) for c, i in signs])]
        left = [((1 - half) ** s * -(-rate * s).expm1(), s, 0)]
        return [(None, left), (0, [(c * -(rate * i).expm1(), -i, 0) for c, i in signs])]

    def _below(self, r: int) -> Law:
        """Return P(Y ≤ y) for the largest of r noises."""
        if not self.equal:
            return _envelope(r)
        half, start = self._half(), 0 if self.shift is None else -1
        right = [(math.comb(r, i) * (-half) ** i, -i, 0) for i in range(r + 1)]
        return [(None, [((1 - half) ** r, r, 0)]), (start, right)]

    def _half(self) -> arb:
        """Return P(Z > 0)."""
        if self.shift is None:
            return arb("0.5")
        q = (-self._rate()).exp()
        return q / (1 + q)

    def _sum(self, one: Law, other: Law, a: arb | int) -> arb:
        """Return the integral, or the sum over all integers, of one(x) other(x + a)."""
        starts: list[tuple[Any, int]] = [(x, 0) for x, _ in one[1:]]
        starts += [(x - a, 1) for x, _ in other[1:] if x is not None]
        starts.sort(key=lambda start: float(arb(start[0]).mid()))
        found, place, low = arb(0), [0, 0], None
        for high, which in [*starts, (None, 0)]:
            if low is None or high is None or low <= high:
                for c, rising, _ in one[place[0]][1]:
                    for d, also, power in other[place[1]][1]:
                        whole = self._exponentials(rising + also, low, high)
                        if power:  # x + a, of an envelope
                            whole = a * whole + _moment(rising + also, low, high)
                        found += c * d * (self._rate() * also * a).exp() * whole
            else:  # so near that their order is not known
                off = _DENSE * self.candidates * self.others * abs(arb(high) - low).upper()
                found += off.union(-off)
            place[which] += 1
            low = high
        return found

    def _exponentials(self, power: int, low: arb | int | None, high: arb | int | None) -> arb:
        """Return that of e^{λx} over low < x ≤ high; None is an end where it is finite."""
        rate = self._rate() * power
        if rate.is_zero():
            assert low is not None
            assert high is not None
            return arb(high) - low
        step = int(self.shift is not None)
        ends = (arb(0) if x is None else (rate * (x + step)).exp() for x in (high, low))
        return (next(ends) - next(ends)) / (rate.expm1() if step else rate)

    def _rises(self, epsilon: ExactReal, a: arb | int) -> arb:
        """Return ln f(a + t) − ln f(a) − ε; of a symmetric law at ε = 0 exactly 0 in the middle."""
        if self.candidates == self.others and not epsilon.sign and self.shift == -2 * a:
            return arb(0)
        return (self.density(a + self._move()) / self.density(a)).log() - epsilon.ball()

    @lru_cache(maxsize=256)  # noqa: B019  # pairs are small
    def _near(self, epsilon: ExactReal) -> Fraction:
        """Return about the last a with f(a + t) ≥ e^ε f(a), for |ε| < t."""
        size = self.distance.ball().log() / arb(2).log()  # bits before the point of an exponent
        with ctx.workprec(_ROUGH + max(0, math.ceil(float(size)))):

            def rises(a: Fraction) -> bool:
                if abs(a) >= _FARTHEST:
                    return a < 0
                level = int(a) if self.shift is not None else arb(float(a))
                return bool(self._rises(epsilon, level).mid() >= 0)

            last = Fraction(first(lambda a: not rises(Fraction(a))) - 1)
            if self.shift is not None:
                return last
            steps = (_FINE if self.equal else _ROUGHLY).denominator.bit_length() - 1
            return halved(rises, last, last + 1, steps)[0]

    def _levels(self, epsilon: ExactReal) -> list[arb | int]:
        """Return levels at and between which the best one surely is; none where that is not known.

        Of discrete noise these are all of them.
        """
        near = self._near(epsilon)
        if self.shift is None:
            for aside in _ASIDE if self.equal else (4 * float(_ROUGHLY),):
                low, high = arb(float(near) - aside), arb(float(near) + aside)
                if self._rises(epsilon, low) >= 0 and self._rises(epsilon, high) <= 0:
                    return [low, high]
            return []
        first = last = int(near)
        for _ in range(_NEAR):
            low_known = bool(self._rises(epsilon, first) >= 0)
            high_known = bool(self._rises(epsilon, last + 1) <= 0)
            if low_known and high_known:
                return list(range(first, last + 1))
            first, last = first - (not low_known), last + (not high_known)
        return []

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return the largest F(a + t) − e^ε F(a); with continuous noise it is below a tangent."""
        least = (-epsilon.ball().expm1()).max(arb(0))
        if not -self.exact_max_loss() < epsilon < self.exact_max_loss():
            return arb(0) if epsilon.sign > 0 else -epsilon.ball().expm1()
        levels, t, factor = self._levels(epsilon), self._move(), epsilon.ball().exp()
        if not levels:  # what a loss of at most t allows
            t = self.max_loss()
            return least.union(-(epsilon.ball() - t).expm1() / (1 + (-t).exp()))
        at = [(self.chance(a + t), self.chance(a)) for a in levels]
        found = reduce(arb.max, (p - factor * q for p, q in at), least)
        if self.shift is None:
            (p, q), (_, q_end) = at
            slope = self.density(levels[0] + t) / self.density(levels[0]) - factor
            found = found.union(found.max(p - factor * q + slope * (q_end - q)))
        return found

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return those of Y − X ≤ a moved by t, for the best a."""
        if not -self.exact_max_loss() < epsilon < self.exact_max_loss():
            p = q = arb(int(epsilon.sign < 0))
            return Tails(p, 1 - p, q, 1 - q)
        levels, t = self._levels(epsilon), self._move()
        if not levels:
            some = arb(0).union(arb(1))
            return Tails(some, some, some, some)
        if self.shift is not None and self._rises(epsilon, levels[0]).is_zero():
            levels = [levels[0] - 1]
        found = (
            [self.chance(a + t) for a in levels],
            [self.rest(a + t) for a in levels],
            [self.chance(a) for a in levels],
            [self.rest(a) for a in levels],
        )
        return Tails(*(reduce(arb.union, values) for values in found))

    def _lower(self, order: arb | None) -> arb:
        """Return the largest D_order that was found of two outcomes (order 1 for None)."""
        with ctx.workprec(START_PRECISION):  # more digits of a bound that is far off help nobody
            t, laws = self._move(), []
            for i in range(STEPS + 1):
                a: arb | int = -(t * i) // STEPS if isinstance(t, int) else -t * i / STEPS
                p, q = ([self.chance(x), self.rest(x)] for x in (a + t, a))
                laws.append((p, q))
            return largest_divergence(laws, order)

    def renyi(self, order: arb) -> arb:
        """Return a wide ball: from two outcomes up to what a loss in [−t, t] allows."""
        return self._lower(order).union(order * self.rho_bound())

    def kullback_leibler(self) -> arb:
        """Return a wide ball: from two outcomes up to what a loss in [−t, t] allows."""
        return self._lower(None).union(self.rho_bound())

    def closed_rho(self) -> arb:
        """Return the same wide ball: ρ is at least D_1."""
        return self.kullback_leibler()

    def rho_bound(self) -> arb:
        """Return that of the noise of one score, t²/2 for discrete noise: a loss in [−t, t]."""
        if self.shift is None:
            return LaplacePair(self.exact_max_loss()).rho_bound()
        return self.distance.ball() ** 2 / 2

    def max_loss(self) -> arb:
        """Return t."""
        return self.exact_max_loss().ball()

    def exact_max_loss(self) -> ExactReal:
        """Return t, which rare events come near."""
        return self.distance

    def reverse(self) -> MaximaPair:
        """Return the pair of the others: where one set loses the other one wins."""
        return MaximaPair(self.others, self.candidates, self.distance, self.shift, self.equal)

    def law(self) -> dict[str, object]:
        """Return {"law": "discrete-maxima", …} with the shift, or "laplace-maxima"."""
        found: dict[str, object] = {
            "law": "laplace-maxima" if self.shift is None else "discrete-maxima",
            "candidates": self.candidates,
            "others": self.others,
            "distance": str(self.distance),
        }
        return found if self.shift is None else {**found, "shift": self.shift}

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the candidates that rise."""
        ahead, integers = float(self._near(epsilon)), self.shift is not None
        tied = ", or one less of each where equal scores go to the others" if integers else ""
        unit = "" if integers else " scales of the noise"
        return (
            f"one of {self.candidates} candidates of equal scores is reported, {ahead:.6g}{unit} "
            f"above {self.others} of equal scores under Q, and "
            f"{self.distance if self.shift is None else self.shift} more under P{tied}"
        )


def _moment(rate: int, low: Any, high: Any) -> arb:
    """Return the integral of x e^{λx} between two points."""
    if not rate:
        return (arb(high) ** 2 - arb(low) ** 2) / 2
    ends = ((arb(x) / rate - arb(1) / rate**2) * (arb(x) * rate).exp() for x in (high, low))
    return next(ends) - next(ends)


@lru_cache(maxsize=64)
def _envelope_at(s: int, precision: int) -> Law:
    """Return the distribution function of an envelope, ½ at 0; of s > _LINES that of all lines.

    The line of j ≥ 2 has p + 2^{−j}/(j − 1) in proportion to e^{(j−1)x}.
    """
    found: Law = [(0, [(arb(1), 0, 0), (arb("-0.5"), -1, 0)])]
    x, half = arb(0), arb("0.5")
    for j in range(1, min(s, _LINES)):
        top, rate = arb(2) ** -j, j - 1
        last = s > _LINES and j == _LINES - 1  # it goes on down to 0
        if j == 1:
            terms, length = [(half, 0, 0), (half, 0, 1)], half
        else:
            terms = [(-top / rate, 0, 0), (top * j / rate * (-rate * x).exp(), rate, 0)]
            length = (arb(j) if last else arb(2 * j) / (j + 1)).log() / rate
        x -= length
        found.append((x, terms))
    found.append((None, [] if s > _LINES else [(arb(2) ** -s * (-s * x).exp(), s, 0)]))
    return found[::-1]


def _envelope(s: int) -> Law:
    return _envelope_at(s, ctx.prec)


@final
@dataclass(frozen=True)
class UnequalMaximaPair(MirroredPair):
    """An upper bound of all pairs of the report of a noisy maximum, Laplace noise: of envelopes.

    Divergences are those of the noise of one score, which bounds all pairs too.
    """

    law_name = "unequal-maxima"

    candidates: int
    distance: ExactReal

    only_bounded: ClassVar = True
    usual_width: ClassVar = Fraction(1, 10**5)
    """A level is found roughly."""

    @property
    def _noise(self) -> LaplacePair:
        return LaplacePair(self.distance)

    @lru_cache(maxsize=256)  # noqa: B019  # pairs are small
    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return the largest over the sizes of a set, or of any sizes, and at most one noise's."""
        k, one = self.candidates, self._noise.hockey_stick(epsilon)
        sizes = [(s, k - s) for s in range(1, k)] if k <= _EACH else [(min(k - 1, _LINES + 1),) * 2]
        with ctx.workprec(START_PRECISION):
            pairs = (MaximaPair(*size, self.distance, equal=False) for size in sizes)
            return reduce(arb.max, (pair.hockey_stick(epsilon) for pair in pairs)).min(one)

    def inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval | None:
        """Return that of the noise of one score, an upper bound, where it is known to be near t.

        Up to −t it is the same: both have H(ε) = 1 − e^ε.
        """
        found = self._noise.inverse(delta, min(relative_width, self._noise.usual_width))
        if exact(found.upper) <= -self.distance:
            return found
        near = self.distance * ExactReal.of_rational(1 - relative_width / 2)
        if self.hockey_stick(near) > delta.ball():
            return Interval(enclose(near.ball).lower, found.upper)
        return None

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return those of the noise of one score."""
        return self._noise.tails(epsilon)

    def renyi(self, order: arb) -> arb:
        """Return that of the noise of one score."""
        return self._noise.renyi(order)

    def kullback_leibler(self) -> arb:
        """Return that of the noise of one score."""
        return self._noise.kullback_leibler()

    def rho_bound(self) -> arb:
        """Return that of the noise of one score."""
        return self._noise.rho_bound()

    def exact_max_loss(self) -> ExactReal:
        """Return t."""
        return self.distance


def chance_of_best(candidates: int, distance: arb) -> arb:
    """Return P(the first is chosen) where the others are all so many units of noise below it."""
    return MaximaPair(1, candidates - 1, ExactReal.of_rational(1)).chance(distance)


@final
@dataclass(frozen=True)
class TwoDiscreteCandidates(FiniteLaws):
    """Which of two scores with discrete Laplace noise is larger, at some levels from −t up to 0."""

    distance: ExactReal
    shift: int

    @property
    def _levels(self) -> list[int]:
        return sorted({-(i * self.shift) // STEPS for i in range(STEPS + 1)})

    @property
    def pairs(self) -> tuple[FinitePair, ...]:
        """All of them."""
        return tuple(FinitePair(self, i) for i in range(len(self._levels)))

    def outcomes(self, index: int) -> Sequence[object]:
        """Name the candidates."""
        return "the one that rises", "the other one"

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Return F(a + t) and F(a) with their rests."""
        pair, a = MaximaPair(1, 1, self.distance, self.shift), self._levels[index]
        ahead = a + self.shift
        return [pair.chance(ahead), pair.rest(ahead)], [pair.chance(a), pair.rest(a)]

    def is_mirrored(self, index: int) -> bool:
        """Whether both are as far apart under P as under Q."""
        return 2 * self._levels[index] + self.shift + 1 == 0

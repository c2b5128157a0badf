"""Which of two sets of integer scores with discrete Laplace noise holds the largest one.

Let X and Y be the largest of s and of r independent noises, P(Z = z) ∝ q^{|z|} with q = e^{−1/b}.
Where the s scores are equal, and the r, the s win with probability F(a) = P(Y − X ≤ a), a the
integer by which they are ahead, one less where an equal score of the others would win. Where they
rise by t it is F(a + t). So H(ε) is the largest F(a + t) − e^ε F(a).

*The mass f of Y − X is log-concave*, so that f(a + t)/f(a) falls: the best a is the last one where
it is at least e^ε. Let F_Z be the distribution function of Z. For x ≥ −1, F_Z(x) = 1 − q^{x+1}/(1 +
q) is that of an exponential variable; so for x ≥ 0 P(X = x) is the mass of the largest of s such
variables, of a log-concave density, in a window of length 1, and log-concave (Prékopa). For x ≤ 0
it is (1 − q^s)(q^{−x}/(1 + q))^s. Both are joined at 0, where P(X = 1) ≤ q^{−s} P(X = 0):
(1 + q − q²)^s − 1 ≤ q^{−s}(1 − q^s), as q(1 + q − q²) ≤ 1. So X and Y have log-concave laws, and so
has their difference.

*Of any scores of any number of candidates* an upper bound is the H of discrete Laplace noise moved
by t. Whatever the noise of the others, a set of candidates wins if one of it, of noise z_i, has
z_i ≥ c_i, and with scores that are 1 higher if one has z_i ≥ c_i − 1. Given the latter, the first
such i has z_i ≥ c_i with a chance of at least q, for P(Z ≥ m + 1) ≥ q P(Z ≥ m). With p(j) for a
rise of j: q p(j + 1) ≤ p(j), and, with the others in the role of the set, q(1 − p(j)) ≤
1 − p(j + 1). The most that this allows in t steps is what Z moved by t allows: its trade-off
function has the corner of one step at P(Z ≥ 1) and passes from one integer to the next.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import TypeAlias, final

from flint import arb

from accountant.core.pair import Pair, Tails
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import START_PRECISION
from accountant.numbers.precision import ctx
from accountant.pairs.finite import Balls, FiniteLaws, FinitePair, largest_divergence

_ROUGH = 128
"""Bits of the numbers by which a level is looked for."""
_NEAR = 4
"""Integers next to it among which the best one is shown to be."""
_STEPS = 8
"""Steps in which a score may stand behind, from 0 to the whole move."""
Terms: TypeAlias = list[tuple[arb, int]]
"""A sum of c q^{λx}, as (c, λ)."""
Law: TypeAlias = tuple[int, Terms, Terms]
"""What a function of x is up to an integer, and beyond it."""


def _power(rate: arb, n: int) -> arb:
    return (-rate * n).exp()


def _mass(s: int, rate: arb) -> Law:
    """Return P(X = x) for the largest of s noises: up to 0, and from 1 on."""
    q = _power(rate, 1)
    left = [((1 + q) ** -s * -(-rate * s).expm1(), -s)]
    right = [
        (math.comb(s, i) * (-1) ** i * (1 + q) ** -i * (-rate * i).expm1(), i)
        for i in range(1, s + 1)
    ]
    return 0, left, right


def _below(r: int, rate: arb) -> Law:
    """Return P(Y ≤ y) for the largest of r noises: up to −1, and from 0 on."""
    q = _power(rate, 1)
    right = [(math.comb(r, i) * (-q / (1 + q)) ** i, i) for i in range(r + 1)]
    return -1, [((1 + q) ** -r, -r)], right


def _sum(one: Law, other: Law, a: int, rate: arb) -> arb:
    """Return the sum of one(x) other(x + a) over all integers x."""
    cuts = sorted({one[0], other[0] - a})
    found = arb(0)
    for low, high in zip([None, *cuts], [*cuts, None], strict=True):
        first = one[1] if high is not None and high <= one[0] else one[2]
        second = other[1] if high is not None and high <= other[0] - a else other[2]
        for c, rising in first:
            for d, also in second:
                total = _geometric(rising + also, low, high, rate)
                found += c * d * _power(rate, also * a) * total
    return found


def _geometric(exponent: int, low: int | None, high: int | None, rate: arb) -> arb:
    """Return the sum of q^{λx} over low < x ≤ high; None is an end where it is summable."""
    if low is not None and high is not None and exponent == 0:
        return arb(high - low)
    start = arb(0) if low is None else _power(rate, exponent * (low + 1))
    end = arb(0) if high is None else _power(rate, exponent * (high + 1))
    return (start - end) / -(-rate * exponent).expm1()


@final
@dataclass(frozen=True)
class DiscreteMaximaPair(Pair):
    """The largest of the profiles of s candidates of equal scores against r of equal scores.

    Of divergences only bounds are known: those of two outcomes, and what a loss in [−t/b, t/b] has.

    Parameters
    ----------
    candidates, others
        s and r; both 1 are all pairs of two candidates.
    distance
        t/b, in units of the noise.
    shift
        t, an integer.
    """

    law_name = "discrete-maxima"

    candidates: int
    others: int
    distance: ExactReal
    shift: int

    def _rate(self) -> arb:
        return self.distance.ball() / self.shift

    def chance(self, a: int) -> arb:
        """Return F(a)."""
        rate = self._rate()
        return _sum(_mass(self.candidates, rate), _below(self.others, rate), a, rate)

    def _density(self, a: int) -> arb:
        """Return f(a)."""
        rate = self._rate()
        return _sum(_mass(self.candidates, rate), _mass(self.others, rate), a, rate)

    def _rises(self, epsilon: ExactReal, a: int) -> arb:
        """Return ln f(a + t) − ln f(a) − ε; of a symmetric law at ε = 0 exactly 0 in the middle."""
        if self.candidates == self.others and not epsilon.sign and 2 * a + self.shift == 0:
            return arb(0)
        return (self._density(a + self.shift) / self._density(a)).log() - epsilon.ball()

    @lru_cache(maxsize=256)  # noqa: B019  # pairs are small
    def _near(self, epsilon: ExactReal) -> int:
        """Return about the last a with f(a + t) ≥ e^ε f(a), for |ε| < t/b."""
        with ctx.workprec(_ROUGH):
            low = high = 0
            step = 1
            while self._rises(epsilon, low).mid() < 0:
                low, high, step = low - step, low, 2 * step
            step = 1
            while self._rises(epsilon, high).mid() >= 0:
                low, high, step = high, high + step, 2 * step
            while high - low > 1:
                middle = (low + high) // 2
                if self._rises(epsilon, middle).mid() >= 0:
                    low = middle
                else:
                    high = middle
            return low

    def _levels(self, epsilon: ExactReal) -> range:
        """Return levels among which the best one surely is; none where that is not known yet."""
        low = high = self._near(epsilon)
        for _ in range(_NEAR):
            low_known = bool(self._rises(epsilon, low) >= 0)
            high_known = bool(self._rises(epsilon, high + 1) <= 0)
            if low_known and high_known:
                return range(low, high + 1)
            low, high = low - (not low_known), high + (not high_known)
        return range(0)

    def _is_outside(self, epsilon: ExactReal) -> bool:
        return not -self.distance < epsilon < self.distance

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return the largest F(a + t) − e^ε F(a)."""
        least = (-epsilon.ball().expm1()).max(arb(0))
        if self._is_outside(epsilon):
            return arb(0) if epsilon.sign > 0 else -epsilon.ball().expm1()
        levels = self._levels(epsilon)
        if not levels:
            return least.union(arb(1))
        factor, found = epsilon.ball().exp(), least
        for a in levels:
            found = found.max(self.chance(a + self.shift) - factor * self.chance(a))
        return found

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return those of Y − X ≤ a moved by t, for the best a."""
        if self._is_outside(epsilon):
            p = q = arb(int(epsilon.sign < 0))
            return Tails(p, 1 - p, q, 1 - q)
        levels = self._levels(epsilon)
        if not levels:
            some = arb(0).union(arb(1))
            return Tails(some, some, some, some)
        if self._rises(epsilon, levels[0]).is_zero():
            levels = range(levels[0] - 1, levels[0])
        reverse = self.reverse()  # the rests as chances of the others: they keep their digits
        found = [
            [self.chance(a + self.shift) for a in levels],
            [reverse.chance(-a - self.shift - 1) for a in levels],
            [self.chance(a) for a in levels],
            [reverse.chance(-a - 1) for a in levels],
        ]
        return Tails(*(reduce(arb.union, values) for values in found))

    def _two_outcomes(self, order: arb | None) -> arb:
        """Return the largest D_order that was found of two outcomes (order 1 for None)."""
        with ctx.workprec(START_PRECISION):
            laws = []
            for a in levels_of(self.shift):
                p, q = ((self.chance(x), 1 - self.chance(x)) for x in (a + self.shift, a))
                laws.append((p, q))
            return largest_divergence(laws, order)

    def renyi(self, order: arb) -> arb:
        """Return a wide ball: from two outcomes up to what a loss in [−t/b, t/b] allows."""
        return self._two_outcomes(order).union(order * self.rho_bound())

    def kullback_leibler(self) -> arb:
        """Return a wide ball: from two outcomes up to what a loss in [−t/b, t/b] allows."""
        return self._two_outcomes(None).union(self.rho_bound())

    def closed_rho(self) -> arb:
        """Return the same wide ball: ρ is at least D_1."""
        return self.kullback_leibler()

    def rho_bound(self) -> arb:
        """Return (t/b)²/2, for a loss in [−t/b, t/b]."""
        return self.distance.ball() ** 2 / 2

    def max_loss(self) -> arb:
        """Return t/b."""
        return self.distance.ball()

    def exact_max_loss(self) -> ExactReal:
        """Return t/b, which rare events come near."""
        return self.distance

    def reverse(self) -> DiscreteMaximaPair:
        """Return the pair of the others: where one set loses the other one wins."""
        return DiscreteMaximaPair(self.others, self.candidates, self.distance, self.shift)

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the candidates that rise."""
        ahead = self._near(epsilon)
        return (
            f"one of {self.candidates} candidates of equal scores is reported, {ahead} above "
            f"{self.others} of equal scores under Q, and {self.shift} more under P, or one less "
            "of each where equal scores go to the others"
        )


def levels_of(shift: int) -> list[int]:
    """Return some levels a of two candidates, from −t up to 0."""
    return sorted({-(i * shift) // _STEPS for i in range(_STEPS + 1)})


@final
@dataclass(frozen=True)
class TwoDiscreteCandidates(FiniteLaws):
    """Which of two scores with discrete Laplace noise is larger, at the levels of `levels_of`."""

    distance: ExactReal
    shift: int

    @property
    def pairs(self) -> tuple[FinitePair, ...]:
        """All of them."""
        return tuple(FinitePair(self, i) for i in range(len(levels_of(self.shift))))

    def outcomes(self, index: int) -> Sequence[object]:
        """Name the candidates."""
        return "the one that rises", "the other one"

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Return F(a + t) and F(a) with their rests."""
        pair, a = DiscreteMaximaPair(1, 1, self.distance, self.shift), levels_of(self.shift)[index]
        p, q = pair.chance(a + self.shift), pair.chance(a)
        return [p, pair.chance(-a - self.shift - 1)], [q, pair.chance(-a - 1)]

    def is_mirrored(self, index: int) -> bool:
        """Whether both are as far apart under P as under Q."""
        return 2 * levels_of(self.shift)[index] + self.shift + 1 == 0

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
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from typing import ClassVar, TypeAlias, final

from flint import arb

from accountant.core.pair import Pair, Tails
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import START_PRECISION
from accountant.numbers.precision import ctx
from accountant.pairs.finite import Balls, FiniteLaws, FinitePair, largest_divergence
from accountant.pairs.two_candidates import STEPS

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

Terms: TypeAlias = list[tuple[arb, int]]
"""A sum of c e^{λx}, as (c, λ), x in units of the scale; of c q^{−λx} on the integers."""
Law: TypeAlias = tuple[int, Terms, Terms]
"""What a function of x is up to a point, and beyond it."""


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
    """

    candidates: int
    others: int
    distance: ExactReal
    shift: int | None = None

    usual_width: ClassVar = Fraction(1, 10**12)
    """A level that is no integer is found to that and less."""

    def _move(self) -> arb | int:
        return self.distance.ball() if self.shift is None else self.shift

    def _rate(self) -> arb:
        """Return −ln q, 1 for continuous noise."""
        return arb(1) if self.shift is None else self.distance.ball() / self.shift

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
        """Return the density or mass of the largest of s noises: up to 0, and beyond."""
        half, rate = self._half(), self._rate()
        signs = [(math.comb(s, i) * (-half) ** i, i) for i in range(1, s + 1)]
        if self.shift is None:
            return 0, [(s * half**s, s)], [(-i * c, -i) for c, i in signs]
        left = [((1 - half) ** s * -(-rate * s).expm1(), s)]
        return 0, left, [(c * -(rate * i).expm1(), -i) for c, i in signs]

    def _below(self, r: int) -> Law:
        """Return P(Y ≤ y) for the largest of r noises: up to 0 (−1 on the integers), and beyond."""
        half = self._half()
        right = [(math.comb(r, i) * (-half) ** i, -i) for i in range(r + 1)]
        if self.shift is None:
            return 0, [(half**r, r)], right
        return -1, [((1 - half) ** r, r)], right

    def _half(self) -> arb:
        """Return P(Z > 0)."""
        if self.shift is None:
            return arb("0.5")
        q = (-self._rate()).exp()
        return q / (1 + q)

    def _sum(self, one: Law, other: Law, a: arb | int) -> arb:
        """Return the integral, or the sum over all integers, of one(x) other(x + a)."""
        rate, start, found = self._rate(), other[0] - a, arb(0)
        ahead = float(arb(start).mid()) <= one[0]
        cuts = (start, one[0]) if ahead else (one[0], start)
        for piece, (low, high) in enumerate(zip((None, *cuts), (*cuts, None), strict=True)):
            if piece == 1 and not cuts[0] <= cuts[1]:  # so near that their order is not known
                off = _DENSE * self.candidates * self.others * abs(arb(cuts[1]) - cuts[0]).upper()
                found += off.union(-off)
                continue
            first = one[1] if piece <= ahead else one[2]
            second = other[1] if piece <= (not ahead) else other[2]
            for c, rising in first:
                for d, also in second:
                    whole = self._exponentials(rate * (rising + also), low, high)
                    found += c * d * (rate * also * a).exp() * whole
        return found

    def _exponentials(self, rate: arb, low: arb | int | None, high: arb | int | None) -> arb:
        """Return that of e^{λx} over low < x ≤ high; None is an end where it is finite."""
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
        with ctx.workprec(_ROUGH):

            def rises(a: Fraction) -> bool:
                level = int(a) if self.shift is not None else arb(float(a))
                return bool(self._rises(epsilon, level).mid() >= 0)

            low, high = Fraction(-1), Fraction(1)
            while not rises(low) and low > -_FARTHEST:
                low *= 2
            while rises(high) and high < _FARTHEST:
                high *= 2
            least = 1 if self.shift is not None else _FINE
            while high - low > least:
                middle = (low + high) / 2
                middle = middle if self.shift is None else Fraction(math.floor(middle))
                low, high = (middle, high) if rises(middle) else (low, middle)
            return low

    def _levels(self, epsilon: ExactReal) -> list[arb | int]:
        """Return levels at and between which the best one surely is; none where that is not known.

        Of discrete noise these are all of them.
        """
        near = self._near(epsilon)
        if self.shift is None:
            for aside in _ASIDE:
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
        if not -self.distance < epsilon < self.distance:
            return arb(0) if epsilon.sign > 0 else -epsilon.ball().expm1()
        levels, t, factor = self._levels(epsilon), self._move(), epsilon.ball().exp()
        if not levels:
            return least.union(arb(1))
        at = [(self.chance(a + t), self.chance(a)) for a in levels]
        found = reduce(arb.max, (p - factor * q for p, q in at), least)
        if self.shift is None:
            (p, q), (_, q_end) = at
            slope = self.density(levels[0] + t) / self.density(levels[0]) - factor
            found = found.union(found.max(p - factor * q + slope * (q_end - q)))
        return found

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return those of Y − X ≤ a moved by t, for the best a."""
        if not -self.distance < epsilon < self.distance:
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
        """Return t²/2, for a loss in [−t, t]."""
        return self.distance.ball() ** 2 / 2

    def max_loss(self) -> arb:
        """Return t."""
        return self.distance.ball()

    def exact_max_loss(self) -> ExactReal:
        """Return t, which rare events come near."""
        return self.distance

    def reverse(self) -> MaximaPair:
        """Return the pair of the others: where one set loses the other one wins."""
        return MaximaPair(self.others, self.candidates, self.distance, self.shift)

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

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

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Any, TypeAlias, final

from flint import arb

from dpassay.accountant.core.pair import Known, MirroredPair, Pair, Tails, rho_bound
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.mechanisms.additive.laplace import LaplacePair
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import START_PRECISION, Interval, enclose
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import first, halved
from dpassay.accountant.pairs.finite import Balls, FiniteLaws, FinitePair, largest_divergence
from dpassay.accountant.pairs.gaussian import gaussian_tails, normal_cdf

if TYPE_CHECKING:
    from numpy.typing import NDArray


"""The choice between two noisy scores: pairs that neighbours of every selection have."""

STEPS = 8
"""Steps in which a score may stand behind, from 0 to the whole move."""


def _laplace(x: arb, ratio: arb) -> arb:
    """Return P(X − rY ≥ x) for x ≥ 0, X and Y Laplace variables of scale 1."""
    if ratio == 1:
        return (2 + x) * (-x).exp() / 4
    square = ratio**2
    return (square * (-x / ratio).exp() - (-x).exp()) / (2 * (square - 1))


_TAILS: dict[str, Callable[[arb, arb], arb]] = {
    "Exponential": lambda x, _: (-x).exp() / 2,
    "Laplace": _laplace,
    "Gaussian": lambda x, _: normal_cdf(-x / arb(2).sqrt()),
}
"""P(X − Y ≥ x) for x ≥ 0: the tail of the difference of two noises."""


@final
@dataclass(frozen=True)
class TwoCandidates(FiniteLaws):
    """Which of two noisy scores is larger: the first gains t units of noise on the second.

    Of n steps, under Q pair number i has the first score it/n behind, under P (n − i)t/n ahead. Of
    Gumbel noise its losses are s and s − t, s = (2i + 1)t/(2n + 2). The other way round it is pair
    n − i.

    Parameters
    ----------
    noise
        "Gumbel", "Exponential", "Laplace" or "Gaussian".
    distance
        t > 0.
    ratio
        The scale of the second noise, for Laplace noise.
    steps
        n, of which there are n + 1 pairs.
    """

    noise: str
    distance: ExactReal
    ratio: ExactReal = ExactReal.of_rational(1)
    steps: int = STEPS

    @property
    def pairs(self) -> tuple[FinitePair, ...]:
        """All of them."""
        return tuple(FinitePair(self, i) for i in range(self.steps + 1))

    def divergence(self, order: arb) -> arb:
        """Return their largest D_order, a lower bound, to few digits."""
        with ctx.workprec(START_PRECISION):
            found = arb(0)
            for pair in self.pairs:
                found = found.max(pair.renyi(order))
            return found

    def outcomes(self, index: int) -> Sequence[object]:
        """Name the candidates."""
        return "the one that rises", "the other one"

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Return P(X − Y < a) and the rest at a = (8 − i)t/8 and at a = −it/8."""
        t, ratio = self.distance.ball(), self.ratio.ball()
        if self.noise == "Gumbel":
            s = t * (2 * index + 1) / (2 * self.steps + 2)
            rises, falls = (s - t).expm1() / (-t).expm1(), s.expm1() / t.expm1()
            return [rises, falls], [rises * (-s).exp(), falls * (t - s).exp()]
        ahead = _TAILS[self.noise](t * (self.steps - index) / self.steps, ratio)
        behind = _TAILS[self.noise](t * index / self.steps, ratio)
        return [1 - ahead, ahead], [behind, 1 - behind]

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return s and s − t of Gumbel noise."""
        if self.noise != "Gumbel":
            return None, None
        share = Fraction(2 * index + 1, 2 * self.steps + 2)
        return [ExactReal.of_rational(part) * self.distance for part in (share, share - 1)]

    def is_mirrored(self, index: int) -> bool:
        """Whether both are as far apart under P as under Q."""
        return 2 * index == self.steps


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
        if not -self.distance < epsilon < self.distance:
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

    def _lower(self, order: arb) -> arb:
        """Return the largest D_order that was found of two outcomes."""
        with ctx.workprec(START_PRECISION):  # more digits of a bound that is far off help nobody
            t, laws = self._move(), []
            for i in range(STEPS + 1):
                a: arb | int = -(t * i) // STEPS if isinstance(t, int) else -t * i / STEPS
                p, q = ([self.chance(x), self.rest(x)] for x in (a + t, a))
                laws.append((p, q))
            return largest_divergence(laws, order)

    def renyi(self, order: arb) -> arb:
        """Return a wide ball: from two outcomes up to what a loss in [−t, t] allows."""
        return self._lower(order).union(order * rho_bound(self))

    @property
    def known(self) -> Known:
        """Return closed forms, and where a search may start."""
        return Known(
            # levels are found no closer
            width=lambda: Fraction(1, 10**12),
            # ρ is at least D_1
            rho=lambda: self.renyi(arb(1)),
            rho_bound=self._rho_bound,
            # rare events come near it
            max_loss=lambda: self.distance,
        )

    def _rho_bound(self) -> arb:
        """Return that of the noise of one score, t²/2 for discrete noise: a loss in [−t, t]."""
        if self.shift is None:
            return rho_bound(LaplacePair(self.distance))
        return self.distance.ball() ** 2 / 2

    def max_loss(self) -> arb:
        """Return t."""
        return self.distance.ball()

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

    @property
    def known(self) -> Known:
        """Return closed forms, and where a search may start."""
        return Known(
            attained=lambda _: self,
            # levels are found roughly
            width=lambda: Fraction(1, 10**5),
            inverse=self._inverse,
            rho_bound=lambda: rho_bound(self._noise),
            max_loss=lambda: self.distance,
        )

    def _inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval | None:
        """Return that of the noise of one score, an upper bound, where it is known to be near t.

        Up to −t it is the same: both have H(ε) = 1 − e^ε.
        """
        found = self._noise.known.inverse(delta, min(relative_width, self._noise.known.width()))
        assert found is not None  # Laplace noise has a closed form
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


"""The profile of the report of a noisy maximum: scores with Gaussian noise, k candidates.

Count scores in units of σ, and let S be a set of s candidates, M_S the largest noisy score in it
and M the largest of the m = k − s others. P(S) is largest where S rises and the others fall as far
as they may: with t the sum of both moves, p(t) = P(M − M_S < t) against p(0).

*Equal scores in S, and equal ones outside, are worst.* Let X be the largest of s standard normal
variables, Y that of m, and F the distribution function of Y − X. Then p(t) ≤ F(F⁻¹(p(0)) + t):

1. With r = φ/Φ, as a function of y = −ln Φ, r is concave: dr/dy = x + r(x), which falls with x, as
   r′ > −1 (Sampford 1953). Where M_S has the distribution function G = Π Φ(x − a_i), its density is
   G Σ r(y_i) ≤ G s r(y/s), y = Σ y_i = −ln G: that of X where its distribution function is G. So
   M_S = ψ(X) with ψ′ ≥ 1, and M = χ(Y) with χ′ ≥ 1.
2. X and Y have log-concave densities. Given Y − X = d, Y and −X increase stochastically with d
   (Efron 1965): with U the rank of Y given Y − X, which is uniform and independent of Y − X, the
   curves of one U have y and −x that do not fall with d. Along them χ(y) − ψ(x) rises by at least
   what d rises by. So {M − M_S < c + t} lies, at each U, below d(U) + t where {M − M_S < c} lies
   below d(U), and p(t) ≤ E F(d(U) + t), p(0) = E F(d(U)).
3. F has a log-concave density, so q ↦ F(F⁻¹(q) + t) is concave: Jensen's inequality.

Its trade-off functions are so those of the noise Y − X at distance t, for s = 1, …, k − 1, and each
is attained. H(ε) is the largest F(a + t) − e^ε F(a), concave in q = F(a).

F and its density f are integrals of products of Φ(x)'s and φ(x)'s, k in all, and the trapezoidal
rule is fast: |φ(x + iy)| ≤ e^{y²/2} φ(x) and |Φ(x + iy)| ≤ e^{y²/2} Φ(x), so with E = 2π²/(h²k) the
rule of step h errs by at most 1/sinh(E) of the integral (Trefethen and Weideman 2014, Theorem 5.1,
on a strip of half-width 2π/(hk)).
"""

_BITS, _ROUGH_BITS = 64, 24
"""Of quadratures: for an answer, and to see that a size of S is not worst."""
_ROUGH_PRECISION, _MOST_PRECISION = 64, 1024
"""Bits of the numbers of a rough one, and the most of any: more are for values below 1e-300."""
_SPARE_BITS = 12
"""More of them than a raised precision has."""
_FAR = 18.0
"""Levels of Y − X that floats look for, beyond the distance: F(−18) is 1e-37 at most."""
_HALVINGS, _NEWTON, _STEP = 9, 5, 0.1
"""Halvings of a bracket, steps after them, and the longest one, of the search for a level."""
_GAUSSIAN_ASIDE = (2e-13, 1e-10, 1e-6)
"""How far on both sides of a level found in floats the best one is shown to lie."""
_ABOVE = 1e-4
"""How far above it, in units of 1/t, a tangent is taken that shows that a size is not worst."""
_TIED = 1 - 1e-9
"""Share of the largest H from which on floats count another one as equal."""
_MOST_NUMBERS = 1 << 23
"""Numbers of a table of all sizes of S, of 2400 candidates: one of 10,000 takes gigabytes."""
_MOST_EPSILON = 700.0
"""Largest ε of which floats know the exponential."""
_STEPS, _SETTLED = 30, 1e-14
"""Most steps towards an ε in floats, and the relative size of the last one."""
_STARTS = 4
"""Scores of two candidates from which divergences are bounded from below."""


@lru_cache(maxsize=8)
def _nodes(k: int, bits: int, precision: int) -> tuple[arb, list[arb], list[arb], list[arb], arb]:
    """Return the step, the nodes, Φ and φ there, and the mass of φ beyond them."""
    step = math.pi * math.sqrt(2 / (k * bits * math.log(2)))
    most = math.ceil((math.sqrt(2 * math.log(2) * precision) + 1) / step)
    h = arb(step)
    at = [h * j for j in range(-most, most + 1)]
    return h, at, [normal_cdf(x) for x in at], [_density(x) for x in at], 2 * normal_cdf(-h * most)


def _density(x: arb) -> arb:
    return (-x * x / 2).exp() / (2 * arb.pi()).sqrt()


def difference(k: int, s: int, a: arb, bits: int = _BITS) -> tuple[arb, arb]:
    """Return F(a) and f(a) of Y − X, the largest of k − s and of s standard normal variables."""
    h, at, cdf, density, beyond = _nodes(k, bits, ctx.prec)
    m = k - s
    low, slope = arb(0), arb(0)
    for x, below, here in zip(at, cdf, density, strict=True):
        weight = here * below ** (s - 1)
        other = normal_cdf(x + a)
        rest = weight * other ** (m - 1)
        low += rest * other
        slope += rest * _density(x + a)
    off = 1 / (2 * arb.pi() ** 2 / (h * h * k)).sinh()
    wide = (1 + off.union(-off)) ** -1
    tail = arb(0).union(beyond)
    return s * (h * low + tail) * wide, s * m * (h * slope + tail) * wide


@lru_cache(maxsize=64)
def _levels(k: int, distance: float, epsilon: float) -> tuple[NDArray[Any], ...]:
    """Return for every s, in floats, the a with f(a + t) = e^ε f(a), H(ε), and F(a).

    Raises UndecidedError for too many candidates.
    """
    import numpy as np
    from scipy.special import log_ndtr

    size = np.arange(1, k)[:, np.newaxis]
    step = math.pi * math.sqrt(2 / (k * _BITS / 2))
    reach = _FAR * 3 / 2 + distance
    if k * 2 * reach > _MOST_NUMBERS * step:
        raise UndecidedError(
            f"The best event of {k} candidates, of noise that moves by {distance:.3g} deviations, "
            "takes too long to find. Ask about fewer candidates or more noise."
        )
    x = np.arange(-reach, reach, step)
    weight = (size - 1) * log_ndtr(x) - x * x / 2

    def log_density(a: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        y = x + a
        cdf = log_ndtr(y)
        found = weight + (k - size - 1) * cdf - y * y / 2
        most = found.max(axis=1, keepdims=True)
        share = np.exp(found - most)
        whole = share.sum(axis=1, keepdims=True)
        slopes = (k - size - 1) * np.exp(-y * y / 2 - cdf) / math.sqrt(2 * math.pi) - y
        return np.log(whole) + most, (share * slopes).sum(axis=1, keepdims=True) / whole

    low, high = np.full(size.shape, -_FAR - distance), np.full(size.shape, _FAR)
    for step_number in range(_HALVINGS + _NEWTON):
        a = (low + high) / 2 if step_number < _HALVINGS else low
        (above, above_slope), (here, here_slope) = log_density(a + distance), log_density(a)
        excess = above - here - epsilon
        if step_number < _HALVINGS:
            low, high = np.where(excess > 0, a, low), np.where(excess > 0, high, a)
        else:
            with np.errstate(all="ignore"):  # slopes that floats do not tell apart
                off = excess / (above_slope - here_slope)
            low = a - np.nan_to_num(np.clip(off, -_STEP, _STEP))

    def mass(a: NDArray[Any]) -> NDArray[Any]:
        found = np.exp(weight + (k - size) * log_ndtr(x + a)).sum(axis=1, keepdims=True)
        return np.asarray(found * size * step / math.sqrt(2 * math.pi))

    found = mass(low)
    return (
        low[:, 0],
        (mass(low + distance) - np.exp(min(epsilon, _MOST_EPSILON)) * found)[:, 0],
        found[:, 0],
    )


_TWO = 2
"""Candidates of which the gap says all."""


@final
@dataclass(frozen=True)
class GaussianMaximaPair(MirroredPair):
    """The largest of the profiles of all pairs of the report of a noisy maximum, Gaussian noise.

    Of divergences only bounds are known: those of the vector of noisy scores, and those of two
    candidates.
    The complement of an event is one, with scores exchanged.
    """

    law_name = "noisy-maxima"

    candidates: int
    distance: ExactReal

    def _found(self, epsilon: ExactReal) -> tuple[NDArray[Any], ...]:
        return _levels(self.candidates, float(self.distance), float(epsilon))

    def _at(self, s: int, a: arb, bits: int) -> tuple[arb, arb, arb, arb]:
        """Return F(a + t), F(a), f(a + t) and f(a) for sets of s candidates."""
        p, p_slope = difference(self.candidates, s, a + self.distance.ball(), bits)
        q, q_slope = difference(self.candidates, s, a, bits)
        return p, q, p_slope, q_slope

    def _at_most(self, s: int, epsilon: ExactReal) -> arb:
        """Return an upper bound of the H(ε) of sets of s candidates: a tangent, soon evaluated."""
        with ctx.workprec(_ROUGH_PRECISION):
            factor, t = epsilon.ball().exp(), float(self.distance)
            above = arb(float(self._found(epsilon)[0][s - 1]) + _ABOVE / max(t, _ABOVE))
            p, q, p_slope, q_slope = self._at(s, above, _ROUGH_BITS)
            rise = p_slope / q_slope - factor
            return (p - factor * q + (-rise * q if rise <= 0 else abs(rise))).upper()

    def _of_size(self, s: int, epsilon: ExactReal) -> tuple[arb, tuple[arb, arb] | None]:
        """Return the H(ε) of sets of s candidates, and levels around the best one.

        F(a + t) − e^ε F(a) is concave in q = F(a), with the slope f(a + t)/f(a) − e^ε. Where that
        is ≥ 0 at one level and ≤ 0 at another, the best one is between them, and the tangent at
        the first one is above the maximum.
        """
        factor, bits = epsilon.ball().exp(), self._bits()
        near = float(self._found(epsilon)[0][s - 1])
        for aside in _GAUSSIAN_ASIDE:
            low, high = arb(near - aside), arb(near + aside)
            p, q, p_slope, q_slope = self._at(s, low, bits)
            p_high, q_high, p_end, q_end = self._at(s, high, bits)
            value, rise = p - factor * q, p_slope / q_slope - factor
            if rise >= 0 and p_end - factor * q_end <= 0:
                above = value + rise * (q_high - q)
                return value.max(p_high - factor * q_high).union(above), (low, high)
        if ctx.prec >= _MOST_PRECISION:
            raise UndecidedError(f"The best event at epsilon={epsilon} is too rare to be found.")
        return value.max(arb(0)).union(self.known.bound(epsilon)), None

    def _bits(self) -> int:
        return _BITS if ctx.prec <= START_PRECISION else ctx.prec + _SPARE_BITS

    def _largest(self, epsilon: ExactReal) -> tuple[arb, int, tuple[arb, arb] | None]:
        """Return H(ε), a size of S that is worst as far as is known, and levels around its best."""
        values = self._found(epsilon)[1]
        worst = int((values >= values.max() * _TIED).argmax()) + 1  # of equal ones the smallest
        order = [s for s in values.argsort()[::-1] + 1 if s != worst]
        with ctx.workprec(min(ctx.prec, _MOST_PRECISION)):
            best, levels = self._of_size(worst, epsilon)
            for s in map(int, order):
                if not self._at_most(s, epsilon) < best.lower():
                    best = best.max(self._of_size(s, epsilon)[0])
        return best, worst, levels

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return the largest over the sizes of S; the closed form of one normal law."""
        if self.is_gaussian:
            tails = self.tails(epsilon)
            return tails.p_above - epsilon.ball().exp() * tails.q_above
        return self._largest(epsilon)[0].max(-epsilon.ball().expm1()).max(arb(0))

    @property
    def known(self) -> Known:
        """Return closed forms, and where a search may start."""
        return Known(
            # integrals take longer for more
            width=lambda: Fraction(1, 10**12),
            bound=self._bound,
            epsilon=self._estimate_epsilon,
            rho=self._rho,
            rho_bound=lambda: self.distance.squared.times(self.joint_rho).ball(),
        )

    def _bound(self, epsilon: ExactReal) -> arb:
        """Return the H(ε) of the vector of noisy scores."""
        mu = (2 * rho_bound(self)).sqrt()
        half, cut = mu / 2, epsilon.ball() / mu
        return (normal_cdf(half - cut) - epsilon.ball().exp() * normal_cdf(-half - cut)).upper()

    def _estimate_epsilon(self, log_delta: float) -> float | None:
        """Return the ε ≥ 0 with ln H(ε) = log_delta in floats, by steps of Newton."""
        epsilon = 0.0
        for _ in range(_STEPS):
            try:
                _, values, masses = _levels(self.candidates, float(self.distance), epsilon)
            except UndecidedError:
                return None
            best = values.argmax()
            if not (values[best] > 0 and masses[best] > 0 and epsilon < _MOST_EPSILON):
                return None
            value = float(values[best])
            step = (math.log(value) - log_delta) * value / (math.exp(epsilon) * masses[best])
            epsilon += step
            if epsilon < 0:
                return None
            if abs(step) <= _SETTLED * epsilon:
                return float(epsilon)
        return None

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return those of Y − X moved by t, for the size of S that is worst at ε."""
        if self.is_gaussian:
            return gaussian_tails((2 * rho_bound(self)).sqrt(), epsilon)
        _, s, levels = self._largest(epsilon)
        k, t, bits = self.candidates, self.distance.ball(), self._bits()
        if levels is None:
            some = arb(0).union(arb(1))
            return Tails(some, some, some, some)

        def at(size: int, shift: arb, sign: int) -> arb:
            low, high = (difference(k, size, sign * (a + shift), bits)[0] for a in levels)
            return low.union(high)

        return Tails(at(s, t, 1), at(k - s, t, -1), at(s, arb(0), 1), at(k - s, arb(0), -1))

    def _lower(self, order: arb) -> arb:
        """Return the largest D_order that was found of two candidates ."""
        laws = []
        with ctx.workprec(START_PRECISION):  # more digits of a bound that is far off help nobody
            mu = self.distance.ball() / arb(2).sqrt()
            for i in range(_STARTS + 1):
                z = -mu * i / _STARTS * (1 if order is None else order)
                p, q = ((normal_cdf(x), normal_cdf(-x)) for x in (z + mu, z))
                laws.append((p, q))
            return largest_divergence(laws, order)

    def renyi(self, order: arb) -> arb:
        """Return a wide ball: from two candidates up to the vector of noisy scores."""
        return self._lower(order).union(order * rho_bound(self))

    def _rho(self) -> arb:
        """Return a ball from `limiting_rho` up to `rho_bound`, which are one number for k ≤ 3."""
        return self.distance.squared.times(self.limiting_rho).ball().union(rho_bound(self))

    @property
    def is_gaussian(self) -> bool:
        """Whether it is the half-lines of one normal law: those of the gap of two candidates."""
        return self.candidates == _TWO

    @property
    def limiting_rho(self) -> Fraction:
        """(k − 1)/(2k), the least that ρ/t² may be: what one candidate against the others needs.

        Its noisy score is c above theirs with probability e^{−c²/(2 + 2/(k − 1)) + O(ln c)}. So at
        large orders a, with c = at, D_a/a of the event tends to that.
        """
        return Fraction(self.candidates - 1, 2 * self.candidates)

    @property
    def joint_rho(self) -> Fraction:
        """The ρ/t² of the vector of noisy scores: half the largest variance of a move, times k.

        A move of all scores by the same amount changes no choice, so that only what is left of the
        moves counts: half of them up by t, the others not.
        """
        k = self.candidates
        return Fraction(k // 2 * (k - k // 2), 2 * k)

    def least_mu(self) -> arb:
        """Return a ball from what rare events and H(0) need up to the vector of noisy scores.

        μ-GDP implies ρ = μ²/2, and H(0) ≤ 2Φ(μ/2) − 1 = erf(μ/√8).
        """
        rare, all_scores = (
            self.distance.squared.times(2 * rho).root().ball()
            for rho in (self.limiting_rho, self.joint_rho)
        )
        if self.limiting_rho == self.joint_rho:
            return all_scores
        with contextlib.suppress(UndecidedError):
            total = self.hockey_stick(ExactReal.of_rational(0))
            rare = rare.max(arb(8).sqrt() * total.erfinv())
        return rare.union(all_scores)

    def law(self) -> dict[str, object]:
        """Return {"law": "noisy-maxima", "candidates": k, "distance": t, "gaussian": True}."""
        return {**super().law(), "gaussian": True}

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the candidates that rise."""
        _, s, levels = self._largest(epsilon)
        level = f"{float(levels[0].mid()):.6g}" if levels else "some number"
        return (
            f"{s} of the {self.candidates} candidates: their scores are equal, and rise by "
            f"{self.distance} standard deviations of the noise against the others, which are equal "
            f"too, from {level} on"
        )

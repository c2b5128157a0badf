"""Worst pairs of selections and tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

from flint import arb

from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.pair import Known, MirroredPair, Pair, ReflectedPair, Tails, rho_bound
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.mechanisms.additive.laplace import LaplacePair
from dpassay.accountant.mechanisms.selection.candidates import BoundedRangePair
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import START_PRECISION, Interval, ball, enclose
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import halved
from dpassay.accountant.pairs.between import inverse_between, narrow_enough
from dpassay.accountant.pairs.maxima import TwoCandidates

"""Several selections by the exponential mechanism, each chosen after the results of the former.

A loss lies in an interval of length t, and the worst pairs of one release are two outcomes with the
losses s and s − t, for any s in [0, t]: under P the first has the probability
p(s) = (1 − e^{s−t})/(1 − e^{−t}) (`BoundedRangePair`; Dong, Durfee and Rogers 2020). Of k releases
an adversary chooses s for each, by what came before: H_0(x) = (1 − e^x)⁺ and

    H_k(x) = max over s of p(s) H_{k−1}(x − s) + (1 − p(s)) H_{k−1}(x − s + t).

*No other pair does more.* With z = e^x, r = P/Q of release 1 and all that follows at its best,
P(S) − zQ(S) is at most E_Q[g(r)], g(r) = r H_{k−1}(x − ln r). g is convex: the perspective of
z ↦ H_{k−1}(ln z), which is convex. So moving r to the ends of its interval, with the same mean,
makes it no smaller.

On a grid of t/m, for x ≥ 0 (H(−x) = 1 − e^{−x} + e^{−x}H(x), as P and Q change places with s and
t − s), two sequences in floats enclose H:

- *below*: the maximum over the s on the grid, at which all x are. A value that is asked for between
  has s on the grid moved by it;
- *above*: H is at most its chord in z = e^x. With v = e^{−s}, chords α + βv of the first term and
  γ + κv of the second, the sum is (c + c₁v + c₂/v)/(1 − e^{−t}), c₂ = −e^{−t}(α − γ). So between v₀
  and v₁ it is at most the larger end, and |c₂|(v₁ − v₀)²/(4v₀³) more where c₂ < 0.

Every float below has a relative error of less than 2⁻⁴²; each step allows for 2⁻⁴⁰. The grid has a
length T of its own, near t. Where T < t, p(s) at t is p(s − (t − T)) at T, or less where that s is
negative: so by induction H_T(x) ≤ H_t(x) ≤ H_T(x − k(t − T)). H is asked for at places that are
farther away than that, to the right for a lower bound, to the left for an upper one.
"""

MOST_RELEASES = 200
"""Releases that are followed one by one: more take seconds."""
_CELLS, _FINEST, _COARSEST = 6000, 400, 8
"""Grid points of all releases together, about a second; most and least of one."""
_ROUNDING = 2.0**-40
"""What a step in floats is allowed for, relative."""
_LEAST = 1e-290
"""Values below which floats lose digits."""
_SHORTEST, _LONGEST = 1e-100, 1000.0
"""Lengths t of which floats know all exponentials that are met."""
_ASIDE = 2.0**-49
"""Share of kt by which a place, and kT, may be wrong in floats."""
_DIFFERENCE = 2.0**-10
"""Absolute error of probabilities, in parts of the relative one of a step."""


@final
@dataclass(frozen=True)
class _Step:
    """Bounds of H after some releases at x = 0, t/m, 2t/m, …, and P and Q of the event below."""

    above: Array
    below: Array
    p: Array
    q: Array

    def two_sided(self, gap: float, m: int) -> _Step:
        """Return the same from x = −t on, and m more zeros at the end."""
        x = np.arange(m, 0, -1) * gap  # of S at x the other side is the rest, P and Q exchanged

        def joined(left: Array, right: Array) -> Array:
            return np.concatenate([left, right, np.zeros(m)])

        def mirrored(values: Array) -> Array:
            found: Array = -np.expm1(-x) + np.exp(-x) * values[m:0:-1]
            return found

        return _Step(
            joined(mirrored(self.above), self.above),
            joined(mirrored(self.below), self.below),
            joined(1 - self.q[m:0:-1], self.p),
            joined(1 - self.p[m:0:-1], self.q),
        )


@final
@dataclass(frozen=True)
class _Grid:
    """The points s of one release, m steps of a gap from 0 to t."""

    gap: float
    m: int

    @property
    def length(self) -> float:
        """Return T = m gap."""
        return self.gap * self.m

    def chance(self, s: Any) -> Any:
        """Return p(s)."""
        return np.expm1(s - self.length) / np.expm1(-self.length)

    def other(self, s: Any) -> Any:
        """Return the probability under Q of the loss s − t."""
        return np.expm1(-s) / np.expm1(-self.length)

    def after(self, last: _Step, width: int) -> _Step:
        """Return the bounds after one release more, of which so many points are not 0."""
        m, gap, wide = self.m, self.gap, last.two_sided(self.gap, self.m)
        found = _Step(*(np.zeros_like(last.p) for _ in range(4)))
        former = before = None
        for j in range(m + 1):
            chance, top = self.chance(j * gap), wide.above[m - j :][:width]
            more = top - wide.above[2 * m - j :][:width]
            value = top - (1 - chance) * more
            if former is None or before is None:
                np.maximum(found.above[:width], value, out=found.above[:width])
            else:
                bent = more + (more - before) / math.expm1(gap) + _ROUNDING / gap * top
                extra = math.expm1(gap) ** 2 * math.exp(j * gap - self.length)
                extra /= -4 * math.expm1(-self.length)
                ends = np.maximum(value, former) + extra * np.maximum(bent, 0)
                np.maximum(found.above[:width], ends, out=found.above[:width])
            former, before = value, more
            self._try(found, wide, m - j, j * gap, width)
        found.above[:width] *= 1 + _ROUNDING
        found.above[:width] += _LEAST
        found.below[:] = np.maximum(found.below * (1 - _ROUNDING) - _LEAST, 0)
        return found

    def _try(self, found: _Step, wide: _Step, start: int, s: float, width: int) -> None:
        """Take a release of the loss s or s − t into the bounds from below, where it is better."""
        first, second = slice(start, start + width), slice(start + self.m, start + self.m + width)
        chance, other = self.chance(s), 1 - self.chance(s)
        value = chance * wide.below[first] + other * wide.below[second]
        better = value > found.below[:width]
        np.copyto(found.below[:width], value, where=better)
        p = chance * wide.p[first] + other * wide.p[second]
        np.copyto(found.p[:width], p, where=better)
        q = math.exp(-s) * chance * wide.q[first] + self.other(s) * wide.q[second]
        np.copyto(found.q[:width], q, where=better)


@lru_cache(maxsize=8)
def _steps(grid: _Grid, count: int) -> tuple[_Step, _Step]:
    """Return what is known after all releases but one, and after all."""
    last = now = _Step(*(np.zeros(count * grid.m + 1) for _ in range(4)))
    for done in range(1, count + 1):
        last, now = now, grid.after(now, done * grid.m + 1)
    return last, now


@lru_cache(maxsize=8)
def _two_sided(grid: _Grid, count: int) -> _Step:
    return _steps(grid, count)[0].two_sided(grid.gap, grid.m)


@final
@dataclass(frozen=True)
class BoundedRangeProduct(ReflectedPair):
    """All pairs of `count` selections whose losses lie in intervals of length t: H between bounds.

    Each is chosen after the results of the former. Divergences are exact: those of releases add up,
    and each has the largest there is.
    """

    law_name = "bounded-range-product"

    length: ExactReal
    count: int

    @property
    def one(self) -> BoundedRangePair:
        """The pairs of one selection."""
        return BoundedRangePair(self.length)

    def renyi(self, order: arb) -> arb:
        """Return k times the largest of one release."""
        return self.count * self.one.renyi(order)

    @property
    def _grid(self) -> _Grid:
        most, length = min(_FINEST, max(_COARSEST, _CELLS // self.count)), float(self.length)
        if not _SHORTEST <= length <= _LONGEST:
            raise UndecidedError(
                f"Several selections with epsilon={self.length} are not followed. Expected it "
                f"between {_SHORTEST} and {_LONGEST}."
            )
        return _Grid(length / most, most)

    @property
    def _aside(self) -> float:
        """Return how far a place in floats may be off."""
        return self.count * float(self.length) * _ASIDE

    def _above(self, x: float) -> float:
        """Return a float above H at about x ≥ 0."""
        grid = self._grid
        now, at = _steps(grid, self.count)[1].above, max(x - self._aside, 0.0)
        cell = min(math.floor(at / grid.gap), self.count * grid.m - 1)
        share = math.expm1(at - cell * grid.gap) / math.expm1(grid.gap)
        share = min(max(share, 0.0), 1.0)
        left = max(self._aside - x, 0.0)  # H falls by less than what x rises by
        return float((1 - share) * now[cell] + share * now[cell + 1]) * (1 + _ROUNDING) + left

    def _event(self, x: float) -> tuple[float, float, float]:
        """Return a float below H at about x ≥ 0, and about P and Q of the event that shows it."""
        grid, m, at = self._grid, self._grid.m, x + self._aside
        if at >= self.count * grid.length:
            return 0.0, 0.0, 0.0
        wide = _two_sided(grid, self.count)
        cell = min(math.floor(at / grid.gap), self.count * m - 1)
        s = np.arange(m) * grid.gap + min(max(at - cell * grid.gap, 0.0), grid.gap)
        first = m + cell - np.arange(m)
        chance, rest = grid.chance(s), 1 - grid.chance(s)
        value = chance * wide.below[first] + rest * wide.below[first + m]
        best = int(value.argmax())
        low = max(float(value[best]) * (1 - _ROUNDING) - _LEAST, 0.0)
        p, q = (side[first[best] + np.array([0, m])] for side in (wide.p, wide.q))
        both = np.array([chance[best], rest[best]])
        under_q = np.array([chance[best] * np.exp(-s[best]), grid.other(s[best])])
        return low, float(both @ p), float(under_q @ q)

    def excess(self, epsilon: ExactReal) -> arb:
        """Return a ball around both bounds, whatever the precision."""
        x = float(epsilon)
        return arb(self._event(x)[0]).union(arb(min(self._above(x), 1.0)))

    @property
    def known(self) -> Known:
        """Return closed forms, and where a search may start."""
        return Known(
            max_loss=lambda: ExactReal.of_rational(self.count) * self.length,
            rho_bound=lambda: self.count * rho_bound(self.one),
            attained=lambda _: self,
            inverse=self._inverse,
        )

    def _inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Return where the two bounds pass δ; raise UndecidedError, with it, where that is wide."""
        largest = self.max_loss()
        if (-largest).expm1() + delta.ball() >= 0:
            return enclose(lambda: arb.log1p(-delta.ball()), relative_width=relative_width)
        level = float(delta)
        low = self._passed(lambda x: self._event(x)[0], math.nextafter(level, math.inf))[0]
        high = self._passed(self._above, math.nextafter(level, 0.0))[1]
        found = Interval.between(arb(low).max(-largest), arb(high).min(largest), 20)
        return narrow_enough(found, relative_width, "scores of selections are on a grid")

    def _passed(self, bound: Callable[[float], float], level: float) -> tuple[float, float]:
        """Return two ε next to each other, at one of which a bound is above δ."""

        def is_above(at: float) -> bool:
            value = bound(abs(at))
            return (value if at >= 0 else -math.expm1(at) + math.exp(at) * value) > level

        most = self.count * float(self.length) * (1 + _ASIDE)
        low, high = halved(is_above, -most, most)
        return low - self._aside, high + self._aside

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return those of the event that shows most, in floats; a rest 1 − p loses digits."""
        x = float(epsilon)
        _, p, q = self._event(abs(x))
        if x < 0:
            p, q = 1 - q, 1 - p
        near = self.count * _ROUNDING, self.count * _ROUNDING * _DIFFERENCE
        above, below = (arb(value, value * near[0] + near[1]) for value in (p, q))
        return Tails(above, 1 - above, below, 1 - below)

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the candidates whose scores rise."""
        return (
            f"of {self.count} selections, each with scores that depend on what was selected, the "
            f"sequences with a loss above {epsilon}"
        )


"""The sparse vector technique: which answers of a stream are above a noisy threshold.

The threshold, 0 with Laplace noise of scale s, is compared with every answer, with Laplace noise of
scale r; the stream ends after c answers above. Lengths are in units of the sensitivity: each answer
moves by at most 1. The loss is at most 1/s + 2c/r, or 1/s + c/r where all answers move in the same
direction (Lyu, Su and Li 2017): with the threshold moved by 1 no answer becomes less probable to be
below, and c answers above do by a factor of at most e^{2/r} or e^{1/r} each.

It comes as near to that as one likes. Let m > c + r/s answers come first, at a under P and at a + 1
under Q, and then c answers at 1 under P (0 where monotone) and at 0 under Q; the output is that the
m are below and the c above. As a grows, the integral over the noisy threshold

    P(output) = ∫ f(z/s)/s F((z − a)/r)^m (1 − F((z − 1)/r))^c dz

has its mass near a, where the first and the last factor are exponentials. So there Q(output), at
z + 1, is e^{−1/s − 2c/r} or e^{−1/s − c/r} times as large.

At other ε, for one threshold: let it be z under P and z + 1 under Q, which is Laplace noise at
distance 1/s. Given z, what is said has under P at most e^u times its probability under Q, u = 2c/r
or c/r. So both together are dominated by that noise and by a pair of the loss u for sure, (1, 0)
and (e^{−u}, 1 − e^{−u}): H(ε) ≤ H_Laplace(ε − u). That is less than what a loss of at most t allows
where ε is near t, by half.

With a fresh threshold after each answer above the parts between them are independent, and the loss
is c times that for c = 1. If the noisy value of an answer above is shown, a value v ≤ 0 says that
the noisy threshold is below v, where F((z − a)/r) is an exponential for a ≥ 0: m answers below, at
0 under P and at 1 under Q, have a loss of exactly m/r, for any m.
"""

Terms = list[tuple[arb, int]]
"""Sums of c e^{λz}, as (c, λ)."""
_PLACES = (0, 1, 2, 4, 8, 16, 32, 64)
"""Places a of the answers below that are tried, in units of r."""
_MOST_ABOVE = 16
"""Answers above in an output that is tried."""
_MOST_BELOW = 100
"""Answers below besides, at most: an output of more is less probable, and its sum is long."""
_LEAST_STEP = Fraction(1, 1 << 10)
"""The first step towards an ε, at least: that of a tiny loss would never reach an ε < 0."""
_TOO_LARGE = 1 << 64
"""A loss from which on no ε is looked for: it hides nothing, and a bracket is long."""


def _power(n: int, rate: int, at: Fraction, sign: int) -> tuple[Terms, Terms]:
    """Return F(z − at)^n (sign 1) or F(at − z)^n (−1), where z is below `at` and above it."""
    half, place = arb("0.5"), ball(at)
    tail: Terms = [(half**n * (-sign * n * rate * place).exp(), sign * n * rate)]
    most: Terms = [
        (math.comb(n, i) * (-half) ** i * (sign * i * rate * place).exp(), -sign * i * rate)
        for i in range(n + 1)
    ]
    return (tail, most) if sign > 0 else (most, tail)


def _chance(scales: tuple[Fraction, Fraction], *sides: tuple[int, Fraction, int]) -> arb:
    """Return P(n answers at a are below, or above), (n, a, 1) or (n, a, −1) given for each a.

    In a unit of z of which both rates are multiples the integrand is a sum of exponentials with
    integer rates between 0 and all a.
    """
    (a, b), (c, d) = (rate.as_integer_ratio() for rate in (1 / scales[0], 1 / scales[1]))
    unit = Fraction(math.gcd(a * d, c * b), b * d)
    s, r = (int(1 / (scale * unit)) for scale in scales)
    factors = [(Fraction(0), ([(arb(s) / 2, s)], [(arb(s) / 2, -s)]))]
    factors += [(at * unit, _power(n, r, at * unit, sign)) for n, at, sign in sides]
    ends = sorted({at for at, _ in factors})
    found = arb(0)
    for low, high in zip([None, *ends], [*ends, None], strict=True):
        terms: Terms = [(arb(1), 0)]
        for at, parts in factors:
            part = parts[low is not None and low >= at]
            terms = [(x * y, rate + also) for x, rate in terms for y, also in part]
        for x, rate in terms:
            found += x * (_primitive(high, rate) - _primitive(low, rate))
    return found


def _primitive(x: Fraction | None, rate: int) -> arb:
    """Return a primitive of e^{λx}, 0 at the infinite end where it is integrable."""
    if x is None:
        return arb(0)
    return (rate * ball(x)).exp() / rate if rate else ball(x)


@final
@dataclass(frozen=True)
class AboveThresholdPair(MirroredPair):
    """All pairs of streams: their largest loss, and outputs that bound H(ε) from below.

    The scales are in units of the sensitivity; `variant` is "standard", "fresh-threshold" or
    "noisy-values". Neighbours change places.
    """

    threshold: Fraction
    query: Fraction
    count: int
    monotone: bool
    variant: str

    @property
    def known(self) -> Known:
        """Return closed forms, and where a search may start."""
        return Known(
            upper=self._upper,
            attained=lambda _: self,
            max_loss=self._exact_max_loss,
            inverse=self._inverse,
            rho=lambda: self.renyi(arb(1)),
            # a loss in [−t, t]
            rho_bound=lambda: self.max_loss() ** 2 / 2,
        )

    def _exact_max_loss(self) -> ExactReal | None:
        """Return the supremum of the losses where it is finite."""
        return None if self.variant == "noisy-values" else ExactReal.of_rational(self._largest)

    @property
    def _largest(self) -> Fraction:
        part = (1 if self.monotone else 2) / self.query
        if self.variant == "fresh-threshold":
            return self.count * (1 / self.threshold + part)
        return 1 / self.threshold + self.count * part

    @property
    def one_answer(self) -> TwoCandidates:
        """Whether one answer is above, which moves by 1, in units of r."""
        unit, ratio = map(ExactReal.of_rational, (1 / self.query, self.threshold / self.query))
        return TwoCandidates("Laplace", unit, ratio)

    def _outputs(self, epsilon: ExactReal) -> Iterator[tuple[arb, arb, str]]:
        """Yield P and Q of outputs whose loss is large, and which streams and output these are."""
        if self.variant == "noisy-values":  # ∫ f(v) ∫_{z ≤ v} f(z/s)/s F(z)^m dz dv over v ≤ 0
            s, r = 1 / self.threshold, 1 / self.query
            m = max(1, math.floor(epsilon / ExactReal.of_rational(r)) + 1)
            p = ball(s * r / ((s + m * r) * (s + (m + 1) * r))) / arb(2) ** (m + 2)
            yield (
                p,
                p * ball(-m * r).exp(),
                f"{m} answers, 0 under P and 1 under Q, are below, and one at 0 is shown as v ≤ 0",
            )
            return
        for i, pair in enumerate(self.one_answer.pairs):
            (p, _), (q, _) = pair.source.masses(pair.index)
            yield p, q, f"one answer, {i}/8 lower than the threshold under Q, is above"
        fresh, most = self.variant == "fresh-threshold", min(self.count, _MOST_ABOVE)
        times = self.count if fresh else 1
        for c in (1,) if fresh else dict.fromkeys((1, most)):
            yield from self._of_streams(c, times)

    def _of_streams(self, c: int, times: int) -> Iterator[tuple[arb, arb, str]]:
        """Yield those of answers that are below, and then c above."""
        m = c + min(math.floor(self.query / self.threshold), _MOST_BELOW) + 2
        scales, raised = (self.threshold, self.query), Fraction(0 if self.monotone else 1)
        again = f", {times} times" if times > 1 else ""
        for place in _PLACES:
            a = place * self.query
            p = _chance(scales, (m, a, 1), (c, raised, -1))
            q = _chance(scales, (m, a + 1, 1), (c, Fraction(0), -1))
            yield (
                p**times,
                q**times,
                f"{m} answers at {a} under P, {a + 1} under Q, are below, and then {c} at "
                f"{raised} under P, 0 under Q, above{again}",
            )

    def _best(self, epsilon: ExactReal) -> tuple[arb, arb, str]:
        """Return P and Q of the output that shows the largest H(ε), and which it is."""
        factor = epsilon.ball().exp()
        return max(
            self._outputs(epsilon), key=lambda each: float((each[0] - factor * each[1]).mid())
        )

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return a ball from the best output up to what the largest loss allows."""
        least, largest = -epsilon.ball().expm1(), self.known.max_loss()
        if largest is not None and epsilon >= largest:
            return arb(0)
        if largest is not None and epsilon <= -largest:
            return least
        low = self._lower(epsilon)
        if largest is None:
            return low.union(arb(1))
        with ctx.workprec(START_PRECISION):  # more digits of bounds that are apart help nobody
            return low.union(self._most(epsilon))

    def _upper(self, epsilon: ExactReal) -> arb:
        """Return the larger end: a ball around both has a radius of 30 bits."""
        largest = self.known.max_loss()
        if largest is None or not -largest < epsilon < largest:
            return self.hockey_stick(epsilon).upper()
        with ctx.workprec(START_PRECISION):
            return self._most(epsilon).upper()

    def _most(self, epsilon: ExactReal) -> arb:
        """Return the least of the bounds in closed form."""
        largest = self.known.max_loss()
        assert largest is not None
        t, e = largest.ball(), epsilon.ball()
        return self._of_threshold(e).min((t.exp() - e.exp()) / (t.exp() + 1))

    def _lower(self, epsilon: ExactReal) -> arb:
        """Return what the best output shows, or all of them."""
        with ctx.workprec(START_PRECISION):
            factor, (p, q, _) = epsilon.ball().exp(), self._best(epsilon)
            return (p - factor * q).max(-epsilon.ball().expm1()).max(arb(0))

    def _of_threshold(self, epsilon: arb) -> arb:
        """Return H_Laplace(ε − u), 0 from 1/s on; 1 for several thresholds.

        At d = 1/s it is 1 − e^{−x/2}, x = d + u − ε, for 0 ≤ x ≤ 2d, and 1 − e^{d − x} beyond.
        """
        if self.variant != "standard" and self.count > 1:
            return arb(1)
        distance = ball(1 / self.threshold)
        paid = ball(self.count * (1 if self.monotone else 2) / self.query)
        left = (distance + paid - epsilon).max(arb(0))
        return -(-(left / 2).max(left - distance)).expm1()

    def _inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Enclose ε(δ) by where both bounds pass δ; UndecidedError where that is too wide."""
        why = "no profile of the sparse vector technique is known"
        if self.known.max_loss() is None:
            least_end = enclose(lambda: arb.log1p(-delta.ball())).lower
            found = Interval(least_end, Interval.of_ball(arb.pos_inf()).upper)
            return narrow_enough(found, relative_width, why)
        if self._largest > _TOO_LARGE:
            least = enclose(lambda: arb.log1p(-delta.ball()))
            return narrow_enough(least.hull(Interval.of_exact(self._largest)), relative_width, why)
        step = max(self._largest / 4, _LEAST_STEP)
        ends = self._lower, lambda at: self.hockey_stick(at).upper()
        return inverse_between(ends, delta, step, relative_width, why)

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return those of the best output against all others."""
        p, q, _ = self._best(epsilon)
        return Tails(p, 1 - p, q, 1 - q)

    def renyi(self, order: arb) -> arb:
        """Return a wide ball: from 0 up to what a loss in [−t, t] allows."""
        return arb(0).union(order * rho_bound(self))

    def law(self) -> dict[str, object]:
        """Return the scales, the count and the variant."""
        return {
            "law": "above-threshold",
            "threshold": str(ExactReal.of_rational(self.threshold)),
            "query": str(ExactReal.of_rational(self.query)),
            "count": self.count,
            "monotone": self.monotone,
            "fresh": self.variant == "fresh-threshold",
            "values": self.variant == "noisy-values",
        }

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the streams and the output that show most."""
        return f"{self._best(epsilon)[2]}; in units of the sensitivity, from the threshold on"


"""A noisy number that is released where a noisy distance reaches a threshold.

Let the test be passed with the chances a under P and b under Q, and the number move by t units of
Laplace noise. The loss is ln(a/b) and that of the noise where it passes, ln((1 − a)/(1 − b)) else:

    H(ε) = a H_Laplace(ε − ln(a/b)) + ((1 − a) − e^ε (1 − b))⁺.

H_Laplace(x) is the largest of 0, 1 − e^x and 1 − e^{(x − t)/2}, for every x.
"""


def tail(x: Fraction) -> tuple[arb, arb]:
    """Return P(Z ≥ x) and P(Z < x) for Laplace noise Z of scale 1."""
    rare = (-abs(ball(x))).exp() / 2
    return (rare, 1 - rare) if x >= 0 else (1 - rare, rare)


@final
@dataclass(frozen=True)
class TestedReleasePair(Pair):
    """P and Q of two neighbours whose distances differ by one.

    Parameters
    ----------
    distance
        t > 0, by how much the number moves, in units of its noise.
    margin
        x, by how much the smaller distance is below the threshold, in units of the test's noise.
    step
        r > 0, by how much the other one is above it, in the same units.
    rises
        Whether P has the larger distance.
    """

    law_name = "tested-release"

    distance: Fraction
    margin: Fraction
    step: Fraction
    rises: bool

    @property
    def _noise(self) -> LaplacePair:
        return LaplacePair(exact(self.distance))

    def _chances(self) -> tuple[tuple[arb, arb], tuple[arb, arb]]:
        """Return (a, 1 − a) and (b, 1 − b)."""
        both = tail(self.margin), tail(self.margin - self.step)
        return both[::-1] if self.rises else both

    def _losses(self) -> tuple[arb, arb]:
        """Return ln(a/b) and ln((1 − a)/(1 − b)): ±r where both are on that side of x = 0."""
        (a, no_a), (b, no_b) = self._chances()
        way = ball(self.step) * (1 if self.rises else -1)
        passed = way if self.margin >= self.step else (a / b).log()
        return passed, -way if self.margin <= 0 else (no_a / no_b).log()

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return the sum of both parts."""
        (a, no_a), (_, no_b) = self._chances()
        passed, _ = self._losses()
        x, t, factor = epsilon.ball() - passed, ball(self.distance), epsilon.ball().exp()
        noisy = (-x.expm1()).max(-((x - t) / 2).expm1()).max(arb(0))
        return a * noisy + (no_a - factor * no_b).max(arb(0))

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return those of the loss; a part whose loss may be ε or not is between both."""
        (a, no_a), (b, no_b) = self._chances()
        passed, failed = self._losses()
        above, below = self._noise_tails(epsilon.ball() - passed)
        fails = _above(failed, epsilon)
        return Tails(
            p_above=a * above[0] + no_a * fails,
            p_below=a * below[0] + no_a * (1 - fails),
            q_above=b * above[1] + no_b * fails,
            q_below=b * below[1] + no_b * (1 - fails),
        )

    def _noise_tails(self, x: arb) -> tuple[tuple[arb, arb], tuple[arb, arb]]:
        """Return P and Q of {l > x}, and of the rest, for the loss l of the noise."""
        t = ball(self.distance)
        none, all_of_it = (arb(0), arb(0)), (arb(1), arb(1))
        if x >= t:
            return none, all_of_it
        if x < -t:
            return all_of_it, none
        c = (t + x) / 2
        left, right = (c - t).exp() / 2, (-c).exp() / 2
        above, below = (1 - left, right), (left, 1 - right)
        if not (-t <= x < t):  # an atom that is not told from x
            above = above[0].union(arb(0)).union(arb(1)), above[1].union(arb(0)).union(arb(1))
            below = 1 - above[0], 1 - above[1]
        return above, below

    def renyi(self, order: arb) -> arb:
        """Return ln(E e^{(order − 1)L})/(order − 1)."""
        if order == 1:
            return self._mean_loss()
        (a, no_a), _ = self._chances()
        passed, failed = self._losses()
        less = order - 1
        inner = (less * (self._noise.renyi(order) + passed)).exp()
        return (a * inner + no_a * (less * failed).exp()).log() / less

    def _mean_loss(self) -> arb:
        """Return E L."""
        (a, no_a), _ = self._chances()
        passed, failed = self._losses()
        return a * (passed + self._noise.renyi(arb(1))) + no_a * failed

    def max_loss(self) -> arb:
        """Return the larger one of both parts."""
        passed, failed = self._losses()
        return (passed + ball(self.distance)).max(failed)

    @property
    def known(self) -> Known:
        """Return closed forms, and where a search may start."""
        return Known(max_loss=self._exact_max_loss)

    def _exact_max_loss(self) -> ExactReal | None:
        """Return r + t where P has the larger distance, and both are below the threshold."""
        if self.rises and self.margin >= self.step:
            return exact(self.step + self.distance)
        return None

    def reverse(self) -> TestedReleasePair:
        """Return the pair with P and Q exchanged."""
        return TestedReleasePair(self.distance, self.margin, self.step, not self.rises)


def _above(loss: arb, epsilon: ExactReal) -> arb:
    """Return 1 where a loss is above ε, 0 where it is not, and both where that is not known."""
    if loss > epsilon.ball():
        return arb(1)
    return arb(0) if loss <= epsilon.ball() else arb(0).union(arb(1))

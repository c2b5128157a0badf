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

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, final

from flint import arb

from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.pair import ReflectedPair, Tails
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.mechanisms.selection.exponential import BoundedRangePair
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.halving import halved
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.accountant.pairs.two_ends import narrow_enough

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


@dataclass(frozen=True)
class Selections(ReflectedPair):
    """All pairs of `count` selections whose losses lie in intervals of length t.

    Divergences are exact: those of releases add up, and each has the largest there is.
    """

    length: ExactReal
    count: int

    @property
    def one(self) -> BoundedRangePair:
        """The pairs of one selection."""
        return BoundedRangePair(self.length)

    def renyi(self, order: arb) -> arb:
        """Return k times the largest of one release."""
        return self.count * self.one.renyi(order)

    def kullback_leibler(self) -> arb:
        """Return k times the largest of one release."""
        return self.count * self.one.kullback_leibler()

    def exact_max_loss(self) -> ExactReal:
        """Return kt."""
        return ExactReal.of_rational(self.count) * self.length

    def rho_bound(self) -> arb:
        """Return kt²/8."""
        return self.count * self.one.rho_bound()


@final
@dataclass(frozen=True)
class BoundedRangeProduct(Selections):
    """All of them, each chosen after the results of the former: H between bounds."""

    law_name = "bounded-range-product"
    only_bounded: ClassVar = True

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

    def inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval:
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

"""Two mixtures of normal laws of one variance, the first to the right of the second.

Let P have the largest mean a with weight w, and Q the largest mean b with weight v, Δ = a − b.
For every x ≥ X, as Φ̄(x − a_i)/Φ̄(x − a) falls,

    P(x, ∞) ≤ W Φ̄(x − a),   W = P(X, ∞)/Φ̄(X − a) ≤ 1,   Q(x, ∞) ≥ v Φ̄(x − b).

With D_u(y) = t(uΦ̄(y)) − y, the half-line (x, ∞) needs

    μ ≤ Δ + D_v(x − b) − D_W(x − a) ≤ Δ + D_v(X − b) − D_W(X − b),   and μ ≤ Δ where W ≤ v.

For λ = φ/Φ̄ increases: D_u(y) and D_v(y) − D_W(y), W ≥ v, are lengths over which it has the
integrals −ln u and ln(W/v), and end the further out the larger y is. And D_u is convex, as λ(t) − t
falls: D_u' + 1 = λ(y)/λ(y + D_u), the logarithm of which has a derivative ≥ 0.

It needs no less than Δ in the limit: P(x, ∞) ≥ w Φ̄(x − a) and Q(x, ∞) ≤ Φ̄(x − b).
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from dpassay.accountant.composition.product import exact_sum
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.pairs.gaussian import normal_cdf
from dpassay.accountant.pairs.gaussian_mixture import GaussianMixturePair, Mixture
from dpassay.accountant.questions.least_mu.curve import hazard, score
from dpassay.accountant.questions.least_mu.search import Tail, least

_MOST_STEPS = 1000
"""Steps along a half-line until a refusal."""
_LEAST_STEP = 1e-3
"""Shortest step: where it does not do, curves touch."""


def limit(pair: GaussianMixturePair) -> arb:
    """Return the larger one of the limits of the μ that half-lines need, at both ends."""
    found = [shift(side) for side in (pair, pair.reverse())]
    return found[0].max(found[1])


def shift(pair: GaussianMixturePair) -> arb:
    """Return Δ, the difference of the largest means."""
    return _farthest(pair.p)[1].ball() - _farthest(pair.q)[1].ball()


def exact_limit(pair: GaussianMixturePair) -> ExactReal | None:
    """Return it as an exact number, where both are: the means have rational ratios."""
    found = []
    for side in (pair, pair.reverse()):
        shift = exact_sum([_farthest(side.p)[1], -_farthest(side.q)[1]])
        if shift is None:
            return None
        found.append(shift)
    return max(found)


def weights(pair: GaussianMixturePair) -> tuple[arb, arb]:
    """Return w, and −ln v."""
    return ball(_farthest(pair.p)[0]), -ball(_farthest(pair.q)[0]).log()


def least_mu(pair: GaussianMixturePair, floor: arb, width: Fraction) -> arb:
    """Enclose the least μ, to a relative width if that succeeds.

    It is `floor`, the limit, itself where that is proved to be enough.
    """
    reverse = pair.reverse()

    def delta(at: Fraction) -> arb:
        point = ExactReal.of_rational(at)
        return pair.hockey_stick(point).max(reverse.hockey_stick(point))

    most = pair.largest_shift()  # hockey-stick divergences are jointly convex
    return least(delta, floor, most, _Ends(pair), width)


class _Ends:
    """Half-lines (x, ∞), and (−∞, x), for large x."""

    def __init__(self, pair: GaussianMixturePair) -> None:
        self._sides = [_End(pair), _End(pair.reverse())]
        self._limit = limit(pair)

    def tail(self, depth: int, best: arb, stretch: arb) -> Tail:
        """Bound both ends, beginning `depth` beyond the last mean."""
        levels = [side.level(depth) for side in self._sides]
        t, most = levels[0].max(levels[1]), best
        for side in self._sides:
            found = side.most(depth, most, stretch)
            if found is None:
                return Tail(t, None)
            most = found
        return Tail(t, most)

    def within(self, depth: int) -> bool:
        """Whether no half-line needs more than the larger one of the limits."""
        return all(side.within(depth, self._limit) for side in self._sides)


class _End:
    """The half-lines (x, ∞)."""

    def __init__(self, pair: GaussianMixturePair) -> None:
        self._p, self._q = pair.p, pair.q
        (_, a), (v, b) = _farthest(pair.p), _farthest(pair.q)
        self._a, self._b, self._v = a.ball(), b.ball(), ball(v)
        self._shift = shift(pair)

    def level(self, depth: int) -> arb:
        """Return t with Q(x, ∞) = Φ̄(t)."""
        return score(_above(self._q, self._start(depth)))

    def within(self, depth: int, most: arb) -> bool:
        """Whether no half-line from there on needs more than Δ ≤ most, by W ≤ v."""
        x = self._start(depth)
        below = self._weight(x) <= self._v and not self._shift > most
        return below or self._bounded(x, None, most)

    def most(self, depth: int, best: arb, stretch: arb) -> arb | None:
        """Return a μ ≥ best that a half-line needs, and from there on none `stretch` times as much.

        None where that takes too many steps.
        """
        x = self._start(depth)
        step = (x - self._b).mid() / 4
        for _ in range(_MOST_STEPS):
            own = (score(_above(self._q, x)) - score(_above(self._p, x))).lower()
            best = arb(own) if own > best else best
            goal = best * stretch
            if self._bounded(x, None, goal):
                return best
            while not self._bounded(x, (x + step).mid(), goal):
                step /= 2
                if step < _LEAST_STEP:
                    return None
            x, step = (x + step).mid(), 2 * step
        return None

    def _start(self, depth: int) -> arb:
        return (self._a + depth).mid()

    def _weight(self, x: arb) -> arb:
        """Return W."""
        return (_above(self._p, x) / normal_cdf(self._a - x)).min(arb(1))

    def _bounded(self, x: arb, end: arb | None, goal: arb) -> bool:
        """Whether the half-lines from x to an end, or None, are proved to need at most the goal.

        To an end, Q(x, ∞)/Φ̄(x − b), which falls, takes the place of v. D_v lies below its chord,
        and D_W above its tangent.
        """
        w, room = self._weight(x), goal - self._shift
        v = self._v if end is None else _above(self._q, end) / normal_cdf(self._b - end)
        if w <= v:
            return bool(room >= 0)
        if self._lag(v, x - self._b) - self._lag(w, x - self._b) <= room:
            return True
        if end is None:
            return False
        middle = (x + end).mid() / 2
        y = middle - self._a
        least = self._lag(w, y)
        slope = hazard(y) / hazard(y + least) - 1
        return all(
            self._lag(v, at - self._b) - least - slope * (at - middle) <= room for at in (x, end)
        )

    @staticmethod
    def _lag(weight: arb, y: arb) -> arb:
        """Return D_u(y)."""
        return score(weight * normal_cdf(-y)) - y


def _above(mixture: Mixture, x: arb) -> arb:
    return sum((ball(w) * normal_cdf(m.ball() - x) for w, m in mixture), start=arb(0))


def _farthest(mixture: Mixture) -> tuple[Fraction, ExactReal]:
    return max(mixture, key=lambda part: part[1])

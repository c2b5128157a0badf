"""The trade-off function β(α): the least type II error of any test at type I error α.

The null hypothesis is Q and the alternative is P: a test that rejects on S has type I error
α = Q(S) and type II error β = 1 − P(S). The trade-off function f of one pair is convex and
non-increasing on [0, 1]. For every real ε the likelihood-ratio test {L > ε}, of level q = Q(L > ε),
gives bounds of f(α):

- The test is optimal at its level, so f(q) = P(L ≤ ε) (Neyman and Pearson).
- The line of slope −e^ε through that point supports f, so f(α) ≥ P(L ≤ ε) + e^ε (q − α).
- The test that rejects with probability min(1, α/q) on {L > ε} has level ≤ α, so
  f(α) ≤ P(L ≤ ε) + P(L > ε)(1 − α/q)⁺.

The chord between two tests with levels on either side of α is an upper bound of f(α). If L has
atoms, f is piecewise linear. Between two adjacent vertices the chord is f itself, and its slope
−e^ε* gives the ε* whose supporting line proves it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import final

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency, Direction
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import (
    Pair,
    Tails,
    attained,
    exact_infinity_mass,
    only_bounded,
    refined,
    upper_bound,
)
from dpassay.accountant.core.validate import probability
from dpassay.accountant.errors import BetweenError, NotApplicableError, UndecidedError
from dpassay.accountant.numbers import solve
from dpassay.accountant.numbers.exact import ExactReal, Number
from dpassay.accountant.numbers.interval import (
    START_PRECISION,
    Interval,
    ball,
    bits_of,
    enclose,
    sign,
    within,
)
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.invert import least
from dpassay.accountant.questions.profile import (
    answer,
    joined,
    largest,
    smallest,
    usual,
    worst_pairs,
)

_SPARE_BITS = 20
"""Number of bits of the precision that the tails of a test may lose."""
_MAX_STEPS = 2000
"""Largest number of tests; atoms that lie close together take many."""
_NOTHING = arb(2) ** -(1 << 60)
"""About the least number that an `Interval` holds: nothing below it is told apart."""
_MAX_BLURS = 2
"""Number of undecided tests (level not distinguishable from α) after which the search ends."""
_LOSSES, _PARTS, _LOSS_SPAN = 6, (1, Fraction(3, 4)), 4.0
"""Losses of each sign at which bounds of H are evaluated: the span is halved `_LOSSES` − 1 times,
and each result is multiplied by each of `_PARTS`. The span is the largest loss, or at most
`_LOSS_SPAN` if that is infinite."""
_EVENTS = 8
"""Number of events tried, at the losses with the best bounds."""
_COARSE = Fraction(1, 1000)
"""Relative width of bounds of H; it need not be small, since the bounds differ by more."""
_WIDENINGS = 4
"""Number of steps tried on each side of an undecided test, each 16 times the last."""


def beta(
    mechanism: Mechanism,
    alpha: Number,
    *,
    adjacency: Adjacency | str | None = None,
    direction: Direction | None = None,
    method: str = "auto",
    relative_width: Number | None = None,
) -> Interval:
    """Enclose β(α), the least type II error at type I error α over the worst pairs.

    Suppose a mechanism is dominated only by the maximum of several profiles
    (`dpassay.accountant.core.pair.WorstCase.enveloped`). Then the least β of the pairs is attained,
    and the trade-off function of the maximum is a lower bound. The two differ only where the convex
    hull of two curves lies below both. If a single pair has the largest profile of many neighbours
    (`ReportNoisyMax`), β is the largest trade-off function below all of theirs.

    Parameters
    ----------
    mechanism, adjacency, direction, method, relative_width
        As for `dpassay.accountant.questions.profile.delta`.
    alpha
        Type I error in [0, 1], read exactly.

    Raises
    ------
    InvalidInputError
        If α is outside [0, 1].
    BetweenError
        If only two bounds are known, and they are farther apart than the requested width.
    """
    pairs = worst_pairs(mechanism, adjacency, direction, method)
    question = _Question(probability("alpha", alpha), power=False)
    envelope = _envelope(mechanism, adjacency, pairs)
    return question.answer(pairs, envelope, relative_width)


def power(
    mechanism: Mechanism,
    alpha: Number,
    *,
    adjacency: Adjacency | str | None = None,
    direction: Direction | None = None,
    method: str = "auto",
    relative_width: Number | None = None,
) -> Interval:
    """Enclose 1 − β(α), the largest power of a test of level α, without cancellation for small α.

    Arguments and errors are those of `beta`.
    """
    pairs = worst_pairs(mechanism, adjacency, direction, method)
    question = _Question(probability("alpha", alpha), power=True)
    envelope = _envelope(mechanism, adjacency, pairs)
    return question.answer(pairs, envelope, relative_width)


def _envelope(
    mechanism: Mechanism, adjacency: Adjacency | str | None, pairs: Sequence[Pair]
) -> Pair | None:
    """Return the envelope of the pairs, or None if every neighbour is dominated by one of them."""
    if len(pairs) == 1 or not mechanism.worst_case(Adjacency.read(adjacency)).enveloped:
        return None
    from dpassay.accountant.pairs.subsampled import envelope

    return envelope(tuple(pairs))


@final
@dataclass(frozen=True)
class _Question:
    """The least f(α) of several pairs at α = `level`, or with `power` the largest 1 − f(α)."""

    level: ExactReal
    power: bool

    def answer(
        self, pairs: Sequence[Pair], envelope: Pair | None, relative_width: Number | None
    ) -> Interval:
        """Return an enclosure to the given relative width, or to the best one reached quickly."""

        def bounds() -> Interval:  # by a perfect test, and by one that uses infinite losses only
            known = [1 - pair.infinity_mass() for pair in pairs if not only_bounded(pair)]
            blind = (1 - self.level.ball()) * least([arb(1), *known])
            return Interval.between(*((1 - blind, arb(1)) if self.power else (arb(0), blind)))

        blind = 1 - self.level.ball()
        whole = Interval.between(*((1 - blind, arb(1)) if self.power else (arb(0), blind)))
        return answer(
            lambda width: self._worst(pairs, envelope, width),
            relative_width,
            usual(pairs),
            bounds,
            whole=whole,
        )

    def _worst(self, pairs: Sequence[Pair], envelope: Pair | None, width: Fraction) -> Interval:
        """Enclose the answer for the worst pair, or from there to the bound by the envelope."""
        asks = [partial(self._of, pair, width) for pair in pairs]
        found = joined(asks, largest if self.power else smallest)
        if envelope is None:
            return found
        with within():
            found = found.hull(self._of(envelope, width))
        if found.lower < found.upper and (found.relative_width or 1) > width:
            raise BetweenError("power" if self.power else "beta", found)
        return found

    def _of(self, pair: Pair, width: Fraction) -> Interval:
        """Enclose the answer for one pair."""
        if self.level.sign != 0 and _covers_p(pair, self.level):
            return Interval.of_exact(int(self.power))
        if only_bounded(pair):
            known = _between(pair, self.level.ball(), power=self.power)
            raise UndecidedError(
                f"Only bounds are known: {'power' if self.power else 'beta'} lies in {known}, by "
                "events that are known and by bounds of delta. Ask for a larger relative_width.",
                reached=float(known.relative_width or math.inf),
                interval=known,
            )
        if not hasattr(pair, "factors"):  # a single release needs no composition engine
            return self._by_tails(pair, width)
        from dpassay.accountant.composition.choose import best_of
        from dpassay.accountant.composition.dual import FINEST, by_values

        by_profile = partial(by_values, level=self.level, width=width, power=self.power)

        def values(form: Pair) -> Interval:
            found = by_profile(form)
            if found is None:
                raise UndecidedError("The type II error does not follow from values of delta here.")
            return found

        def ask(form: Pair) -> Interval:
            return by_profile(form) or self._by_tails(form, width)

        if width >= FINEST:  # values of H by another engine may be faster than exact tails
            with suppress(UndecidedError):
                return best_of(pair, width, values)
        found = best_of(pair, width, ask)
        if found.relative_width is None or found.relative_width > width:
            raise UndecidedError(
                f"Reached {'a power' if self.power else 'beta'} in {found} on a grid. Ask for a "
                "larger relative_width.",
                reached=float(found.relative_width or math.inf),
                interval=found,
            )
        return found

    def _by_tails(self, pair: Pair, width: Fraction) -> Interval:
        asked = refined(pair, width)
        return enclose(lambda: self._ball(asked, bits_of(width)), relative_width=width)

    def _ball(self, pair: Pair, bits: int) -> arb:
        if self.level.sign != 0:
            return _search(pair, self.level, bits, power=self.power)
        power = pair.infinity_mass()  # for α = 0 reject only where Q has no mass
        return power if self.power else 1 - power


def _between(pair: Pair, level: arb, *, power: bool) -> Interval:
    """Enclose f(α), or 1 − f(α), for a pair of which only bounds of H are known.

    For every ε, f(α) ≥ 1 − H(ε) − e^ε α. For the other bound, take a known event of an attained
    pair and randomise it to level α: reject on it with a probability below 1, or also outside of it
    with some probability. Events of different attained pairs must not be combined.
    """
    pair = refined(pair, _COARSE)
    with ctx.workprec(START_PRECISION):
        largest_loss = pair.max_loss()
        span = float(largest_loss.upper()) if largest_loss.is_finite() else _span(pair, level)
        most = (1 - level).upper()
        sizes = [Fraction(span) * part / (1 << k) for k in range(_LOSSES) for part in _PARTS]
        losses = (Fraction(0), *sizes, *(-size for size in sizes))
        found = []
        for loss in losses:
            at = ExactReal.of_rational(loss)
            found.append((1 - upper_bound(pair, at) - at.ball().exp() * level, at))
        found.sort(key=lambda entry: float(entry[0]), reverse=True)
        low = max([arb(0), *(value for value, _ in found)], key=float)
        for _, at in found[:_EVENTS]:
            with suppress(NotApplicableError, UndecidedError):
                tails = refined(attained(pair, at), _COARSE).tails(at)
                if tails.q_above > level:
                    most = most.min((1 - tails.p_above * level / tails.q_above).upper())
                elif tails.q_above <= level and tails.q_above < 1:
                    most = most.min((tails.p_below * (1 - level) / tails.q_below).upper())
        return Interval.between(1 - most, 1 - low) if power else Interval.between(low, most)


def _span(pair: Pair, level: arb) -> float:
    """Return about the largest loss that matters, where H is below the level."""
    low = float(level.mid())
    rough = pair.known.epsilon(math.log(min(low, 1 - low)) - 1) if 0 < low < 1 else None
    return min(rough, _LOSS_SPAN) if rough is not None and rough > 0 else _LOSS_SPAN


def _covers_p(pair: Pair, level: ExactReal) -> bool:
    """Whether α ≥ Q(L > −∞). Then a test of level α can reject wherever P has mass, and β = 0."""
    if level.rational == 1:
        return True
    missed = exact_infinity_mass(pair.reverse())
    if missed is not None and missed.rational is not None and level.rational is not None:
        return level.rational + missed.rational >= 1
    excess = sign(lambda: level.ball() + pair.reverse().infinity_mass() - 1)
    return excess is not None and excess >= 0


def _search(pair: Pair, level: ExactReal, bits: int, *, power: bool) -> arb:
    """Return a ball that contains f(α), or 1 − f(α), accurate to `bits` if the precision allows.

    Every test that is evaluated proves bounds; the steps only choose the tests. Most steps move to
    the root of ln(q/α), which is fast if the loss has a density. Some move to the slope of the
    chord, which is exact if it has atoms. Some bisect, which always converges.
    """
    curve = _Curve(pair, level, bits, power)
    epsilon: Fraction | None = Fraction(0)
    blurs = 0
    for turn in range(_MAX_STEPS):
        if epsilon is None or curve.accurate() or blurs > _MAX_BLURS:
            break
        if not curve.visit(epsilon):  # undecided: q may equal α, or ε may be at an atom
            blurs += 1
            step = max(_small_step(epsilon), curve.blur)
            for direction in (-1, 1):
                steps = (direction * step * 16**k for k in range(_WIDENINGS))
                any(curve.visit(epsilon + step) for step in steps)
        epsilon = curve.next(turn)
    return curve.value()


@final
@dataclass(frozen=True, slots=True)
class _Test:
    """The likelihood-ratio test {L > ε}."""

    epsilon: Fraction
    tails: Tails
    gap: arb
    """q − α, computed from α and q or from their complements, whichever are smaller."""
    score: arb
    """A number of the sign of the gap: the logarithm of the ratio of the two numbers that the gap
    is computed from, or a fraction of it."""


@final
class _Curve:
    """The tests of one pair that are nearest to one level, and the bounds proved so far."""

    def __init__(self, pair: Pair, level: ExactReal, bits: int, power: bool) -> None:
        self._pair, self._bits, self._power = pair, bits, power
        self.blur = Fraction(0)
        """Least change of ε that makes the level of the last test distinguishable."""
        self._alpha = level.ball()
        self._rest = ball(1 - level.rational) if level.rational is not None else 1 - self._alpha
        self._lower, self._upper = arb(0), arb(1)
        self._above: _Test | None = None
        self._below: _Test | None = None
        self._last_side = 0
        self._width = Fraction(0)

    def value(self) -> arb:
        """Return a ball that contains both bounds."""
        return self._lower.union(self._upper)

    def accurate(self) -> bool:
        """Whether the bounds agree to the required bits, nearly to the precision, or are tiny."""
        if self._upper < _NOTHING:
            return True
        return self.value().rel_accuracy_bits() >= min(self._bits + 1, ctx.prec - _SPARE_BITS)

    def visit(self, epsilon: Fraction) -> bool:
        """Evaluate the test {L > ε}; return whether its level is distinguished from α."""
        test = self._test(epsilon)
        self._bound(test)
        side = 1 if test.score > 0 else -1 if test.score < 0 else 0
        if side > 0 and (self._above is None or epsilon > self._above.epsilon):
            self._above = test
        if side < 0 and (self._below is None or epsilon < self._below.epsilon):
            self._below = test
        if side and side == self._last_side:  # Illinois method: halve the score at the other end
            self._halve(-side)
        self._last_side = side or self._last_side
        if side and self._above is not None and self._below is not None:
            self._bound_by_chord(self._above, self._below)
        return side != 0

    def next(self, turn: int) -> Fraction | None:
        """Return the next ε to try, or None if f is linear between the two nearest tests."""
        if self._below is None:
            return _outward(self._above, 1)
        if self._above is None:
            return _outward(self._below, -1)
        low, high = self._above.epsilon, self._below.epsilon
        stuck = high - low > self._width / 2
        self._width = high - low
        if turn % 5 == 2:
            slope = _chord_slope(self._above.tails, self._below.tails)
            return slope if slope is not None and low < slope < high else None
        if turn % 5 == 0 and stuck:
            return (low + high) / 2
        scores = (_finite(self._above.score), _finite(self._below.score))
        with ctx.workprec(2 * ctx.prec):
            root = solve.secant(ball(low).mid(), ball(high).mid(), *scores, ctx.prec // 2)
            return (low + high) / 2 if root is None else solve.fraction(root)

    def _test(self, epsilon: Fraction) -> _Test:
        tails = self._pair.tails(ExactReal.of_rational(epsilon))
        above, below = tails.q_above, tails.q_below
        self.blur = _relative_radius(min(above, below, key=lambda tail: float(tail.mid())))
        if self._alpha < self._rest:
            return _Test(epsilon, tails, above - self._alpha, _log_ratio(above, self._alpha))
        return _Test(epsilon, tails, self._rest - below, -_log_ratio(below, self._rest))

    def _bound(self, test: _Test) -> None:
        """Apply the bounds by the supporting line at a test, and by its randomisation."""
        tails = test.tails
        rise = ball(test.epsilon).exp() * test.gap
        if self._power:
            kept = arb(1) if test.score < 0 else _clipped(self._alpha / tails.q_above)
            self._tighten(tails.p_above * kept, tails.p_above - rise)
        else:
            lost = arb(0) if test.score < 0 else _clipped(test.gap / tails.q_above)
            self._tighten(tails.p_below + rise, tails.p_below + tails.p_above * lost)

    def _bound_by_chord(self, above: _Test, below: _Test) -> None:
        """Apply the bound by the chord. Nothing cancels, as one gap is > 0 and the other < 0."""
        weight = 1 / (above.gap - below.gap)
        if self._power:
            chord = above.gap * below.tails.p_above - below.gap * above.tails.p_above
            self._tighten(chord * weight, self._upper)
        else:
            chord = above.gap * below.tails.p_below - below.gap * above.tails.p_below
            self._tighten(self._lower, chord * weight)

    def _tighten(self, lower: arb, upper: arb) -> None:
        """Update both bounds; a new one by a wide ball does not replace a sharper one."""
        if not lower.is_nan():
            self._lower = self._lower.max(lower.lower())
        if not upper.is_nan():
            self._upper = self._upper.min(upper.upper())

    def _halve(self, side: int) -> None:
        if side > 0 and self._above is not None:
            self._above = replace(self._above, score=self._above.score / 2)
        if side < 0 and self._below is not None:
            self._below = replace(self._below, score=self._below.score / 2)


def _relative_radius(level: arb) -> Fraction:
    """Return the relative error of a level, about the change of ε that it corresponds to."""
    share = 2 * level.rad() / abs(level).lower()
    return solve.fraction(share.mid()) if share < 1 else Fraction(0)


def _log_ratio(level: arb, target: arb) -> arb:
    return arb.neg_inf() if level.is_zero() else (level / target).log()


def _clipped(share: arb) -> arb:
    """Clip a probability to [0, 1]; return a ball for [0, 1] if nothing is known about it."""
    return share.max(arb(0)).min(arb(1)) if share.is_finite() else arb("0.5 +/- 0.5")


def _finite(score: arb) -> arb | None:
    return score.mid() if score.is_finite() else None


def _outward(nearest: _Test | None, direction: int) -> Fraction | None:
    """Return a point about twice as far out as the outermost test; None if there is no test."""
    if nearest is None:
        return None
    beyond = 2 * nearest.epsilon * direction
    return direction * max(beyond, Fraction(1))


def _chord_slope(above: Tails, below: Tails) -> Fraction | None:
    """Return a point just above the ε for which −e^ε is the slope of the chord."""
    falls = (above.p_above - below.p_above, below.p_below - above.p_below)
    rises = (above.q_above - below.q_above, below.q_below - above.q_below)
    fall, rise = (max(pair, key=lambda value: value.rel_accuracy_bits()) for pair in (falls, rises))
    slope = (fall / rise).mid()  # each difference is taken from the tails that lose fewer bits
    if not (slope.is_finite() and slope > 0):
        return None
    epsilon = solve.fraction(slope.log().mid())
    return epsilon + _small_step(epsilon)


def _small_step(epsilon: Fraction) -> Fraction:
    """Return a step that is small, but larger than rounding errors at the current precision."""
    return max(abs(epsilon), Fraction(1)) / (1 << (ctx.prec - _SPARE_BITS + 6))

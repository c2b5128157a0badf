"""Interval sweeps: an inequality between monotone functions proved on a whole half-line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import START_PRECISION, Interval, ball
from dpassay.accountant.numbers.precision import ctx

_PRECISION = 192
"""Bits of both sides on a piece of the range."""
_MAX_PIECES = 20_000
"""Pieces of a range that are bounded before it is left undecided."""
_FINEST = 1 << 64
"""Of a range that is cut into so small pieces, one is where the two curves are not told apart."""
_POINTS, _STEP = 256, Fraction(1, 32)
"""Where a refutation is looked for on a range without an end."""


@dataclass(frozen=True)
class Bound:
    """A monotone function of one exact variable, with values in balls."""

    at: Callable[[ExactReal], arb]
    falling: bool = True
    over: Callable[[arb], arb] | None = None
    """The values over a whole ball: with it, nothing is taken from the function being monotone."""

    def largest(self, low: Fraction, high: Fraction) -> arb:
        """Return its largest value on [low, high], or a ball around all its values there."""
        if self.over is not None:
            return self.over(ball(low).union(ball(high)))
        return self.at(ExactReal.of_rational(low if self.falling else high))

    def smallest(self, low: Fraction, high: Fraction) -> arb:
        """Return its smallest value on [low, high], or a ball around all its values there."""
        if self.over is not None:
            return self.over(ball(low).union(ball(high)))
        return self.at(ExactReal.of_rational(high if self.falling else low))


@final
@dataclass(frozen=True)
class Swept:
    """What a sweep found."""

    truth: bool | None
    pieces: int
    point: ExactReal | None = None
    """Where the inequality certainly fails."""

    def reason(self, bound: str) -> str:
        """Say what was found."""
        if self.truth:
            return f"The value stays below {bound} on every piece of the range."
        if self.truth is False:
            return f"The value exceeds {bound} at {self.point}."
        return f"The sweep did not separate the value from {bound} within {self.pieces} pieces."


def prove_below(
    value: Bound,
    limit: Bound,
    *,
    start: Fraction = Fraction(0),
    end: Callable[[], arb] | Fraction,
    hints: Callable[[], Sequence[Fraction] | None] = lambda: None,
    at_hints: Callable[[ExactReal], arb] | None = None,
) -> Swept:
    """Decide value ≤ limit on [start, end]; beyond a finite ball `end`, value is 0.

    Each piece [a, b] is proved by value's largest against limit's smallest value on it, else
    halved; one point where value certainly exceeds limit refutes. `start` is at most
    `end`. Without a finite end only a refutation is looked for: at the `hints` where there are some
    (none of them: estimates speak for the claim), else (None) at points of a grid. At hints the
    value may be a rougher one.
    """
    with ctx.workprec(_PRECISION):
        stop = end if isinstance(end, Fraction) else _finite_end(end())
        if stop is None:
            points = hints()
            if points is not None:
                with ctx.workprec(START_PRECISION):
                    return _refute(at_hints or value.at, limit, points)
            return _refute(value.at, limit, [start + i * _STEP for i in range(_POINTS)])
        pieces = [(start, stop)]
        for count in range(1, _MAX_PIECES + 1):
            if not pieces:
                return Swept(True, count - 1)
            low, high = pieces.pop()
            if value.largest(low, high) <= limit.smallest(low, high):
                continue
            middle = (low + high) / 2
            point = ExactReal.of_rational(middle)
            if value.at(point) > limit.at(point):
                return Swept(False, count, point)
            if high - low <= (stop - start) / _FINEST:
                return Swept(None, count)
            pieces += [(middle, high), (low, middle)]
    return Swept(None, _MAX_PIECES)


def _refute(value: Callable[[ExactReal], arb], limit: Bound, points: Sequence[Fraction]) -> Swept:
    """Look for a point where value certainly exceeds limit: nothing else is known."""
    for count, point in enumerate(map(ExactReal.of_rational, points), 1):
        if value(point) > limit.at(point):
            return Swept(False, count, point)
    return Swept(None, len(points))


def _finite_end(ball: arb) -> Fraction | None:
    """Return a rational just above a finite ball, None for an infinite one."""
    if not ball.is_finite():
        return None
    return Fraction(Interval.of_ball(ball, 20).upper)

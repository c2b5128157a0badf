"""The least μ of an unbounded loss: a search over finitely many ε, and a bound for small levels.

A pair is μ-GDP if its trade-off function f is at least G_μ at every level α. At levels below
Φ̄(t) that is proved by what is known of the law (`Tail`), also with the two laws exchanged. At the
others G_μ is the largest of its supporting lines of slope −e^ε with |ε| ≤ μ(t − μ/2), and
δ ≤ δ_μ there proves that all these lie below f.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, final

from flint import arb

from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.interval import Interval, ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.questions.least_mu.curve import needed, tangent

Value = Callable[[Fraction], arb]
"""δ at an ε."""

_SAMPLES = 16
"""Points at which a first lower bound is looked for."""
_MAX_PIECES = 20_000
"""Pieces of a range that are bounded until a refusal."""
DEEPEST = 1 << 13
"""The last depth that is tried."""
_FURTHER = 8
"""Doublings after which small levels may be proved to need no more than their limit."""
_PRECISION = 128
"""Bits of profiles that are compared."""
_SURE = 40
"""Bits of the μ that a test is proved to need."""


@final
@dataclass(frozen=True, slots=True)
class Tail:
    """What is known of the tests at both ends, of levels of at most Φ̄(t)."""

    t: arb
    most: arb | None
    """A μ that some test is known to need, and none of these more than a share of it; or None."""


class Ends(Protocol):
    """What is known of small levels."""

    def tail(self, depth: int, best: arb, stretch: arb) -> Tail:
        """Return what is known at a depth ≥ 1, in which the levels fall.

        `best` is a μ that some test needs; one that is at least that is `most`, where no test here
        needs more than `stretch` times it.
        """

    def within(self, depth: int) -> bool:
        """Whether no test needs more there than all tests in the limit of small levels."""


def least(value: Value, floor: arb, most: arb, ends: Ends, width: Fraction) -> arb:
    """Enclose the least μ, to a relative width where that succeeds.

    Parameters
    ----------
    value
        δ(ε), the larger one of both directions.
    floor
        A number that the least μ is known to be at least, that of the limit of small levels. It is
        returned itself where it is proved to be enough.
    most
        A number that it is known to be at most: the upper end where δ is not found, small levels
        are not bounded by about the μ that some test needs, or the pieces become too many.
    ends
        What is known of small levels.
    """
    with ctx.workprec(_PRECISION):
        search = _Search(value, floor)
        with contextlib.suppress(UndecidedError):
            return search.run(floor, ends, 1 + ball(width) / 2)
        return search.best.union(most)


class _Search:
    """The largest μ that a test was seen to need, and proofs that no other one needs more."""

    def __init__(self, value: Value, floor: arb) -> None:
        self._known: dict[Fraction, arb] = {}
        self._of = value
        self.best = floor
        self._end = Fraction(0)

    def run(self, floor: arb, ends: Ends, stretch: arb) -> arb:
        """Return the least μ; raise UndecidedError where it is not found."""
        self._try(Fraction(0))
        depth, found = self._descend(ends, stretch)
        if found.most is floor and self.best is floor:
            for further in (depth << doublings for doublings in range(_FURTHER)):
                if ends.within(further):
                    if self.proved(floor, ends.tail(further, floor, stretch).t):
                        return floor
                    break
        if found.most is not None:
            self.best = self.best.max(found.most)
        while not self.proved(self.best * stretch, found.t):
            pass
        return self.best.union(self.best * stretch)

    def _descend(self, ends: Ends, stretch: arb) -> tuple[int, Tail]:
        """Return a depth at which small levels are bounded, and what is known there."""
        for depth in (1 << doublings for doublings in range(DEEPEST.bit_length())):
            found = ends.tail(depth, self.best, stretch)
            if found.t > 0:
                self.sample(found.t)
                if found.most is not None:
                    return depth, found
        raise UndecidedError("That tests of small levels need no more was not proved.")

    def _value(self, at: Fraction) -> arb:
        if at not in self._known:
            self._known[at] = self._of(at)
        return self._known[at]

    def sample(self, t: arb) -> None:
        """Try ε up to those that matter for levels of Φ̄(t) or more."""
        end = _stop(self.best, t)
        if end > self._end:
            for i in range(1, _SAMPLES + 1):
                self._try(self._end + (end - self._end) * i / _SAMPLES)
            self._end = end

    def _try(self, at: Fraction) -> bool:
        """Whether δ(ε) is proved to need a larger μ than all before; then that is the best one."""
        own = self._value(at)
        if self.best > 0 and not own > tangent(self.best.mid(), ball(at))[0]:
            return False
        more = ball(needed(own, at)) * (1 - arb(2) ** -_SURE)
        if not (more > self.best and tangent(more, ball(at))[0] < own):
            return False
        self.best = more
        return True

    def proved(self, goal: arb, t: arb) -> bool:
        """Prove δ ≤ δ_goal as far as levels of Φ̄(t) or more ask for it; False: a test needs more.

        Raises UndecidedError after too many pieces.
        """
        stop = _stop(goal, t)
        marks = [stop * i / _SAMPLES for i in range(_SAMPLES + 1)]
        pieces = list(itertools.pairwise(marks))
        for _ in range(_MAX_PIECES):
            if not pieces:
                return True
            left, right = pieces.pop()
            middle = (left + right) / 2
            point, slope = tangent(goal, ball(middle))
            if self._below(point, slope, left, middle, right):
                continue
            if not self._value(middle) <= point and self._try(middle):
                return False
            pieces += [(left, middle), (middle, right)]
        raise UndecidedError(f"A profile was not bounded within {_MAX_PIECES} pieces.")

    def _below(self, point: arb, slope: arb, left: Fraction, at: Fraction, right: Fraction) -> bool:
        """Whether δ ≤ δ_goal is proved on a piece: both are convex in z = e^ε.

        δ lies below its chord over the piece, δ_goal above its tangent at a point in it.
        """
        z = ball(at).exp()
        return all(
            self._value(end) <= point + slope * (ball(end).exp() - z) for end in (left, right)
        )


def _stop(mu: arb, t: arb) -> Fraction:
    """Return an ε that is at least μ(t − μ/2), at which N(μ, 1) has the level Φ̄(t), and > 0."""
    end = Fraction(Interval.of_ball((mu * (t - mu / 2)).max(mu / 64), 15).upper)
    return end.limit_denominator(1 << 20) + Fraction(1, 1 << 20)

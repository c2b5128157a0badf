"""The sparse vector technique with Gaussian noise, for a stream of m answers.

The threshold has noise of standard deviation s and each answer of r, in units of the sensitivity.
One answer tells no more than N(0, s² + r²) added to it, of which half-lines are the best events:
its profile is exactly that.

*Above*, for several answers, all noisy answers against the noisy threshold are known: for moves d
of the answers, and any move τ of the threshold, which changes nothing that is said where the
answers move too, the squared distance is

    min over τ of τ²/s² + Σ (d_i − τ)²/r² = Σ d_i²/r² − (Σ d_i/r²)²/(1/s² + m/r²).

It is a convex function of d, so largest at corners, where the answers move by ±1, or by 0 or 1
where all move in the same direction: what counts is how many of them rise.

*Below* are two events with answers at one place. All m are below the threshold, at a under P and
at a + 1 under Q. Or, of 2h answers in turn half a step above and below a place, the first that is
above the threshold is one of those that rise: given the threshold, f and g the chances that one
that rises and one that falls are below it, it is so with a chance of

    (1 − f)(1 + fg + … + (fg)^{h−1}).

As h grows, and the place falls so that some answer is above, this tends to 1 under P and 0 under Q,
for what is far out of a normal law tells where its mean is. So without an end of the stream,
δ(ε) = 1 for every ε, however much noise there is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import final

from flint import acb, arb

from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.finite import Balls, FiniteLaws, FinitePair

_PLACES = (-2, -1, 0, 1, 2, 3, 4)
"""Places below the threshold, in units of √(s² + r²): of events that are tried."""
_MOST_TURNS = 32
"""Pairs of answers in such an event: more are left out of it."""
_LEAST = arb(2) ** -40
"""Chance of an event or its complement: a smaller one tells less than one answer does."""
_FAR = 16
"""Standard deviations of the threshold that are integrated over."""
_BITS, _SPARE_BITS = 192, 8
"""Of an integral, whatever the precision; those of them that it is not asked for."""


def largest_square(threshold: Fraction, query: Fraction, steps: int, *, monotone: bool) -> Fraction:
    """Return the largest squared distance of all noisy answers against the noisy threshold."""
    whole, each = 1 / threshold**2 + steps / query**2, 1 / query**2

    def square(rise: int) -> Fraction:
        moved, total = (rise, rise) if monotone else (steps, 2 * rise - steps)
        return moved * each - (total * each) ** 2 / whole

    return max(map(square, range(steps + 1)))


@final
@dataclass(frozen=True)
class ShortStream(FiniteLaws):
    """Events of m ≥ 2 answers, each at some places: all are below, or one that rises is first."""

    threshold: Fraction
    query: Fraction
    steps: int
    monotone: bool

    @property
    def pairs(self) -> tuple[FinitePair, ...]:
        """All of them, and with neighbours in the other order."""
        each = [i for i in range(2 * len(_PLACES)) if self._is_seen(i)]
        return tuple(FinitePair(self, i, turned) for i in each for turned in (False, True))

    def _is_seen(self, index: int) -> bool:
        """Whether no chance is so small that its digits are few."""
        return all(p.mid() > _LEAST for law in self.masses(index) for p in law)

    def outcomes(self, index: int) -> Sequence[object]:
        """Name the event and its complement."""
        if index < len(_PLACES):
            return "all answers below", "one above"
        return "one that rises is the first above", "another one, or none"

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Return the chances of the event and of its complement."""
        with ctx.workprec(_BITS):
            p, q = self._chances(index)
            return [p, 1 - p], [q, 1 - q]

    @lru_cache(maxsize=512)  # noqa: B019  # streams are small
    def _chances(self, index: int) -> tuple[arb, arb]:
        """Return the chances of an event under P and under Q."""
        kind, which = divmod(index, len(_PLACES))
        near = (ball(self.threshold) ** 2 + ball(self.query) ** 2).sqrt()
        at = -(_PLACES[which] * near).mid()
        if kind == 0:
            both = [self._chance(lambda f, _: f**self.steps, x, x) for x in (at, at + 1)]
        else:
            half = arb("0.5")
            low, high = (at, at) if self.monotone else (at - half, at + half)
            moved, before = (at + half, low), (at - half, high)
            both = [self._chance(self._first, *each) for each in (moved, before)]
        return both[0], both[1]

    def _first(self, f: acb, g: acb) -> acb:
        found = acb(0)
        for _ in range(min(self.steps // 2, _MOST_TURNS)):
            found = 1 + f * g * found
        return (1 - f) * found

    def _chance(self, event: Callable[[acb, acb], acb], one: arb, other: arb) -> arb:
        """Return the mean of an event over the noisy threshold, answers at two places."""
        s, r, root = ball(self.threshold), ball(self.query), arb(2).sqrt()
        norm = (2 * arb.pi()).sqrt()

        def below(z: acb, at: arb) -> acb:
            return ((at - s * z) / (r * root)).erfc() / 2

        def integrand(z: acb, _: bool) -> acb:
            return (-z * z / 2).exp() / norm * event(below(z, one), below(z, other))

        tolerance = arb(2) ** (_SPARE_BITS - ctx.prec)
        found = acb.integral(
            integrand, acb(-_FAR), acb(_FAR), rel_tol=tolerance, abs_tol=tolerance
        ).real
        beyond = (arb(_FAR) / root).erfc()
        return (found + arb(0).union(beyond)).max(arb(0)).min(arb(1))

"""Products of losses with few values: sums over pairs of partial sums.

The sums S of many losses are too many for a list, but every S is a + b with a and b from two lists
of partial sums (`accountant.composition.half_lists`), so that

    H(ε) = P(L = ∞) + Σ_a p_a P(b > ε − a) − e^ε Σ_a q_a Q(b > ε − a)

costs one search per entry of the first list and running sums over the second. The lists are tilted
by e^{cL}, and entries that matter nowhere near ε are left out: a unit of tilted mass adds at most
M(c) e^{−cε} c^c/(1 + c)^{1+c} for c > 0; for −1 < c < 0, where 1 − H is summed, M(c) e^{−cε}.
The losses are rounded to 2^−bits. A sum that is taken to be on the wrong side of ε only loses
p |1 − e^{ε−L}|, since H(ε) is the largest P(S) − e^ε Q(S) over all sets S; so with η the largest
error of a sum it is at most (e^η − 1) M(c) e^{−c(ε ∓ η)} in total.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from accountant import ledger
from accountant.composition.half_lists import TooLongError
from accountant.composition.joint import FactorsPair
from accountant.composition.line import guess_epsilon
from accountant.composition.listed import listed
from accountant.composition.tilted_lists import TiltedLists, tilted_lists
from accountant.errors import UndecidedError
from accountant.interval import Interval, asked_width
from accountant.number import ExactReal
from accountant.pair import Pair
from accountant.precision import ctx

WIDTH = Fraction(1, 10**9)
"""What is aimed at where no width is asked for."""
_PRECISION = 192
_LEAST = 1e-12  # less is not aimed at: the sums are in sixteen digits
_BALL = 0.95  # what a ball may have of the width that it is asked for
_NEWTON = 40
_CORRECTIONS = 4
_NEAR = 1e-3


def applies(pairs: Sequence[Pair]) -> bool:
    """Whether all of these losses are listed."""
    with ctx.workprec(_PRECISION):
        return all(listed(pair, -80.0) is not None for pair in pairs)


@final
@dataclass(frozen=True)
class HalvedPair(FactorsPair):
    """A product of pairs that `applies` to."""

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return a ball around H(ε).

        Raises UndecidedError, with what was reached, if the width that is asked for needs more
        digits than there are, and UnsuitedError where the lists are too long.
        """
        ledger.note("lists")
        known = self.exact_max_loss()
        if known is not None and epsilon >= known:
            return arb(0)
        if epsilon.ball() >= self.max_finite_loss():
            return self.infinity_mass()
        asked = asked_width.get()
        wanted = max(float(asked or WIDTH), _LEAST)
        with ctx.workprec(_PRECISION):
            lists = tilted_lists(self.any_factors, float(epsilon), wanted)
            value = self._at(epsilon, lists)[0]
            width = float(2 * value.rad() / value.mid()) if value > 0 else math.inf
        if asked is None or width <= _BALL * float(asked):
            return value
        if not width < math.inf:
            raise TooLongError
        low, high = value.lower().str(16, radius=False), value.upper().str(16, radius=False)
        raise UndecidedError(
            f"Reached delta in [{low}, {high}], of relative width {width:.1e}, for "
            f"{float(asked):.1e}: the sums are in sixteen digits. Ask for a larger relative_width.",
            reached=width,
        )

    def _at(self, epsilon: ExactReal, lists: TiltedLists) -> tuple[arb, arb]:
        """Return a ball around H(ε), and one near e^ε Q(L > ε)."""
        finite, second = lists.at(epsilon)
        return (finite + self.infinity_mass()).max(arb(0)).min(arb(1)), second

    def inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Enclose ε(δ), by Newton's method for H as a convex function of e^ε.

        Raises UndecidedError as for `hockey_stick`.
        """
        ledger.note("lists")
        with ctx.workprec(_PRECISION):
            target = delta.ball()
            finite_part = float((target - self.infinity_mass()).log().mid())
            near = guess_epsilon(self.any_factors, min(finite_part, -1e-9))
            near, slope = self._newton(target, near)
            fine = float(relative_width) * max(abs(near), 1e-9)
            wanted = fine * slope / 8 / float(target)
            lists = tilted_lists(self.any_factors, near, max(wanted, _LEAST))
            gap = Fraction(fine / 3)
            for _ in range(_CORRECTIONS):
                low, high = Fraction(near) - gap, Fraction(near) + gap
                at_low = self._at(ExactReal.of_rational(low), lists)[0]
                at_high = self._at(ExactReal.of_rational(high), lists)[0]
                if at_low > target and at_high < target:
                    break
                move = float(((at_low + at_high) / 2 - target).mid()) / slope
                if not math.isfinite(near + move):
                    raise _not_enclosed(near, relative_width)
                near += move
            else:
                raise _not_enclosed(near, relative_width)
        return Interval.of_exact(low, 20).hull(Interval.of_exact(high, 20))

    def _newton(self, target: arb, near: float) -> tuple[float, float]:
        """Return ε near the root, and −dH/dε there; steps in ln H while it is far."""
        lists = tilted_lists(self.any_factors, near, _NEAR)
        low, high = -math.inf, math.inf
        for _ in range(_NEWTON):
            value, second = self._at(ExactReal.of_rational(Fraction(near)), lists)
            miss, slope = float((value - target).mid()), float(second.mid())
            low, high = (near, high) if miss > 0 else (low, near)
            step = miss / slope if slope > 0 else -abs(near)
            if slope > 0 and value > 0 and abs(miss) > 0.1 * float(target):
                step = float((value / target).log().mid()) * float(value.mid()) / slope
            if slope > 0 and abs(step) <= 1e-14 * max(abs(near), 1e-6):
                return near + step, slope
            if not low < near + step < high:
                if high - low <= 1e-14 * abs(near):
                    break
                step = (low + high) / 2 - near
            if abs(step) > 0.1 * abs(near):
                lists = tilted_lists(self.any_factors, near + step, _NEAR)
            near += step
        return near, max(slope, 1e-300)


def _not_enclosed(near: float, relative_width: Fraction) -> UndecidedError:
    return UndecidedError(
        f"epsilon near {near:.12g} was not enclosed to {float(relative_width):.1e}: "
        "the sums are in sixteen digits. Ask for a larger relative_width."
    )

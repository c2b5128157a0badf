"""Several values with Gumbel noise: tables of losses above all pairs of scores, and below some.

*Above.* Let H be the largest profile of all pairs (`gumbel_value`): convex in z = e^ε, with
H(ε) = 1 − e^ε + e^ε H(−ε). Let a pair have the masses P_n at the losses ns, n = 1, …, N,
P_n e^{−ns} at −ns, P_0 at 0 and m at ∞, and Q be P reversed. For ε ≥ 0 its profile is
m + Σ P_n (1 − e^{ε − ns})⁺: straight in z between the e^{ns}, and m from the last one on. Where it
is at least H at all of them, it is so everywhere: H is below its chords, and falls; and at ε < 0 by
the symmetry. So this pair dominates every release, whatever came before. Its masses are floats,
from slopes that are made to fall; balls find by how much they are too small at one of the e^{ns},
and all are made larger by that. P_0 is what is left.

*Below.* Neighbours have all pairs in which a share p of the first law rises (`gumbel_value`), and
so those of which only the cell of the loss is told: P(l < L ≤ l′), and the same of Q.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TypeAlias, final

from flint import arb

from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import ball
from accountant.numbers.precision import ctx
from accountant.numbers.solve import fraction
from accountant.pairs.finite import Balls, FiniteLaws, FinitePair
from accountant.pairs.gumbel_value import GumbelValuePair

_POINTS = 256
"""N: twice as many take twice the time, and move H less than the 1e-4 of `gumbel_value`."""
_FARTHEST, _LONGEST = 30, 600
"""Value −ln w up to which losses are listed: the mass beyond is about e^−30; and the largest loss,
beyond which floats end."""
_LEAST = 1e-9
"""Distance up to which no cells are made."""
_CELLS = 24
"""Cells of a pair below."""
_BITS = 128
"""Of the balls that find by how much the masses are too small."""

Table: TypeAlias = tuple[Fraction, tuple[Fraction, ...], Fraction]
"""s, P_1, …, P_N, and m."""


@lru_cache(maxsize=16)
def _table(pair: GumbelValuePair) -> Table:
    """Return the masses of a table above all pairs."""
    t = float(pair.distance.ball())
    reach = min(t + _FARTHEST * math.expm1(min(t, math.log(_LONGEST))), _LONGEST)
    step = Fraction(reach) / _POINTS
    with ctx.workprec(_BITS):
        wanted = [pair.at_most(ExactReal.of_rational(step * n)) for n in range(_POINTS + 1)]
        heights, width = [float(h) for h in wanted], math.expm1(step)
        places = [math.exp(step * n) for n in range(_POINTS + 1)]
        slopes = [
            (high - low) / (place * width)
            for (high, low), place in zip(pairwise(heights), places[:-1], strict=True)
        ]
        falling = [*list(accumulate(reversed(slopes), max))[::-1], 0.0]
        p = [
            ball(Fraction(max(z * (a - b), 0.0)))
            for z, (a, b) in zip(places[1:], pairwise(falling), strict=True)
        ]
        rest, nearer = (
            ball(Fraction(heights[-1])),
            [-(-ball(step * n)).expm1() for n in range(_POINTS + 1)],
        )
        short = wanted[-1] / rest
        for n in range(_POINTS):
            found = sum((x * y for x, y in zip(p[n:], nearer[1:], strict=False)), start=rest)
            short = short.max(wanted[n] / found)
        scale = math.nextafter(float(short.upper()), math.inf) if short.is_finite() else math.inf
        whole = rest + sum((x * (2 - y) for x, y in zip(p, nearer[1:], strict=True)), start=arb(0))
        if not whole * scale <= 1:  # whatever any mechanism shows
            return step, (Fraction(0),) * _POINTS, Fraction(1)
        return (
            step,
            tuple(fraction(x) * Fraction(scale) for x in p),
            fraction(rest) * Fraction(scale),
        )


@final
@dataclass(frozen=True)
class GumbelTables(FiniteLaws):
    """The table above (0), and those of shares (1, 2, …), each range of exponents in turn."""

    pair: GumbelValuePair

    @property
    def above(self) -> FinitePair:
        """The pair that dominates all."""
        return FinitePair(self, 0)

    @property
    def below(self) -> tuple[FinitePair, ...]:
        """Pairs of neighbours; none where floats do not tell how far scores move."""
        if not _LEAST < self.pair.distance.ball() < _LONGEST:
            return ()
        both = () if self.pair.monotone else (FinitePair(self, 2, flipped=True),)
        return (*(FinitePair(self, i) for i in range(1, len(self._places) + 1)), *both)

    @property
    def _places(self) -> tuple[tuple[int, Fraction], ...]:
        """Ranges of exponents, and shares: of monotone scores some have to move."""
        half, one = Fraction(1, 2), Fraction(1)
        if self.pair.monotone:
            return (0, half), (0, one), (1, half), (1, 1 - one)
        return (0, 1 - one), (0, half), (0, one)

    def outcomes(self, index: int) -> Sequence[str]:
        """Name losses."""
        if index:
            return [f"cell {n}" for n in range(_CELLS + 1)]
        places = [str(n) for n in range(_POINTS, -_POINTS - 1, -1)]
        return ["infinity", *places, "-infinity"]

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Return P and Q."""
        if index:
            with ctx.workprec(max(_BITS, ctx.prec)):
                return self._cells(*self._places[index - 1])
        step, high, rest = _table(self.pair)
        top = [ball(mass) for mass in high]
        low = [mass * (-ball(step * n)).exp() for n, mass in enumerate(top, 1)]
        middle = (1 - sum(top, start=ball(rest)) - sum(low, start=arb(0))).max(arb(0))
        p = [ball(rest), *top[::-1], middle, *low, arb(0)]
        return p, p[::-1]

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return the ns of the table above."""
        if index:
            return [None] * (_CELLS + 1)
        step = _table(self.pair)[0]
        places = (ExactReal.of_rational(step * n) for n in range(_POINTS, -_POINTS - 1, -1))
        return [None, *places, None]

    def is_mirrored(self, index: int) -> bool:
        """Whether Q is P reversed."""
        return index == 0

    def exact_infinity_masses(self, index: int) -> tuple[ExactReal, ExactReal] | None:
        """Return m."""
        if index:
            return ExactReal.of_rational(0), ExactReal.of_rational(0)
        rest = ExactReal.of_rational(_table(self.pair)[2])
        return rest, rest

    def _cells(self, which: int, p: Fraction) -> tuple[Balls, Balls]:
        """Return the masses of cells of the loss, which get longer from its end on."""
        low, high, s = self.pair.of_share(which, p)
        more, first, last = float(s - 1), *map(float, (low if p < 1 else high, high if p else low))
        length = (last - first) + _FARTHEST * abs(more)
        shares = [((n + 0.5) / _CELLS) ** 1.5 for n in range(_CELLS)]
        edges = [first + length * x if more > 0 else last - length * x for x in shares]
        sides: tuple[Balls, Balls] = ([], [])
        tails = [self.pair.tails_of_share(which, p, ball(Fraction(e))) for e in sorted(edges)]
        for side, above, below in (
            (sides[0], [t.p_above for t in tails], tails[0].p_below),
            (sides[1], [t.q_above for t in tails], tails[0].q_below),
        ):
            side += [below, *(a - b for a, b in pairwise(above)), above[-1]]
        return sides

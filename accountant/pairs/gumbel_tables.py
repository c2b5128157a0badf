"""Several values with Gumbel noise: tables of losses above all pairs of scores, and below some.

Above: `dpassay.accountant.pairs.loss_tables`, of the largest profile of all pairs (`gumbel_value`).
Below: neighbours have all pairs in which a share p of the first law rises (`gumbel_value`), and
so those of which only the cell of the loss is told: P(l < L ≤ l′), and the same of Q.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import final

from flint import arb

from dpassay.accountant.core.pair import Pair
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.finite import Balls, FinitePair
from dpassay.accountant.pairs.gumbel_value import GumbelValuePair
from dpassay.accountant.pairs.loss_tables import TablesAbove

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
"""Of the balls of these."""


@final
@dataclass(frozen=True)
class GumbelTables(TablesAbove):
    """The table above (0), and those of shares (1, 2, …), each range of exponents in turn."""

    pair: GumbelValuePair

    @property
    def places(self) -> Sequence[Fraction]:
        """Return multiples of a step."""
        t = float(self.pair.distance.ball())
        reach = min(t + _FARTHEST * math.expm1(min(t, math.log(_LONGEST))), _LONGEST)
        return [Fraction(reach) / _POINTS * n for n in range(_POINTS + 1)]

    def at_most(self) -> Sequence[arb]:
        """Return H there."""
        return [self.pair.at_most(ExactReal.of_rational(place)) for place in self.places]

    @property
    def below(self) -> tuple[Pair, ...]:
        """Pairs of neighbours; none where floats do not tell how far scores move."""
        if not _LEAST < self.pair.distance.ball() < _LONGEST:
            return ()
        both = () if self.pair.monotone else (FinitePair(self, 2, flipped=True),)
        return (*(FinitePair(self, i) for i in range(1, len(self._places) + 1)), *both)

    @property
    def _places(self) -> tuple[tuple[int, Fraction], ...]:
        """Ranges of exponents, and shares: of monotone scores some have to move."""
        none, half, all_ = Fraction(0), Fraction(1, 2), Fraction(1)
        if self.pair.monotone:
            return (0, half), (0, all_), (1, half), (1, none)
        return (0, none), (0, half), (0, all_)

    def outcomes(self, index: int) -> Sequence[str]:
        """Name losses."""
        return [f"cell {n}" for n in range(_CELLS + 1)] if index else super().outcomes(index)

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Return P and Q."""
        if not index:
            return super().masses(index)
        with ctx.workprec(max(_BITS, ctx.prec)):
            return self._cells(*self._places[index - 1])

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return those of the table above."""
        return [None] * (_CELLS + 1) if index else super().exact_losses(index)

    def is_mirrored(self, index: int) -> bool:
        """Whether Q is P reversed."""
        return index == 0

    def exact_infinity_masses(self, index: int) -> tuple[ExactReal, ExactReal] | None:
        """Return m, or 0 of cells."""
        if not index:
            return super().exact_infinity_masses(index)
        return ExactReal.of_rational(0), ExactReal.of_rational(0)

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

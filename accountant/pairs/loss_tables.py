"""Tables of losses above a pair, or above the largest of many profiles, and below one.

For pairs that are their own reverse, whose law takes seconds at every loss, in compositions.

*Above.* Let H be a profile, or the largest one of many pairs: convex in z = e^ε, with
H(ε) = 1 − e^ε + e^ε H(−ε). Let a pair have the masses P_n at the losses l_n, n = 1, …, N,
P_n e^{−l_n} at −l_n, P_0 at 0 and m at ∞, and Q be P reversed. For ε ≥ 0 its profile is
m + Σ P_n (1 − e^{ε − l_n})⁺: straight in z between the e^{l_n}, and m from the last one on. Where
it is at least H at all of them, and at 0, it is so everywhere: H is below its chords, and falls;
and at ε < 0 by the symmetry. So this pair dominates every release, whatever came before. Its masses
are rounded, from slopes that are made to fall; balls find by how much they are too small at one of
the e^{l_n}, and all are made larger by that. P_0 is what is left.

*Below.* What only tells in which cell the loss lies, of P(l < L ≤ l′) and the same of Q: it is made
of the release afterwards, and so are several of several.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TypeAlias, final

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import MirroredPair, Pair, WorstCase
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import fraction
from dpassay.accountant.pairs.finite import Balls, FiniteLaws, FinitePair

_BITS, _ASKED = 128, 48
"""Of the balls that find by how much masses are too small, and of H and tails of a pair."""
_BENT = 1.5
"""Power of n that places grow with: most of the mass is at small losses."""
_UNITS = 64
"""Places are rounded to the last one over N times so many."""
_FAR, _TOO_FAR, _TRIES = 30, 45, 12
"""Range of −ln of the mass beyond the last place, which is searched in so many steps."""
_GAUSSIAN = 8
"""Standard deviations of Gaussian noise of the same H(0): the first try."""

Table: TypeAlias = tuple[tuple[Fraction, ...], Fraction]
"""P_1, …, P_N, and m."""


class TablesAbove(Mechanism, FiniteLaws):
    """A table above (0), as what dominates other mechanisms, and perhaps some below."""

    @property
    @abstractmethod
    def places(self) -> Sequence[Fraction]:
        """Return 0, l_1, …, l_N."""

    @abstractmethod
    def at_most(self) -> Sequence[arb]:
        """Return bounds of H there."""

    @property
    @abstractmethod
    def below(self) -> tuple[Pair, ...]:
        """Pairs below the law of neighbours."""

    @property
    def above(self) -> FinitePair:
        """The pair that dominates all."""
        return FinitePair(self, 0)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the table above."""
        return WorstCase.symmetric(self.above, "It is a table of losses.")

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Raise NotApplicableError."""
        raise NotApplicableError("A table of losses has no noise to draw.")

    def outcomes(self, index: int) -> Sequence[str]:
        """Name losses, or cells."""
        last = (len(self.masses(index)[0]) - 1) // 2
        return [str(n) for n in range(last, -last - 1, -1)]

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Return P and Q."""
        high, rest = _table(self)
        p = [ball(mass) for mass in high]
        low = [mass * (-ball(l)).exp() for mass, l in zip(p, self.places[1:], strict=True)]  # noqa: E741
        middle = (1 - sum(p, start=ball(rest)) - sum(low, start=arb(0))).max(arb(0))
        first = [ball(rest), *p[::-1], middle, *low, arb(0)]
        return first, first[::-1]

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return the l_n."""
        found = [ExactReal.of_rational(place) for place in self.places]
        return [None, *found[:0:-1], found[0], *(-place for place in found[1:]), None]

    def is_mirrored(self, index: int) -> bool:
        """Whether Q is P reversed."""
        return True

    def exact_infinity_masses(self, index: int) -> tuple[ExactReal, ExactReal] | None:
        """Return m."""
        rest = ExactReal.of_rational(_table(self)[1])
        return rest, rest


@lru_cache(maxsize=16)
def _table(tables: TablesAbove) -> Table:
    """Return the masses of a table above all pairs."""
    with ctx.workprec(_BITS):
        wanted, places = tables.at_most(), [ball(place) for place in tables.places]
        heights, exps = [h.mid() for h in wanted], [place.exp().mid() for place in places]
        slopes = [
            ((high - low) / (b - a)).mid()
            for (high, low), (a, b) in zip(pairwise(heights), pairwise(exps), strict=True)
        ]
        falling = [*list(accumulate(reversed(slopes), max))[::-1], arb(0)]
        p = [
            (z * (a - b)).mid().max(arb(0))
            for z, (a, b) in zip(exps[1:], pairwise(falling), strict=True)
        ]
        rest, scale = heights[-1], arb(1)
        for n, least in enumerate(wanted):
            found = rest
            for mass, place in zip(p[n:], places[n + 1 :], strict=False):
                found -= mass * (places[n] - place).expm1()
            if not least.is_zero():
                scale = scale.max(least / found)
        scale = scale.upper()
        whole = sum((x * (1 + (-z).exp()) for x, z in zip(p, places[1:], strict=True)), start=rest)
        if not whole * scale < 1:  # whatever any mechanism shows
            return (Fraction(0),) * len(p), Fraction(1)
        return (
            tuple(fraction((x * scale).upper()) for x in p),
            fraction((rest * scale).upper()),
        )


@final
@dataclass(frozen=True)
class LossTables(TablesAbove):
    """The table above a pair (0), and its cells (1): between `points` losses, and their mirrors."""

    pair: MirroredPair
    points: int

    @property
    def places(self) -> Sequence[Fraction]:
        """Return them to where little mass is beyond, and then the largest loss."""
        return spread(self.pair, self.points)

    def at_most(self) -> Sequence[arb]:
        """Return H of the pair."""
        return profile_at(self.pair, self.places)

    def own_law(self, index: int) -> dict[str, object]:
        """Return {"law": "loss-table", "pair", "points", "above"}: masses have few digits."""
        pair = json.dumps(self.pair.law())
        return {"law": "loss-table", "pair": pair, "points": self.points, "above": not index}

    @property
    def below(self) -> tuple[Pair, ...]:
        """The cells."""
        return (FinitePair(self, 1),)

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Return P and Q."""
        if not index:
            return super().masses(index)
        first = list(_cells(self))
        return first, first[::-1]

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return 0 in the middle of the cells."""
        if not index:
            return super().exact_losses(index)
        side = [None] * (len(_cells(self)) // 2)
        return [*side, ExactReal.of_rational(0), *side]

    def exact_infinity_masses(self, index: int) -> tuple[ExactReal, ExactReal] | None:
        """Return m, or that of the pair."""
        if not index:
            return super().exact_infinity_masses(index)
        known = self.pair.exact_infinity_mass()
        return None if known is None else (known, known)


@lru_cache(maxsize=16)
def _cells(tables: LossTables) -> tuple[arb, ...]:
    """Return P of the cells, from the largest losses on: of infinite loss, and above each place.

    Cells whose masses are not told from 0 are added to the one below.
    """
    pair = tables.pair
    with ctx.workprec(_ASKED):
        inside = [l for l in tables.places if not pair.max_loss() <= ball(l)]  # noqa: E741
        found = [pair.tails(ExactReal.of_rational(l)) for l in inside]  # noqa: E741
        infinite = pair.infinity_mass()
        above = [(t.p_above, t.q_above) for t in found]
        cells = [(a - c, b - d) for (a, b), (c, d) in pairwise([*above, (infinite, arb(0))])]
        while len(cells) > 1 and not (cells[-1][0] > 0 and cells[-1][1] > 0):
            last = cells.pop()
            cells[-1] = cells[-1][0] + last[0], cells[-1][1] + last[1]
        middle = (1 - above[0][0] - above[0][1]).max(arb(0))
        p, q = ([cell[i].max(arb(0)) for cell in cells] for i in range(2))
        return (infinite, *p[::-1], middle, *q, arb(0))


def profile_at(pair: Pair, places: Sequence[Fraction]) -> Sequence[arb]:
    """Return bounds of H at places, 0 at the largest loss."""
    with ctx.workprec(_ASKED):
        found = [pair.at_most(ExactReal.of_rational(l)) for l in places]  # noqa: E741
        return [*found[:-1], arb(0)] if pair.max_loss() <= ball(places[-1]) else found


@lru_cache(maxsize=64)
def spread(pair: Pair, points: int) -> tuple[Fraction, ...]:
    """Return places from 0 to where little mass is beyond, and then the largest loss."""
    last = _last(pair)
    units = points * _UNITS
    shares = [round(units * (n / points) ** _BENT) for n in range(points + 1)]
    found = [last * Fraction(share, units) for share in shares]
    largest = pair.max_loss()
    if largest.is_finite():
        known = pair.exact_max_loss()
        exactly = None if known is None else known.rational
        found.append(fraction(largest.upper()) if exactly is None else exactly)
    return tuple(sorted(set(found)))


def _last(pair: Pair) -> Fraction:
    """Return a loss beyond which about e^{−30} is left of what is finite."""
    with ctx.workprec(_ASKED):
        infinite, most, largest = pair.infinity_mass(), arb(2) ** -20, pair.max_loss()
        first = pair.hockey_stick(ExactReal.of_rational(0))
        mu = 3 * first - (1 - first).log()
        x = (_GAUSSIAN * mu + mu * mu / 2).mid() if mu.is_finite() else arb(1)
        if largest.is_finite():
            x = x.min(largest / 2).mid()
        low, high = arb(0), largest.upper() if largest.is_finite() else arb.pos_inf()
        for _ in range(_TRIES):
            place = fraction(x)
            left = pair.hockey_stick(ExactReal.of_rational(place)) - infinite * (1 + most)
            size = -left.upper().log() if left.upper() > 0 else arb.pos_inf()
            if _FAR <= size <= _TOO_FAR:
                break
            low, high = (low, x) if size > _FAR else (x, high)
            x = x * (_FAR * arb("1.1") / size).sqrt() if size > 1 else 4 * x
            if not low < x < high:
                x = ((low + high) / 2) if high.is_finite() else 2 * low
            x = x.mid()
        return place

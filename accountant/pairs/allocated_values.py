"""Random allocation of steps whose losses have few values: the number of steps with each value.

A step has the outcome v with probability p_v with the record, q_v > 0 without it, r_v = p_v/q_v.
The numbers n_v of steps with each outcome tell all that the steps do. Under Q they are multinomial;
with k of t steps chosen uniformly P has against Q the density

    W = [y^k] Π_v (1 + r_v y)^{n_v} / C(t, k),

the mean of the products of the ratios of k steps.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

from flint import arb, arb_series

from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.finite import Balls, FiniteLaws, FinitePair

MOST_OUTCOMES = 1 << 12
"""Most numbers of steps that are listed: their profile takes a few ms."""
_MOST_TERMS = 1 << 20
"""Most coefficients of all power series: about a second."""


def allocated_values(pair: FinitePair, steps: int, participations: int) -> FinitePair | None:
    """Return the pair of an allocation; None where it is long, or a loss is infinite."""
    values = len(pair.source.outcomes(pair.index))
    if math.comb(steps + values - 1, values - 1) > MOST_OUTCOMES:
        return None
    if values * (steps + 1) * (participations + 1) > _MOST_TERMS:
        return None
    if any(mass.is_zero() for mass in pair.source.masses(pair.index)[not pair.flipped]):
        return None
    return FinitePair(AllocatedValues(pair, steps, participations), 0)


@final
@dataclass(frozen=True)
class AllocatedValues(FiniteLaws):
    """The numbers of steps with each outcome of a pair, with no q = 0."""

    pair: FinitePair
    steps: int
    participations: int

    def outcomes(self, index: int) -> Sequence[object]:
        """Return the number of steps with the first of two outcomes, or those with each."""
        found = list(self._numbers())
        return [first for first, _ in found] if len(found[0]) == 2 else [*map(str, found)]

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Return the probabilities of the numbers."""
        p, q = self.pair.source.masses(self.pair.index)[:: -1 if self.pair.flipped else 1]
        t, k = self.steps, self.participations
        with ctx.workcap(k + 1):
            factors = [
                [arb_series([1, a / b], prec=k + 1) ** arb_series([n], prec=k + 1)
                 for n in range(t + 1)]
                for a, b in zip(p, q, strict=True)
            ]  # fmt: skip
            ratios, without = [], []
            for numbers in self._numbers():
                series = [row[n] for row, n in zip(factors, numbers, strict=True)]
                ratios.append(functools.reduce(lambda x, y: x * y, series)[k] / math.comb(t, k))
                mass = arb(_ways(numbers))
                for b, n in zip(q, numbers, strict=True):
                    mass *= b**n
                without.append(mass)
        return [w * mass for w, mass in zip(ratios, without, strict=True)], without

    def _numbers(self) -> Iterator[tuple[int, ...]]:
        """Return all numbers of steps with each outcome, by bars between them."""
        bars = len(self.pair.source.outcomes(self.pair.index)) - 1
        end = self.steps + bars
        for places in itertools.combinations(range(end), bars):
            ends = (-1, *places, end)
            yield tuple(second - first - 1 for first, second in itertools.pairwise(ends))


def _ways(numbers: Sequence[int]) -> int:
    """Return the multinomial coefficient."""
    left, found = sum(numbers), 1
    for number in numbers:
        found *= math.comb(left, number)
        left -= number
    return found

"""Counting with unary chains from both ends of every block: words in an ℓ1 ball.

A word is a vector of s integers with Σ|d_i| ≤ T; there are D(s, T) of them (a Delannoy number),
and (D(s, T) − 1)/2 have a positive first digit other than 0. In lexicographic order these are the
time steps 1, 2, …; 0 is the zero word. The parent of a word has its last digit other than 0
one nearer to 0, and the inputs between the two are measured: to the left of a word that grew, to
the right of one that fell. So

    prefix(w) = prefix(parent) ± measured sum,

and a prefix is a ±1 combination of Σ|d_i| measured sums. The words that share their digits up to
d_i and vary below it are consecutive, so the intervals of level i (from a word to the one with
d_i one further out, zeros behind) lie in a row, side by side, in the block of the digits before
it: an input lies in at most one of them per level, in at most s in all. Noise Lap(s/ε) on each
sum makes the release ε-DP, with 2s²/ε² times the average of Σ|d_i| as mean squared error.

For n between two such capacities the words of norm up to T − 1 are all used, and as many of norm
T, the first ones, as are needed; no choice of n words is cheaper. For large n the best T is
3.53 s, with (8/(27 p ln² coth(p/2))) ln³n, p = asinh(s/T): 0.0906 lg³n/ε².
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

from dpassay.accountant.errors import expected
from dpassay.accountant.numbers.halving import first

Word: TypeAlias = tuple[int, ...]


def delannoy(levels: int, reach: int) -> int:
    """Return D(s, T) = Σ_k C(s, k) C(T, k) 2ᵏ, the number of words."""
    return sum(
        math.comb(levels, k) * math.comb(reach, k) << k for k in range(min(levels, reach) + 1)
    )


def prefixes(levels: int, reach: int) -> int:
    """Return (D(s, T) − 1)/2, how many time steps the words with Σ|d_i| ≤ T serve."""
    return (delannoy(levels, reach) - 1) // 2


@final
@dataclass(frozen=True, slots=True)
class Chains:
    """The words of the time steps 1..n.

    Parameters
    ----------
    levels
        s ≥ 1.
    steps
        n ≥ s: with fewer steps than levels some would carry no interval.
    """

    levels: int
    steps: int

    def __post_init__(self) -> None:
        if self.levels < 1:
            raise expected("levels", self.levels, "≥ 1")
        if self.levels > self.steps:
            raise expected(
                "levels", self.levels, f"at most steps={self.steps}", "Fewer levels add less noise."
            )

    @property
    def reach(self) -> int:
        """T, the least reach with room for n steps: the most measured sums in an output."""
        return first(lambda n: n > 0 and prefixes(self.levels, n) >= self.steps)

    @property
    def outermost(self) -> int:
        """How many words of norm T are used: the first ones."""
        return self.steps - prefixes(self.levels, self.reach - 1)

    def units(self) -> int:
        """Return Σ_t Σ|d_i(t)| = T n − Σ_{j < T} (words of norm up to j), in closed form.

        Σ_{j < T} D(s, j) = Σ_k C(s, k) C(T, k + 1) 2ᵏ.
        """
        s, reach = self.levels, self.reach
        inner = sum(
            math.comb(s, k) * math.comb(reach, k + 1) << k for k in range(min(s, reach - 1) + 1)
        )
        return reach * self.steps - (inner - reach) // 2

    def mean_squared_error(self) -> Fraction:
        """Return the mean squared error with Laplace noise, times ε²."""
        return Fraction(2 * self.levels**2 * self.units(), self.steps)

    def words(self) -> Iterator[Word]:
        """Yield the words of 1..n in order."""
        reach, spare = self.reach, self.outermost
        for word in _words(self.levels, reach, positive=True):
            if sum(map(abs, word)) == reach:
                spare -= 1
                if spare < 0:
                    continue
            yield word


def parent(word: Word) -> Word:
    """Return the word whose last digit other than 0 is one nearer to 0."""
    place = max(index for index, digit in enumerate(word) if digit)
    nearer = word[place] - (1 if word[place] > 0 else -1)
    return (*word[:place], nearer, *word[place + 1 :])


def best_levels(steps: int) -> Chains:
    """Return the chains of least mean squared error (the fewest levels of several).

    As 2s² times the average norm, at least 1, grows with s, no more levels than the square root
    of the best so far, over 2, need a look.
    """
    best = Chains(1, steps)
    levels = 2
    while levels <= steps and 2 * levels**2 < best.mean_squared_error():
        best = min(best, Chains(levels, steps), key=Chains.mean_squared_error)
        levels += 1
    return best


def _words(levels: int, reach: int, *, positive: bool) -> Iterator[Word]:
    """Yield the words in lexicographic order, or those whose first digit other than 0 is > 0."""
    if levels == 0:
        if not positive:
            yield ()
        return
    for digit in range(0 if positive else -reach, reach + 1):
        for rest in _words(levels - 1, reach - abs(digit), positive=positive and digit == 0):
            yield (digit, *rest)

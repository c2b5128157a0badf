"""Real random numbers known to as many binary digits as a question about them needs.

A standard normal or exponential variate is never rounded: it is drawn as whole + fraction, where
the fraction is a uniform number of which the first digits are drawn at once (whole arrays of
them) and further ones only when a comparison or a rounding asks for them. Acceptance needs
comparisons of uniform numbers and integer arithmetic alone, as in Karney, "Sampling exactly from
the normal distribution" (2016), so the law is exact: no probability and no digit is ever rounded.
The generator is taken to give independent uniform bits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import final

from flint import arb

from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.theta import theta
from dpassay.accountant.release import sampling

WORD = 52
"""Digits drawn at once: whole + fraction is then a double up to one rounding."""
_TABLE = {"normal": 9, "exponential": 40}
_BLOCK = 1 << 16
"""Numbers at a time: they fill 512 kB."""


@final
@dataclass
class LazyReals:
    """Numbers sign·(whole + fraction), the fraction known to `bits` digits or more.

    Parameters
    ----------
    sign
        ±1, one per number.
    whole
        Integers ≥ 0.
    word
        ⌊fraction·2^bits⌋.
    bits
        Digits drawn at once.
    further
        The groups of `bits` further digits that were drawn for a number, by its index.
    sums
        The `exact_sums` of the digits that are drawn, by the first index and the count.
    """

    sign: Array
    whole: Array
    word: Array
    bits: int
    further: dict[int, list[int]] = field(default_factory=dict)
    sums: dict[tuple[int, int], tuple[int, int, int]] = field(default_factory=dict)

    def __len__(self) -> int:
        """How many numbers there are."""
        return len(self.word)

    def floats(self) -> Array:
        """Return doubles within 2^{1−min(bits, 52)}·max(1, |x|) of the numbers x."""
        fraction = (self.word + 0.5) * 2.0**-self.bits
        result: Array = self.sign * (self.whole + fraction)
        return result

    def digits(self, index: int) -> tuple[int, int]:
        """Return (X, places) with |x| in [X, X + 1]·2^−places: what is known of one number."""
        digits = int(self.whole[index]) << self.bits | int(self.word[index])
        places = self.bits
        for group in self.further.get(index, ()):
            digits, places = digits << self.bits | group, places + self.bits
        return digits, places

    def ball(self, index: int) -> arb:
        """Return a ball that contains the number, of the width of its last known digit."""
        digits, places = self.digits(index)
        unit = arb(2) ** (-places - 1)
        return int(self.sign[index]) * (arb(2 * digits + 1) * unit + arb(0, unit))

    def refine(self, *indices: int, rng: Randomness) -> None:
        """Draw further digits of some numbers."""
        self.sums.clear()
        fresh = rng.integers(0, 1 << self.bits, len(indices)).tolist()
        for index, group in zip(indices, fresh, strict=True):
            self.further.setdefault(index, []).append(group)

    def below(self, index: int, *, rng: Randomness) -> bool:
        """Whether a fresh uniform number whose digits agree so far is below the fraction."""
        known = self.further.setdefault(index, [])
        place = 0
        while True:
            if place == len(known):
                known.append(self._group(rng))
            fresh = self._group(rng)
            if fresh != known[place]:
                return fresh < known[place]
            place += 1

    def exact_sums(self, part: slice) -> tuple[int, int, int]:
        """Return ΣX², ΣX and p for a part of the numbers, |x| in [X, X + 1]·2^−p.

        All are cut to the digits that each of them has.
        """
        groups = zip(*(self.further.get(i, ()) for i in range(part.start, part.stop)), strict=False)
        known, places = self.whole[part].astype(object), 0
        for digits in (self.word[part], *groups):
            known = known << self.bits | np.array(digits, dtype=object)
            places += self.bits
        return int(known @ known), int(known.sum()), places

    def numbers(self, start: int) -> Numbers:
        """Return the numbers from `start` on, as balls."""
        return Numbers(self, start)

    def _group(self, rng: Randomness) -> int:
        return int(rng.integers(0, 1 << self.bits))

    def keep(self, kept: Array) -> LazyReals:
        """Return the numbers where `kept` is true."""
        places = np.cumsum(kept) - 1
        further = {int(places[i]): groups for i, groups in self.further.items() if kept[i]}
        return LazyReals(self.sign[kept], self.whole[kept], self.word[kept], self.bits, further)


@final
@dataclass(frozen=True)
class Numbers:
    """Consecutive lazy real numbers, counted from the first one, as balls."""

    reals: LazyReals
    start: int

    def __call__(self, index: int) -> arb:
        """Return a ball around one of them."""
        return self.reals.ball(self.start + index)

    def squares(self, count: int) -> arb:
        """Return a ball around the sum of the squares of the first `count` numbers.

        Cut to the digits that all of them have, numbers with |x| in [X, X + 1]·2^−p have Σx² in
        [ΣX², ΣX² + 2ΣX + count]·4^−p. The sums are kept until a number is refined.
        """
        reals, place = self.reals, (self.start, count)
        if place not in reals.sums:
            reals.sums[place] = reals.exact_sums(slice(self.start, self.start + count))
        square, total, places = reals.sums[place]
        unit, radius = arb(2) ** (-2 * places - 1), 2 * total + count
        return arb(2 * square + radius) * unit + arb(0, arb(radius) * unit)


def normal(size: int, *, rng: Randomness, bits: int = WORD) -> LazyReals:
    """Draw standard normal numbers.

    The whole part n has probabilities ∝ e^{−n²/2}, and a fraction x is kept with probability
    e^{−nx−x²/2}; the sign is fair.
    """

    def propose(count: int) -> LazyReals:
        whole = _whole(count, rng, "normal")
        drawn = _signed(whole, bits, rng)
        kept = _trial(drawn, np.arange(count), rng, squared=True)
        remaining = np.where(kept, whole, 0)
        active = np.flatnonzero(remaining)
        while len(active):
            passed = _trial(drawn, active, rng, squared=False)
            kept[active[~passed]] = False
            active = active[passed]
            remaining[active] -= 1
            active = active[remaining[active] > 0]
        return drawn.keep(kept)

    return _collect(propose, size, bits, expected_share=0.7)


def laplace(size: int, *, rng: Randomness, bits: int = WORD) -> LazyReals:
    """Draw from the density e^{−|x|}/2.

    The whole part n has probabilities ∝ e^{−n}, and a fraction x is kept with probability
    e^{−x}; the sign is fair.
    """

    def propose(count: int) -> LazyReals:
        drawn = _signed(_whole(count, rng, "exponential"), bits, rng)
        return drawn.keep(_trial(drawn, np.arange(count), rng, squared=False))

    return _collect(propose, size, bits, expected_share=0.63)


def _signed(whole: Array, bits: int, rng: Randomness) -> LazyReals:
    """Attach a fair sign and a uniform fraction, from one word."""
    word = rng.integers(0, 2 << bits, len(whole))
    return LazyReals(1 - 2 * (word & 1), whole, word >> 1, bits)


def _trial(reals: LazyReals, lanes: Array, rng: Randomness, *, squared: bool) -> Array:
    """Return True with probability e^{−x}, or e^{−x²/2}, for the fractions x of some lanes.

    The first failure among trials of probability t/1, t/2, … has an odd number with probability
    e^{−t} (t in [0, 1]). A trial of probability x/m compares one uniform number in [0, m) with x.
    """
    success = np.zeros(len(lanes), dtype=bool)
    active = np.arange(len(lanes))
    number = 1
    while len(active):
        passed = _less(reals, lanes[active], 2 * number if squared else number, rng)
        if squared:
            second = np.flatnonzero(passed)
            passed[second] = _less(reals, lanes[active[second]], 1, rng)
        success[active[~passed]] = number % 2 == 1
        active = active[passed]
        number += 1
    return success


def _less(reals: LazyReals, lanes: Array, multiple: int, rng: Randomness) -> Array:
    """Return True with probability x/multiple for the fractions x of some lanes."""
    fresh = sampling.below(multiple << reals.bits, len(lanes), rng)
    words = reals.word[lanes]
    result: Array = (fresh < words).astype(bool)
    for place in np.flatnonzero(fresh == words):
        result[place] = reals.below(int(lanes[place]), rng=rng)
    return result


def _whole(size: int, rng: Randomness, law: str) -> Array:
    """Draw n ≥ 0 with probabilities ∝ e^{−n²/2} ("normal") or e^{−n} ("exponential").

    Inversion of a table, whose last entry stands for all n from there on: these are
    N + j with probabilities ∝ e^{−Nj−j²/2}, or e^{−j}.
    """
    last = _TABLE[law]
    whole = sampling.indices_by_inversion(functools.partial(_cumulative, law), size, rng=rng)
    for place in np.flatnonzero(whole == last):
        whole[place] = last + tail(law, last, rng=rng)
    return whole


def tail(law: str, start: int, *, rng: Randomness) -> int:
    """Draw n − start given n ≥ start for the laws of the whole part."""

    def success(numerator: int, denominator: int) -> bool:
        """Return True with probability e^{−numerator/denominator}."""
        return bool(sampling.exponential_trial(np.array([numerator]), denominator, rng)[0])

    while True:
        beyond = 0
        while success(1 if law == "exponential" else start, 1):
            beyond += 1
        if law == "exponential" or success(beyond * beyond, 2):
            return beyond


def _cumulative(law: str) -> list[arb]:
    """Return P(n ≤ i) for i below the last entry of the table."""
    last = _TABLE[law]
    if law == "exponential":
        return [-arb(-i - 1).expm1() for i in range(last)]
    total = (theta(ExactReal.of_rational(1)) + 1) / 2  # both halves of a theta sum, n = 0 once
    return [s / total for s in accumulate(arb(-n * n).exp().sqrt() for n in range(last))]


def _collect(
    propose: Callable[[int], LazyReals], size: int, bits: int, *, expected_share: float
) -> LazyReals:
    """Return the first `size` accepted proposals, in the order in which they were made."""
    parts: list[LazyReals] = []
    missing = size
    while missing > 0:
        count = min(int(1.05 * missing / expected_share) + 16, _BLOCK)
        accepted = propose(count)
        if len(accepted) > missing:
            accepted = accepted.keep(np.arange(len(accepted)) < missing)
        parts.append(accepted)
        missing -= len(accepted)
    return join(parts, bits)


def join(parts: list[LazyReals], bits: int = WORD) -> LazyReals:
    """Return the numbers of all parts, in order."""
    further, offset = {}, 0
    for part in parts:
        further.update({offset + i: groups for i, groups in part.further.items()})
        offset += len(part)
    empty = np.empty(0, dtype=np.int64)
    return LazyReals(
        np.concatenate([empty, *(part.sign for part in parts)]),
        np.concatenate([empty, *(part.whole for part in parts)]),
        np.concatenate([empty, *(part.word for part in parts)]),
        bits,
        further,
    )

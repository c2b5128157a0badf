"""Exact samplers of laws on the integers: no probability is rounded.

Laws with rational parameters are sampled with integer arithmetic alone, by the rejection methods of
Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020). These run on
whole arrays, in int64 if all products fit and otherwise in Python integers. A law with real
probabilities is sampled by inversion of a uniform number. Its binary digits are drawn until its
comparison with enclosures of the cumulative probabilities is decided.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from typing import Any, final

from flint import arb

from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import first
from dpassay.accountant.numbers.theta import theta

_WORD = 64
"""Bits of a random word."""
_LIMIT = 1 << 63
"""2^63: smaller integers are stored by NumPy, others as Python integers."""


def discrete_laplace(scale: Fraction, size: int, *, rng: Randomness) -> Array:
    """Draw from p(z) ∝ e^{−|z|/scale} on the integers (Algorithm 2 of the paper).

    With scale = t/s, |z| = ⌊X/s⌋ for X = U + tV. U is uniform on 0..t − 1 and accepted with
    probability e^{−U/t}; V counts successes of probability e^{−1}. A negative zero is rejected.
    """
    t, s = scale.numerator, scale.denominator

    def propose(count: int) -> Array:
        remainder = below(t, count, rng)
        remainder = remainder[exponential_trial(remainder, t, rng)]
        wholes = _successes(len(remainder), rng)
        if t * (int(wholes.max(initial=0)) + 1) >= _LIMIT:
            remainder = remainder.astype(object)
        magnitude = (remainder + t * wholes.astype(remainder.dtype)) // _fitting(s, remainder)
        negative = below(2, len(magnitude), rng) == 1
        value: Array = np.where(negative, -magnitude, magnitude)
        kept: Array = value[~(negative & (magnitude == 0))]
        return kept

    return _collect(propose, size)


def discrete_gaussian(parameter: Fraction, size: int, *, rng: Randomness) -> Array:
    """Draw from p(z) ∝ e^{−z²/(2·parameter)} on the integers (Algorithm 3 of the paper).

    A discrete Laplace proposal of scale t = ⌊σ⌋ + 1 is accepted with probability
    e^{−(|z| − σ²/t)²/(2σ²)}, where σ² is the parameter.
    """
    a, b = parameter.numerator, parameter.denominator
    t = math.isqrt(a // b) + 1
    denominator = 2 * a * b * t * t

    def propose(count: int) -> Array:
        value = discrete_laplace(Fraction(t), count, rng=rng)
        magnitude = np.abs(value)
        if (int(magnitude.max(initial=1)) * b * t + a) ** 2 >= _LIMIT:
            magnitude = magnitude.astype(object)
        numerator = (magnitude * (b * t) - a) ** 2
        return value[exponential_trial(numerator, denominator, rng)]

    return _collect(propose, size)


def indices_by_inversion(
    cumulative: Callable[[], Sequence[arb]], size: int, *, rng: Randomness
) -> Array:
    """Draw indices 0..n − 1 with P(index ≤ i) = cumulative()[i] for i < n − 1.

    Parameters
    ----------
    cumulative
        Returns n − 1 non-decreasing balls, at flint's current precision.
    size, rng
        The number of draws, and the source of randomness.
    """
    bits = _WORD
    lower, upper = _thresholds(cumulative, bits)
    word = rng.integers(0, 1 << _WORD, size, dtype=np.uint64)
    result = _count(upper, word)
    for undecided in np.flatnonzero(result != _count(lower, word)):
        result[undecided] = _refine(cumulative, int(word[undecided]), bits, rng)
    return result


def integers_by_inversion(cumulative: Callable[[int], arb], size: int, *, rng: Randomness) -> Array:
    """Draw integers with P(Z ≤ z) = cumulative(z), one at a time (for irrational parameters).

    `cumulative` returns a ball at flint's current precision, strictly between 0 and 1.
    """

    @functools.cache
    def bounds(z: int, bits: int) -> tuple[int, int]:
        with ctx.workprec(bits + _WORD):
            value = cumulative(z)
            return _scaled_floor(value, bits), _scaled_ceiling(value, bits)

    def draw() -> int:
        value, bits = int(rng.integers(0, 1 << _WORD, dtype=np.uint64)), _WORD

        def exceeds(z: int) -> bool:
            """Whether the uniform number is below P(Z ≤ z); draws further digits if necessary."""
            nonlocal value, bits
            while True:
                lower, upper = bounds(z, bits)
                if value >= upper:
                    return False
                if value < lower:
                    return True
                value = value << _WORD | int(rng.integers(0, 1 << _WORD, dtype=np.uint64))
                bits += _WORD

        return first(exceeds)

    return _narrow(np.array([draw() for _ in range(size)], dtype=object))


def _collect(propose: Callable[[int], Array], size: int) -> Array:
    """Return the first `size` accepted proposals, in the order in which they were made."""
    parts: list[Array] = [np.empty(0, dtype=np.int64)]
    missing = size
    while missing > 0:
        accepted = propose(2 * missing + 16)[:missing]
        parts.append(accepted)
        missing -= len(accepted)
    return _narrow(np.concatenate(parts))


def below(bound: int, size: int, rng: Randomness) -> Array:
    """Draw uniform integers in 0..bound − 1."""
    if bound < _LIMIT:
        return rng.integers(0, bound, size)
    bits = (bound - 1).bit_length()
    words = -(-bits // _WORD)

    def propose(count: int) -> Array:
        value: Array = np.zeros(count, dtype=object)
        for _ in range(words):
            fresh = rng.integers(0, 1 << _WORD, count, dtype=np.uint64)
            value = value * (1 << _WORD) + fresh.astype(object)
        value //= 1 << (words * _WORD - bits)
        kept: Array = value[(value < bound).astype(bool)]
        return kept

    parts: list[Array] = [np.empty(0, dtype=object)]
    missing = size
    while missing > 0:
        parts.append(propose(2 * missing)[:missing])
        missing -= len(parts[-1])
    return np.concatenate(parts)


def exponential_trial(numerator: Array, denominator: int, rng: Randomness) -> Array:
    """Return True with probability e^{−numerator/denominator}, for each entry.

    The integer part of the exponent is a number of trials of probability e^{−1}. For x in [0, 1],
    the first failure among trials of probability x/1, x/2, … has an odd index with probability
    e^{−x} (Algorithm 1 of the paper).
    """
    divisor = _fitting(denominator, numerator)
    wholes = numerator // divisor
    success = _short_trial(numerator - wholes * divisor, denominator, rng)
    wholes = wholes.copy()
    active = np.flatnonzero(success & (wholes > 0).astype(bool))
    while len(active):
        passed = _short_trial(np.ones(len(active), dtype=np.int64), 1, rng)
        success[active[~passed]] = False
        active = active[passed]
        wholes[active] -= 1
        active = active[(wholes[active] > 0).astype(bool)]
    return success


def _short_trial(numerator: Array, denominator: int, rng: Randomness) -> Array:
    """Return True with probability e^{−numerator/denominator}, for ratios in [0, 1]."""
    success = np.zeros(len(numerator), dtype=bool)
    active = np.arange(len(numerator))
    number = 1
    while len(active):
        passed = (below(denominator * number, len(active), rng) < numerator[active]).astype(bool)
        success[active[~passed]] = number % 2 == 1
        active = active[passed]
        number += 1
    return success


def _successes(size: int, rng: Randomness) -> Array:
    """Return numbers of successes, of probability e^{−1} each, before the first failure."""
    counts = np.zeros(size, dtype=np.int64)
    active = np.arange(size)
    while len(active):
        passed = _short_trial(np.ones(len(active), dtype=np.int64), 1, rng)
        active = active[passed]
        counts[active] += 1
    return counts


def _fitting(value: int, array: Array) -> Any:
    """Return an integer that NumPy can combine with the array without overflow.

    A divisor outside int64 exceeds every entry of an int64 array, so the largest int64 gives the
    same quotients.
    """
    if array.dtype == object or value < _LIMIT:
        return value
    return _LIMIT - 1


def _narrow(values: Array) -> Array:
    """Return int64 if every entry fits, else the Python integers."""
    if values.dtype == object and all(-_LIMIT <= value < _LIMIT for value in values):
        return values.astype(np.int64)
    return values


def _scaled_floor(value: arb, bits: int) -> int:
    """Return an integer ≤ 2^bits · value."""
    mantissa, exponent = (int(part) for part in value.lower().man_exp())
    exponent += bits
    return mantissa << exponent if exponent >= 0 else mantissa >> -exponent


def _scaled_ceiling(value: arb, bits: int) -> int:
    """Return an integer ≥ 2^bits · value."""
    return -_scaled_floor(-value, bits)


def _thresholds(cumulative: Callable[[], Sequence[arb]], bits: int) -> tuple[list[int], list[int]]:
    """Return monotone integer bounds on the cumulative probabilities, in units of 2^−bits."""
    with ctx.workprec(bits + _WORD):
        values = cumulative()
        lower = [_scaled_floor(value, bits) for value in values]
        upper = [_scaled_ceiling(value, bits) for value in values]
    for i in range(1, len(lower)):
        lower[i] = max(lower[i], lower[i - 1])
        upper[-i - 1] = min(upper[-i - 1], upper[-i])
    return lower, upper


def _count(thresholds: Sequence[int], word: Array) -> Array:
    """Return how many thresholds are ≤ each word; a threshold of 2^64 or more never is."""
    table = [min(max(t, 0), 1 << _WORD) for t in thresholds]
    below = np.array([t for t in table if t < 1 << _WORD], dtype=np.uint64)
    return np.searchsorted(below, word, side="right")


def _refine(cumulative: Callable[[], Sequence[arb]], value: int, bits: int, rng: Randomness) -> int:
    """Draw further digits of one uniform number until its index is decided."""
    while True:
        value = value << _WORD | int(rng.integers(0, 1 << _WORD, dtype=np.uint64))
        bits += _WORD
        lower, upper = _thresholds(cumulative, bits)
        index = sum(t <= value for t in upper)
        if index == sum(t <= value for t in lower):
            return index


# --- Real random numbers whose binary digits are drawn on demand ----------------------------------
# A standard normal or Laplace variate is never rounded. It is drawn as whole + fraction, where the
# fraction is a uniform number. Its first digits are drawn at once, for whole arrays; further digits
# are drawn only when a comparison or a rounding needs them. Acceptance requires only comparisons of
# uniform numbers and integer arithmetic, as in Karney, "Sampling exactly from the normal
# distribution" (2016). The law is therefore exact: no probability and no digit is rounded. The
# generator is assumed to give independent uniform bits.

WORD = 52
"""Digits drawn at once; whole + fraction is then a double up to one rounding."""
_TABLE = {"normal": 9, "exponential": 40}
_BLOCK = 1 << 16
"""Numbers drawn at a time; they fill 512 kB."""


@final
@dataclass
class LazyReals:
    """Numbers sign·(whole + fraction), the fraction known to `bits` or more binary digits.

    Parameters
    ----------
    sign
        ±1, one per number.
    whole
        Integers ≥ 0.
    word
        ⌊fraction·2^bits⌋.
    bits
        The number of digits drawn at once.
    further
        Further digits in groups of `bits`, for the numbers that needed them, by index.
    """

    sign: Array
    whole: Array
    word: Array
    bits: int
    further: dict[int, list[int]] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of lazy reals."""
        return len(self.word)

    def floats(self) -> Array:
        """Return doubles within 2^{1−min(bits, 52)}·max(1, |x|) of the numbers x."""
        fraction = (self.word + 0.5) * 2.0**-self.bits
        result: Array = self.sign * (self.whole + fraction)
        return result

    def digits(self, index: int) -> tuple[int, int]:
        """Return (X, places) with |x| in [X, X + 1]·2^−places, from all digits drawn so far."""
        digits = int(self.whole[index]) << self.bits | int(self.word[index])
        places = self.bits
        for group in self.further.get(index, ()):
            digits, places = digits << self.bits | group, places + self.bits
        return digits, places

    def ball(self, index: int) -> arb:
        """Return a ball that contains the number; its width is the place of the last digit."""
        digits, places = self.digits(index)
        unit = arb(2) ** (-places - 1)
        return int(self.sign[index]) * (arb(2 * digits + 1) * unit + arb(0, unit))

    def refine(self, *indices: int, rng: Randomness) -> None:
        """Draw `bits` further digits of each number."""
        fresh = rng.integers(0, 1 << self.bits, len(indices)).tolist()
        for index, group in zip(indices, fresh, strict=True):
            self.further.setdefault(index, []).append(group)

    def below(self, index: int, *, rng: Randomness) -> bool:
        """Whether a fresh uniform number, whose digits agree so far, is below the fraction."""
        known = self.further.setdefault(index, [])
        place = 0
        while True:
            if place == len(known):
                known.append(self._group(rng))
            fresh = self._group(rng)
            if fresh != known[place]:
                return fresh < known[place]
            place += 1

    def numbers(self, start: int) -> Numbers:
        """Return the numbers from `start` on, as balls."""
        return Numbers(self, start)

    def _group(self, rng: Randomness) -> int:
        return int(rng.integers(0, 1 << self.bits))

    def keep(self, kept: Array) -> LazyReals:
        """Return the numbers at which `kept` is true."""
        places = np.cumsum(kept) - 1
        further = {int(places[i]): groups for i, groups in self.further.items() if kept[i]}
        return LazyReals(self.sign[kept], self.whole[kept], self.word[kept], self.bits, further)


@final
@dataclass(frozen=True)
class Numbers:
    """Balls of consecutive lazy reals; index 0 is number `start`."""

    reals: LazyReals
    start: int

    def __call__(self, index: int) -> arb:
        """Return a ball that contains number start + index."""
        return self.reals.ball(self.start + index)


def normal(size: int, *, rng: Randomness, bits: int = WORD) -> LazyReals:
    """Draw standard normal numbers.

    The integer part n has probability ∝ e^{−n²/2}, a fraction x is accepted with probability
    e^{−nx−x²/2}, and the sign is fair.
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

    return _lazy_reals_collect(propose, size, bits, expected_share=0.7)


def laplace(size: int, *, rng: Randomness, bits: int = WORD) -> LazyReals:
    """Draw from the density e^{−|x|}/2.

    The integer part n has probability ∝ e^{−n}, a fraction x is accepted with probability e^{−x},
    and the sign is fair.
    """

    def propose(count: int) -> LazyReals:
        drawn = _signed(_whole(count, rng, "exponential"), bits, rng)
        return drawn.keep(_trial(drawn, np.arange(count), rng, squared=False))

    return _lazy_reals_collect(propose, size, bits, expected_share=0.63)


def _signed(whole: Array, bits: int, rng: Randomness) -> LazyReals:
    """Draw a fair sign and a uniform fraction for each integer part, from one word."""
    word = rng.integers(0, 2 << bits, len(whole))
    return LazyReals(1 - 2 * (word & 1), whole, word >> 1, bits)


def _trial(reals: LazyReals, lanes: Array, rng: Randomness, *, squared: bool) -> Array:
    """Return True with probability e^{−x}, or e^{−x²/2}, for the fractions x at indices `lanes`.

    For t in [0, 1], the first failure among trials of probability t/1, t/2, … has an odd index with
    probability e^{−t}. A trial of probability x/m compares a uniform number in [0, m) with x.
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
    """Return True with probability x/multiple, for the fractions x at indices `lanes`."""
    fresh = below(multiple << reals.bits, len(lanes), rng)
    words = reals.word[lanes]
    result: Array = (fresh < words).astype(bool)
    for place in np.flatnonzero(fresh == words):
        result[place] = reals.below(int(lanes[place]), rng=rng)
    return result


def _whole(size: int, rng: Randomness, law: str) -> Array:
    """Draw n ≥ 0 with probability ∝ e^{−n²/2} ("normal") or e^{−n} ("exponential").

    A table is inverted. Its last entry N stands for all n ≥ N: n = N + j with probability
    ∝ e^{−Nj−j²/2}, or ∝ e^{−j}.
    """
    last = _TABLE[law]
    whole = indices_by_inversion(functools.partial(_cumulative, law), size, rng=rng)
    for place in np.flatnonzero(whole == last):
        whole[place] = last + tail(law, last, rng=rng)
    return whole


def tail(law: str, start: int, *, rng: Randomness) -> int:
    """Draw n − start given n ≥ start, for the laws of the integer part."""

    def success(numerator: int, denominator: int) -> bool:
        """Return True with probability e^{−numerator/denominator}."""
        return bool(exponential_trial(np.array([numerator]), denominator, rng)[0])

    while True:
        beyond = 0
        while success(1 if law == "exponential" else start, 1):
            beyond += 1
        if law == "exponential" or success(beyond * beyond, 2):
            return beyond


def _cumulative(law: str) -> list[arb]:
    """Return P(n ≤ i) for all i below the last entry of the table."""
    last = _TABLE[law]
    if law == "exponential":
        return [-arb(-i - 1).expm1() for i in range(last)]
    total = (theta(ExactReal.of_rational(1)) + 1) / 2  # the sum over n ≥ 0
    return [s / total for s in accumulate(arb(-n * n).exp().sqrt() for n in range(last))]


def _lazy_reals_collect(
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
    """Concatenate the numbers of all parts."""
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

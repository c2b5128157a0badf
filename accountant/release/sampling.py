"""Exact samplers of laws on the integers: no probability is ever rounded.

Rational parameters are sampled with integer arithmetic alone, by the rejection methods of
Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020), run on
whole arrays: in int64 where every product fits, in Python integers elsewhere. A law with real
probabilities is sampled by inversion of a uniform number whose binary digits are drawn as far
as a comparison with enclosures of the cumulative probabilities asks for.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from flint import arb

from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.numbers.halving import first
from dpassay.accountant.numbers.precision import ctx

_WORD = 64
"""Bits of a random word."""
_LIMIT = 1 << 63
"""2^63: integers below it are NumPy's, others Python's."""


def discrete_laplace(scale: Fraction, size: int, *, rng: Randomness) -> Array:
    """Draw from p(z) ∝ e^{−|z|/scale} on the integers (Algorithm 2 of the paper).

    With scale = t/s: |z| = ⌊X/s⌋ for X = U + tV, where U is uniform on 0..t − 1, kept with
    probability e^{−U/t}, and V counts successes of probability e^{−1}; a negative zero is
    rejected.
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

    A discrete Laplace proposal of scale t = ⌊σ⌋ + 1 is kept with probability
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
    """Draw indices 0..n − 1 with P(index ≤ i) = cumulative()[i], all but the last one listed.

    Parameters
    ----------
    cumulative
        Returns n − 1 non-decreasing balls, at flint's current precision.
    size, rng
        How many, and from which generator.
    """
    bits = _WORD
    lower, upper = _thresholds(cumulative, bits)
    word = rng.integers(0, 1 << _WORD, size, dtype=np.uint64)
    result = _count(upper, word)
    for undecided in np.flatnonzero(result != _count(lower, word)):
        result[undecided] = _refine(cumulative, int(word[undecided]), bits, rng)
    return result


def integers_by_inversion(cumulative: Callable[[int], arb], size: int, *, rng: Randomness) -> Array:
    """Draw integers with P(Z ≤ z) = cumulative(z), one by one (for irrational parameters).

    `cumulative` returns a ball at flint's current precision, positive and below 1 everywhere.
    """

    @functools.cache
    def bounds(z: int, bits: int) -> tuple[int, int]:
        with ctx.workprec(bits + _WORD):
            value = cumulative(z)
            return _scaled_floor(value, bits), _scaled_ceiling(value, bits)

    def draw() -> int:
        value, bits = int(rng.integers(0, 1 << _WORD, dtype=np.uint64)), _WORD

        def exceeds(z: int) -> bool:
            """Whether the uniform number is below P(Z ≤ z); draws more digits where needed."""
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
    """Return True with probability e^{−numerator/denominator}, entry by entry.

    The whole part of the exponent is that many trials of probability e^{−1}; for x in [0, 1],
    the first failure among trials of probability x/1, x/2, … has an odd number with probability
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
    """Return True with probability e^{−numerator/denominator} for a ratio in [0, 1]."""
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
    """Count the trials of probability e^{−1} before the first failure."""
    counts = np.zeros(size, dtype=np.int64)
    active = np.arange(size)
    while len(active):
        passed = _short_trial(np.ones(len(active), dtype=np.int64), 1, rng)
        active = active[passed]
        counts[active] += 1
    return counts


def _fitting(value: int, array: Array) -> Any:
    """Return an integer as numpy can combine it with the array without overflow.

    A divisor beyond int64 exceeds every entry of an int64 array, so any larger one will do.
    """
    if array.dtype == object or value < _LIMIT:
        return value
    return _LIMIT - 1


def _narrow(values: Array) -> Array:
    """Return int64 where every entry fits, else the Python integers."""
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
    """Return monotone integer bounds of the cumulative probabilities in units of 2^−bits."""
    with ctx.workprec(bits + _WORD):
        values = cumulative()
        lower = [_scaled_floor(value, bits) for value in values]
        upper = [_scaled_ceiling(value, bits) for value in values]
    for i in range(1, len(lower)):
        lower[i] = max(lower[i], lower[i - 1])
        upper[-i - 1] = min(upper[-i - 1], upper[-i])
    return lower, upper


def _count(thresholds: Sequence[int], word: Array) -> Array:
    """Return how many thresholds are ≤ each word (one of 2^64 or more never is)."""
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

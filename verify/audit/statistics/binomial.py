"""Binomial probabilities that keep their relative accuracy up to 10¹⁵ runs.

Masses are scipy's; tails are the regularised incomplete beta function. (The difference of ln n!,
ln k! and ln (n − k)! is off by a few thousandths at n = 10¹².) Rates: the ends of the exact
intervals of Clopper and Pearson. The library's inverse of the beta function is only a first guess
(at 10¹² runs it can be wrong by a factor of ten); what is returned has been put into the tail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

Array: TypeAlias = NDArray[Any]

MOST_RUNS = 10**15
"""Counts up to here are exact in floating point, with room for products."""
ROUNDING = 1e-6
"""Relative allowance for rounding in masses, tails and the probabilities put into them.

A relative error of 2⁻⁵³ in p is one of z√n 2⁻⁵³ in the tail z standard deviations out: 4e-7 for
z = 38, where tails leave the range of floats, and n = 10¹⁵. (Against 50 digits: below 2e-7 there,
and below 3e-9 up to 10¹² runs.)
"""
_HALVINGS = 80
"""Steps that bring a rate from the whole range next to its level, in a logarithmic scale."""
_NEARLY = 1e-9
"""Relative step of the library's guess to its safe side: usually the guess then holds."""
_TIGHT = 0.99
"""A guess is kept if its tail is at least this part of the level: bounds lose 1 % of it."""


def masses(k: Array, n: int, p: Array) -> Array:
    """Return P(Bin(n, p) = k), one row per p."""
    return np.asarray(stats.binom.pmf(k, n, np.asarray(p)[:, np.newaxis]))


def divergence(k: Array, n: int, p: Array) -> Array:
    """Return n KL(k/n ‖ p), the exponent of the probability of k."""
    shift = k - n * p
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Array = special.xlog1py(k, shift / (n * p)) + special.xlog1py(
            n - k, -shift / (n * (1 - p))
        )
    return found


def at_least(k: ArrayLike, n: ArrayLike, p: Array | float) -> Array:
    """Return P(Bin(n, p) ≥ k)."""
    k, n = np.asarray(k, dtype=np.float64), np.asarray(n, dtype=np.float64)
    inside = (k >= 1) & (k <= n)
    a = np.where(inside, k, 1.0)
    found: Array = special.betainc(a, np.where(inside, n - a + 1, 1.0), p)
    return np.where(inside, found, np.where(k < 1, 1.0, 0.0))


def at_most(k: ArrayLike, n: ArrayLike, p: Array | float) -> Array:
    """Return P(Bin(n, p) ≤ k)."""
    k, n = np.asarray(k, dtype=np.float64), np.asarray(n, dtype=np.float64)
    inside = (k >= 0) & (k <= n - 1)
    a = np.where(inside, k + 1, 1.0)
    found: Array = special.betaincc(a, np.where(inside, n - a + 1, 1.0), p)
    return np.where(inside, found, np.where(k < 0, 0.0, 1.0))


def least_rate(hits: ArrayLike, runs: ArrayLike, level: float) -> Array:
    """Return rates at which P(Bin(runs, rate) ≥ hits) ≤ level, next to the largest ones."""
    k, n = (np.asarray(entry, dtype=np.float64) for entry in (hits, runs))
    k, n = np.broadcast_arrays(k, n)
    some = np.maximum(k, 1.0)
    guess = special.betaincinv(some, n - some + 1, level) * (1 - _NEARLY)
    rate = _pushed(lambda x: at_least(some, n, x), guess, np.zeros(k.shape), some / n, level)
    return np.where(k > 0, rate, 0.0)


def largest_rate(hits: ArrayLike, runs: ArrayLike, level: float) -> Array:
    """Return rates at which P(Bin(runs, rate) ≤ hits) ≤ level, next to the smallest ones."""
    k, n = (np.asarray(entry, dtype=np.float64) for entry in (hits, runs))
    k, n = np.broadcast_arrays(k, n)
    some = np.minimum(k, n - 1)
    guess = np.minimum(special.betainccinv(some + 1, n - some, level) * (1 + _NEARLY), 1.0)
    rate = _pushed(lambda x: at_most(some, n, x), guess, np.ones(k.shape), some / n, level)
    return np.where(k < n, rate, 1.0)


def _pushed(
    tail: Callable[[Array], Array], guess: Array, safe: Array, bold: Array, level: float
) -> Array:
    """Return the guesses where they are next to the level on its right side, else halve for them.

    The tail is at most the level at `safe`, and is monotone from there to `bold`.
    """
    found = tail(guess)
    good = (found <= level) & (found >= _TIGHT * level)
    if good.all():
        return guess
    low, high = safe.astype(np.float64), bold.astype(np.float64)
    for _ in range(_HALVINGS):
        middle = np.where(np.minimum(low, high) > 0, np.sqrt(low * high), (low + high) / 2)
        inside = tail(middle) <= level
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return np.where(good, guess, low)

"""Profiles of few releases by two laws on a grid, one that dominates and one that is dominated.

Where L is the loss under P, H(ε) = P(L = ∞) + E_P[(1 − e^{ε−L})⁺] rises with every mass of P and
with every loss, and it falls when outcomes are merged. For one release and grid points jh,

- *above*: what has a loss in (jh, (j + 1)h] is split onto both ends so that its masses p and q
  stay, r = (p − q e^{jh})/(1 − e^{−h}) of p going to the right: merging the two gives it back.
  Losses above the grid become ∞, those below it its lowest point;
- *below*: outcomes with losses in ((j − ½)h, (j + ½)h] are merged to one of loss ln(p/q), which is
  lowered onto the grid moved by a common fraction s of a step: to j + s, or to j − 1 + s where that
  is too much. Losses above the grid join its last point, those below it are forgotten.

Sums of independent releases are products of polynomials, with integers of B bits after the point as
coefficients: those of the first law are rounded up, of the second one down, at every step. Tails
are found to twenty digits beyond B, relative to the smaller side, and a unit of the last of B bits
is allowed for in every mass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias, final

from flint import fmpz_poly
from mpmath import iv, mp

from verify.checker.arithmetic import UnknownError, interval_digits
from verify.checker.compositions.contour import Answers, bounded, infinite_mass
from verify.checker.compositions.mixtures import Mixture
from verify.checker.compositions.moments import (
    LN10,
    Factor,
    Factors,
    Laplace,
    Listed,
    Normal,
    saddle,
)

Tails: TypeAlias = tuple[Any, Any]
"""P(L > y) and Q(L > y), without P(L = ∞)."""

MOST_RELEASES = 8
"""Releases of an exact grid: its cells grow with their number."""
_POINTS = 3000
"""Of the grid of one release."""
_SPARE = 12
"""Digits of H to the share of it that is cut off at the ends."""
_MOST_LOG = 400.0
"""−ln of values that a grid of floats is too coarse for."""
_SHIFTS = (0.0, *(-(2.0**-k) for k in range(14)))


@lru_cache(maxsize=64)
def enclose(factors: tuple[tuple[Factor, int], ...], epsilon: Any) -> Answers:
    """Enclose H(ε); the other two answers are only bounded.

    Raises
    ------
    UnknownError
        For many releases, for losses whose tails are not known here, and for tiny values.
    """
    releases = sum(count for _, count in factors)
    known = all(isinstance(f, (Normal, Mixture, Laplace, Listed)) for f, _ in factors)
    if releases > MOST_RELEASES or not known or infinite_mass(factors):
        raise UnknownError("the law of this composition: its grid takes too long to recompute")
    log_value = _estimate(factors, float(epsilon))
    digits = math.ceil(-log_value / LN10) + _SPARE
    with mp.workdps(digits + 40):
        ends = [_ends(factor, mp.mpf(10) ** -digits / releases) for factor, _ in factors]
        step = max(high - low for low, high in ends) / _POINTS
        low, high = (
            _sum(factors, ends, step, epsilon, digits, above=above) for above in (False, True)
        )
    with interval_digits(mp.dps):
        rest = bounded(factors, epsilon)
        return Answers(iv.mpf([low, high]), rest.above_p, rest.above_q)


def _estimate(factors: Factors, eps: float) -> float:
    try:
        _, log_value = saddle(factors, eps)
    except (OverflowError, ValueError, ZeroDivisionError):  # beyond the range of floats
        log_value = -math.inf
    if log_value < -_MOST_LOG:
        raise UnknownError("the law of this composition: its values are too small for a grid")
    return min(log_value, 0.0)


def _tails(factor: Factor) -> Callable[[Any], Tails]:
    match factor:
        case Normal():
            mu = mp.mpf(factor.mu)
            return lambda y: (mp.ncdf(mu / 2 - y / mu), mp.ncdf(-mu / 2 - y / mu))
        case Laplace():
            return lambda y: _laplace(mp.mpf(factor.distance), y)
        case Listed():
            masses = sorted(zip(factor.losses(), factor.masses, strict=True), key=lambda e: e[0])
            return lambda y: (
                mp.fsum(p for loss, (p, _) in masses if loss > y),
                mp.fsum(q for loss, (_, q) in masses if loss > y),
            )
        case Mixture():
            return _Mixture(factor).tails
    raise UnknownError("the tails of this law")


def _laplace(t: Any, y: Any) -> Tails:
    if y >= t:
        return mp.zero, mp.zero
    if y < -t:
        return mp.one, mp.one
    return 1 - mp.exp((y - t) / 2) / 2, mp.exp(-(t + y) / 2) / 2


@final
class _Mixture:
    """The tails of a mixture: half-lines of x, up to the point where its ratio has a value."""

    def __init__(self, mixture: Mixture) -> None:
        self._parts = [(mp.mpf(w), mp.mpf(m)) for w, m in mixture.parts]
        self._first = mixture.first

    def tails(self, y: Any) -> Tails:
        """Return P(L > y) and Q(L > y)."""
        level = mp.exp(y if self._first else -y)
        if level <= self._parts[0][0]:  # the ratio is larger everywhere
            return (mp.one, mp.one) if self._first else (mp.zero, mp.zero)
        x = self._root(level)
        if self._first:
            return mp.fsum(w * mp.ncdf(m - x) for w, m in self._parts), mp.ncdf(-x)
        return mp.ncdf(x), mp.fsum(w * mp.ncdf(x - m) for w, m in self._parts)

    def _root(self, level: Any) -> Any:
        """Return x with Σ w e^{mx − m²/2} = level; Newton's method for a convex, rising function.

        From the right, where one part alone has the level, it falls to the root.
        """
        (weight, mean), rest = self._parts[-1], level - self._parts[0][0]
        x = (mp.log(rest / weight) + mean**2 / 2) / mean
        if len(self._parts) == 2:
            return x
        for _ in range(2000):
            terms = [w * mp.exp(m * x - m**2 / 2) for w, m in self._parts]
            slope = mp.fsum(m * term for (_, m), term in zip(self._parts, terms, strict=True))
            move = (mp.fsum(terms) - level) / slope
            x -= move
            if abs(move) <= mp.ldexp(1 + abs(x), 8 - mp.prec):
                return x
        raise UnknownError("the tails of this mixture")


def _ends(factor: Factor, mass: Any) -> tuple[Any, Any]:
    """Return losses beyond which P has at most that mass, on either side."""
    tails = _tails(factor)

    def least(beyond: Callable[[Any], bool]) -> Any:
        low, high = mp.zero, mp.one / 64
        while not beyond(high):
            low, high = high, 2 * high
            if high > 1 << 20:
                raise UnknownError("the law of this composition: its losses are too large")
        for _ in range(12):
            middle = (low + high) / 2
            low, high = (low, middle) if beyond(middle) else (middle, high)
        return high

    return -least(lambda y: 1 - tails(-y)[0] <= mass), least(lambda y: tails(y)[0] <= mass)


def _sum(
    factors: Factors, ends: Sequence[Any], step: Any, epsilon: Any, digits: int, *, above: bool
) -> Any:
    """Return one bound of H(ε)."""
    bits = math.ceil((digits + 15) / math.log10(2))
    total, first, shift, infinity = [1 << bits], 0, mp.zero, mp.zero
    for (factor, count), (low, high) in zip(factors, ends, strict=True):
        start, stop = math.floor(low / step) - 1, math.ceil(high / step) + 1
        law = _above if above else _below
        masses, moved, over = law(_tails(factor), start, stop, step)
        rounded = [_fixed(mass, bits, up=above) for mass in masses]
        for _ in range(count):
            total = _product(total, rounded, bits, up=above)
            first, shift, infinity = first + start, shift + moved, infinity + over
    place = mp.mpf(epsilon) - shift * step
    value = infinity
    for index, mass in enumerate(total):
        loss = (first + index) * step - place
        if mass and loss > 0:
            value -= mp.ldexp(mass, -bits) * mp.expm1(-loss)
    slack = mp.mpf(10) ** -(digits + 10)
    return min(value * (1 + slack) + slack, mp.one) if above else max(value * (1 - slack), mp.zero)


def _above(
    tails: Callable[[Any], Tails], start: int, stop: int, step: Any
) -> tuple[list[Any], Any, Any]:
    """Return masses at the points from start to stop, no shift, and what is at infinity."""
    found = [mp.zero] * (stop - start + 1)
    last = tails(start * step)
    found[0] = 1 - last[0]
    for j in range(start, stop):
        here = tails((j + 1) * step)
        p, q = last[0] - here[0], last[1] - here[1]
        right = (p - q * mp.exp(j * step)) / -mp.expm1(-step)
        found[j - start] += p - right
        found[j - start + 1] += right
        last = here
    return found, mp.zero, last[0]


def _below(
    tails: Callable[[Any], Tails], start: int, stop: int, step: Any
) -> tuple[list[Any], Any, Any]:
    """Return masses at the points from start to stop, moved by a fraction of a step."""
    merged: list[tuple[Any, float]] = []
    last = tails((start + mp.mpf(1) / 2) * step)
    for j in range(start + 1, stop + 1):
        here = tails((j + mp.mpf(1) / 2) * step) if j < stop else (mp.zero, mp.zero)
        p, q = last[0] - here[0], last[1] - here[1]
        positive = p > 0 and q > 0
        offset = float(mp.log(p / q) / step - j) - 1e-9 if positive else -math.inf
        merged.append((p, offset))
        last = here

    def lowered(shift: float) -> float:
        return sum(float(p) * (d - shift + (d < shift) if d >= shift - 1 else 2) for p, d in merged)

    shift = min(_SHIFTS, key=lowered)
    found = [mp.zero] * (stop - start + 1)
    for j, (p, offset) in enumerate(merged, 1):
        if offset >= shift:
            found[j] += p
        elif offset >= shift - 1:
            found[j - 1] += p
    return found, mp.mpf(shift), mp.zero


def _fixed(mass: Any, bits: int, *, up: bool) -> int:
    """Return an integer of B bits after the point, with a unit to spare."""
    scaled = mp.ldexp(mass, bits)
    return max(int(mp.ceil(scaled)) + 1 if up else int(mp.floor(scaled)) - 1, 0)


def _product(one: list[int], other: list[int], bits: int, *, up: bool) -> list[int]:
    """Multiply polynomials with coefficients ≥ 0, and round."""
    carry = (1 << bits) - 1 if up else 0
    return [(int(c) + carry) >> bits for c in (fmpz_poly(one) * fmpz_poly(other)).coeffs()]

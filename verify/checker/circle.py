"""Profiles of compositions whose losses lie on one lattice b + uℤ: sums over the circle, a proof.

Let ℓ be the least point of the lattice above ε. With c > 0, z_n = c + 2πin/(Nu) and N odd, the sum

    (1/N) Σ_n M(z_n) e^{−z_n ℓ} K(z_n)        over |n| < N/2

has no truncation: it is Σ_m f(ℓ + muN) e^{cmuN} exactly, where f(ℓ) is

    P(L ≥ ℓ) for K = 1/(1 − e^{−zu}),   e^ε Q(L ≥ ℓ) for K = e^{ε−ℓ}/(1 − e^{−(z+1)u}),

and the difference of both for H(ε). All terms are ≥ 0. As f ≤ 1 and f(x) ≤ M(s) e^{−sx}, those with
m ≠ 0 have the bounds of `verify.checker.contour`, which also has the ledger of M and of rounding.
Losses are on one lattice where their differences have a common divisor to 50 digits, and they are
above ε where they are so by more than 10^{−38} u.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from mpmath import mp

from verify.checker.arithmetic import UnknownError
from verify.checker.contour import Answers, aliases, enclosed, ledger, values, working
from verify.checker.moments import DiscreteNormal, Factor, Listed
from verify.checker.search import LN10, STRETCHES, Factors, log_moment, period, saddle

Lattice: TypeAlias = tuple[Any, Any]
"""A point b of the lattice and its step u."""

_DIGITS = 40
_MOST_WORK = 5_000_000
_OVERHEAD = 60
_FINEST = 1_000_000
"""Most steps of the lattice in one difference of losses."""


def lattice(factors: Factors) -> Lattice | None:
    """Return the lattice of the sum of all losses, None where there is none."""
    base, steps = mp.zero, []
    for factor, count in factors:
        if isinstance(factor, DiscreteNormal):
            unit = factor.shift / mp.mpf(factor.parameter)
            base -= count * factor.shift * unit / 2
            steps.append(unit)
        elif isinstance(factor, Listed):
            losses = factor.losses()
            base += count * losses[0]
            steps += [abs(loss - losses[0]) for loss in losses[1:]]
        else:
            return None
    found = _common(steps)
    return None if found is None else (base, found)


def _common(steps: Sequence[Any]) -> Any:
    """Return the greatest common divisor, None where it is none to 50 digits."""
    if not steps:
        return None
    found, least = steps[0], min(steps) / _FINEST
    for step in steps[1:]:
        one, other = step, found
        while other > step * mp.mpf(10) ** -50:
            if other < least:
                return None
            one, other = other, abs(one - mp.nint(one / other) * other)
        found = one
    return found


@lru_cache(maxsize=256)
def invert(factors: tuple[tuple[Factor, int], ...], where: Lattice, epsilon: Any) -> Answers:
    """Enclose the three functions of ε.

    Raises
    ------
    UnknownError
        Where that would take too long.
    """
    base, unit = where
    eps = mp.mpf(epsilon)
    above = base + unit * (mp.floor((eps - base) / unit + mp.mpf(10) ** -38) + 1)
    try:
        line, log_value = saddle(factors, float(epsilon))
        plans = [_plan(factors, float(above), line * s, log_value) for s in STRETCHES]
    except (OverflowError, ValueError, ZeroDivisionError):  # beyond the range of floats
        plans = [(math.inf, 0.0, 0.0, 0.0, 0.0)]
    work, digits, c, length, beyond = min(plans)
    if work / float(unit) > _MOST_WORK:
        raise UnknownError("the law of this composition: its sum takes too long to recompute")
    half = max(math.ceil(length / float(unit) / 2), 1)
    with working(digits, half):
        return _summed(factors, eps, (above, unit), (half, digits, mp.mpf(c), mp.mpf(beyond)))


def _plan(
    factors: Factors, eps: float, c: float, log_value: float
) -> tuple[float, float, float, float, float]:
    """Return the work of a line, its digits, the line, the length B and s, by floats."""
    log_height = log_moment(factors, c) - c * eps
    wanted = log_value - _DIGITS * LN10 - 6
    length, beyond = period(factors, eps, c, wanted)
    releases = sum(count for _, count in factors)
    digits = (log_height - wanted) / LN10 + math.log10(releases) + 2
    cost = sum(factor.cost(c, 0.0, digits) for factor, _ in factors)
    return length / 2 * (_OVERHEAD + cost), digits, c, length, beyond


def _summed(
    factors: Factors, eps: Any, where: Lattice, chosen: tuple[int, float, Any, Any]
) -> Answers:
    """Sum over the circle, and add the bounds of the errors."""
    (above, unit), (half, digits, c, beyond) = where, chosen
    number = 2 * half + 1
    step = 2 * mp.pi / (number * unit)
    rows = [(factor.along(c, step, half, digits), count) for factor, count in factors]
    height, relative = ledger(rows, c, above)
    sums = [mp.zero] * 3
    for n, value in enumerate(values(rows, -step * above)):
        z = mp.mpc(c, n * step)
        both = value * (2 if n else 1)
        first = both / -mp.expm1(-z * unit)
        second = both * mp.exp(eps - above) / -mp.expm1(-(z + 1) * unit)
        parts = (first - second, first, second)
        sums = [total + part.real for total, part in zip(sums, parts, strict=True)]
    weight = height / number
    slack = height * relative / -mp.expm1(-c * unit)
    ahead = aliases(factors, above, (c, beyond, number * unit), digits)
    return enclosed([weight * total for total in sums], slack, ahead, (factors, eps))

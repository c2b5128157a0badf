"""Profiles of compositions whose losses lie on one lattice b + uℤ: sums over the circle, a proof.

Let ℓ be the least point of the lattice above ε. With c > 0, z_n = c + 2πin/(Nu) and N odd, the sum

    (1/N) Σ_n M(z_n) e^{−z_n ℓ} K(z_n)        over |n| < N/2

has no truncation: it is Σ_m f(ℓ + muN) e^{cmuN} exactly, where f(ℓ) is

    P(L ≥ ℓ) for K = 1/(1 − e^{−zu}),   e^ε Q(L ≥ ℓ) for K = e^{ε−ℓ}/(1 − e^{−(z+1)u}),

and the difference of both for H(ε). All terms are ≥ 0. As f ≤ 1 and f(x) ≤ M(s) e^{−sx}, those with
m ≠ 0 have the bounds of `compositions.contour`, which also has the ledger of M and of rounding.

Where that takes too many nodes only those with |n| < N' are summed: with w the masses tilted by
e^{cL}, |M(c + it)/M(c)|² is at most 1 − Σ 2 w_x w_y (1 − cos t(l_x − l_y)), summed over
neighbours x and y; on a cell of t without a multiple of 2π/(l_x − l_y) a term is least at an end.
Losses are on one lattice where their differences have a common divisor to 50 digits, and they are
above ε where they are so by more than 10^{−38} u.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from mpmath import mp

from verify.checker.arithmetic import UnknownError, agree
from verify.checker.compositions.contour import Answers, aliases, enclosed, ledger, values, working
from verify.checker.compositions.moments import (
    LN10,
    STRETCHES,
    DiscreteNormal,
    Factor,
    Factors,
    Listed,
    log_moment,
    period,
    saddle,
)

Gaps: TypeAlias = Sequence[tuple[Any, Any]]
"""Differences of neighbouring losses, and 2 w_x w_y."""
Lattice: TypeAlias = tuple[Any, Any]
"""A point b of the lattice and its step u."""

_DIGITS = 40
"""Digits of a value."""
_LONG_WORK, _MOST_WORK = 200_000, 5_000_000
_OVERHEAD = 60
"""Work of a node itself, in units of one evaluation of a factor."""
_CELLS, _MOST_CELLS = 8, 2000
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
    if not math.isfinite(work):
        raise UnknownError("the law of this composition: its sum takes too long to recompute")
    half = max(math.ceil(length / float(unit) / 2), 1)
    each = work / length * 2
    kept = half
    if each * half > _LONG_WORK:
        kept = _enough(factors, mp.mpf(c), unit, half, digits)
    if each * kept > _MOST_WORK:
        raise UnknownError("the law of this composition: its sum takes too long to recompute")
    with working(digits, half):
        chosen = half, kept, digits, mp.mpf(c), mp.mpf(beyond)
        return _summed(factors, eps, (above, unit), chosen)


def _enough(factors: Factors, c: Any, unit: Any, half: int, digits: float) -> int:
    """Return a number of nodes from which on M is negligible; `half` if there is none."""
    gaps = [(_gaps(factor, c, digits), count) for factor, count in factors]
    kept = 8
    while kept < half and _log_fall(gaps, unit, half, kept) > -digits * LN10 - math.log(half):
        kept += kept // 3
    return min(kept, half)


def _gaps(factor: Factor, c: Any, digits: float) -> Gaps:
    """Return the differences of neighbouring losses, and 2 w_x w_y."""
    if isinstance(factor, DiscreteNormal):
        unit = factor.shift / mp.mpf(factor.parameter)
        rows = [(x * unit, weight) for x, weight in factor.terms(c, digits)]
    elif isinstance(factor, Listed):
        pieces = zip(factor.losses(), factor.masses, strict=True)
        rows = sorted((loss, p * mp.exp(c * loss)) for loss, (p, _) in pieces)
    else:
        return ()
    whole = mp.fsum(weight for _, weight in rows) * (1 + mp.mpf(10) ** -30)
    return [
        (other - loss, 2 * v * w / whole**2)
        for (loss, v), (other, w) in itertools.pairwise(rows)
        if not agree(loss, other)
    ]


def _log_fall(gaps: Sequence[tuple[Gaps, int]], unit: Any, half: int, kept: int) -> Any:
    """Bound ln|M(c + it)/M(c)| from above for all nodes from `kept` on."""
    end = mp.pi / unit
    fine = end / (_CELLS * mp.ceil(max(gap for row, _ in gaps for gap, _ in row) / unit))
    ends = [2 * mp.pi * kept / ((2 * half + 1) * unit)]
    while ends[-1] < end:
        ends.append(min(2 * ends[-1], ends[-1] + fine, end))
        if len(ends) > _MOST_CELLS:
            return mp.zero
    cells = itertools.pairwise(ends)
    return max(mp.fsum(n * _log_size(row, cell) for row, n in gaps) for cell in cells)


def _log_size(gaps: Gaps, cell: tuple[Any, Any]) -> Any:
    """Bound ln|M/M(c)| of one factor from above on a cell."""
    fall, (low, high) = mp.zero, cell
    for gap, share in gaps:
        turns = [mp.floor(t * gap / (2 * mp.pi)) for t in (low, high * (1 + mp.mpf(10) ** -30))]
        if turns[0] == turns[1]:
            fall += share * (1 - max(mp.cos(low * gap), mp.cos(high * gap)))
    return mp.log1p(-min(fall, mp.mpf(1) - mp.mpf(10) ** -6)) / 2


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
    factors: Factors, eps: Any, where: Lattice, chosen: tuple[int, int, float, Any, Any]
) -> Answers:
    """Sum over the circle, and add the bounds of the errors."""
    (above, unit), (half, kept, digits, c, beyond) = where, chosen
    number = 2 * half + 1
    step = 2 * mp.pi / (number * unit)
    rows = [(factor.along(c, step, kept, digits), count) for factor, count in factors]
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
    if kept < half:
        gaps = [(_gaps(factor, c, digits), count) for factor, count in factors]
        relative += 2 * mp.exp(_log_fall(gaps, unit, half, kept + 1))
    slack = height * relative / -mp.expm1(-c * unit)
    ahead = aliases(factors, above, (c, beyond, number * unit), digits)
    return enclosed([weight * total for total in sums], slack, ahead, (factors, eps))

"""Where a claim of μ-GDP is likely to be refuted."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from fractions import Fraction

from accountant.composition.choose import is_numerical
from accountant.composition.invert import hockey_stick
from accountant.core.pair import Pair
from accountant.errors import UndecidedError
from accountant.numbers.exact import ExactReal
from accountant.numbers.precision import ctx
from accountant.questions.least_mu.curve import needed

_HINTS = 20
"""Halvings and half as many doublings of an epsilon of 1 at which estimates are compared."""
_MOST_HINTS = 5
"""Points at which a refutation is tried: each takes an enclosure."""
_CLEAR = 1e-3
"""How far above a claim floats must be for one to be tried."""
_HINT_BITS = 128
"""Bits of those values."""
_FINEST = 1 << 40
"""Largest denominator of a point."""
_GRID, _REFINED, _PARTS = 32, 3, 8
"""Points of a grid, how often it is refined, and into how many parts."""


def hints(
    pairs: Sequence[Pair], target: Pair, *, where: ExactReal | None = None
) -> list[Fraction] | None:
    """Return ε where estimates of δ exceed δ_μ, the least first; None where none are known.

    They go far out: Gaussian releases of a larger μ, sampled, show it at large ε alone. Where none
    is found, but some ε is known to show more than a μ, one is that needs nearly the largest.
    """
    found = _estimated(pairs, target)
    return [_neediest(pairs, where)] if not found and where is not None else found


def _estimated(pairs: Sequence[Pair], target: Pair) -> list[Fraction] | None:
    found: list[tuple[float, Fraction]] = []
    for exponent in range(-_HINTS, 2 * _HINTS):
        point = Fraction(2) ** (exponent // 2) * (1 + Fraction(exponent % 2, 2))
        known = [_estimated_log_delta(pair, point) for pair in pairs]
        values = [value for value in known if value is not None]
        limit = _estimated_log_delta(target, point)
        if values and limit is not None:
            found.append((max(values) - limit, point))
    if not found:
        return None
    return [point for excess, point in found if excess > _CLEAR][:_MOST_HINTS]


def _estimated_log_delta(pair: Pair, epsilon: Fraction) -> float | None:
    """Return about ln H(ε), −∞ for none; None where it takes long."""
    estimate = pair.estimate_log_delta(float(epsilon))
    if estimate is not None or is_numerical(pair):
        return estimate
    with ctx.workprec(_HINT_BITS):
        value = pair.hockey_stick(ExactReal.of_rational(epsilon))
        return float(value.log().mid()) if value > 0 else None


def _neediest(pairs: Sequence[Pair], mu: ExactReal) -> Fraction:
    """Return an ε at which δ needs nearly the largest μ', from a grid that is refined."""

    def need(at: Fraction) -> Fraction:
        with contextlib.suppress(UndecidedError), ctx.workprec(_HINT_BITS):
            value = hockey_stick(pairs, ExactReal.of_rational(at))
            return needed(value, at) if value > 0 else Fraction(0)
        return Fraction(0)

    step = Fraction(float(mu)) / 16
    points = [Fraction(0), *(step * Fraction(5**i, 4**i) for i in range(_GRID))]
    for _ in range(_REFINED):
        values = [need(at) for at in points]
        best = values.index(max(values))
        low, high = points[max(best - 1, 0)], points[min(best + 1, len(points) - 1)]
        points = [low + (high - low) * i / _PARTS for i in range(_PARTS + 1)]
    return max(points, key=need).limit_denominator(_FINEST)

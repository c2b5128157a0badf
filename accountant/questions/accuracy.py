"""Accuracy of a release: errors, quantiles of the error, variance and covariance of the noise.

Each mechanism defines its own formulas; one without a formula raises NotApplicableError.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import chain

from flint import arb

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.validate import integer, probability
from dpassay.accountant.errors import NotApplicableError, UndecidedError, expected
from dpassay.accountant.numbers.exact import ExactReal, Number
from dpassay.accountant.numbers.interval import RELATIVE_WIDTH, Interval, enclose
from dpassay.accountant.numbers.precision import ctx

_ROOT_DIGITS = (40, 80, 160, 320)


def mean_absolute_error(mechanism: Mechanism) -> Interval:
    """Enclose E|released − true|, averaged over the released coordinates.

    Raises NotApplicableError if the mechanism has no formula for it.
    """
    return enclose(mechanism.mean_absolute_error)


def probability_exact(mechanism: Mechanism) -> Interval:
    """Enclose P(released = true) for one coordinate; it is 0 if the noise has a density.

    Raises NotApplicableError if the mechanism has no formula for it.
    """
    return enclose(mechanism.probability_exact)


def absolute_quantile(mechanism: Mechanism, level: Number) -> Interval:
    """Enclose the least t with P(|released − true| ≤ t) ≥ level, for one coordinate.

    Raises NotApplicableError if the noise is not symmetric, or is not one scalar law.
    """
    return maximum_quantile(mechanism, level, coordinates=1)


def maximum_quantile(mechanism: Mechanism, level: Number, *, coordinates: int) -> Interval:
    """Enclose the least t with P(max_i |released_i − true_i| ≤ t) ≥ level.

    Parameters
    ----------
    mechanism
        The noise of one coordinate, symmetric about 0.
    level
        A rational probability.
    coordinates
        The number d ≥ 1 of independent coordinates with this noise. All errors are at most t with
        probability P(|noise| ≤ t)^d.

    Raises
    ------
    NotApplicableError
        If the noise is not symmetric or not one scalar law, or if d > 1 and the coordinates of the
        mechanism are dependent.
    UndecidedError
        If level^{1/d} is too close to a jump of the distribution function.
    """
    p = probability("level", level)
    d = integer("coordinates", coordinates, least=1)
    if p.rational is None:
        raise expected("level", level, "to be rational")
    require_symmetric(mechanism)
    if d > 1 and mechanism.dimension > 1:
        raise NotApplicableError(
            f"The coordinates of {type(mechanism).__name__} have a joint law, so the quantile of "
            "their maximum is not that of independent ones. Simulate it."
        )
    if p.rational == 0:
        return Interval.of_exact(0)
    if d == 1 or p.rational == 1:
        return _quantile_beyond(mechanism, p.rational)
    for digits in _ROOT_DIGITS:
        root = enclose(lambda: p.ball().root(d), relative_width=Fraction(1, 10**digits))
        low, high = (_quantile_beyond(mechanism, Fraction(e)) for e in (root.lower, root.upper))
        found = low.hull(high)
        width = found.relative_width
        if width is not None and width <= RELATIVE_WIDTH:
            return found
    raise UndecidedError(
        f"The {level} quantile of the largest of {d} errors is too near a jump of their law. Give "
        "a slightly different level."
    )


def _quantile_beyond(mechanism: Mechanism, level: Fraction) -> Interval:
    """Return the t with P(|noise| ≤ t) = level; by symmetry P(noise ≤ t) = (1 + level)/2."""
    at = ExactReal.of_rational((1 + min(level, Fraction(1))) / 2)
    return enclose(lambda: mechanism.quantile(at))


def require_symmetric(mechanism: Mechanism) -> None:
    """Raise NotApplicableError unless the noise is known to be symmetric about 0."""
    if not mechanism.is_symmetric:
        raise NotApplicableError(
            f"The noise of {type(mechanism).__name__} is not known to be symmetric, so quantiles "
            "of its absolute error do not follow from its quantiles. Ask for `quantile` at both "
            "ends instead."
        )


# --- How much noise a mechanism adds: variance, mean squared error, covariance, quantiles ---------

MOST_ENTRIES = 1 << 22
"""Largest number of entries of a covariance matrix; more would take long and need gigabytes."""


def variance(mechanism: Mechanism, *, relative_width: Fraction = RELATIVE_WIDTH) -> list[Interval]:
    """Enclose the variance of each released coordinate; a single entry if all are equal."""
    return _each(mechanism.variances, relative_width)


def mean_squared_error(
    mechanism: Mechanism, *, relative_width: Fraction = RELATIVE_WIDTH
) -> Interval:
    """Enclose E[(released − true)²], averaged over the released coordinates."""
    return enclose(mechanism.mean_squared_error, relative_width=relative_width)


def covariance(
    mechanism: Mechanism, *, relative_width: Fraction = RELATIVE_WIDTH
) -> list[list[Interval]]:
    """Enclose every entry of the covariance matrix of the noise.

    Raises NotApplicableError if it has more than `MOST_ENTRIES` entries.
    """
    if (size := mechanism.dimension) ** 2 > MOST_ENTRIES:
        raise NotApplicableError(
            f"A covariance matrix of {size} x {size} entries is too long to write: at most "
            f"{MOST_ENTRIES} are. Ask for the variance of each coordinate."
        )
    found = _each(lambda: list(chain(*mechanism.covariance_matrix())), relative_width)
    side = math.isqrt(len(found))
    return [found[start : start + side] for start in range(0, len(found), side)]


def quantile(
    mechanism: Mechanism, level: Number, *, relative_width: Fraction = RELATIVE_WIDTH
) -> Interval:
    """Enclose the least x with P(noise ≤ x) ≥ level, for mechanisms with one scalar law."""
    p = probability("level", level)
    return enclose(lambda: mechanism.quantile(p), relative_width=relative_width)


def _each(compute: Callable[[], Sequence[arb]], relative_width: Fraction) -> list[Interval]:
    """Enclose numbers that are computed together; numbers that share a ball share its enclosure.

    This is valid because the enclosure contains the ball it was made from, and so every number that
    the ball encloses.
    """
    rungs: dict[int, Sequence[arb]] = {}
    known: dict[int, Interval] = {}  # by the id of a ball, which `rungs` keeps alive

    def listed() -> Sequence[arb]:
        if ctx.prec not in rungs:
            rungs[ctx.prec] = compute()
        return rungs[ctx.prec]

    def enclosed(index: int) -> Interval:
        for balls in rungs.values():
            if (found := known.get(id(balls[index]))) is not None:
                return found
        last = arb(0)

        def entry() -> arb:
            nonlocal last
            last = listed()[index]
            return last

        found = enclose(entry, relative_width=relative_width)
        known[id(last)] = found
        return found

    return [enclosed(index) for index in range(len(compute()))]

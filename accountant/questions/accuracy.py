"""How far an answer is off: mean absolute error, quantiles of the error, P(no error).

Each mechanism declares its own formulas; one without a formula raises NotApplicableError.
"""

from __future__ import annotations

from fractions import Fraction

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.validate import integer, probability
from dpassay.accountant.errors import NotApplicableError, UndecidedError, expected
from dpassay.accountant.numbers.exact import ExactReal, Number
from dpassay.accountant.numbers.interval import RELATIVE_WIDTH, Interval, enclose

_ROOT_DIGITS = (40, 80, 160, 320)


def mean_absolute_error(mechanism: Mechanism) -> Interval:
    """Enclose the average over the released coordinates of E|released − true|.

    Raises NotApplicableError for a law of which it is not known.
    """
    return enclose(mechanism.mean_absolute_error)


def probability_exact(mechanism: Mechanism) -> Interval:
    """Enclose P(released = true) for one coordinate; 0 for a law with a density.

    Raises NotApplicableError for a law of which it is not known.
    """
    return enclose(mechanism.probability_exact)


def absolute_quantile(mechanism: Mechanism, level: Number) -> Interval:
    """Enclose the least t with P(|released − true| ≤ t) ≥ level, for one coordinate.

    Raises NotApplicableError where the law is not symmetric, or not one scalar law.
    """
    return maximum_quantile(mechanism, level, coordinates=1)


def maximum_quantile(mechanism: Mechanism, level: Number, *, coordinates: int) -> Interval:
    """Enclose the least t with P(max_i |released_i − true_i| ≤ t) ≥ level.

    Parameters
    ----------
    mechanism
        The law of one coordinate, symmetric about 0. All have it and are independent.
    level
        A probability.
    coordinates
        d ≥ 1: all errors are at most t with probability P(|noise| ≤ t)^d.

    Raises
    ------
    NotApplicableError
        Where the law is not symmetric, the mechanism is not one scalar law, or d > 1 and its
        coordinates are dependent.
    UndecidedError
        Where level^{1/d} cannot be told from a jump of the distribution function.
    """
    p = probability("level", level)
    d = integer("coordinates", coordinates, least=1)
    if p.rational is None:
        raise expected("level", level, "to be rational")
    require_symmetric(mechanism)
    if d > 1 and mechanism.dimension > 1:
        raise NotApplicableError(
            f"The coordinates of {type(mechanism).__name__} are one joint law, so the quantile of "
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
        f"The {level} quantile of the largest of {d} errors could not be told from a jump."
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

"""How far an answer is off: mean absolute error, quantiles of the error, P(no error).

`accountant.utility` has variances and mean squared errors, which every mechanism knows by itself.
What is here is known for some laws only; the others raise NotApplicableError and say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import singledispatch
from itertools import count

from flint import arb

from accountant._validate import integer, probability
from accountant.errors import NotApplicableError, UndecidedError, expected
from accountant.interval import RELATIVE_WIDTH, Interval, ball, enclose
from accountant.mechanism import Mechanism
from accountant.mechanisms.composed import Composed
from accountant.mechanisms.correlated import CorrelatedGaussian
from accountant.mechanisms.discrete_gaussian import DiscreteGaussian
from accountant.mechanisms.discrete_laplace import DiscreteLaplace
from accountant.mechanisms.disjoint_groups import DisjointGroupsGaussian
from accountant.mechanisms.ellipse_base import EllipseMechanism
from accountant.mechanisms.elliptical import EllipticalGaussian
from accountant.mechanisms.gaussian import Gaussian
from accountant.mechanisms.general_gaussian import GeneralGaussian
from accountant.mechanisms.integer_noise import IntegerNoise
from accountant.mechanisms.kary_tree import KaryTree
from accountant.mechanisms.known_size import KnownSizeGaussian
from accountant.mechanisms.laplace import Laplace
from accountant.mechanisms.laplace_vector import LaplaceVector
from accountant.mechanisms.linear_counter import LinearCounter
from accountant.mechanisms.matrix_variate import MatrixVariateGaussian
from accountant.mechanisms.rank_one_gaussian import RankOneGaussian
from accountant.mechanisms.staircase import Staircase
from accountant.number import ExactReal, Number
from accountant.precision import ctx

_MOST_TERMS = 100_000
_ROOT_DIGITS = (40, 80, 160, 320)


def mean_absolute_error(mechanism: Mechanism) -> Interval:
    """Enclose the average over the released coordinates of E|released − true|.

    Raises NotApplicableError for a law of which it is not known.
    """
    return enclose(lambda: _absolute(mechanism))


def probability_exact(mechanism: Mechanism) -> Interval:
    """Enclose P(released = true) for one coordinate; 0 for a law with a density.

    Raises NotApplicableError for a law of which it is not known.
    """
    return enclose(lambda: _exact(mechanism))


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
    if isinstance(mechanism, Composed):
        for part, _ in mechanism.parts():
            require_symmetric(part)
        return
    if isinstance(mechanism, IntegerNoise):
        law, lowest = mechanism.probabilities, mechanism.lowest
        symmetric = lowest + mechanism.highest == 0 and law == law[::-1]
    else:
        symmetric = isinstance(mechanism, _SYMMETRIC)
    if not symmetric:
        raise NotApplicableError(
            f"The noise of {type(mechanism).__name__} is not known to be symmetric, so quantiles "
            "of its absolute error do not follow from its quantiles."
        )


_GAUSSIAN = (
    Gaussian,
    EllipticalGaussian,
    CorrelatedGaussian,
    DisjointGroupsGaussian,
    EllipseMechanism,
    GeneralGaussian,
    KnownSizeGaussian,
    MatrixVariateGaussian,
)
"""Mechanisms whose coordinates are Gaussian."""
_SYMMETRIC = (
    *_GAUSSIAN,
    Laplace,
    LaplaceVector,
    Staircase,
    DiscreteLaplace,
    DiscreteGaussian,
    RankOneGaussian,
    KaryTree,
    LinearCounter,
)


def _unknown(mechanism: Mechanism, what: str) -> NotApplicableError:
    return NotApplicableError(f"{what} of {type(mechanism).__name__} is not known in closed form.")


@singledispatch
def _absolute(mechanism: Mechanism) -> arb:
    """Return E|noise|, averaged over the coordinates."""
    if isinstance(mechanism, _GAUSSIAN):
        deviations = [entry.sqrt() for entry in mechanism.variances()]
        return _mean(deviations) * (2 / arb.pi()).sqrt()
    raise _unknown(mechanism, "The mean absolute error")


@_absolute.register
def _(mechanism: Composed) -> arb:
    total = sum((n * p.dimension * _absolute(p) for p, n in mechanism.parts()), start=arb(0))
    return total / mechanism.dimension


@_absolute.register
def _(mechanism: Laplace) -> arb:
    return mechanism.scale.ball()


@_absolute.register
def _(mechanism: LaplaceVector) -> arb:
    return mechanism.scale.ball()


@_absolute.register
def _(mechanism: DiscreteLaplace) -> arb:
    """Return 1/sinh(1/b)."""
    return 1 / (1 / mechanism.scale.ball()).sinh()


@_absolute.register
def _(mechanism: DiscreteGaussian) -> arb:
    return _discrete_gaussian(mechanism)[1]


@_absolute.register
def _(mechanism: Staircase) -> arb:
    return mechanism.mean_absolute_error()


@_absolute.register
def _(mechanism: IntegerNoise) -> arb:
    masses = enumerate(mechanism.probabilities, start=mechanism.lowest)
    return ball(sum((abs(z) * _rational(p) for z, p in masses), start=Fraction(0)))


@_absolute.register
def _(mechanism: RankOneGaussian) -> arb:
    """Return E|z| E|v_1| √σ_*, E|v_1| = Γ(M/2)/(√π Γ((M + 1)/2))."""
    m = arb(mechanism.dimension)
    direction = ((m / 2).lgamma() - ((m + 1) / 2).lgamma()).exp() / arb.pi().sqrt()
    return direction * (2 * ball(mechanism.sigma_star) / arb.pi()).sqrt()


@singledispatch
def _exact(mechanism: Mechanism) -> arb:
    """Return P(noise = 0) of one coordinate."""
    if isinstance(mechanism, (*_GAUSSIAN, Laplace, LaplaceVector, Staircase, RankOneGaussian)):
        return arb(0)
    raise _unknown(mechanism, "The probability of no error")


@_exact.register
def _(mechanism: Composed) -> arb:
    parts = mechanism.parts()
    if len(parts) > 1:
        raise _unknown(mechanism, "The probability of no error")
    return _exact(parts[0][0])


@_exact.register
def _(mechanism: DiscreteLaplace) -> arb:
    """Return tanh(1/2b)."""
    return (1 / (2 * mechanism.scale.ball())).tanh()


@_exact.register
def _(mechanism: DiscreteGaussian) -> arb:
    return _discrete_gaussian(mechanism)[0]


@_exact.register
def _(mechanism: IntegerNoise) -> arb:
    masses = dict(enumerate(mechanism.probabilities, start=mechanism.lowest))
    return ball(_rational(masses[0])) if 0 in masses else arb(0)


def _discrete_gaussian(mechanism: DiscreteGaussian) -> tuple[arb, arb]:
    """Return P(Z = 0) and E|Z|.

    Sums Σ z^j e^{−z²/2s}, z ≥ 1, are cut at N ≥ 2√s + 2: then each further term of either is at
    most r = (1 + 1/N) e^{−N/s} times the one before it. (z + 1)/z and e^{−(2z+1)/2s} both fall.
    """
    s = mechanism.parameter.ball()
    rate = 1 / (2 * s)
    start = int((2 * s.sqrt() + 2).upper().ceil().fmpz())
    if start > _MOST_TERMS:
        raise NotApplicableError(
            f"Expected a parameter of DiscreteGaussian below {_MOST_TERMS**2 // 4}, not "
            f"{mechanism.parameter}: its mean absolute error is summed term by term."
        )
    mass, first = arb(0), arb(0)
    tiny = arb(2) ** (-ctx.prec)
    for z in count(1):
        term = (-rate * z * z).exp()
        if z >= start:
            ratio = (1 + arb(1) / z) * (-z / s).exp()
            if ratio < 1 and z * term / (1 - ratio) < tiny * (1 + first):
                rest = (z * term / (1 - ratio)).upper()
                mass += arb(0, rest)
                first += arb(0, rest)
                break
        mass += term
        first += z * term
    normaliser = 1 + 2 * mass
    return 1 / normaliser, 2 * first / normaliser


def _mean(entries: Sequence[arb]) -> arb:
    return sum(entries, start=arb(0)) / len(entries)


def _rational(value: ExactReal) -> Fraction:
    assert value.rational is not None
    return value.rational

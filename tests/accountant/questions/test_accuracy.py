from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest

from accountant.core.mechanism import Mechanism
from accountant.errors import InvalidInputError, NotApplicableError
from accountant.mechanisms import (
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    EllipticalGaussian,
    Gaussian,
    IntegerNoise,
    KaryTree,
    Laplace,
    LaplaceVector,
    RandomizedResponse,
    RankOneGaussian,
    Staircase,
)
from accountant.numbers.interval import Interval
from accountant.questions.accuracy import (
    absolute_quantile,
    maximum_quantile,
    mean_absolute_error,
    probability_exact,
)

DIGITS = 50


def encloses(found: Interval, reference: mpmath.mpf) -> bool:
    """Whether the reference lies inside up to its own 40 digits, and the enclosure is narrow."""
    with mpmath.workdps(DIGITS):
        error = abs(reference) * mpmath.mpf(10) ** -40
        inside = (
            mpmath.mpf(str(found.lower)) - error
            <= reference
            <= mpmath.mpf(str(found.upper)) + error
        )
    width = found.relative_width
    return inside and width is not None and width <= Fraction(1, 10**29)


def absolute_moment(mechanism: Mechanism) -> mpmath.mpf:
    """E|noise| by another route than the closed forms: sums and integrals of the law."""
    match mechanism:
        case Gaussian(standard_deviation=s):
            knots = [0, s.mpf(), 5 * s.mpf(), 20 * s.mpf(), mpmath.inf]
            return 2 * mpmath.quad(lambda x: x * mpmath.npdf(x, 0, s.mpf()), knots)
        case Laplace(scale=b):
            knots = [0, 10, 100, mpmath.inf]
            return mpmath.quad(lambda x: x * mpmath.exp(-x / b.mpf()) / b.mpf(), knots)
        case DiscreteLaplace(scale=b):
            return ratio_of_sums(lambda z: mpmath.exp(-z / b.mpf()))
        case DiscreteGaussian(parameter=v):
            return ratio_of_sums(lambda z: mpmath.exp(-z * z / (2 * v.mpf())))
    raise AssertionError(mechanism)


def ratio_of_sums(mass: Callable[[mpmath.mpf], mpmath.mpf]) -> mpmath.mpf:
    total = mpmath.nsum(mass, [1, mpmath.inf], method="d")
    first = mpmath.nsum(lambda z: z * mass(z), [1, mpmath.inf], method="d")
    return 2 * first / (1 + 2 * total)


@pytest.mark.parametrize(
    "mechanism",
    [
        Gaussian(standard_deviation="1.3"),
        Laplace(scale="2.5"),
        DiscreteLaplace(scale="0.7"),
        DiscreteGaussian(parameter="2"),
        DiscreteGaussian(parameter="0.05"),
    ],
    ids=repr,
)
def test_the_mean_absolute_error_is_that_of_the_law(mechanism: Mechanism) -> None:
    with mpmath.workdps(DIGITS):
        assert encloses(mean_absolute_error(mechanism), absolute_moment(mechanism))


def test_rank_one_noise_has_the_mean_absolute_error_of_a_random_direction() -> None:
    found = mean_absolute_error(RankOneGaussian(dimension=3, sigma_star=4))
    with mpmath.workdps(DIGITS):  # |v_1| is uniform on [0, 1] in three dimensions
        assert encloses(found, 2 * mpmath.sqrt(2 / mpmath.pi) / 2)


def test_several_coordinates_are_averaged() -> None:
    ellipse = EllipticalGaussian(sensitivities=[1, 4], mu=1)
    with mpmath.workdps(DIGITS):
        mean = (mpmath.sqrt(5) + mpmath.sqrt(20)) / 2 * mpmath.sqrt(2 / mpmath.pi)
        assert encloses(mean_absolute_error(ellipse), mean)
    both = Composed([Laplace(scale=1), LaplaceVector(scale=4, shifts=[1, 1])])
    assert mean_absolute_error(both).lower == 3


def test_an_integer_law_is_summed_exactly() -> None:
    law = IntegerNoise(probabilities=["1/8", "1/2", "1/4", "1/8"], lowest=-1)
    assert mean_absolute_error(law) == Interval.of_exact(
        Fraction(1, 8) + Fraction(1, 4) + Fraction(1, 4)
    )
    assert probability_exact(law) == Interval.of_exact(Fraction(1, 2))


def test_the_probability_of_no_error() -> None:
    with mpmath.workdps(DIGITS):
        assert encloses(probability_exact(DiscreteLaplace(scale=2)), mpmath.tanh(mpmath.mpf(1) / 4))
        theta = mpmath.jtheta(3, 0, mpmath.exp(-mpmath.mpf(1) / 18))
        assert encloses(probability_exact(DiscreteGaussian(parameter=9)), 1 / theta)
    assert probability_exact(Gaussian(standard_deviation=1)) == Interval.of_exact(0)
    assert probability_exact(IntegerNoise(probabilities=[1], lowest=2)) == Interval.of_exact(0)


def test_the_quantile_of_the_absolute_error() -> None:
    with mpmath.workdps(DIGITS):
        found = absolute_quantile(Laplace(scale=2), "0.95")
        assert encloses(found, -2 * mpmath.log(mpmath.mpf(1) / 20))
    assert absolute_quantile(Laplace(scale=2), 0) == Interval.of_exact(0)
    # P(|Z| ≤ 1) = (1 − r)(1 + 2r + …)… for r = e^{-1/2}: checked by its two neighbours
    level = absolute_quantile(DiscreteLaplace(scale=2), "0.95")
    r = math.exp(-0.5)
    inside = [1 - 2 * r ** (t + 1) / (1 + r) for t in range(20)]
    assert level.lower == level.upper == next(t for t in range(20) if inside[t] >= 0.95)


def test_the_largest_of_independent_errors() -> None:
    with mpmath.workdps(DIGITS):
        root = mpmath.mpf("0.95") ** (mpmath.mpf(1) / 10)
        found = maximum_quantile(Laplace(scale=2), "0.95", coordinates=10)
        assert encloses(found, -2 * mpmath.log(1 - root))
    one = maximum_quantile(DiscreteGaussian(parameter=9), "0.9", coordinates=1)
    many = maximum_quantile(DiscreteGaussian(parameter=9), "0.9", coordinates=1000)
    assert one.upper < many.lower <= Decimal(15)


def test_what_is_not_known_is_said() -> None:
    with pytest.raises(NotApplicableError, match="KaryTree"):
        mean_absolute_error(KaryTree(steps=10, arity=3, epsilon=1))
    with pytest.raises(NotApplicableError, match="RandomizedResponse"):
        probability_exact(RandomizedResponse(epsilon=1))
    with pytest.raises(NotApplicableError, match="symmetric"):
        absolute_quantile(IntegerNoise(probabilities=["1/2", "1/2"], lowest=0), "0.9")
    with pytest.raises(NotApplicableError, match="joint law"):
        maximum_quantile(LaplaceVector(scale=1, shifts=[1, 1]), "0.9", coordinates=2)
    with pytest.raises(NotApplicableError, match="term by term"):
        mean_absolute_error(DiscreteGaussian(parameter=10**12))
    with pytest.raises(InvalidInputError, match="coordinates=0"):
        maximum_quantile(Laplace(scale=1), "0.9", coordinates=0)
    with pytest.raises(InvalidInputError, match="level"):
        absolute_quantile(Laplace(scale=1), "1.5")


def test_the_staircase_has_its_own_moment() -> None:
    law = Staircase(epsilon=1, gamma="0.4", sensitivity=2)
    twice = mean_absolute_error(Staircase(epsilon=1, gamma="0.4"))
    assert mean_absolute_error(law).ball().overlaps(2 * twice.ball())

"""Additive noise: moments, quantiles and the probability of no error are those of its law."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath
import pytest
from mpmath import mpf

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError, NotApplicableError
from dpassay.accountant.mechanisms import (
    CorrelatedGaussian,
    IntegerNoise,
    Laplace,
    RandomizedResponse,
    RankOneGaussian,
)
from dpassay.accountant.notation import parse
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import accuracy
from dpassay.accountant.questions import accuracy as utility
from tests.quick import quick

LEVELS = ("1e-300", "1e-3", "0.2", "1/2", "0.51", "sqrt(0.8)", "0.9999", 1 - Fraction(1, 10**100))
INFINITY = Decimal("Infinity")


def staircase(epsilon: str, gamma: str) -> Callable[[mpf], mpf]:
    """The density in units of the sensitivity, from the definition of its authors."""

    def density(x: mpf) -> mpf:
        steps, b = mpmath.floor(x), mpmath.exp(-exact(epsilon).mpf())
        return b**steps * (1 if x - steps < exact(gamma).mpf() else b)

    return density


def geometric(scale: str) -> Callable[[int], mpf]:
    return lambda z: mpmath.exp(-abs(z) / exact(scale).mpf())


def normal(parameter: str) -> Callable[[int], mpf]:
    return lambda z: mpmath.exp(-z * z / exact(parameter).mpf() / 2)


def skellam(variance: str) -> Callable[[int], mpf]:
    return lambda z: mpmath.besseli(abs(z), exact(variance).mpf())


# The density on x ≥ 0 up to a factor, in units of the scale, and where it has a kink.
REAL: dict[str, tuple[str, Callable[[mpf], mpf], list[str]]] = {
    "Gaussian(standard_deviation='1.3')": ("1.3", lambda x: mpmath.exp(-x * x / 2), []),
    "Laplace(scale='sqrt(3)')": ("sqrt(3)", lambda x: mpmath.exp(-x), []),
    "Logistic(scale=3)": ("3", lambda x: mpmath.exp(-x) / (1 + mpmath.exp(-x)) ** 2, []),
    "TruncatedLaplace(scale='0.7', bound=2)": (
        "0.7", lambda x: mpmath.exp(-x) if x <= mpf(2) / mpf("0.7") else mpf(0), ["20/7"],
    ),
    **{
        f"Staircase(epsilon='{e}', gamma='{g}', sensitivity='{s}')": (
            s, staircase(e, g), [str(Fraction(k) + Fraction(g)) for k in range(90)]
            + [str(k) for k in range(1, 90)],
        )
        for e, g, s in (("1", "1/4", "1"), ("2", "9/10", "sqrt(2)"), ("4", "1", "2"))
    },
}  # fmt: skip
WHOLE: dict[str, Callable[[int], mpf]] = {
    **{f"DiscreteLaplace(scale='{b}')": geometric(b) for b in ("0.3", "2", "sqrt(50)")},
    **{f"DiscreteGaussian(parameter='{v}')": normal(v) for v in ("0.05", "2", "30")},
    **{f"Skellam(variance='{v}')": skellam(v) for v in ("0.05", "9")},
}
REACH = 3000
"""Beyond it no mass here is above 1e-180 of the whole."""


def integral(function: Callable[[mpf], mpf], low: mpf, kinks: list[str]) -> mpf:
    inner = sorted(k for k in (exact(kink).mpf() for kink in kinks) if k > low)
    ends = [*inner, *([] if kinks else [low + step for step in (1, 5, 20, 80)])]
    tail = [] if kinks else [mpmath.inf]
    pieces = pairwise([low, *ends, *tail])
    if len(kinks) > 1:  # constant in between, times x² at most: two points are exact
        near = (1 - 1 / mpmath.sqrt(3)) / 2
        return mpmath.fsum(
            (b - a) * (function(a + near * (b - a)) + function(b - near * (b - a))) / 2
            for a, b in pieces
        )
    return mpmath.fsum(mpmath.quad(function, ab) for ab in pieces)


def mpf_of(value: Interval) -> mpf:
    return (mpf(str(value.lower)) + mpf(str(value.upper))) / 2


def close(found: Interval, known: mpf, relative: str = "1e-25") -> bool:
    return bool(abs(mpf_of(found) - known) <= mpf(relative) * abs(known))


@pytest.mark.parametrize("text", REAL)
def test_moments_and_quantiles_of_real_noise(text: str) -> None:
    scale, density, kinks = REAL[text]
    mechanism: Any = parse(text)
    with mpmath.workdps(40):
        half, unit = integral(density, mpf(0), kinks), exact(scale).mpf()

        def mean(power: int) -> mpf:
            return unit**power * integral(lambda x: x**power * density(x), mpf(0), kinks) / half

        assert close(accuracy.mean_absolute_error(mechanism), mean(1))
        assert close(utility.mean_squared_error(mechanism), mean(2))
        assert close(utility.variance(mechanism)[0], mean(2))
        for level in LEVELS[:-1]:
            x, p = mpf_of(utility.quantile(mechanism, level)) / unit, exact(level).mpf()
            if kinks and min(p, 1 - p) < mpf("1e-20"):
                continue  # beyond the places that are written out, or of the bounded noise
            far = density(abs(x))  # quadrature errs in proportion to 1
            beyond = far * integral(lambda y: density(y) / far, abs(x), kinks) / half / 2  # noqa: B023
            assert abs(beyond / min(p, 1 - p) - 1) <= mpf("1e-20")
            assert (x > 0) == (p > mpf(1) / 2)
    assert accuracy.probability_exact(mechanism) == Interval.of_exact(0)


@pytest.mark.parametrize("text", quick(WHOLE, 0, 1, 3, 4, 5))
def test_moments_and_quantiles_of_integer_noise(text: str) -> None:
    mechanism: Any = parse(text)
    with mpmath.workdps(60):
        masses = {z: WHOLE[text](z) for z in range(-REACH, REACH + 1)}
        total = mpmath.fsum(masses.values())
        for power, found in (
            (1, accuracy.mean_absolute_error(mechanism)),
            (2, utility.mean_squared_error(mechanism)),
            (2, utility.variance(mechanism)[0]),
        ):
            terms = (abs(z) ** power * mass for z, mass in masses.items())
            assert close(found, mpmath.fsum(terms) / total)
        assert close(accuracy.probability_exact(mechanism), masses[0] / total)
        for level in LEVELS[1:-1]:
            found = utility.quantile(mechanism, level)
            assert found.lower == found.upper
            x = int(found.lower)
            below = mpmath.fsum(mass for z, mass in masses.items() if z < x) / total
            assert below < exact(level).mpf() <= below + masses[x] / total


def test_a_law_of_few_integers_is_summed_exactly() -> None:
    law = IntegerNoise(["1/8", 0, "1/2", "1/4", "1/8"], lowest=-2)
    assert law.mean() == Fraction(1, 4)
    assert Fraction(5, 4) - Fraction(1, 16) in utility.variance(law)[0]
    assert Fraction(5, 4) in utility.mean_squared_error(law)
    assert accuracy.mean_absolute_error(law) == Interval.of_exact(Fraction(3, 4))
    assert accuracy.probability_exact(law) == Interval.of_exact(Fraction(1, 2))
    levels = ("1/8", "0.126", "5/8", "0.63", "7/8", "1")
    assert [int(utility.quantile(law, p).lower) for p in levels] == [-2, 0, 0, 1, 1, 2]
    assert utility.quantile(law, 0).upper == -INFINITY


def test_several_coordinates() -> None:
    with mpmath.workdps(40):  # |v_1| is uniform on [0, 1] in three dimensions
        rank_one: Mechanism = RankOneGaussian(dimension=3, sigma_star=4)
        assert close(accuracy.mean_absolute_error(rank_one), mpmath.sqrt(2 / mpmath.pi))
        ellipse: Any = parse("EllipticalGaussian(sensitivities=[1, 4], mu=1)")
        mean = (mpmath.sqrt(5) + mpmath.sqrt(20)) / 2 * mpmath.sqrt(2 / mpmath.pi)
        assert close(accuracy.mean_absolute_error(ellipse), mean)
        root = mpf("0.95") ** (mpf(1) / 10)
        ten = accuracy.maximum_quantile(Laplace(scale=2), "0.95", coordinates=10)
        assert close(ten, -2 * mpmath.log(1 - root))
        assert close(
            accuracy.absolute_quantile(Laplace(scale=2), "0.95"), -2 * mpmath.log(mpf("0.05"))
        )
    both: Any = parse("Composed([Laplace(scale=1), LaplaceVector(scale=4, shifts=[1, 1])])")
    assert accuracy.mean_absolute_error(both).lower == 3
    vector: Any = parse("LaplaceVector(scale=3, shifts=[1, 2])")
    matrix = utility.covariance(vector)
    assert [[18 in entry for entry in row] for row in matrix] == [[True, False], [False, True]]
    noise: Any = parse("DiscreteGaussian(parameter=9)")
    one, many = (accuracy.maximum_quantile(noise, "0.9", coordinates=n) for n in (1, 1000))
    assert one.upper < many.lower <= Decimal(15)


@pytest.mark.parametrize(
    ("ask", "text", "said"),
    [
        (accuracy.mean_absolute_error, "KaryTree(steps=10, arity=3, epsilon=1)", "KaryTree"),
        (accuracy.mean_absolute_error, "DiscreteGaussian(parameter=1000000000000)", "term by term"),
        (accuracy.probability_exact, "RandomizedResponse(epsilon=1)", "RandomizedResponse"),
        (
            lambda m: accuracy.absolute_quantile(m, "0.9"),
            "IntegerNoise(probabilities=['1/2', '1/2'], lowest=0)", "symmetric",
        ),
        (
            lambda m: accuracy.maximum_quantile(m, "0.9", coordinates=2),
            "LaplaceVector(scale=1, shifts=[1, 1])", "joint law",
        ),
        (
            lambda m: accuracy.maximum_quantile(m, "0.9", coordinates=0),
            "Laplace(scale=1)", "coordinates=0",
        ),
        (lambda m: utility.quantile(m, "1.5"), "Laplace(scale=1)", r"level='1.5' in \[0, 1\]"),
        (lambda m: utility.quantile(m, "1/2"), repr(RandomizedResponse(1)), "has no quantile"),
        (utility.variance, "Guaranteed(epsilon=1)", "variance is not known"),
        (utility.variance, "TruncatedGeometric(scale=3, low=-1, high=2)", r"variance_at\(count\)"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_said(ask: Callable[[Any], object], text: str, said: str) -> None:
    with pytest.raises((NotApplicableError, InvalidInputError), match=said):
        ask(parse(text))


def test_a_million_coordinates_have_as_many_variances() -> None:
    """(√d + 1)²/4 for each of d counts, and (√d + 1) for the number of records; μ = 1."""
    *counts, size = utility.variance(CorrelatedGaussian(dimension=10**6, mu=1))
    assert len(counts) == 10**6
    assert set(counts) == {Interval.of_exact(Fraction(1001**2, 4))}
    assert size == 1001


def test_equal_entries_of_a_covariance_have_one_enclosure() -> None:
    """Var η = (√d + 1)/4 between counts, twice that with the size, and (√d + 1)²/4 of a count."""
    d, eta = 400, Fraction(21, 4)
    matrix = utility.covariance(CorrelatedGaussian(dimension=d, mu=1))
    for i, j, true in ((0, 0, 21**2 * Fraction(1, 4)), (7, 399, eta), (3, d, 2 * eta),
                       (d, 3, 2 * eta), (d, d, 4 * eta)):  # fmt: skip
        assert true in matrix[i][j]
        assert matrix[i][j].relative_width == 0


def test_a_covariance_that_is_too_long_is_refused() -> None:
    """A matrix of 10¹² entries is no answer."""
    with pytest.raises(NotApplicableError, match="1000000 x 1000000 entries"):
        utility.covariance(CorrelatedGaussian(dimension=10**6, mu=1))

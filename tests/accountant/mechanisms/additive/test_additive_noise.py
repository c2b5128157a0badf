from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpassay
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.density.pieces import pieces, second_rise
from dpassay.accountant.density.ranges import Ranges
from dpassay.accountant.density.text import read
from dpassay.accountant.errors import InvalidInputError, NotApplicableError, UndecidedError
from dpassay.accountant.mechanisms import (
    AdditiveNoise,
    Composed,
    Gaussian,
)
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.pairs.own_density import OwnDensityPair
from dpassay.accountant.questions import accuracy, profile
from dpassay.accountant.questions import accuracy as utility
from tests.near import narrow
from tests.quick import quick

FALSE_ALARM = 1e-6


@pytest.mark.parametrize(
    ("density", "largest"),
    [
        ("exp(-abs(x))", "1"),
        ("exp(-x)/(1+exp(-x))**2", "1"),
        ("1/cosh(2*x)", "2"),
        ("exp(-abs(x)**3)", None),
    ],
)
def test_a_pure_guarantee_is_exact(density: str, largest: str | None) -> None:
    found = profile.epsilon(AdditiveNoise(density), 0)
    if largest is None:
        assert not found.lower.is_finite()
    else:
        assert found == Interval.of_exact(int(largest))
        assert profile.delta(AdditiveNoise(density), largest) == Interval.of_exact(0)


ONE_MODE = [
    "exp(-x**4)",
    "exp(-(x-1/3)**4)",
    "exp(-sqrt(abs(x)))",
    "1/cosh(x)",
    "max(1-x**2,0)**2",
    "max(1-x**2/2,0)",
    "(abs(x)<1)",
    "1 if x < 2 and x > -1 else 0",
    "exp(-x-exp(-x))",
    "(sqrt(x)*exp(-x)) if x > 0 else 0",
    "min(1, 1/x**2)",
    "exp(-abs(x))*(2 if x > 0 else 1)",
    "0.5*exp(-x**2/2)+0.5*exp(-(x-1.9)**2/2)",
    "exp(-abs(x)+abs(x)/x)",
    "1/(1+max(0,x**2-2)**1.5)",
    "1/(1+max(0,abs(x)-1)**(1/2))**4",
]
SEVERAL = [
    "exp(-(x-3)**2/2)+exp(-(x+3)**2/2)",
    "0.5*exp(-x**2/2)+0.5*exp(-(x-2.1)**2/2)",
    "(abs(x)<1)+0.5*(abs(x-3)<1)",
    "x**2*exp(-x**2)",
    "exp(-abs(x))*(1 if x < 1 else 2)",
    "exp(-abs(x)+3*max(0,x-1)/(x-1))",
    "exp(-abs(x+1)+abs(x)/x)",
    "exp(-abs(x+1)+3*sqrt(max(0,x-1)/(x-1)))",
    "exp(-abs(x)) if x < 1 else exp(-x+(x-1)/(x**2-1))",
    "exp(-abs(x+1))*(1+1/(1+exp(-1/x)) if x > 0 else exp(x)*(1+1/(1+exp(-1/x))))",
]


@pytest.mark.parametrize("density", ONE_MODE)
def test_one_mode_is_proved(density: str) -> None:
    assert second_rise(pieces(read(density, "density"), "density")) is None


@pytest.mark.parametrize("density", SEVERAL)
def test_several_modes_are_refused(density: str) -> None:
    with pytest.raises(InvalidInputError, match=r"one mode|be bounded"):
        AdditiveNoise(density)


SYMMETRIC = [
    "exp(-abs(x-1/3)**3)",
    "exp(-(x**2-4*x+4)**2)",
    "(1 if x < 1 else 2 if x < 2 else 1) if x > 0 and x < 3 else 0",
    "1/cosh(x-2)",
]


@pytest.mark.parametrize("density", SYMMETRIC)
def test_a_density_that_is_symmetric_about_any_point_has_one_side(density: str) -> None:
    assert len(AdditiveNoise(density).worst_case(None).remove) == 1
    for epsilon in (Fraction(0), Fraction(1, 3), Fraction(2)):
        one, other = (
            OwnDensityPair(density, Fraction(3, 4), mirrored).hockey_stick(
                ExactReal.of_rational(epsilon)
            )
            for mirrored in (False, True)
        )
        assert one.overlaps(other)


@pytest.mark.parametrize(
    "density", ["exp(-x-exp(-x))", "(1 if x < 1 else 2 if x < 2 else 1) if x > 0 and x < 4 else 0"]
)
def test_a_lopsided_density_has_two_sides(density: str) -> None:
    assert len(AdditiveNoise(density).worst_case(None).remove) == 2


def test_heavy_tails_have_no_moments() -> None:
    cauchy, student = AdditiveNoise("1/(1+x**2)"), AdditiveNoise("(1+x**2/3)**-2")
    assert not accuracy.mean_absolute_error(cauchy).upper.is_finite()
    assert not utility.mean_squared_error(cauchy).lower.is_finite()
    assert utility.variance(student)[0].overlaps(Interval.of_exact(3))
    assert abs(float(utility.quantile(cauchy, "3/4")) - 1) < 1e-15


@pytest.mark.parametrize(
    ("density", "median"),
    [
        ("exp(-(x-4)**2)", 4),
    ],
)
def test_the_median_is_the_least_number_below_which_half_lies(density: str, median: int) -> None:
    assert utility.quantile(AdditiveNoise(density), "1/2") == Interval.of_exact(median)


@pytest.mark.parametrize(
    ("density", "level"),
    [("(x**2<2)*1", 0), ("(x**2<2)*exp(-x)", 0)],
)
def test_a_quantile_at_an_irrational_end_is_enclosed(density: str, level: str) -> None:
    with mpmath.workdps(120):
        for digits in (12, 70, 85):
            try:
                width = Fraction(1, 10**digits)
                found = utility.quantile(AdditiveNoise(density), level, relative_width=width)
            except UndecidedError:
                continue
            low, high = mpmath.mpf(str(found.lower)), mpmath.mpf(str(found.upper))
            assert low <= -mpmath.sqrt(2) <= high


@pytest.mark.parametrize("density", ["exp(-abs(x)**3)", "1/(1+x**2)", "exp(-x) if x>0 else 0"])
def test_draws_have_the_distribution(density: str) -> None:
    made, size = AdditiveNoise(density, scale=2), 40_000
    # DKW: 2e^{−2nt²} = FALSE_ALARM
    bound = np.sqrt(np.log(2 / FALSE_ALARM) / (2 * size))
    drawn = np.sort(made.sample(size, rng=np.random.default_rng(3)))
    for level in ("1/100", "1/4", "1/2", "9/10", "999/1000"):
        x = float(utility.quantile(made, level))
        assert abs(np.searchsorted(drawn, x) / size - Fraction(level)) <= bound


@given(st.floats(-30, 30), st.floats(0, 5), st.sampled_from([*ONE_MODE, *SEVERAL]))
@settings(max_examples=60)
def test_ranges_contain_the_values(low: float, width: float, density: str) -> None:
    for part in pieces(read(density, "density"), "density").parts:
        a = low if part.low is None else max(low, float(part.low.high))
        b = low + width if part.high is None else min(low + width, float(part.high.low))
        if part.is_zero or not a < b:
            continue
        for tree in (part.tree, part.log, part.slope, part.bend):
            least, most = Ranges(np.array([a]), np.array([b]), part.known)(tree)
            for x in np.linspace(a, b, 7)[1:-1]:
                one, other = Ranges(np.array([x]), np.array([x]), part.known)(tree)
                assert least[0] <= other[0]
                assert one[0] <= most[0]


@pytest.mark.slow
def test_a_slope_that_tends_to_its_bound_tells_a_pure_guarantee_from_a_smaller_one() -> None:
    """−(ln f)′ = x/√(1 + x²) < 1 tends to 1, so ε(0) = 1, and no claim below it holds."""
    noise = AdditiveNoise("exp(-sqrt(1+x**2))")
    found = dpassay.epsilon(noise, delta=0)
    assert found.lower <= 1 <= found.upper
    assert found.upper - found.lower < Decimal("1e-4")
    assert dpassay.verify(noise, epsilon="0.99").verdict.value == "REFUTED"
    assert dpassay.verify(noise, epsilon="1.01").verdict.value == "HOLDS"


def test_a_density_is_not_released() -> None:
    with pytest.raises(NotApplicableError, match="no lattice sampler"):
        AdditiveNoise("exp(-abs(x))").release(0.0)


DENSITY = AdditiveNoise("exp(-x**2/2)", scale=4), Gaussian(4)


@pytest.mark.slow  # two densities on cells
def test_a_density_without_symmetry_is_composed() -> None:
    found = profile.epsilon(Composed(AdditiveNoise("exp(-x-exp(-x))"), 10), "1e-6")
    assert narrow(found, Fraction(1, 50))
    one = profile.epsilon(AdditiveNoise("exp(-x-exp(-x))"), "1e-6")
    assert one.upper < found.lower


WITH = Gaussian(3)
COMPOSED: list[tuple[Mechanism, Mechanism]] = [
    (Composed(DENSITY[0], 8), Composed(DENSITY[1], 8)),
    (Composed([DENSITY[0], WITH]), Composed([DENSITY[1], WITH])),
]


@pytest.mark.parametrize(("own", "known"), quick(COMPOSED, 1))
def test_compositions_of_known_laws_have_their_answers(own: Mechanism, known: Mechanism) -> None:
    found = profile.delta(own, "1")
    assert narrow(found, Fraction(1, 1000))  # atoms of the loss lie between grid points
    assert found.overlaps(profile.delta(known, "1"))
    assert profile.delta(own, profile.epsilon(known, "1e-5").lower).upper >= Decimal("1e-5")

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.mechanisms import (
    Gaussian,
    Laplace,
    RandomizedResponse,
    Staircase,
    Tabulated,
)
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import profile
from tests.near import narrow

WIDTH = Fraction(1, 10**30)
SMOOTH: list[Mechanism] = [Gaussian(1), Gaussian("0.001"), Gaussian(100), Laplace("0.5")]
BOUNDED: list[Mechanism] = [Laplace("0.5"), Staircase("2", "0.3"), RandomizedResponse("2", 5)]
INFINITE = Interval(Decimal("Infinity"), Decimal("Infinity"))


@pytest.mark.parametrize("mechanism", [*SMOOTH, *BOUNDED], ids=str)
@pytest.mark.parametrize("epsilon", ["-30", "-1", "-1e-300", "0", "1e-300", "1"])
def test_logarithm_and_complement_agree_with_delta(mechanism: Mechanism, epsilon: str) -> None:
    delta = profile.delta(mechanism, epsilon)
    rest = profile.delta_complement(mechanism, epsilon)
    log = profile.log_delta(mechanism, epsilon)
    assert narrow(delta, WIDTH)
    assert narrow(rest, WIDTH)
    assert narrow(log, WIDTH) or log.upper == 0
    assert Fraction(delta.lower) + Fraction(rest.lower) <= 1
    assert Fraction(delta.upper) + Fraction(rest.upper) >= 1
    with mpmath.workdps(60):
        value = mpmath.log(mpmath.mpf(str(delta.lower)))
        assert abs(value - mpmath.mpf(str(log.lower))) <= mpmath.mpf("1e-28") * (1 + abs(value))


@pytest.mark.parametrize("mechanism", BOUNDED, ids=str)
def test_beyond_the_largest_loss_delta_is_zero(mechanism: Mechanism) -> None:
    assert 2 in profile.epsilon(mechanism, 0)
    assert profile.delta(mechanism, 2) == Interval.of_exact(0)
    assert profile.log_delta(mechanism, 3).upper == Decimal("-Infinity")
    assert 1 in profile.delta_complement(mechanism, 2)
    # below −2 only the mass that Q misses remains: 1 − e^ε
    assert profile.delta(mechanism, -2).overlaps(profile.delta(Laplace(10), -2))


def test_epsilon_at_the_ends() -> None:
    assert profile.epsilon(Gaussian(1), 0) == INFINITE
    assert profile.signed_epsilon(Gaussian(1), 1).upper == Decimal("-Infinity")
    assert profile.signed_epsilon(Laplace(1), 1).upper == Decimal("-Infinity")


def test_epsilon_beside_the_mass_at_infinity() -> None:
    """The inverse jumps at δ = P(L = ∞): nearer than any fixed width must still be told apart."""
    table = Tabulated([0, "1/2", "1/2"], ["1/2", "1/2", 0])
    mass, nearly = Fraction(1, 2), Fraction(1, 10**60)
    assert profile.signed_epsilon(table, mass - nearly) == INFINITE
    assert profile.signed_epsilon(table, mass) == Interval.of_exact(0)  # the largest finite loss
    above = profile.signed_epsilon(table, mass + nearly)
    assert above.upper < 0
    assert above.lower > Decimal("-1e-59")


def test_adjacency_is_read_and_checked() -> None:
    by_name = profile.delta(Gaussian(1), 1, adjacency="add-remove")
    assert by_name == profile.delta(Gaussian(1), 1, adjacency=Adjacency.REPLACE_ONE)


def test_bad_epsilon_and_width() -> None:
    assert profile.delta(Gaussian(1), 1, relative_width="2").overlaps(profile.delta(Gaussian(1), 1))
    deep = Fraction(1, 10**3000)
    assert narrow(profile.delta(Gaussian(1), 1, relative_width=deep), deep)

"""Few draws of listed losses: beside double sums in mpmath, exact sums and other engines."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import pytest

from accountant.composition.choose import product
from accountant.composition.exact.paired import Halves
from accountant.composition.grid.product import GRID
from accountant.composition.product import Factor, Product
from accountant.core.adjacency import Adjacency, Direction
from accountant.core.mechanism import Mechanism
from accountant.mechanisms import Composed, DiscreteGaussian, PoissonSubsampled, Tabulated
from accountant.numbers.exact import exact
from accountant.numbers.interval import Interval, enclose
from accountant.questions import profile
from tests.near import narrow
from tests.quick import quick

RELATION = Adjacency.ADD_REMOVE
COARSE = Fraction(1, 100)
WIDTH = Fraction(1, 10**9)


def sampled(parameter: str, share: str) -> PoissonSubsampled:
    return PoissonSubsampled(DiscreteGaussian(parameter=parameter), share)


def factors(*parts: tuple[Mechanism, int], add: bool = False) -> tuple[Factor, ...]:
    cases = [(part.worst_case(RELATION), count) for part, count in parts]
    return tuple(((case.add if add else case.remove)[0], count) for case, count in cases)


def value(parts: tuple[Factor, ...], epsilon: str, width: Fraction = WIDTH) -> Interval:
    eps = exact(epsilon)
    return enclose(lambda: Product(parts, Halves()).hockey_stick(eps), relative_width=width)


def by_all_outcomes(
    parameter: int, share: str, count: int, epsilon: str, *, add: bool = False, reach: int
) -> mpmath.mpf:
    """Σ (P − e^ε Q)⁺ over all outcomes within the reach, by no list and no order of losses."""
    with mpmath.workdps(60):
        v, q = mpmath.mpf(parameter), mpmath.mpf(share)
        weights = {z: mpmath.exp(-z * z / (2 * v)) for z in range(-reach - 1, reach + 1)}
        whole = mpmath.fsum(mpmath.exp(-z * z / (2 * v)) for z in range(-9 * reach, 9 * reach + 1))
        without = {z: weights[z] / whole for z in range(-reach, reach + 1)}
        mixed = {z: (1 - q) * without[z] + q * weights[z - 1] / whole for z in without}
        rows = [(without[z], mixed[z]) if add else (mixed[z], without[z]) for z in without]
        growth = mpmath.exp(mpmath.mpf(epsilon))
        total = mpmath.mpf(0)
        for chosen in itertools.product(rows, repeat=count):
            excess = mpmath.fprod(p for p, _ in chosen) - growth * mpmath.fprod(
                q for _, q in chosen
            )
            total += max(excess, mpmath.mpf(0))
        return total


def contains(found: Interval, true: mpmath.mpf) -> bool:
    """Whether the value is inside, whose own error is below 1e-15 of it."""
    with mpmath.workdps(60):
        low, high = mpmath.mpf(str(found.lower)), mpmath.mpf(str(found.upper))
        return bool(
            low <= true * (1 + mpmath.mpf("1e-15")) and true <= high * (1 + mpmath.mpf("1e-15"))
        )


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize(
    ("parameter", "share", "count", "epsilon", "reach"),
    quick(
        [
            (4, "0.01", 2, "0.67", 45),  # about 1e-20
            (1, "0.001", 2, "2.2", 24),
            (1, "0.1", 2, "-0.02", 20),
            (1, "0.01", 3, "0.9", 18),
        ],
        1,
        2,
    ),
)
def test_the_sum_over_all_outcomes_is_inside(
    parameter: int, share: str, count: int, epsilon: str, reach: int, *, add: bool
) -> None:
    parts = factors((sampled(str(parameter), share), count), add=add)
    found = value(parts, epsilon, Fraction(1, 10**12))
    assert contains(found, by_all_outcomes(parameter, share, count, epsilon, add=add, reach=reach))


@pytest.mark.parametrize(
    ("parameter", "share", "count", "log_delta", "reach"),
    quick([(4, "0.01", 2, -20, 45), (1, "0.001", 2, -20, 24), (1, "0.01", 3, -6, 18)], 1),
)
def test_epsilon_is_between_two_sums(
    parameter: int, share: str, count: int, log_delta: int, reach: int
) -> None:
    """These were refused, where a rare loss is as likely as what a tilt shows of many."""
    steps = Composed(sampled(str(parameter), share), count)
    found = profile.epsilon(steps, f"1e{log_delta}", adjacency=RELATION, relative_width=WIDTH)
    assert narrow(found, WIDTH)
    target = mpmath.mpf(10) ** log_delta
    ends = [
        by_all_outcomes(parameter, share, count, str(end), reach=reach)
        for end in (found.lower, found.upper)
    ]
    assert ends[0] >= target * (1 - mpmath.mpf("1e-15"))
    assert ends[1] <= target * (1 + mpmath.mpf("1e-15"))
    pair = Product(factors((sampled(str(parameter), share), count)), Halves())
    estimate = pair.estimate_epsilon(log_delta * math.log(10))
    assert estimate is not None
    assert estimate == pytest.approx(float(found.lower), rel=2e-9, abs=0)


@pytest.mark.slow
def test_sampled_noise_beside_unsampled_noise_and_lists() -> None:
    """Two laws, one of them on the lattice of integers, where equal sums are not told apart."""
    mixed = factors((sampled("2", "0.1"), 1), (DiscreteGaussian(parameter=3), 2))
    found = value(mixed, "1.25", Fraction(1, 10**20))
    lists = enclose(lambda: Product(mixed, GRID).hockey_stick(exact("1.25")), relative_width=COARSE)
    assert lists.lower <= found.lower
    assert found.upper <= lists.upper
    turned = value(mixed[::-1], "1.25", Fraction(1, 10**20))
    assert found.overlaps(turned)


def test_an_epsilon_on_the_lattice() -> None:
    """Sums equal to ε add nothing: DiscreteGaussian(1) has losses z − ½, in pairs any integer."""
    parts = factors((DiscreteGaussian(parameter=1), 2))
    found = value(parts, "3", Fraction(1, 10**20))
    true = enclose(
        lambda: product(parts).hockey_stick(exact(3)), relative_width=Fraction(1, 10**21)
    )
    assert found.overlaps(true)


@pytest.mark.parametrize("epsilon", ["-1", "0", "1", "3", "4.5"])
def test_halves_of_many_draws_against_all_sums(epsilon: str) -> None:
    """20 draws have 1,771 sums, 10 have 286; also the estimates, in floats."""
    law = Tabulated(p=["34/121", "30/121", "28/121", "29/121"], q=["5/17", "4/17", "3/17", "5/17"])
    parts = ((law.worst_case(None).remove[0], 20),)
    halves = Product(parts, Halves())
    whole = profile.log_delta(
        Composed(law, 20), epsilon, direction=Direction.REMOVE, relative_width=WIDTH
    )
    assert value(parts, epsilon).overlaps(
        profile.delta(Composed(law, 20), epsilon, direction=Direction.REMOVE, relative_width=WIDTH)
    )
    found = halves.estimate_log_delta(float(epsilon))
    assert found is not None
    assert math.isclose(found, float(whole.lower), rel_tol=1e-9, abs_tol=1e-12)
    back = halves.estimate_epsilon(found)
    assert back is not None
    assert math.isclose(back, float(epsilon), rel_tol=1e-7, abs_tol=1e-7)

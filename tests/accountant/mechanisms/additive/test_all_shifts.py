from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.mechanisms import AdditiveNoise, Composed, PoissonSubsampled, Tabulated
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.pairs import own_density
from dpassay.accountant.pairs.own_density import OwnDensityPair
from dpassay.accountant.pairs.shift_tables import ShiftTables
from dpassay.accountant.questions import profile
from tests.quick import quick

BUMPS = "exp(-x**2/2)+exp(-(x-3)**2/2)"
LAPLACE = "exp(-abs(x))+exp(-abs(x-4))/2"
STEPS = "steps((0,2),(1,1),(2,3),(3,1),(4,0))"
SEVERAL = [
    (BUMPS, Fraction(1, 10)),
    (LAPLACE, Fraction(2)),
    ("1/(1+x**2)+1/(1+(x-5)**2)", Fraction(1)),
    ("linear((-1,0),(0,1),(1,1/2),(2,1),(3,0))", Fraction(1)),
    (STEPS, Fraction(5, 2)),
]


@pytest.mark.parametrize(("density", "distance"), quick(SEVERAL, 4))
def test_the_table_dominates_every_shift_and_comes_near_the_worst(
    density: str, distance: Fraction
) -> None:
    table = ShiftTables(density, distance)
    (pair,) = table.worst_case(None).remove
    p, q = table.masses(0)
    assert abs(float(sum(p, start=arb(-1)))) < 1e-12  # some hundred balls of 53 bits
    assert sorted(float(mass) for mass in p) == sorted(float(mass) for mass in q)
    places = table.places
    for place in (
        places[0],
        (places[4] + places[5]) / 2,
        places[15],
        (places[20] + places[21]) / 2,
    ):
        epsilon = ExactReal.of_rational(place)
        ours = pair.hockey_stick(epsilon)
        largest = 0.0
        shares = Fraction(1), Fraction(2, 3), Fraction(1, 5)
        for share, mirrored in itertools.product(shares, (False, True)):
            shifted = OwnDensityPair(density, distance * share, mirrored)
            value = shifted.hockey_stick(epsilon)
            assert value.lower() <= ours.upper()
            largest = max(largest, float(value))
        for attained in table.below:
            largest = max(largest, float(attained.hockey_stick(epsilon)))
        assert float(ours) <= 1.05 * largest + 1e-9  # chords add up to 4 % here


def product_of_steps(shifts: Sequence[Fraction], epsilon: float) -> float:
    """Return the H of two releases of STEPS, each moved by its shift, from their tables."""
    heights, ends = [2, 1, 3, 1], [Fraction(k) for k in range(5)]
    laws = []
    for shift in shifts:
        edges = sorted({*ends, *(end + shift for end in ends)})
        rows = []
        for a, b in itertools.pairwise(edges):
            y = (a + b) / 2
            here = [heights[int(x)] if 0 <= x < 4 else 0 for x in (y - shift, y)]
            rows.append([float(height * (b - a)) / 7 for height in here])
        laws.append(np.array(rows).T)
    p, q = (np.outer(laws[0][i], laws[1][i]) for i in (0, 1))
    return float(np.maximum(p - np.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize("epsilon", quick(["0", "1/2", "2"], 2))
def test_two_releases_are_above_every_choice_of_two_shifts(epsilon: str) -> None:
    noise = AdditiveNoise(STEPS, sensitivity="5/2")
    found = profile.delta(Composed(noise, 2), epsilon)
    tried = [Fraction(k, 2) for k in range(-5, 6)]
    worst = max(
        product_of_steps(shifts, float(Fraction(epsilon)))
        for shifts in itertools.product(tried, repeat=2)
    )
    assert worst <= float(found.upper) * (1 + 1e-12)
    assert float(found.upper) <= 1.05 * worst
    assert found.lower <= found.upper


@pytest.mark.slow
def test_compositions_have_near_ends() -> None:
    noise = AdditiveNoise(BUMPS, sensitivity="1/10")
    found = profile.epsilon(Composed(noise, 10), "1e-6")
    assert float(found.upper / found.lower) < 1.01
    alone = profile.epsilon(noise, "1e-6")
    assert alone.upper < found.lower < 10 * alone.upper


def test_a_pure_guarantee_of_compositions_adds_up() -> None:
    found = profile.delta(Composed(AdditiveNoise(LAPLACE, sensitivity=2), 3), "6.1")
    assert found == Interval.of_exact(0)


def test_several_modes_compose_with_other_noise() -> None:
    table = Tabulated(p=["3/4", "1/4"], q=["1/4", "3/4"])
    noise = AdditiveNoise(BUMPS, sensitivity="1/10")
    found = profile.delta(Composed([noise, table]), "1/2")
    assert found.upper > profile.delta(table, "1/2").lower
    assert float(found.upper / found.lower) < 1.01


def test_a_sample_of_several_modes_is_not_known() -> None:
    with pytest.raises(NotApplicableError, match="not proved to have one mode"):
        PoissonSubsampled(AdditiveNoise(BUMPS), "1/10")


def test_what_is_reached_of_one_shift_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise UndecidedError("no", interval=Interval.of_ball(arb(0.5)))

    monkeypatch.setattr(own_density, "passes", refuse)
    pair = own_density.OwnShiftsPair(BUMPS, Fraction(1), mirrored=False)
    with pytest.raises(UndecidedError) as refusal:
        pair.inverse(ExactReal.of_rational(Fraction(1, 100)), Fraction(1, 10))
    assert refusal.value.interval is None

"""Sums over pairs of partial sums: against enumeration, exact sums and Fourier inversion."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant import profile
from accountant.adjacency import Adjacency
from accountant.composition import paired, product
from accountant.composition import tilted_lists as lists_module
from accountant.composition.atoms import AtomicPair
from accountant.composition.convolution import ConvolvedPair
from accountant.composition.finite import finite
from accountant.composition.half_lists import Draws, Half, Halves, TooLongError
from accountant.composition.half_sums import PairSums, cumulated, exponentials, total
from accountant.composition.halved import HalvedPair
from accountant.composition.joint import Factor
from accountant.composition.ladder import LadderPair
from accountant.composition.line import choose_line
from accountant.composition.paired import PairedPair
from accountant.composition.tilted_lists import tilted_lists
from accountant.errors import NotApplicableError, UndecidedError
from accountant.interval import Interval, ball, enclose
from accountant.mechanism import Mechanism
from accountant.mechanisms import (
    BoundedCountNoise,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    PoissonSubsampled,
    RandomizedResponse,
    Tabulated,
)
from accountant.number import exact

RELATION = Adjacency.ADD_REMOVE
WIDTH = Fraction(1, 10**9)
NARROW = BoundedCountNoise(epsilon="1.5", eta="1/2", support=4)
WIDE = BoundedCountNoise(epsilon=3, eta="1/2", support=8)
LEAKY = Tabulated(["1/2", "3/8", "1/8", 0], ["1/4", "1/4", 0, "1/2"])
SAMPLED = PoissonSubsampled(DiscreteLaplace(scale=1, sensitivity=2), "1/10")


def factors(*parts: tuple[Mechanism, int], add: bool = False) -> tuple[Factor, ...]:
    found = []
    for mechanism, count in parts:
        relation = None if isinstance(mechanism, (RandomizedResponse, Tabulated)) else RELATION
        case = mechanism.worst_case(relation)
        found.append(((case.add if add else case.remove)[0], count))
    return tuple(found)


def value(parts: tuple[Factor, ...], epsilon: str, width: Fraction = WIDTH) -> Interval:
    eps = exact(epsilon)
    return enclose(lambda: HalvedPair(parts).hockey_stick(eps), relative_width=width)


def by_lists(parts: tuple[Factor, ...], epsilon: str) -> arb:
    """The same, without another engine to fall back on."""
    with ctx.workprec(192):
        pair = HalvedPair(parts)
        if exact(epsilon).ball() >= pair.max_finite_loss():
            return pair.hockey_stick(exact(epsilon))
        return pair._at(exact(epsilon), tilted_lists(parts, float(exact(epsilon)), 1e-9))[0]


masses = st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(lambda row: sum(row) > 0)


@settings(max_examples=40, deadline=None)
@given(masses, masses, masses, st.integers(1, 4), st.sampled_from(["-0.7", "0", "0.21", "1.5"]))
def test_enumeration_of_all_outcomes(
    p: list[int], q: list[int], other: list[int], count: int, epsilon: str
) -> None:
    """Two laws of four outcomes, one of them drawn up to four times, the other once."""
    rows = [[Fraction(n, sum(row)) for n in row] for row in (p, q, other)]
    first, second = Tabulated(rows[0], rows[1]), Tabulated(rows[2], rows[1])
    found = by_lists(factors((first, count), (second, 1)), epsilon)
    pairs = [list(zip(rows[0], rows[1], strict=True))] * count
    pairs.append(list(zip(rows[2], rows[1], strict=True)))
    with ctx.workprec(256):
        growth, true = exact(epsilon).ball().exp(), arb(0)
        for choice in itertools.product(*pairs):
            mass = math.prod(a for a, _ in choice), math.prod(b for _, b in choice)
            true += (ball(mass[0]) - growth * ball(mass[1])).max(arb(0))
    assert found.overlaps(true)
    assert found.rad() < 1e-12


CASES: list[tuple[tuple[Factor, ...], str]] = [
    (factors((RandomizedResponse("0.1"), 50), (RandomizedResponse("0.1234567"), 50)), "2"),
    (factors((RandomizedResponse("0.1"), 50), (RandomizedResponse("0.1234567"), 50)), "11"),
    (factors((RandomizedResponse("0.1"), 50), (RandomizedResponse("0.1234567"), 50)), "-3"),
    (factors((NARROW, 10)), "9"),
    (factors((NARROW, 10)), "-2"),
    (factors((LEAKY, 6)), "0.3"),
    (factors((SAMPLED, 30)), "0.7"),
    (factors((SAMPLED, 30), add=True), "0.7"),
    (factors((SAMPLED, 20), (DiscreteLaplace(scale=3, sensitivity=2), 7)), "4"),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_the_exact_sum_is_inside(case: int) -> None:
    parts, epsilon = CASES[case]
    found = value(parts, epsilon, Fraction(1, 10**10))
    small = [(finite(pair), count) for pair, count in parts]
    sums = ConvolvedPair(tuple((pair, count) for pair, count in small if pair is not None))
    with ctx.workprec(256):
        true = Interval.of_ball(sums.hockey_stick(exact(epsilon)))
    assert found.lower <= true.lower
    assert true.upper <= found.upper


@pytest.mark.parametrize("log_delta", [-20, -50, -100])
def test_deep_tails(log_delta: int) -> None:
    parts = factors((RandomizedResponse("0.02"), 400), (RandomizedResponse("0.0123"), 30))
    found = HalvedPair(parts).inverse(exact(f"1e{log_delta}"), WIDTH)
    assert found.relative_width is not None
    assert found.relative_width <= WIDTH
    small = [(finite(pair), count) for pair, count in parts]
    sums = ConvolvedPair(tuple((pair, count) for pair, count in small if pair is not None))
    with ctx.workprec(512):
        target = arb(10) ** log_delta
        assert sums.hockey_stick(exact(found.lower)) >= target
        assert sums.hockey_stick(exact(found.upper)) <= target


@pytest.mark.parametrize(
    ("mechanism", "count", "epsilon", "delta"),
    [
        (NARROW, 100, "40", "0.2"),
        (NARROW, 100, "80", "0.156"),
        (WIDE, 10, "12", "1e-8"),
        (WIDE, 100, "90", "1e-5"),
        (WIDE, 100, "150", "0.9999"),
    ],
)
def test_count_noise_beside_inversion(
    mechanism: Mechanism, count: int, epsilon: str, delta: str
) -> None:
    parts = factors((mechanism, count))
    found = value(parts, epsilon)
    eps = exact(epsilon)
    other = enclose(lambda: AtomicPair(parts).hockey_stick(eps), relative_width=Fraction(1, 10**3))
    assert other.lower <= found.lower
    assert found.upper <= other.upper
    root = profile.epsilon(
        Composed(mechanism, count), delta, adjacency=RELATION, relative_width=WIDTH
    )
    # beside the root, by a thousandth, both engines are sure
    for step, side in ((Fraction(-1, 1000), 1), (Fraction(1, 1000), -1)):
        beside = exact(Fraction(root.lower) * (1 + step))
        near = enclose(
            lambda: AtomicPair(parts).hockey_stick(beside),  # noqa: B023
            relative_width=Fraction(1, 10**3),
        )
        assert near.lower <= Decimal(delta) if side < 0 else near.upper >= Decimal(delta)


def test_directions_and_order() -> None:
    first = value(factors((SAMPLED, 20), (NARROW, 12)), "4")
    assert first.overlaps(value(factors((NARROW, 12), (SAMPLED, 20)), "4"))
    assert first.overlaps(value(factors((NARROW, 7), (SAMPLED, 20), (NARROW, 5)), "4"))
    pair = HalvedPair(factors((SAMPLED, 20)))
    assert pair.reverse().reverse() == pair
    with ctx.workprec(192):  # H of (Q, P) at −ε: 1 − e^{−ε} + e^{−ε} H(ε)
        there, back = (
            side.hockey_stick(exact(eps)) for side, eps in ((pair, "0.4"), (pair.reverse(), "-0.4"))
        )
        shrink = (-exact("0.4").ball()).exp()
        assert back.overlaps(1 - shrink + shrink * there)


def test_long_lists_are_inverted() -> None:
    parts = factors((PoissonSubsampled(DiscreteGaussian(parameter=25), "0.01"), 100))
    with ctx.workprec(192), pytest.raises(TooLongError):
        tilted_lists(parts, 0.1, 1e-9)
    ladder = product(parts)
    assert isinstance(ladder, LadderPair)
    found, other = (
        enclose(lambda: pair.hockey_stick(exact("0.1")), relative_width=Fraction(1, 10**4))  # noqa: B023
        for pair in (ladder, AtomicPair(parts))
    )
    assert found == other
    with pytest.raises(UndecidedError, match="another method"):
        HalvedPair(parts).inverse(exact("1e-5"), WIDTH)


def test_what_cannot_be_reached_is_refused() -> None:
    with pytest.raises(UndecidedError, match=r"Reached delta in .* sixteen digits"):
        value(factors((NARROW, 100)), "40", Fraction(1, 10**20))
    with pytest.raises(NotApplicableError, match="mpmath"):
        HalvedPair(factors((NARROW, 100))).reference()
    noise = DiscreteLaplace(scale="0.53", sensitivity=2)
    with pytest.raises(UndecidedError, match=r"epsilon near 37\.73.* sixteen digits"):
        HalvedPair(factors((noise, 10))).inverse(exact("1e-48"), Fraction(1, 10**6))


def test_no_line_is_put_through_a_pole() -> None:
    parts = factors((PoissonSubsampled(DiscreteGaussian(parameter=4), "0.001"), 2))
    assert -1 < choose_line(parts, -1e5, 1e-3).c < -0.999  # -1 to three digits


def test_exponentials_are_within_their_bound() -> None:
    y = np.array([0.0, 1e-300, -1e-9, 0.005, -0.0054151, 0.0054153, 1.0, -299.9, 123.456, 299.99])
    found, error = exponentials(y)
    with ctx.workprec(256):
        for x, fast in zip(y, found, strict=True):
            true = arb(float(x)).exp()
            assert abs(arb(float(fast)) - true) <= error * true
    assert error < 1e-12
    assert exponentials(np.array([-400.0]))[0][0] == exponentials(np.array([-300.0]))[0][0]
    with pytest.raises(TooLongError):
        exponentials(np.array([400.0]))


@pytest.mark.parametrize("epsilon", ["0.6063334408", "4.802098216"])
def test_losses_far_above_those_that_count(epsilon: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten samples, with sums of losses whose weights are below e^−300; beside sums in balls."""
    parts = factors((PoissonSubsampled(DiscreteGaussian(parameter=1), "0.01"), 10))
    found = value(parts, epsilon)
    with ctx.workprec(192):
        lists = tilted_lists(parts, float(epsilon), 1e-9)
    assert 0 < lists.pairs.p_rough < 1e-80
    assert 0 < lists.pairs.q_rough < 1e-80
    monkeypatch.setattr(paired, "MAX_VALUES", 1 << 18)
    eps = exact(epsilon)
    true = enclose(lambda: PairedPair(parts).hockey_stick(eps), relative_width=Fraction(1, 10**12))
    assert found.lower <= true.lower
    assert true.upper <= found.upper


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 5000), st.integers(0, 2**32))
def test_running_sums(length: int, seed: int) -> None:
    values = 10.0 ** np.random.default_rng(seed).uniform(-8, 8, length)
    sums, u = cumulated(values), 2.0**-53
    assert len(sums) == length + 1
    assert sums[0] == 0
    for place in {length, length // 2, length // 7}:
        true = math.fsum(values[:place])
        assert abs(sums[place] - true) <= 1100 * u * true
    assert abs(total(values) - math.fsum(values)) <= 1030 * u * math.fsum(values)


def test_a_list_says_what_it_lacks() -> None:
    """Weights and what was dropped add up to the tilted mass of all draws."""
    with ctx.workprec(192):
        shares = tuple(ball(Fraction(n, 1000)) for n in (700, 200, 90, 9, 1))
        draws = Draws(40, (1000, -1000, 1700, -1700, 9999), shares)
    for budget in (1e-3, 1e-8, 1e-13):
        with ctx.workprec(192):
            halves = Halves.of([draws], budget)
        assert 0 < halves.dropped <= 2 * budget
        count = np.arange(41)
        sums = [np.bincount(h.used, h.weights, 41) for h in (halves.first, halves.second)]
        poisson = math.exp(-40) * 40**40 / math.factorial(40)
        whole = float((sums[0][count] * sums[1][40 - count]).sum()) / poisson
        assert 1 - halves.dropped - 1e-12 <= whole <= 1 + 1e-12
    assert Half.empty().weights.tolist() == [1.0]


def test_pair_sums_do_not_depend_on_the_tilt() -> None:
    """P(L > ε) of lists that lack nothing much, at three tilts."""
    parts = factors((NARROW, 12))
    found = []
    for c in (0.5, 1.0, 2.0):
        with ctx.workprec(192):
            line = choose_line(parts, 8.0, 1e-9)
            tilted = replace(line, c=c)
            found.append(lists_module._lists(parts, tilted, -30).at(exact(8))[0])
    assert all(value.overlaps(other) for value in found for other in found)
    assert all(value.rad() < 1e-9 * value.mid() for value in found)
    assert isinstance(lists_module._lists(parts, line, -10).pairs, PairSums)


RARE = Tabulated(["1/2", "1/4", "249999/1000000", "1/1000000"], ["1/4"] * 4)


@pytest.mark.parametrize("epsilon", ["0.2", "1", "3", "6"])
@pytest.mark.parametrize("power", [-5, -8])
def test_values_that_are_not_listed_are_not_drawn(epsilon: str, power: int) -> None:
    """Without the factor e^{−ns} for the mass s of values without a list, sums are too large."""
    parts = factors((RARE, 10))
    small = finite(parts[0][0])
    assert small is not None
    with ctx.workprec(192):
        line = choose_line(parts, float(exact(epsilon)), 1e-3)
        lists = lists_module._lists(parts, line, power)
        assert lists.dropped > 1e-12  # or nothing is left out
        true = ConvolvedPair(((small, 10),)).hockey_stick(exact(epsilon))
        assert lists.at(exact(epsilon))[0].contains(true)


def test_weights_without_a_value_are_those_of_a_multinomial_law() -> None:
    shares = Fraction(1, 2), Fraction(9, 20)
    with ctx.workprec(192):
        halves = Halves.of([Draws(10, (0, 1), tuple(map(ball, shares)))], 1e-30)
    sides = [np.bincount(h.used, h.weights, 11) for h in (halves.first, halves.second)]
    whole = float((sides[0] * sides[1][::-1]).sum())
    poisson = math.exp(-10) * 10**10 / math.factorial(10)
    assert whole * math.exp(-10 / 20) / poisson == pytest.approx(0.95**10, rel=1e-13, abs=0)

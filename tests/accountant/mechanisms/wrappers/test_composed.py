from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from dpassay.accountant.core.adjacency import Adjacency, Direction
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import exact_infinity_mass
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.mechanisms import (
    Composed,
    DiscreteLaplace,
    Gaussian,
    IntegerNoise,
    Laplace,
    LaplaceVector,
    OptimalGroups,
    RandomizedResponse,
    Tabulated,
)
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import accuracy, guarantees, profile
from dpassay.accountant.reference import laws

EVEN = IntegerNoise(["1/6", "2/3", "1/6"], lowest=-1)
SKEWED_TABLE = Tabulated(["1/2", "1/3", "1/6"], ["1/6", "1/3", "1/2"])
COIN = RandomizedResponse(epsilon="0.3")


def assert_close(interval: Interval, value: object, relative: str = "1e-28") -> None:
    """The interval is narrow and within the stated relative distance of an mpmath number."""
    with mpmath.workdps(60):
        middle = (mpmath.mpf(str(interval.lower)) + mpmath.mpf(str(interval.upper))) / 2
        assert abs(middle / value - 1) < mpmath.mpf(relative), (interval, value)
    width = interval.relative_width
    assert width is not None
    assert width <= Fraction(1, 10**30)


def brute_force(p: list[Fraction], q: list[Fraction], count: int, factor: Fraction) -> Fraction:
    """Return Σ (Πp − factor·Πq)⁺ over all sequences of outcomes, in fractions."""
    total = Fraction(0)
    for outcomes in itertools.product(range(len(p)), repeat=count):
        total += max(
            math.prod((p[i] for i in outcomes), start=Fraction(1))
            - factor * math.prod((q[i] for i in outcomes), start=Fraction(1)),
            Fraction(0),
        )
    return total


# finite laws: brute force in fractions, and the mpmath route


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("direction", list(Direction))
def test_integer_noise_against_every_sequence_of_outcomes(count: int, direction: Direction) -> None:
    pair = Composed(EVEN, count).worst_case(Adjacency.ADD_REMOVE).pairs(direction)[0]
    p = [Fraction(0), Fraction(1, 6), Fraction(2, 3), Fraction(1, 6)]
    q = [*p[1:], Fraction(0)]
    if direction is Direction.ADD:
        p, q = q, p
    mass = 1 - math.prod([Fraction(1) - p[0] * (q[0] == 0) - p[3] * (q[3] == 0)] * count)
    assert exact_infinity_mass(pair) == exact(mass)
    with mpmath.workdps(40):
        (reference,) = laws(Composed(EVEN, count))[direction is Direction.ADD]
    for epsilon in ("-1", "0", "0.4", "2"):
        interval = profile.delta(
            Composed(EVEN, count), epsilon, adjacency="add-remove", direction=direction
        )
        with mpmath.workdps(40):
            assert_close(interval, reference.hockey_stick(exact(epsilon).mpf()))
        if epsilon == "0":
            assert_close(interval, _mpf(brute_force(p, q, count, Fraction(1))))


def _mpf(value: Fraction) -> object:
    with mpmath.workdps(60):
        return mpmath.mpf(value.numerator) / value.denominator


def test_a_loss_at_an_atom_is_not_above_it() -> None:
    many = Composed(COIN, 4)  # losses −1.2, −0.6, 0, 0.6, 1.2: exact, also where ε is one of them
    pair = many.worst_case(None).remove[0]
    for epsilon in ("-1.2", "-0.6", "0", "0.6"):
        tails = pair.tails(exact(epsilon))
        assert tails.p_above.rel_accuracy_bits() > 40
        assert abs(float(tails.p_above + tails.p_below) - 1) < 1e-12
        assert abs(float(tails.q_above + tails.q_below) - 1) < 1e-12
    assert pair.tails(exact("1.2")).p_above.is_zero()
    assert pair.known.max_loss() == exact("1.2")
    assert Fraction(6, 5) in profile.epsilon(many, 0)


def test_disjoint_supports_hide_nothing() -> None:
    apart = Tabulated(["2/5", "3/5", 0], [0, 0, 1])
    for count in (1, 3, 10**12):
        assert Fraction(1) in profile.delta(Composed([apart, SKEWED_TABLE], count), 5)


def outcomes(part: Mechanism) -> list[tuple[mpmath.mpf, mpmath.mpf]]:
    """Return P and Q of every outcome; those of equal loss beyond both centres are one."""
    if isinstance(part, DiscreteLaplace):
        r, s = mpmath.exp(-1 / part.scale.mpf()), part.sensitivity
        inside = [((1 - r) / (1 + r) * r ** (s - z), (1 - r) / (1 + r) * r**z) for z in range(1, s)]
        return [(r**s / (1 + r), 1 / (1 + r)), *inside, (1 / (1 + r), r**s / (1 + r))]
    if isinstance(part, RandomizedResponse):
        true = 1 / (1 + mpmath.exp(-part.epsilon.mpf()))
        return [(true, 1 - true), (1 - true, true)]
    if isinstance(part, Tabulated):
        return [(exact(p).mpf(), exact(q).mpf()) for p, q in zip(part.p, part.q, strict=True)]
    assert part == EVEN
    masses = [_mpf(Fraction(n, 6)) for n in (0, 1, 4, 1, 0)]
    return list(itertools.pairwise(masses))


NOISE = Tabulated(["1/8", "3/8", "1/2"], ["1/2", "3/8", "1/8"])


@pytest.mark.parametrize(
    "mechanism",
    [
        Composed(NOISE, 3),
        Composed([NOISE, DiscreteLaplace(scale=2, sensitivity=3)], 2),
        Composed([COIN, DiscreteLaplace(scale="sqrt(2)")], 3),
        Composed([EVEN, DiscreteLaplace(scale=3)], 2),
    ],
)
def test_mixed_products_against_sums_over_all_outcomes(mechanism: Composed) -> None:
    relation = None if COIN in dict(mechanism.parts()) else "add-remove"
    with mpmath.workdps(40):
        whole = [(mpmath.mpf(1), mpmath.mpf(1))]
        for part, count in mechanism.parts():
            for _ in range(count):
                whole = [(a * p, b * q) for a, b in whole for p, q in outcomes(part)]
        for epsilon in ("0", "0.5", "2"):
            factor = mpmath.exp(exact(epsilon).mpf())
            sides = (whole, [(q, p) for p, q in whole])
            expected = max(mpmath.fsum(max(p - factor * q, 0) for p, q in s) for s in sides)
            assert_close(profile.delta(mechanism, epsilon, adjacency=relation), expected)


# additive quantities


def test_divergences_add_up() -> None:
    parts = [COIN, DiscreteLaplace(scale=3, sensitivity=2)]
    mixed = Composed([parts[0], parts[1], parts[0]], 5)
    for order in (1, "1.5", 2, 30):
        values = [guarantees.renyi(part, order) for part in parts]
        total = 10 * Fraction(values[0].lower) + 5 * Fraction(values[1].lower)
        found = guarantees.renyi(mixed, order)
        assert abs(Fraction(found.lower) / total - 1) < Fraction(1, 10**28)
    pair = mixed.worst_case(None).remove[0]
    assert abs(float(pair.max_loss()) - (10 * 0.3 + 5 * 2 / 3)) < 1e-12


# noise


def test_noise_and_error() -> None:
    both = Composed([Gaussian(standard_deviation=2), LaplaceVector(scale=1, shifts=[1, 2])], 2)
    assert both.dimension == 6
    assert both.sample(5, rng=np.random.default_rng(7)).shape == (5, 6)
    assert [float(v) for v in both.variances()] == [4, 4, 2, 2, 2, 2]
    assert Fraction(16, 6) in accuracy.mean_squared_error(both)
    many = Composed(Gaussian(standard_deviation=2), 10**12)
    assert Fraction(4) in accuracy.mean_squared_error(many)
    with pytest.raises(NotApplicableError, match="coordinates"):
        many.sample(1, rng=np.random.default_rng(7))


def test_releases_that_are_made_for_different_relations_are_no_guarantee() -> None:
    """One is worse under the other's relation: without a name their product is about neither."""
    added, replaced = (OptimalGroups(4, 9, 1, relation) for relation in Adjacency)
    both = Composed([added, replaced])
    named = [profile.delta(both, 1, adjacency=relation) for relation in Adjacency]
    assert named[0].upper < named[1].lower
    alike = Composed([replaced, COIN])
    assert profile.delta(alike, 1) == profile.delta(alike, 1, adjacency="replace-one")


@pytest.mark.slow
def test_a_width_out_of_reach_is_refused_with_what_was_reached() -> None:
    million = Composed(Laplace(scale=10**6), 10**6)
    with pytest.raises(UndecidedError, match="Reached delta in") as caught:
        profile.delta(million, "0.001", relative_width="1e-30")
    assert caught.value.interval is not None

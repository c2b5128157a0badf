"""Laplace noise beside discrete Gaussian noise, against inversion and sums over two integers."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flint import arb, ctx

from accountant import profile
from accountant.adjacency import Adjacency, Direction
from accountant.composition import atoms
from accountant.composition.apart import apart
from accountant.composition.atoms import AtomicPair, _refusal
from accountant.composition.grid import GridPair
from accountant.composition.integer_mixture import IntegerMixedPair, _masses, meets_few
from accountant.composition.joint import Factor, UnsuitedError
from accountant.composition.ladder import LadderPair
from accountant.errors import UndecidedError
from accountant.interval import Interval, narrowed
from accountant.mechanisms import Composed, DiscreteGaussian, Laplace, PoissonSubsampled
from accountant.number import ExactReal, exact
from accountant.pair import Pair
from accountant.pairs.discrete_gaussian import DiscreteGaussianPair
from accountant.pairs.theta import theta

NINE = Fraction(1, 10**9)


def pair_of(mechanism: Laplace | DiscreteGaussian | Composed) -> Pair:
    return mechanism.worst_case(None).remove[0]


def factors_of(mechanism: Composed, direction: Direction = Direction.REMOVE) -> tuple[Factor, ...]:
    return apart([(mechanism.worst_case(Adjacency.ADD_REMOVE).pairs(direction)[0], 1)])


@pytest.mark.parametrize(("parameter", "shift", "count"), [("4", 1, 1), ("5/2", 2, 3)])
@pytest.mark.parametrize("epsilon", ["-1", "0", "5"])
def test_against_inversion(parameter: str, shift: int, count: int, epsilon: str) -> None:
    integer = DiscreteGaussianPair(exact(parameter), shift)
    first = pair_of(Composed(Laplace(scale=1), 4))
    found = IntegerMixedPair(first, integer, count)
    inverted = AtomicPair(((pair_of(Laplace(scale=1)), 4), (integer, count)))
    with ctx.workprec(128):
        with narrowed(NINE):
            value = found.hockey_stick(exact(epsilon))
        with narrowed(Fraction(1, 10**5)):
            assert value.overlaps(inverted.hockey_stick(exact(epsilon)))
    assert 2 * value.rad() < 1e-9 * value


def test_no_outcome_is_lost() -> None:
    with ctx.workprec(100):
        masses, missing = _masses(exact("7/3"), 5, 100)
        assert (masses[0] + 2 * sum(masses[1:], start=arb(0)) + arb(0).union(missing)).contains(1)
        assert missing < arb(2) ** -98
        v = arb(7) / 3
        single = [(-arb(z * z) / (2 * v)).exp() / theta(exact("7/3")) for z in range(40)]
        two, _ = _masses(exact("7/3"), 2, 100)
        expected = single[0] ** 2 + 2 * sum((p**2 for p in single[1:]), start=arb(0))
        assert two[0].overlaps(expected)
        assert abs(float(two[0] - expected)) < 1e-28


def test_ten_of_each_to_nine_digits() -> None:
    mechanism = Composed([Laplace(scale=1), DiscreteGaussian(parameter=4)], 10)
    found = profile.epsilon(mechanism, "1e-20", relative_width=NINE)
    assert found.relative_width is not None
    assert found.relative_width < NINE
    assert str(found).startswith("24.47445")


def test_too_many_values_are_refused() -> None:
    wide = DiscreteGaussianPair(exact("1e9"), 1)
    with pytest.raises(UnsuitedError, match="values that count"):
        IntegerMixedPair(pair_of(Laplace(scale=1)), wide, 10).hockey_stick(exact(1))


def test_a_grid_is_not_asked_for_what_it_never_has(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(self: GridPair, delta: ExactReal, relative_width: Fraction) -> Interval:
        raise AssertionError("The grid was asked.")

    monkeypatch.setattr(GridPair, "inverse", asked)
    monkeypatch.setattr(atoms, "MAX_NODES", 1 << 19)
    sample = PoissonSubsampled(Laplace(scale=1), "0.01")
    factors = factors_of(Composed([sample, DiscreteGaussian(parameter=4)], 10))
    pair = LadderPair((AtomicPair(factors), GridPair(factors)))
    with pytest.raises(UndecidedError, match="Reached epsilon in"):
        pair.inverse(exact("1e-6"), NINE)


@pytest.mark.parametrize(
    ("count", "delta", "near"), [(2, "1e-6", 3.29214037), (10, "1e-12", 11.98563303)]
)
def test_sampled_laplace_noise_beside_integers(count: int, delta: str, near: float) -> None:
    """Few of the values of the integers leave the profile of the bounded losses to be asked."""
    sample = PoissonSubsampled(Laplace(scale=1), "0.01")
    mechanism = Composed([sample, DiscreteGaussian(parameter=4)], count)
    found = profile.epsilon(mechanism, delta, adjacency=Adjacency.ADD_REMOVE, relative_width=NINE)
    assert (found.relative_width or 0) <= NINE
    assert float(found.lower) == pytest.approx(near, rel=3e-9, abs=0)
    both = factors_of(mechanism), factors_of(mechanism, Direction.ADD)
    for end, sign in ((found.lower, 1), (found.upper, -1)):
        at = exact(Fraction(end) - Fraction(sign, 10**5))
        value = max(AtomicPair(factors).hockey_stick(at) for factors in both)
        assert sign * (value - arb(delta)) > 0
        assert value.rad() < 1e-4 * value.mid()


def test_bounded_losses_with_a_wide_range_are_inverted() -> None:
    sample = Composed(PoissonSubsampled(Laplace(scale=1), "0.5"), 10)
    integer = DiscreteGaussianPair(exact(100), 1)
    first = sample.worst_case(Adjacency.ADD_REMOVE).remove[0]
    assert not meets_few(first, integer)
    assert meets_few(first, DiscreteGaussianPair(exact("1/2"), 1))


def test_what_was_reached_is_a_probability() -> None:
    text = str(_refusal(arb("0.5 +/- 0.5"), math.inf, 1e-9))
    assert "Reached delta in [0, 1.000000000000000]" in text

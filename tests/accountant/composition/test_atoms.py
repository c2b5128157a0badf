"""Fourier inversion for atoms: it contains the exact value wherever another engine knows it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import acb, arb, ctx

from accountant import profile
from accountant.adjacency import Adjacency
from accountant.composition import engines
from accountant.composition.atoms import AtomicPair, applies
from accountant.composition.line import choose_line, known_laws
from accountant.composition.listed import listed
from accountant.composition.node_values import (
    ROW,
    UNIT,
    LaplaceLoss,
    circle,
    fraction_of_turn,
    products,
)
from accountant.errors import NotApplicableError, UndecidedError
from accountant.interval import Interval
from accountant.mechanism import Mechanism
from accountant.mechanisms import (
    BoundedCountNoise,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonSubsampled,
    RandomizedResponse,
    RankOneGaussian,
    Staircase,
    Tabulated,
)
from accountant.number import exact

COUNT_NOISE = BoundedCountNoise(epsilon="1.5", eta="1/2", support=2)
LEAKY = Tabulated(["1/2", "3/8", "1/8", 0], ["1/4", "1/4", 0, "1/2"])
SAMPLED = PoissonSubsampled(DiscreteLaplace(scale=1, sensitivity=2), "1/10")
CASES: list[tuple[Mechanism, str, str, str | None]] = [
    (Composed(RandomizedResponse(epsilon="0.1"), 101), "1", "1e-4", None),
    (Composed(Laplace(scale=1), 40), "10", "1e-8", None),
    (Composed(Laplace(scale=1), 41), "25", "1e-8", None),
    (Composed(Laplace(scale=1), 40), "-1", "1e-8", None),
    (Composed(DiscreteGaussian(parameter=4), 10), "4", "1e-4", None),
    (Composed(COUNT_NOISE, 10), "5", "1e-4", None),
    (Composed(LEAKY, 6), "0.3", "1e-3", None),
    (Composed(LEAKY, 6), "9", "1e-3", None),
    (Composed(SAMPLED, 30), "0.7", "1e-4", "add-remove"),
    (Composed([Laplace(scale=2), RandomizedResponse(epsilon="0.3")], 12), "4", "1e-6", None),
    (Composed([Gaussian(standard_deviation=2), COUNT_NOISE], 5), "6", "1e-9", None),
]


@pytest.mark.parametrize(("mechanism", "epsilon", "width", "relation"), CASES)
def test_contains_the_exact_value(
    mechanism: Mechanism, epsilon: str, width: str, relation: str | None
) -> None:
    found = profile.delta(
        mechanism, epsilon, method="atoms", adjacency=relation, relative_width=Fraction(width)
    )
    true = profile.delta(mechanism, epsilon, adjacency=relation)
    assert found.lower <= true.lower
    assert true.upper <= found.upper


def test_the_grid_agrees_where_nothing_is_exact() -> None:
    step = PoissonSubsampled(DiscreteGaussian(parameter=1), "0.05")
    mechanism, relation = Composed([step, Laplace(scale=2)], 20), Adjacency.ADD_REMOVE
    for epsilon in ("2",):
        inverted = profile.delta(
            mechanism, epsilon, method="atoms", adjacency=relation, relative_width=Fraction("1e-6")
        )
        grid = profile.delta(
            mechanism, epsilon, method="grid", adjacency=relation, relative_width=Fraction(1, 2)
        )
        assert grid.lower <= inverted.lower
        assert inverted.upper <= grid.upper


def test_epsilon_is_found_and_enclosed() -> None:
    mechanism = Composed(Laplace(scale=1), 40)
    for delta in ("0.3", "1e-10"):
        found = profile.epsilon(mechanism, delta, method="atoms", relative_width=Fraction("1e-6"))
        assert found.overlaps(profile.epsilon(mechanism, delta))
        assert found.relative_width is not None
        assert found.relative_width <= Fraction("1e-6")


def test_many_subsampled_discrete_gaussian_releases() -> None:
    step = PoissonSubsampled(DiscreteGaussian(parameter=25), "0.01")
    found = profile.delta(
        Composed(step, 10_000), "1", adjacency="add-remove", relative_width=Fraction("1e-6")
    )
    assert isinstance(found, Interval)
    # between the same with continuous noise of nearly the same law and twice that
    near = profile.delta(
        Composed(PoissonSubsampled(Gaussian(standard_deviation=5), "0.01"), 10_000),
        "1",
        adjacency="add-remove",
        relative_width=Fraction("1e-6"),
    )
    assert near.lower * 9 < found.lower * 10
    assert found.upper < near.upper * 2


def test_what_cannot_be_reached_is_refused() -> None:
    mechanism = Composed([Laplace(scale=5), Gaussian(standard_deviation=4)], 3)
    with pytest.raises(UndecidedError, match=r"Reached .* Ask for a larger relative_width"):
        profile.delta(mechanism, 1, method="atoms", relative_width=Fraction("1e-20"))
    other = Composed([Staircase(epsilon=1, gamma="1/3"), RandomizedResponse(epsilon="sqrt(2)")], 3)
    with pytest.raises(NotApplicableError, match="or 'grid'"):
        profile.delta(other, 1, method="saddle")
    with pytest.raises(NotApplicableError, match="does not sum"):
        engines.pairs_of(mechanism, "atoms", None)[0].reference()


def test_tails_contain_the_exact_ones() -> None:
    mechanism = Composed(Laplace(scale=1), 40)
    (pair,), (exactly,) = (
        engines.pairs_of(mechanism, method, None) for method in ("atoms", "auto")
    )
    with ctx.workprec(128):
        found, true = pair.tails(exact(8)), exactly.tails(exact(8))
    assert found.p_above.contains(true.p_above.mid())
    assert found.q_above.contains(true.q_above.mid())
    assert float(found.p_above.rad() / found.p_above.mid()) < 1e-2


def test_points_of_the_circle() -> None:
    with ctx.workprec(128):
        turns = [arb(1) / 3, arb("0.7123"), arb("-12.00001")]
        found = circle([fraction_of_turn(turn) for turn in turns], 1000)
        for k in (0, 1, 17, 999):
            for i, turn in enumerate(turns):
                true = acb(0, 2 * arb.pi() * k * turn).exp()
                gap = abs(acb(found[k, i].real, found[k, i].imag) - true)
                assert gap < 10 * UNIT + k * 2.0**-62


@pytest.mark.parametrize("case", [1, 4, 9, 10])
def test_values_at_nodes_are_within_their_bounds(case: int) -> None:
    mechanism, epsilon, _, relation = CASES[case]
    (pair,) = engines.pairs_of(mechanism, "atoms", Adjacency.read(relation))
    assert isinstance(pair, AtomicPair)
    with ctx.workprec(192):
        line = choose_line(pair.factors, float(epsilon), 1e-6)
        laws = known_laws(pair.factors, line.log_missing)
        c = arb(line.c)
        found = products([law.factor(c, line.step, 40) for law in laws], 0, 40)
        for k in (0, 1, 5, ROW - 1, ROW, 31 * ROW + 7):
            omega = arb(line.step) * k
            true = acb(1)
            for law in laws:
                true *= (_moment(law, acb(c, omega)) / law.moment(c)) ** law.count
                true *= acb(0, -omega * law.mean(c) * law.count).exp()
            value = acb(found.values[k].real, found.values[k].imag)
            assert abs(value - true) < found.errors[k]
            assert abs(true) <= found.first[k] * found.second[k]
        assert float(np.max(found.errors)) < 1e-10


def _moment(law: object, z: acb) -> acb:
    """Return E[e^{zL}], from what the law was made of."""
    parts = vars(law)
    if "_law" in parts:
        values = zip(parts["_law"].p, parts["_law"].losses, strict=True)
        total = acb(0)
        for p, loss in values:
            total += p * (z * loss).exp()
        return total
    if "_t" in parts:
        t, s = parts["_t"], z + arb("0.5")
        return acb((-t / 2).exp() * ((t * s).cosh() + (t * s).sinh() / (2 * s)))
    return acb((parts["_square"] * z * (z + 1) / 2).exp())


def test_no_block_of_nodes_has_more_than_the_first() -> None:
    """Σ a² over any block is at most twice the weighted sum around 0."""
    (pair,) = engines.pairs_of(CASES[5][0], "atoms", None)
    with ctx.workprec(192):
        line = choose_line(pair.factors, 5.0, 1e-6)  # type: ignore[attr-defined]  # the engine asked for
        laws = known_laws(pair.factors, line.log_missing)  # type: ignore[attr-defined]  # the engine asked for
        rows = 64
        factors = [law.factor(arb(line.c), line.step, rows) for law in laws]
        whole = products(factors, 0, rows)
    for size in (100, 1000, 4000):
        squares = whole.first**2
        k = np.arange(size)
        around = 2 * ((1 - k / size) * squares[:size]).sum() - squares[0]
        sums = np.convolve(squares, np.ones(size), mode="valid")
        assert sums.max() <= 2 * around * (1 + 1e-9)


def test_listed_losses() -> None:
    with ctx.workprec(192):
        _check_listed()


def _check_listed() -> None:
    pair = PoissonSubsampled(LEAKY, "1/3").worst_case(Adjacency.ADD_REMOVE).remove[0]
    law = listed(pair, -50.0)
    assert law is not None
    total = sum(law.p, start=law.infinity)
    assert total.contains(1)
    wide = PoissonSubsampled(DiscreteGaussian(parameter=9), "1/3")
    for relation in (0, 1):
        case = wide.worst_case(Adjacency.ADD_REMOVE)
        law = listed((case.remove + case.add)[relation], -50.0)
        assert law is not None
        rest = 1 - sum(law.p, start=arb(0))
        assert not rest > law.missing_p
        assert 0 < float(law.missing_p.log()) + 60 < 12
        mass = sum((p * (-loss).exp() for p, loss in zip(law.p, law.losses, strict=True)), arb(0))
        assert not 1 - mass > law.missing_q
    assert listed(DiscreteGaussian(parameter=10**8).worst_case(None).remove[0], -50.0) is None
    assert applies(PoissonSubsampled(Laplace(scale=1), "0.1").worst_case(Adjacency.ADD_REMOVE).add)
    sampled = PoissonSubsampled(Gaussian(standard_deviation=1), "0.1")
    assert applies(sampled.worst_case(Adjacency.ADD_REMOVE).add)
    assert not applies(RankOneGaussian(dimension=9, sigma_star=3).worst_case(None).add)


def test_a_line_halfway_between_the_poles() -> None:
    """For symmetric losses at ε = 0 the saddle is −1/2, where Laplace noise has a term 0/0."""
    both = Composed([Laplace(scale=1), Gaussian(standard_deviation=1)], 10)
    shift = Fraction(1, 10**6)
    found, *beside = (
        profile.delta(both, epsilon, method="atoms", relative_width=Fraction(1, 10**6))
        for epsilon in (0, -shift, shift)
    )
    assert beside[1].lower < found.upper
    assert found.lower < beside[0].upper
    assert profile.delta(both, 0, method="grid", relative_width=Fraction(1, 100)).overlaps(found)


@pytest.mark.parametrize("c", ["-0.4999", "-0.5", "-0.3", "0.01", "3"])
def test_values_of_laplace_noise_are_within_their_bound(c: str) -> None:
    with ctx.workprec(192):
        t, line, step = arb("0.37"), arb(float(c)) + arb("0.5"), 2.0**-9
        factor = LaplaceLoss(t, line, step, 1, 2)
        values, error = factor.rows(0, 2)
        for k in (0, 1, 2, 3, 17, 400, 1023, 1024, 2047):
            s = acb(line, k * arb(step))
            at, base = (
                (t * z).cosh() + ((t * z).sinh() / (2 * z) if z != 0 else t / 2) for z in (s, line)
            )
            off = acb(float(values[k].real), float(values[k].imag)) - at / base
            assert float(abs(off).upper()) <= error
    assert error < 1e-12


def test_a_value_without_a_digit_is_refused() -> None:
    """A billion releases whose losses are 1e-9: sixteen digits leave δ no sign."""
    whole = Composed(Laplace(scale=10**9), 10**9)
    with pytest.raises(UndecidedError, match="larger relative_width"):
        profile.epsilon(whole, "0.01", relative_width=Fraction(1, 10**9))


def test_a_million_releases() -> None:
    """The search for ε keeps to where a line has digits; the law is nearly normal."""
    whole = Composed(Laplace(scale=1), 10**6)
    found = profile.epsilon(whole, "1e-5", method="atoms", relative_width=Fraction(1, 10**9))
    assert found.relative_width is not None
    assert found.relative_width <= Fraction(1, 10**9)
    mean = math.exp(-1)
    deviations = (float(found.lower) - 10**6 * mean) / 10**3
    losses = np.concatenate([[1.0, -1.0], (np.arange(200_000) + 0.5) / 100_000 - 1])
    masses = np.concatenate([[0.5, math.exp(-1) / 2], np.exp((losses[2:] - 1) / 2) / 4e5])
    deviation = math.sqrt(float((masses * losses**2).sum()) - mean**2)
    # P(L > ε) = 1e-5 at 4.26 deviations; δ is a share of it, at a tilt of 0.012 about a hundredth
    assert abs(deviations / deviation - 4.26) < 0.5
    far = Composed(Laplace(scale=1), 10**9)
    with pytest.raises(UndecidedError, match=r"Reached epsilon in \[36798878"):
        profile.epsilon(far, "1e-5", method="atoms", relative_width=Fraction(1, 10**9))

"""Subsampled Laplace noise, inverted: moments, values at nodes, and what the grid says."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import acb, arb, ctx

from accountant import guarantees, profile
from accountant.adjacency import Adjacency, Direction
from accountant.composition.atoms import AtomicPair
from accountant.composition.ends import Stitched
from accountant.composition.grid import GridPair
from accountant.composition.joint import Factor, UnsuitedError
from accountant.composition.ladder import LadderPair
from accountant.composition.line import choose_line, known_laws
from accountant.composition.node_values import ROW
from accountant.composition.subsampled_laplace import MAX_NODES, Mixture, SubsampledLaplaceLaw
from accountant.errors import UndecidedError
from accountant.interval import enclose
from accountant.mechanism import Mechanism
from accountant.mechanisms import (
    Composed,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonSubsampled,
    RandomizedResponse,
)
from accountant.number import exact

RELATION = Adjacency.ADD_REMOVE
WIDTH = Fraction(1, 10**9)
FINER = Fraction(1, 15_000)
LAWS = [("1", "0.01", True), ("1", "0.01", False), ("0.3", "0.7", True), ("2.5", "0.2", False)]


def by_definition(t: arb, q: arb, z: acb, mixed_first: bool) -> acb:
    """Return E_P[e^{zL}] by flint's own quadrature over the noise: P at t, Q at 0."""

    def density(centre: arb, x: acb, side: int) -> acb:
        return (-side * (x - centre)).exp() / 2

    total = acb(0)
    # left of 0 and right of t the loss is constant, and the masses are known
    for loss, p, r in ((-t, (-t).exp() / 2, arb("0.5")), (t, arb("0.5"), (-t).exp() / 2)):
        total += one_term(loss, (p, r), q, z, mixed_first)

    def between(x: acb, _: bool) -> acb:
        p, r = density(t, x, -1), density(arb(0), x, 1)
        return one_term(2 * x - t, (p, r), q, z, mixed_first)

    return total + acb.integral(between, 0, t)


def one_term(
    loss: acb | arb, masses: tuple[acb | arb, acb | arb], q: arb, z: acb, mixed_first: bool
) -> acb:
    p, r = masses
    if mixed_first:
        return ((1 - q) * r + q * p) * (z * (1 - q + q * acb(loss).exp()).log()).exp()
    return p * (-z * (1 - q + q * (-acb(loss)).exp()).log()).exp()


@pytest.mark.parametrize(("t", "q", "mixed_first"), LAWS)
def test_moments(t: str, q: str, mixed_first: bool) -> None:
    with ctx.workprec(192):
        law = SubsampledLaplaceLaw(arb(t), arb(q), 1, mixed_first=mixed_first)
        for z in ("-0.5", "0", "0.3", "7", "120.5"):
            found = law.moment(arb(z))
            true = by_definition(arb(t), arb(q), acb(arb(z)), mixed_first)
            assert (found - true.real).contains(0)
            assert found.rel_accuracy_bits() > 140
            assert float(found.log()) == pytest.approx(law.log_moment(float(z)), abs=1e-9)
        assert law.moment(arb(0)).contains(1)


@pytest.mark.parametrize(("t", "q", "mixed_first"), LAWS)
def test_values_at_nodes_are_within_their_bounds(t: str, q: str, mixed_first: bool) -> None:
    with ctx.workprec(192):
        law = SubsampledLaplaceLaw(arb(t), arb(q), 1, mixed_first=mixed_first)
        c, step, rows = arb("3.25"), 0.0625, 2
        values, error = law.factor(c, step, rows).rows(0, rows)
        assert error < 1e-12
        for k in (0, 1, 17, ROW - 1, ROW, 2 * ROW - 1):
            z = acb(c, arb(step) * k)
            true = by_definition(arb(t), arb(q), z, mixed_first) / law.moment(c)
            size = abs(true)
            true *= acb(0, -arb(step) * k * law.mean(c)).exp()
            assert abs(acb(values[k].real, values[k].imag) - true) < error
            if k:
                assert size.lower() <= law.beyond(c, step * k)
        assert law.beyond(c, 1.0) >= law.beyond(c, 100.0) > law.beyond(c, 1e9)


@pytest.mark.parametrize(("t", "q", "mixed_first"), LAWS[:3])
def test_high_frequencies(t: str, q: str, mixed_first: bool) -> None:
    """The quadrature goes over into the expansion at the ends, and both are within their bounds."""
    with ctx.workprec(192):
        law = SubsampledLaplaceLaw(arb(t), arb(q), 1, mixed_first=mixed_first)
        low, high = (Mixture(arb(t), arb(q)).log_w(acb(s * arb(t))).real for s in (-1, 1))
        c, rows = arb("3.25"), 64
        step = 2 * MAX_NODES / float(high - low) / (rows // 4 * ROW)
        factor = law.factor(c, step, rows)
        assert isinstance(factor, Stitched)
        values, errors = factor.rows(0, rows)
        error = float(np.max(errors))
        assert error < 1e-12
        seam = factor.first_rows * ROW
        assert 0 < seam < rows * ROW
        for k in (17, seam - 1, seam, seam + 1, rows * ROW - 1):
            z = acb(c, arb(step) * k)
            true = by_definition(arb(t), arb(q), z, mixed_first) / law.moment(c)
            true *= acb(0, -arb(step) * k * law.mean(c)).exp()
            assert abs(acb(values[k].real, values[k].imag) - true) < error
        parts = [factor.rows(a, b)[0] for a, b in ((0, 1), (1, rows - 3), (rows - 3, rows))]
        assert np.abs(np.concatenate(parts) - values).max() < error


def test_a_density_close_to_its_singularity_is_refused() -> None:
    with ctx.workprec(192), pytest.raises(UnsuitedError, match="singularity"):
        SubsampledLaplaceLaw(arb(9), arb("0.2"), 1, mixed_first=True).factor(arb(3), 100.0, 64)


def test_the_variation_bounds_the_derivative() -> None:
    """∫ |D'| is at least |D(b) − D(a)|, and so for the next derivatives."""
    with ctx.workprec(192):
        mixture, s = Mixture(arb("0.8"), arb("0.2")), arb("4.5")
        ends = [mixture.slopes(s, sign, 6) for sign in (-1, 1)]
        for k in range(5):
            change = abs(ends[1][k] - ends[0][k])
            assert change <= mixture.variation(s, k + 1)
            assert float(mixture.variation(s, k + 1) / change) < 1e4


def test_the_error_of_the_quadrature() -> None:
    """The bound holds, falls with the nodes, and is infinite where w could vanish."""
    with ctx.workprec(128):
        mixture = Mixture(arb(1), arb("0.5"))
        assert not mixture.error(arb(2), 0.0, 8.0, 10).is_finite()
        errors = [mixture.error(arb(2), 30.0, 2.0, n) for n in (20, 40, 80)]
        assert errors[0] > errors[1] > errors[2] > 0
        count, rho = mixture.nodes_needed(arb(2), 30.0, -60.0)
        assert float(mixture.error(arb(2), 30.0, rho, count).log()) <= -59


def pair(parts: list[tuple[Mechanism, int]], direction: Direction) -> tuple[Factor, ...]:
    found: list[Factor] = []
    for mechanism, count in parts:
        relation = None if isinstance(mechanism, RandomizedResponse) else RELATION
        (one,) = mechanism.worst_case(relation).pairs(direction)
        found.append((one, count))
    return tuple(found)


STEP = PoissonSubsampled(Laplace(scale=1), "0.01")
LARGE = PoissonSubsampled(Laplace(scale=2), "0.4")
CASES: list[tuple[list[tuple[Mechanism, int]], str]] = [
    ([(STEP, 100)], "0.2"),
    ([(STEP, 100)], "-0.1"),
    ([(STEP, 10_000)], "1"),
    ([(LARGE, 200)], "9"),
    ([(STEP, 80), (LARGE, 60), (RandomizedResponse("0.2"), 7)], "4"),
    ([(STEP, 30), (Gaussian(standard_deviation=2), 1)], "2"),
]


@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize("case", range(len(CASES)))
def test_between_the_two_laws_of_the_grid(case: int, direction: Direction) -> None:
    parts, epsilon = CASES[case]
    factors, eps = pair(parts, direction), exact(epsilon)
    found = enclose(lambda: AtomicPair(factors).hockey_stick(eps), relative_width=WIDTH)
    with ctx.workprec(192):
        lower, upper = GridPair(factors).bounds(eps, 1 << 13)
        assert lower < found.ball()
        assert upper > found.ball()
        assert float(upper / lower) < 2


@pytest.mark.parametrize("delta", ["1e-5", "1e-20"])
@pytest.mark.parametrize("count", [100, 10_000])
def test_widths(count: int, delta: str) -> None:
    whole = Composed(STEP, count)
    found = profile.epsilon(whole, delta, adjacency=RELATION, relative_width=WIDTH)
    assert found.relative_width is not None
    assert found.relative_width <= WIDTH
    below = profile.delta(whole, found.upper, adjacency=RELATION, relative_width=WIDTH)
    above = profile.delta(whole, found.lower, adjacency=RELATION, relative_width=WIDTH)
    assert below.lower <= exact(delta).rational <= above.upper  # type: ignore[operator]


def test_more_sampling_loses_more() -> None:
    values = [
        profile.delta(
            Composed(PoissonSubsampled(Laplace(scale=1), q), 200),
            2,
            adjacency=RELATION,
            relative_width=WIDTH,
        )
        for q in ("0.1", "0.1000001", "0.2")
    ]
    assert values[0].upper < values[1].lower < values[1].upper < values[2].lower


def test_few_releases_are_not_inverted() -> None:
    whole = Composed(STEP, 4)
    (found, _) = whole.worst_case(RELATION).pairs(None)
    assert isinstance(found, LadderPair)
    assert found.reverse().reverse() == found
    value = profile.delta(
        whole, "0.02", adjacency=RELATION, relative_width=Fraction(1, 1000), method="auto"
    )
    grid = profile.delta(
        whole, "0.02", adjacency=RELATION, relative_width=Fraction(1, 1000), method="grid"
    )
    assert value.overlaps(grid)
    exactly = profile.delta(whole, "0.02", adjacency=RELATION, relative_width=Fraction(1, 10**18))
    assert exactly.relative_width is not None
    assert exactly.relative_width <= Fraction(1, 10**18)
    assert value.overlaps(exactly)
    with pytest.raises(UnsuitedError, match="method='grid'"), ctx.workprec(192):
        AtomicPair(tuple(found.factors)).hockey_stick(exact("0.0681"))


def test_the_line_knows_where_the_rest_is_negligible() -> None:
    factors = pair([(STEP, 100)], Direction.REMOVE)
    with ctx.workprec(192):
        line = choose_line(factors, 0.2, 1e-9)
        (law,) = known_laws(factors, line.log_missing)
        assert line.last < 1e4
        assert law.beyond(arb(line.c), line.last * line.step) < 0.8


def test_a_direction_that_cannot_matter_need_not_be_decided() -> None:
    """At 1e-50 the losses of ADD end below the ε of REMOVE: 100·0.00634 < 1.46."""
    whole = Composed(STEP, 100)
    both = profile.epsilon(whole, "1e-50", adjacency=RELATION, relative_width=WIDTH)
    (remove,) = whole.worst_case(RELATION).pairs(Direction.REMOVE)
    assert both == remove.inverse(exact("1e-50"), WIDTH)


def test_a_tiny_delta_lies_next_to_the_largest_loss() -> None:
    """There the tilt is so large that no frequency of the expansion is known in floats."""
    sampled = PoissonSubsampled(Laplace(scale="3.18"), "0.00355")
    mechanism = Composed([Composed(sampled, 2), Composed(DiscreteLaplace(scale="0.41"), 3)])
    found = profile.epsilon(
        mechanism,
        "1e-190",
        adjacency=RELATION,
        direction=Direction.ADD,
        relative_width=Fraction(1, 100),
    )
    (pair,) = mechanism.worst_case(RELATION).add
    assert found.lower < float(pair.max_loss()) * (1 - 1e-6)
    assert found.upper > float(pair.max_loss()) * (1 - 1e-2)


@pytest.mark.parametrize("width", ["1e-3", "1e-4"])
def test_tails_from_slopes_reach_a_few_digits(width: str) -> None:
    sampled = Composed(PoissonSubsampled(Laplace(scale="0.93"), "0.201"), count=600)
    asked: dict[str, Any] = {"adjacency": RELATION, "relative_width": Fraction(width)}
    below = guarantees.loss_cdf(sampled, 2, **asked)
    above = guarantees.loss_survival(sampled, 2, **asked)
    finer = guarantees.loss_survival(sampled, 2, adjacency=RELATION, relative_width=FINER)
    assert finer.overlaps(above)
    assert below.lower + above.lower <= 1 <= below.upper + above.upper


@pytest.mark.parametrize("epsilon", ["0.5", "-3"])
def test_the_complement_is_known_as_well_as_delta(epsilon: str) -> None:
    """Tails from slopes have half of its digits."""
    sampled = Composed(PoissonSubsampled(Laplace(scale="0.93"), "0.201"), count=600)
    asked: dict[str, Any] = {"adjacency": RELATION, "relative_width": Fraction(1, 10**6)}
    found = profile.delta_complement(sampled, epsilon, **asked)
    value = profile.delta(sampled, epsilon, **asked | {"relative_width": WIDTH})
    assert value.lower + found.lower <= 1 <= value.upper + found.upper
    logarithm = profile.log_delta(sampled, epsilon, **asked)
    assert float(logarithm.lower) <= math.log(value.upper)
    assert float(logarithm.upper) >= math.log(value.lower)


@pytest.mark.parametrize(("t", "q"), [(1e6, 0.01), (800.0, 1e-300), (2.0, 0.5), (1e-9, 0.3)])
def test_losses_of_any_size_have_logarithms(t: float, q: float) -> None:
    law = SubsampledLaplaceLaw(arb(t), arb(q), 2, mixed_first=True)
    with mpmath.workdps(40):
        ends = [mpmath.log1p(q * mpmath.expm1(side * t)) for side in (-1, 1)]
    assert law._log_w[:2] == pytest.approx([float(end) for end in ends], rel=1e-12, abs=0)


@pytest.mark.parametrize("scale", ["1e-3", "1e-2"])
@pytest.mark.parametrize("share", ["1e-6", "0.1", "0.999999999999999999999"])
def test_noise_so_small_that_a_sampled_record_is_seen(scale: str, share: str) -> None:
    """δ(1) is the probability 1 − (1 − q)^10 to be sampled at all, but for less than 10e^{−40}."""
    year = Composed(PoissonSubsampled(Laplace(scale=scale), share), 10)
    found = profile.delta(year, 1, adjacency=RELATION, relative_width=WIDTH)
    truth = 1 - (1 - Fraction(share)) ** 10
    assert abs(Fraction(found.lower) / truth - 1) < 2 * WIDTH


def test_noise_too_small_for_every_engine_is_refused() -> None:
    year = Composed(PoissonSubsampled(Laplace(scale="1e-12"), "0.1"), 10)
    with pytest.raises(UndecidedError, match="Ask for a larger relative_width"):
        profile.delta(year, 1, adjacency=RELATION, relative_width=WIDTH)


@pytest.mark.parametrize("scale", ["1e-3", "1", "1e300"])
def test_a_record_that_is_never_sampled(scale: str) -> None:
    """Every question has an answer between 0 and q, or is refused; it is no error."""
    year = Composed(PoissonSubsampled(Laplace(scale=scale), "1e-300"), 7)
    try:
        found = profile.delta(year, 0, adjacency=RELATION, relative_width=WIDTH)
    except UndecidedError:
        return
    assert found.lower <= Decimal("7e-300")

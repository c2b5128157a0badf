"""Long ranges of frequencies: bounds against values at every node."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from accountant import profile
from accountant.adjacency import Adjacency
from accountant.composition import atoms
from accountant.composition.atoms import AtomicPair
from accountant.composition.joint import Factor
from accountant.composition.laws import ListedLaw
from accountant.composition.line import choose_line, known_laws
from accountant.composition.listed import Listed
from accountant.composition.node_values import ROW, products
from accountant.composition.quiet import quiet
from accountant.interval import enclose
from accountant.mechanisms import Composed, DiscreteGaussian, Laplace, PoissonSubsampled
from accountant.number import exact

RELATION = Adjacency.ADD_REMOVE
STEP = PoissonSubsampled(DiscreteGaussian(parameter=25), "0.01")
WIDTH = Fraction(1, 10**9)


def factors(count: int) -> tuple[Factor, ...]:
    return ((STEP.worst_case(RELATION).remove[0], count),)


@pytest.mark.parametrize("count", [20, 31, 100])
def test_sums_are_bounded(count: int) -> None:
    with ctx.workprec(192):
        line = choose_line(factors(count), 0.1, 1e-6)
        laws = known_laws(factors(count), line.log_missing)
        c, h, rows = arb(line.c), line.step, 300
        bound = quiet(laws, c, h, h * 30 * ROW, h * rows * ROW)
        assert bound is not None
        last = min(rows, int(bound.upto / h / ROW))
        assert last > 60
        values = products([law.factor(c, h, rows) for law in laws], 30, last)
    k = np.arange(30 * ROW, last * ROW)
    sizes = np.abs(values.values)
    assert float((sizes / (k * h) ** 2).sum()) <= bound.whole
    phi = sizes ** (1 / count)
    assert float((phi ** (count // 2 * 2)).sum()) <= bound.squares
    assert bound.squares < 1e-3 * len(k)


def three_points(last: str, count: int) -> ListedLaw:
    losses = [arb(0), arb(1), arb(last)]
    shares = [arb("0.5"), arb("0.3"), arb("0.2")]
    return ListedLaw(Listed(losses, shares, arb(0), arb(0), arb(0), arb(0)), count)


def test_a_lattice_returns() -> None:
    """|Φ| is 1 at every multiple of 2π, and the sum has as much for each of them."""
    with ctx.workprec(128):
        lattice = quiet([three_points("-2", 40)], arb(1), 0.25, 50.0, 4000.0)
    assert lattice is not None
    assert lattice.squares > (lattice.upto - 50) / (2 * np.pi) * 0.9


@pytest.mark.parametrize("omega", [0.01, 0.3, 2.0])
def test_the_rise(omega: float) -> None:
    with ctx.workprec(128):
        law = three_points("-1.61803", 30)
        rise = law.rise(arb("0.7"), omega)
        sizes = np.abs(law.factor(arb("0.7"), omega / 8, 1).rows(0, 1)[0])
        assert law.rise(arb("0.7"), law.spacing(arb("0.7"), 0.1) / 2) == pytest.approx(
            0.1, rel=1e-3
        )
    for gap in range(1, 9):
        assert np.abs(sizes[gap:] - sizes[:-gap]).max() <= rise + 1e-9


def test_what_is_left_out_is_counted() -> None:
    with ctx.workprec(128):
        law = three_points("-1.61803", 30)
        whole, error = law.factor(arb(0), 0.5, 1).rows(0, 1)
        part, counted = law.factor(arb(0), 0.5, 1, left_out=0.25).rows(0, 1)
    assert error < 1e-13
    assert 0.19 < counted < 0.25
    assert np.abs(whole - part).max() <= counted + error


def test_nothing_is_said_of_few_releases() -> None:
    with ctx.workprec(128):
        assert quiet([three_points("3", 19)], arb(1), 0.25, 50.0, 4000.0) is None
        laplace = known_laws(((Laplace(scale=1).worst_case(None).remove[0], 40),), -80.0)
        assert quiet(laplace, arb(1), 0.25, 50.0, 4000.0) is None


@pytest.mark.parametrize("epsilon", ["-0.02", "0.06", "0.19"])
def test_values_lie_within_the_sum_over_all_nodes(
    epsilon: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    eps, pair, found = exact(epsilon), AtomicPair(factors(100)), []
    for many, width in ((0, "1e-7"), (1 << 40, "1e-5")):
        monkeypatch.setattr(atoms, "_MANY", many)
        atoms._nodes.cache_clear()
        found.append(enclose(lambda: pair.hockey_stick(eps), relative_width=Fraction(width)))
    atoms._nodes.cache_clear()
    assert found[1].lower <= found[0].lower
    assert found[0].upper <= found[1].upper


def test_many_releases_reach_a_hundred_zeros() -> None:
    found = profile.delta(
        Composed(STEP, 10_000), "4.3658228", adjacency=RELATION, relative_width=WIDTH
    )
    assert Decimal("9.999e-101") < found.lower < Decimal("1.0001e-100")
    assert found.relative_width is not None
    assert found.relative_width <= WIDTH

"""Mixtures of normal laws, inverted: moments, values at nodes, and what other engines say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import acb, arb, ctx

from accountant import profile
from accountant.adjacency import Adjacency
from accountant.composition import engines, mixture_law
from accountant.composition.grid import CELLS, GridPair
from accountant.composition.joint import UnsuitedError
from accountant.composition.mixture_law import Components, Faded, MixtureLaw, components
from accountant.composition.node_values import ROW
from accountant.mechanisms import (
    Composed,
    DiscreteLaplace,
    Gaussian,
    MixtureOfGaussians,
    PoissonSubsampled,
    RandomizedResponse,
)
from accountant.number import exact
from accountant.pairs.gaussian_mixture import GaussianMixturePair, mixture

WIDTH = Fraction(1, 10**9)
GROUP = MixtureOfGaussians(
    standard_deviation=2, sensitivities=[0, 1, 2], sampling_probs=["0.9", "0.08", "0.02"]
)
STEP = PoissonSubsampled(Gaussian(standard_deviation="1.1"), "256/60000")
LAWS: list[tuple[list[tuple[str, str]], list[tuple[str, str]]]] = [
    ([("0.99", "0"), ("0.01", "1")], [("1", "0")]),
    ([("1", "0")], [("0.9", "0"), ("0.08", "-0.5"), ("0.02", "-2")]),
    ([("0.7", "0"), ("0.3", "1.5")], [("0.7", "0"), ("0.3", "-1.5")]),
    ([("0.5", "0.2"), ("0.5", "3")], [("0.5", "-1"), ("0.5", "-0.1")]),
]


def law(number: int, count: int = 1) -> tuple[MixtureLaw, Components, Components]:
    p, q = ([(arb(w), arb(m)) for w, m in side] for side in LAWS[number])
    return MixtureLaw(p, q, count), p, q


def by_definition(p: Components, q: Components, z: acb) -> acb:
    """Return M(z) by flint's own quadrature."""

    def density(side: Components, x: acb) -> acb:
        return sum((w * (m * (x - m / 2)).exp() for w, m in side), start=acb(0))

    def integrand(x: acb, _: bool) -> acb:
        ratio = (1 + z) * density(p, x).log() - z * density(q, x).log()
        return (ratio - x * x / 2).exp() / (2 * arb.pi()).sqrt()

    whole = acb(0)
    for left in range(-24, 60, 4):
        whole += acb.integral(integrand, left, left + 4)
    return whole


@pytest.mark.parametrize("number", range(len(LAWS)))
@pytest.mark.parametrize("c", ["-1", "-0.6", "0", "0.8", "6"])
def test_moments(number: int, c: str) -> None:
    with ctx.workprec(192):
        mixed, p, q = law(number)
        found, true = mixed.moment(arb(c)), by_definition(p, q, acb(c)).real
        assert found.overlaps(true)
        assert found.rad() < 1e-40 * found.mid()
        assert true.rad() < 1e-30 * true.mid()
        near = float(true.log())
        assert abs(mixed.log_moment(float(c)) - near) < 1e-6
        if c in ("-1", "0"):
            assert found.contains(1)


def in_floats(number: int, z: complex) -> complex:
    """Return M(z) by a dense sum, to some 1e-13 of M(Re z)."""
    x = np.linspace(-30.0, 50.0, 200_001)
    densities = [
        np.log(sum(float(w) * np.exp(float(m) * (x - float(m) / 2)) for w, m in side))
        for side in LAWS[number]
    ]
    logs = (1 + z) * densities[0] - z * densities[1] - x * x / 2
    return complex(np.exp(logs).sum() * (x[1] - x[0]) / np.sqrt(2 * np.pi))


@pytest.mark.parametrize("number", range(len(LAWS)))
@pytest.mark.parametrize("c", [-0.6, 0.8, 6.0])
def test_values_at_nodes_and_beyond(number: int, c: float) -> None:
    step = 2.0**-4
    with ctx.workprec(192):
        mixed, _, _ = law(number, 12)
        values, error = mixed.factor(arb(c), step, 1).rows(0, 1)
        centre = float(mixed.mean(arb(c)))
        beyond = {k: mixed.beyond(arb(c), step * k) for k in (8, 64, 300)}
    errors = np.broadcast_to(error, ROW)
    moment = in_floats(number, complex(c))
    for k in (0, 1, 7, 40, 130, 400):
        omega = step * k
        true = in_floats(number, complex(c, omega)) / moment * np.exp(-1j * omega * centre)
        assert abs(values[k] - true) <= errors[k] + 1e-12
        assert all(abs(true) <= bound + 1e-12 for start, bound in beyond.items() if k >= start)
    assert errors[:8].max() < 1e-13
    assert list(beyond.values()) == sorted(beyond.values(), reverse=True)
    assert beyond[300] < 0.99


@pytest.mark.parametrize("omega", [100.0, 300.0, 800.0])
def test_lines_far_above_the_axis_bound_wide_noise(omega: float) -> None:
    """There e^{y²/2} is beyond floats, though what is integrated is small."""
    with ctx.workprec(192):
        p, q = [(arb("0.5"), arb(0)), (arb("0.5"), arb("0.02"))], [(arb(1), arb(0))]
        true = abs(by_definition(p, q, acb("0.8", omega)) / by_definition(p, q, acb("0.8")))
        bound = MixtureLaw(p, q, 1).beyond(arb("0.8"), omega)
    assert true < bound < 0.9


def test_what_is_negligible_is_not_summed() -> None:
    """Beyond some node the value is 0 with a bound, whose power is negligible."""
    with ctx.workprec(192):
        mixed, _, _ = law(2, 40)
        factor = mixed.factor(arb("0.8"), 0.25, 2)
        assert isinstance(factor, Faded)
        values, error = factor.rows(0, 2)
        assert np.array_equal(factor.rows(1, 2)[0], values[ROW:])
    far = int(np.flatnonzero(values == 0)[0])
    bound = np.broadcast_to(error, 2 * ROW)[far]
    assert 40 * np.log(bound) < -45
    assert abs(in_floats(2, complex(0.8, 0.25 * far)) / in_floats(2, 0.8 + 0j)) <= bound


@pytest.mark.parametrize("delta", ["1e-5", "1e-20"])
def test_the_certified_contour_says_the_same(delta: str) -> None:
    training = Composed(STEP, 7032)
    one, other = (
        profile.epsilon(
            training, delta, adjacency="add-remove", method=method, relative_width=WIDTH
        )
        for method in ("saddle", "atoms")
    )
    assert one.overlaps(other)


def test_sampled_noise_beside_lists() -> None:
    """The contour integral for each value of the other losses says the same."""
    noise = PoissonSubsampled(Gaussian(standard_deviation=1), "1/10")
    both = Composed([Composed(noise, 40), Composed(DiscreteLaplace(scale=3), 8)])
    found, summed = (
        profile.delta(both, 2, adjacency="add-remove", method=method, relative_width=WIDTH)
        for method in ("atoms", "auto")
    )
    assert found.overlaps(summed)


@pytest.mark.parametrize(
    ("count", "delta", "known"),
    [(100, "1e-5", "3.22502258"), (100, "1e-50", "20.0527016"), (10**4, "1e-20", "85.7823010")],
)
def test_groups_of_records(count: int, delta: str, known: str) -> None:
    found = profile.epsilon(
        Composed(GROUP, count), delta, adjacency="add-remove", relative_width=WIDTH
    )
    assert str(found) == known


def test_two_components_are_subsampling() -> None:
    """A mixture of two under another name has the same law."""
    pair = GaussianMixturePair(
        mixture([Fraction(99, 100), Fraction(1, 100)], [exact(0), exact(1)]),
        ((Fraction(1), exact(0)),),
    )
    other = PoissonSubsampled(Gaussian(standard_deviation=1), "0.01").worst_case(
        Adjacency.ADD_REMOVE
    )
    with ctx.workprec(192):
        for one, same in ((pair, other.remove[0]), (pair.reverse(), other.add[0])):
            first, second = components(one), components(same)
            assert first is not None
            assert second is not None
            assert all(
                x.overlaps(y)
                for left, right in zip(first, second, strict=True)
                for a, b in zip(left, right, strict=True)
                for x, y in zip(a, b, strict=True)
            )


def test_means_that_are_not_on_two_sides_of_zero_go_elsewhere() -> None:
    moved = GaussianMixturePair(((Fraction(1), exact(3)),), ((Fraction(1), exact(1)),))
    with ctx.workprec(192):
        assert components(moved) is None
        assert components(RandomizedResponse(1).worst_case(None).remove[0]) is None


def test_too_many_nodes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixture_law, "MAX_NODES", 50)
    with ctx.workprec(192), pytest.raises(UnsuitedError, match="more than 50"):
        law(0)[0].moment(arb(2))


@pytest.mark.parametrize(("count", "epsilon", "width"), [(2, "0.8", 1e-3), (30, "1.5", 1e-9)])
def test_the_grid_contains_enclosures(count: int, epsilon: str, width: float) -> None:
    """Of few releases, too: cut off where the sum in x gets too long, wide, but true."""
    whole = Composed(GROUP, count)
    (pair, _) = engines.pairs_of(whole, "atoms", Adjacency.ADD_REMOVE)
    with ctx.workprec(192):
        found = pair.hockey_stick(exact(epsilon))
        assert 0 < found.rad() < width * found.mid()
    (grid, _) = engines.pairs_of(whole, "grid", Adjacency.ADD_REMOVE)
    assert isinstance(grid, GridPair)
    lower, upper = grid.bounds(exact(epsilon), CELLS[0])
    assert found.upper() > lower.lower()
    assert found.lower() < upper.upper()

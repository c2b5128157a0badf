"""Contours that bend to the right: few releases, small q, every kernel and both directions."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import ctx
from mpmath import mp, mpf

from accountant import profile
from accountant.adjacency import Adjacency, Direction
from accountant.composition import saddle
from accountant.composition.bent import Integrand, Planner, bent_integral
from accountant.composition.bent_curves import Curve, curve_bound, log_beyond
from accountant.composition.bent_moments import Box, rule
from accountant.composition.saddle_bounds import Mixture
from accountant.composition.saddle_box import log_bounds
from accountant.composition.saddle_certified import Kernel, integral
from accountant.composition.saddle_cut import chosen, cut_off, lost
from accountant.composition.saddle_pair import SmoothPair
from accountant.composition.saddle_search import Strip
from accountant.mechanisms import Composed, Gaussian, PoissonSubsampled
from accountant.number import exact
from tests.accountant.composition.two_releases import two_releases

WIDTH = Fraction(1, 10**9)


def releases(sigma: str, q: str, count: int) -> Composed:
    return Composed(PoissonSubsampled(Gaussian(standard_deviation=sigma), q), count)


def pair(mechanism: Composed, direction: Direction) -> SmoothPair:
    (found,) = mechanism.worst_case(Adjacency.ADD_REMOVE).pairs(direction)
    assert isinstance(found, SmoothPair)
    return found


@pytest.mark.parametrize(
    ("sigma", "q", "epsilon"), [("0.8", "0.01", "3"), ("0.5", "0.3", "2"), ("1", "0.1", "0.5")]
)
def test_two_releases_by_an_integral_over_one(sigma: str, q: str, epsilon: str) -> None:
    found = profile.delta(
        releases(sigma, q, 2),
        epsilon,
        adjacency="add-remove",
        direction=Direction.REMOVE,
        relative_width=WIDTH,
    )
    known = two_releases(sigma, q, epsilon, mixed_first=True)
    assert abs(known / mpf(str(found.lower)) - 1) < 2e-9
    assert found.relative_width is not None
    assert found.relative_width <= WIDTH


@pytest.mark.parametrize("epsilon", ["-0.3", "0.01", "0.1"])
def test_the_other_direction(epsilon: str) -> None:
    found = profile.delta(
        releases("1", "0.1", 2),
        epsilon,
        adjacency="add-remove",
        direction=Direction.ADD,
        relative_width=WIDTH,
    )
    known = two_releases("1", "0.1", epsilon, mixed_first=False)
    assert abs(known / mpf(str(found.lower)) - 1) < 2e-9


@pytest.mark.parametrize(
    ("kernel", "strip", "epsilon"),
    [
        (Kernel.CALL, saddle.CALL, "2"),
        (Kernel.CALL, saddle.MIDDLE, "0.3"),
        (Kernel.CALL, saddle.PUT, "-0.5"),
        (Kernel.ABOVE_P, saddle.ABOVE_P, "2"),
        (Kernel.ABOVE_P, saddle.BELOW_P, "-0.2"),
        (Kernel.ABOVE_Q, saddle.ABOVE_Q, "1"),
        (Kernel.ABOVE_Q, saddle.BELOW_Q, "-1"),
    ],
)
@pytest.mark.parametrize("direction", list(Direction))
def test_straight_and_bent_contours_agree(
    kernel: Kernel, strip: Strip, epsilon: str, direction: Direction
) -> None:
    chosen = pair(releases("1", "0.05", 200), direction)
    loss, at = chosen.loss(), exact(epsilon, "epsilon")
    with ctx.workprec(60):
        straight = integral(loss, kernel, strip, at, 40)
        bent = bent_integral(loss, direction is Direction.REMOVE, kernel, strip, at, 40)
        assert straight.overlaps(bent)
        assert bent.rel_accuracy_bits() >= 34


def moment(mixture: Mixture, s: complex) -> complex:
    with mpmath.workdps(60):
        share, mu = mp.exp(mixture.log_share), mpf(mixture.mu)

        def integrand(x: mpf) -> mpf:
            loss = mp.log(1 - share + share * mp.exp(mu * x - mu * mu / 2))
            return mp.npdf(x) * mp.exp(mp.mpc(s) * loss)

        top = int(24 + max(s.real, 0) * mixture.mu)
        return complex(mp.fsum(integrand(mpf(v) / 32) for v in range(-32 * 14, 32 * top)) / 32)


def test_half_way_between_the_poles() -> None:
    """The saddle is z = −½, at which a damping would have its pole: no warning, and narrow."""
    step = PoissonSubsampled(Gaussian("1.487490409884472"), "0.01938611527671368")
    (one,) = step.worst_case(Adjacency.ADD_REMOVE).pairs(Direction.REMOVE)
    loss, at = SmoothPair(((one, 1),)).loss(), exact("0.0017946604526614847", "epsilon")
    with ctx.workprec(120):
        found = bent_integral(loss, True, Kernel.CALL, saddle.MIDDLE, at, 40)
        assert found.overlaps(1 - one.hockey_stick(at))
        assert found.rel_accuracy_bits() >= 36


@pytest.mark.parametrize("s", [2 + 5j, 6 + 20j, -3 + 4j, 0.5 + 30j])
@pytest.mark.parametrize(("mu", "q"), [(1.0, 0.05), (2.0, 0.3)])
def test_rules_and_bounds_of_moments(mu: float, q: float, s: complex) -> None:
    mixture = Mixture(mu, float(np.log(q)), float(np.log1p(-q)))
    known = moment(mixture, s)
    near = Box(s.real - 0.1, s.real + 0.1, s.imag - 0.1, s.imag + 0.1)
    chosen = rule(mixture, near, 30.0)
    loss, weight, *_ = chosen.floats()
    total = complex(np.exp(s * loss + weight).sum())
    size = float(np.abs(np.exp(s * loss + weight)).sum())
    assert abs(total - known) <= np.exp(chosen.log_error) + 1e-12 * size
    bound = log_beyond(mixture, s, 4000)
    assert np.log(abs(known)) <= bound
    assert np.log(abs(moment(mixture, s + 3j))) <= bound


def test_a_bound_on_a_curve_holds_for_the_sum_of_its_sizes() -> None:
    mixture = Mixture(1.0, float(np.log(0.05)), float(np.log(0.95)))
    curve = Curve(Fraction(1, 2), Fraction(17, 20), Fraction(5), Fraction(1, 4))
    s = np.array([3 + 20j, 4 + 20j])
    u = (np.linspace(-12, 30, 20_001) + 0.2j).astype(np.complex128)
    x, speed = curve.at(u)
    loss = mixture.log_at(x)[0]
    sizes = [np.abs(np.exp(-0.5 * x * x + at * loss) * speed).sum() for at in s]
    step = 42 / 20_000 / np.sqrt(2 * np.pi)
    bound = curve_bound(mixture, curve, s, 0.2, 40.0)
    assert np.log(max(sizes) * step) <= bound <= np.log(max(sizes) * step) + 1


CUT = Mixture(1.0, float(np.log(0.05)), float(np.log(0.95)), 6.0, 0.25)


def cut_moment(mixture: Mixture, s: complex) -> complex:
    with mpmath.workdps(70):
        share, mu = mp.exp(mixture.log_share), mpf(mixture.mu)

        def integrand(x: mpf) -> mpf:
            loss = mp.log(1 - share + share * mp.exp(mu * x - mu * mu / 2))
            kept = mp.erfc((x - mixture.cut) / (mixture.width * mp.sqrt(2))) / 2
            return mp.npdf(x) * kept * mp.exp(mp.mpc(s) * loss)

        return complex(mp.fsum(integrand(mpf(v) / 64) for v in range(-64 * 14, 64 * 12)) / 64)


@pytest.mark.parametrize("s", [2 + 1j, 8 + 20j, 15 + 3j, -3 + 4j, 30 + 60j])
def test_rules_and_bounds_of_moments_with_a_cut(s: complex) -> None:
    known = cut_moment(CUT, s)
    chosen = rule(CUT, Box(s.real - 0.1, s.real + 0.1, s.imag - 0.1, s.imag + 0.1), 30.0)
    loss, weight, *_ = chosen.floats()
    total = complex(np.exp(s * loss + weight).sum())
    size = float(np.abs(np.exp(s * loss + weight)).sum())
    assert abs(total - known) <= np.exp(chosen.log_error) + 1e-12 * size
    for bound in (log_beyond(CUT, s, 4000), CUT.log_decay(s.real, s.imag)):
        assert np.log(abs(known)) <= bound
        assert np.log(abs(cut_moment(CUT, s + 3j))) <= bound
    heights = np.array([-0.3, 0.0, 0.3])
    x = np.linspace(-12, 12, 4801) + 0j
    for height, bound in zip(
        heights, log_bounds(CUT, (s.real, s.real), s.imag, s.imag, heights), strict=True
    ):
        line = x + 1j * height
        kept = [complex(mp.erfc((v - 6) / (0.25 * mp.sqrt(2))) / 2) for v in line.tolist()]
        terms = np.exp(-0.5 * line * line + s * CUT.log_at(line)[0]) * np.array(kept)
        total = float(np.abs(terms).sum()) * 0.005 / np.sqrt(2 * np.pi)
        assert np.log(total) <= bound


@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_a_cut_only_takes_its_mass(epsilon: str) -> None:
    whole = pair(releases("1", "0.05", 200), Direction.REMOVE).loss()
    cut, at = cut_off(whole, 12.0), exact(epsilon, "epsilon")
    with ctx.workprec(90):
        first, second = lost(cut)
        assert 0 < float(second) < float(first) < float(mp.exp(-12))
        for kernel, strip in ((Kernel.CALL, saddle.CALL), (Kernel.ABOVE_P, saddle.ABOVE_P)):
            full, less = (integral(loss, kernel, strip, at, 40) for loss in (whole, cut))
            assert not full < less
            assert not full > less + first


def test_losses_that_never_matter_are_cut() -> None:
    mechanism = releases("23.42", "0.0007382", 40)
    loss = pair(mechanism, Direction.REMOVE).loss()
    short = chosen(loss, saddle.CALL, 0.00726, 40)
    assert short != loss
    found = profile.epsilon(
        mechanism, "6.88e-238", adjacency="add-remove", relative_width=Fraction(1, 10**9)
    )
    assert str(found) == "0.00726092674"
    plain = pair(releases("1.1", "0.01", 1000), Direction.REMOVE).loss()
    assert chosen(plain, saddle.CALL, 1.0, 40) == plain


def test_no_piece_goes_around_a_pole() -> None:
    loss = pair(releases("1", "0.05", 200), Direction.REMOVE).loss()
    plan = Planner(Integrand(loss, Kernel.CALL, True, 1.5, 1.0), 0.5, -40.0, 40)
    assert plan._try(1.5 + 0j, 1.5 + 0.5j) is not None
    assert plan._try(0.9 + 0j, 1.1 + 0.01j) is None

"""Noise of any density that falls with a norm: known laws, sums over grids, volumes, and draws."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from flint import arb

import dpassay
from dpassay.accountant.errors import InvalidInputError, NotApplicableError
from dpassay.accountant.mechanisms import AdditiveNoise, Composed, Gaussian, KNorm
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.pairs.falling_noise import FallingNoisePair
from dpassay.accountant.questions import accuracy, profile
from dpassay.accountant.questions import accuracy as utility

FALSE_ALARM = 1e-6
ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}
NARROW = Fraction(1, 10**12)

Level = Callable[[Any], Any]


def _student(d: int) -> str:
    return f"(1 + r**2/3)**(-{d + 3}/2)"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("norm", "d", "power"), [("l1", 50, "3"), ("l2", 3, "1"), ("l2", 50, "3"), ("linf", 3, "3/2")]
)
def test_powers_are_known_laws(norm: str, d: int, power: str) -> None:
    """By other integrals, of closed roots over exponents."""
    for epsilon in ("0", "1/3"):
        ours = profile.delta(KNorm(2, d, norm, density=f"exp(-r**({power}))"), epsilon)
        assert ours.overlaps(profile.delta(KNorm(2, d, norm, power=power), epsilon))
        assert ours.relative_width is not None
        assert ours.relative_width <= NARROW


@pytest.mark.parametrize("d", [2, 10**6])
def test_known_laws(d: int) -> None:
    """At ε = 1/2 and distance 1 the spheres touch where the noise is none."""
    for epsilon in ("-1/2", "1/2", "9/2"):
        ours = profile.delta(KNorm(1, d, density="exp(-r**2/2)"), epsilon)
        assert ours.overlaps(profile.delta(Gaussian(1), epsilon))
        assert ours.relative_width is not None
        assert ours.relative_width <= NARROW
    ours = profile.delta(KNorm(2, d, "linf", density="exp(-r**(3/2))"), "1/3")
    assert ours.overlaps(profile.delta(KNorm(2, d, "linf", power="3/2"), "1/3"))
    assert ours.relative_width is not None
    assert ours.relative_width <= NARROW


def test_one_dimension_is_noise_of_that_density() -> None:
    ours, known = KNorm(2, 1, "l1", density="exp(-r - r**2)"), AdditiveNoise("exp(-r - x**2)", 2)
    assert profile.delta(ours, "1/2") == profile.delta(known, "1/2")
    two = Composed(ours, 2), Composed(known, 2)
    assert profile.delta(two[0], "1/2") == profile.delta(two[1], "1/2")


LEVELS: list[tuple[str, Level]] = [
    ("exp(-r - r**2)", lambda r: r + r * r),
    (_student(2), lambda r: 2.5 * np.log1p(r * r / 3)),
    ("exp(-max(r, 2*r - 1))", lambda r: np.maximum(r, 2 * r - 1)),
    ("exp(-r)/(1 + r)", lambda r: r + np.log1p(r)),
    ("exp(-r) if r < 1 else exp(-2*r)", lambda r: np.where(r < 1, r, 2 * r)),
]  # fmt: skip


def by_plane(level: Level, norm: str, t: float, epsilon: float, reach: float) -> float:
    """Return ∫ (p − e^ε q)⁺ over the plane at the middles of cells that grow outward."""
    steps = np.linspace(-1, 1, 1601)
    edges = np.sinh(steps * np.arcsinh(reach)) + t / 2
    middle, width = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    x, y = middle[:, None], (middle - t / 2)[None, :]
    shift = t if norm == "linf" else 0.0

    def density(x: Any, y: Any) -> Any:
        a, b = abs(x), abs(y)
        r = {"l1": a + b, "l2": np.hypot(a, b), "linf": np.maximum(a, b)}[norm]
        return np.exp(-level(r))

    area = width[:, None] * width[None, :]
    q = density(x, y)
    excess = np.maximum(density(x - t, y - shift) - math.exp(epsilon) * q, 0)
    return float((area * excess).sum() / (area * q).sum())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("norm", "density", "level"),
    [
        (norm, *LEVELS[place])
        for norm, places in (("l1", (0, 3, 4)), ("l2", (1, 2, 4)), ("linf", (0, 1)))
        for place in places
    ],
)
def test_delta_is_an_integral_over_the_plane(norm: str, density: str, level: Level) -> None:
    """The rule of midpoints errs by less than 2e-4 at kinks, and 5e-3 at jumps."""
    noise = KNorm(1, 2, norm, density=density)
    for epsilon in ("0", "1/3"):
        found = profile.delta(noise, epsilon)
        reach = 1e3 if "/3)" in density else 40
        known = by_plane(level, norm, 1, float(Fraction(epsilon)), reach)
        assert float(found) == pytest.approx(known, abs=5e-3 if "if" in density else 2e-4)
        assert found.relative_width is not None
        assert found.relative_width <= NARROW


def by_radius(level: Level, d: int, epsilon: float, ends: tuple[float, float]) -> float:
    """Return E_P max(0, 1 − e^{ε−L}) over the radius and the angle: no cap, no level set."""
    t = 1.0
    edges = np.linspace(math.log(ends[0]), math.log(ends[1]), 20_001)
    r = np.exp((edges[1:] + edges[:-1]) / 2)[:, None]
    log = d * np.log(r) - level(r)
    weights = np.exp(log - log.max())
    nodes, sizes = np.polynomial.legendre.leggauss(400)
    angle = np.pi / 2 * (nodes + 1)
    shares = sizes * np.sin(angle) ** (d - 2)
    far = np.sqrt(r * r + t * t + 2 * r * t * np.cos(angle))
    excess = np.maximum(0, -np.expm1(epsilon - (level(far) - level(r)))) @ (shares / shares.sum())
    return float((weights[:, 0] * excess).sum() / weights.sum())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("d", "density", "level", "ends"),
    [
        (10, "exp(-r - r**2)", lambda r: r + r * r, (1e-3, 12)),
        (10, _student(10), lambda r: 6.5 * np.log1p(r * r / 3), (1e-3, 1e5)),
        (60, "exp(-r - r**2/(1 + r))", lambda r: r + r * r / (1 + r), (5, 200)),
    ],
)
def test_delta_is_a_mean_over_radii_and_angles(
    d: int, density: str, level: Level, ends: tuple[float, float]
) -> None:
    noise = KNorm(1, d, density=density)
    for epsilon in ("0", "1/2"):
        found = profile.delta(noise, epsilon)
        known = by_radius(level, d, float(Fraction(epsilon)), ends)
        assert float(found) == pytest.approx(known, rel=2e-4, abs=1e-9)
        assert found.relative_width is not None
        assert found.relative_width <= NARROW


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_a_uniform_ball_leaves_volumes(norm: str) -> None:
    """Two balls of radius 1 in space have in common (4 + t)(2 − t)²/16, two cubes (1 − t/2)³."""
    noise, t = KNorm(1, 3, norm, "1/2", density="1 if r < 1 else 0"), Fraction(1, 2)
    common = (4 + t) * (2 - t) ** 2 / 16 if norm == "l2" else (1 - t / 2) ** 3
    for epsilon in (0, 3):
        found = profile.delta(noise, epsilon)
        assert found.lower <= 1 - common <= found.upper
        assert found.relative_width is not None
        assert found.relative_width <= NARROW
    assert dpassay.epsilon(noise, 0).lower.is_infinite()
    pair = FallingNoisePair("1 if r < 1 else 0", exact(t), 3, norm)
    assert pair.infinity_mass().contains(arb((1 - common).numerator) / (1 - common).denominator)


def test_steps_are_sums_of_volumes() -> None:
    """Levels of the steps 1 and 1/4: cubes of sides 2 and 4, moved by 1/2, at ε = 1."""
    noise = KNorm(1, 2, "linf", "1/2", density="1 if r < 1 else 1/4 if r < 2 else 0")
    # P has 4 × 4 up to y = 1/4, then 2 × 2 up to 1; eQ has 4 × 4 up to e/4, then 2 × 2 up to e
    e = math.e
    lost4, lost2 = 16 - 3.5**2, 4 - 1.5**2
    known = (lost4 / 4 + (1 - e / 4) * lost2) / (4 + 12 / 4)
    assert float(profile.delta(noise, 1)) == pytest.approx(known, rel=1e-12)


STEPS = "1 if r < 1 else 1/4 if r < 2 else 0"


@pytest.mark.parametrize("density", [STEPS, "steps((0, 4), (1/2, 4), (1, 1), (3/2, 1), (2, 0))"])
@pytest.mark.parametrize("epsilon", ["0", "1"])
def test_outcomes_on_steps_count(density: str, epsilon: str) -> None:
    """Cubes of sides 2 and 4, moved by 1/2: L is ln 4 on the smaller, and ∞ outside the larger."""
    tails = FallingNoisePair(density, exact("1/2"), 2, "linf").tails(exact(epsilon))
    whole, lost4, lost2 = 4 + 12 / 4, 16 - 3.5**2, 4 - 1.5**2
    assert float(tails.q_above) == pytest.approx(lost2 / 4 / whole, rel=1e-12, abs=0)
    known = (lost4 / 4 + lost2) / whole
    assert float(tails.p_above) == pytest.approx(known, rel=1e-12, abs=0)


def test_an_outcome_on_a_step_between_slopes_counts() -> None:
    """A sum over cells of side 1/40: those on a diagonal, where losses are equal, are 1e-3."""
    density = "exp(-r) if r < 1 else exp(-1) if r < 2 else exp(1 - r)"
    tails = FallingNoisePair(density, exact("1/2"), 2, "linf").tails(exact(0))
    x = (np.arange(-800, 800) + 0.5) / 40

    def level(shift: float) -> Any:
        r = np.maximum(abs(x - shift)[:, None], abs(x - shift)[None, :])
        return np.where(r < 1, r, np.where(r < 2, 1, r - 1))

    q = np.exp(-level(0))
    known = q[level(0.5) < level(0)].sum() / q.sum()
    assert float(tails.q_above) == pytest.approx(known, abs=2e-3)


def by_levels(level: Level, d: int, t: float, epsilon: float, bends: list[float]) -> float:
    """Return ∫ r^d S d(−g)/d over ∫ g r^{d−1} in ℓ∞: o by halving, sums over middles of cells."""
    cells = [np.linspace(a, b, 100_001) for a, b in pairwise([0.0, *bends, 40.0])]
    edges = np.unique(np.concatenate(cells))
    r, fall = (edges[1:] + edges[:-1]) / 2, -np.diff(np.exp(-level(edges)))
    low, high = r.copy(), r + 40
    for _ in range(60):
        middle = (low + high) / 2
        less = level(middle) <= level(r) + epsilon
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    share = 1 - (np.clip(r + low - t, 0, 2 * r) / (2 * r)) ** d
    return float((fall * r**d * share).sum() / (fall * r**d).sum())


def _ripple(r: Any) -> Any:
    return 0.09 * np.tanh(20 * (r - 3))


@pytest.mark.parametrize(
    ("density", "level", "t", "epsilon"),
    [
        ("exp(-min(2*r, r + 1))", lambda r: np.minimum(2 * r, r + 1), "1", "1"),  # touch from 1 on
        ("exp(-max(r, r**2 - 1))", lambda r: np.maximum(r, r * r - 1), "1", "1"),  # up to 0.618
        ("exp(-r - 9/100*tanh(20*(r - 3)))", lambda r: r + _ripple(r), "1/10", "3/20"),
    ],
)  # fmt: skip
def test_balls_may_lie_in_each_other_for_a_while(
    density: str, level: Level, t: str, epsilon: str
) -> None:
    found = FallingNoisePair(density, exact(t), 2, "linf").hockey_stick(exact(epsilon))
    known = by_levels(level, 2, float(Fraction(t)), float(Fraction(epsilon)), [1.0, 2.5, 3.5])
    assert float(found) == pytest.approx(known, rel=1e-6, abs=0)
    assert found.rad() < 1e-12 * found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("density", "norm"),
    [("exp(-r - r**2)", "l2"), (_student(3), "l1")],
)
def test_tails_are_the_derivative(density: str, norm: str) -> None:
    pair, step = FallingNoisePair(density, exact("1/2"), 3, norm), Fraction(1, 10**6)
    found, e = pair.tails(exact("1/5")), exact("1/5")
    assert (found.p_above - e.ball().exp() * found.q_above).overlaps(pair.hockey_stick(e))
    low, high = (float(pair.hockey_stick(exact(Fraction(1, 5) + way * step))) for way in (-1, 1))
    slope = (low - high) / float(2 * step)
    assert math.exp(0.2) * float(found.q_above) == pytest.approx(slope, rel=1e-5)


def test_the_largest_loss_is_where_the_slope_tends_to() -> None:
    noise = KNorm(2, 5, density="1/cosh(r)")
    assert dpassay.epsilon(noise, 0).upper == Decimal("0.5")
    assert profile.delta(noise, "1/2").upper == 0
    assert dpassay.epsilon(KNorm(2, 5, density="exp(-r - r**2)"), 0).lower.is_infinite()
    student = dpassay.epsilon(KNorm(1, 5, density=_student(5)), 0)
    r = np.linspace(0, 20, 2_000_001)  # the largest ln g(r) − ln g(r + 1)
    most = float(np.max(4 * (np.log1p((r + 1) ** 2 / 3) - np.log1p(r**2 / 3))))
    assert float(student.upper) == pytest.approx(most, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_draws_have_the_moments_and_no_shift_shows_more(norm: str) -> None:
    rng, size, order = np.random.default_rng(7), 100_000, ORDERS[norm]
    noise = KNorm(2, 3, norm, density="exp(-r - r**2)")
    drawn = noise.sample(size, rng=rng)
    (variance,) = utility.variance(noise)
    deviation = math.sqrt(float(np.mean(drawn[:, 0] ** 4)) / size)
    assert abs(np.mean(drawn[:, 0] ** 2) - float(variance.lower)) < 6 * deviation  # standard errors
    absolute = float(accuracy.mean_absolute_error(noise).lower)
    assert abs(np.mean(np.abs(drawn)) - absolute) < 6 * math.sqrt(float(variance.upper) / size)
    true = float(profile.delta(noise, "1/4").upper)
    shifts = [noise.worst_shift(), *rng.normal(size=(5, 3))]
    slack = np.sqrt(np.log(2 * len(shifts) / FALSE_ALARM) / (2 * size))  # Hoeffding, of [0, 1]
    for index, shift in enumerate(shifts):
        moved = shift / max(1.0, float(np.linalg.norm(shift, ord=order)))
        far, near = (np.linalg.norm(x, ord=order, axis=1) / 2 for x in (drawn + moved, drawn))
        found = float(np.mean(np.maximum(0, 1 - np.exp(0.25 - (far + far**2 - near - near**2)))))
        assert found <= true + slack
        assert index or found >= true - slack


def test_draws_are_of_all_modes_and_end_where_the_density_does() -> None:
    """Half of the noise is uniform in the ball of radius 1, half in that of 10^10."""
    noise, size = KNorm(1, 3, density="1 if r < 1 else 1e-30 if r < 1e10 else 0"), 100_000
    r = np.linalg.norm(noise.sample(size, rng=np.random.default_rng(11)), axis=1)
    slack = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * size))  # Hoeffding
    assert r.max() <= 1e10 * (1 + 1e-9)
    for place, known in ((0.5, 1 / 16), (1, 0.5), (1e9, 0.5005), (5e9, 0.5625)):
        assert abs(np.mean(r <= place) - known) <= slack
    assert not np.any((r > 1 + 1e-9) & (r < 1e5))


def test_draws_of_a_million_coordinates() -> None:
    drawn = KNorm(1, 10**6, density="exp(-r**2/2)").sample(2, rng=np.random.default_rng(3))
    assert drawn.shape == (2, 10**6)
    assert np.std(drawn) == pytest.approx(1, rel=5e-3)


def test_moments_are_known_or_infinite() -> None:
    (variance,) = utility.variance(KNorm(3, 7, density="exp(-r**2/2)"))
    assert variance.lower <= 9 <= variance.upper
    assert variance.upper - variance.lower < Decimal("1e-12")
    (heavy,) = utility.variance(KNorm(1, 3, density="(1 + r**2)**-2"))
    assert heavy.lower.is_infinite()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"density": "exp(-r)*r"}, "fall with r"),
        ({"density": "exp(r)"}, "integrable"),
        ({"density": "1/(1 + r**2)"}, "integrable in 3 dimensions"),
        ({"density": "1/r**4"}, "bounded"),
        ({"density": "1 - r if r < 2 else 0"}, "negative"),
        ({"density": "exp(-r"}, "formula in x"),
        ({"density": "open('f')"}, "'open'"),
        ({"density": "exp(-(x - 1)**2)"}, "norm of the noise"),
        ({"density": "exp(-r)", "power": 2}, "power"),
        ({"density": "exp(-r)", "norm": "l3"}, "norm"),
        ({"density": "exp(-r)", "sensitivity": "sqrt(2)"}, "rational"),
        ({"density": "exp(-a*r)", "parameters": [1, 2]}, "'b'"),
        ({"parameters": [1]}, "density"),
    ],
)
def test_what_is_no_such_density_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        KNorm(1, 3, **arguments)


def test_parameters_are_written_in() -> None:
    noise = KNorm(1, 3, density="exp(-r**a - b*r)", parameters=["3/2", 2])
    assert repr(noise) == "KNorm(scale=1, dimension=3, density='exp(-r**(3/2) - (2)*r)')"
    with pytest.raises(NotApplicableError, match="depend"):
        KNorm(1, 3, "l1", density="exp(-r)").release([1.0, 2.0, 3.0])

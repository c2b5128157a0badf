"""The two laws on a grid against engines that share nothing with them, at random and at length."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from dpassay.accountant.composition import lattice
from dpassay.accountant.composition.lattice import FFT_ERROR, GRID, POINTS
from dpassay.accountant.composition.lattice import bracket_bounds as bounds
from dpassay.accountant.composition.product import Factor, Product
from dpassay.accountant.composition.tails import (
    NORMAL_ERROR,
    UNIT,
    Release,
    gaussian,
    in_balls,
    normal_below,
    releases,
)
from dpassay.accountant.core.adjacency import Adjacency, Direction
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair, max_finite_loss
from dpassay.accountant.mechanisms import (
    AdditiveNoise,
    Composed,
    Gaussian,
    Laplace,
    Logistic,
    PoissonSubsampled,
    TruncatedLaplace,
)
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.pairs.subsampled import envelope
from dpassay.accountant.questions import profile
from tests.quick import quick, slow

BOTH = Adjacency.ADD_REMOVE
SIDE = {0: Direction.REMOVE, 1: Direction.ADD}


def factors(mechanism: Composed, side: int) -> tuple[Factor, ...]:
    """Return the worst pairs in one direction."""
    found: dict[object, Factor] = {}
    for part, count in mechanism.parts():
        case = part.worst_case(BOTH)
        pair = (case.remove if side == 0 else case.add)[0]
        found[pair] = pair, count + (found[pair][1] if pair in found else 0)
    return tuple(found.values())


def test_the_stated_error_of_normal_probabilities() -> None:
    rng = np.random.default_rng(20)
    points = rng.uniform(-37, 9, 3000)
    many = normal_below(np.resize(points, 1 << 16))[: len(points)]
    few = normal_below(points)
    for t, *found in zip(points.tolist(), few.tolist(), many.tolist(), strict=True):
        with ctx.workprec(160):
            true = (-arb(t) / arb(2).sqrt()).erfc() / 2
            error = max(abs(float(arb(one) / true - 1)) for one in found)
        assert error <= NORMAL_ERROR / 2 * (1 + min(t, 0.0) ** 2) * UNIT


def _last(pair: Pair) -> float:
    return float(max_finite_loss(pair).mid())


@pytest.mark.parametrize("share", ["1", "0.03"])
@pytest.mark.parametrize(
    "step",
    [
        *(Logistic(scale) for scale in ("0.3", "1", "40")),
        *(TruncatedLaplace(*both) for both in (("0.3", 2), ("1", 1), ("5", "400"), ("40", "41"))),
    ],
)
def test_the_stated_errors_of_tails(step: Mechanism, share: str) -> None:
    """Also at the ends of the losses, where a rounding decides on which side of them l is."""
    step = step if share == "1" else PoissonSubsampled(step, share)
    case, rng = step.worst_case(BOTH), np.random.default_rng(5)
    for pair in case.pairs(None):
        ends = np.array([-_last(pair.reverse()), _last(pair)])
        beside = np.concatenate([ends, np.nextafter(ends, 9), np.nextafter(ends, -9)])
        losses = np.concatenate([beside, rng.uniform(1.2 * ends[0], 1.2 * ends[1], 100)])
        ((release, _),) = releases(((pair, 1),))
        assert not release.slow
        tail, known = release.survival(losses), in_balls(pair)(losses)
        stated = tail.error_p + tail.error_q + known.error_p + known.error_q
        assert stated.max() < 1e-13
        off_p, off_q = tail.above_p - known.above_p, tail.above_q - known.above_q
        assert (abs(off_p - off_q) <= stated).all()
        plain = slice(len(beside), None)  # an atom that is beside l is on either side of it
        assert (abs(off_p) <= tail.error_p + known.error_p)[plain].all()
        assert (abs(off_q) <= tail.error_q + known.error_q)[plain].all()


@pytest.mark.slow
@pytest.mark.parametrize("share", ["1", "0.004954"])
@pytest.mark.parametrize("density", ["exp(-abs(x)**3)", "1/cosh(x)", "max(0, 1-abs(x))"])
def test_the_stated_errors_of_tails_of_formulas(density: str, share: str) -> None:
    """Q(A) may be that of another set, P(A) − e^l Q(A) not; far out it is as exact as near 0."""
    step: Mechanism = AdditiveNoise(density, scale="1.741")
    step = step if share == "1" else PoissonSubsampled(step, share)
    for pair in step.worst_case(BOTH).pairs(None):
        ((release, _),) = releases(((pair, 1),))
        assert not release.slow
        losses = np.array([-0.9, -0.003, 0.0, 0.0001, 0.01, 0.5, 3.0, 8.0])
        tail, known = release.survival(losses), in_balls(pair)(losses)
        gain, true = tail.above_p - tail.above_q, known.above_p - known.above_q
        room = 1e-15 + known.error_p + known.error_q
        assert (gain - tail.error_q - room <= true + tail.error_p).all()
        assert (true <= gain + tail.error_p + tail.error_q + room).all()
        if density == "exp(-abs(x)**3)":
            assert (tail.error_p <= 1e-4 * true)[true > 0].all()


def test_the_stated_errors_of_the_larger_of_two_formulas() -> None:
    """The profile is that of the larger direction, which is another one at other losses."""
    pairs = AdditiveNoise("exp(-x-exp(-x))").worst_case(BOTH).pairs(None)
    ((release, _),) = releases(((envelope(pairs), 1),))
    assert not release.slow
    losses = np.array([-2.0, -0.4, 0.0, 0.02, 0.3, 0.9, 3.0, 8.0])
    tail, known = release.survival(losses), [in_balls(pair)(losses) for pair in pairs]
    true = np.max([each.above_p - each.above_q for each in known], axis=0)
    error = tail.error_p + tail.error_q + 1e-15
    assert (abs(tail.above_p - tail.above_q - true) <= error).all()
    assert (error <= 1e-5 * true).all()


def random_case(rng: random.Random) -> tuple[Composed, str, int]:
    kind = rng.randrange(4)
    sigma, scale = f"{rng.uniform(0.7, 4):.3f}", f"{rng.uniform(1, 20):.3f}"
    q = f"{10 ** rng.uniform(-3, -0.5):.5f}"
    step: Mechanism = PoissonSubsampled(Gaussian(standard_deviation=sigma), q)
    if kind == 0:
        mechanism = Composed(step, rng.choice([2, 7, 40, 300]))
    elif kind == 1:
        mechanism = Composed(Laplace(scale=scale), rng.choice([2, 5, 30]))
    elif kind == 2:
        mechanism = Composed([Gaussian(standard_deviation=scale), Laplace(scale="7")], 4)
    else:
        mechanism = Composed([Gaussian(standard_deviation=sigma), step], rng.choice([1, 5]))
    return mechanism, f"{10 ** rng.uniform(-1.5, 0.5):.4f}", rng.randrange(2)


@pytest.mark.parametrize("seed", quick(range(38), *range(8)))
def test_it_contains_what_other_engines_find(seed: int) -> None:
    mechanism, epsilon, side = random_case(random.Random(seed))
    lower, upper = bounds(Product(factors(mechanism, side), GRID), exact(epsilon), POINTS[2])
    true = profile.delta(
        mechanism, epsilon, adjacency=BOTH, direction=SIDE[side],
        relative_width=Fraction(1, 10**8),
    ).ball()  # fmt: skip
    assert lower <= true.upper(), mechanism
    assert true.lower() <= upper, mechanism
    if true > arb("1e-12"):
        assert upper - lower <= arb("0.02") * true, mechanism


def normal(mu: float) -> Release:
    """Return a normal law that the grid does not know to be one."""
    return Release(("hidden", mu), gaussian(mu), 0.0, None, None)


def closed(mu: float, epsilon: str) -> arb:
    with ctx.workprec(160):
        shift, e = arb(mu), arb(epsilon)
        root = arb(2).sqrt()
        first = ((e / shift - shift / 2) / root).erfc() / 2
        return first - e.exp() * ((e / shift + shift / 2) / root).erfc() / 2


@pytest.mark.parametrize(
    ("number", "points", "width"),
    [slow(300, 1 << 14, 1 / 20), (60, 1 << 14, 1 / 20), (60, 5 << 15, 1e-3)],
)
def test_many_different_normal_laws_are_one(number: int, points: int, width: float) -> None:
    """On the largest grid most components of their transforms are negligible."""
    mus = [0.02 + 0.1 * i / number for i in range(number)]
    whole = math.sqrt(math.fsum(mu * mu for mu in mus))
    for epsilon in ("1/2", "4"):
        plan = lattice.plan(tuple((normal(mu), 1) for mu in mus), float(Fraction(epsilon)))
        lower, upper = lattice.bracket(plan, points).bounds(exact(epsilon).ball())
        true = closed(whole, str(float(Fraction(epsilon))))
        assert lower <= true * (1 + arb("1e-13"))
        assert upper >= true * (1 - arb("1e-13"))
        assert upper - lower < true * width


@pytest.mark.parametrize("points", [1 << 12, 3 << 14, 5 << 14, 1 << 17])
def test_the_stated_error_of_each_component_of_a_transform(points: int) -> None:
    """Those met are below a tenth of it."""
    rng = np.random.default_rng(3)
    for values in (rng.random(points), np.exp(-np.arange(points) / 9), rng.random(points) ** 40):
        exact_enough = np.fft.rfft(values.astype(np.longdouble))
        error = np.abs(np.fft.rfft(values) - exact_enough).max() / values.sum()
        assert error < FFT_ERROR * UNIT * math.log2(points) / 10


@pytest.mark.parametrize("count", [10**5, 10**6])
def test_large_counts(count: int) -> None:
    mu = 1.0 / math.sqrt(count)
    lower, upper = lattice.bracket(lattice.plan(((normal(mu), count),), 1.0), 1 << 18).bounds(
        arb(1)
    )
    true = closed(mu * math.sqrt(count), "1")
    assert lower <= true * (1 + arb("1e-12"))
    assert upper >= true * (1 - arb("1e-12"))
    assert upper < 2 * true

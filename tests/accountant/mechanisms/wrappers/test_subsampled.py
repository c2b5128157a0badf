from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import ctx

from dpassay.accountant.core.adjacency import Adjacency, Direction
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import AdjacencyError, NotApplicableError
from dpassay.accountant.mechanisms import (
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    IntegerNoise,
    Laplace,
    Logistic,
    PoissonSubsampled,
    RandomizedResponse,
    Tabulated,
)
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import guarantees, profile
from dpassay.accountant.reference import laws
from tests.quick import quick

RELEASES: list[Mechanism] = [
    Gaussian(standard_deviation="1.1"),
    Laplace(scale=2),
    DiscreteLaplace(scale=1, sensitivity=3),
    DiscreteGaussian(parameter=3),
    IntegerNoise(["1/6", "2/3", "1/6"], lowest=-1),
    Tabulated(["1/2", "1/4", "1/4"], ["1/4", "1/4", "1/2"]),
]
EPSILONS = ("-2", "-0.1", "0", "0.05", "0.6")


@pytest.mark.parametrize(
    ("release", "direction"),
    quick([*zip(RELEASES, [*Direction] * 3, strict=True), (RELEASES[2], [*Direction][1])], 2, 4, 6),
    ids=repr,
)
def test_profile_and_tails_against_mpmath(release: Mechanism, direction: Direction) -> None:
    subsampled = PoissonSubsampled(release, "0.3")
    (pair,) = subsampled.worst_case(Adjacency.ADD_REMOVE).pairs(direction)
    with mpmath.workdps(40):
        (known,) = laws(subsampled, Adjacency.ADD_REMOVE)[direction is Direction.ADD]
    for epsilon in EPSILONS:
        interval = profile.delta(subsampled, epsilon, adjacency="add-remove", direction=direction)
        with mpmath.workdps(40):
            at = exact(epsilon).mpf()
            value = known.hockey_stick(at)
            above = known.integrate(lambda p, _: p, at)
            below = known.integrate(lambda _, q: q, at)
        tails = pair.tails(exact(epsilon))
        for ball, other in ((tails.p_above, above), (tails.q_above, below)):
            assert abs(float(ball.mid()) - float(other)) <= 1e-13 * abs(float(other))
        with mpmath.workdps(50):
            middle = (mpmath.mpf(str(interval.lower)) + mpmath.mpf(str(interval.upper))) / 2
            if value == 0:
                assert interval == Interval.of_exact(0)
            else:
                assert abs(middle / value - 1) < mpmath.mpf("1e-26")


NOISES: list[Mechanism] = [
    Gaussian(standard_deviation=2),
    Laplace(scale=2),
    Laplace(scale="1/5"),
    Logistic(scale=2),
    Logistic(scale="1/5"),
    DiscreteGaussian(parameter=4),
    DiscreteGaussian(parameter="1/4", sensitivity=2),
]


@pytest.mark.parametrize(
    ("noise", "order"),
    [
        *((noise, "2") for noise in NOISES),
        *quick(list(zip(NOISES, itertools.cycle(["1", "1.25", "7.5"]), strict=False))),
    ],
)
def test_divergences_of_samples_against_quadrature(noise: Mechanism, order: str) -> None:
    step = PoissonSubsampled(noise, "1/10")
    worst = step.worst_case(Adjacency.ADD_REMOVE)
    with mpmath.workdps(30):
        found = [law.renyi(exact(order).mpf()) for (law,) in laws(step, Adjacency.ADD_REMOVE)]
    for pair, divergence in zip((worst.remove[0], worst.add[0]), found, strict=True):
        with ctx.workprec(128):
            at = exact(order).ball()
            value = pair.renyi(at)
            assert value.rel_accuracy_bits() > 90
        assert abs(float(value.mid()) / float(divergence) - 1) < 1e-13
    # a composition adds them up, and the limits of small and of large orders are those of zCDP
    whole = guarantees.renyi(Composed(step, 50), order, adjacency="add-remove")
    one = guarantees.renyi(step, order, adjacency="add-remove")
    assert abs(float(whole.lower) / float(one.lower) / 50 - 1) < 1e-14


def test_adjacency_is_add_remove() -> None:
    step = PoissonSubsampled(Gaussian(standard_deviation=1), "0.1")
    with pytest.raises(AdjacencyError, match="adjacency to be named"):
        profile.delta(step, 1)
    with pytest.raises(NotApplicableError, match="Gaussian noise only"):
        profile.delta(PoissonSubsampled(Laplace(scale=1), "0.1"), 1, adjacency="replace-one")
    with pytest.raises(NotApplicableError, match="rational under replace-one"):
        profile.delta(PoissonSubsampled(Gaussian(1), "sqrt(1/2)"), 1, adjacency="replace-one")
    with pytest.raises(AdjacencyError, match="sideways"):
        profile.delta(step, 1, adjacency="sideways")
    with pytest.raises(AdjacencyError, match="cannot be added or removed"):
        profile.delta(
            PoissonSubsampled(RandomizedResponse(epsilon=1), "0.1"), 1, adjacency="add-remove"
        )


def _divergence(
    q: float, first: tuple[float, float], second: tuple[float, float], at: float
) -> float:
    """Return H(ε) of two mixtures of normal laws in the plane, by the sum over a fine grid."""
    line = np.linspace(-9, 9, 361)
    x, y = np.meshgrid(line, line)

    def density(centre: tuple[float, float]) -> np.ndarray:
        return np.exp(-((x - centre[0]) ** 2 + (y - centre[1]) ** 2) / 2) / (2 * math.pi)

    p, r = ((1 - q) * density((0, 0)) + q * density(centre) for centre in (first, second))
    area = (line[1] - line[0]) ** 2
    return float(np.maximum(p - math.exp(at) * r, 0).sum() * area)


@pytest.mark.parametrize("at", ["-1.2", "0", "0.4", "1.5"])
@pytest.mark.parametrize("q", ["1/10", "2/3"])
def test_no_two_shifts_in_the_plane_are_worse_than_opposite_ones(q: str, at: str) -> None:
    step = PoissonSubsampled(Gaussian(standard_deviation=1), q)
    worst = float(profile.delta(step, at, adjacency="replace-one").upper)
    share, eps = float(Fraction(q)), float(at)
    attained = _divergence(share, (1, 0), (-1, 0), eps)
    slack = 3e-4 * max(worst, 1e-2)  # of the sum: (step²/8) times the slopes along the kink
    assert abs(attained - worst) < slack
    rng = np.random.default_rng(3)
    for _ in range(25):
        radii, turns = np.sqrt(rng.uniform(size=2)), rng.uniform(0, 2 * math.pi, size=2)
        shifts = [(r * math.cos(t), r * math.sin(t)) for r, t in zip(radii, turns, strict=True)]
        assert _divergence(share, shifts[0], shifts[1], eps) <= worst + slack


def test_replaced_records_compose_and_end_in_gaussian_noise() -> None:
    relation = {"adjacency": "replace-one"}
    whole, twice = PoissonSubsampled(Gaussian(3), 1), Gaussian(3, l2_sensitivity=2)
    assert guarantees.mu(whole, **relation).overlaps(guarantees.mu(twice))
    assert str(profile.delta(PoissonSubsampled(Gaussian(1), 0), 1, **relation)) == "0"  # type: ignore[arg-type]
    values = [
        profile.delta(PoissonSubsampled(Gaussian(1), q), "0.5", **relation)  # type: ignore[arg-type]
        for q in ("1/100", "1/10", "1/2", "9/10", "1")
    ]
    assert all(low.upper < high.lower for low, high in itertools.pairwise(values))
    step = PoissonSubsampled(Gaussian(standard_deviation=2), "1/4")
    replaced, added = (
        profile.delta(Composed(step, 4), "1/2", adjacency=adjacency, relative_width=Fraction(1, 50))
        for adjacency in ("replace-one", "add-remove")
    )
    assert added.upper < replaced.lower


@pytest.mark.parametrize("order", ["256.1", "40", "1000/3"])
def test_renyi_divergences_that_large_losses_make_up(order: str) -> None:
    step = PoissonSubsampled(Gaussian(standard_deviation="0.1"), "1e-5")
    found = guarantees.renyi(step, order, adjacency="add-remove")
    with mpmath.mp.workdps(60):
        a, mu = mpmath.mpf(Fraction(order).numerator) / Fraction(order).denominator, 10
        q = mpmath.mpf(1) / 10**5
        peak, top = a * mu, a * mpmath.log(q) + a * (a - 1) * mu * mu / 2

        def integrand(x: mpmath.mpf) -> mpmath.mpf:
            ratio = 1 - q + q * mpmath.exp(mu * x - mu * mu / 2)
            return mpmath.exp(-x * x / 2 + a * mpmath.log(ratio) - top)

        moment = mpmath.quad(integrand, [peak + 8 * i for i in range(-5, 6)])
        moment /= mpmath.sqrt(2 * mpmath.pi)
        truth = (top + mpmath.log(moment)) / (a - 1)
        slack = abs(truth) * mpmath.mpf(10) ** -28
        assert mpmath.mpf(str(found.lower)) <= truth + slack
        assert mpmath.mpf(str(found.upper)) >= truth - slack


def test_only_the_loss_of_an_added_record_is_bounded() -> None:
    step = PoissonSubsampled(Gaussian(standard_deviation="1.1"), "256/60000")
    added = profile.epsilon(step, 0, adjacency="add-remove", direction=Direction.ADD)
    with ctx.workprec(200):
        assert added.ball().overlaps(-(-exact("256/60000").ball()).log1p())
    removed = profile.epsilon(step, 0, adjacency="add-remove", direction=Direction.REMOVE)
    assert removed.lower.is_infinite()

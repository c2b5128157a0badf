"""Random allocation of noise that is not Gaussian, by routes that share nothing."""

from __future__ import annotations

import itertools
import math
import random
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.errors import DpassayError, UndecidedError
from dpassay.accountant.mechanisms import (
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    RandomAllocation,
    TruncatedLaplace,
)
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.allocation import AllocatedNoise
from dpassay.accountant.questions import profile, tradeoff

RELATION = Adjacency.ADD_REMOVE


def worst(mechanism: Mechanism) -> Pair:
    (pair,) = mechanism.worst_case(RELATION).remove
    return pair


def enclosed(pair: Pair, epsilon: str, width: float = 1e-6) -> tuple[float, float]:
    with ctx.workprec(128):
        found = pair.to_width(Fraction(width)).hockey_stick(exact(epsilon))
    return float(found.lower()), float(found.upper())


@pytest.mark.parametrize("mixed_first", [True, False])
@pytest.mark.parametrize(
    ("noise", "epsilon"),
    [(Laplace(1), "1/2"), (Laplace("1/2"), "-1"), (DiscreteGaussian(2), "1/3"), (Gaussian(1), "1")],
)
def test_one_step_is_the_mechanism(noise: Mechanism, epsilon: str, *, mixed_first: bool) -> None:
    own = worst(noise)
    low, high = enclosed(AllocatedNoise(own, 1, mixed_first), epsilon)
    value = float(own.hockey_stick(exact(epsilon)))
    assert low <= value * (1 + 1e-12)
    assert value <= high * (1 + 1e-12)
    assert high - low < 1e-4 * value


def several_laplace(scale: float, steps: int, epsilon: float, *, mixed_first: bool) -> float:
    """H(ε) by the masses of L at both ends and cells between, combined step by step."""
    s, cells = 1 / scale, 400
    edge = np.linspace(0, s, cells + 1)
    middle = (edge[:-1] + edge[1:]) / 2
    shares = np.concatenate([[0.5], (np.exp(-edge[:-1]) - np.exp(-edge[1:])) / 2,
                             [math.exp(-s) / 2]])  # fmt: skip
    means = np.exp(2 * middle - s) * np.sinh(s / cells / 2) / (s / cells / 2)
    means *= (np.exp(-middle) * (s / cells) / 2) / shares[1:-1]
    ratios = np.concatenate([[math.exp(-s)], means, [math.exp(s)]])
    total, mass = np.zeros(1), np.ones(1)
    for _ in range(steps):
        total = (total[:, None] + ratios[None, :]).ravel()
        mass = (mass[:, None] * shares[None, :]).ravel()
    w = total / steps
    k = math.exp(epsilon)
    return float(mass @ np.maximum(w - k if mixed_first else 1 - k * w, 0.0))


@pytest.mark.parametrize("mixed_first", [True, False])
@pytest.mark.parametrize(("scale", "steps"), [("1", 2), ("2", 2)])
def test_two_steps_are_a_double_sum(scale: str, steps: int, *, mixed_first: bool) -> None:
    pair = AllocatedNoise(worst(Laplace(scale)), steps, mixed_first)
    low, high = enclosed(pair, "1/4")
    wanted = several_laplace(float(scale), steps, 0.25, mixed_first=mixed_first)
    assert high - low < 1e-6 * high
    assert low == pytest.approx(wanted, rel=2e-4, abs=0)


@pytest.mark.parametrize("mixed_first", [True, False])
@pytest.mark.parametrize(("sigma", "epsilon"), [("1", "1/2"), ("2", "1/5")])
def test_gaussian_steps_have_what_their_own_integrals_have(
    sigma: str, epsilon: str, *, mixed_first: bool
) -> None:
    """A density on a grid against a proved contour integral."""
    (whole,) = RandomAllocation(Gaussian(sigma), 100).worst_case(RELATION).remove
    exactly = whole if mixed_first else whole.reverse()
    low, high = enclosed(AllocatedNoise(worst(Gaussian(sigma)), 100, mixed_first), epsilon, 1e-4)
    assert low < float(exactly.hockey_stick(exact(epsilon))) < high
    assert high - low < 1e-4 * low


@pytest.mark.parametrize("mixed_first", [True, False])
@pytest.mark.parametrize(("scale", "shift"), [("1", 1), ("3/2", 2)])
def test_few_values_are_counted_exactly(scale: str, shift: int, *, mixed_first: bool) -> None:
    inner = DiscreteLaplace(scale, shift)
    one = worst(RandomAllocation(inner, 30))
    counted = one if mixed_first else one.reverse()
    low, high = enclosed(AllocatedNoise(worst(inner), 30, mixed_first), "1/10")
    value = float(counted.hockey_stick(exact("1/10")))
    assert low <= value * (1 + 1e-12)
    assert value <= high * (1 + 1e-12)
    assert high - low < 1e-2 * value


def brute_force(inner: Mechanism, steps: int, taken: int, epsilon: float) -> float:
    """H(ε) over all sequences of outcomes and all sets of steps."""
    listed = worst(RandomAllocation(inner, 1, 1) if steps == 1 else inner)
    from dpassay.accountant.pairs.finite import finite

    few = finite(listed)
    assert few is not None
    p, q = ([float(mass) for mass in masses] for masses in few.source.masses(few.index))
    sets = list(itertools.combinations(range(steps), taken))
    found = 0.0
    for outcomes in itertools.product(range(len(p)), repeat=steps):
        without = math.prod(q[v] for v in outcomes)
        with_record = sum(
            math.prod(p[v] if i in chosen else q[v] for i, v in enumerate(outcomes))
            for chosen in sets
        ) / len(sets)
        found += max(with_record - math.exp(epsilon) * without, 0.0)
    return found


@pytest.mark.parametrize(("steps", "taken"), [(2, 1), (3, 1), (4, 2), (5, 3)])
@pytest.mark.parametrize("shift", [1, 2])
def test_all_sequences_of_outcomes(steps: int, taken: int, shift: int) -> None:
    inner = DiscreteLaplace(1, shift)
    found = worst(RandomAllocation(inner, steps, taken)).hockey_stick(exact("1/5"))
    wanted = brute_force(inner, steps, taken, 0.2)
    assert float(found) == pytest.approx(wanted, rel=1e-12, abs=0)


def test_simulated_ratios_of_discrete_gaussian_steps() -> None:
    """W in 10^5 runs: six standard errors, P(false alarm) < 1e-8."""
    rng = np.random.default_rng(5)
    z = np.arange(-30, 31)
    mass = np.exp(-(z**2) / 4.0)
    drawn = rng.choice(z, p=mass / mass.sum(), size=(100_000, 20))
    w = np.exp((2 * drawn - 1) / 4.0).mean(axis=1)
    gain = np.maximum(w - math.exp(0.1), 0.0)
    low, high = enclosed(worst(RandomAllocation(DiscreteGaussian(2), 20)), "1/10", 1e-3)
    error = 6 * gain.std() / math.sqrt(len(gain))
    assert low - error < gain.mean() < high + error
    assert error < 0.05 * gain.mean()
    assert high - low < 1e-2 * low


def test_epsilon_and_beta_of_laplace_steps() -> None:
    run = RandomAllocation(Laplace(1), 100)
    found = profile.epsilon(run, "1e-6", adjacency=RELATION)
    assert Decimal("0.40886") < found.lower < found.upper < Decimal("0.40887")
    assert found.upper < profile.epsilon(Laplace(1), "1e-6", adjacency=RELATION).lower
    errors = tradeoff.beta(run, "1/20", adjacency=RELATION)
    assert Decimal("0.9") < errors.lower < errors.upper < Decimal("0.95")
    with pytest.raises(DpassayError, match="Several epochs"):
        Composed(run, 2)


def test_epochs_of_few_values_are_composed() -> None:
    run = RandomAllocation(DiscreteLaplace(1), 20, 2)
    one, two = (
        profile.delta(mechanism, "1/2", adjacency=RELATION) for mechanism in (run, Composed(run, 2))
    )
    assert one.upper < two.lower


@pytest.mark.parametrize(
    "run",
    [RandomAllocation(Laplace(1), 9, 2), RandomAllocation(TruncatedLaplace(2, 20), 5)],
    ids=repr,
)
def test_what_is_not_known_is_refused(run: RandomAllocation) -> None:
    with pytest.raises(DpassayError, match="known for noise with one worst pair"):
        run.worst_case(RELATION)


@pytest.mark.parametrize("seed", range(24))
def test_bounds_contain_what_is_counted_for_any_scale(seed: int) -> None:
    """Scales from hardly private to very: ratios that are tiny, and ones beyond all sums."""
    rng = random.Random(seed)
    scale, steps = Fraction(rng.randint(1, 40), 10), rng.choice([2, 5, 30, 200, 1000])
    reach = min(1.0, 4 / math.sqrt(steps)) / float(scale)
    epsilon = str(Fraction(round(rng.uniform(-0.5, 1) * reach * 1000), 1000))
    inner, mixed_first = DiscreteLaplace(scale), rng.random() < 0.5
    one = worst(RandomAllocation(inner, steps))
    with ctx.workprec(200):
        value = float((one if mixed_first else one.reverse()).hockey_stick(exact(epsilon)))
    low, high = enclosed(AllocatedNoise(worst(inner), steps, mixed_first), epsilon, 0.1)
    assert low <= value * (1 + 1e-11)
    assert value <= high * (1 + 1e-11)
    assert high - low <= 0.2 * value


def test_beyond_floats_both_ends_are_told() -> None:
    """Ratios of e^1000, or an ε of 800; and beyond the largest loss δ is 0."""
    huge, large = (RandomAllocation(Laplace(scale), 10) for scale in ("1/1000", "1/50"))
    epsilon = profile.signed_epsilon(huge, "1e-3", adjacency=RELATION)
    assert epsilon.lower < 0
    assert epsilon.upper == 1000
    with pytest.raises(UndecidedError, match="Nothing is known but"):
        profile.delta(huge, 800, adjacency=RELATION)
    assert profile.delta(large, 800, adjacency=RELATION) == 0
    assert 40 < profile.epsilon(large, "1e-3", adjacency=RELATION).upper <= 50

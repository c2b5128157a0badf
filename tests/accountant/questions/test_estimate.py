"""Estimates in floats lie beside the certified enclosures; what they refuse, and bad input."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import dpassay
from dpassay.accountant.core.adjacency import Direction
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.mechanisms import (
    Composed,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonSubsampled,
)
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import estimate, guarantees, profile, tradeoff
from tests.quick import slow

BOTH = "add-remove"
NARROW = Fraction(1, 10**12)
TRAINING = Composed(PoissonSubsampled(Gaussian(standard_deviation="1.1"), "256/60000"), 7032)
MIXED = Composed(
    [
        Composed(PoissonSubsampled(Gaussian(standard_deviation=1), "1/10"), 20),
        Composed(Gaussian(standard_deviation=8), 3),
        Composed(PoissonSubsampled(Gaussian(standard_deviation=2), "1/3"), 5),
    ]
)
CASES = [
    (TRAINING, "1"),
    slow(TRAINING, "-2.5"),
    slow(Composed(PoissonSubsampled(Gaussian(standard_deviation="1.1"), "1/250"), 1000), "0.58"),
    (MIXED, "2"),
    slow(MIXED, "0.25"),
    slow(MIXED, "-1"),
    (Composed(PoissonSubsampled(Gaussian(standard_deviation="0.3"), "1/2"), 100), "380"),
    slow(Composed(PoissonSubsampled(Gaussian(standard_deviation=20), "0.9"), 10**5), "100"),
    (Laplace(scale=2), "0.25"),
    (Composed(DiscreteLaplace(scale=5), 9), "0.5"),
]


def near(found: object, truth: Interval, tolerance: float) -> bool:
    """Whether a number lies within a relative tolerance of both ends, beside its own error."""
    assert isinstance(found, float)
    ends = (float(truth.lower), float(truth.upper))
    room = getattr(found, "error", 0.0)
    return all(abs(found - end) <= tolerance * abs(end) + room for end in ends)


@pytest.mark.parametrize(("mechanism", "epsilon"), CASES)
def test_every_estimate_lies_beside_its_enclosure(mechanism: Mechanism, epsilon: str) -> None:
    at = float(epsilon)
    known = {"adjacency": BOTH, "relative_width": NARROW}
    delta = profile.delta(mechanism, exact(at), **known)  # type: ignore[arg-type]
    assert near(estimate.estimate_delta(mechanism, at, adjacency=BOTH), delta, 1e-11)
    logarithm = profile.log_delta(mechanism, exact(at), **known)  # type: ignore[arg-type]
    assert near(estimate.estimate_log_delta(mechanism, at, adjacency=BOTH), logarithm, 1e-11)
    back = profile.epsilon(mechanism, exact(float(delta.upper)), **known)  # type: ignore[arg-type]
    found = estimate.estimate_epsilon(mechanism, float(delta.upper), adjacency=BOTH)
    assert near(found, back, 1e-11)


@pytest.mark.parametrize("direction", list(Direction))
def test_tails_of_the_loss_and_slopes(direction: Direction) -> None:
    for loss in (-1.0, 0.5, 3.0):
        ends = []
        for ask, question in (
            (estimate.estimate_log_loss_survival, guarantees.loss_survival),
            (estimate.estimate_log_loss_cdf, guarantees.loss_cdf),
        ):
            found = ask(MIXED, loss, adjacency=BOTH, direction=direction)
            true = question(
                MIXED, exact(loss), adjacency=BOTH, direction=direction, relative_width=NARROW
            )
            assert near(math.exp(found), true, 1e-11)
            ends.append(found)
        assert math.isclose(sum(math.exp(end) for end in ends), 1, rel_tol=1e-12)
        # δ' = −e^ε Q(L > ε), and Q(L > ε) is P'(L' < −ε) of the other direction
        slope = estimate.estimate_slope(MIXED, loss, adjacency=BOTH, direction=direction)
        delta = estimate.estimate_delta(MIXED, loss, adjacency=BOTH, direction=direction)
        other = Direction.ADD if direction is Direction.REMOVE else Direction.REMOVE
        q_above = estimate.estimate_log_loss_cdf(MIXED, -loss, adjacency=BOTH, direction=other)
        assert isinstance(delta, float)
        assert math.isclose(slope, -math.exp(loss + q_above) / delta, rel_tol=1e-10)


def test_far_out_and_many() -> None:
    gaussian = Composed(Gaussian(standard_deviation=1000), 10**12)
    assert near(
        estimate.estimate_epsilon(gaussian, 1e-100),
        profile.epsilon(gaussian, "1e-100", relative_width=NARROW),
        1e-12,
    )
    deep = estimate.estimate_epsilon(TRAINING, log_delta=-1e5, adjacency=BOTH)
    assert isinstance(deep, float)
    back = estimate.estimate_log_delta(TRAINING, deep, adjacency=BOTH)
    assert math.isclose(back, -1e5, rel_tol=1e-12)
    steps = PoissonSubsampled(Gaussian(standard_deviation=100), "1e-3")
    many = estimate.estimate_epsilon(Composed(steps, 10**12), 1e-9, adjacency=BOTH)
    true = profile.epsilon(Composed(steps, 10**12), 1e-9, adjacency=BOTH, relative_width=NARROW)
    assert near(many, true, 1e-11)


def test_arrays_keep_their_shape_and_ends_are_those_of_the_enclosure() -> None:
    grid = np.array([[1e-5, 1e-9], [0.5, 0.25]])
    found = dpassay.estimate_epsilon(TRAINING, grid, adjacency=BOTH)
    assert isinstance(found, np.ndarray)
    assert found.shape == (2, 2)
    assert found[0, 1] == dpassay.estimate_epsilon(TRAINING, 1e-9, adjacency=BOTH)
    ends = np.asarray(estimate.estimate_epsilon(TRAINING, [0.0, 1.0], adjacency=BOTH))
    assert ends.tolist() == [math.inf, 0.0]
    add: dict[str, Any] = {"adjacency": BOTH, "direction": Direction.ADD}
    largest = -7032 * math.log1p(-256 / 60000)
    assert math.isclose(estimate.estimate_epsilon(TRAINING, 0.0, **add), largest)
    assert estimate.estimate_delta(TRAINING, 31.0, **add) == 0.0
    assert estimate.estimate_slope(TRAINING, 31.0, **add) == -math.inf
    assert estimate.estimate_log_loss_survival(TRAINING, 31.0, **add) == -math.inf
    at = estimate.estimate_delta(TRAINING, -31.0, adjacency=BOTH, direction=Direction.REMOVE)
    assert at == -math.expm1(-31.0)


@pytest.mark.parametrize("count", [3, 28])
def test_an_estimate_is_not_negative_either(count: int) -> None:
    release = Composed(PoissonSubsampled(Gaussian(standard_deviation=2), "0.001359"), count)
    for delta in (0.9, 0.5, 0.2):  # all above the total variation distance
        found = estimate.estimate_epsilon(
            release, delta, adjacency=BOTH, direction=Direction.REMOVE
        )
        assert isinstance(found, float)
        assert float(found) == 0


@pytest.mark.parametrize("sigma", ["1e-5", "1e-40"])
def test_what_is_nearly_one_is_estimated_at_once(sigma: str) -> None:
    """1 − δ = e^(−10⁹): its digits are never written out."""
    assert estimate.estimate_log_delta(Gaussian(sigma), 1) == 0
    assert estimate.estimate_delta(Gaussian(sigma), 1) == 1


@pytest.mark.parametrize(
    ("noise", "count"), [slow("Gaussian('0.2')", 1000), ("Laplace('0.5')", 10)]
)
def test_an_estimate_is_right_to_its_stated_digits(noise: str, count: int) -> None:
    """With hardly any noise, where floats overflow: a warning would fail the test."""
    run = f"Composed(PoissonSubsampled({noise}, '0.01'), {count})"
    found = estimate.estimate_epsilon(dpassay.parse(run), 1e-5, adjacency=BOTH)
    assert isinstance(found, estimate.Estimate)
    truth = dpassay.epsilon(run, "1e-5", adjacency=BOTH)
    assert truth.lower <= float(found) + found.error
    assert float(found) - found.error <= truth.upper
    assert found.error < 1e-6 * float(found)


def test_an_estimate_of_less_than_three_digits_is_refused() -> None:
    chosen = "Composed(SampledWithoutReplacement(Gaussian(1), 1, 4), 3)"
    with pytest.raises(UndecidedError, match="less than three digits") as refused:
        estimate.estimate_epsilon(dpassay.parse(chosen), 1e-3, adjacency="replace-one")
    assert refused.value.interval is not None
    whole = dpassay.epsilon(chosen, "1e-3", adjacency="replace-one")
    assert whole.relative_width is not None
    assert whole.relative_width > Fraction(1, 1000)


@pytest.mark.parametrize(
    "noise",
    ["Gaussian(1.1)", "Gaussian(0.02)", "Gaussian(300)", "Laplace(1)", "RandomizedResponse(1)"],
)
def test_arrays_of_closed_forms_lie_beside_their_enclosures(noise: str) -> None:
    """To 1e-12, relative where a number exceeds 1; a thousand points take no thousand questions."""
    mechanism, chance = dpassay.parse(noise), np.random.default_rng(46)
    epsilons = np.concatenate([chance.uniform(-3, 3, 9), chance.uniform(-20, 40, 6), [0.0]])
    alphas = np.array([0.0, 1e-9, 0.01, 0.3, 0.5, 0.77, 1 - 1e-9, 1.0])
    deltas = np.array([0.0, 1e-30, 1e-3, 0.5, 1.0])
    for name, question, points in (
        ("log_delta", dpassay.log_delta, epsilons),
        ("delta", dpassay.delta, epsilons),
        ("beta", dpassay.beta, alphas),
        ("power", dpassay.power, alphas),
        ("epsilon", dpassay.epsilon, deltas),
    ):
        found = getattr(dpassay, f"estimate_{name}")(mechanism, points)
        for at, value in zip(points, found, strict=True):
            true = question(mechanism, float(at))
            low, high = float(true.lower), float(true.upper)
            room = 3e-12 * (max(1.0, abs(low)) if name in ("log_delta", "epsilon") else abs(low))
            assert low == value or low - room <= value <= high + room, (name, at)


def test_neighbours_share_a_line_and_keep_their_digits() -> None:
    """Of one run at many ε; the lines of an earlier question serve a later one."""
    fresh = Composed(PoissonSubsampled(Gaussian(1), "0.01"), 3007)
    grid = np.linspace(0.05, 6, 301)
    many = np.asarray(estimate.estimate_delta(fresh, grid, adjacency=BOTH))
    back = estimate.estimate_epsilon(fresh, many, adjacency=BOTH)
    assert np.allclose(back, grid, rtol=1e-11, atol=0)
    for i in range(0, 301, 60):
        true = profile.delta(fresh, float(grid[i]), adjacency=BOTH, relative_width="1e-12")
        assert near(float(many[i]), true, 1e-11)


@pytest.mark.parametrize("noise", ["0.6", "3"])
def test_counts_share_lines_and_keep_their_digits(noise: str) -> None:
    """Of one release in many runs, from rare large losses to sums that are nearly normal."""
    release = PoissonSubsampled(Gaussian(noise), "0.01")
    counts = np.array([60, 250, 700, 2000, 9000, 30000])
    found = np.asarray(
        estimate.estimate_epsilon(release, [[1e-5], [1e-8]], count=counts, adjacency=BOTH)
    )
    assert found.shape == (2, 6)
    for i, j in [(0, 2), (1, 4)]:
        delta = Fraction((1e-5, 1e-8)[i])
        runs = Composed(release, int(counts[j]))
        true = profile.epsilon(runs, delta, adjacency=BOTH, relative_width=NARROW)
        assert near(float(found[i, j]), true, 1e-11), (i, j)


def test_a_table_of_counts_has_the_digits_of_its_cells() -> None:
    """From δ near 1 to 1e-30, and β on both sides of 1/2: every kind of integral."""
    release, counts = PoissonSubsampled(Gaussian("0.9"), "0.02"), np.array([90, 400, 3000, 40000])
    epsilons, alphas = [-1.0, 0.0, 0.25, 4.0, 9.0], [1e-9, 0.01, 0.5]
    known: dict[str, Any] = {"adjacency": BOTH}
    deltas, betas = (
        np.asarray(ask(release, np.c_[points], count=counts, **known))
        for ask, points in ((estimate.estimate_delta, epsilons), (estimate.estimate_beta, alphas))
    )
    back = np.asarray(estimate.estimate_epsilon(release, deltas[3], count=counts, **known))
    assert np.allclose(back, 4.0, rtol=1e-11, atol=0)
    known["relative_width"] = Fraction(1, 10**11)
    for i, j in [(0, 3), (1, 1), (2, 0), (4, 2)]:
        runs = Composed(release, int(counts[j]))
        assert near(float(deltas[i, j]), profile.delta(runs, epsilons[i], **known), 1e-11), (i, j)
    for i, j in [(0, 1), (1, 2), (2, 0)]:
        runs = Composed(release, int(counts[j]))
        assert near(float(betas[i, j]), tradeoff.beta(runs, alphas[i], **known), 1e-11), (i, j)


def test_a_slope_that_floats_lose_is_that_of_an_enclosure() -> None:
    """In a table too, where the float form of one of two directions is missing."""
    release = Composed([PoissonSubsampled(Gaussian(1), "0.01"), Gaussian(20)])
    table = np.asarray(estimate.estimate_slope(release, [0.5], count=[5, 300], adjacency=BOTH))
    assert table[0] == pytest.approx(-15.46836, rel=1e-6, abs=0)


@pytest.mark.parametrize(
    "release",
    [Laplace(20), Gaussian(9), Composed([Gaussian(9), PoissonSubsampled(Gaussian(1), "0.1")])],
)
def test_a_count_is_as_many_compositions(release: Mechanism) -> None:
    """Also where releases do not keep their number, and in closed forms."""
    counts = [5, 1, 3]
    together = np.asarray(estimate.estimate_delta(release, 0.25, count=counts, adjacency=BOTH))
    for n, value in zip(counts, together, strict=True):
        alone = estimate.estimate_delta(Composed(release, n), 0.25, adjacency=BOTH)
        assert value == pytest.approx(float(np.asarray(alone)), rel=1e-9, abs=0)
        one = estimate.estimate_delta(release, 0.25, count=n, adjacency=BOTH)
        assert isinstance(one, estimate.Estimate)
        assert float(one) == pytest.approx(value, rel=1e-9, abs=0)


@pytest.mark.slow
def test_what_a_line_of_neighbours_loses_a_line_of_its_own_keeps() -> None:
    """One by one, as a search asks: at 0.67 the line of the questions before loses its digits."""
    run = Composed(PoissonSubsampled(Gaussian(1), "2199023255552/1400506469000031"), 1000)
    found = [estimate.estimate_log_delta(run, i / 24, adjacency=BOTH) for i in range(49)]
    true = profile.delta(run, "2/3", adjacency=BOTH, relative_width="1e-12")
    assert near(math.exp(float(np.asarray(found[16]))), true, 1e-10)
    assert all(float(np.asarray(a)) > float(np.asarray(b)) for a, b in pairwise(found))

"""The figures on continual counting against brute force and floating-point routes of our own."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from scipy.optimize import brentq

from accountant.mechanisms import BridgedTree, DelannoyCounter, SmoothBinary
from figures.count_on_your_elders import (
    arity,
    crossover,
    errors,
    fig01,
    fig02,
    laplace_guarantee,
    laplace_variance,
    steps,
)
from figures.description import Settings, Size

FAST = Settings(size=Size.FAST)


def gaussian_delta(sigma: float, epsilon: float) -> float:
    cdf = NormalDist().cdf
    high, low = 0.5 / sigma - epsilon * sigma, -0.5 / sigma - epsilon * sigma
    return cdf(high) - math.exp(epsilon) * cdf(low)


@pytest.mark.parametrize(
    ("figure", "panel", "step", "used"),
    [
        (fig01, "without subtraction", 23, 5),
        (fig02, "without subtraction", 9, 5),
        (fig02, "with subtraction", 9, 3),
    ],
)
def test_the_marked_vertices_make_up_the_prefix(
    figure: object, panel: str, step: int, used: int
) -> None:
    table = (fig01 if figure is fig01 else fig02).compute(FAST)
    total = np.zeros(30)
    cells = [table.numbers(name, panel=panel) for name in ("first", "last", "sign")]
    for first, last, sign in zip(*cells, strict=True):
        total[int(first) : int(last)] += sign
    assert list(total) == [1.0] * step + [0.0] * (30 - step)
    assert sum(map(abs, cells[2])) == used


def digit_sum(t: int, k: int, *, signed: bool) -> int:
    total = 0
    while t:
        digit = t % k
        if signed and digit > k // 2:
            digit -= k
        total += abs(digit)
        t = (t - digit) // k
    return total


@pytest.mark.parametrize(
    ("k", "signed"), [(2, False), (5, False), (3, True), (19, True), (20, True)]
)
def test_tree_errors_by_writing_out_every_digit(k: int, signed: bool) -> None:
    for n in (10, 200, 3429):
        height = 1
        while (k // 2 * (k**height - 1) // (k - 1) if signed else k**height - 1) < n:
            height += 1
        mean = sum(digit_sum(t, k, signed=signed) for t in range(1, n + 1)) / n
        assert errors.tree_error(k, n, signed=signed) == pytest.approx(2 * height**2 * mean)


def test_the_square_root_factorisation_by_matrices() -> None:
    n = 96
    entries = [math.comb(2 * j, j) / 4**j for j in range(n)]
    root = np.array([[entries[i - j] if i >= j else 0 for j in range(n)] for i in range(n)])
    assert root @ root == pytest.approx(np.tril(np.ones((n, n))), abs=1e-12)
    sensitivity = np.max(np.sum(root**2, axis=0))
    error = np.mean(np.sum(root**2, axis=1))
    assert errors.root_factor(n) == pytest.approx(sensitivity * error, rel=1e-12)


def test_counters_beyond_the_paper_by_their_matrices() -> None:
    """MSE = 2·(largest column of R, ℓ1)²·(mean squared row of L)."""
    table = steps.compute(FAST)
    n = 100
    for name, counters in (
        ("bridged grids, k = 17", [BridgedTree(n, [17, 17], epsilon=1)]),
        ("smooth binary tree", [SmoothBinary(n, epsilon=1)]),
        ("chains, best height", [DelannoyCounter(n, s, epsilon=1) for s in range(2, 8)]),
    ):
        found = []
        for counter in counters:
            left, right = (np.array(part, dtype=float) for part in counter.factorisation())
            assert left @ right == pytest.approx(np.tril(np.ones((n, n))), abs=1e-9)
            sensitivity = np.max(np.sum(np.abs(right), axis=0))
            found.append(2 * sensitivity**2 * np.sum(left**2) / n)
        stored = table.value("error", panel="beyond the paper", curve=name, n=float(n))
        assert stored == pytest.approx(min(found) / math.log2(n) ** 3, rel=1e-9)


def test_errors_by_length_have_known_values() -> None:
    table = steps.compute(FAST)
    assert table.value("error", panel="mechanisms", curve="binary tree", n=10.0) == pytest.approx(
        2 * 16 * sum(t.bit_count() for t in range(1, 11)) / 10
    )
    times = np.arange(1, 100_001)
    weight, variances = 1.0, []
    for level in range(17):
        variances.append(weight * ((times >> level) & 1))
        weight = 1 / (1 + 1 / (2 * weight))
    honaker = 2 * 17**2 * np.mean(np.sum(variances, axis=0))
    found = table.value("error", panel="mechanisms", curve="Honaker", n=1e5)
    assert found == pytest.approx(honaker, rel=1e-10)
    name = "Gaussian, δ = 1e-6"
    sigma = brentq(lambda s: gaussian_delta(s, 1) - 1e-6, 1, 20, xtol=1e-12)
    expected = sigma**2 * errors.root_factor(10**5)
    found = table.value("error", panel="mechanisms", curve=name, n=1e5)
    assert found == pytest.approx(expected, rel=1e-7)  # δ is a difference of 1e-6 in floats


def test_constants_and_best_arities() -> None:
    table = arity.compute(FAST)
    for curve, k, constant in (
        ("without subtraction", 17, 0.234292577),
        ("odd k, subtraction", 19, 0.12359121796),
        ("even k, subtraction", 20, 0.123870357),
    ):
        xs, ys = table.points("k", "error", panel="constant", curve=curve)
        assert xs[ys.index(min(ys))] == k
        assert min(ys) == pytest.approx(constant, rel=1e-8)
    xs, ys = table.points("k", "error", panel="exact", curve="n = 1000000")
    assert xs[ys.index(1)] == 18
    assert ys[xs.index(19)] == pytest.approx(11425309 / 11365221, rel=1e-11)


def test_the_threshold_of_theorem_1_2_fails_at_a_hundred_thousand() -> None:
    """At δ = n^(−0.92) Algorithm 2 has 1004.456 and the bound 912.480, in the paper's own units."""
    n = 100_000
    error = errors.tree_error(19, n, signed=True)
    assert error == pytest.approx(1004.456, abs=5e-4)
    c = 2 * math.sqrt(4 / 9 + math.log(math.sqrt(2 / math.pi) * n**0.92))
    assert c**2 * (1 + math.log(4 * n / 5) / math.pi) ** 2 == pytest.approx(912.480, abs=5e-4)
    found = crossover.compute(FAST).value("lg_delta", curve="printed bound, k = 19", n=float(n))
    assert found < -0.92 * 5


def test_at_the_crossover_both_errors_are_equal() -> None:
    table = crossover.compute(FAST)
    for n in (10.0, 100.0, 1e5):
        best = min(errors.tree_error(k, int(n), signed=True) for k in range(2, 65))
        delta = 10 ** table.value("lg_delta", curve="printed bound, best k", n=n)
        c = 2 * math.sqrt(4 / 9 + math.log(math.sqrt(2 / math.pi) / delta))
        assert c**2 * (1 + math.log(4 * n / 5) / math.pi) ** 2 == pytest.approx(best, rel=1e-9)
        delta = 10 ** table.value("lg_delta", curve="exact, best k, ε = 1", n=n)
        sigma = brentq(lambda s, d=delta: math.log(gaussian_delta(s, 1) / d), 0.5, 6.5)
        assert sigma**2 * errors.root_factor(int(n)) == pytest.approx(best, rel=1e-4)


def test_variance_ratios_in_floating_point() -> None:
    table = laplace_variance.compute(FAST)
    for eps in (1.0, 0.1):
        deltas, over_classic = table.points("delta", "over_classic", curve=f"ε = {eps:g}")
        over_analytic = table.numbers("over_analytic", curve=f"ε = {eps:g}")
        for delta, classic, analytic in list(zip(deltas, over_classic, over_analytic, strict=True))[
            :6
        ]:
            loss = math.log(1 / delta)
            scale = 1 / (math.sqrt(2) * (math.sqrt(loss + eps) - math.sqrt(loss)))
            deviation = math.sqrt(2 * math.log(1.25 / delta)) / eps
            assert classic == pytest.approx(2 * scale**2 / deviation**2, rel=1e-8)
            sigma = brentq(lambda s, d=delta, e=eps: gaussian_delta(s, e) - d, 0.05, 200)
            assert analytic == pytest.approx(2 * scale**2 / sigma**2, rel=1e-6)


def test_the_claim_is_above_every_exact_profile() -> None:
    table = laplace_guarantee.compute(FAST)
    t = 1 / 5.35
    eps, lg = table.points("epsilon", "lg_delta", curve="exact, d = 1")
    expected = [math.log10(1 - math.exp((e - t) / 2)) for e in eps]
    assert lg == pytest.approx(expected, rel=1e-6)
    for curve in table.distinct("curve"):
        xs, ys = table.points("epsilon", "lg_delta", curve=curve)
        for x, y in zip(xs, ys, strict=True):
            claimed = table.numbers("lg_delta", curve="claimed", epsilon=x)
            assert not claimed or y <= claimed[0]
    at_one = table.value("lg_delta", curve="claimed", epsilon=1.0)
    assert at_one == pytest.approx(-6, abs=0.01)

"""The figures on count queries against the printed formulas and brute force in floats."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from figures.count_queries import composition, fig01, fig02, fig03, fig04, laws
from figures.description import Settings, Size

FAST = Settings(size=Size.FAST)
Array = NDArray[Any]


def definition_2(epsilon: float, eta: float, d: int) -> Array:
    """Return p(0), …, p(D) from the formulas of the paper."""
    e, rest = math.exp(epsilon), 1 - eta
    b, c = 2 / rest, 2 * eta / rest
    star = max(bounds(epsilon, eta, d))
    threshold = sum(e**j for j in range(d + 1)) / sum((d - j) * e**j for j in range(d))
    if c <= threshold:
        total = sum((d - j) * e**j for j in range(d))
        alpha = [sum(e**i for i in range(d - j + 1)) / total for j in range(1, d + 1)]
    else:
        alpha, last = [], c
        for _ in range(d):
            last = max(0.0, (last - b * star) / e)
            alpha.append(last)
    return np.array([eta, *(a * rest / 2 for a in alpha)])


def bounds(epsilon: float, eta: float, d: int) -> list[float]:
    """Return δ_1, …, δ_{D+1}."""
    e, b, c = math.exp(epsilon), 2 / (1 - eta), 2 * eta / (1 - eta)
    found = [
        (c * sum(e**j for j in range(k)) - e**k) / (b * sum((j + 1) * e**j for j in range(k)))
        for k in range(1, d + 1)
    ]
    return [*found, 1 / (b * sum((d - j) * e**j for j in range(d)))]


def divergence(p: Array, q: Array, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def shifted(half: Array) -> tuple[Array, Array]:
    """Return the laws of Z + 1 and Z on common outcomes, from p(0), p(1), …"""
    law = np.concatenate([half[:0:-1], half])
    return np.append(0.0, law), np.append(law, 0.0)


def discrete_gaussian(square: float) -> Array:
    weights = np.exp(-(np.arange(60.0) ** 2) / (2 * square))
    return np.asarray(weights / (weights[0] + 2 * weights[1:].sum()))


def test_figure_1_has_the_printed_numbers_and_the_true_ones() -> None:
    table = fig01.compute(FAST)
    law = {name: table.numbers("y", panel="law", curve=name) for name in table.distinct("curve")}
    assert law["Definition 2"] == pytest.approx(definition_2(2.18, 0.8, 6), rel=1e-9)
    assert law["Definition 2"][1] == pytest.approx(0.08987, abs=5e-6)
    assert law["Definition 2"][2] == pytest.approx(0.00960, abs=5e-6)
    printed = law["discrete Gaussian, as printed"]
    assert printed[1] == pytest.approx(0.11685, abs=5e-6)
    assert printed[2] == pytest.approx(0.000416, abs=5e-7)
    same = law["discrete Gaussian, same variance"]
    assert same[1] == pytest.approx(0.1301540, abs=5e-7)
    variances = table.parameters["variances"]
    assert variances["Definition 2"] == pytest.approx(0.2660156010, rel=1e-7)
    assert variances["discrete Gaussian, same variance"] == variances["Definition 2"]
    assert variances["discrete Gaussian, as printed"] == pytest.approx(0.2370274136, rel=1e-7)
    for name in ("Definition 2", "least true δ", "geometric, same P(Z = 0)"):
        assert law[name][0] == pytest.approx(0.8)
    half = np.array(law["Definition 2"])
    for eps, found in zip(
        *table.points("x", "y", panel="profile", curve="Definition 2"), strict=True
    ):
        assert found == pytest.approx(divergence(*shifted(half), eps), rel=1e-6)


@pytest.mark.parametrize("support", [2, 6, 10])
def test_figure_2_by_the_printed_formulas(support: int) -> None:
    table = fig02.compute(FAST)
    for panel in ("printed", "exact"):
        xs, ys = table.points("epsilon", "delta", panel=panel, curve=f"D = {support}")
        for eps, found in zip(xs, ys, strict=True):
            half = definition_2(eps, 0.5, support)
            star = max(bounds(eps, 0.5, support))
            expected = (2 * support + 1) * star
            if panel == "exact":
                expected = divergence(*shifted(half), eps)
            assert found == pytest.approx(expected, rel=1e-6, abs=1e-15)


def test_figure_2_the_optimum_is_below_and_the_geometric_law_ends_at_ln_3() -> None:
    table = fig02.compute(FAST)
    curves = {
        str(name): table.numbers("delta", panel="compared", curve=name)
        for name in table.distinct("curve", panel="compared")
    }
    for best, exact, printed in zip(
        curves["least true δ"], curves["exact δ"], curves["printed, (2D + 1)δ*"], strict=True
    ):
        assert best <= exact * (1 + 1e-9)
        assert exact <= printed
    xs, ys = table.points("epsilon", "delta", panel="compared", curve="geometric")
    assert max(xs) < math.log(3) < max(xs) + 0.25
    for eps, found in zip(xs, ys, strict=True):
        half = 0.5 / 3.0 ** np.arange(60)
        assert found == pytest.approx(divergence(*shifted(half), eps), rel=1e-9)


@pytest.mark.parametrize(("epsilon", "eta"), [(1.1, 0.5), (1.1, 0.05), (2.2, 0.8), (2.2, 0.3)])
def test_the_optimum_by_another_linear_program(epsilon: float, eta: float) -> None:
    """Minimise t over symmetric laws p(0) = η, …, p(D) and the slacks of all outcomes."""
    d, e = 8, math.exp(epsilon)
    outcomes = range(-d, d + 2)
    size = d + 1 + len(outcomes)
    rows, right = [], []
    for place, y in enumerate(outcomes):
        row = np.zeros(size)
        for z, sign in ((y - 1, 1.0), (y, -e)):
            if abs(z) <= d:
                row[abs(z)] += sign
        row[d + 1 + place] = -1
        rows.append(row)
        right.append(0.0)
    total = np.zeros(size)
    total[0], total[1 : d + 1] = 1, 2
    fixed = np.zeros(size)
    fixed[0] = 1
    cost = np.concatenate([np.zeros(d + 1), np.ones(len(outcomes))])
    found = linprog(cost, rows, right, [total, fixed], [1, eta], method="highs-ds")
    assert laws.optimum(str(epsilon), str(eta), d)[0] == pytest.approx(
        found.fun, rel=1e-4, abs=3e-8
    )


@pytest.mark.slow
def test_figure_3_at_the_points_of_the_text_and_at_small_eta() -> None:
    table = fig03.compute(Settings())
    for panel, eta, printed, exact in (
        ("compared 1.1", 0.5, 8.5735e-4, 4.0346e-4),
        ("compared 2.2", 0.8, 2.7562e-7, 1.2970e-7),
        ("compared 1.1", 0.02, 0.00168, 0.26786),
        ("compared 2.2", 0.02, 1.35e-6, 0.25521),
    ):
        where: dict[str, Any] = {"panel": panel, "eta": eta}
        found = table.value("delta", curve="printed, (2D + 1)δ*", **where)
        assert found == pytest.approx(printed, rel=4e-3)
        assert table.value("delta", curve="exact δ", **where) == pytest.approx(exact, rel=3e-5)
    knee = [
        eta
        for eta in (0.49, 0.5, 0.51, 0.52)
        if table.value("delta", panel="printed 1.1", curve="D = 8", eta=eta) > 0.01
    ]
    assert knee == [0.51, 0.52]


def test_figure_4_by_summation() -> None:
    table = fig04.compute(FAST)
    for eps in (0.5, 1.25, 3.0):
        half = definition_2(eps, 0.5, 6)
        spread = 2 * float(np.sum(np.arange(7) ** 2 * half))
        for square, panel, curve in (
            (spread, "printed", "discrete Gaussian, eq. (45)"),
            (
                float(laws.same_variance(spread).parameter.ball()),
                "exact",
                "discrete Gaussian, same variance",
            ),
        ):
            law = discrete_gaussian(square)
            if panel == "exact":
                assert 2 * np.sum(np.arange(60) ** 2 * law) == pytest.approx(spread, rel=1e-12)
            found = table.value("delta", panel=panel, curve=curve, epsilon=eps)
            assert found == pytest.approx(divergence(*shifted(law), eps), rel=1e-8)
    crossing = table.value("delta", panel="exact", curve="mechanism", epsilon=0.5)
    assert crossing == pytest.approx(0.33782, abs=1e-5)
    gaussian = table.value(
        "delta", panel="exact", curve="discrete Gaussian, same variance", epsilon=0.5
    )
    assert gaussian == pytest.approx(0.29552, abs=1e-5)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_compositions_by_enumeration(count: int) -> None:
    table = composition.compute(FAST)
    p, q = shifted(definition_2(1.1, 0.5, 6))
    firsts = [math.prod(c) for c in itertools.product(p, repeat=count)]
    seconds = [math.prod(c) for c in itertools.product(q, repeat=count)]
    xs, ys = table.points("epsilon", "delta", releases=float(count), curve="Definition 2")
    for eps, found in zip(xs, ys, strict=True):
        assert found == pytest.approx(
            divergence(np.array(firsts), np.array(seconds), eps), rel=1e-6
        )

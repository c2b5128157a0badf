"""The figures of Lebeda's paper against its printed numbers and formulas of our own."""

from __future__ import annotations

import math

import numpy as np
import pytest

from figures.better_gaussian import fig01, fig02, fig03
from figures.description import Settings, Size

FAST = Settings(size=Size.FAST)


def test_figure_1_the_corners_touch_what_the_caption_says() -> None:
    table = fig01.compute(FAST)
    for panel, touching in (("replacement", 4), ("add or remove", 2)):
        xs, ys = table.points("x", "y", panel=panel, curve="standard")
        assert np.hypot(xs, ys) == pytest.approx(np.full(len(xs), math.sqrt(2)), rel=1e-10)
        corners = {
            point
            for box in table.distinct("curve", panel=panel)
            if str(box).startswith("box")
            for point in zip(*table.points("x", "y", panel=panel, curve=box), strict=True)
        }
        radii = np.hypot(*zip(*corners, strict=True))
        assert np.sum(np.isclose(radii, math.sqrt(2), rtol=1e-12)) == touching
    xs, ys = table.points("x", "y", panel="add, half the size", curve="half")
    radii = np.hypot(np.array(xs) - 0.5, np.array(ys) - 0.5)
    assert radii == pytest.approx(np.full(len(xs), math.sqrt(0.5)), rel=1e-11)


@pytest.mark.parametrize(
    ("curve", "variance"), [("Algorithm 1", (1 + 2**0.5) ** 2 / 4), ("optimal", 4 / 3)]
)
def test_figure_1_the_ellipses_are_those_of_the_covariance(curve: str, variance: float) -> None:
    """The bounding box of {x'Σ⁻¹x = 1} has half-width √Σ_11; (1, 1) and (1, 0) are not outside."""
    table = fig01.compute(Settings())
    xs, ys = map(np.array, table.points("x", "y", panel="Algorithm 1", curve=curve))
    assert max(xs) == pytest.approx(math.sqrt(variance), rel=1e-11)
    assert max(ys) == pytest.approx(math.sqrt(variance), rel=1e-3)  # of 180 points
    quadratic = np.column_stack([xs * xs, 2 * xs * ys, ys * ys])
    p, q, r = np.linalg.lstsq(quadratic, np.ones(len(xs)), rcond=None)[0]
    norms = [p + 2 * q + r, p, r]
    expected = [0.970563, 0.828427, 0.828427] if curve == "Algorithm 1" else [1, 1, 1]
    assert norms == pytest.approx(expected, rel=1e-6)


def test_figure_2_has_the_printed_numbers() -> None:
    table = fig02.compute(FAST)
    assert table.value("query", C=10.0) == 2550.25
    assert table.value("query", C=100.0) == 5000.5
    assert table.value("size", C=100.0) == 2
    cs, queries = map(np.array, table.points("C", "query"))
    assert queries == pytest.approx((10_000 + cs**2 + 10_000 / cs**2 + 1) / 4, rel=1e-11)
    assert cs[np.argmin(queries)] == 10
    sizes = np.array(table.numbers("size"))
    assert np.array(table.numbers("shared")) == pytest.approx(sizes / 4, rel=1e-11)
    assert np.array(table.numbers("cross")) == pytest.approx(sizes / 2, rel=1e-11)


@pytest.mark.slow
def test_figure_3_against_the_ellipses_in_floating_point() -> None:
    """Minimise (a₁² + 999a₂²)/1000 under the constraints of all numbers of ones, by bisection."""
    table = fig03.compute(FAST)
    d = 1000
    for k in (1.0, 325.0, 496.0, 505.0, 703.0, 1000.0):
        j = np.arange(1, int(k) + 1)
        along = j**2 / d
        across = j - along
        best = math.inf
        for x in np.linspace(1e-9, 1, 20_001)[1:] / along[-1]:  # 1/a₁²
            y = np.min((1 - along * x)[across > 0] / across[across > 0], initial=math.inf)
            if y > 0:
                best = min(best, (1 / x + (0 if math.isinf(y) else (d - 1) / y)) / d)
        assert table.value("optimal", k=k) == pytest.approx(best, rel=1e-6)
    assert table.value("algorithm_1", k=505.0) == pytest.approx((math.sqrt(1000) + 1) ** 2 / 4)
    gaps = table.numbers("gap")
    assert 0 < min(gaps) <= max(gaps) < 2 * math.sqrt(3) / 4

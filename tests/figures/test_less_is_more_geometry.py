"""The geometric figures of Ji and Li's paper by measuring what was drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from figures.description import Settings, Size
from figures.less_is_more import fig01, fig02, fig03
from figures.table import Table

FAST = Settings(size=Size.FAST)


def line(table: Table, panel: str, curve: str) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    return np.array(table.points("x", "y", panel=panel, curve=curve)).T


def angle(a: object, b: object) -> float:
    one, two = np.asarray(a, float), np.asarray(b, float)
    return math.degrees(math.atan2(abs(one[0] * two[1] - one[1] * two[0]), one @ two))


@pytest.mark.parametrize(("panel", "degrees"), [("acute", 50), ("obtuse", 125)])
def test_figure_1_triangles_are_inscribed_with_the_angle(panel: str, degrees: float) -> None:
    table = fig01.compute(FAST)
    apex, left = line(table, panel, "n")
    right = line(table, panel, "n'")[1]
    assert angle(left - apex, right - apex) == pytest.approx(degrees, abs=1e-7)
    assert np.linalg.norm(right - left) == pytest.approx(1)
    centre, bottom = line(table, panel, "radius")
    radius = np.linalg.norm(bottom - centre)
    assert 2 * radius == pytest.approx(1 / math.sin(math.radians(degrees)))
    for corner in (apex, left, right):
        assert np.linalg.norm(corner - centre) == pytest.approx(radius)
    sides = np.linalg.norm(left - apex) + np.linalg.norm(right - apex)
    assert sides <= 1 / math.sin(math.radians(degrees / 2)) <= 4 * radius


def test_figure_1_the_largest_sum_by_a_search() -> None:
    table = fig01.compute(FAST)
    for degrees, found in line(table, "bounds", "largest sum, 1/sin(θ/2)")[::8]:
        theta = math.radians(degrees)
        best = minimize_scalar(
            lambda a, t=theta: -(math.sin(a) + math.sin(math.pi - t - a)) / math.sin(t),
            bounds=(0, math.pi - theta),
            method="bounded",
        )
        assert found == pytest.approx(-best.fun, rel=1e-6)


def test_figure_2_arrows_meet_only_where_a_triangle_is_drawn() -> None:
    table = fig02.compute(FAST)
    for panel in ("classic, small ε", "classic, large ε", "R1SMG, small ε", "R1SMG, large ε"):
        one, two = line(table, panel, "n")[1], line(table, panel, "n'")[1]
        assert (np.linalg.norm(one - two) < 1e-9) == panel.endswith("small ε")
        if panel.startswith("R1SMG"):
            for arrow, direction in (("n", "h"), ("n'", "g")):
                along = line(table, panel, direction)
                own = line(table, panel, arrow)
                assert angle(along[1] - along[0], own[1] - own[0]) == pytest.approx(0, abs=1e-4)


def test_figure_2_the_probability_is_that_of_two_long_noises() -> None:
    """σ of Theorem 5 by its printed formula, |√σ z| ≥ ½ for two independent z."""
    table = fig02.compute(FAST)
    for dimension in (10, 100):
        gammas = math.gamma((dimension - 1) / 2) / math.gamma(dimension / 2)
        psi = (1e-5 * gammas / math.sqrt(math.pi)) ** (2 / (dimension - 2))
        for eps, found in line(table, "probability", f"M = {dimension}")[::4]:
            sigma = 2 / (eps * psi)
            expected = (2 * norm.sf(0.5 / math.sqrt(sigma))) ** 2
            assert found == pytest.approx(expected, rel=1e-8)
            assert found > 0


def test_figure_3_vectors_and_null_spaces_are_orthogonal() -> None:
    table = fig03.compute(FAST)
    null, vector = line(table, "circle", "n null"), line(table, "circle", "v")
    assert vector[1] == pytest.approx([-1 / math.sqrt(5), 2 / math.sqrt(5)])
    assert angle(null[1] - null[0], vector[1]) == pytest.approx(90)
    front, hidden = line(table, "sphere", "n null"), line(table, "sphere", "n hidden")
    ellipse = np.vstack([front, hidden])
    along = line(table, "sphere", "v")[1]
    assert np.max(np.linalg.norm(ellipse, axis=1)) == pytest.approx(1, abs=2e-3)
    # The great circle projects to an ellipse whose short half-axis lies along v and is as long
    # as v is ahead of the plane of view.
    short = math.sqrt(1 - along @ along)
    unit = along / np.linalg.norm(along)
    assert np.max(np.abs(ellipse @ unit)) == pytest.approx(short, abs=2e-3)


def test_figure_3_the_mass_near_the_null_space_by_simulation() -> None:
    """100000 draws: 5 standard errors of a fraction leave less than 1e-6."""
    table = fig03.compute(FAST)
    rng = np.random.default_rng(7)
    drawn = rng.standard_normal((100_000, 100))
    first = np.abs(drawn[:, 0]) / np.linalg.norm(drawn, axis=1)
    for w, found in line(table, "mass", "M = 100"):
        share = float(np.mean(first <= w))
        assert abs(share - found) <= 5 * math.sqrt(found / 100_000) + 1e-4

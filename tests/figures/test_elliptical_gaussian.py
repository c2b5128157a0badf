"""The figures about elliptical noise against closed forms and numerical integration."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from scipy.integrate import quad

from figures.description import Settings, Size
from figures.elliptical_gaussian import clipping, fig01, fig02

FAST = Settings(size=Size.FAST)


def test_the_ratio_by_skew_is_that_of_cauchy_and_schwarz() -> None:
    table = fig01.compute(FAST)
    for d in (2, 10, 100):
        xs, ys = table.points("x", "y", panel="power", curve=f"d = {d}")
        for s, ratio in zip(xs, ys, strict=True):
            deltas = np.arange(1, d + 1) ** -s
            assert ratio == pytest.approx(d * (deltas @ deltas) / deltas.sum() ** 2, rel=1e-9)
            assert 1 <= ratio < d
        xs, ys = table.points("x", "y", panel="one large", curve=f"d = {d}")
        for t, ratio in zip(xs, ys, strict=True):
            assert ratio == pytest.approx(d * (t * t + d - 1) / (t + d - 1) ** 2, rel=1e-9)


def test_the_variances_of_the_coordinates() -> None:
    """At ε = ½, δ = 1e-5 the least σ is 7.03183 and Theorem 1's is 9.68961."""
    table = fig01.compute(FAST)
    harmonic = sum(1 / j for j in range(1, 11))
    squares = sum(1 / j**2 for j in range(1, 11))
    for curve, sigma in (("", 7.03183), (", Theorem 1", 9.68961)):
        for j in (1.0, 4.0, 10.0):
            own = table.value("y", panel="coordinates", curve=f"elliptical{curve}", x=j)
            assert own == pytest.approx(harmonic / j * sigma**2, rel=2e-5)
            same = table.value("y", panel="coordinates", curve=f"spherical{curve}", x=j)
            assert same == pytest.approx(squares * sigma**2, rel=2e-5)


@pytest.mark.parametrize(("mean", "deviation", "bound"), [(0.5, 1, 1), (0.1, 0.2, 0.8), (0, 2, 1)])
def test_the_moments_of_clipping_by_integration(
    mean: float, deviation: float, bound: float
) -> None:
    density = NormalDist(mean, deviation).pdf

    def moment(power: int) -> float:
        def integrand(x: float) -> float:
            return float((min(max(x, -bound), bound) - x) ** power * density(x))

        ends = (mean - 12 * deviation, -bound, bound, mean + 12 * deviation)
        return float(quad(integrand, *ends[:2])[0] + quad(integrand, *ends[2:])[0])

    found = clipping.clipped(mean, deviation, bound)
    assert found.bias == pytest.approx(moment(1), rel=1e-7, abs=1e-12)
    assert found.variance == pytest.approx(moment(2) - moment(1) ** 2, rel=1e-7)


def test_simulation_and_theory_agree() -> None:
    """Each mark is a mean over 400 trials; 5.3 standard errors leave 1e-6 for all 54 marks.

    The squared bias has relative standard error 2·√(variance/400)/|bias| at least, the others
    at most √(2/400) (a mean of squares of normal coordinates).
    """
    table = fig02.compute(Settings())
    for noise in ("elliptical", "spherical"):
        lines = {
            part: table.points("x", "error", noise=noise, part=part, route="theory")
            for part in ("bias²", "clipping", "noise", "total")
        }
        for part in ("clipping", "noise", "total"):
            xs, ys = table.points("x", "error", noise=noise, part=part, route="simulation")
            for x, y in zip(xs, ys, strict=True):
                line = np.exp(np.interp(np.log(x), np.log(lines[part][0]), np.log(lines[part][1])))
                if line > 1e-3:
                    assert y == pytest.approx(line, rel=5.3 * math.sqrt(2 / 400))
        xs, ys = table.points("x", "error", noise=noise, part="bias²", route="simulation")
        theory = np.interp(xs[:5], *lines["bias²"])
        assert ys[:5] == pytest.approx(theory, rel=0.05)


def test_the_total_is_the_sum_of_its_parts_and_elliptical_noise_is_never_worse() -> None:
    table = fig02.compute(FAST)
    for noise in ("elliptical", "spherical"):
        parts = [
            table.numbers("error", noise=noise, part=part, route="theory")
            for part in ("bias²", "clipping", "noise")
        ]
        total = table.numbers("error", noise=noise, part="total", route="theory")
        assert total == pytest.approx(np.sum(parts, axis=0), rel=1e-9)
    better = np.array(table.numbers("error", noise="elliptical", part="least"))
    assert np.all(better < np.array(table.numbers("error", noise="spherical", part="least")))

"""Figures 5 and 9 of Ji and Li's paper against values from other routes."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import chi2, norm

from accountant.budget.calibrate import EpsilonDelta, calibrate
from accountant.mechanisms.shapes.rank_one_gaussian import RankOneGaussian
from accountant.questions import profile
from figures.description import Settings, Size
from figures.less_is_more import calibrations, fig05, fig09, table_1
from figures.table import Table

FAST = Settings(size=Size.FAST)


@cache
def losses() -> Table:
    return fig05.compute(FAST)


@cache
def expected_losses() -> Table:
    return fig09.compute(FAST)


def gaussian_delta(epsilon: float, mu: float) -> float:
    first = norm.cdf(mu / 2 - epsilon / mu)
    return float(first - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))


def test_the_printed_sigma_star_by_mpmath() -> None:
    m, epsilon, delta = 7921, mpmath.mpf("1e-5"), mpmath.mpf("1e-7")
    ratio = delta * mpmath.gamma(mpmath.mpf(m - 1) / 2) / mpmath.gamma(mpmath.mpf(m) / 2)
    psi = (ratio / mpmath.sqrt(mpmath.pi)) ** (mpmath.mpf(2) / (m - 2))
    found = calibrations.sigma_star_of_theorem_5(m, 1e-5, 1e-7)
    assert found == pytest.approx(float(2 / (epsilon * psi)), rel=1e-10)
    assert 2 * found == pytest.approx(402110.1, abs=0.05)


@pytest.mark.slow
def test_the_exact_sigma_star_lies_in_the_ledgers_bracket() -> None:
    least = 2 * calibrations.exact_sigma_star(7921, "1e-5", "1e-7")
    assert 2.4366e19 < least < 2.4367e19


@pytest.mark.slow
def test_the_exact_sigma_star_is_the_calibrated_one() -> None:
    target = EpsilonDelta("0.1", "0.1")
    expected = calibrate("RankOneGaussian", target, dimension=3).least
    found = calibrations.exact_sigma_star(3, "0.1", "0.1")
    assert float(expected.upper) <= found <= float(expected.upper) * (1 + 1.1e-6)


@pytest.mark.slow
def test_figure_5_means_are_those_of_the_ledger() -> None:
    table = losses()
    mean = {
        (kind, name): table.value("loss", kind=kind, what="expected", mechanism=name)
        for kind in ("printed", "verified")
        for name in ("R1SMG", "classic", "analytic", "MVG")
    }
    assert mean["printed", "R1SMG"] == pytest.approx(402110.1, abs=0.05)
    assert mean["printed", "classic"] == pytest.approx(2071023, abs=0.5)
    assert mean["printed", "MVG"] == pytest.approx(9.70e17, rel=1e-3)
    mu = brentq(lambda m: gaussian_delta(0.5, m) - 1e-7, 0.01, 1)
    assert mean["printed", "analytic"] == pytest.approx(7921 * 2 / mu**2, rel=1e-6)
    assert 2.4366e19 < mean["verified", "R1SMG"] < 2.4367e19
    for name in ("classic", "analytic", "MVG"):
        assert mean["verified", name] == mean["printed", "analytic"]


def test_figure_5_draws_have_the_quantiles_of_their_law() -> None:
    """By Dvoretzky, Kiefer and Wolfowitz 100 draws are off by more than 0.27 below 1e-6."""
    table = losses()
    for kind in ("printed", "verified"):
        for name, law in (("R1SMG", chi2(1)), ("classic", chi2(7921)), ("MVG", chi2(7921))):
            where = {"kind": kind, "mechanism": name}
            found = np.array(table.numbers("loss", what="draw", **where))
            expected = table.value("loss", what="expected", **where)
            share = law.cdf(found * law.mean() / expected)
            assert len(found) == 100
            assert np.abs(share - np.linspace(0, 1, 100)).max() < 0.28


def test_figure_5_draws_have_the_expected_mean() -> None:
    """The mean of 100 values of z² is off by more than 0.85 with probability below 1e-6."""
    table = losses()
    for name, most in (("R1SMG", 0.85), ("classic", 0.01), ("MVG", 0.01)):
        expected, found = (
            table.value("loss", kind="printed", what=what, mechanism=name)
            for what in ("expected", "mean")
        )
        assert found / expected == pytest.approx(1, abs=most)


@pytest.mark.slow
def test_figure_9_by_other_routes() -> None:
    table = expected_losses()
    where = {"panel": "printed", "epsilon": "1e-7"}
    xs, ys = table.points("M", "loss", mechanism="R1SMG", **where)
    assert ys == sorted(ys, reverse=True)
    # 1/ψ at 10⁻¹⁰ and M = 100 and 10⁶, by mpmath.
    assert ys[0] == pytest.approx(2e7 * 1.684318, rel=1e-6)
    assert ys[-1] == pytest.approx(2e7 * 1.000060, rel=1e-6)
    classic = table.points("M", "loss", mechanism="classic Gaussian", **where)[1]
    assert classic[0] == pytest.approx(100 * 2 * math.log(1.25e10) / 1e-14, rel=1e-9)
    assert [y / x for x, y in zip(xs, classic, strict=True)] == pytest.approx(
        [classic[0] / 100] * 5
    )
    analytic = table.points("M", "loss", mechanism="analytic Gaussian", **where)[1]
    mu = brentq(_exact_excess, 1e-8, 1e-7, xtol=1e-20, rtol=1e-12)
    assert analytic[0] == pytest.approx(100 / mu**2, rel=1e-5)


def _exact_excess(at: float) -> float:
    with mpmath.workdps(60):
        mu, epsilon = mpmath.mpf(at), mpmath.mpf("1e-7")
        first = mpmath.ncdf(mu / 2 - epsilon / mu)
        second = mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)
        return float((first - second) * 10**10 - 1)


@pytest.mark.slow
def test_figure_9_verified_noise_is_that_of_the_ledger() -> None:
    table = expected_losses()
    losses = table.points("M", "loss", panel="verified", mechanism="R1SMG", epsilon="1e-7")
    assert losses[0] == [100, 1e6]
    assert 2.9031e27 < losses[1][1] < 2.904e27


@pytest.mark.slow
def test_table_1_against_other_routes() -> None:
    table = table_1.compute(FAST)
    m, eps, delta = 100, 1 / 200, 1e-5
    where: dict[str, float | str] = {"M": m, "mechanism": "analytic Gaussian"}
    mu = brentq(lambda mu: gaussian_delta(eps, mu) - delta, 1e-4, 1, xtol=1e-15)
    assert table.value("true", **where) == pytest.approx(m / mu**2, rel=1e-6)
    assert table.value("printed", **where) == pytest.approx(
        m * (norm.ppf(delta) ** 2 + eps) / eps**2, rel=1e-8
    )
    harmonic = [sum(1 / i**p for i in range(1, 11)) for p in (1, 0.5)]
    assert table.value("printed", M=m, mechanism="MVG") == pytest.approx(
        (5 / 4 * harmonic[0] + harmonic[1] / 4) / (2 * eps) * m, rel=1e-8
    )
    # L is σ² times a χ² law with M degrees of freedom, or σ_* times one with 1.
    for name, degrees in (("analytic Gaussian", m), ("R1SMG", 1)):
        mean, variance = chi2.stats(degrees)
        spread = table.value("spread", M=m, mechanism=name)
        assert spread == pytest.approx(float(variance / mean**2), rel=1e-9)
    star = table.value("true", M=m, mechanism="R1SMG")
    below, above = (
        profile.delta(RankOneGaussian(m, Fraction(star) * factor), Fraction(1, 200))
        for factor in (1, Fraction(99999, 100000))
    )
    assert below <= Fraction(1, 10**5) < above

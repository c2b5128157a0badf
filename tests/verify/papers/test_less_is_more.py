"""The ledger of "Less is More": every verdict with its reason, and its numbers a second time."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from mpmath import (
    erfc,
    exp,
    expm1,
    findroot,
    gammainc,
    log,
    loggamma,
    mp,
    mpf,
    ncdf,
    pi,
    quad,
    sqrt,
)

from verify.verdict import Finding

pytestmark = pytest.mark.slow
"""The ledger takes 40 s; two shorter ones are decided in the default suite."""


@pytest.fixture(scope="module")
def findings(decided: Callable[[str], dict[str, Finding]]) -> dict[str, Finding]:
    return decided("less-is-more")


# ---------------------------------------------------------------- the numbers, in mpmath


def lower(finding: Finding, name: str) -> mpf:
    return mpf(finding.true[name]["lower"])


def gaussian_delta(epsilon: mpf, mu: mpf) -> mpf:
    return ncdf(mu / 2 - epsilon / mu) - exp(epsilon) * ncdf(-mu / 2 - epsilon / mu)


def inverse_psi(dimension: int, delta: str) -> mpf:
    size = mpf(dimension)
    logarithm = log(sqrt(pi) / mpf(delta)) + loggamma(size / 2) - loggamma((size - 1) / 2)
    return exp(2 * logarithm / (size - 2))


def test_the_printed_noise_of_the_pickup_counts(findings: dict[str, Finding]) -> None:
    with mp.workdps(40):
        value = lower(findings["section-7-1/loss-r1smg"], "value")
        assert mp.almosteq(value, 4 * inverse_psi(7921, "1e-7") * 10**5, mpf("1e-14"))


def test_the_bound_of_theorem_3(findings: dict[str, Finding]) -> None:
    with mp.workdps(40):
        size = mpf(2400)
        change = size * sqrt(2) / 24016
        first = sum(1 / mpf(i) for i in range(1, 2401))
        half = sum(1 / sqrt(mpf(i)) for i in range(1, 2401))
        tail = 2 * size * sqrt(7 * log(10)) + 14 * log(10) + size**2
        alpha = (first + (first + half) / 4) * change**2
        beta = 2 * sqrt(size) * first * change * tail
        root = (-beta + sqrt(beta**2 + 8 * alpha * mpf("1.6"))) / (2 * alpha)
        found = lower(findings["section-7-2/mvg-0.011"], "value")
        assert mp.almosteq(found, root**2, mpf("1e-8"))  # the difference cancels 24 digits


def test_delta_of_the_plotted_loss(findings: dict[str, Finding]) -> None:
    with mp.workdps(30):
        delta = gaussian_delta(mpf("0.5"), sqrt(2 / (mpf(55000) / 7921)))
        found = lower(findings["section-7-1/loss-others/analytic"], "delta")
        assert mp.almosteq(found, delta, mpf("1e-14"))


def test_tails_of_the_losses(findings: dict[str, Finding]) -> None:
    finding = findings["corollary-2/stability"]
    with mp.workdps(30):
        assert mp.almosteq(lower(finding, "left"), erfc(1), mpf("1e-14"))
        other = gammainc(mpf(7921) / 2, 7921, regularized=True)
        assert mp.almosteq(lower(finding, "right"), other, mpf("1e-12"))
        assert other < mpf(10) ** -500


@pytest.mark.parametrize(
    ("total", "epochs", "images", "root"),
    [
        ("1.795", 30, 60000, "0.712521"),
        ("16.983", 30, 60000, "5.425176"),
        ("2.673", 100, 60000, "0.571539"),
        ("2.673", 100, 50000, "0.521739"),
        ("20.713", 100, 60000, "3.490966"),
        ("20.713", 100, 50000, "3.186343"),
    ],
)
def test_roots_of_equation_16(total: str, epochs: int, images: int, root: str) -> None:
    with mp.workdps(30):
        rate = mpf(256) / images
        steps = epochs / rate
        scale = sqrt(2 * steps * log(mpf(10) ** 10))
        found = findroot(
            lambda e: scale * rate * e + steps * rate * e * expm1(rate * e) - mpf(total), mpf(root)
        )
        assert abs(found - mpf(root)) < mpf("1e-6")


def test_amplification_by_sampling(findings: dict[str, Finding]) -> None:
    with mp.workdps(30):
        value = log(1 + mpf(256) / 60000 * expm1(mpf("5.42")))
        found = lower(findings["section-7-3/equation-16/amplification"], "left")
        assert mp.almosteq(found, value, mpf("1e-14"))


def slab_mass(dimension: int, kappa: mpf) -> mpf:
    """P(|⟨n, u⟩| ≤ Δ/2): the mass of √σ_* z x in the slab, over the density of x = ⟨v, u⟩."""
    size = mpf(dimension)
    constant = 2 * exp(loggamma(size / 2) - loggamma((size - 1) / 2)) / sqrt(pi)

    def density(x: mpf) -> mpf:
        inside = mp.erf(kappa / (2 * sqrt(mpf(2)) * x)) if x else mpf(1)
        return constant * (1 - x * x) ** ((size - 3) / 2) * inside

    width = 1 / sqrt(size)
    return quad(density, [0, width / 100, width / 10, width, 3 * width, 10 * width, 20 * width])


def test_the_half_space_is_a_lower_bound(findings: dict[str, Finding]) -> None:
    """The closed form of the ledger lies below the quadrature of the same slab's mass."""
    with mp.workdps(25):
        epsilon = mpf("0.9") / 7921
        mass = slab_mass(7921, sqrt(epsilon / 2 / inverse_psi(7921, "1e-7")))
        event = mass - expm1(epsilon) * (1 - mass) / 2
        assert mpf("0.17") < lower(findings["theorem-5/half-space"], "left") < event < mpf("0.6")


def test_delta_of_the_pickup_release(findings: dict[str, Finding]) -> None:
    """The exact δ lies between the half-space's value and the total variation, both quadratures."""
    with mp.workdps(25):
        epsilon = mpf("1e-5")
        mass = slab_mass(7921, sqrt(epsilon / 2 / inverse_psi(7921, "1e-7")))
        event = mass - expm1(epsilon) * (1 - mass) / 2
        assert event < lower(findings["section-7-1/dp-claim"], "delta") < mass
        assert mass - event < mpf("5e-6")


def test_needed_noise_brackets_delta(findings: dict[str, Finding]) -> None:
    enough, less = (findings[name] for name in ("theorem-5/needed", "theorem-5/needed/least"))
    with mp.workdps(20):
        assert lower(enough, "left") < mpf("1e-7") < lower(less, "left")
        assert lower(less, "left") / lower(enough, "left") < mpf("1.0001")


def test_slab_bound(findings: dict[str, Finding]) -> None:
    with mp.workdps(40):
        epsilon, delta = mpf("1e-9"), mpf("1e-10")
        mass = (expm1(epsilon) + 2 * delta) / (exp(epsilon) + 1)
        count = mp.floor((1 / mass - 1) / 2)
        bound = mpf(10) ** 6 * mass * count * (4 * count**2 - 1) / 6
        assert mp.almosteq(lower(findings["appendix-b/dp"], "left"), bound, mpf("1e-14"))


def test_ratios_of_raw_moments() -> None:
    moments = [Fraction(1)]
    for i in range(4):
        moments.append(moments[-1] * (1 + 2 * i))
    _, first, second, third, fourth = moments
    assert fourth / second**2 == Fraction(35, 3)
    assert third**2 / second**3 == Fraction(25, 3)
    central = fourth - 4 * third * first + 6 * second * first**2 - 3 * first**4
    assert central / (second - first**2) ** 2 == 15

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from statistics import NormalDist

import mpmath
import numpy as np
import pytest
from flint import arb, ctx

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.mechanisms import (
    AboveThreshold,
    BoundedCountNoise,
    Composed,
    DiscreteLaplace,
    Gaussian,
    Guaranteed,
    Laplace,
    Logistic,
    MixtureOfGaussians,
    ReportNoisyMax,
    Shuffled,
    Staircase,
    Tabulated,
    TruncatedLaplace,
)
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import guarantees, profile, tradeoff
from tests.near import mpf, narrow
from tests.quick import slow

LEVELS = ["1e-300", "1e-5", "0.03", "0.3", "1/2", "0.7", "0.999999", 1 - Fraction(1, 10**300)]
WIDTH = Fraction(1, 10**30)
KINDS: list[Mechanism] = [
    Gaussian(1),
    Gaussian("1e5"),
    Laplace("0.5"),
    Laplace("1e300"),
    DiscreteLaplace("2", 3),
    Staircase("1", "0.3"),
]


@pytest.mark.parametrize("mechanism", KINDS, ids=str)
@pytest.mark.parametrize("alpha", LEVELS, ids=lambda a: str(a)[:10])
def test_beta_and_power_are_narrow_and_add_to_one(
    mechanism: Mechanism, alpha: str | Fraction
) -> None:
    beta, power = tradeoff.beta(mechanism, alpha), tradeoff.power(mechanism, alpha)
    assert narrow(beta, WIDTH)
    assert narrow(power, WIDTH)
    assert Fraction(beta.lower) + Fraction(power.lower) <= 1
    assert Fraction(beta.upper) + Fraction(power.upper) >= 1
    assert Fraction(power.upper) >= exact(alpha).rational  # type: ignore[operator]  # rational


@pytest.mark.parametrize("mu", ["1", "0.01", "3"])
@pytest.mark.parametrize("alpha", ["1e-300", "1e-5", "0.3", "1/2", "0.999999"])
def test_gaussian_is_the_closed_form(mu: str, alpha: str) -> None:
    # β = Φ(Φ⁻¹(1 − α) − μ), as arb's own inverse error function has it

    value = tradeoff.beta(Gaussian(1, mu), alpha)
    with ctx.workprec(400):
        z = arb(2).sqrt() * (2 * exact(alpha).ball()).erfcinv()
        closed = ((exact(mu).ball() - z) / arb(2).sqrt()).erfc() / 2
        assert value.overlaps(Interval.of_ball(closed, 60))


@pytest.mark.parametrize("t", ["2", "1/3", "20"])
@pytest.mark.parametrize("alpha", LEVELS, ids=lambda a: str(a)[:10])
def test_laplace_is_the_closed_form(t: str, alpha: str | Fraction) -> None:
    """Straight on both atoms, a hyperbola between: Dong, Roth and Su, Section 2."""
    value = tradeoff.beta(Laplace(1, t), alpha, relative_width=Fraction(1, 10**30))
    with mpmath.workdps(400):
        a, distance = exact(alpha).mpf(), exact(t).mpf()
        if a < mpmath.exp(-distance) / 2:
            closed = 1 - mpmath.exp(distance) * a
        elif a <= mpmath.mpf(1) / 2:
            closed = mpmath.exp(-distance) / (4 * a)
        else:
            closed = mpmath.exp(-distance) * (1 - a)
        assert abs(mpf(value) - closed) <= mpmath.mpf("1e-29") * closed


def test_ends() -> None:
    for mechanism in KINDS:
        assert tradeoff.beta(mechanism, 0) == Interval.of_exact(1)
        assert tradeoff.beta(mechanism, 1) == Interval.of_exact(0)
        assert tradeoff.power(mechanism, 0) == Interval.of_exact(0)
        assert tradeoff.power(mechanism, 1) == Interval.of_exact(1)


def test_levels_on_a_plateau() -> None:
    """At a vertex Q(L > ε) equals α on a whole interval of ε, and no precision tells them apart."""
    table = Tabulated(["1/2", "1/3", "1/6"], ["1/6", "1/3", "1/2"])
    for alpha, beta in (("1/6", Fraction(1, 2)), ("1/2", Fraction(1, 6))):
        value = tradeoff.beta(table, alpha)
        assert beta in value
        assert narrow(value, WIDTH)
        power = tradeoff.power(table, alpha)
        assert 1 - beta in power
        assert narrow(power, WIDTH)


@pytest.mark.parametrize(
    "mechanism",
    [
        AboveThreshold(2, 4, variant="noisy-values"),
        AboveThreshold(2, 4),
        ReportNoisyMax("Laplace", 2, 5),
        Shuffled(Guaranteed(1), 1000),
    ],
    ids=str,
)
@pytest.mark.parametrize("alpha", [slow("0.001"), "0.1", slow("0.7")])
def test_where_delta_is_only_bounded_so_is_beta(mechanism: Mechanism, alpha: str) -> None:
    beta, power = tradeoff.beta(mechanism, alpha), tradeoff.power(mechanism, alpha)
    assert 0 <= beta.lower < beta.upper < 1 - Decimal(alpha)
    assert beta.overlaps(1 - power)
    for epsilon in ("0", "0.03", "0.5"):  # 1 − δ(ε) − e^ε α is at most β(α)
        delta = profile.delta(mechanism, epsilon)
        with localcontext(prec=20):
            assert 1 - delta.upper - Decimal(epsilon).exp() * Decimal(alpha) <= beta.upper
    with pytest.raises(UndecidedError, match="Only bounds are known"):
        tradeoff.beta(mechanism, alpha, relative_width="1e-9")
    with pytest.raises(NotApplicableError, match="Only bounds of delta, epsilon and beta"):
        guarantees.loss_survival(mechanism, 1)


@pytest.mark.parametrize(
    ("scale", "alpha", "by_quantiles"),
    [
        ("1.38", "0.05", 0.8579109130794),
        ("1.38", "0.1", 0.7545303921689),
        ("3", "0.05", 0.9170307100561),
        ("3", "0.3", 0.5971396415246),
    ],
)
def test_beta_of_bounded_losses_on_a_grid(scale: str, alpha: str, by_quantiles: float) -> None:
    """Of two logistic releases, against the mean over 2·10⁶ quantiles of one of the other's law."""
    found = tradeoff.beta(Composed(Logistic(scale=scale), 2), alpha, method="grid")
    assert float(found.lower) < by_quantiles < float(found.upper)
    assert float(found.upper - found.lower) < 1e-6


def test_beta_where_it_is_decided_far_below_zero() -> None:
    """A hundred losses of at most 1/5 or infinite: against their rounded law, by one transform."""
    x = np.arange(-30 + 5e-4, 31, 1e-3)
    p, q = (np.exp(-abs(y) / 5) * (abs(y) < 30) for y in (x, x - 1))
    both = (p > 0) & (q > 0)
    cells = np.rint(np.log(p[both] / q[both]) / 2e-4).astype(int)
    one = np.bincount(cells - cells.min(), q[both] / q.sum())
    law = np.fft.ifft(np.fft.fft(one, 1 << 18) ** 100).real
    loss = (np.arange(1 << 18) + 100 * cells.min()) * 2e-4
    above = np.cumsum(law[::-1])[::-1]
    beta = float((law * np.exp(loss))[above > 0.5].sum())
    repeated = Composed(TruncatedLaplace(scale=5, bound=30), 100)
    found = tradeoff.beta(repeated, "1/2", adjacency="replace-one")
    assert float(found.upper - found.lower) < 1e-6
    assert beta == pytest.approx(float(found.lower), rel=1e-3, abs=0)


@pytest.mark.parametrize("count", [1000, 3000])
def test_a_beta_that_is_next_to_nothing_is_refused_on_a_grid(count: int) -> None:
    """That β lies between 0 and 1 − α is known without asking."""
    table = Tabulated(p=["1/2", "1/3", "1/6"], q=["1/4", "1/4", "1/2"])
    with pytest.raises(UndecidedError, match="It is only known"):
        tradeoff.beta(Composed(table, count), "0.3", adjacency="add-remove", method="grid")


def test_levels_far_below_the_width_are_answered() -> None:
    """β lies between that of the shift by 2 of all three releases, at 1 − 1.2e-7, and 1 − α."""
    shares = [Fraction(51, 54), Fraction(2, 54), Fraction(1, 54)]
    mechanism = Composed(MixtureOfGaussians("7.232", [0, 1, 2], shares), 3)
    level, mu = 8.04e-9, 2 * math.sqrt(3) / 7.232
    found = tradeoff.beta(
        mechanism, str(level), adjacency="add-remove", relative_width=Fraction(1, 10**6)
    )
    least = NormalDist().cdf(-NormalDist().inv_cdf(level) - mu)
    assert float(found.lower) <= 1 - level
    assert float(found.upper) >= least
    assert narrow(found, Fraction(1, 10**6))


@pytest.mark.slow
def test_infinite_losses_bound_a_beta_that_floats_do_not_have() -> None:
    counts = Composed(BoundedCountNoise(epsilon="0.001562", eta="1/3", support=6), 10000)
    found = tradeoff.beta(counts, "7.32e-9", adjacency=Adjacency.ADD_REMOVE)
    assert found.upper < Decimal("0.2")

"""Pairs on lattices, between two ends, and mixtures of normal laws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import mpmath
import pytest
from flint import arb, ctx

import dpassay
from dpassay.accountant.budget.calibrate import EpsilonDelta, calibrate
from dpassay.accountant.mechanisms import Composed, Gaussian
from dpassay.accountant.numbers import theta as sums
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.accountant.pairs.between import Between, passes
from dpassay.accountant.pairs.finite import Balls, FiniteLaws, FinitePair
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.pairs.subsampled import GaussianMixturePair, mixture_renyi
from dpassay.accountant.questions import profile

PARAMETERS = ["1e-3", "0.15", "1/6", "0.17", "1", "sqrt(2)", "30.5", "2500"]
AGREEMENT = mpmath.mpf("1e-40")


def weight(v: str, z: int) -> mpmath.mpf:
    return mpmath.exp(-(mpmath.mpf(z) ** 2) / (2 * exact(v).mpf()))


def plain_sum(v: str, start: int) -> mpmath.mpf:
    """Sum e^{−z²/2v} upward from `start` until a term is 10⁻⁷⁰ of the sum."""
    total, z = mpmath.mpf(0), start
    while True:
        term = weight(v, z)
        total += term
        z += 1
        if z > 0 and term < total * mpmath.mpf(10) ** -70:
            return total


def close(found: Interval, reference: mpmath.mpf) -> bool:
    middle = (mpmath.mpf(str(found.lower)) + mpmath.mpf(str(found.upper))) / 2
    return bool(abs(middle - reference) <= AGREEMENT * abs(reference))


@pytest.mark.parametrize("v", PARAMETERS)
def test_theta_and_variance_are_the_plain_sums(v: str) -> None:
    narrow = Fraction(1, 10**45)
    with mpmath.workdps(80):
        total = 1 + 2 * plain_sum(v, 1)
        assert close(enclose(lambda: sums.theta(exact(v)), relative_width=narrow), total)
        moment = 2 * mpmath.fsum(z * z * weight(v, z) for z in range(1, 1200)) / total
        assert close(enclose(lambda: sums.variance(exact(v)), relative_width=narrow), moment)


@pytest.mark.parametrize("v", PARAMETERS)
@pytest.mark.parametrize("start", [-3, 0, 1, 2, 7, 60])
def test_upper_tail_is_the_plain_sum(v: str, start: int) -> None:
    narrow = Fraction(1, 10**45)
    with mpmath.workdps(80):
        total = 1 + 2 * plain_sum(v, 1)
        tail = plain_sum(v, start) if start > 0 else total - plain_sum(v, 1 - start)
        found = enclose(lambda: sums.upper_tail(exact(v), start), relative_width=narrow)
        assert close(found, tail / total)


@pytest.mark.parametrize("v", ["1e-3", "0.15", "0.5", "20"])
@pytest.mark.parametrize("c", ["0.5", "0.125", "3", "7.25", "1e6"])
def test_ratio_of_shifted_sums(v: str, c: str) -> None:
    with ctx.workprec(300):
        ratio = Interval.of_ball(sums.log_theta_ratio(exact(v), exact(c).ball()).exp(), 60)
    with mpmath.workdps(80):
        offset = exact(c).mpf() % 1
        spread = 2 * exact(v).mpf()
        shifted = mpmath.fsum(mpmath.exp(-((z - offset) ** 2) / spread) for z in range(-120, 122))
        assert close(ratio, shifted / (1 + 2 * plain_sum(v, 1)))


def test_a_million_releases() -> None:
    found = calibrate("DiscreteGaussian", EpsilonDelta(1, "1e-6"), count=10**6)
    gaussian = calibrate("Gaussian", EpsilonDelta(1, "1e-6"), count=10**6)
    variance = gaussian.least.ball() ** 2
    assert abs(float(found.least.ball() / variance) - 1) < 1e-11  # as fine as theirs
    assert profile.delta(Composed(found.mechanism, 10**6), 1).upper <= Fraction(1, 10**6)


@dataclass(frozen=True)
class Tilted(FiniteLaws):
    """Masses 1/(1 + e^ε) and e^ε/(1 + e^ε), exchanged; the losses are known to be ∓ε."""

    epsilon: ExactReal
    known: bool

    def outcomes(self, index: int) -> Sequence[object]:
        return ("left", "right")

    def masses(self, index: int) -> tuple[Balls, Balls]:
        e = self.epsilon.ball().exp()
        return [1 / (1 + e), e / (1 + e)], [e / (1 + e), 1 / (1 + e)]

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        return [-self.epsilon, self.epsilon] if self.known else [None, None]


def test_a_known_loss_decides_the_tie_that_balls_cannot() -> None:
    epsilon = exact("0.7")
    known, unknown = FinitePair(Tilted(epsilon, True), 0), FinitePair(Tilted(epsilon, False), 0)
    with ctx.workprec(128):
        assert known.hockey_stick(epsilon).is_zero()
        assert known.tails(epsilon).p_above.is_zero()
        # honest without it: both sides are possible, and the divergence is still narrow
        tails = unknown.tails(epsilon)
        right = arb("0.7").exp() / (1 + arb("0.7").exp())
        for side in (tails.p_above, tails.p_below):
            assert side.overlaps(right)
        assert tails.p_above.contains(0)
        assert unknown.hockey_stick(epsilon).contains(0)
        assert unknown.hockey_stick(epsilon) < arb("1e-30")
        assert known.max_loss().overlaps(unknown.max_loss())


# A pair with two ends: what one end alone says is no answer.


LOW, HIGH = (GaussianPair(Gaussian(sigma), None) for sigma in (2, 1))


def test_a_lower_end_that_is_not_known_is_zero() -> None:
    unknown: Any = SimpleNamespace(renyi=lambda order: arb.nan())
    found = Between((unknown,), HIGH, "all").renyi(arb(2))
    assert found.contains(arb(0))
    assert found.contains(arb(1))


def test_infinite_ends_are_infinite() -> None:
    endless: Any = SimpleNamespace(renyi=lambda order: arb.pos_inf())
    assert Between((endless,), endless, "all").renyi(arb(2)) == arb.pos_inf()


def test_a_bound_that_is_0_but_for_its_error_is_below() -> None:
    def bound(epsilon: ExactReal) -> arb:
        return (arb("0.5") - epsilon.ball()).max(arb(0)) + arb(0, 1e-20)

    found = passes(bound, exact("0.1"), Fraction(1))
    assert found.lower < Fraction(2, 5) < found.upper


# Estimates of rank-one noise, and mixtures of normal laws.


MIXTURE = dpassay.MixtureOfGaussians(2, [0, 1, 2], ["0.5", "0.3", "0.2"])


@pytest.mark.parametrize("order", [150, 190])
def test_large_losses_give_the_integral(order: int) -> None:
    (pair,) = MIXTURE.worst_case(dpassay.Adjacency.ADD_REMOVE).remove
    assert isinstance(pair, GaussianMixturePair)
    with ctx.workprec(53):
        closed = pair.renyi(arb(order))
        p, q = (
            [(arb(w.numerator) / w.denominator, m.ball()) for w, m in s] for s in (pair.p, pair.q)
        )
        integral = mixture_renyi(p, q, arb(order))
    assert closed.overlaps(integral)
    assert closed.rad() < closed.mid() * 1e-12

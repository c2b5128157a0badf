from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from flint import arb, ctx

from accountant.numbers.exact import exact
from accountant.numbers.interval import Interval, enclose
from accountant.pairs import theta as sums

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


@pytest.mark.parametrize("v", ["1e3", "1e5", "4000.5"])
@pytest.mark.parametrize("start", [1, 40, 800, 3000])
def test_euler_maclaurin_agrees_with_the_terms(v: str, start: int) -> None:
    parameter = exact(v)
    with ctx.workprec(256):
        first = (-(arb(start) ** 2) / (2 * parameter.ball())).exp()
        direct = first * sums._direct(parameter, start, sums._terms(parameter, start))
        smooth = sums._euler_maclaurin(parameter, start, first)
        assert direct.overlaps(smooth)
        assert direct.rel_accuracy_bits() > 220
        assert smooth.rel_accuracy_bits() > 220


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

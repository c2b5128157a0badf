from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from accountant.budget.calibrate import EpsilonDelta, calibrate
from accountant.mechanisms import Composed, Logistic
from accountant.numbers.exact import exact
from accountant.numbers.interval import Interval
from accountant.questions import profile
from accountant.release.lattice_noise import InvertedNoise
from verify.audit import audit

FALSE_ALARM = 1e-6
"""Of every statistical test here."""


def mpf(value: Interval) -> mpmath.mpf:
    return (mpmath.mpf(str(value.lower)) + mpmath.mpf(str(value.upper))) / 2


def test_the_doubles_of_a_release_are_within_their_bound() -> None:
    declared = Logistic("0.7").inverse_noise()
    noise, places = InvertedNoise(declared), [0.0, 1e-9, 0.3, 2.0, 35.0, -1e-3, -7.0]
    found, bound = noise.floats(np.array(places)[:, np.newaxis], np.array([1.0]))
    with mpmath.workdps(40):
        for x, value, error in zip(places, found[:, 0], bound[:, 0], strict=True):
            true = mpmath.mpf("0.7") * mpmath.log(2 * mpmath.exp(abs(x)) - 1) * mpmath.sign(x)
            assert abs(mpmath.mpf(float(value)) - true) <= error <= 1e-13
    # the slope 2e^y/(2e^y − 1) is largest at 0
    assert declared.slope == 2


def composed(t: mpmath.mpf, count: int, epsilon: mpmath.mpf) -> mpmath.mpf:
    """Return H(ε) of so many releases by the n-fold convolution of the density of the loss.

    Under P it is e^{l/2}/(4 sinh(t/2)) on [−t, t], so that of the sum is e^{l/2}/(4 sinh(t/2))^n
    times Σ_k (−1)^k C(n, k) ((n − 2k)t − l)₊^{n−1}/(n − 1)!.
    """
    ends = [(count - 2 * k) * t for k in range(count + 1)]

    def term(loss: mpmath.mpf) -> mpmath.mpf:
        powers = (
            (-1) ** k * mpmath.binomial(count, k) * (end - loss) ** (count - 1)
            for k, end in enumerate(ends)
            if end > loss
        )
        weight = -mpmath.expm1(epsilon - loss) * mpmath.exp(loss / 2)
        return weight * mpmath.fsum(powers)

    places = sorted([epsilon, *(end for end in ends if end > epsilon)])
    whole = mpmath.quad(term, places) / mpmath.factorial(count - 1)
    return whole / (4 * mpmath.sinh(t / 2)) ** count


@pytest.mark.parametrize(("count", "epsilon"), [(4, "1"), (10, "2"), (10, "-1/3"), (30, "12")])
def test_compositions_agree_with_the_density_of_the_sum(count: int, epsilon: str) -> None:
    whole = Composed(Logistic(2), count)
    found = profile.delta(whole, epsilon, relative_width=Fraction(1, 10**9))
    with mpmath.workdps(50):
        expected = composed(mpmath.mpf(1) / 2, count, exact(epsilon).mpf())
        assert mpmath.mpf(str(found.lower)) <= expected <= mpmath.mpf(str(found.upper))


def test_calibration_and_an_audit() -> None:
    found = calibrate("Logistic", EpsilonDelta(1, "1e-6"))
    assert found.achieved["delta"].upper <= Fraction(1, 10**6)
    result = audit(Logistic(1), "0.5", samples=200_000, seed=1, significance=FALSE_ALARM)
    assert result.refuted
    on_device = audit(
        Logistic(1), "0.5", samples=200_000, seed=1, significance=FALSE_ALARM, device="numpy"
    )
    assert on_device.refuted
    assert not audit(Logistic(1), 1, samples=20_000, seed=2, significance=FALSE_ALARM).refuted

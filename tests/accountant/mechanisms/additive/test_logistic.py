from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from accountant.budget.calibrate import EpsilonDelta, calibrate
from accountant.core.adjacency import Adjacency, Direction
from accountant.mechanisms import Composed, Logistic, PoissonSubsampled
from accountant.numbers.exact import exact
from accountant.numbers.interval import Interval, enclose
from accountant.questions import accuracy, guarantees, profile, utility
from accountant.release.lattice_noise import InvertedNoise
from verify.audit import audit
from verify.certificate import certify
from verify.checker import Outcome, check
from verify.checker.arithmetic import compare, narrow, settle
from verify.checker.facts import mechanism
from verify.checker.laws import renyi
from verify.checker.mechanisms import pairs
from verify.claims import ApproximateDP
from verify.verdict import Verdict

LAWS = [("0.3", "2"), ("sqrt(2)", "1/3")]
DIGITS = 25
"""Of the quadrature of the densities."""
FALSE_ALARM = 1e-6
"""Of every statistical test here."""


def mpf(value: Interval) -> mpmath.mpf:
    return (mpmath.mpf(str(value.lower)) + mpmath.mpf(str(value.upper))) / 2


@pytest.mark.parametrize(("scale", "sensitivity"), LAWS)
@pytest.mark.parametrize("epsilon", ["-0.1", "0", "0.2", "9"])
def test_the_profile_and_the_tails_agree_with_the_densities(
    scale: str, sensitivity: str, epsilon: str
) -> None:
    pair = Logistic(scale, sensitivity).worst_case(None).remove[0]
    eps = exact(epsilon)
    with mpmath.workdps(DIGITS + 10):
        delta = pair.reference().hockey_stick(eps, DIGITS)
        p_above, q_above = pair.reference().tails(eps, DIGITS)
        values = [
            (lambda: pair.hockey_stick(eps), delta),
            (lambda: pair.tails(eps).p_above, p_above),
            (lambda: pair.tails(eps).q_above, q_above),
            (lambda: 1 - pair.tails(eps).p_below, p_above),
            (lambda: 1 - pair.tails(eps).q_below, q_above),
        ]
        for ours, theirs in values:
            assert abs(mpf(enclose(ours)) - theirs) <= mpmath.mpf("1e-20")


@pytest.mark.parametrize(("scale", "sensitivity"), LAWS)
@pytest.mark.parametrize("order", ["1.5", "4"])
def test_divergences_agree_with_quadrature(scale: str, sensitivity: str, order: str) -> None:
    mechanism = Logistic(scale, sensitivity)
    pair = mechanism.worst_case(None).remove[0]
    with mpmath.workdps(DIGITS + 10):
        expected = pair.reference().renyi(exact(order), DIGITS)
        assert abs(mpf(guarantees.renyi(mechanism, order)) - expected) <= mpmath.mpf("1e-20")


def test_the_mean_loss_agrees_with_quadrature() -> None:
    t = mpmath.mpf(3)

    def log_density(x: Any) -> Any:
        return -abs(x) - 2 * mpmath.log1p(mpmath.exp(-abs(x)))

    def term(x: Any) -> Any:
        return mpmath.exp(log_density(x - t)) * (log_density(x - t) - log_density(x))

    with mpmath.workdps(DIGITS):
        expected = mpmath.quad(term, [-90, -9, 0, 3, 12, 90])
        assert abs(mpf(guarantees.renyi(Logistic("1/3"), 1)) - expected) <= mpmath.mpf("1e-20")


def test_a_smaller_shift_is_never_worse() -> None:
    for epsilon in ("0", "0.3", "1", "1.9"):
        shifts = [Fraction(k, 10) for k in range(1, 21)]
        found = [profile.delta(Logistic(1, shift), epsilon).upper for shift in shifts]
        assert found == sorted(found)


def test_the_pure_guarantee_is_exact() -> None:
    mechanism = Logistic("0.3", 2)
    assert Fraction(20, 3) in profile.epsilon(mechanism, 0)
    assert profile.delta(mechanism, "20/3") == Interval.of_exact(0)
    assert profile.delta(mechanism, Fraction(20, 3) - Fraction(1, 10**200)).lower > 0


def test_accuracy_agrees_with_quadrature() -> None:
    mechanism = Logistic(3)
    with mpmath.workdps(40):

        def mean(power: int) -> mpmath.mpf:
            def term(x: Any) -> Any:
                return (3 * x) ** power * mpmath.exp(-x) / (1 + mpmath.exp(-x)) ** 2

            return 2 * mpmath.quad(term, [0, 1, 9, 30, 99])

        for ours, theirs in (
            (accuracy.mean_absolute_error(mechanism), mean(1)),
            (utility.mean_squared_error(mechanism), mean(2)),
        ):
            assert abs(mpf(ours) - theirs) <= mpmath.mpf("1e-25")
        for level in ("1e-300", "0.2", "1/2", "0.51", "sqrt(1/2)"):
            odds = mpmath.exp(mpf(utility.quantile(mechanism, level)) / 3)
            p = exact(level).mpf()
            assert abs(odds * (1 - p) - p) <= mpmath.mpf("1e-25") * p
    assert accuracy.probability_exact(mechanism) == Interval.of_exact(0)


def test_samples_follow_the_distribution() -> None:
    # DKW: 2e^{−2nt²} = FALSE_ALARM
    mechanism, size = Logistic("0.7"), 40_000
    bound = np.sqrt(np.log(2 / FALSE_ALARM) / (2 * size))
    rng = np.random.default_rng(4)
    for drawn in (mechanism.sample(size, rng=rng), mechanism.release(np.zeros(size), rng=rng)):
        ordered = np.sort(drawn)
        for level in np.linspace(0.01, 0.99, 99):
            x = float(utility.quantile(mechanism, float(level)).upper)
            assert abs(np.searchsorted(ordered, x) / size - level) <= bound


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


@pytest.mark.parametrize("c", ["-1/2", "0", "1/3", "40", "-7"])
def test_the_transform_on_a_line_is_below_its_bound(c: str) -> None:
    loss = Logistic(2).worst_case(None).remove[0].loss_transform()
    assert loss is not None
    at, step = Fraction(c), Fraction(3, 2)
    with mpmath.workdps(30):
        s, t = mpmath.mpf(at.numerator) / at.denominator + mpmath.mpf(1) / 2, mpmath.mpf(1) / 2

        def moment(z: Any) -> Any:
            return mpmath.sinh(z * t) / z if z else t

        for j, ratio in enumerate(loss.line(at, step, 9)):
            expected = moment(s + 1j * j * mpmath.mpf(1.5)) / moment(s)
            assert abs(complex(expected) - complex(ratio.real.mid(), ratio.imag.mid())) < 1e-14
            assert mpmath.log(abs(expected)) <= loss.decay(at).log_ratio(1.5 * j) + 1e-14
        size, mean, _ = loss.estimate().cumulants(float(at))
        assert abs(size - float(loss.value(at).log().mid())) < 1e-13
        assert abs(mean - float(mpmath.diff(lambda x: mpmath.log(moment(x)), s + 1e-30))) < 1e-12


def test_a_sample_has_the_profile_of_its_mixture() -> None:
    one = Logistic(2)
    sampled = PoissonSubsampled(one, "1/10")
    found = profile.delta(sampled, 0, adjacency=Adjacency.ADD_REMOVE, direction=Direction.REMOVE)
    assert abs(mpf(found) - mpf(profile.delta(one, 0)) / 10) <= mpmath.mpf("1e-25")


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


@pytest.mark.parametrize(
    ("epsilon", "delta", "verdict"),
    [("1/2", "0", Verdict.HOLDS), ("0.499", "0", Verdict.REFUTED), ("1/4", "0.036", Verdict.HOLDS)],
)
def test_the_checker_derives_the_same(epsilon: str, delta: str, verdict: Verdict) -> None:
    claim = ApproximateDP(
        id="test/logistic",
        source="test",
        statement="logistic noise",
        mechanism="Logistic(scale=2)",
        epsilon=epsilon,
        delta=delta,
    )
    finding, certificate = certify(claim)
    assert finding.verdict is verdict
    assert certificate is not None
    assert check(certificate).outcome is Outcome.VALID


@pytest.mark.parametrize("order", ["1", "3/2", "7"])
def test_the_divergences_of_the_checker_are_the_same(order: str) -> None:
    law = pairs(mechanism("Logistic(scale='2/3')"))[0]
    (value,) = settle(lambda: [renyi(law, Fraction(order))])
    known = guarantees.renyi(Logistic("2/3"), order)
    assert narrow(value)
    assert not compare(value, ">", Fraction(known.upper))
    assert not compare(value, "<", Fraction(known.lower))

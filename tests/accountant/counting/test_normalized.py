"""The square root of prefix sums with columns of one length."""

from __future__ import annotations

import math
from fractions import Fraction

import msgspec
import numpy as np
import pytest

from dpassay.accountant.counting.best_counter import least_units
from dpassay.accountant.counting.square_root import LEVELS, row_units, weights
from dpassay.accountant.errors import InvalidInputError, NotApplicableError
from dpassay.accountant.mechanisms import (
    LaplaceVector,
    NormalizedSquareRoot,
    SquareRootFactorization,
)
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.numbers.theta import coefficients
from dpassay.accountant.questions import accuracy, guarantees, profile
from dpassay.verifier.claims import ApproximateDP
from dpassay.verifier.kernel import Outcome, check
from dpassay.verifier.prover import decided as certify
from dpassay.verifier.verdict import Verdict


@pytest.mark.parametrize("steps", [1, 2, 3, 17, 200])
def test_the_weights_are_rounded_up(steps: int) -> None:
    """(w/256)² S_n ≥ S_{n−t}, and with w − 1 it is not, in rationals."""
    lengths = np.cumsum([f**2 for f in coefficients(steps)]).tolist()
    for w, length in zip(weights(steps), reversed(lengths), strict=True):
        square = LEVELS**2 * length / lengths[-1]
        assert (w - 1) ** 2 < square <= w**2


@pytest.mark.parametrize("steps", [1, 2, 9, 64, 150])
def test_the_rows_are_enclosed_narrowly(steps: int) -> None:
    """Against the rows of L in rationals."""
    exact = NormalizedSquareRoot(steps, mu=1).output_units()
    for ball, units in zip(row_units(steps), exact, strict=True):
        found = Interval.of_ball(ball)
        assert Fraction(found.lower) <= units <= Fraction(found.upper)
        assert float((found.upper - found.lower) / found.lower) < 1e-12 * steps


@pytest.mark.parametrize(
    ("steps", "gain", "above"), [(10, 0.09, 0.03), (1000, 0.071, 0.03), (20_000, 0.055, 0.029)]
)
def test_it_is_between_the_bound_and_the_square_root(steps: int, gain: float, above: float) -> None:
    error = accuracy.mean_squared_error(NormalizedSquareRoot(steps, mu=1))
    plain = accuracy.mean_squared_error(SquareRootFactorization(steps, mu=1))
    assert float(error.upper / plain.lower) < 1 - gain
    assert 1 < float(error.lower) / float(least_units(steps)) < 1 + above


def test_it_has_the_privacy_of_its_first_column() -> None:
    """No column is longer in ℓ1 or ℓ2 (`test_linear_counters`): with Gaussian noise that of M."""
    one, plain = (kind(12, mu="1/2") for kind in (NormalizedSquareRoot, SquareRootFactorization))
    assert profile.delta(one, "1/3") == profile.delta(plain, "1/3")
    one, plain = (kind(12, epsilon=1) for kind in (NormalizedSquareRoot, SquareRootFactorization))
    assert one.scale == plain.scale
    gaussian = NormalizedSquareRoot(1000, mu=1)
    assert guarantees.mu(gaussian).upper == 1
    assert gaussian.exact_gaussian_mu(None) == ExactReal.of_rational(1)
    assert 0.005745 < float(profile.delta(NormalizedSquareRoot(16, epsilon=1), "1/2")) < 0.005746
    with pytest.raises(NotApplicableError, match="which are worst is not pursued"):
        profile.delta(NormalizedSquareRoot(12, mu=1, contributions=2), 1)
    with pytest.raises(NotApplicableError, match=r"up to 24 steps.*Guaranteed\(epsilon=1\)"):
        profile.delta(NormalizedSquareRoot(64, epsilon=1), 1)


@pytest.mark.parametrize("at", ["0", "1/4", "1/2", "1"])
def test_with_laplace_noise_any_column_may_be_worst(at: str) -> None:
    """A later column has fewer and larger entries: for small ε it loses more than the first."""
    one = NormalizedSquareRoot(6, epsilon=1)
    columns = list(zip(*one.factorisation()[1], strict=True))
    each = [profile.delta(LaplaceVector(one.scale, [*filter(None, c)]), at) for c in columns]
    found = profile.delta(one, at)
    assert found.lower == max(delta.lower for delta in each)
    assert found.upper == max(delta.upper for delta in each)
    assert (found.upper > each[0].upper) == (at in ("0", "1/4"))
    claim = ApproximateDP(
        id="n", source="test", statement="a test", mechanism=repr(one), epsilon=at,
        delta=str(Fraction(found.upper)),
    )  # fmt: skip
    less = msgspec.structs.replace(claim, delta=str(Fraction(found.upper) * Fraction(999, 1000)))
    for verdict, asked in ((Verdict.HOLDS, claim), (Verdict.REFUTED, less)):
        if at != "1" or verdict is Verdict.HOLDS:
            finding, certificate = certify(asked)
            assert finding.verdict is verdict
            assert certificate is not None
            assert check(certificate).outcome is not Outcome.INVALID


def test_samples_have_the_variances_of_the_rows() -> None:
    """Six standard errors of 20000 streams, each variance with one of √(2/20000) of its own."""
    mechanism = NormalizedSquareRoot(40, mu=2)
    rows = mechanism.sample(20_000, rng=np.random.default_rng(1))
    exact = np.array([float(x.mid()) for x in mechanism.variances()])
    np.testing.assert_allclose(rows.var(axis=0), exact, rtol=6 * math.sqrt(2 / 20_000), atol=0)
    left = np.array(mechanism.factorisation()[0], dtype=float)
    scale = float(mechanism.scale)
    covariance = left @ left.T * scale**2
    assert abs(rows[:, 39] @ rows[:, 3] / len(rows) - covariance[39, 3]) < 0.06 * covariance[39, 39]


def test_too_many_steps_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="at most 131072"):
        NormalizedSquareRoot((1 << 17) + 1, mu=1)
    with pytest.raises(InvalidInputError, match="at most 256 for exact numbers"):
        NormalizedSquareRoot(257, mu=1).units()

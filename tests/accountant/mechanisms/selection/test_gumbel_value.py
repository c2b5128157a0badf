"""The largest noisy score with Gumbel noise, and which it is, against its law."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest

from accountant.errors import InvalidInputError, NotApplicableError
from accountant.mechanisms import AdditiveNoise, Composed, ReportNoisyMax
from accountant.questions import profile
from verify.certificate import certify
from verify.checker import Outcome, check
from verify.claims import ApproximateDP
from verify.verdict import Verdict


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("epsilon", [0, 0.25, 0.5, 1])
def test_the_value_with_gumbel_noise_against_its_law(epsilon: float, monotone: bool) -> None:
    """Index i and w = e^{−value} have the density e^{u_i} e^{−Sw}, S = Σ e^{u_i}."""
    about = ReportNoisyMax("Gumbel", 2, 3, monotone=monotone, returns="value")
    found = profile.delta(about, str(epsilon))
    rng, best = np.random.default_rng(3), 0.0
    step = 5e-4
    w = (np.arange(60_000) + 0.5) * step
    for _ in range(150):
        u, signs = rng.normal(scale=3, size=3), rng.integers(0, 2, 3)
        move = signs / 2 if monotone else signs - 0.5
        first, second = np.exp(u), np.exp(u + move)
        w_here = w / first.sum()
        p, q = (np.outer(e, np.exp(-e.sum() * w_here)) for e in (first, second))
        for one, other in ((p, q), (q, p)):
            excess = np.maximum(one - math.exp(epsilon) * other, 0).sum() * step / first.sum()
            best = max(best, float(excess))
    assert best <= float(found.upper) + 1e-5
    assert best >= 0.99 * float(found.lower)
    assert float(found.upper) <= float(found.lower) * (1 + 1e-3)


def test_what_is_known_of_values_with_gumbel_noise() -> None:
    about = ReportNoisyMax("Gumbel", 2, 7, returns="value")
    alone = AdditiveNoise("exp(-x-exp(-x))", scale=2)
    assert profile.epsilon(about, 0).lower.is_infinite()
    far = profile.delta(about, 2)
    assert far.lower <= profile.delta(alone, 2).upper <= far.upper * Decimal("1.001")
    with pytest.raises(NotApplicableError, match="no one noise bounds"):
        Composed(about, 3)
    with pytest.raises(InvalidInputError, match="noise='Exponential'"):
        ReportNoisyMax("Exponential", 2, 3, returns="value")


@pytest.mark.parametrize(
    ("epsilon", "delta", "verdict"),
    [("1/2", "0.0865", "HOLDS"), ("1/2", "0.0863", "REFUTED"), ("5", "0", "REFUTED")],
)
def test_the_checker_derives_values_with_gumbel_noise(
    epsilon: str, delta: str, verdict: str
) -> None:
    found, certificate = certify(
        ApproximateDP(
            id="value",
            source="the test",
            statement="a value",
            mechanism="ReportNoisyMax(noise='Gumbel', scale=2, candidates=3, returns='value')",
            adjacency=None,
            epsilon=epsilon,
            delta=delta,
        )
    )
    assert found.verdict is Verdict[verdict]
    assert certificate is not None
    assert check(certificate).outcome is Outcome.VALID

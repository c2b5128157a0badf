"""Short streams with Laplace noise, one answer above: against a search over answers and moves."""

from __future__ import annotations

import copy
import itertools
import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from numpy.typing import NDArray
from scipy.optimize import minimize

import dpassay
from dpassay.accountant.mechanisms import AboveThreshold
from dpassay.accountant.pairs.first_above import FirstAbove, Streams
from dpassay.accountant.questions import profile
from dpassay.verifier.certificate import certify
from dpassay.verifier.checker import Outcome, check
from dpassay.verifier.claims import ApproximateDP
from dpassay.verifier.verdict import Rigour, Verdict
from tests.verify.forge import sealed

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
FAR = 30
"""Scales of the threshold that are integrated over: e^−30 is beyond."""


def outcomes(s: float, r: float, answers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the chances of all places of the first answer above, and of none, by Gauss."""
    cuts = np.unique(np.concatenate([np.linspace(-FAR * s, FAR * s, 41), answers]))
    half, middle = np.diff(cuts)[:, None] / 2, (cuts[1:] + cuts[:-1])[:, None] / 2
    z = (middle + half * NODES).ravel()
    left = (half * WEIGHTS).ravel() * np.exp(-np.abs(z) / s) / (2 * s)
    found = []
    for answer in answers:
        x = (z - answer) / r
        below = np.where(x < 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2)
        found.append(float(np.sum(left * (1 - below))))
        left = left * below
    return np.array([*found, float(np.sum(left))])


def searched(s: float, r: float, m: int, epsilon: float, *, monotone: bool) -> float:
    """Return the largest Σ (p − e^ε q)⁺ over answers and over moves, which may be any."""
    rng, best, move = np.random.default_rng(m), 0.0, (0, 1) if monotone else (-1, 1)

    def excess(x: NDArray[np.float64], sign: int) -> float:
        p, q = outcomes(s, r, x[:m]), outcomes(s, r, x[:m] + sign * np.clip(x[m:], *move))
        return -float(np.maximum(p - math.exp(epsilon) * q, 0).sum())

    cases = itertools.product((1, -1) if monotone else (1,), range(2**m), range(3))
    for turn, moves, _ in cases:
        chosen = [move[moves >> i & 1] for i in range(m)]
        start = np.concatenate([rng.normal(scale=s, size=m), chosen])
        found = minimize(excess, start, (turn,), method="Nelder-Mead", options={"maxiter": 250})
        best = max(best, -float(found.fun))
    return best


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(
    ("s", "r", "m", "epsilon"),
    [
        (2, 4, 2, "1/5"),
        (4, 2, 2, "1/10"),
        pytest.param(2, 4, 3, "1/5", marks=pytest.mark.slow),
        pytest.param(1, 1, 3, "1/2", marks=pytest.mark.slow),
    ],
)
def test_no_answers_and_moves_reach_more(
    s: int, r: int, m: int, epsilon: str, monotone: bool
) -> None:
    found = profile.delta(AboveThreshold(s, r, monotone=monotone, steps=m), epsilon)
    best = searched(s, r, m, float(Fraction(epsilon)), monotone=monotone)
    assert best <= float(found.upper) + 1e-9  # quadrature of 16 points on pieces of 1.5 scales
    assert best >= float(found.lower) * (1 - 1e-4)  # a simplex stops early
    assert found.upper - found.lower <= found.upper * Decimal("1.1e-6")


@pytest.mark.parametrize("bits", [38, 40, 41, 42, 45])
def test_chances_of_scales_that_are_nearly_equal_have_the_digits_of_floats(bits: int) -> None:
    ratio, at = 1 + 2.0**-bits, np.array([[-1.0]])
    first = Streams(np.array([[1.0, 0.0]]), np.array([[-1.0, 0.0]]), at)
    found, *_ = FirstAbove(ratio, 1.0, monotone=True).value(first, 1.0)
    with ctx.workprec(256):  # the difference of both noises is above 1
        k = arb(ratio)
        known = (k * k * (-1 / k).exp() - arb(-1).exp()) / (2 * (k * k - 1))
    assert abs(float(found[0]) - float(known)) < 2.0**-50


def test_neighbours_change_places_below_zero() -> None:
    about = AboveThreshold(2, 4, steps=2)
    above, below = (profile.delta(about, e) for e in ("1/10", "-1/10"))
    for end in ("lower", "upper"):
        value = 1 - math.exp(-0.1) + math.exp(-0.1) * float(getattr(above, end))
        assert float(getattr(below, end)) == pytest.approx(value, rel=1e-6, abs=0)


@pytest.mark.parametrize("delta", ["0.01", "0.14"])
def test_epsilon_is_where_delta_is_met(delta: str) -> None:
    about = AboveThreshold(2, 4, steps=2)
    found = profile.epsilon(about, delta)
    assert found.upper - found.lower < Decimal("1e-5")
    assert profile.delta(about, found.upper).lower <= Decimal(delta)
    assert profile.delta(about, found.lower).upper >= Decimal(delta)


def test_longer_streams_lie_between_nearer_ends() -> None:
    short, longer, two = (
        profile.delta(about, "1/5")
        for about in (
            AboveThreshold(2, 4, steps=3),
            AboveThreshold(2, 4, steps=4),
            AboveThreshold(2, 4, 2, steps=3),
        )
    )
    assert longer.lower > short.upper  # a fourth answer tells more
    assert two.lower >= short.lower * Decimal("0.99999999")  # a ball around both ends is rounded
    joint = profile.delta(dpassay.LaplaceVector(4, [1] * 3), "1/5")
    assert two.upper <= joint.upper * Decimal("1.000001")


CASES = [
    ("2, 4, steps=2", "1/5", "0.046034", "REFUTED"),
    ("2, 4, steps=2", "1/5", "0.08", "HOLDS"),
    ("2, 4, steps=2, monotone=True", "-1/10", "0.1391", "REFUTED"),
    pytest.param("2, 4, 2, steps=3", "1/5", "0.0527", "REFUTED", marks=pytest.mark.slow),
    pytest.param("2, 4, 2, steps=3", "1/5", "0.0911", "HOLDS", marks=pytest.mark.slow),
    ("2, 4, steps=3", "0.749", "0", "REFUTED"),  # δ is 3e-11 at least: a ball of both ends has 0
]


def claim(stream: str, epsilon: str, delta: str) -> ApproximateDP:
    return ApproximateDP(
        id="short",
        source="the test",
        statement="a short stream",
        mechanism=f"AboveThreshold({stream})",
        adjacency=None,
        epsilon=epsilon,
        delta=delta,
    )


@pytest.mark.parametrize(("stream", "epsilon", "delta", "verdict"), CASES)
def test_the_checker_derives_them(stream: str, epsilon: str, delta: str, verdict: str) -> None:
    found, certificate = certify(claim(stream, epsilon, delta))
    assert found.verdict is Verdict[verdict]
    assert certificate is not None
    assert check(certificate).outcome is Outcome.VALID


def test_forged_certificates_of_short_streams_are_invalid() -> None:
    _, certificate = certify(claim("2, 4, steps=2", "1/5", "0.046034"))
    assert certificate is not None
    law = certificate["facts"][0]["law"]
    kind, moves, *at = law["event"].split()
    assert (kind, moves) == ("oxo", "-1")
    for event in (
        " ".join([kind, "-2", *at]),  # an answer that moves too far
        " ".join([kind, moves, at[0], *at[1:], "0"]),  # another answer
        " ".join(["xxo", moves, *at]),  # another event
    ):
        forged = copy.deepcopy(certificate)
        forged["facts"][0]["law"]["event"] = event
        assert check(sealed(forged)).outcome is Outcome.INVALID


def test_a_bound_by_a_search_in_floats_is_conditional_and_no_event_exceeds_it() -> None:
    found, certificate = certify(claim("2, 4, steps=2", "1/5", "0.046035"))
    assert (found.verdict, found.rigour) == (Verdict.HOLDS, Rigour.BOUNDED)
    assert certificate is not None
    assert check(certificate).outcome is Outcome.CONDITIONAL
    forged = json.loads(json.dumps(certificate).replace("0.046035", "0.045"))
    (fact,) = forged["facts"]
    fact["law"]["event"], fact["value"] = "ooo 1 -1 0 0", {"lower": "0", "upper": "0"}
    assert check(sealed(forged)).outcome is Outcome.INVALID  # an event shows no upper bound


@pytest.mark.parametrize(
    ("variant", "s", "r"),
    [
        ("standard", "1", "1e400"),
        ("noisy-values", "1e400", "1"),
        ("noisy-values", "1e-400", "1"),
        ("fresh-threshold", "1e-400", "1"),
    ],
)
def test_scales_beyond_floats_are_answered(variant: str, s: str, r: str) -> None:
    about = AboveThreshold(s, r, variant=variant)
    for epsilon in ("1", "1000"):
        found = profile.delta(about, epsilon)
        assert 0 <= found.lower <= found.upper <= 1
    assert profile.signed_epsilon(about, "0.1").lower < 0

"""Certificates about densities of one's own, beside what the accountant encloses."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import dpassay
from dpassay.verifier.kernel import Outcome, check
from dpassay.verifier.kernel.numbers import Budget

SHARE = Fraction(1, 10**6)


def outcome(kind: str, verdict: str, density: str, scale: str, **claim: str) -> Outcome:
    mechanism = f"AdditiveNoise(density='{density}', scale={scale})"
    theorem: dict[str, Any] = {"kind": kind, "verdict": verdict, "mechanism": mechanism, **claim}
    fields = {"version": 2, "theorem": theorem, "lemmas": [], "witness": {}}
    return check(fields, Budget(seconds=5, bits=128)).outcome


@pytest.mark.parametrize(
    ("density", "scale"),
    [
        ("exp(-abs(x)**3)", "2"),
        ("exp(-abs(x)**1.5)", "1"),
        ("exp(-x)/(1+exp(-x))**2", "5/4"),
        ("exp(-x**2/2)", "3"),
        ("1/cosh(x)", "5/4"),
    ],
)
@pytest.mark.parametrize("epsilon", ["1/100", "1/2"])
def test_delta_is_proved_and_refuted_close_to_it(density: str, scale: str, epsilon: str) -> None:
    real = dpassay.AdditiveNoise(density, scale=scale).delta(epsilon)
    high, low = Fraction(real.upper) * (1 + SHARE), Fraction(real.lower) * (1 - SHARE)
    claims = {"HOLDS": (high, low), "REFUTED": (low, high)}
    for verdict, (true, false) in claims.items():
        at = {"epsilon": epsilon, "scale": scale, "density": density}
        assert outcome("approximate-dp", verdict, delta=str(true), **at) is Outcome.VALID
        assert outcome("approximate-dp", verdict, delta=str(false), **at) is Outcome.CONDITIONAL


@pytest.mark.parametrize(
    "density",
    [
        *("(1+x**2/3)**-2", "1/(1+abs(x))", "exp(-abs(x))+exp(-3*abs(x))", "exp(-(x-1)**2)"),
        *("exp(x**2)", "0*x", "abs(x)", "exp(-abs(x)) if x > 0 else 1", "exp(-y*x**2)"),
        *("exp(-abs(x-1))", "1+0*x", "exp(-pi()*x**2)", "exp(-x**2)*sum(i,0,1,1)"),
    ],
)
def test_a_density_whose_logarithm_is_not_concave_is_not_judged(density: str) -> None:
    """It may be no density, not even, or with two best events, or not be integrated here."""
    for verdict in ("HOLDS", "REFUTED"):
        claim = {"epsilon": "1/2", "delta": "99/100" if verdict == "HOLDS" else "1e-9"}
        assert outcome("approximate-dp", verdict, density, "2", **claim) is Outcome.CONDITIONAL


def test_a_largest_loss_is_only_a_bound() -> None:
    assert outcome("pure-dp", "HOLDS", "1/cosh(x)", "5/4", epsilon="4/5") is Outcome.VALID
    for epsilon in ("79/100", "2"):
        at = {"density": "1/cosh(x)", "scale": "5/4", "epsilon": epsilon}
        assert outcome("pure-dp", "REFUTED", **at) is Outcome.CONDITIONAL
    assert outcome("pure-dp", "HOLDS", "exp(-x**2)", "1", epsilon="9") is Outcome.CONDITIONAL

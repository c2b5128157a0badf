"""Noise that falls with a power of a norm: the checker's own integrals, and certificates."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb

from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.pairs.radial_noise import RadialNoisePair
from dpassay.accountant.pairs.round_noise import RoundNoisePair
from dpassay.verifier import checker
from dpassay.verifier.certificate import certify
from dpassay.verifier.checker import Outcome
from dpassay.verifier.checker.declared.radial import radial_tails
from dpassay.verifier.checker.reals import UnknownError, ball
from dpassay.verifier.claims import PureDP
from tests.quick import quick

SHAPES = [
    ("l2", 2, "3/2", "1", "1/2"),
    ("l2", 3, "3", "1", "5"),
    ("l2", 10, "3/2", "1", "1/2"),
    ("l2", 3, "3/2", "5", "0"),
    ("l2", 300, "1", "1", "1/5"),
    ("l1", 1, "3", "1", "1/2"),
    ("l1", 2, "3/2", "1/2", "1/2"),
    ("linf", 100, "3/2", "1", "1/2"),
    ("l2", 10, "3/2", "1", "1"),
    ("linf", 10, "3/2", "1", "1"),
]
"""Norm, dimension, power, distance and loss; in the last two spheres meet from radius 0 on."""


def by_angles(p: float, t: float, epsilon: float) -> float:
    """Return P(L > ε) in three dimensions: midpoints over radii, of spheres the part of a line.

    A coordinate of a sphere in three dimensions is uniform (Archimedes).
    """
    r = (np.arange(400_000) + 0.5) * (60 ** (1 / p) / 400_000)
    far = (r**p + epsilon) ** (1 / p)
    inside = np.clip((1 + (far**2 - r**2 - t * t) / (2 * r * t)) / 2, 0, 1)
    density = p * r**2 * np.exp(-(r**p)) / math.gamma(3 / p)
    return float(np.sum(density * (1 - inside)) * r[0] * 2)


@pytest.mark.parametrize(("norm", "d", "power", "t", "epsilon"), quick(SHAPES, 1, 5, 6, 7))
def test_chances_are_those_of_the_accountant(
    norm: str, d: int, power: str, t: str, epsilon: str
) -> None:
    """Which integrates shares of balls over level sets, and not spheres over their radii."""
    kind = RoundNoisePair if norm == "l2" else RadialNoisePair
    known = kind(exact(t), d, Fraction(power)).tails(exact(epsilon))
    found = radial_tails(norm, d, Fraction(power), Fraction(t), Fraction(epsilon))
    for one, other in zip(found, (known.p_above, known.q_above), strict=True):
        assert ball(one).overlaps(other)
        assert ball(one).rel_accuracy_bits() > 60


@pytest.mark.parametrize(("power", "epsilon"), [("3/2", "1/2"), ("3", "5")])
def test_chances_are_sums_over_radii(power: str, epsilon: str) -> None:
    """The rule of midpoints errs by about the square of its step where spheres begin to meet."""
    p, e = Fraction(power), Fraction(epsilon)
    found, _ = radial_tails("l2", 3, p, Fraction(1), e)
    assert float(ball(found)) == pytest.approx(by_angles(float(p), 1, float(e)), rel=1e-8, abs=0)


@pytest.mark.parametrize(("d", "epsilon"), [(2, "1/3"), (20, "60")])
def test_the_square_of_a_length_is_gaussian(d: int, epsilon: str) -> None:
    """Of μ = √2: P(L > ε) = Φ(μ/2 − ε/μ), Q(L > ε) = Φ(−μ/2 − ε/μ); Φ(−x) = erfc(x/√2)/2."""
    found = radial_tails("l2", d, Fraction(2), Fraction(1), Fraction(epsilon))
    e = ball(Fraction(epsilon))
    for one, side in zip(found, (-1, 1), strict=True):
        known = ((e + side) / 2).erfc() / 2
        assert ball(one).overlaps(known)
        assert ball(one).rel_accuracy_bits() > 60


def test_the_first_power_of_a_sum_is_laplace() -> None:
    """P(L > ε) = 1 − e^{(ε − t)/2}/2 and Q(L > ε) = e^{−(t + ε)/2}/2."""
    found = radial_tails("l1", 7, Fraction(1), Fraction(2), Fraction(1, 2))
    known = 1 - arb("-0.75").exp() / 2, arb("-1.25").exp() / 2
    for one, other in zip(found, known, strict=True):
        assert ball(one).overlaps(other)
        assert ball(one).rel_accuracy_bits() > 60


def checked(claim: Any) -> checker.Checked:
    return checker.check(json.loads(json.dumps(certify(claim)[1])))


def test_no_pure_guarantee_of_a_higher_power_is_refuted() -> None:
    text = "KNorm(scale=2, dimension=3, norm='l1', power='3/2')"
    found = checked(PureDP(id="c", mechanism=text, epsilon="2"))
    assert (found.outcome, found.verdict) == (Outcome.VALID, "REFUTED")


def test_spheres_that_meet_too_far_out_are_left_open() -> None:
    """At ε = 2t they do from x^{1/p − 1} = p/2 on: x is nearly 2^1000."""
    with pytest.raises(UnknownError, match="far out"):
        radial_tails("l2", 3, Fraction(1001, 1000), Fraction(1), Fraction(2))

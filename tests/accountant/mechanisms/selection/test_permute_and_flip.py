"""Permute-and-flip against every pair of score vectors that is tried."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

import dpassay
from accountant.mechanisms import PermuteAndFlip
from accountant.questions import guarantees, profile
from verify.verdict import Verdict

FALSE_ALARM = 1e-6
SPARE = 1e-12
"""For the rounding of the other route."""
scores = st.floats(-8, 8)


def law(values: list[float], factor: float) -> np.ndarray:
    """Go through every order of the candidates."""
    heads = np.exp(factor * (np.array(values) - max(values)))
    found = np.zeros(len(values))
    for order in permutations(range(len(values))):
        left = 1.0
        for i in order:
            found[i] += left * heads[i]
            left *= 1 - heads[i]
    return np.asarray(found / math.factorial(len(values)))


@pytest.mark.slow
@given(
    st.lists(st.tuples(scores, st.floats(-1, 1), st.floats(0, 1)), min_size=2, max_size=5),
    st.sampled_from(["1/4", "2"]),
    st.floats(-1, 1),
    st.booleans(),
)
def test_no_neighbouring_scores_are_worse(
    candidates: list[tuple[float, float, float]], epsilon: str, share: float, monotone: bool
) -> None:
    eps = float(Fraction(epsilon))
    before = [score for score, _, _ in candidates]
    after = [score + (up if monotone else move) for score, move, up in candidates]
    factor = eps if monotone else eps / 2
    p, q = law(after, factor), law(before, factor)
    about = PermuteAndFlip(epsilon, monotone=monotone)
    worst = float(profile.delta(about, Fraction(share) * Fraction(epsilon)).upper)
    order = float(guarantees.renyi(about, 3).upper)
    for one, other in ((p, q), (q, p)):
        assert float(np.maximum(one - math.exp(share * eps) * other, 0).sum()) <= worst + SPARE
        assert math.log(float(np.sum(one**3 / other**2))) / 2 <= order + SPARE


@pytest.mark.parametrize("epsilon", ["1/5", "1", "4"])
@pytest.mark.parametrize("share", ["-9/10", "0", "1/3", "4/5"])
def test_two_candidates_attain_the_profile(epsilon: str, share: str) -> None:
    eps, at = float(Fraction(epsilon)), float(Fraction(epsilon) * Fraction(share))
    low = -(eps + at) / 2
    p, q = law([low + eps, 0], 1), law([low, 0], 1)
    found = profile.delta(PermuteAndFlip(epsilon), Fraction(epsilon) * Fraction(share))
    assert float(found) == pytest.approx(p[0] - math.exp(at) * q[0], rel=1e-12)


def test_an_eighth_of_the_square_is_no_rho_of_it() -> None:
    found = guarantees.rho(PermuteAndFlip(1))
    assert Fraction(1, 4) < Fraction(found.lower) < Fraction(found.upper) < Fraction(501, 1000)
    p, q = law([0.5, 0], 1), law([-0.5, 0], 1)
    assert float(np.sum(p * np.log(p / q))) > 1 / 8
    for rho, verdict in (("1/8", Verdict.REFUTED), ("0.51", Verdict.HOLDS)):
        assert dpassay.verify("PermuteAndFlip(1)", rho=rho).verdict is verdict
    assert dpassay.verify("PermuteAndFlip(1)", rho="0.4").verdict is Verdict.UNDECIDED


@pytest.mark.parametrize("size", [1, 40_000])
def test_selections_have_their_probabilities(size: int) -> None:
    about = PermuteAndFlip(2, sensitivity="1/2", monotone=True)
    given_scores = [0.0, 0.25, -0.5, 0.125]
    drawn = about.release(given_scores, size, rng=np.random.default_rng(3))
    assert drawn.shape == (size,)
    expected = law(given_scores, 4) * size
    if size > 1:
        assert chisquare(np.bincount(drawn, minlength=4), expected).pvalue > FALSE_ALARM
    assert int(about.release([0, 10**6, 0])) == 1


@pytest.mark.parametrize("candidates", [2, 10, 1000])
def test_it_chooses_no_worse_than_the_exponential_mechanism(candidates: int) -> None:
    found = dpassay.compare(f"Selection({candidates})", epsilon=1, metrics=["regret:0.9"])
    limits = {type(row.found.mechanism).__name__: row.value("regret:0.9") for row in found.rows}
    flip, exponential = limits["PermuteAndFlip"], limits["ExponentialMechanism"]
    assert flip is not None
    assert exponential is not None
    assert flip < exponential
    q = math.exp(-float(flip) / 2)
    taken = sum((1 - q) ** j for j in range(candidates)) / candidates
    assert taken == pytest.approx(0.9, rel=1e-12)

"""The sparse vector technique against enumeration, quadrature and simulation."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import chisquare, laplace

import dpassay
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.mechanisms import AboveThreshold, Composed
from dpassay.accountant.questions import profile
from dpassay.verifier.verdict import Verdict
from tests.quick import slow

FALSE_ALARM = 1e-6
SPARE = 1e-4
"""For the quadrature of the other route: a kink of Laplace noise costs the step² / 8 at most."""
Output = tuple[int, ...]


def law(s: float, r: float, count: int, answers: tuple[float, ...]) -> dict[Output, float]:
    """Return the probability of every output, integrated over the noisy threshold."""
    z, step = np.linspace(-60, 60, 12_001, retstep=True)
    found = {}
    for output in product((0, 1), repeat=len(answers)):
        if sum(output[:-1]) >= count:
            continue  # the stream has ended before
        density = laplace.pdf(z, scale=s) * step
        for answer, above in zip(answers, output, strict=True):
            side = laplace.sf if above else laplace.cdf
            density = density * side(z - answer, scale=r)
        found[output] = float(density.sum())
    return found


def least_error(p: dict[Output, float], q: dict[Output, float], alpha: float) -> float:
    """Return the least type II error at a level, of the likelihood-ratio test."""
    power, left = 0.0, alpha
    for output in sorted(p, key=lambda o: p[o] / q[o], reverse=True):
        share = min(1.0, left / q[output])
        power, left = power + share * p[output], left - share * q[output]
    return 1 - power


@pytest.mark.parametrize(("count", "monotone"), [(1, False), (1, True), slow(2, False)])
def test_no_short_stream_loses_more(count: int, monotone: bool) -> None:
    about = AboveThreshold("3/2", 2, count, monotone=monotone)
    largest = Fraction(2, 3) + Fraction(count, 2 if monotone else 1)
    assert largest in profile.epsilon(about, 0)
    upper = float(profile.delta(about, "1/3").upper)
    beta = dpassay.beta(about, "1/5")
    assert beta.upper <= Decimal("0.8")  # the test that rejects one time in five
    rng = np.random.default_rng(count)
    for _ in range(20):
        answers = rng.normal(scale=3, size=4)
        moves = rng.uniform(0 if monotone else -1, 1, size=4).round()
        p, q = (law(1.5, 2, count, tuple(u)) for u in (answers + moves, answers))
        for one, other in ((p, q), (q, p)):
            losses = [math.log(one[o] / other[o]) for o in one if min(one[o], other[o]) > SPARE]
            assert max(losses) <= float(largest) + SPARE / 1e-2
            excess = sum(max(one[o] - math.exp(1 / 3) * other[o], 0) for o in one)
            assert excess <= upper + SPARE
            assert least_error(one, other, 0.2) >= float(beta.lower) - SPARE


@pytest.mark.parametrize("variant", ["standard", "fresh-threshold"])
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("count", [1, slow(3)])
def test_streams_come_near_the_largest_loss(variant: str, monotone: bool, count: int) -> None:
    about = AboveThreshold(2, "5/2", count, monotone=monotone, variant=variant)
    each = Fraction(1 if monotone else 2) / Fraction("5/2")
    largest = Fraction(count if variant == "fresh-threshold" else 1, 2) + count * each
    assert largest in profile.epsilon(about, 0)
    assert dpassay.verify(about, epsilon=largest).verdict is Verdict.HOLDS
    less = largest * (1 - Fraction(1, 10**6))
    assert dpassay.verify(about, epsilon=less).verdict is Verdict.REFUTED


@pytest.mark.parametrize("delta", ["1e-5", slow("0.5")])
def test_at_the_upper_end_of_epsilon_delta_is_reached(delta: str) -> None:
    """Also where the lower bound falls so flatly that its own root is hardly known."""
    svt = AboveThreshold("1/1000", "1/1000")
    assert profile.delta(svt, profile.epsilon(svt, delta).upper).upper <= Decimal(delta)


def test_the_lower_bound_is_that_of_an_output() -> None:
    """Four answers below, that move, and one above: by quadrature."""
    found = profile.delta(AboveThreshold(2, "5/2"), "1/3")
    output = (0, 0, 0, 0, 1)
    best = max(
        law(2, 2.5, 1, (a, a, a, a, 1))[output]
        - math.exp(1 / 3) * law(2, 2.5, 1, (a + 1, a + 1, a + 1, a + 1, 0))[output]
        for a in (0, 2.5, 5)
    )
    assert float(found.lower) == pytest.approx(best, abs=SPARE)


@pytest.mark.parametrize("variant", ["noisy-values", "endless"])
def test_some_variants_are_private_for_no_epsilon(variant: str) -> None:
    about = AboveThreshold(2, 2, 3, variant=variant)
    assert profile.epsilon(about, 0).lower.is_infinite()
    for epsilon in (1, 10, 25):
        assert dpassay.verify(about, epsilon=epsilon).verdict is Verdict.REFUTED
    if variant == "endless":
        assert profile.delta(Composed(about, 2), 50) == 1
    else:
        with pytest.raises(UndecidedError, match=r"It is only known that .* \[0, +1\]"):
            profile.delta(Composed(about, 2), 50)
    for endless in (AboveThreshold(2, 0), AboveThreshold(1, 1, variant="endless")):
        assert profile.delta(endless, 50) == 1


@pytest.mark.parametrize("variant", ["standard", slow("fresh-threshold"), slow("endless")])
def test_outputs_have_their_probabilities(variant: str) -> None:
    size, answers = 600, (3.0, -2.0)
    count = 1 if variant == "standard" else 3
    about = AboveThreshold(1, 2, count, variant=variant)
    drawn = about.release(list(answers), size, rng=np.random.default_rng(5))
    found = law(1, 2, 3, answers)
    if variant == "fresh-threshold":  # the second answer meets a threshold of its own
        first, second = (law(1, 2, 1, (u,))[1,] for u in answers)
        found[1, 1], found[1, 0] = first * second, first * (1 - second)
    if variant == "standard":
        found[1, -1] = found.pop((1, 0)) + found.pop((1, 1))
    seen = [int((drawn == output).all(axis=1).sum()) for output in found]
    assert sum(seen) == size
    expected = np.array([*found.values()])
    assert chisquare(seen, expected * size / expected.sum()).pvalue > FALSE_ALARM

"""Noise that is made to fit a range, against all neighbours and events of a fine grid."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from flint import ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpassay.accountant.errors import DpassayError
from dpassay.accountant.mechanisms import (
    Bounded,
    Composed,
    DiscreteLaplace,
    Gaussian,
    IntegerNoise,
    Laplace,
)
from dpassay.accountant.notation import parse
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.questions import profile, tradeoff

BINS = 300
"""Of a range: events that are unions of bins show no more than H."""
ROUNDING = 1e-13
"""Of sums of 300 floats below 1 + e^ε, each of a few units of 2⁻⁵³ (1 + e^ε)."""


def shown(  # noqa: PLR0917  # the pair, and where
    cdf: Callable[[np.ndarray], np.ndarray], how: str, a: float, b: float, w: float, x: float
) -> float:
    """Return P(S) − xQ(S) of the best union of bins of [0, w]."""
    places = np.linspace(0, w, BINS + 1)
    laws = []
    for answer in (a, b):
        below = cdf(places - answer)
        masses = np.diff(below)
        if how == "resample":
            masses = masses / (below[-1] - below[0])
        else:
            masses = np.concatenate([[below[0]], masses, [1 - below[-1]]])
        laws.append(masses)
    return float(np.maximum(laws[0] - x * laws[1], 0).sum())


CDF = {"laplace": stats.laplace.cdf, "gaussian": stats.norm.cdf}
NOISE = {"laplace": Laplace, "gaussian": Gaussian}


@pytest.mark.parametrize("how", ["resample", "clip"])
@settings(max_examples=8)
@given(
    st.sampled_from(["laplace", "gaussian"]),
    st.fractions(1, 8, max_denominator=8),
    st.fractions(Fraction(1, 4), 1, max_denominator=4),
    st.fractions(0, Fraction(15, 16), max_denominator=16),
)
def test_no_pair_shows_more_and_one_shows_as_much(
    how: str, name: str, width: Fraction, part: Fraction, share: Fraction
) -> None:
    """True answers at all distances up to the sensitivity, in both orders."""
    d, w = part * width, float(width)
    made = Bounded(NOISE[name](1, d), 0, width, how)
    (pair,) = made.worst_case(None).remove
    epsilon = share * Fraction(float(pair.max_loss().mid())) if name == "gaussian" else share * d
    found = profile.delta(made, epsilon)
    x, distances = math.exp(epsilon), [float(d) * k / 2 for k in (1, 2)]
    values = [
        shown(CDF[name], how, a, a + sign * s, w, x)
        for s in distances
        for a in np.linspace(0, w, 17)
        for sign in (-1, 1)
        if 0 <= a + sign * s <= w
    ]
    assert max(values) <= float(found.upper) + ROUNDING * (1 + x)
    # halving of bins, and of steps of a by w/16, moves the best by less than this
    spacing = w / 16
    assert max(values) >= float(found.lower) - spacing**2 * (1 + x) - w / BINS * (1 + x)


@pytest.mark.parametrize("width", ["1", "5/2", "40"])
@pytest.mark.parametrize("sensitivity", ["1/4", "1"])
def test_resampled_laplace_is_as_pure_as_holohan_says(width: str, sensitivity: str) -> None:
    made = Bounded(Laplace(1, sensitivity), 0, width, "resample")
    d, w = float(Fraction(sensitivity)), float(Fraction(width))
    rise = (2 - math.exp(-d) - math.exp(d - w)) / (1 - math.exp(-w))
    known = d + math.log(rise)
    assert float(profile.epsilon(made, 0)) == pytest.approx(known, rel=1e-14, abs=0)
    assert profile.delta(made, known * (1 + 1e-12)).upper == 0
    assert profile.delta(made, known * (1 - 1e-6)).lower > 0


@settings(max_examples=10)
@given(st.floats(0.2, 20), st.floats(0.05, 1), st.sampled_from(["laplace", "gaussian"]))
def test_the_largest_loss_is_that_of_no_other_answers(w: float, part: float, name: str) -> None:
    made = Bounded(NOISE[name](1, part * w), 0, w, "resample")
    (pair,) = made.worst_case(None).remove
    most, d = float(pair.max_loss().mid()), part * w
    logpdf = {"laplace": stats.laplace.logpdf, "gaussian": stats.norm.logpdf}[name]
    for a in np.linspace(0, w - d, 11):
        x = np.linspace(0, w, 40)
        first = logpdf(x - a) - math.log(CDF[name](w - a) - CDF[name](-a))
        second = logpdf(x - a - d) - math.log(CDF[name](w - a - d) - CDF[name](-a - d))
        assert (first - second).max() <= most + 1e-9 * (1 + most)


@pytest.mark.parametrize("text", ["laplace", "gaussian"])
def test_a_wide_range_changes_little_for_the_middle(text: str) -> None:
    """At ε = 0 noise that is hardly drawn again has the profile of the noise."""
    made, alone = Bounded(NOISE[text](1), 0, 100, "resample"), NOISE[text](1)
    assert float(profile.delta(made, 0)) == pytest.approx(
        float(profile.delta(alone, 0)), rel=1e-10, abs=0
    )


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=5).filter(any),
    st.integers(-3, 1),
    st.integers(1, 3),
    st.integers(1, 5),
    st.sampled_from(["resample", "clip", "wrap"]),
    st.fractions(0, 2, max_denominator=4),
)
def test_rational_noise_is_exact(  # noqa: PLR0917  # one example
    weights: list[int], lowest: int, sensitivity: int, width: int, how: str, x: Fraction
) -> None:
    """All pairs of answers, by fractions: P(S) − xQ(S) of the best event S."""
    noise = {z: Fraction(v, sum(weights)) for z, v in enumerate(weights, start=lowest)}
    scale = 1 + x

    def law(answer: int) -> list[Fraction]:
        masses = [Fraction(0)] * (width + 1)
        for z, p in noise.items():
            place = answer + z
            if how == "wrap":
                masses[place % (width + 1)] += p
            elif how == "clip":
                masses[min(max(place, 0), width)] += p
            elif 0 <= place <= width:
                masses[place] += p
        whole = sum(masses)
        return [p / whole for p in masses] if whole else []

    laws = [law(answer) for answer in range(width + 1)]
    added = IntegerNoise(list(noise.values()), lowest, sensitivity)
    if not all(laws):
        with pytest.raises(DpassayError, match="never"):
            Bounded(added, 0, width, how)
        return
    made = Bounded(added, 0, width, how)
    near = {
        (a, b)
        for a, b in itertools.permutations(range(width + 1), 2)
        if abs(a - b) <= sensitivity or (how == "wrap" and width + 1 - abs(a - b) <= sensitivity)
    }
    known = max(
        sum(max(p - scale * q, Fraction(0)) for p, q in zip(laws[a], laws[b], strict=True))
        for a, b in near
    )
    found = profile.delta(made, exact(scale).log())
    assert Fraction(found.lower) <= known <= Fraction(found.upper)
    assert float(found.upper - found.lower) <= 1e-12


MASSES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "DiscreteLaplace(scale=2, sensitivity={})": lambda z: math.tanh(0.25) * np.exp(-abs(z) / 2),
    "DiscreteGaussian(parameter=3, sensitivity={})": lambda z: (
        np.exp(-z * z / 6) / np.exp(-(np.arange(-90, 91) ** 2) / 6).sum()
    ),
    "Skellam(variance=2, sensitivity={})": lambda z: stats.skellam.pmf(z, 1, 1),
}


@pytest.mark.parametrize("how", ["resample", "clip", "wrap"])
@pytest.mark.parametrize("text", MASSES)
@pytest.mark.parametrize(("width", "sensitivity"), [(4, 1), (7, 3), (2, 5)])
def test_log_concave_integers(how: str, text: str, width: int, sensitivity: int) -> None:
    made = parse(f"Bounded({text.format(sensitivity)}, lower=-1, upper={width - 1}, how='{how}')")
    assert isinstance(made, Bounded)
    z = np.arange(-400, 401)
    masses = MASSES[text](z)
    laws = np.zeros((width + 1, width + 1))
    for answer in range(width + 1):
        place = answer + z
        inside = (place >= 0) & (place <= width)
        if how == "resample":
            np.add.at(laws[answer], place[inside], masses[inside])
        else:
            moved = place % (width + 1) if how == "wrap" else place.clip(0, width)
            np.add.at(laws[answer], moved, masses)
        laws[answer] /= laws[answer].sum()
    for epsilon in (0, 0.2, 0.7):
        known = max(
            np.maximum(laws[a] - math.exp(epsilon) * laws[b], 0).sum()
            for a, b in itertools.permutations(range(width + 1), 2)
            if abs(a - b) <= sensitivity
            or (how == "wrap" and width + 1 - abs(a - b) <= sensitivity)
        )
        found = profile.delta(made, epsilon)
        assert float(found.lower) - 1e-13 <= known <= float(found.upper) + 1e-13


@pytest.mark.parametrize("how", ["resample", "clip"])
@pytest.mark.parametrize("noise", [Laplace(1), Gaussian(1)])
def test_tails_are_the_slope_of_the_profile(noise: Laplace | Gaussian, how: str) -> None:
    made = Bounded(noise, 0, 3, how)
    (pair,) = made.worst_case(None).remove
    with ctx.workprec(100):
        for text in ("-0.4", "0", "0.3", "0.9"):
            epsilon = exact(text)
            found = pair.tails(epsilon)
            h = pair.hockey_stick(epsilon)
            assert (found.p_above - epsilon.ball().exp() * found.q_above).overlaps(h)
            assert (found.p_above + found.p_below).contains(1)
            assert (found.q_above + found.q_below).contains(1)
            step = exact("1/1000")
            x, y = epsilon.ball().exp(), (epsilon + step).ball().exp()
            chord = (h - pair.hockey_stick(epsilon + step)) / (y - x)
            assert chord <= found.q_above.upper()  # H is convex in e^ε
            assert chord >= pair.tails(epsilon + step).q_above.lower()


def test_trade_offs_and_compositions_follow() -> None:
    made = Bounded(Laplace(1), 0, 5, "resample")
    found = tradeoff.beta(made, "0.1")
    for epsilon in (0, 0.2, 0.5, 1):
        bound = 1 - float(profile.delta(made, epsilon)) - 0.1 * math.exp(epsilon)
        assert bound <= float(found.upper) + 1e-9
    listed = Bounded(DiscreteLaplace(1), 0, 5, "resample")
    twice, once = profile.delta(Composed(listed, 2), 1), profile.delta(listed, "1/2")
    assert once.lower < twice.lower
    assert float(profile.epsilon(Composed(listed, 2), 0)) == pytest.approx(
        2 * float(profile.epsilon(listed, 0)), rel=1e-12, abs=0
    )


@pytest.mark.parametrize("how", ["resample", "clip", "wrap"])
def test_integers_are_released_by_their_law(how: str) -> None:
    """Chi-square of 20,000 draws: a false alarm in a million."""
    made, rng = Bounded(DiscreteLaplace(2), -1, 4, how), np.random.default_rng(8)
    drawn = made.release(1, 20_000, rng=rng)
    assert set(np.unique(drawn)) == set(range(-1, 5))
    law = [float(p.mid()) for p in made.masses(2 * 6)[0]]
    counts = [(drawn == z).sum() for z in range(-1, 5)]
    assert stats.chisquare(counts, np.array(law) * 20_000).pvalue > 1e-6


def test_real_noise_is_simulated_in_the_range() -> None:
    rng = np.random.default_rng(3)
    for how in ("resample", "clip"):
        made = Bounded(Gaussian(2), -1, 1, how)
        drawn = made.outputs(0.5, 4000, rng=rng)
        assert drawn.min() >= -1
        assert drawn.max() <= 1
        assert (len(np.unique(drawn)) < 4000) == (how == "clip")

"""What holds for the loss of every family: its transform, its lines, its decay and its floats.

A family is a case of the table; each law is said once, for all of them.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import acb, arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from dpassay.accountant.composition.blur import moments
from dpassay.accountant.composition.fourier.engine import transform
from dpassay.accountant.composition.fourier.estimates import FloatSum
from dpassay.accountant.composition.fourier.measure import Loss, QuickLine
from dpassay.accountant.composition.losses.bounds import Mixture
from dpassay.accountant.composition.losses.laplace import LaplaceMoments
from dpassay.accountant.composition.losses.transform import (
    Cut,
    MixtureTransform,
    Moments,
    Transform,
)
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.notation import parse
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.reference import laws

WHOLE = [
    "Gaussian(standard_deviation=2)",
    "Laplace(scale=3)",
    "Laplace(scale='1/9')",
    "RandomizedResponse(epsilon='1/10')",
    "DiscreteLaplace(scale=3, sensitivity=4)",
    "TruncatedGeometric(scale=2, low=0, high=5, sensitivity=4)",
    "DiscreteGaussian(parameter=3, sensitivity=2)",
    "PoissonSubsampled(Gaussian(standard_deviation='1.1'), sampling_prob='0.004')",
    "PoissonSubsampled(Gaussian(standard_deviation='0.3'), sampling_prob='1/2')",
    "PoissonSubsampled(Gaussian(standard_deviation=20), sampling_prob='0.9')",
]
"""One mechanism of every family of losses; discrete Gaussian noise has no infinite losses."""
SAMPLES = [text for text in WHOLE if text.startswith("Poisson")]
LINES = [Fraction(-3), Fraction(-1, 2), Fraction(1, 3), Fraction(7)]
"""Left of both poles of a kernel, between them, and right of them."""
BITS = 96


@functools.cache
def pair_of(text: str, *, add: bool = False) -> Pair:
    relation = None if text.startswith("Randomized") else Adjacency.ADD_REMOVE
    worst = parse(text).worst_case(relation)
    return (worst.add if add else worst.remove)[0]


@functools.cache
def loss_of(text: str, *, add: bool = False) -> Moments:
    pair = pair_of(text, add=add)
    found = transform(pair) or moments(pair)
    assert found is not None
    return found


def lines_of(text: str, *, add: bool = False) -> Transform:
    found = loss_of(text, add=add)
    assert isinstance(found, Transform)
    return found


def sample(text: str) -> MixtureTransform:
    part = loss_of(text)
    assert isinstance(part, MixtureTransform)
    return part


def cut(text: str, at: str, width: str) -> MixtureTransform:
    return replace(sample(text), cut=Cut(Fraction(at), Fraction(width)))


def risen(text: str, at: str, width: str) -> MixtureTransform:
    return replace(sample(text), rise=Cut(Fraction(at), Fraction(width)))


LOSSES: list[Moments] = [
    *(loss_of(text) for text in WHOLE),
    *(loss_of(text, add=True) for text in SAMPLES),
    cut(SAMPLES[0], "6", "1/8"),
    risen(SAMPLES[0], "4", "1/8"),
]
"""Whole laws, and laws of which large or small outcomes are taken away."""
ON_LINES = [loss for loss in LOSSES if isinstance(loss, Transform)]
each_loss = pytest.mark.parametrize("loss", ON_LINES, ids=range(len(ON_LINES)))


@pytest.mark.parametrize("text", [text for text in WHOLE if "Truncated" not in text])
def test_the_moment_is_that_of_the_densities(text: str) -> None:
    """ln M(a − 1) = (a − 1) D_a, by the definition of D_a in mpmath; M(0) = M(−1) = 1."""
    loss, a = loss_of(text), Fraction(5, 2)
    relation = None if text.startswith("Randomized") else Adjacency.ADD_REMOVE
    with mpmath.workdps(30):
        known = laws(parse(text), relation)[0][0].renyi(mpmath.mpf(5) / 2)
    with ctx.workprec(BITS):
        found = loss.value(a - 1)
        assert found.rel_accuracy_bits() > BITS - 16
        assert all((loss.value(Fraction(pole)) - 1).contains(0) for pole in (0, -1))
        size = float(found.log().mid())
    assert math.isclose(size, float(known) * float(a - 1), rel_tol=1e-13, abs_tol=0)


NARROW = "PoissonSubsampled(Gaussian(standard_deviation=10), sampling_prob='1e-6')"
"""Of large tilts, where a sharp cut is far out."""


@pytest.mark.parametrize(
    ("loss", "c"),
    [
        *((loss, c) for loss in LOSSES for c in LINES),
        (cut(NARROW, "20", "1/128"), Fraction(200_000)),
        (replace(cut(SAMPLES[1], "9", "1/128"), rise=Cut(Fraction(6), Fraction(1, 64))), LINES[3]),
    ],
)
def test_floats_are_those_of_the_balls(loss: Moments, c: Fraction) -> None:
    """Cumulants against differences of ln M, and both parts of ln of a ratio against its ball.

    At −1/2, where terms of the Laplace law cancel, values nearby serve.
    """
    floats, close = loss.estimate(), 1e-3 if c == Fraction(-1, 2) else 1e-8
    size, mean, variance = floats.cumulants(float(c))
    with ctx.workprec(200):
        step = Fraction(1, 1 << 20) / max(1, round(math.sqrt(variance)))
        low, here, high = (loss.value(c + side * step).log() for side in (-1, 0, 1))
        first = float((high - low).mid()) / float(2 * step)
        second = float((high - 2 * here + low).mid()) / float(step**2)
        assert not loss.log_upper(c) < here
    assert abs(size - float(here.mid())) <= close * abs(float(here.mid())) + 1e-15
    assert abs(mean - first) <= 1e-6 * math.sqrt(variance)
    assert math.isclose(variance, second, rel_tol=close, abs_tol=0)
    if not isinstance(loss, Transform):
        return
    floats, close = loss.estimate(), 1e-7 if not loss.is_whole else close
    t = np.array([0.3, 1.1]) / math.sqrt(variance)
    real, imaginary = floats.log_ratio(float(c), t)
    for k in (0, 1):
        with ctx.workprec(BITS):
            ratio = loss.line(c, Fraction(float(t[k])), 2)[1]
            turned = acb(ratio) * acb(0, -float(t[k]) * mean).exp()
        assert math.isclose(float(abs(ratio).log().mid()), real[k], rel_tol=close, abs_tol=0)
        assert abs(float(turned.arg().mid()) - imaginary[k]) < 10 * close


@settings(max_examples=40)
@given(
    st.sampled_from([x for x in ON_LINES if x.is_whole or not isinstance(x, MixtureTransform)]),
    st.sampled_from([*LINES, Fraction(-1, 4), Fraction(40)]),
    st.floats(0.01, 9.0),
    st.floats(1e-3, 3.0),
    st.floats(0.0, 1.0),
)
def test_no_point_of_a_line_exceeds_its_bounds(
    loss: Transform, c: Fraction, turns: float, width: float, share: float
) -> None:
    """In floats, which are those of balls; a frequency of 1 turns by one standard deviation.

    Lines of laws that are cut are formed in balls alone.
    """
    floats, decay = loss.estimate(), loss.decay(c)
    t = turns / math.sqrt(floats.cumulants(float(c))[2])
    end = t * (1 + width)
    u = t + share * (end - t)
    (size,), _ = floats.log_ratio(float(c), np.array([u]))
    assert size <= decay.log_ratio(t) + 1e-9
    if (scale := decay.log_scale()) is not None:
        assert size + math.log(u) <= scale + 1e-9


@each_loss
def test_bounds_are_close_near_zero(loss: Transform) -> None:
    """1 − r is at least a third of what the variance gives: a line is at most √3 too long.

    Of Laplace noise, whose atoms keep |M| up, nothing is known.
    """
    c = Fraction(1, 4)
    if isinstance(loss, LaplaceMoments):
        assert loss.decay(c).log_ratio(10.0) == 0
        return
    t = 1e-3 / math.sqrt(loss.estimate().cumulants(float(c))[2])
    assert loss.decay(c).log_ratio(t) < -1e-6 / 2 / 3.5


@pytest.mark.parametrize(("at", "width", "c"), [("697/64", "1/32", 36), ("133/16", "1/16", 120)])
@pytest.mark.parametrize("t", [300.0, 600.0])
def test_decay_of_ten_thousand_samples(at: str, width: str, c: int, t: float) -> None:
    """Bounds are multiplied by the count: an excess of 1e-4 would lengthen lines by a half."""
    text = "PoissonSubsampled(Gaussian(standard_deviation=1), sampling_prob='1e-4')"
    loss = cut(text, at, width)
    (size,), _ = loss.estimate().log_ratio(float(c), np.array([t]))
    assert size <= (found := loss.decay(Fraction(c)).log_ratio(t)) < 0.8 * size
    assert 10_000 * (found - size) < 2


def in_balls(line: QuickLine, step: Fraction) -> list[acb]:
    """Return the ratios that a line in floats stands for."""
    rows = zip(line.values.tolist(), line.errors.tolist(), strict=True)
    return [
        acb(arb(v.real, e), arb(v.imag, e))
        * acb(0, j * arb(float(step)) * line.mean).exp()
        * line.norm
        for j, (v, e) in enumerate(rows)
    ]


@pytest.mark.parametrize("loss", [lines_of(SAMPLES[0]), lines_of(SAMPLES[0], add=True)])
def test_a_line_from_floats_contains_the_one_in_balls(loss: Transform) -> None:
    c, step, count = Fraction(7, 2), Fraction(1, 16), 300
    with ctx.workprec(BITS):
        whole = Loss(((loss, 1),))
    with ctx.workprec(64):
        quick = whole.quick_line(c, step, count)
        assert quick is not None
    with ctx.workprec(BITS):
        slow = whole.line(c, step, count)
        for j, (a, b) in enumerate(zip(in_balls(quick, step), slow, strict=True)):
            assert a.overlaps(b)
            assert a.real.rad() < 1e-14 * (1 + j * float(step))


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("counts", [(1,), (1, 2, 7, 40), (1, 2, 3, 5000)])
def test_a_line_of_many_kinds_from_floats_contains_the_one_in_balls(
    add: bool, counts: tuple[int, ...]
) -> None:
    texts = [f"PoissonSubsampled(Gaussian('{10 + i}/10'), '{i}/100')" for i in range(1, 13)]
    kinds = [lines_of(text, add=add) for text in (*texts, *WHOLE[:2])]
    loss = Loss(tuple((kind, counts[i % len(counts)]) for i, kind in enumerate(kinds)))
    c, step, count = Fraction(7, 2), Fraction(1, 8), 400
    with ctx.workprec(64):
        quick = loss.quick_line(c, step, count)
        assert quick is not None
    with ctx.workprec(BITS):
        slow = loss.line(c, step, count)
        for a, b in zip(in_balls(quick, step), slow, strict=True):
            assert a.overlaps(b)
            assert a.real.rad() < 1e-10
    assert abs(slow[-1]) < 0.9  # there is something to tell apart


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("c", [-(2.0**30), -41.0, -2.5, -1.0, -0.25, 0.01, 1.0, 3.7, 12.0, 150.0])
def test_moments_of_many_kinds_are_sums_of_those_of_each(add: bool, c: float) -> None:
    texts = [f"PoissonSubsampled(Gaussian('{5 + i}/7'), '{1 + i}/100')" for i in range(0, 60, 3)]
    factors = [(lines_of(text, add=add).estimate(), 1 + i) for i, text in enumerate(texts)]
    each = np.array([np.multiply(count, part.cumulants(c)) for part, count in factors])
    size, mean, variance = each.sum(axis=0)
    found = FloatSum(factors).cumulants(c)
    assert math.isclose(found[0], size, rel_tol=1e-13, abs_tol=1e-15)
    assert math.isclose(found[1], mean, rel_tol=1e-12)
    assert math.isclose(found[2], variance, rel_tol=1e-11)


# ---------------------------------------------------------------- samples of Gaussian noise


def floats_of(sigma: float, q: float) -> Mixture:
    return Mixture(1 / sigma, math.log(q), math.log1p(-q))


@pytest.mark.parametrize("s", [-40.0, -1.5, 0.5, 2.0, 11.5])
def test_the_bounds_of_moments_hold_and_are_not_idle(s: float) -> None:
    mixture = floats_of(1.1, 0.02)
    x = np.linspace(-40, 40, 400_001)
    loss = mixture.log_density(x)
    weights = np.exp(s * loss - 0.5 * x * x) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
    size = math.log(weights.sum())
    assert size <= mixture.log_bound(s) <= size + 1.0
    for t in (0.5, 3.0, 20.0, 100.0):
        value = math.log(abs(np.dot(weights, np.exp(1j * t * loss))))
        assert value <= mixture.log_decay(s, t) <= size + 1.0


@pytest.mark.parametrize(("sigma", "q"), [("0.7", "1e-3"), ("1", "0.01"), ("5", "0.4")])
@pytest.mark.parametrize("c", [Fraction(1, 8), Fraction(3), Fraction(100)])
def test_closed_bounds_of_samples_without_the_record_hold(sigma: str, q: str, c: Fraction) -> None:
    """Near 1 they exceed 1 by at most ten times as much as the moments."""
    text = f"PoissonSubsampled(Gaussian('{sigma}'), '{q}')"
    part = lines_of(text, add=True)
    assert isinstance(part, MixtureTransform)
    with ctx.workprec(BITS):
        value, bound = part.value(c) - 1, part.closed_bound(ball(c))
        assert bound is not None
        assert value <= bound - 1
        assert value > 0.1 or bound - 1 < 10 * value
    assert sample(text).closed_bound(ball(c)) is None  # no such bound with the record


@pytest.mark.parametrize(("c", "law"), [(0, 0), (-1, 1)])
def test_at_a_pole_a_cut_law_has_less_than_the_mass_one(c: int, law: int) -> None:
    """A contour may go through 0 or −1 where its kernel has no pole there."""
    whole = sample("PoissonSubsampled(Gaussian(standard_deviation=1), sampling_prob='0.3')")
    cut = replace(whole, cut=Cut(Fraction(1), Fraction(1, 4)))
    with ctx.workprec(BITS):
        assert Loss(((whole, 1),)).log_value(Fraction(c)).is_zero()
        found = Loss(((cut, 50),)).log_value(Fraction(c))
        assert found.overlaps(50 * (-cut.lost()[law]).log1p())
        assert found.rel_accuracy_bits() > BITS // 2

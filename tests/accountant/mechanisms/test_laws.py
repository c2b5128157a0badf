"""Single releases: what holds for every mechanism, each law said once for all of them.

What is special to one, its closed forms above all, is in a file of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import DpassayError
from dpassay.accountant.mechanisms import CorrelatedGaussian, IntegerNoise, Laplace, RankOneGaussian
from dpassay.accountant.notation import parse
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.accountant.questions import accuracy, guarantees, profile, tradeoff
from dpassay.accountant.reference import laws
from tests.accountant.mechanisms.laws import LAWS, Law, each
from tests.near import mpf as mpf_of
from tests.near import narrow
from tests.tables import rows

CLOSE, DIGITS = mpmath.mpf("1e-28"), 30
FALSE_ALARM = 1e-6
"""Of all the statistical tests here together."""


def assert_both_agree(
    mechanism: Mechanism, relation: Adjacency | None, epsilon: str, *, whole: bool
) -> None:
    """Compare δ of a record removed and, of the whole, both directions and all four tails."""
    eps, worst = exact(epsilon), mechanism.worst_case(relation)
    with mpmath.workdps(DIGITS), ctx.workprec(200):
        remove, add = laws(mechanism, relation)
        sides = [(worst.remove, remove), (worst.add, add)][: 1 + whole]
        if len(worst.remove) > len(remove):  # shifts to both sides, each way round
            sides = [(worst.remove, remove + add)]
        for pairs, known in sides:
            found = [pair.hockey_stick(eps) for pair in pairs]
            delta = max(law.hockey_stick(eps.mpf()) for law in known)
            assert_close(max(found, key=lambda value: float(value.mid())), delta)
            if not whole or len(pairs) > 1:
                continue
            mine, (law,) = pairs[0].tails(eps), known
            p, q = (law.integrate(side, eps.mpf()) for side in (lambda p, _: p, lambda _, q: q))
            for value, other in (
                (mine.p_above, p),
                (mine.q_above, q),
                (1 - mine.p_below, p),
                (1 - mine.q_below, q),
            ):
                assert_close(value, other)


def assert_close(found: arb, known: mpmath.mpf) -> None:
    assert abs(mpmath.mpf(found.mid().str(55, radius=False)) - known) <= CLOSE
    assert float(found.rad()) <= 1e-30


@each(lambda law: law.epsilons)
def test_two_routes_agree(law: Law, text: str) -> None:
    relation = Adjacency.read(law.adjacency)
    for index, epsilon in enumerate(law.epsilons.split()):
        assert_both_agree(parse(text), relation, epsilon, whole=index % 3 == 0)


@each(lambda law: law.finite)
def test_divergences_are_those_of_the_densities(law: Law, text: str) -> None:
    """Rényi's of several orders, and the mean of the loss."""
    mechanism: Any = parse(text)
    for order in ("1", "3/2", "4"):
        found = guarantees.renyi(mechanism, order)
        with mpmath.workdps(DIGITS):
            known = max(law.renyi(exact(order).mpf()) for law in laws(mechanism)[0])
            assert abs(mpf_of(found) - known) <= CLOSE * 100 * known
        assert narrow(found, Fraction(1, 10**25))


@each(lambda law: law.largest)
def test_the_pure_guarantee_is_exact(law: Law, text: str) -> None:
    """δ is 0 from the largest loss on, and positive just below it."""
    mechanism: Any = parse(text)
    assert law.largest is not None
    at = law.largest(mechanism)
    assert profile.delta(mechanism, at) == Interval.of_exact(0)
    assert profile.delta(mechanism, at * exact(1 - Fraction(1, 10**200))).lower > 0
    assert profile.epsilon(mechanism, 0).overlaps(enclose(at.ball))
    assert guarantees.loss_survival(mechanism, at) == Interval.of_exact(0)


@given(
    st.sampled_from([law for law in LAWS if law.grows]),
    st.fractions(-3, 4, max_denominator=16),
)
def test_more_sensitivity_is_never_better(law: Law, epsilon: Fraction) -> None:
    noise: list[Any] = [
        parse(law.notation.format(*law.cases[0][:-1], shift)) for shift in range(1, 6)
    ]
    with ctx.workprec(200):
        found = [each.worst_case(None).remove[0].hockey_stick(exact(epsilon)) for each in noise]
    assert all(not less > more for less, more in pairwise(found))


@each(lambda law: law.density)
def test_samples_have_the_quantiles(law: Law, text: str) -> None:
    """DKW: 2e^{−2nt²} is the false alarm of each empirical distribution, of two for each law."""
    mechanism: Any = parse(text)
    levels = np.linspace(0.01, 0.99, 99)
    places = [float(accuracy.quantile(mechanism, float(level)).upper) for level in levels]
    rng = np.random.default_rng(4)
    both = [mechanism.sample(100_000, rng=rng)]
    if mechanism.adds_real_noise():
        both.append(mechanism.release(np.zeros(40_000), rng=rng))
    tests = 2 * sum(len(law.cases) + len(law.slow) for law in LAWS if law.density)
    for drawn in both:
        bound = np.sqrt(np.log(2 * tests / FALSE_ALARM) / (2 * len(drawn)))
        ordered = np.sort(drawn)
        below, up_to = (np.searchsorted(ordered, places, side=s) for s in ("left", "right"))
        assert (below / len(drawn) - levels).max() <= bound
        assert (levels - up_to / len(drawn)).max() <= bound


# Additive noise: moments, quantiles and the probability of no error are those of its law.


LEVELS = ("1e-300", "1e-3", "0.2", "1/2", "0.51", "sqrt(0.8)", "0.9999", 1 - Fraction(1, 10**100))
INFINITY = Decimal("Infinity")


REACH = 3000
"""Beyond it no mass here is above 1e-180 of the whole."""


def integral(function: Callable[[mpf], mpf], low: mpf, kinks: list[mpf], unit: mpf) -> mpf:
    """From `low` to ∞, or to the last kink."""
    ends = [k for k in kinks if k > low] or [low + unit * step for step in (1, 5, 20, 80)]
    pieces = pairwise([low, *ends, *([] if kinks else [mpmath.inf])])
    if len(kinks) > 1:  # constant in between, times x² at most: two points are exact
        near = (1 - 1 / mpmath.sqrt(3)) / 2
        return mpmath.fsum(
            (b - a) * (function(a + near * (b - a)) + function(b - near * (b - a))) / 2
            for a, b in pieces
        )
    return mpmath.fsum(mpmath.quad(function, ab) for ab in pieces)


def close(found: Interval, known: mpf, relative: str = "1e-25") -> bool:
    return bool(abs(mpf_of(found) - known) <= mpf(relative) * abs(known))


@each(lambda law: law.density and not law.integers)
def test_moments_and_quantiles_of_real_noise(law: Law, text: str) -> None:
    mechanism: Any = parse(text)
    assert law.density is not None
    with mpmath.workdps(40):
        density = functools.partial(law.density, mechanism)
        kinks = sorted(law.kinks(mechanism)) if law.kinks else []
        unit = mpf_of(accuracy.mean_absolute_error(mechanism))
        half = integral(density, mpf(0), kinks, unit)

        def mean(power: int) -> mpf:
            return integral(lambda x: x**power * density(x), mpf(0), kinks, unit) / half

        assert close(accuracy.mean_absolute_error(mechanism), mean(1))
        assert close(accuracy.mean_squared_error(mechanism), mean(2))
        assert close(accuracy.variance(mechanism)[0], mean(2))
        for level in LEVELS[:-1]:
            x, p = mpf_of(accuracy.quantile(mechanism, level)), exact(level).mpf()
            if kinks and min(p, 1 - p) < mpf("1e-20"):
                continue  # beyond the places that are written out, or of the bounded noise
            far = density(abs(x))  # quadrature errs in proportion to 1
            beyond = (
                far * integral(lambda y: density(y) / far, abs(x), kinks, unit) / half / 2  # noqa: B023
            )
            assert abs(beyond / min(p, 1 - p) - 1) <= mpf("1e-20")
            assert (x > 0) == (p > mpf(1) / 2)
    assert accuracy.probability_exact(mechanism) == Interval.of_exact(0)


@each(lambda law: law.integers)
def test_moments_and_quantiles_of_integer_noise(law: Law, text: str) -> None:
    mechanism: Any = parse(text)
    assert law.density is not None
    with mpmath.workdps(60):
        half = [law.density(mechanism, z) for z in range(REACH + 1)]
        masses = {z: half[abs(z)] for z in range(-REACH, REACH + 1)}
        total = mpmath.fsum(masses.values())
        for power, found in (
            (1, accuracy.mean_absolute_error(mechanism)),
            (2, accuracy.mean_squared_error(mechanism)),
            (2, accuracy.variance(mechanism)[0]),
        ):
            terms = (abs(z) ** power * mass for z, mass in masses.items())
            assert close(found, mpmath.fsum(terms) / total)
        assert close(accuracy.probability_exact(mechanism), masses[0] / total)
        for level in LEVELS[1:-1]:
            found = accuracy.quantile(mechanism, level)
            assert found.lower == found.upper
            x = int(found.lower)
            below = mpmath.fsum(mass for z, mass in masses.items() if z < x) / total
            assert below < exact(level).mpf() <= below + masses[x] / total


def test_a_law_of_few_integers_is_summed_exactly() -> None:
    law = IntegerNoise(["1/8", 0, "1/2", "1/4", "1/8"], lowest=-2)
    assert law.mean() == Fraction(1, 4)
    assert Fraction(5, 4) - Fraction(1, 16) in accuracy.variance(law)[0]
    assert Fraction(5, 4) in accuracy.mean_squared_error(law)
    assert accuracy.mean_absolute_error(law) == Interval.of_exact(Fraction(3, 4))
    assert accuracy.probability_exact(law) == Interval.of_exact(Fraction(1, 2))
    levels = ("1/8", "0.126", "5/8", "0.63", "7/8", "1")
    assert [int(accuracy.quantile(law, p).lower) for p in levels] == [-2, 0, 0, 1, 1, 2]
    assert accuracy.quantile(law, 0).upper == -INFINITY


def test_several_coordinates() -> None:
    with mpmath.workdps(40):  # |v_1| is uniform on [0, 1] in three dimensions
        rank_one: Mechanism = RankOneGaussian(dimension=3, sigma_star=4)
        assert close(accuracy.mean_absolute_error(rank_one), mpmath.sqrt(2 / mpmath.pi))
        ellipse: Any = parse("EllipticalGaussian(sensitivities=[1, 4], mu=1)")
        mean = (mpmath.sqrt(5) + mpmath.sqrt(20)) / 2 * mpmath.sqrt(2 / mpmath.pi)
        assert close(accuracy.mean_absolute_error(ellipse), mean)
        root = mpf("0.95") ** (mpf(1) / 10)
        ten = accuracy.maximum_quantile(Laplace(scale=2), "0.95", coordinates=10)
        assert close(ten, -2 * mpmath.log(1 - root))
        assert close(
            accuracy.absolute_quantile(Laplace(scale=2), "0.95"), -2 * mpmath.log(mpf("0.05"))
        )
    both: Any = parse("Composed([Laplace(scale=1), LaplaceVector(scale=4, shifts=[1, 1])])")
    assert accuracy.mean_absolute_error(both).lower == 3
    vector: Any = parse("LaplaceVector(scale=3, shifts=[1, 2])")
    matrix = accuracy.covariance(vector)
    assert [[18 in entry for entry in row] for row in matrix] == [[True, False], [False, True]]
    noise: Any = parse("DiscreteGaussian(parameter=9)")
    one, many = (accuracy.maximum_quantile(noise, "0.9", coordinates=n) for n in (1, 1000))
    assert one.upper < many.lower <= Decimal(15)


def test_equal_entries_of_a_covariance_have_one_enclosure() -> None:
    """Var η = (√d + 1)/4 between counts, twice that with the size, and (√d + 1)²/4 of a count."""
    d, eta = 400, Fraction(21, 4)
    matrix = accuracy.covariance(CorrelatedGaussian(dimension=d, mu=1))
    for i, j, true in ((0, 0, 21**2 * Fraction(1, 4)), (7, 399, eta), (3, d, 2 * eta),
                       (d, 3, 2 * eta), (d, d, 4 * eta)):  # fmt: skip
        assert true in matrix[i][j]
        assert matrix[i][j].relative_width == 0


# One law that has two names: every question has one answer, whichever of them it is asked by.


LOGISTIC = "exp(-x)/(1+exp(-x))**2"
RAPPOR = "[['4/25', '1/25', '16/25', '4/25'], ['4/25', '16/25', '1/25', '4/25']]"
"""Two bits, each kept with probability 1 − f/2 = 4/5."""
RESPONSE = str(
    [["exp(1)/(exp(1)+2)" if i == j else "1/(exp(1)+2)" for j in range(3)] for i in range(3)]
)
NAMED = {"RAPPOR": RAPPOR, "LOGISTIC": LOGISTIC, "RESPONSE": RESPONSE}
RELATIONS = {"-": None, "law": None, "both": "add-remove", "one": "replace-one"}
SLOW = "LOGISTIC", "1/10'), 20)"
ROWS = [
    pytest.param(
        *(functools.reduce(lambda c, n: c.replace(n, NAMED[n]), NAMED, cell) for cell in row),
        marks=[pytest.mark.slow] * any(slow in row[1] for slow in SLOW),
    )
    for row in rows(Path(__file__).with_name("same.txt"))
]
OF_A_PAIR: list[tuple[Callable[..., Interval], str | None]] = [
    *((profile.delta, at) for at in ("-1", "0", "1/3", "5/2")),
    (profile.epsilon, "1e-3"),
    (profile.epsilon, "0"),
    (tradeoff.beta, "1/10"),
    (guarantees.renyi, "1"),
    (guarantees.renyi, "3"),
    (guarantees.rho, None),
]
OF_THE_NOISE: list[Callable[[Any], Any]] = [
    accuracy.mean_squared_error,
    accuracy.mean_absolute_error,
    lambda noise: accuracy.quantile(noise, "9/10"),
]


def answer(ask: Callable[..., Interval], *at: object, **relation: object) -> Interval | None:
    try:
        return ask(*at, **relation)
    except DpassayError:
        return None


@pytest.mark.parametrize(("relation", "one", "other"), ROWS, ids=lambda text: text[:40])
def test_one_law_has_one_answer(relation: str, one: str, other: str) -> None:
    both = parse(one), parse(other)
    for ask, at in OF_A_PAIR:
        if ask is guarantees.rho and "AdditiveNoise" in one:
            continue  # half a minute
        given = () if at is None else (at,)
        found = [answer(ask, each, *given, adjacency=RELATIONS[relation]) for each in both]
        if ask is profile.delta or (ask, at) == (profile.epsilon, "1e-3"):
            assert None not in found, (ask, at)
        if None not in found:
            assert found[0].overlaps(found[1]), (ask, at)  # type: ignore[union-attr, arg-type]
            for interval in found if ask is profile.delta else []:
                width = interval.relative_width  # type: ignore[union-attr]
                exact = interval.lower == interval.upper  # type: ignore[union-attr]
                most = Fraction(1, 10 ** (6 if "Composed" in one else 12))
                assert exact or (width is not None and width <= most), at
    for question in OF_THE_NOISE:
        noise = [answer(question, each) for each in both]
        if relation == "law" and None not in noise:
            assert noise[0].overlaps(noise[1]), question  # type: ignore[union-attr, arg-type]

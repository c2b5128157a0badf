"""Many releases of noise with atoms on one contour: closed forms, other engines, other routes."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest
from flint import acb, arb, ctx

from dpassay.accountant.composition.exact.laplace_product import Kernel as Part
from dpassay.accountant.composition.exact.laplace_product import above
from dpassay.accountant.composition.fourier.engine import FOURIER
from dpassay.accountant.composition.fourier.measure import Kernel, Line, Loss, _truncation
from dpassay.accountant.composition.losses.laplace import LaplaceTransform
from dpassay.accountant.composition.product import Product
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.mechanisms import (
    Composed,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    LaplaceVector,
    RandomizedResponse,
)
from dpassay.accountant.mechanisms.additive.laplace import LaplacePair
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.accountant.questions import profile, tradeoff
from tests.near import narrow
from tests.quick import quick

NARROW = Fraction(1, 10**9)
FINE = Fraction(1, 10**30)


def many(distance: str, count: int) -> Product:
    return Product(((LaplacePair(exact(distance)), count),), FOURIER)


def delta(pair: Pair, epsilon: str, width: Fraction = FINE) -> Interval:
    return enclose(lambda: pair.hockey_stick(exact(epsilon)), relative_width=width)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", quick(["-30", "-3", "0", "1", "20", "60", "110"], 3))
def test_the_contour_agrees_with_the_exact_expansion(epsilon: str) -> None:
    """Thirty digits each; δ from nearly 1 to 1e-36."""
    groups, unit, eps = ((1, 2000),), exact("0.1"), exact(epsilon)

    def expanded() -> arb:
        if eps.sign >= 0:
            return above(groups, unit, eps, Part.EXCESS, None)
        rest = above(groups, unit, -eps, Part.EXCESS, None)
        return eps.ball().exp() * rest - eps.ball().expm1()

    one, other = delta(many("0.1", 2000), epsilon), enclose(expanded, relative_width=FINE)
    assert one.overlaps(other)
    for found in (one, other):
        assert narrow(found, FINE)


@pytest.mark.parametrize("count", [10**6, 10**9, 10**12])
@pytest.mark.parametrize("distance", ["0.001", "0.1", "1"])
@pytest.mark.parametrize("target", ["0.01", "1e-5", "1e-100", "1e-1000"])
def test_any_count_is_enclosed_to_nine_digits(distance: str, count: int, target: str) -> None:
    mechanism = Composed(Laplace(scale=1, l1_sensitivity=distance), count)
    found = profile.epsilon(mechanism, target, relative_width=NARROW)
    low, high = (str(end) for end in (found.lower, found.upper))
    at_low, at_high = (profile.delta(mechanism, end, relative_width=NARROW) for end in (low, high))
    assert at_high.lower <= Decimal(target) <= at_low.upper
    for interval in (found, at_low, at_high):
        assert narrow(interval, NARROW)


@pytest.mark.parametrize("distance", ["0.001", "0.1", "1"])
def test_a_trillion_releases_are_nearly_gaussian(distance: str) -> None:
    """ε − kD is about σΦ^{-1}(1 − δ…): Edgeworth's first term is below 1 % of σ here.

    With D and σ²/k the exact mean and variance of one loss, the Gaussian profile with this mean
    and variance differs from H by O(1/√k) of itself, a change of ε by less than σ/100.
    """
    t, count = mpmath.mpf(distance), 10**12
    mean = t + mpmath.expm1(-t)
    # E[L²] = t²(1 + e^{−t})/2 + (1/4)∫ l² e^{(l − t)/2} dl over (−t, t)
    second = t**2 * (1 + mpmath.exp(-t)) / 2 + mpmath.quad(
        lambda x: x**2 * mpmath.exp((x - t) / 2) / 4, [-t, t]
    )
    deviation = mpmath.sqrt((second - mean**2) * count)
    found = profile.epsilon(
        Composed(Laplace(scale=1, l1_sensitivity=distance), count), "1e-5", relative_width=NARROW
    )

    def normal(x: mpmath.mpf) -> mpmath.mpf:
        """E(1 − e^{ε − L})⁺ for L = mean·k + σX, ε = mean·k + σx."""
        rest = mpmath.exp(x * deviation + deviation**2 / 2)
        return mpmath.ncdf(-x) - rest * mpmath.ncdf(-x - deviation)

    with mpmath.workdps(60):
        if deviation > 10**4:  # e^{ε − L} is 0 but within 1/σ of the end: P(L > ε) is δ
            x = -mpmath.findroot(lambda y: mpmath.ncdf(y) - mpmath.mpf("1e-5"), -4.3)
        else:
            x = mpmath.findroot(lambda y: mpmath.log(normal(y)) - mpmath.log("1e-5"), 3.5)
        away = (mpmath.mpf(str(found.lower)) - mean * count) / deviation - x
    assert abs(away) < 0.01


def test_counts_add_and_vectors_are_compositions() -> None:
    both = Composed([Composed(Laplace(scale=10), 10**8), Composed(Laplace(scale=10), 9 * 10**8)])
    whole = Composed(Laplace(scale=10), 10**9)
    vector = Composed(LaplaceVector(scale=10, shifts=[1, 1]), 5 * 10**8)
    found = [profile.delta(one, 4850672, relative_width=FINE) for one in (both, whole, vector)]
    assert found[0] == found[1]
    assert found[1].overlaps(found[2])
    assert narrow(found[2], FINE)


MIXED: list[tuple[list[Mechanism], int, str]] = [
    ([Laplace(scale=10), Gaussian(standard_deviation=10)], 50, "4"),
    ([Laplace(scale=10), RandomizedResponse(epsilon="0.1")], 4000, "60"),
    ([Laplace(scale=7), DiscreteLaplace(scale=20, sensitivity=3)], 2000, "60"),
    ([Laplace(scale=10), Laplace(scale="7.1")], 2000, "60"),
    ([Gaussian(standard_deviation=9), RandomizedResponse(epsilon="0.3")], 60, "8"),
]


@pytest.mark.parametrize(("mechanisms", "count", "epsilon"), MIXED)
def test_mixed_lists_agree_with_the_grid(
    mechanisms: list[Mechanism], count: int, epsilon: str
) -> None:
    mechanism = Composed(mechanisms, count)
    one = profile.delta(mechanism, epsilon, method="fourier", relative_width=NARROW)
    width = Fraction(1, 50)
    other = profile.delta(mechanism, epsilon, method="grid", relative_width=width)
    assert one.overlaps(other)
    assert narrow(one, NARROW)


def test_the_trade_off_function_and_the_complement_of_many_releases() -> None:
    mechanism = Composed(Laplace(scale=10), 10**9)
    beta = tradeoff.beta(mechanism, "1e-3", relative_width=NARROW)
    assert narrow(beta, NARROW)
    rest = profile.delta_complement(mechanism, 4830000, relative_width=FINE)
    whole = profile.delta(mechanism, 4830000, relative_width=FINE)
    assert narrow(rest, FINE)
    assert abs(rest.lower + whole.lower - 1) < Decimal("1e-29")


def test_the_rest_of_a_line_covers_what_is_left_out() -> None:
    """A sum that is cut off early differs from a longer one by less than its truncation."""
    loss = Loss(((LaplaceTransform(exact("0.5")), 90),))
    c, step, eps = Fraction(1, 4), Fraction(1, 16), arb(15)
    with ctx.workprec(100):
        for kernel in (Kernel.CALL, Kernel.ABOVE_P, Kernel.ABOVE_Q):
            terms = []
            for j, value in enumerate(loss.line(c, step, 4000)):
                z = acb(arb(0.25), j * arb(0.0625))
                turn = acb(0, -j * arb(0.0625) * eps).exp()
                terms.append((value * kernel.at(z) * turn).real)
            for count in (4, 8, 40):
                rest = sum(terms[count:], start=arb(0))
                assert abs(rest) < _truncation(loss, kernel, Line(c, step, count))

"""Many releases of noise with atoms, and mixed ones: engines agree, and the normal law is near."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from flint import acb, arb, ctx

from dpassay.accountant.composition.fourier.measure import Kernel, Line, Loss, truncation_bound
from dpassay.accountant.composition.losses.transform import GaussianTransform
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.mechanisms import (
    Composed,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonSubsampled,
    RandomizedResponse,
)
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.questions import profile
from tests.near import mpf, narrow
from tests.quick import slow

SIX, TEN = Fraction(1, 10**6), Fraction(1, 10**10)


@pytest.mark.parametrize("distance", ["0.001", "0.1", slow("1")])
def test_a_hundred_thousand_releases_are_nearly_gaussian(distance: str) -> None:
    """ε − kD is about σΦ^{-1}(1 − δ…): Edgeworth's first term is below 2 % of σ here.

    With D and σ²/k the exact mean and variance of one loss, the Gaussian profile with this mean
    and variance differs from H by O(1/√k) of itself, a change of ε by less than σ/50.
    """
    t, count = mpmath.mpf(distance), 10**5
    mean = t + mpmath.expm1(-t)
    # E[L²] = t²(1 + e^{−t})/2 + (1/4)∫ l² e^{(l − t)/2} dl over (−t, t)
    second = t**2 * (1 + mpmath.exp(-t)) / 2 + mpmath.quad(
        lambda x: x**2 * mpmath.exp((x - t) / 2) / 4, [-t, t]
    )
    deviation = mpmath.sqrt((second - mean**2) * count)
    found = profile.epsilon(Composed(Laplace(scale=1, l1_sensitivity=distance), count), "1e-5")

    def normal(x: mpmath.mpf) -> mpmath.mpf:
        """E(1 − e^{ε − L})⁺ for L = mean·k + σX, ε = mean·k + σx."""
        rest = mpmath.exp(x * deviation + deviation**2 / 2)
        return mpmath.ncdf(-x) - rest * mpmath.ncdf(-x - deviation)

    with mpmath.workdps(60):
        x = mpmath.findroot(lambda y: mpmath.log(normal(y)) - mpmath.log("1e-5"), 3.5)
        away = (mpmath.mpf(str(found.lower)) - mean * count) / deviation - x
    assert abs(away) < 0.02
    assert narrow(found, SIX)


MIXED: list[tuple[list[Mechanism], int, str]] = [
    ([Gaussian(standard_deviation=9), RandomizedResponse(epsilon="0.3")], 60, "8"),
    ([Laplace(scale=10), RandomizedResponse(epsilon="0.1")], 40, "2"),
    ([Laplace(scale=7), DiscreteLaplace(scale=20, sensitivity=3)], 20, "2"),
    ([Laplace(scale=10), Laplace(scale=5)], 50, "4"),
]


@pytest.mark.parametrize(("mechanisms", "count", "epsilon"), MIXED)
def test_exact_sums_agree_with_the_grid(
    mechanisms: list[Mechanism], count: int, epsilon: str
) -> None:
    mechanism = Composed(mechanisms, count)
    one = profile.delta(mechanism, epsilon, relative_width=TEN)
    other = profile.delta(mechanism, epsilon, method="grid", relative_width=Fraction(1, 50))
    assert one.overlaps(other)
    assert narrow(one, TEN)


SMOOTH = PoissonSubsampled(Gaussian(standard_deviation=1), "0.01")
ATOMS: list[tuple[list[Mechanism], int, str]] = [
    ([Laplace(scale=20), SMOOTH], 20, "0.9803618"),
    ([Laplace(scale=4), Gaussian(standard_deviation=5)], 10, "4.4996307"),
    ([PoissonSubsampled(Laplace(scale=1), "0.01")], 1000, "1.2864074"),
    ([PoissonSubsampled(Laplace(scale=1), "0.01"), Gaussian(10)], 100, "4.9106171"),
]


@pytest.mark.parametrize(("mechanisms", "count", "known"), ATOMS)
def test_atoms_with_densities_have_six_digits(
    mechanisms: list[Mechanism], count: int, known: str
) -> None:
    """`known` is from contour integrals with the atoms split off, which had nine digits."""
    found = profile.epsilon(
        Composed(mechanisms, count), "1e-6", adjacency="add-remove", relative_width=SIX
    )
    assert narrow(found, SIX)
    assert abs(Fraction(found.lower) - Fraction(known)) < 2 * SIX * Fraction(known)


def test_the_rest_of_a_line_covers_what_is_left_out() -> None:
    """A sum that is cut off early differs from a longer one by less than its truncation."""
    pair = Gaussian(standard_deviation=4).worst_case(None).remove[0]
    assert isinstance(pair, GaussianPair)
    loss = Loss(((GaussianTransform(pair), 90),))
    c, step, eps = Fraction(1, 4), Fraction(1, 16), arb(8)
    with ctx.workprec(100):
        for kernel in (Kernel.CALL, Kernel.ABOVE_P, Kernel.ABOVE_Q):
            terms = []
            for j, value in enumerate(loss.line(c, step, 400)):
                z = acb(arb(0.25), j * arb(0.0625))
                turn = acb(0, -j * arb(0.0625) * eps).exp()
                terms.append((value * kernel.at(z) * turn).real)
            for count in (4, 8, 40):
                rest = sum(terms[count:], start=arb(0))
                assert abs(rest) < truncation_bound(loss, kernel, Line(c, step, count))


def test_sums_near_the_largest_are_those_of_the_whole_list() -> None:
    """Above the second largest sum δ(ε) = p (1 − e^{ε − l}), l the largest sum and p its mass."""
    scales, delta = range(5, 21), mpmath.mpf("1e-9")
    mechanism = Composed([DiscreteLaplace(scale) for scale in scales])
    largest = mpmath.fsum(mpmath.mpf(1) / scale for scale in scales)
    mass = mpmath.fprod(1 / (1 + mpmath.exp(-mpmath.mpf(1) / scale)) for scale in scales)
    found = profile.epsilon(mechanism, "1e-9", adjacency="add-remove")
    assert narrow(found, SIX)
    assert mpmath.almosteq(mpf(found), largest + mpmath.log1p(-delta / mass), 1e-6)
    for epsilon in ("0.4", "1.1", "1.4", "1.5"):  # from lists that end at different sums
        listed = profile.delta(mechanism, epsilon, adjacency="add-remove", relative_width=TEN)
        summed = profile.delta(mechanism, epsilon, adjacency="add-remove", relative_width=SIX)
        assert listed.overlaps(summed)

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import mpmath
import pytest

from accountant.mechanisms import RandomizedResponse
from accountant.mechanisms.additive.staircase import Staircase, optimal_gamma
from accountant.numbers.exact import exact
from accountant.numbers.interval import Interval, enclose
from accountant.questions import profile, tradeoff

LAWS = [("1", "1/4", "1"), ("2", "0.5", "3"), ("1/3", "0.9", "sqrt(2)"), ("1", 0, 1), ("4", 1, 2)]


def mpf(value: Interval) -> mpmath.mpf:
    return (mpmath.mpf(str(value.lower)) + mpmath.mpf(str(value.upper))) / 2


def density(mechanism: Staircase, x: mpmath.mpf) -> mpmath.mpf:
    """The density in units of Δ, written down again from the paper's definition."""
    b, gamma = mpmath.exp(-mechanism.epsilon.mpf()), mechanism.gamma.mpf()
    a = (1 - b) / (2 * (gamma + b * (1 - gamma)))
    k = mpmath.floor(abs(x))
    return a * b**k * (1 if abs(x) - k < gamma else b)


def pieces(mechanism: Staircase, reach: int) -> list[mpmath.mpf]:
    gamma = mechanism.gamma.mpf()
    cuts = {k + part for k in range(reach) for part in (mpmath.mpf(0), gamma)}
    return sorted(cuts | {mpmath.mpf(reach)})


@pytest.mark.parametrize("law", LAWS)
def test_the_full_shift_is_the_worst(law: tuple[str, str, str]) -> None:
    # the profile of a smaller shift, by quadrature over both densities
    mechanism = Staircase(*law)
    with mpmath.workdps(30):
        for shift in (mpmath.mpf(1) / 7, mpmath.mpf(1) / 2, mpmath.mpf("0.93")):
            cuts = pieces(mechanism, 6)
            line = sorted({-c for c in cuts} | set(cuts))
            line = sorted(set(line) | {c + shift for c in line})
            for epsilon in ("0", "0.2"):
                eps = exact(epsilon).mpf()
                total = mpmath.mpf(0)
                for low, high in pairwise(line):
                    middle = (low + high) / 2
                    gain = density(mechanism, middle - shift) - mpmath.exp(eps) * density(
                        mechanism, middle
                    )
                    total += max(gain, mpmath.mpf(0)) * (high - low)
                # at least the mass within 6 sensitivities; the full shift is worse by far more
                assert total <= mpf(profile.delta(mechanism, epsilon)) * (1 + mpmath.mpf("1e-20"))


def test_half_and_half_is_binary_randomized_response() -> None:
    stairs, bit = Staircase("1.7", "1/2"), RandomizedResponse("1.7")
    for epsilon in ("-1", "0", "0.6", "1.69"):
        assert profile.delta(stairs, epsilon).overlaps(profile.delta(bit, epsilon))
    assert tradeoff.beta(stairs, "0.01").overlaps(tradeoff.beta(bit, "0.01"))


@pytest.mark.parametrize("epsilon", ["0.1", "1", "5"])
def test_optimal_gamma_beats_its_neighbours(epsilon: str) -> None:
    for cost in ("absolute", "variance"):
        best = optimal_gamma(epsilon, cost)
        assert best.relative_width is not None
        assert best.relative_width <= Fraction(1, 10**30)

        def value(gamma: Fraction, cost: str = cost) -> Interval:
            mechanism = Staircase(epsilon, gamma)
            compute = (
                mechanism.mean_absolute_error
                if cost == "absolute"
                else mechanism.mean_squared_error
            )
            return enclose(compute)

        middle, step = Fraction(best.lower), Fraction(1, 10**6)
        assert value(middle).upper < value(middle + step).lower
        assert value(middle).upper < value(middle - step).lower


def test_optimal_gamma_is_the_published_one() -> None:
    # γ* = 1/(1 + e^{ε/2}) for the ℓ1 cost, and for ℓ2 the cubic root as printed
    with mpmath.workdps(50):
        b = mpmath.exp(-1)
        assert abs(mpf(optimal_gamma(1, "absolute")) - 1 / (1 + mpmath.exp(0.5))) < 1e-30
        printed = -b / (1 - b) + mpmath.cbrt(b - 2 * b**2 + 2 * b**4 - b**5) / (
            mpmath.cbrt(2) * (1 - b) ** 2
        )
        assert abs(mpf(optimal_gamma(1, "variance")) - printed) < 1e-30

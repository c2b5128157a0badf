"""Random allocation at ten settings by a route of its own, at 45 digits.

E(K − W)⁺ = (1/2πi) ∫ e^{λK} ψ(λ)^t λ⁻² dλ on a vertical line, ψ(λ) = E exp(−λ e^{μz − μ²/2}/t): by
two trapezoidal sums in mpmath. The program asks for moments of W instead.
"""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest

from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.allocation import RandomAllocationPair

SETTINGS = [
    ("1", 100, "0.1", True),  # 0.01788232478534
    ("1", 100, "0.5", True),  # 4.40890803386e-5
    ("1", 100, "0.5", False),
    ("2", 10, "0.5", True),
    ("2", 30, "0.25", False),
    ("0.75", 60, "0.75", True),
    ("0.75", 20, "0.5", False),
    ("0.6", 1000, "0.5", True),
    ("2", 1000, "0.0625", True),
    ("3", 300, "0.0625", False),
]
"""σ, t, ε, and whether the mixture is first."""


def by_inversion(sigma: str, steps: int, epsilon: str, *, remove: bool) -> mpmath.mpf:
    """E(W − K)⁺, or e^ε E(K − W)⁺ for K = e^−ε.

    The sum over λ has the period B = 3K and e^{−Bc} = e^−70 as a relative error, that over z is
    along Im z = −7/(10μ), where it converges like e^{−2π·7/(10μh)}.
    """
    mu, at = 1 / mpmath.mpf(sigma), mpmath.mpf(epsilon)
    k, h, turn = mpmath.exp(at if remove else -at), mpmath.mpf(1) / 16, mpmath.mpf("0.7") / mu
    z = [mpmath.mpc(h * j, -turn) for j in range(-13 * 16, 13 * 16 + 1)]
    ratios = [mpmath.exp(mu * each - mu**2 / 2) / steps for each in z]
    period = 3 * k
    line = 70 / period
    terms = [
        h * mpmath.npdf(each) * mpmath.exp(-line * x) for each, x in zip(z, ratios, strict=True)
    ]
    turns = [mpmath.exp(-2j * mpmath.pi * x / period) for x in ratios]
    total, n, size = mpmath.mpf(0), 0, mpmath.mpf(1)
    while abs(size) > mpmath.mpf("1e-24"):
        point = mpmath.mpc(line, 2 * mpmath.pi * n / period)
        size = sum(terms) ** steps / point**2 * mpmath.exp(point * k)
        total += size.real / (1 if n else 2)
        terms = [a * b for a, b in zip(terms, turns, strict=True)]
        n += 1
    put = 2 * total / period
    return put + 1 - k if remove else put / k


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "steps", "epsilon", "remove"), SETTINGS)
def test_profiles_are_those_of_an_inverted_transform(
    sigma: str, steps: int, epsilon: str, *, remove: bool
) -> None:
    """1e-17 is far above the errors of the sums, and far below δ of 1e-12."""
    pair = RandomAllocationPair(ExactReal.of_rational(1 / Fraction(sigma)), steps, remove)
    with mpmath.workdps(45), ctx.workprec(100):
        wanted = by_inversion(sigma, steps, epsilon, remove=remove)
        found = pair.hockey_stick(ExactReal.of_rational(Fraction(epsilon)))
        assert found.rel_accuracy_bits() > 40
        assert abs(mpmath.mpf(found.str(30, radius=False)) - wanted) < mpmath.mpf("1e-17")
        assert wanted > 1e-12

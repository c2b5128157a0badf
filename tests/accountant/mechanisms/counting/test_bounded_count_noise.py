from __future__ import annotations

from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq

from dpassay.accountant.counting.count_noise import BoundedCountNoise, CountNoise
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import ball, enclose
from dpassay.accountant.questions import profile
from tests.near import narrow

PARAMETERS = [
    ("2.18", "0.8", 6),
    ("1.1", "0.5", 8),
    ("1.1", "0.02", 8),
    ("0.3", "0.6", 4),
    ("2", "0.9", 3),
    ("1", "sqrt(0.2)", 4),
    ("0", "1/3", 1),
    ("0", "0.5", 4),
    ("0", "0.2", 5),
]
# (E, η, D) with rational E; the last two are below the threshold of Theorem 3
RATIONAL = [
    (Fraction(3), Fraction(1, 2), 2),
    (Fraction(9), Fraction(4, 5), 6),
    (Fraction(2), Fraction(1, 3), 5),
    (Fraction(1), Fraction(1, 4), 3),
    (Fraction(4), Fraction(1, 100), 2),
    (Fraction(3), Fraction(1, 20), 6),
]


def weights(ratio: Fraction, eta: Fraction, support: int) -> list[Fraction]:
    """Return α_1, …, α_D by the recursion (37) to (39) in rational arithmetic."""
    b, c = 2 / (1 - eta), 2 * eta / (1 - eta)
    powers = [ratio**j for j in range(support + 1)]

    def plain(m: int) -> Fraction:
        return sum(powers[:m], start=Fraction(0))

    def descending(m: int) -> Fraction:
        return sum((plain(j) for j in range(1, m + 1)), start=Fraction(0))

    def ascending(m: int) -> Fraction:
        return sum(((j + 1) * powers[j] for j in range(m)), start=Fraction(0))

    regime = next(
        (k for k in range(1, support + 1) if c > plain(k + 1) / descending(k)), support + 1
    )
    if regime == support + 1:
        return [plain(support + 1 - j) / descending(support) for j in range(1, support + 1)]
    delta = (c * plain(regime) - powers[regime]) / (b * ascending(regime))
    result = [(c - b * delta) / ratio]
    for _ in range(1, regime):
        result.append((result[-1] - b * delta) / ratio)
    return result + [Fraction(0)] * (support - regime)


def symmetric(ratio: Fraction, eta: Fraction, support: int) -> list[Fraction]:
    side = [weight * (1 - eta) / 2 for weight in weights(ratio, eta, support)]
    return [*reversed(side), eta, *side]


def excesses(ratio: Fraction, masses: list[Fraction]) -> list[Fraction]:
    """Return (p(z) − E p(z + 1))⁺ for every z."""
    following = [*masses[1:], Fraction(0)]
    return [max(p - ratio * q, Fraction(0)) for p, q in zip(masses, following, strict=True)]


def true_delta(noise: CountNoise) -> arb:
    """Return (η − E p(1))⁺ + (p(1) − Eη)⁺ + Σ_{1 ≤ i ≤ D} min(δ*, p(i)), the δ at its own ε.

    For i ≥ 1, p(i) − E p(i+1) is δ* below the regime k, p(k) ≤ δ* at it, and p(i) = 0 beyond; for
    C ≤ C_D it is δ* for all i. Towards 0, only p(1) − E p(0) can be positive, since α decreases.
    """
    delta, ratio = arb(noise.delta), arb(noise.ratio)
    eta, first, *rest = (arb(noise.mass(i)) for i in range(noise.support + 1))
    ends = (eta - ratio * first).max(arb(0)) + (first - ratio * eta).max(arb(0))
    return sum((mass.min(delta) for mass in (first, *rest)), start=ends)


def logarithm(ratio: Fraction) -> arb:
    return ball(ratio).log()


def contains(found: arb, value: Fraction) -> bool:
    inside = bool(found.contains(fmpq(value.numerator, value.denominator)))
    return inside and bool(found.rad() < arb(2) ** -150)


@pytest.mark.parametrize(("ratio", "eta", "support"), RATIONAL)
def test_the_printed_law_is_that_of_the_recursion(
    ratio: Fraction, eta: Fraction, support: int
) -> None:
    masses = symmetric(ratio, eta, support)
    assert sum(masses) == 1
    with ctx.workprec(256):
        noise = CountNoise.of(logarithm(ratio), eta, support)
        for z, mass in enumerate(masses, start=-support):
            assert contains(arb(noise.mass(z)), mass)


@pytest.mark.parametrize(("ratio", "eta", "support"), RATIONAL)
def test_the_true_delta_is_the_hockey_stick_divergence(
    ratio: Fraction, eta: Fraction, support: int
) -> None:
    masses = symmetric(ratio, eta, support)
    expected = sum(excesses(ratio, masses), start=Fraction(0))
    assert expected == sum(excesses(ratio, masses[::-1]))
    with ctx.workprec(256):
        assert contains(true_delta(CountNoise.of(logarithm(ratio), eta, support)), expected)


@pytest.mark.parametrize(("ratio", "eta", "support"), RATIONAL)
def test_the_printed_optimum_is_met_above_the_threshold_only(
    ratio: Fraction, eta: Fraction, support: int
) -> None:
    singular = max(excesses(ratio, symmetric(ratio, eta, support)))
    c = 2 * eta / (1 - eta)
    with ctx.workprec(256):
        noise = CountNoise.of(logarithm(ratio), eta, support)
        printed, best = arb(noise.delta), arb(noise.optimal_delta)
        if arb(noise.plain[support - 1] / noise.descending[support]) <= ball(c):
            assert contains(printed, singular)
            assert contains(best, singular)
            claimed = (support + 1) * printed
            assert not true_delta(noise) > claimed
        else:
            assert printed < best
            assert best < ball(singular)


@pytest.mark.parametrize(("epsilon", "eta", "support"), PARAMETERS)
def test_its_own_delta_has_the_closed_form(epsilon: str, eta: str, support: int) -> None:
    mechanism = BoundedCountNoise(epsilon, eta, support)
    found = profile.delta(mechanism, epsilon)
    closed = enclose(lambda: true_delta(CountNoise.of(exact(epsilon), exact(eta), support)))
    assert found.overlaps(closed)
    assert narrow(found, Fraction(1, 10**30))


def test_equal_masses_are_decided() -> None:
    # uniform on −1..1: the loss is 0 on two outcomes, so {L > 0} is the end alone
    (pair,) = BoundedCountNoise(5, "1/3", 1).worst_case(None).remove
    with ctx.workprec(128):
        tails = pair.tails(exact(0))
        assert tails.p_above.overlaps(arb(1) / 3)
        assert tails.q_above.is_zero()

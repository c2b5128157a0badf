"""Optimal composition of (ε, δ)-DP (Kairouz, Oh and Viswanath 2015; Murtagh and Vadhan 2016).

The pair with the four masses P = (δ, (1 − δ)e^ε/(1 + e^ε), (1 − δ)/(1 + e^ε), 0), Q = P reversed,
dominates every (ε, δ)-DP mechanism. So the profile of the product of these pairs is the best
statement about the adaptive composition of anything that is (ε_i, δ_i)-DP, and nothing more is
used of the mechanisms: with 1 − Π(1 − δ_i)^{k_i} the mass at infinity and s = ±ε_i,

    δ(ε) = 1 − Π(1 − δ_i)(1 − E[(1 − e^{ε − Σ s})⁺]),

where s = +ε_i with probability e^{ε_i}/(1 + e^{ε_i}), else −ε_i.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from flint import arb

from accountant.baselines.guarantee import Given, Guarantee, Repeated, read
from accountant.core.mechanism import Mechanism
from accountant.core.validate import probability
from accountant.mechanisms.wrappers.composed import Composed
from accountant.mechanisms.wrappers.guaranteed import Guaranteed
from accountant.numbers.exact import Number, exact
from accountant.numbers.interval import Interval, enclose
from accountant.questions import profile

_LONGEST = 1 << 14
"""Bits of a probability that is written out as a fraction; a longer one is not exact."""


def kairouz_delta(
    releases: Given, epsilon: Number, *, relative_width: Number | None = None
) -> Interval:
    """Enclose the least δ such that any releases with these guarantees are (ε, δ)-DP together."""
    return profile.delta(_composed(read(releases)), epsilon, relative_width=relative_width)


def kairouz(releases: Given, delta: Number, *, relative_width: Number | None = None) -> Interval:
    """Enclose the least ε such that any releases with these guarantees are (ε, δ)-DP together.

    Raises
    ------
    NotApplicableError
        If the ε_i have too many distinct sums to list.
    """
    entries = read(releases)
    if probability("delta", delta).rational == _mass_at_infinity(entries):
        return enclose(lambda: sum((n * g.epsilon.ball() for g, n in entries), start=arb(0)))
    return profile.epsilon(_composed(entries), delta, relative_width=relative_width)


def _mass_at_infinity(entries: Sequence[Repeated]) -> Fraction | None:
    """Return 1 − Π(1 − δ)^count where that is rational and no long number, else None."""
    left, size = Fraction(1), 0
    for guarantee, count in entries:
        if guarantee.delta.rational is None:
            return None
        size += count * guarantee.delta.rational.denominator.bit_length()
        if size > _LONGEST:
            return None
        left *= (1 - guarantee.delta.rational) ** count
    return 1 - left


def kairouz_closed(releases: Given, slack: Number) -> tuple[Interval, Interval]:
    """Return the closed form of their Theorem 3.5: (ε̃, 1 − (1 − slack)Π(1 − δ_i)), slack in (0, 1].

    ε̃ = min{Σε, Σε tanh(ε/2) + √(2 ln(e + √Σε²/slack)) √Σε², Σε tanh(ε/2) + √(2 ln(1/slack) Σε²)}.
    """
    entries, extra = read(releases), probability("slack", slack)

    def epsilon() -> arb:
        simple = mean = square = arb(0)
        for g, n in entries:
            e = g.epsilon.ball()
            simple, mean = simple + n * e, mean + n * e * (e / 2).tanh()
            square += n * e**2
        first = mean + (2 * square * (arb(1).exp() + square.sqrt() / extra.ball()).log()).sqrt()
        return simple.min(first).min(mean + (2 * square * -extra.ball().log()).sqrt())

    def delta() -> arb:
        left = (-extra.ball()).log1p() if extra != exact(1) else arb.neg_inf()
        for g, n in entries:
            left += n * (-g.delta.ball()).log1p() if g.delta != exact(1) else arb.neg_inf()
        return -left.expm1()

    return enclose(epsilon), enclose(delta)


def _composed(entries: Sequence[Repeated]) -> Mechanism:
    merged: dict[Guarantee, int] = {}
    for guarantee, count in entries:
        merged[guarantee] = merged.get(guarantee, 0) + count
    return Composed(tuple(Composed(Guaranteed(g.epsilon, g.delta), n) for g, n in merged.items()))

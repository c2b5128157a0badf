"""Composition theorems of the literature: of (ε, δ)-DP releases, and of zCDP.

*Basic* (Dwork, McSherry, Nissim and Smith 2006): ε and δ add up.

*Advanced*, in its two usual forms: k releases of (ε, δ)-DP are (ε̃, kδ + δ')-DP for every δ' in
(0, 1] with

    ε̃ = ε √(2k ln(1/δ')) + k ε (e^ε − 1)       (Dwork, Rothblum and Vadhan 2010, Theorem III.3)
    ε̃ = ε √(2k ln(1/δ')) + k ε tanh(ε/2)       (Kairouz, Oh and Viswanath 2015)

where ε tanh(ε/2) is the mean loss of randomised response. Both hold for unequal releases with kε²
and kε(…) replaced by sums.

*Optimal* (Kairouz, Oh and Viswanath 2015; Murtagh and Vadhan 2016): `Guaranteed` dominates every
(ε, δ)-DP mechanism, so the profile of a product of these is the best statement about the adaptive
composition of anything that is (ε_i, δ_i)-DP, and nothing more is used of the mechanisms. With
1 − Π(1 − δ_i)^{k_i} the mass at infinity and s = ±ε_i, + with probability e^{ε_i}/(1 + e^{ε_i}),

    δ(ε) = 1 − Π(1 − δ_i)(1 − E[(1 − e^{ε − Σ s})⁺]).

*zCDP*: ρ adds up, and ρ-zCDP implies (ρ + 2√(ρ ln(1/δ)), δ)-DP (Bun and Steinke 2016,
Proposition 1.3).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.validate import NonNegative, Probability, integer, probability
from dpassay.accountant.errors import InvalidInputError, UndecidedError, expected
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.mechanisms.wrappers.guaranteed import Guaranteed
from dpassay.accountant.numbers.exact import ExactReal, Number
from dpassay.accountant.numbers.interval import Interval, enclose, sign
from dpassay.accountant.questions import guarantees, profile

_LONGEST = 1 << 14
"""Bits of a probability that is written out as a fraction; a longer one is not exact."""


@final
@dataclass(frozen=True)
class Guarantee:
    """(ε, δ)-DP of one release, with ε ≥ 0 and δ in [0, 1]."""

    epsilon: NonNegative = NonNegative()
    delta: Probability = Probability(0)


Repeated: TypeAlias = tuple[Guarantee, int]
Given: TypeAlias = Iterable[tuple[Number, Number] | tuple[Number, Number, int]]
"""(ε, δ) or (ε, δ, count) of each release."""


def read(releases: Given) -> Sequence[Repeated]:
    """Read a list of guarantees.

    Raises InvalidInputError for an empty list, a count below 1 or an entry of another length.
    """
    found: list[Repeated] = []
    for index, entry in enumerate(releases):
        if len(entry) not in (2, 3):
            raise InvalidInputError(
                f"Expected releases[{index}] to be (epsilon, delta) or (epsilon, delta, count)."
            )
        count = integer(f"releases[{index}].count", entry[2] if len(entry) > 2 else 1, least=1)
        found.append((Guarantee(entry[0], entry[1]), count))
    if not found:
        raise InvalidInputError("Expected at least one release.")
    return found


def basic(releases: Given) -> tuple[Interval, Interval]:
    """Return (Σ count·ε, Σ count·δ) (Dwork, McSherry, Nissim and Smith 2006)."""
    entries = read(releases)
    return (
        enclose(lambda: sum((n * g.epsilon.ball() for g, n in entries), start=arb(0))),
        enclose(lambda: sum((n * g.delta.ball() for g, n in entries), start=arb(0)).min(arb(1))),
    )


def advanced_epsilon(releases: Given, delta: Number, *, sharp: bool = False) -> Interval:
    """Enclose ε̃ at the total δ, whose slack is what the releases leave; +∞ if that is nothing."""
    entries, target = read(releases), probability("delta", delta)

    def simple() -> arb:
        return sum((n * g.epsilon.ball() for g, n in entries), start=arb(0))

    def slack() -> arb:
        return target.ball() - sum((n * g.delta.ball() for g, n in entries), start=arb(0))

    side = _sign(entries, target)
    if side is None:
        raise UndecidedError(f"delta={target} was not told from the sum of those of the releases.")
    if side < 0:
        return Interval.of_ball(arb.pos_inf())
    return enclose(simple if side == 0 else lambda: _epsilon(entries, slack(), sharp))


def _sign(entries: Sequence[Repeated], target: ExactReal) -> int | None:
    """Return the sign of δ − Σ count·δ_i, exactly where all of them are rational."""
    rational = [g.delta.rational for g, _ in entries]
    if target.rational is not None and None not in rational:
        spent = sum(n * (g.delta.rational or 0) for g, n in entries)
        return (target.rational > spent) - (target.rational < spent)
    return sign(lambda: target.ball() - sum((n * g.delta.ball() for g, n in entries), start=arb(0)))


def _epsilon(entries: Sequence[Repeated], slack: arb, sharp: bool) -> arb:
    simple = mean = square = arb(0)
    for guarantee, count in entries:
        e = guarantee.epsilon.ball()
        simple += count * e
        mean += count * e * ((e / 2).tanh() if sharp else e.expm1())
        square += count * e**2
    return simple.min(mean + (2 * square * -slack.log()).sqrt())


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


def _composed(entries: Sequence[Repeated]) -> Mechanism:
    merged: dict[Guarantee, int] = {}
    for guarantee, count in entries:
        merged[guarantee] = merged.get(guarantee, 0) + count
    return Composed(tuple(Composed(Guaranteed(g.epsilon, g.delta), n) for g, n in merged.items()))


def zcdp(
    mechanism: Mechanism, count: int, delta: Number, *, adjacency: Adjacency | str | None = None
) -> Interval:
    """Enclose ρ + 2√(ρ ln(1/δ)) for the sum ρ of the parts' least ρ.

    `dpassay.accountant.questions.notions.epsilon_of_zcdp` converts the same ρ better. +∞ where a
    part has no ρ.
    """
    target = probability("delta", delta)
    if target.sign == 0:
        raise expected("delta", delta, "> 0")
    rho = Fraction(0)
    for part, n in Composed(mechanism, count).parts():
        value = guarantees.rho(part, adjacency=adjacency).upper
        if math.isinf(value):
            return Interval.of_ball(arb.pos_inf())
        rho += n * Fraction(value)
    total = Interval.of_exact(rho)

    def epsilon() -> arb:
        ball = total.ball()
        return ball + 2 * (ball * -target.ball().log()).sqrt()

    return enclose(epsilon, relative_width=Fraction(1, 10**25))

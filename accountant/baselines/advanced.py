"""Advanced composition of Dwork, Rothblum and Vadhan, in its two usual forms.

k releases of (ε, δ)-DP are (ε̃, kδ + δ')-DP for every δ' in (0, 1] with

    ε̃ = ε √(2k ln(1/δ')) + k ε (e^ε − 1)                     (DRV 2010, Theorem III.3)
    ε̃ = ε √(2k ln(1/δ')) + k ε (e^ε − 1)/(e^ε + 1)           (Kairouz, Oh and Viswanath 2015)

The second factor is tanh(ε/2), the mean loss of randomised response over ε. Both hold for unequal
releases with kε² and kε(…) replaced by sums.
"""

from __future__ import annotations

from collections.abc import Sequence

from flint import arb

from accountant.baselines.guarantee import Given, Repeated, read
from accountant.core.validate import probability
from accountant.errors import UndecidedError, expected
from accountant.numbers.exact import ExactReal, Number
from accountant.numbers.interval import Interval, enclose, sign


def advanced(releases: Given, slack: Number, *, sharp: bool = False) -> tuple[Interval, Interval]:
    """Return (ε̃, Σδ + slack), never worse than basic composition in ε.

    Parameters
    ----------
    releases
        (ε, δ) or (ε, δ, count) of each release.
    slack
        δ' in (0, 1].
    sharp
        Whether the mean loss is ε tanh(ε/2) instead of ε(e^ε − 1).
    """
    entries, extra = read(releases), probability("slack", slack)
    if extra.sign == 0:
        raise expected("slack", slack, "> 0", "At slack 0 only basic composition holds.")

    def total() -> arb:
        return sum((n * g.delta.ball() for g, n in entries), start=extra.ball()).min(arb(1))

    return enclose(lambda: _epsilon(entries, extra.ball(), sharp)), enclose(total)


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

"""The trade-off function β(α): the least type II error of any test at type I error α.

H₀ is Q, H₁ is P: a test S has type I error α = Q(S) and type II error β = 1 − P(S). By convex
duality, f(α) = sup over real ε of 1 − H(ε) − e^ε α, and the likelihood-ratio tests {L > ε}
lie on the curve. Both facts give bounds whose distance is quadratic in the error of ε.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from flint import arb

from accountant import solve
from accountant._validate import probability
from accountant.adjacency import Adjacency, Direction
from accountant.errors import UndecidedError
from accountant.interval import RELATIVE_WIDTH, Interval, enclose
from accountant.mechanism import Mechanism
from accountant.number import ExactReal, Number
from accountant.pair import Pair
from accountant.profile import least, worst_pairs


def beta(
    mechanism: Mechanism,
    alpha: Number,
    *,
    adjacency: Adjacency | str | None = None,
    direction: Direction | None = None,
    relative_width: Fraction = RELATIVE_WIDTH,
) -> Interval:
    """Enclose β(α), the least type II error at type I error α over the worst pairs.

    Parameters
    ----------
    mechanism, adjacency, direction, relative_width
        As for `accountant.profile.delta`.
    alpha
        Type I error in [0, 1], read exactly.

    Raises
    ------
    InvalidInputError
        If α is outside [0, 1].
    """
    level = probability("alpha", alpha)
    values = [
        _on_curve(pair, level, relative_width)
        for pair in worst_pairs(mechanism, adjacency, direction)
    ]
    return Interval(min(v.lower for v in values), min(v.upper for v in values))


def power(
    mechanism: Mechanism,
    alpha: Number,
    *,
    adjacency: Adjacency | str | None = None,
    direction: Direction | None = None,
    relative_width: Fraction = RELATIVE_WIDTH,
) -> Interval:
    """Enclose 1 − β(α), the largest power at level α, without cancellation for small α."""
    level = probability("alpha", alpha)
    values = [
        _power(pair, level, relative_width) for pair in worst_pairs(mechanism, adjacency, direction)
    ]
    return Interval(max(v.lower for v in values), max(v.upper for v in values))


def _on_curve(pair: Pair, level: ExactReal, relative_width: Fraction) -> Interval:
    """Enclose the trade-off function of one pair at one level."""
    if level.rational == 1:
        return Interval.of_exact(0)
    if level.sign == 0:  # reject only where Q has no mass
        return enclose(lambda: 1 - pair.infinity_mass())
    low, high = _threshold(pair, level, relative_width)
    return enclose(
        lambda: _between(pair, level, low, high, complement=False), relative_width=relative_width
    )


def _power(pair: Pair, level: ExactReal, relative_width: Fraction) -> Interval:
    if level.rational == 1:
        return Interval.of_exact(1)
    if level.sign == 0:
        return enclose(pair.infinity_mass)
    low, high = _threshold(pair, level, relative_width)
    return enclose(
        lambda: _between(pair, level, low, high, complement=True), relative_width=relative_width
    )


def _threshold(
    pair: Pair, level: ExactReal, relative_width: Fraction
) -> tuple[ExactReal, ExactReal]:
    """Return ε₁ < ε₂, near each other, with Q(L > ε₁) ≥ α ≥ Q(L > ε₂)."""

    def excess(eps: ExactReal) -> arb:
        above = pair.tails(eps).q_above
        return arb.neg_inf() if above.is_zero() else (above / level.ball()).log()

    width = min(relative_width, Fraction(1, 10**6)) ** 2  # squared again by duality
    try:
        found = solve.root(excess, solve.bracket(excess, Fraction(1)), relative_width=width)
    except UndecidedError:  # an atom: Q(L > ε) jumps across α and no sign can be proved beside it
        found = _jump(excess, width)
    return (
        ExactReal.of_rational(Fraction(found.lower)),
        ExactReal.of_rational(Fraction(found.upper)),
    )


def _jump(excess: solve.Function, width: Fraction) -> Interval:
    """Enclose by plain bisection the point where a step function passes zero."""
    low, high = solve.bracket(excess, Fraction(1))
    while high - low > width * max(abs(low), abs(high)):
        middle = (low + high) / 2
        if excess(ExactReal.of_rational(middle)) > 0:
            low = middle
        else:
            high = middle
    return Interval.of_exact(low).hull(Interval.of_exact(high))


def _between(
    pair: Pair, level: ExactReal, low: ExactReal, high: ExactReal, *, complement: bool
) -> arb:
    """Bound f(α) (or 1 − f(α)) between two thresholds, from below by duality, above by a chord.

    Below: f(α) ≥ 1 − H(ε) − e^ε α = P(L ≤ ε) + e^ε (Q(L > ε) − α), for ε = ε₁ and ε₂.
    Above: the tests {L > ε₁} and {L > ε₂} lie on the convex curve, at levels on both sides of α.
    """
    alpha = level.ball()
    one, two = pair.tails(low), pair.tails(high)
    share = (one.q_above - alpha) / (one.q_above - two.q_above)
    if not share.is_finite() or share < 0 or share > 1:
        share = arb("0.5 +/- 0.5")
    bounds = []
    for eps, tails in ((low, one), (high, two)):
        slope = eps.ball().exp() * (tails.q_above - alpha)
        bounds.append(tails.p_above - slope if complement else tails.p_below + slope)
    if complement:
        chord = one.p_above + share * (two.p_above - one.p_above)
        return chord.union(least(bounds))
    chord = one.p_below + share * (two.p_below - one.p_below)
    return chord.union(-least([-bound for bound in bounds]))


def curve(pairs: Sequence[Pair], epsilon: ExactReal) -> list[tuple[arb, arb]]:
    """Return the points (Q(L > ε), P(L ≤ ε)) of the likelihood-ratio tests, one per pair."""
    return [(t.q_above, t.p_below) for t in (pair.tails(epsilon) for pair in pairs)]

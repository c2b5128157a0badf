"""The privacy profile δ(ε) of a mechanism: value, logarithm, complement and inverse.

A mechanism is (ε, δ)-DP exactly when δ ≥ δ(ε) := max over its worst pairs and both directions
of the hockey-stick divergence H(ε) = sup_S P(S) − e^ε Q(S). ε may be any real number: below 0
the profile exceeds the total variation distance and tends to 1.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from flint import arb

from accountant import solve
from accountant._validate import probability
from accountant.adjacency import Adjacency, Direction
from accountant.errors import UndecidedError
from accountant.interval import (
    RELATIVE_WIDTH,
    START_PRECISION,
    Interval,
    asked_width,
    ball,
    enclose,
    narrowed,
    or_reached,
    sign,
)
from accountant.mechanism import Mechanism
from accountant.number import ExactReal, Number, exact
from accountant.pair import Pair
from accountant.precision import ctx

_HALF = arb("0.5")
_HALF_EXACTLY = Fraction(1, 2)
_ROUGH = 64
_ESTIMATE_WIDTHS = (Fraction(1, 10**8), Fraction(1, 10**4))
_SHARE_OF_WIDTH = 16
_CHORD_BITS = 4
_DEEP = Fraction(1, 10**60)
_FINEST_ESTIMATE = Fraction(1, 10**13)
_COARSEST = 1 / 16
_LOOSE = 2.0
_LEAST_SHARE = 1e-9


def worst_pairs(
    mechanism: Mechanism,
    adjacency: Adjacency | str | None,
    direction: Direction | None,
    method: str = "auto",
) -> Sequence[Pair]:
    """Return the pairs that a question ranges over: of one direction, or (None) of both."""
    relation, direction = Adjacency.read(adjacency), Direction.read(direction)
    if method == "auto":
        return mechanism.worst_case(relation).pairs(direction)
    from accountant.composition.engines import pairs_of  # engines ask mechanisms, not the reverse

    return pairs_of(mechanism, method, relation, direction)


def delta(
    mechanism: Mechanism,
    epsilon: Number,
    *,
    adjacency: Adjacency | str | None = None,
    direction: Direction | None = None,
    method: str = "auto",
    relative_width: Fraction = RELATIVE_WIDTH,
) -> Interval:
    """Enclose δ(ε).

    Parameters
    ----------
    mechanism
        Any mechanism.
    epsilon
        Any real number, read exactly.
    adjacency
        The neighbouring relation, required where the two differ.
    direction
        One direction of the pair; None takes the worse of both.
    method
        The engine of a composition: "auto", or one that is insisted on, "exact", "saddle",
        "lists", "atoms", "pieces" or "grid" (`accountant.composition.engines`).
    relative_width
        Width of the enclosure relative to δ.

    Raises
    ------
    AdjacencyError
        If the relation is needed and not named, or does not fit.
    NotApplicableError
        If the engine that is named does not apply; the message says which ones do.
    UndecidedError
        If the width cannot be reached.
    """
    eps = exact(epsilon, "epsilon")
    pairs = worst_pairs(mechanism, adjacency, direction, method)
    return enclose(lambda: hockey_stick(pairs, eps), relative_width=relative_width)


def log_delta(
    mechanism: Mechanism,
    epsilon: Number,
    *,
    adjacency: Adjacency | str | None = None,
    direction: Direction | None = None,
    method: str = "auto",
    relative_width: Fraction = RELATIVE_WIDTH,
) -> Interval:
    """Enclose ln δ(ε); −∞ where δ(ε) = 0. Arguments and errors as for `delta`."""
    eps = exact(epsilon, "epsilon")
    pairs = worst_pairs(mechanism, adjacency, direction, method)

    def logarithm() -> arb:
        value = hockey_stick(pairs, eps)
        if value > _HALF:
            return (-_complement(pairs, eps)).log1p()
        return arb.neg_inf() if value.is_zero() else value.log()

    return enclose(logarithm, relative_width=relative_width)


def delta_complement(
    mechanism: Mechanism,
    epsilon: Number,
    *,
    adjacency: Adjacency | str | None = None,
    direction: Direction | None = None,
    method: str = "auto",
    relative_width: Fraction = RELATIVE_WIDTH,
) -> Interval:
    """Enclose 1 − δ(ε) = P(L ≤ ε) + e^ε Q(L > ε), without cancellation where δ is near 1."""
    eps = exact(epsilon, "epsilon")
    pairs = worst_pairs(mechanism, adjacency, direction, method)
    return enclose(lambda: _complement(pairs, eps), relative_width=relative_width)


def epsilon(
    mechanism: Mechanism,
    delta: Number,
    *,
    adjacency: Adjacency | str | None = None,
    direction: Direction | None = None,
    method: str = "auto",
    relative_width: Fraction = RELATIVE_WIDTH,
) -> Interval:
    """Enclose ε(δ) = inf {ε real : δ(ε) ≤ δ}, the inverse of the profile.

    It is +∞ where no finite ε has δ(ε) ≤ δ, negative where δ exceeds the total variation
    distance, and −∞ at δ = 1. At δ = 0 it is the largest privacy loss.

    Raises
    ------
    InvalidInputError
        If δ is outside [0, 1].
    """
    target = probability("delta", delta)
    pairs = worst_pairs(mechanism, adjacency, direction, method)
    if target.rational == 1:
        return Interval.of_ball(arb.neg_inf())
    if target.sign == 0:
        return enclose(
            lambda: most([pair.max_loss() for pair in pairs]), relative_width=relative_width
        )
    return or_reached(lambda width: _inverse(pairs, target, width), relative_width)


def _inverse(pairs: Sequence[Pair], target: ExactReal, relative_width: Fraction) -> Interval:
    """Enclose the largest ε at which the H of a pair passes δ, 0 < δ < 1."""
    sides = [_infinity_against(pair, target) for pair in pairs]
    if 1 in sides:
        return Interval.of_ball(arb.pos_inf())
    found = [
        enclose(pair.max_finite_loss, relative_width=relative_width)
        for pair, side in zip(pairs, sides, strict=True)
        if side == 0
    ]
    open_pairs, refused = [], []
    asked = sorted(zip(pairs, sides, strict=True), key=lambda entry: -float(entry[0].max_loss()))
    for pair, side in asked:
        if _cannot_matter(pair, found):
            continue
        try:
            known = pair.inverse(target, relative_width) if side < 0 else None
        except UndecidedError as refusal:
            refused.append((pair, refusal))
            continue
        if known is not None:
            found.append(known)
        elif side < 0:
            open_pairs.append(pair)
    if open_pairs:
        found.append(inverse_by_values(open_pairs, target, relative_width))
    for pair, reached in refused:
        if not _cannot_matter(pair, found):
            raise reached
    return Interval(max(f.lower for f in found), max(f.upper for f in found))


def _cannot_matter(pair: Pair, found: Sequence[Interval]) -> bool:
    """Whether no loss of the pair exceeds the ε(δ) of another one."""
    least = max((interval.lower for interval in found), default=Decimal("-Infinity"))
    return least.is_finite() and bool(pair.max_loss() <= exact(least).ball())


def _infinity_against(pair: Pair, target: ExactReal) -> int:
    """Return the sign of P(L = +∞) − δ: ε(δ) is +∞ above 0, the largest finite loss at 0."""
    mass = pair.exact_infinity_mass()
    if mass is not None:
        return (mass > target) - (mass < target)
    side = sign(lambda: pair.infinity_mass() - target.ball())
    if side is None:
        raise UndecidedError(
            f"delta={target} was not told from the probability of an infinite loss, "
            "at and below which epsilon jumps to infinity. Ask for a larger delta."
        )
    return side


def inverse_by_values(
    pairs: Sequence[Pair], target: ExactReal, relative_width: Fraction
) -> Interval:
    """Enclose the ε with δ(ε) = δ, where δ > 0 exceeds the mass at infinity."""
    with narrowed(relative_width / 2):  # ε(δ) changes less than δ, in proportion, but near 0
        found = _beside_estimate(pairs, target, relative_width)
        if found is None and relative_width < _FINEST_ESTIMATE:
            found = _refined(pairs, target, relative_width)
        if found is not None:
            return found
    with narrowed(relative_width / _SHARE_OF_WIDTH):
        pairs = _largest(pairs, target)
        excess = _excess(pairs, target)
        between = _estimated(pairs, target, excess) or solve.bracket(excess, Fraction(1))
        return solve.root(excess, between, relative_width=relative_width)


def _excess(pairs: Sequence[Pair], target: ExactReal) -> solve.Function:
    """Return ln(δ(ε)/δ) as a function of ε.

    Above ½ the complements are compared, whose logarithm does not cancel where δ is near 1.
    """
    rest = None if target.rational is None else 1 - target.rational

    def excess(eps: ExactReal) -> arb:
        if rest is not None and rest < _HALF_EXACTLY:
            below = _complement(pairs, eps)
            return arb.pos_inf() if below.is_zero() else (ball(rest) / below).log()
        value = hockey_stick(pairs, eps)
        return arb.neg_inf() if value.is_zero() else (value / target.ball()).log()

    return excess


def _beside_estimate(
    pairs: Sequence[Pair], target: ExactReal, relative_width: Fraction
) -> Interval | None:
    """Enclose ε(δ) beside its estimate, from the pair with the largest; None where that fails."""
    if relative_width < _FINEST_ESTIMATE:
        return None
    with ctx.workprec(_ROUGH):
        log_delta = float(target.ball().log().mid())
    guess, most, known = -math.inf, 0, {}
    ends = [float(pair.max_loss().upper()) for pair in pairs]
    for i in sorted(range(len(pairs)), key=lambda i: -ends[i]):
        if ends[i] < guess:
            break  # its ε is at most its largest loss
        found = pairs[i].estimate_epsilon(log_delta)
        if found is None or not math.isfinite(found):
            return None
        known[i] = found
        guess, most = max((guess, most), (found, i))
    alone = _excess([pairs[most]], target)
    interval = solve.beside(alone, Fraction(guess), relative_width=relative_width)
    if interval is None:
        return None
    upper = exact(interval.upper)
    with ctx.workprec(START_PRECISION):
        for i, pair in enumerate(pairs):
            if i != most and not _surely_below(pair, known.get(i), guess, upper, target):
                return None
    return interval


def _refined(pairs: Sequence[Pair], target: ExactReal, relative_width: Fraction) -> Interval | None:
    """Enclose ε(δ) by chords, from its estimate on with twice the digits each; None if one fails.

    The error of a chord between the ends of an enclosure is of the order of its width squared.
    """
    widths = [relative_width]
    while widths[-1] < _FINEST_ESTIMATE:
        widths.append(Fraction(2) ** (_log_2(widths[-1]) // 2 - _CHORD_BITS))
    coarse = widths.pop()
    with narrowed(coarse / 2):
        found = _beside_estimate(pairs, target, coarse)
    excess = _excess(pairs, target)
    if found is not None and relative_width < _DEEP:  # what is refused at last is refused at once
        with narrowed(relative_width / _SHARE_OF_WIDTH), ctx.workprec(-_log_2(relative_width)):
            excess(exact(found.lower))
    for width in reversed(widths):
        if found is None:
            return None
        low, high = Fraction(found.lower), Fraction(found.upper)
        bits = _CHORD_BITS - _log_2(width)
        with narrowed(width / _SHARE_OF_WIDTH), ctx.workprec(max(START_PRECISION, bits + 32)):
            at_low, at_high = (excess(ExactReal.of_rational(end)) for end in (low, high))
            guess = solve.secant(low, high, at_low, at_high, bits)
            if guess is None:
                return None
            found = solve.beside(excess, guess, relative_width=width)
    return found


def _log_2(value: Fraction) -> int:
    return value.numerator.bit_length() - value.denominator.bit_length()


def _surely_below(
    pair: Pair, found: float | None, guess: float, epsilon: ExactReal, target: ExactReal
) -> bool:
    """Whether H(ε) < δ is proved, where ε is about `guess` and `found` is the ε of this pair.

    A simple bound is tried first where ln H at `found` and at ε seem to differ enough.
    """
    limit = target.ball()
    apart = abs(guess) if found is None else guess - found
    falls = -float(limit.log().mid()) * apart > _LOOSE * abs(guess)
    if falls and pair.bound(epsilon) < limit:
        return True
    return below(pair, epsilon, limit)


def below(pair: Pair, epsilon: ExactReal, limit: arb) -> bool:
    """Whether H(ε) < limit is proved, with no more accuracy than its estimate says it takes."""
    estimate = pair.estimate_log_delta(float(epsilon))
    gap = 0.0
    if estimate is not None and limit > 0:
        gap = max(float(limit.lower().log()) - estimate, 0.0)
    if (estimate is None or gap > _LOOSE) and pair.bound(epsilon) < limit:
        return True
    width = max(Fraction(min(gap / 4, _COARSEST)), asked_width.get() or Fraction(0))
    with narrowed(width or _FINEST_ESTIMATE):
        return bool(pair.hockey_stick(epsilon) < limit)


def _largest(pairs: Sequence[Pair], target: ExactReal) -> Sequence[Pair]:
    """Leave out pairs whose ε(δ) certainly is not the largest, by their bounds at the others'."""
    if len(pairs) == 1:
        return pairs
    with ctx.workprec(_ROUGH):
        log_delta = float(target.ball().log().mid())
        left = list(pairs)
        for pair in pairs:
            if len(left) == 1:
                break
            guess = pair.estimate_epsilon(log_delta) if pair in left else None
            if guess is None:
                continue
            low = ExactReal.of_rational(Fraction(guess) - abs(Fraction(guess)) / 1000)
            if not pair.hockey_stick(low) > target.ball():
                continue
            left = [p for p in left if p == pair or not p.bound(low) < target.ball()]
    return left


def _estimated(
    pairs: Sequence[Pair], target: ExactReal, excess: solve.Function
) -> solve.Bracket | None:
    """Return a narrow bracket of the root around an estimate, None where none is known or true."""
    with ctx.workprec(_ROUGH):
        log_delta = float(target.ball().log().mid())
        found = [pair.estimate_epsilon(log_delta) for pair in pairs]
        known = [Fraction(value) for value in found if value is not None]
        if len(known) < len(pairs):
            return None
        guess = max(known)
        for width in _ESTIMATE_WIDTHS:
            low, high = (guess + side * abs(guess) * width for side in (-1, 1))
            ends = [excess(ExactReal.of_rational(end)) for end in (low, high)]
            if ends[0] > 0 > ends[1]:
                return low, high
    return None


def _complement(pairs: Sequence[Pair], epsilon: ExactReal) -> arb:
    """Return the least P(L ≤ ε) + e^ε Q(L > ε) among the pairs, at flint's current precision."""
    return least([_complement_of(pair, epsilon) for pair in pairs])


def _complement_of(pair: Pair, epsilon: ExactReal) -> arb:
    """Return it of one pair; where its tails are too wide, what they have in common with 1 − H."""
    tails = pair.tails(epsilon)
    value = tails.p_below + epsilon.ball().exp() * tails.q_above
    asked = asked_width.get()
    if asked is None or 2 * value.rad() < ball(asked) * abs(value).lower():
        return value
    share = Fraction(min(1.0, max(_LEAST_SHARE, float(value.lower()))))
    with contextlib.suppress(UndecidedError), narrowed(asked * share / 2):
        return value.intersection(1 - pair.hockey_stick(epsilon))
    return value


def hockey_stick(pairs: Sequence[Pair], epsilon: ExactReal) -> arb:
    """Return the largest H(ε) among the pairs, at flint's current precision.

    Where estimates say which is the largest, the others are only proved to be below it.
    """
    if len(pairs) == 1:
        return pairs[0].hockey_stick(epsilon)
    found = [pair.estimate_log_delta(float(epsilon)) for pair in pairs]
    known = [value for value in found if value is not None]
    if len(known) < len(pairs):
        return most([pair.hockey_stick(epsilon) for pair in pairs])
    order = sorted(range(len(pairs)), key=lambda i: -known[i])
    value = pairs[order[0]].hockey_stick(epsilon)
    for i in order[1:]:
        if not (known[i] < known[order[0]] and below(pairs[i], epsilon, value)):
            value = value.max(pairs[i].hockey_stick(epsilon))
    return value


def most(values: Sequence[arb]) -> arb:
    """Return a ball for the largest of some numbers."""
    result = values[0]
    for value in values[1:]:
        result = result.max(value)
    return result


def least(values: Sequence[arb]) -> arb:
    """Return a ball for the smallest of some numbers."""
    result = values[0]
    for value in values[1:]:
        result = result.min(value)
    return result

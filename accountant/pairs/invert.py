"""The largest H(ε) of several pairs, its inverse ε(δ), and H and the tails over a ball of ε.

The inverse is found in two steps: an estimate in floats, and a proof by two points at which H is
certainly on different sides of δ (`dpassay.accountant.numbers.solve`). For a width finer than that
of floats, a root search between these two points follows.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from flint import arb

from dpassay.accountant.core.pair import (
    Pair,
    Tails,
    asked_width,
    exact_infinity_mass,
    max_finite_loss,
    only_bounded,
    refined,
)
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.numbers import solve
from dpassay.accountant.numbers.exact import ExactReal, exact, in_short
from dpassay.accountant.numbers.interval import (
    GRID_WIDTH,
    START_PRECISION,
    Interval,
    ball,
    enclose,
    nonnegative,
    sign,
    within,
)
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import fraction

_MOST_STEPS = 30
"""Largest number of secant steps of an estimate. Ten usually suffice; more only delay a refusal."""
_FIRST_STEP = 2.0**-12
"""Relative step for the first slope. A larger step adds curvature, a smaller one is lost in the
widths of the values."""
_MOST_SHRINKS = 3
"""Times that ε is divided by 4 instead when a secant step leads below 0."""
_ORDERS = tuple(1 + 2.0**k for k in range(-4, 24))
"""Rényi orders for the Chernoff estimate of ε."""
_ROUGH = 64
"""Precision in bits of values that are converted to floats."""
_SHARE_OF_WIDTH = 16
"""H is computed to a relative width this many times finer than that of ε; a wider H would not
decide its side of δ near the root."""
_FINEST_ESTIMATE = Fraction(1, 10**13)
"""Finest relative width of an enclosure around a float estimate."""
_COARSEST = 1 / 16
"""Largest relative width of H in a proof that a pair does not matter; a wider H proves it too
seldom."""
_WIDE_GAP = 0.4
"""Gap in ln H above which a simple bound is tried first; below it the bound usually fails."""
_LEAST_SHARE = 1e-9
"""Least 1 − H that is computed from H; a smaller one needs more digits of H than come quickly."""
_HALF = Fraction(1, 2)
"""If 1 − δ is below this, complements are compared: ln δ would cancel for δ near 1."""


Refused: TypeAlias = tuple[Pair, UndecidedError]


def to_width(pairs: Sequence[Pair], relative_width: Fraction | None) -> list[Pair]:
    """Return the pairs with H and the tails evaluated to a relative width."""
    return [refined(pair, relative_width) for pair in pairs]


def inverse(pairs: Sequence[Pair], target: ExactReal, relative_width: Fraction) -> Interval:
    """Enclose max ε(δ) over the pairs, for 0 < δ < 1.

    UndecidedError carries an enclosure if one of some pair is known. Its upper end is +∞ if nothing
    is known about another pair.
    """
    # With several pairs, an enclosure for one of them must not be reported as the answer.
    with contextlib.nullcontext() if len(pairs) == 1 else within():
        found, refusals = _inverse(pairs, target, relative_width)
    if refusals and len(pairs) == 1:
        raise refusals[0]
    ends = [refusal.interval for refusal in refusals if refusal.interval is not None]
    whole = [*found, *(Interval(end.lower, end.upper) for end in ends)]
    if not whole:
        raise UndecidedError(str(refusals[0]), reached=max(each.reached for each in refusals))
    answer = Interval(max(each.lower for each in whole), max(each.upper for each in whole))
    if len(ends) < len(refusals):  # a pair about which nothing is known may have the largest ε
        raise UndecidedError(
            str(refusals[0]),
            reached=max(each.reached for each in refusals),
            interval=Interval(answer.lower, Decimal("Infinity")),
        )
    if refusals:
        width = answer.relative_width
        reached = math.inf if width is None else float(width)
        raise UndecidedError(str(refusals[0]), reached=reached, interval=answer)
    return answer


def _inverse(
    pairs: Sequence[Pair], target: ExactReal, relative_width: Fraction
) -> tuple[list[Interval], list[UndecidedError]]:
    """Return enclosures of ε(δ), and the errors of undecided pairs that may have the largest."""
    sides = [_infinity_against(pair, target) for pair in pairs]
    if 1 in sides:
        return [Interval.of_ball(arb.pos_inf())], []
    found = [
        enclose(functools.partial(max_finite_loss, pair), relative_width=relative_width)
        for pair, side in zip(pairs, sides, strict=True)
        if side == 0
    ]
    open_pairs, refused = list[Pair](), list[Refused]()
    asked = sorted(zip(pairs, sides, strict=True), key=lambda entry: -float(entry[0].max_loss()))
    for pair, side in asked:
        low = _least(found, refused)
        if _cannot_matter(pair, found, refused) or (
            low.is_finite() and _quickly_below(pair, exact(low), target.ball())
        ):
            continue
        if side < 0 and _is_probably_less(pair, open_pairs, target):
            open_pairs.append(pair)
            continue
        try:
            known = pair.known.inverse(target, relative_width) if side < 0 else None
        except UndecidedError as refusal:
            refused.append((pair, refusal))
            continue
        if known is not None:
            found.append(known)
        elif side < 0:
            open_pairs.append(pair)
    if open_pairs:
        try:
            found.append(inverse_by_values(open_pairs, target, relative_width))
        except UndecidedError as problem:
            for pair in open_pairs:
                if _cannot_matter(pair, found, refused):
                    continue
                try:
                    found.append(_by_fallback(pair, target, relative_width, problem))
                except UndecidedError as refusal:
                    refused.append((pair, problem if refusal.interval is None else refusal))
    kept = list[Refused]()
    for entry in refused:
        if not _cannot_matter(entry[0], found, kept):
            kept.append(entry)
    return found, [refusal for _, refusal in kept]


def _by_fallback(
    pair: Pair, target: ExactReal, relative_width: Fraction, problem: UndecidedError
) -> Interval:
    """Enclose ε(δ) by a pair's fallback after a root search failed.

    Without a fallback, raise UndecidedError with the best enclosure that is quickly available.
    """
    if problem.interval is not None:
        raise problem
    known = pair.known.fallback(target, relative_width)
    if known is not None:
        return known
    if relative_width < GRID_WIDTH:
        with contextlib.suppress(UndecidedError):
            known = pair.known.inverse(target, GRID_WIDTH)
    if known is None:
        raise problem
    refusal = UndecidedError(str(problem), reached=problem.reached)
    refusal.say_interval(known, "epsilon")
    raise refusal


def _is_probably_less(pair: Pair, others: Sequence[Pair], target: ExactReal) -> bool:
    """Whether, at the estimated ε(δ) of another pair, the estimate of H of this pair is below δ."""
    if not others:
        return False
    largest = float(pair.max_loss().upper())
    with ctx.workprec(_ROUGH):
        log_delta = float(target.ball().log().mid())
    for other in others:
        if (epsilon := other.known.epsilon(log_delta)) is not None:
            value = pair.known.log_delta(epsilon) if epsilon <= largest else -math.inf
            if value is not None and value < log_delta:
                return True
    return False


def _cannot_matter(pair: Pair, found: Sequence[Interval], refused: Sequence[Refused]) -> bool:
    """Whether the largest loss of the pair is at most a proved lower bound of another's ε(δ)."""
    least = _least(found, refused)
    return least.is_finite() and bool(pair.max_loss() <= exact(least).ball())


def _quickly_below(pair: Pair, epsilon: ExactReal, limit: arb) -> bool:
    """Whether H(ε) < limit by a bound that takes little time; the simplest is tried first."""
    known = pair.known
    return bool(known.closed_bound(epsilon) < limit or known.bound(epsilon) < limit)


def _least(found: Sequence[Interval], refused: Sequence[Refused]) -> Decimal:
    """Return the largest lower bound of ε(δ) that is proved for a pair, or −∞."""
    ends = [interval.lower for interval in found]
    ends += [refusal.interval.lower for _, refusal in refused if refusal.interval is not None]
    return max(ends, default=Decimal("-Infinity"))


def _infinity_against(pair: Pair, target: ExactReal) -> int:
    """Return the sign of P(L = +∞) − δ: if > 0, ε(δ) = +∞; if 0, it is the largest finite loss."""
    mass = exact_infinity_mass(pair)
    if mass is not None:
        return (mass > target) - (mass < target)
    side = sign(lambda: pair.infinity_mass() - target.ball())
    if side is None:
        raise UndecidedError(
            f"delta={in_short(target)} could not be distinguished from the probability of an "
            "infinite loss, at and below which epsilon is infinite. Ask for a larger delta."
        )
    return side


def inverse_by_values(
    pairs: Sequence[Pair], target: ExactReal, relative_width: Fraction
) -> Interval:
    """Enclose the ε with max H(ε) = δ, for δ > 0 larger than every mass at infinity."""
    # except near 0, a relative change of δ changes ε by a smaller relative amount
    coarse = max(relative_width, _FINEST_ESTIMATE)
    with within():
        found = _near_estimate(to_width(pairs, coarse / 2), target, coarse)
    if found is not None and coarse == relative_width:
        return found
    excess = _excess(to_width(pairs, relative_width / _SHARE_OF_WIDTH), target)
    with within():
        between = (
            solve.bracket(excess, Fraction(1))
            if found is None
            else (Fraction(found.lower), Fraction(found.upper))
        )
    return solve.root(excess, between, relative_width=relative_width)


def _excess(pairs: Sequence[Pair], target: ExactReal) -> solve.Function:
    """Return ln(δ(ε)/δ) as a function of ε.

    For δ > ½ it is the function ln((1 − δ)/(1 − δ(ε))) of the same sign, which does not cancel for
    δ near 1.
    """
    rest = None if target.rational is None else 1 - target.rational

    @within()  # an enclosure of δ(ε) must not be reported as one of ε
    def excess(eps: ExactReal) -> arb:
        if rest is not None and rest < _HALF:
            below = complement(pairs, eps)
            return arb.pos_inf() if below.is_zero() else (ball(rest) / below).log()
        value = hockey_stick(pairs, eps)
        nothing = not value > 0 and value < target.ball()  # may be 0, but certainly below δ
        return arb.neg_inf() if nothing else (value / target.ball()).log()

    return excess


def _near_estimate(
    pairs: Sequence[Pair], target: ExactReal, relative_width: Fraction
) -> Interval | None:
    """Enclose ε(δ) around the largest float estimate of the pairs; None if that fails."""
    with ctx.workprec(_ROUGH):
        log_delta = float(target.ball().log().mid())
    guess, most, known = -math.inf, 0, dict[int, float]()
    ends = [float(pair.max_loss().upper()) for pair in pairs]
    for i in sorted(range(len(pairs)), key=lambda i: -ends[i]):
        if ends[i] < guess:
            break  # the ε of this pair, and of all later ones, is at most its largest loss
        if math.isfinite(guess):
            value = pairs[i].known.log_delta(guess)
            if value is not None and value < log_delta:
                known[i] = value
                continue
        found = pairs[i].known.epsilon(log_delta)
        if found is None or not math.isfinite(found):
            return None
        guess, most = max((guess, most), (found, i))
    alone = _excess([pairs[most]], target)
    interval = solve.root_near(alone, Fraction(guess), relative_width=relative_width)
    if interval is None:
        return None
    upper = exact(interval.upper)
    with ctx.workprec(START_PRECISION):
        for i, pair in enumerate(pairs):
            if i != most and not below(pair, upper, target.ball(), known.get(i)):
                return None
    return interval


def below(pair: Pair, epsilon: ExactReal, limit: arb, estimate: float | None = None) -> bool:
    """Whether H(ε) < limit can be proved.

    The estimate of ln H(ε), computed if None, selects the accuracy that the proof needs.
    """
    estimate = pair.known.log_delta(float(epsilon)) if estimate is None else estimate
    gap = 0.0
    if estimate is not None and limit > 0:
        gap = max(float(limit.lower().log()) - estimate, 0.0)
    if (estimate is None or gap > _WIDE_GAP) and _quickly_below(pair, epsilon, limit):
        return True
    width = max(Fraction(min(gap / 4, _COARSEST)), asked_width(pair) or Fraction(0))
    return bool(refined(pair, width or _FINEST_ESTIMATE).hockey_stick(epsilon) < limit)


def complement(pairs: Sequence[Pair], epsilon: ExactReal) -> arb:
    """Return the least P(L ≤ ε) + e^ε Q(L > ε) among the pairs, at flint's current precision."""
    return least([_complement_of(pair, epsilon) for pair in pairs])


def _complement_of(pair: Pair, epsilon: ExactReal) -> arb:
    """Return P(L ≤ ε) + e^ε Q(L > ε) = 1 − H(ε) of one pair.

    If the tails are too wide, the result is intersected with 1 − H(ε).
    """
    if only_bounded(pair):
        return nonnegative(1 - pair.hockey_stick(epsilon))
    tails = pair.tails(epsilon)
    value = tails.p_below + epsilon.ball().exp() * tails.q_above
    asked = asked_width(pair)
    if asked is None or 2 * value.rad() < ball(asked) * abs(value).lower():
        return value
    share = Fraction(min(1.0, max(_LEAST_SHARE, float(value.lower()))))
    with contextlib.suppress(UndecidedError):
        return value.intersection(1 - refined(pair, asked * share / 2).hockey_stick(epsilon))
    return value


def hockey_stick(pairs: Sequence[Pair], epsilon: ExactReal) -> arb:
    """Return the largest H(ε) among the pairs, at flint's current precision.

    If estimates of ln H are known, only the pair with the largest one is computed, and the others
    are proved to be below it where possible.
    """
    return nonnegative(_largest(pairs, epsilon))


def _largest(pairs: Sequence[Pair], epsilon: ExactReal) -> arb:
    if epsilon.sign == 0 and len(pairs) == 2 and pairs[0].reverse() == pairs[1]:
        pairs = pairs[1:]  # total variation is symmetric
    if len(pairs) == 1:
        return pairs[0].hockey_stick(epsilon)
    found = [pair.known.log_delta(float(epsilon)) for pair in pairs]
    known = [value for value in found if value is not None]
    if len(known) < len(pairs):
        value = pairs[0].hockey_stick(epsilon)
        for pair in pairs[1:]:
            if not _quickly_below(pair, epsilon, value.lower()):
                value = value.max(pair.hockey_stick(epsilon))
        return value
    order = sorted(range(len(pairs)), key=lambda i: -known[i])
    value = pairs[order[0]].hockey_stick(epsilon)
    for i in order[1:]:
        if not (known[i] < known[order[0]] and below(pairs[i], epsilon, value, known[i])):
            value = value.max(pairs[i].hockey_stick(epsilon))
    return value


def chernoff_epsilon(pair: Pair, log_delta: float) -> float | None:
    """Return an estimate of the least ε at which Rényi divergences bound H by δ, or None.

    H(ε) ≤ e^{(a − 1)(D_a − ε)} (1 − 1/a)^{a − 1}/a for every order a > 1.
    """
    best = math.inf
    with ctx.workprec(_ROUGH):
        for a in _ORDERS:
            try:
                divergence = float(pair.renyi(arb(a)).mid())
            except (NotApplicableError, UndecidedError):
                continue
            if math.isfinite(divergence):
                share = math.log1p(-1 / a) - (log_delta + math.log(a)) / (a - 1)
                best = min(best, divergence + share)
    return best if math.isfinite(best) else None


def rough_root(
    profile: Callable[[ExactReal], arb],
    log_delta: float,
    start: float,
    close: float,
) -> float | None:
    """Return an estimate of the root of ln H(ε) − log_delta, or None if none is found.

    `start` should be to the right of the root. The secant method begins with the slope at the
    start, and stops after a step of relative size below `close`.

    Raises UndecidedError if H is not known at a point, and ArithmeticError if H is constant.
    """

    def value(at: float) -> float:
        with ctx.workprec(START_PRECISION):  # the precision of proofs, which share cached values
            found = profile(ExactReal.of_rational(Fraction(at))).log()
        if not found.is_finite():
            raise UndecidedError(f"No value was found at epsilon={at:.6g}.")
        return float(found.mid())

    low, high, last, shrinks = -math.inf, math.inf, start, 0
    point = start + abs(start) * _FIRST_STEP
    here, before = value(point), value(last)
    for _ in range(_MOST_STEPS):
        low, high = (point, high) if here > log_delta else (low, point)
        move = (log_delta - here) * (point - last) / (here - before)
        last, point, before = point, point + move, here
        if point <= 0 < last and shrinks < _MOST_SHRINKS:  # ln H is steep near 0
            point, shrinks = last / 4, shrinks + 1
        if not low < point < high:
            point = 0.5 * (low + high)
        if abs(move) < close * abs(last):
            return last + move
        here = value(point)
    return None


def most(values: Sequence[arb]) -> arb:
    """Return a ball that contains the largest of some numbers."""
    return functools.reduce(arb.max, values)


def largest_known(values: Sequence[ExactReal | None]) -> ExactReal | None:
    """Return the largest of some numbers if all are known, else None."""
    known = [value for value in values if value is not None]
    return max(known, default=None) if len(known) == len(values) else None


def least(values: Sequence[arb]) -> arb:
    """Return a ball that contains the smallest of some numbers."""
    return functools.reduce(arb.min, values)


def hockey_stick_at(pair: Pair, epsilon: arb) -> arb:
    """Return a ball that contains H(ε) for every ε in a ball.

    H is non-increasing, so its values at the two rational ends of the ball enclose it.
    """
    low, high = ends(epsilon)
    upper = pair.hockey_stick(low)
    return upper if low == high else upper.union(pair.hockey_stick(high))


def tails_at(pair: Pair, epsilon: arb) -> Tails:
    """Return balls that contain the tails for every ε in a ball; tails are monotone in ε too."""
    low, high = ends(epsilon)
    left = pair.tails(low)
    return left if low == high else hull(left, pair.tails(high))


def hull(first: Tails, second: Tails) -> Tails:
    """Return balls that contain both sets of tails."""
    return Tails(
        p_above=first.p_above.union(second.p_above),
        p_below=first.p_below.union(second.p_below),
        q_above=first.q_above.union(second.q_above),
        q_below=first.q_below.union(second.q_below),
    )


def ends(value: arb) -> tuple[ExactReal, ExactReal]:
    """Return the two ends of a finite ball as exact numbers."""
    low, high = (ExactReal.of_rational(fraction(end)) for end in (value.lower(), value.upper()))
    return low, high

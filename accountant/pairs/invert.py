"""Answers from several pairs at once: the largest H(ε), and its inverse ε(δ); and H at a ball.

The inverse has two steps: an estimate in floats; and a proof, by two points at which H is certainly
on different sides of δ (`dpassay.accountant.numbers.solve`). Finer widths are searched between
these.
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
from dpassay.accountant.numbers.exact import ExactReal, exact
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
"""Secant steps of an estimate: it settles within ten; more only delay a refusal."""
_ASIDE = 2.0**-12
"""Relative step of a first slope: a larger one bends it, a smaller one loses it in the widths."""
_MOST_SHRINKS = 3
"""Times that an ε is divided by 4 where a secant leads below 0, before it is followed."""
_ORDERS = tuple(1 + 2.0**k for k in range(-4, 24))
"""Orders of the Rényi divergences that a first ε is taken from."""
_ROUGH = 64
"""Bits of what becomes a float: more are lost, fewer make an estimate worse."""
_SHARE_OF_WIDTH = 16
"""H is asked for so many times finer than ε: a coarser H leaves its sign open near the root."""
_FINEST_ESTIMATE = Fraction(1, 10**13)
"""Relative width that floats reach: an enclosure beside an estimate is asked for no finer."""
_COARSEST = 1 / 16
"""Widest H by which a pair is left out; a wider one would leave more pairs open."""
_LOOSE = 0.4
"""Gap in ln H from which a simple bound is tried first: below it the bound is often in vain."""
_LEAST_SHARE = 1e-9
"""Least 1 − H that is taken from H: a smaller one asks for more digits than H soon has."""
_HALF_EXACTLY = Fraction(1, 2)
"""1 − δ below it is compared instead of δ: ln δ would cancel where δ is near 1."""


Refused: TypeAlias = tuple[Pair, UndecidedError]


def to_width(pairs: Sequence[Pair], relative_width: Fraction | None) -> list[Pair]:
    """Return the same pairs, asked for H and the tails to a relative width."""
    return [refined(pair, relative_width) for pair in pairs]


def inverse(pairs: Sequence[Pair], target: ExactReal, relative_width: Fraction) -> Interval:
    """Enclose the largest ε at which the H of a pair passes δ, 0 < δ < 1.

    A refusal carries an enclosure where some pair has one, without an upper end where another
    pair was refused that has none.
    """
    # The enclosure of one of several pairs is not that of the largest.
    with contextlib.nullcontext() if len(pairs) == 1 else within():
        found, refusals = _inverse(pairs, target, relative_width)
    if refusals and len(pairs) == 1:
        raise refusals[0]
    ends = [refusal.interval for refusal in refusals if refusal.interval is not None]
    whole = [*found, *(Interval(end.lower, end.upper) for end in ends)]
    if not whole:
        raise UndecidedError(str(refusals[0]), reached=max(each.reached for each in refusals))
    answer = Interval(max(each.lower for each in whole), max(each.upper for each in whole))
    if len(ends) < len(refusals):  # the ε of a pair of which nothing is known may be the largest
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
    """Return the enclosures of the pairs that matter, and the refusals of others."""
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
        if _cannot_matter(pair, found, refused) or _surely_less(pair, found, target):
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
                    found.append(_otherwise(pair, target, relative_width, problem))
                except UndecidedError as refusal:
                    refused.append((pair, problem if refusal.interval is None else refusal))
    kept = list[Refused]()
    for entry in refused:
        if not _cannot_matter(entry[0], found, kept):
            kept.append(entry)
    return found, [refusal for _, refusal in kept]


def _otherwise(
    pair: Pair, target: ExactReal, relative_width: Fraction, problem: UndecidedError
) -> Interval:
    """Enclose ε(δ) where values of H are refused, or refuse it, with what comes soon."""
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
    """Whether H of a pair is estimated below δ at the ε that is estimated for another one."""
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
    """Whether no loss of the pair exceeds the ε(δ) of another one, as far as that is enclosed."""
    ends = [interval.lower for interval in found]
    ends += [refusal.interval.lower for _, refusal in refused if refusal.interval is not None]
    least = max(ends, default=Decimal("-Infinity"))
    return least.is_finite() and bool(pair.max_loss() <= exact(least).ball())


def _surely_less(pair: Pair, found: Sequence[Interval], target: ExactReal) -> bool:
    """Whether a quick bound of H is below δ at an ε that another pair reaches."""
    least = max((interval.lower for interval in found), default=Decimal("-Infinity"))
    return least.is_finite() and bool(pair.known.bound(exact(least)) < target.ball())


def _infinity_against(pair: Pair, target: ExactReal) -> int:
    """Return the sign of P(L = +∞) − δ: ε(δ) is +∞ above 0, the largest finite loss at 0."""
    mass = exact_infinity_mass(pair)
    if mass is not None:
        return (mass > target) - (mass < target)
    side = sign(lambda: pair.infinity_mass() - target.ball())
    if side is None:
        raise UndecidedError(
            f"delta={target} could not be distinguished from the probability of an infinite loss, "
            "at and below which epsilon is infinite. Ask for a larger delta."
        )
    return side


def inverse_by_values(
    pairs: Sequence[Pair], target: ExactReal, relative_width: Fraction
) -> Interval:
    """Enclose the ε with δ(ε) = δ, where δ > 0 exceeds the mass at infinity."""
    # ε(δ) changes less than δ, in proportion, but near 0
    coarse = max(relative_width, _FINEST_ESTIMATE)
    with within():
        found = _beside_estimate(to_width(pairs, coarse / 2), target, coarse)
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

    Above ½ the complements are compared, whose logarithm does not cancel where δ is near 1.
    """
    rest = None if target.rational is None else 1 - target.rational

    @within()  # what is reached of δ is no ε
    def excess(eps: ExactReal) -> arb:
        if rest is not None and rest < _HALF_EXACTLY:
            below = complement(pairs, eps)
            return arb.pos_inf() if below.is_zero() else (ball(rest) / below).log()
        value = hockey_stick(pairs, eps)
        nothing = not value > 0 and value < target.ball()  # it may be 0: the sign is known
        return arb.neg_inf() if nothing else (value / target.ball()).log()

    return excess


def _beside_estimate(
    pairs: Sequence[Pair], target: ExactReal, relative_width: Fraction
) -> Interval | None:
    """Enclose ε(δ) beside its estimate, from the pair with the largest; None where that fails."""
    with ctx.workprec(_ROUGH):
        log_delta = float(target.ball().log().mid())
    guess, most, known = -math.inf, 0, dict[int, float]()
    ends = [float(pair.max_loss().upper()) for pair in pairs]
    for i in sorted(range(len(pairs)), key=lambda i: -ends[i]):
        if ends[i] < guess:
            break  # its ε is at most its largest loss
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
    interval = solve.beside(alone, Fraction(guess), relative_width=relative_width)
    if interval is None:
        return None
    upper = exact(interval.upper)
    with ctx.workprec(START_PRECISION):
        for i, pair in enumerate(pairs):
            if i != most and not below(pair, upper, target.ball(), known.get(i)):
                return None
    return interval


def below(pair: Pair, epsilon: ExactReal, limit: arb, estimate: float | None = None) -> bool:
    """Whether H(ε) < limit is proved, with no more accuracy than an estimate says it takes."""
    estimate = pair.known.log_delta(float(epsilon)) if estimate is None else estimate
    gap = 0.0
    if estimate is not None and limit > 0:
        gap = max(float(limit.lower().log()) - estimate, 0.0)
    if (estimate is None or gap > _LOOSE) and pair.known.bound(epsilon) < limit:
        return True
    width = max(Fraction(min(gap / 4, _COARSEST)), asked_width(pair) or Fraction(0))
    return bool(refined(pair, width or _FINEST_ESTIMATE).hockey_stick(epsilon) < limit)


def complement(pairs: Sequence[Pair], epsilon: ExactReal) -> arb:
    """Return the least P(L ≤ ε) + e^ε Q(L > ε) among the pairs, at flint's current precision."""
    return least([_complement_of(pair, epsilon) for pair in pairs])


def _complement_of(pair: Pair, epsilon: ExactReal) -> arb:
    """Return it of one pair; where its tails are too wide, what they have in common with 1 − H."""
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

    Where estimates say which is the largest, the others are only proved to be below it.
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
            if not pair.known.bound(epsilon) < value.lower():
                value = value.max(pair.hockey_stick(epsilon))
        return value
    order = sorted(range(len(pairs)), key=lambda i: -known[i])
    value = pairs[order[0]].hockey_stick(epsilon)
    for i in order[1:]:
        if not (known[i] < known[order[0]] and below(pairs[i], epsilon, value, known[i])):
            value = value.max(pairs[i].hockey_stick(epsilon))
    return value


def chernoff_epsilon(pair: Pair, log_delta: float) -> float | None:
    """Return about the least ε at which Rényi divergences bound H by δ; None where none is known.

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
    """Return the root of ln H(ε) − log_delta, from a point right of it; None if none is found.

    A step of relative size `close` is the last. The first slope is that beside the start, others
    are those of secants.

    Raises UndecidedError where H is not known, and ArithmeticError where it is constant.
    """

    def value(at: float) -> float:
        with ctx.workprec(START_PRECISION):  # as in a proof, which shares what was computed
            found = profile(ExactReal.of_rational(Fraction(at))).log()
        if not found.is_finite():
            raise UndecidedError(f"No value was found at epsilon={at:.6g}.")
        return float(found.mid())

    low, high, last, shrinks = -math.inf, math.inf, start, 0
    point = start + abs(start) * _ASIDE
    here, before = value(point), value(last)
    for _ in range(_MOST_STEPS):
        low, high = (point, high) if here > log_delta else (low, point)
        move = (log_delta - here) * (point - last) / (here - before)
        last, point, before = point, point + move, here
        if point <= 0 < last and shrinks < _MOST_SHRINKS:  # ln H is steep beside 0
            point, shrinks = last / 4, shrinks + 1
        if not low < point < high:
            point = 0.5 * (low + high)
        if abs(move) < close * abs(last):
            return last + move
        here = value(point)
    return None


def most(values: Sequence[arb]) -> arb:
    """Return a ball for the largest of some numbers."""
    return functools.reduce(arb.max, values)


def least(values: Sequence[arb]) -> arb:
    """Return a ball for the smallest of some numbers."""
    return functools.reduce(arb.min, values)


def hockey_stick_at(pair: Pair, epsilon: arb) -> arb:
    """Return a ball for H at every ε in the ball.

    H does not increase, so its values at the two ends of the ball, which are rational, enclose it.
    """
    low, high = ends(epsilon)
    upper = pair.hockey_stick(low)
    return upper if low == high else upper.union(pair.hockey_stick(high))


def tails_at(pair: Pair, epsilon: arb) -> Tails:
    """Return balls for the tails at every ε in the ball: they are monotone too."""
    low, high = ends(epsilon)
    left = pair.tails(low)
    return left if low == high else hull(left, pair.tails(high))


def hull(first: Tails, second: Tails) -> Tails:
    """Return the tails that contain both."""
    return Tails(
        p_above=first.p_above.union(second.p_above),
        p_below=first.p_below.union(second.p_below),
        q_above=first.q_above.union(second.q_above),
        q_below=first.q_below.union(second.q_below),
    )


def ends(value: arb) -> tuple[ExactReal, ExactReal]:
    """Return the two ends of a finite ball, exactly."""
    low, high = (ExactReal.of_rational(fraction(end)) for end in (value.lower(), value.upper()))
    return low, high

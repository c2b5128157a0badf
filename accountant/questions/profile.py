"""The privacy profile δ(ε) of a mechanism: value, logarithm, complement and inverse.

A mechanism is (ε, δ)-DP if and only if δ ≥ δ(ε), where δ(ε) is the maximum of the hockey-stick
divergence H(ε) = sup_S P(S) − e^ε Q(S) over its worst pairs (P, Q) in both directions. ε may be any
real number: as it decreases from 0, δ(ε) increases from the total variation distance to 1.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import product

from flint import arb

from dpassay.accountant.composition.product import expanded, is_numerical, simple_bound
from dpassay.accountant.core.adjacency import Adjacency, Direction
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair, asked_width, only_bounded
from dpassay.accountant.core.validate import probability, rational
from dpassay.accountant.errors import (
    BetweenError,
    InvalidInputError,
    NotApplicableError,
    UndecidedError,
    suggestion,
)
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.numbers.exact import ExactReal, Number, exact
from dpassay.accountant.numbers.interval import COMPOSED_WIDTH, Interval, ball, enclose
from dpassay.accountant.numbers.solve import halved
from dpassay.accountant.pairs.invert import (
    complement,
    hockey_stick,
    inverse,
    largest_known,
    most,
    to_width,
)

_HALF = arb("0.5")
_FARTHEST, _HALVINGS = 64, 12
_LARGE = 100
"""If the upper bound of ε is not below this, Rényi divergences are tried for a smaller one."""
_ORDERS = (
    tuple(1 + Fraction(2) ** k for k in range(10)),
    tuple(1 + Fraction(2) ** -k for k in range(2, 12, 2)),
)
"""Rényi orders for bounds of ε if nothing else gives one. The first range contains nearly the best
order for usual δ; orders near 1 are for losses of several hundred."""


def worst_pairs(
    mechanism: Mechanism,
    adjacency: Adjacency | str | None,
    direction: Direction | None,
    method: str = "auto",
) -> Sequence[Pair]:
    """Return the worst pairs of one direction, or of both if the direction is None."""
    relation, direction = Adjacency.read(adjacency), Direction.read(direction)
    if method == "auto":
        return _worst_pairs(mechanism, relation, direction)

    return pairs_of(mechanism, method, relation, direction)


@functools.lru_cache(maxsize=16)
def _worst_pairs(
    mechanism: Mechanism, relation: Adjacency | None, direction: Direction | None
) -> Sequence[Pair]:
    """Return the worst pairs; cached, because successive queries often have the same mechanism."""
    return mechanism.worst_case(relation).pairs(direction)


def delta(
    mechanism: Mechanism,
    epsilon: Number,
    *,
    adjacency: Adjacency | str | None = None,
    direction: Direction | None = None,
    method: str = "auto",
    relative_width: Number | None = None,
) -> Interval:
    """Enclose δ(ε), the least δ for which the mechanism is (ε, δ)-DP.

    Parameters
    ----------
    mechanism
        Any mechanism.
    epsilon
        Any real number, read exactly.
    adjacency
        The neighbouring relation; required if the answer depends on it.
    direction
        One direction of the pairs; None takes the worse one.
    method
        The engine for a composition: "auto", "exact", "fourier" or "grid"
        (`dpassay.accountant.composition.choose`).
    relative_width
        The width of the enclosure relative to δ. With None the enclosure has 1e-30 if there is a
        closed form, 1e-9 otherwise, or a larger width if that is not reached quickly.

    Raises
    ------
    AdjacencyError
        If the relation is required and not given, or does not apply.
    NotApplicableError
        If the engine named by `method` does not apply; the message says which ones do.
    UndecidedError
        If a given width is not reached; the `interval` of the error is the best enclosure.
    """
    eps = exact(epsilon, "epsilon")
    pairs = worst_pairs(mechanism, adjacency, direction, method)
    found = enclosed(
        lambda asked: _successive(asked, eps) or hockey_stick(asked, eps),
        relative_width,
        pairs,
        lambda: Interval.between(*_bounds(pairs, eps)),
        PROBABILITIES,
    )
    return share(found)


def _successive(pairs: Sequence[Pair], epsilon: ExactReal) -> arb | None:
    """Return δ(ε) by a contour that successive queries share, or None if there is none."""
    width = asked_width(pairs[0])
    if width is None:
        return None
    from dpassay.accountant.questions import successive  # imports all engines; compositions only

    return successive.hockey_stick(pairs, epsilon, width)


def _bounds(pairs: Sequence[Pair], epsilon: ExactReal) -> tuple[arb, arb]:
    """Return a lower and an upper bound of δ(ε) that take little time."""
    above = most([simple_bound(pair, epsilon) for pair in pairs])
    return -epsilon.ball().expm1() if epsilon.sign < 0 else arb(0), above


def _reaches(pairs: Sequence[Pair], delta: ExactReal) -> arb:
    """Return an upper bound of ε(δ): about the least ε at which the simple bounds are at most δ.

    It is valid because δ(ε) is non-increasing. +∞ if there is no such ε up to 2^`_FARTHEST`.
    """

    def serves(at: Fraction) -> bool:
        eps = ExactReal.of_rational(at)
        return all(simple_bound(pair, eps) <= delta.ball() for pair in pairs)

    powers = range(-_FARTHEST, _FARTHEST + 1)
    place = bisect.bisect_left(powers, True, key=lambda n: serves(Fraction(2) ** n))
    if place == len(powers):
        return arb.pos_inf()
    high = Fraction(2) ** powers[place]
    return ball(halved(lambda at: not serves(at), high / 2, high, _HALVINGS)[1])


def _by_divergences(pairs: Sequence[Pair], delta: ExactReal) -> arb:
    """Return the least ε at which a Rényi divergence of `_ORDERS` implies δ(ε) ≤ δ, or +∞.

    For every order a > 1, δ(ε) ≤ e^{(a − 1)(D_a − ε)} (1 − 1/a)^{a − 1}/a.
    """
    found, log = arb.pos_inf(), delta.ball().log()
    for orders in _ORDERS:
        # if one order fails, the remaining orders of the same range are skipped too
        with contextlib.suppress(NotApplicableError, UndecidedError):
            for a in map(ball, orders):
                divergence = most([pair.renyi(a) for pair in pairs])
                share = (1 - 1 / a).log() - (log + a.log()) / (a - 1)
                if divergence.is_finite():
                    found = found.min((divergence + share).upper())
    return found


def log_delta(
    mechanism: Mechanism,
    epsilon: Number,
    *,
    adjacency: Adjacency | str | None = None,
    direction: Direction | None = None,
    method: str = "auto",
    relative_width: Number | None = None,
) -> Interval:
    """Enclose ln δ(ε); −∞ if δ(ε) = 0. Arguments and errors as for `delta`."""
    eps = exact(epsilon, "epsilon")
    pairs = worst_pairs(mechanism, adjacency, direction, method)

    def logarithm(asked: Sequence[Pair]) -> arb:
        value = hockey_stick(asked, eps)
        if value > _HALF:
            return (-complement(asked, eps)).log1p()
        return arb.neg_inf() if value.is_zero() else value.log()

    def bounds() -> Interval:
        low, high = _bounds(pairs, eps)
        return Interval.between(low.log() if low > 0 else arb.neg_inf(), high.log())

    whole = Interval(Decimal("-Infinity"), Decimal(0))
    return enclosed(logarithm, relative_width, pairs, bounds, whole)


def delta_complement(
    mechanism: Mechanism,
    epsilon: Number,
    *,
    adjacency: Adjacency | str | None = None,
    direction: Direction | None = None,
    method: str = "auto",
    relative_width: Number | None = None,
) -> Interval:
    """Enclose 1 − δ(ε) = P(L ≤ ε) + e^ε Q(L > ε), without cancellation for δ near 1.

    Arguments and errors as for `delta`.
    """
    eps = exact(epsilon, "epsilon")
    pairs = worst_pairs(mechanism, adjacency, direction, method)

    def bounds() -> Interval:
        low, high = _bounds(pairs, eps)
        return Interval.between((1 - high).max(arb(0)), 1 - low)

    found = enclosed(
        lambda asked: complement(asked, eps), relative_width, pairs, bounds, PROBABILITIES
    )
    return share(found)


def epsilon(
    mechanism: Mechanism,
    delta: Number = 0,
    *,
    adjacency: Adjacency | str | None = None,
    direction: Direction | None = None,
    method: str = "auto",
    relative_width: Number | None = None,
) -> Interval:
    """Enclose ε(δ) = inf {ε ≥ 0 : δ(ε) ≤ δ}, the least ε for which the mechanism is (ε, δ)-DP.

    It is +∞ if no finite ε has δ(ε) ≤ δ, and 0 if δ is at least the total variation distance. At
    δ = 0, the default, it is the largest privacy loss. `signed_epsilon` is the inverse of the
    profile at negative ε too. Other arguments and errors as for `delta`.

    Raises
    ------
    InvalidInputError
        If δ is outside [0, 1].
    """
    return at_least_zero(
        signed_epsilon(
            mechanism,
            delta,
            adjacency=adjacency,
            direction=direction,
            method=method,
            relative_width=relative_width,
        )
    )


def at_least_zero(epsilon: Interval) -> Interval:
    """Enclose max(ε, 0); the ε of a guarantee is nonnegative by convention."""
    zero = Interval.of_exact(0).lower
    return Interval(max(epsilon.lower, zero), max(epsilon.upper, zero))


def signed_epsilon(
    mechanism: Mechanism,
    delta: Number,
    *,
    adjacency: Adjacency | str | None = None,
    direction: Direction | None = None,
    method: str = "auto",
    relative_width: Number | None = None,
) -> Interval:
    """Enclose inf {ε real : δ(ε) ≤ δ}, the inverse of the profile on the whole real line.

    If it is ≥ 0 it equals `epsilon`. It is negative if δ exceeds the total variation distance, and
    −∞ at δ = 1.
    """
    target = probability("delta", delta)
    pairs = worst_pairs(mechanism, adjacency, direction, method)
    if target.rational == 1:
        return Interval.of_ball(arb.neg_inf())

    def largest(asked: Sequence[Pair]) -> arb:
        return most([pair.max_loss() for pair in asked])

    least = enclose(lambda: arb.log1p(-target.ball())).lower  # δ(ε) ≥ 1 − e^ε
    whole = Interval(least, Decimal("Infinity"))

    def bounds() -> Interval:
        most_loss = largest(pairs).min(_reaches(pairs, target))
        if not most_loss < _LARGE:
            most_loss = most_loss.min(_by_divergences(pairs, target))
        return Interval(least, Interval.of_ball(most_loss).upper)

    if target.sign == 0:
        if (known := decimal_max_loss(pairs)) is not None:
            return known
        return enclosed(largest, relative_width, pairs, bounds, whole)

    def ask(width: Fraction) -> Interval:
        if any(pair.known.to_width for pair in pairs):
            from dpassay.accountant.questions import successive

            if (found := successive.inverse(pairs, target, width)) is not None:
                return found
        return inverse(pairs, target, width)

    return answer(ask, relative_width, usual(pairs), bounds, whole=whole)


def decimal_max_loss(pairs: Sequence[Pair]) -> Interval | None:
    """Return the largest loss of some pairs if it is known to be a short decimal, else None."""
    largest = largest_known([pair.known.max_loss() for pair in pairs])
    if largest is None or largest.rational is None:
        return None
    found = Interval.of_exact(largest.rational)
    return found if found.lower == found.upper else None


# --- The worst pairs of a composition in the form that a named engine takes -----------------------


def pairs_of(
    mechanism: Mechanism,
    method: str,
    adjacency: Adjacency | None,
    direction: Direction | None = None,
) -> tuple[Pair, ...]:
    """Return the worst pairs in the form that the engine `method` takes.

    Composition is always adaptive: the engine evaluates the product of the worst pairs, which
    dominates releases that depend on earlier outputs.

    Raises
    ------
    InvalidInputError
        If there is no engine of that name.
    NotApplicableError
        If the engine does not apply; the message says which ones do.
    """
    from dpassay.accountant.composition.choose import FOR, METHODS, RENAMED

    if method in RENAMED:
        raise InvalidInputError(
            f"method={method!r} is now method={RENAMED[method]!r}. Ask with that."
        )
    if method not in METHODS:
        raise InvalidInputError(
            f"Expected method={method!r} to be one of {', '.join(METHODS)}. "
            f"{suggestion(method, METHODS, listed=False)}".rstrip()
        )
    found = _pairs(mechanism, method, adjacency, direction)
    if found is None:
        others = [f"'{name}'" for name in applicable(mechanism, adjacency)]
        raise NotApplicableError(f"{FOR[method]} Ask with method={' or '.join(others)}.")
    return found


def applicable(mechanism: Mechanism, adjacency: Adjacency | None) -> list[str]:
    """Return the names of the engines that apply, "auto" first."""
    from dpassay.accountant.composition.choose import METHODS

    return [name for name in METHODS if _pairs(mechanism, name, adjacency, None) is not None]


def _pairs(
    mechanism: Mechanism, method: str, adjacency: Adjacency | None, direction: Direction | None
) -> tuple[Pair, ...] | None:
    """Return the worst pairs in the form that an engine takes, or None if it does not apply."""
    pairs = mechanism.worst_case(adjacency).pairs(direction)
    if method == "auto" or (method == "exact" and not any(map(is_numerical, pairs))):
        return pairs
    if any(only_bounded(pair) for pair in pairs):  # the profile is not that of a product
        return None
    cases = [(part.worst_case(adjacency), n) for part, n in Composed(mechanism).parts()]
    remove = _each(method, [(case.remove, count) for case, count in cases])
    add = _each(method, [(case.add, count) for case, count in cases])
    if remove is None or add is None:
        return None
    both = {Direction.REMOVE: remove, Direction.ADD: add}
    return both[direction] if direction else tuple(dict.fromkeys(remove + add))


def _each(method: str, cases: list[tuple[tuple[Pair, ...], int]]) -> tuple[Pair, ...] | None:
    """Return the products of the worst pairs, one for each choice of a pair for each part.

    None if the engine does not apply, or if several releases each have several worst pairs, since
    an adaptive composition need not choose the same pair for all.
    """
    counts = [count for _, count in cases]
    if sum(counts) > 1 and any(len(pairs) > 1 for pairs, _ in cases):
        return None
    from dpassay.accountant.composition.choose import engine

    choices = product(*(pairs for pairs, _ in cases))
    made = [engine(method, expanded(list(zip(choice, counts, strict=True)))) for choice in choices]
    found = tuple(pair for pair in made if pair is not None)
    return found if len(found) == len(made) else None


# --- The width of an answer: a given relative width, or the best that is reached quickly ----------
# A question is a function of the width: it returns an enclosure of at most that relative width, or
# raises UndecidedError. Without a given width, the widths tried in turn are the one that the pairs
# usually reach (`Known.width`) and coarser ones. The last resort is bounds that need no engine.

COARSEST = Fraction(1, 2)
"""Largest relative width that is requested from an engine; it serves for any larger one."""
COARSER = (Fraction(1, 10**9), Fraction(1, 10**6), Fraction(1, 10**4), Fraction(1, 100), COARSEST)
"""Relative widths that are tried in turn if an engine does not reach a finer one."""
_NEAR = 1.5
"""After a refusal the next width is at least this factor times the width that was reached."""

Ask = Callable[[Fraction], Interval]


PROBABILITIES = Interval(Decimal(0), Decimal(1))
NONNEGATIVE = Interval(Decimal(0), Decimal("Infinity"))
"""Ranges of quantities; an enclosure as wide as the range carries no information."""


def answer(
    ask: Ask,
    relative_width: Number | None,
    finest: Fraction,
    bounds: Callable[[], Interval],
    *,
    whole: Interval,
) -> Interval:
    """Return an enclosure to a given relative width, or the best one that is reached quickly.

    Parameters
    ----------
    ask
        Encloses the answer to a relative width below 1, or raises UndecidedError. An `interval`
        that the error carries must enclose the answer too.
    relative_width
        Any number > 0, or None.
    finest
        The first width tried if `relative_width` is None.
    bounds
        Encloses the answer without an engine, however widely.
    whole
        The range of the quantity, such as [0, 1].

    Raises
    ------
    UndecidedError
        If a width is given and not reached; `interval` is the best enclosure. Also if nothing is
        known except that the answer lies in `whole`.
    """
    if relative_width is None:
        return best(ask, finest, bounds, whole)
    width = rational("relative_width", relative_width, least=0, strict=True)
    try:
        return ask(min(width, COARSEST))
    except UndecidedError as refusal:
        known = reached(refusal)
        if known is None or not known.upper.is_finite():
            known = _first(ask, _wider(width, refusal.reached), bounds, whole, refusal)
            refusal.say_interval(known)
        if known.relative_width is not None and known.relative_width <= width:
            return known
        raise


def enclosed(
    compute: Callable[[Sequence[Pair]], arb],
    relative_width: Number | None,
    pairs: Sequence[Pair],
    bounds: Callable[[], Interval],
    whole: Interval,
    *,
    finest: Fraction | None = None,
) -> Interval:
    """Return the answer of `answer` for a ball-valued function of pairs.

    `compute` is called with the pairs evaluated to the requested width; the other arguments are
    those of `answer`, with `finest` by default the usual width of the pairs.
    """

    def ask(width: Fraction) -> Interval:
        asked = to_width(pairs, width)
        return enclose(lambda: compute(asked), relative_width=width)

    return answer(ask, relative_width, finest or usual(pairs), bounds, whole=whole)


def usual(pairs: Sequence[Pair]) -> Fraction:
    """Return the relative width that answers about the pairs usually reach."""
    return max(pair.known.width() for pair in pairs)


def best(ask: Ask, finest: Fraction, bounds: Callable[[], Interval], whole: Interval) -> Interval:
    """Return the first answer at a width from `finest` on, or bounds if there is none.

    After two refusals that do not say which width was reached, the coarsest width is tried next.
    """
    return _first(ask, [finest, *(width for width in COARSER if width > finest)], bounds, whole)


def _wider(width: Fraction, known: float) -> list[Fraction]:
    """Return the widths to try after a refusal of `width`, which reached the width `known`.

    If `known` is infinite, only `COMPOSED_WIDTH` is tried, and only if it is wider, to save time.
    """
    if math.isfinite(known):
        near = min(Fraction(_NEAR * known), COARSEST)
        return [near, *(coarser for coarser in COARSER if coarser > near)]
    return [COMPOSED_WIDTH] if width < COMPOSED_WIDTH else []


def _first(
    ask: Ask,
    widths: Sequence[Fraction],
    bounds: Callable[[], Interval],
    whole: Interval,
    refused: UndecidedError | None = None,
) -> Interval:
    """Return the first answer at one of the widths, or the intersection of all known enclosures.

    Raises UndecidedError, with the message of the first refusal, if that is no better than `whole`.
    """
    least, unknown = 0.0, 0
    known = None if refused is None else reached(refused)
    for width in widths:
        if width < least or (unknown > 1 and width < widths[-1]):
            continue
        if known is not None and known.relative_width is not None and known.relative_width <= width:
            return known
        try:
            return ask(width)
        except UndecidedError as refusal:
            refused = refused or refusal
            known = narrower(known, reached(refusal))
            if math.isfinite(refusal.reached):
                least = max(least, _NEAR * refusal.reached)
            else:
                unknown += 1
            if isinstance(refusal, BetweenError):
                break
    widest = bounds()
    known = narrower(known, widest) or widest
    if known.lower < known.upper and narrower(known, whole) == whole:
        why = str(refused or "It is not known.").partition(" Reached [")[0]
        raise UndecidedError(f"{why} It is only known that the answer lies in {whole}.")
    return known


def reached(refusal: UndecidedError) -> Interval | None:
    """Return the enclosure that an error carries, or None."""
    found = refusal.interval
    return None if found is None else Interval(found.lower, found.upper)


def narrower(one: Interval | None, other: Interval | None) -> Interval | None:
    """Return the intersection of two enclosures of one number, each of which may be None."""
    if one is None or other is None:
        return one or other
    return Interval(max(one.lower, other.lower), min(one.upper, other.upper))


def joined(
    asks: Sequence[Callable[[], Interval]], join: Callable[[Sequence[Interval]], Interval]
) -> Interval:
    """Combine several answers by `join`.

    If some are undecided, raise UndecidedError with the combination of all known enclosures.
    """
    found: list[Interval] = []
    refusals: list[UndecidedError] = []
    for ask in asks:
        try:
            found.append(ask())
        except UndecidedError as refusal:
            known = reached(refusal)
            if known is None:
                raise
            found.append(known)
            refusals.append(refusal)
    whole = join(found)
    if not refusals:
        return whole
    width = whole.relative_width
    raise UndecidedError(
        str(refusals[0]), reached=math.inf if width is None else float(width), interval=whole
    )


def largest(answers: Sequence[Interval]) -> Interval:
    """Enclose the largest of some numbers, given an enclosure of each."""
    return Interval(max(each.lower for each in answers), max(each.upper for each in answers))


def smallest(answers: Sequence[Interval]) -> Interval:
    """Enclose the smallest of some numbers, given an enclosure of each."""
    return Interval(min(each.lower for each in answers), min(each.upper for each in answers))


def share(found: Interval) -> Interval:
    """Return the part of an enclosure in [0, 1], for a number that lies in [0, 1]."""
    return Interval(max(found.lower, Decimal(0)), min(found.upper, Decimal(1)))

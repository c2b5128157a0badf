"""The privacy profile δ(ε) of a mechanism: value, logarithm, complement and inverse.

A mechanism is (ε, δ)-DP exactly when δ ≥ δ(ε) := max over its worst pairs and both directions
of the hockey-stick divergence H(ε) = sup_S P(S) − e^ε Q(S). ε may be any real number: below 0
the profile exceeds the total variation distance and tends to 1.
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

from dpassay.accountant.composition.product import apart, is_numerical, simple_bound
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
from dpassay.accountant.pairs.invert import complement, hockey_stick, inverse, most, to_width

_HALF = arb("0.5")
_FARTHEST, _HALVINGS = 64, 12
_LARGE = 100
"""An ε from which on divergences are asked for a smaller bound."""
_ORDERS = (
    tuple(1 + Fraction(2) ** k for k in range(10)),
    tuple(1 + Fraction(2) ** -k for k in range(2, 12, 2)),
)
"""Orders of the divergences that bound ε where nothing else does: of about the best for each δ, and
near 1 for losses of several hundred."""


def worst_pairs(
    mechanism: Mechanism,
    adjacency: Adjacency | str | None,
    direction: Direction | None,
    method: str = "auto",
) -> Sequence[Pair]:
    """Return the pairs that a question ranges over: of one direction, or (None) of both."""
    relation, direction = Adjacency.read(adjacency), Direction.read(direction)
    if method == "auto":
        return _worst_pairs(mechanism, relation, direction)

    return pairs_of(mechanism, method, relation, direction)


@functools.lru_cache(maxsize=16)
def _worst_pairs(
    mechanism: Mechanism, relation: Adjacency | None, direction: Direction | None
) -> Sequence[Pair]:
    """Return the same: the questions of a list are about one mechanism."""
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
        One direction of the pair; None takes the worse one.
    method
        The engine of a composition: "auto", "exact", "fourier" or "grid"
        (`dpassay.accountant.composition.choose`).
    relative_width
        The width of the enclosure relative to δ. None asks for 1e-30 where there is a closed form
        and 1e-9 otherwise, and accepts what is reached.

    Raises
    ------
    AdjacencyError
        If the relation is needed and not named, or does not fit.
    NotApplicableError
        If the engine that is named does not apply; the message says which ones do.
    UndecidedError
        If a given width is not reached; `interval` of the error is the best enclosure.
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
    """Return δ(ε) by lines that successive questions share, None where there are none."""
    width = asked_width(pairs[0])
    if width is None:
        return None
    from dpassay.accountant.questions import successive  # all engines: of compositions alone

    return successive.hockey_stick(pairs, epsilon, width)


def _bounds(pairs: Sequence[Pair], epsilon: ExactReal) -> tuple[arb, arb]:
    """Bound δ(ε) by what takes little time."""
    above = most([simple_bound(pair, epsilon) for pair in pairs])
    return -epsilon.ball().expm1() if epsilon.sign < 0 else arb(0), above


def _reaches(pairs: Sequence[Pair], delta: ExactReal) -> arb:
    """Return an ε, near the least one that is found soon, at which simple bounds are at most δ.

    It is at least ε(δ), as δ(ε) never increases; +∞ where there is none up to 2^`_FARTHEST`.
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
    """Return the least ε at which some Rényi divergence bounds all δ(ε) by δ; +∞ where none does.

    δ(ε) ≤ e^{(a − 1)(D_a − ε)} (1 − 1/a)^{a − 1}/a for every order a > 1.
    """
    found, log = arb.pos_inf(), delta.ball().log()
    for orders in _ORDERS:
        with contextlib.suppress(NotApplicableError, UndecidedError):  # of what follows then too
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
    """Enclose ln δ(ε); −∞ where δ(ε) = 0. Arguments and errors as for `delta`."""
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
    """Enclose 1 − δ(ε) = P(L ≤ ε) + e^ε Q(L > ε), without cancellation where δ is near 1."""
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

    It is +∞ where no finite ε has δ(ε) ≤ δ, and 0 where δ is at least the total variation
    distance. At δ = 0, the default, it is the largest privacy loss. For the inverse of the profile
    below 0 see `signed_epsilon`.

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
    """Enclose max(ε, 0): how private a release is, is said by a number ≥ 0."""
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
    """Enclose inf {ε real : δ(ε) ≤ δ}, the inverse of the profile on the whole line.

    It is that of `epsilon` where it is ≥ 0; negative where δ exceeds the total variation distance,
    and −∞ at δ = 1.
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
        return enclosed(largest, relative_width, pairs, bounds, whole)

    def ask(width: Fraction) -> Interval:
        if any(pair.known.to_width for pair in pairs):
            from dpassay.accountant.questions import successive

            if (found := successive.inverse(pairs, target, width)) is not None:
                return found
        return inverse(pairs, target, width)

    return answer(ask, relative_width, usual(pairs), bounds, whole=whole)


# --- The worst pairs of a composition in the form that an engine takes, chosen by name ------------


def pairs_of(
    mechanism: Mechanism,
    method: str,
    adjacency: Adjacency | None,
    direction: Direction | None = None,
) -> tuple[Pair, ...]:
    """Return the worst pairs in the form that an engine takes.

    Composition is adaptive throughout: an engine is asked about the product of the worst pairs,
    which dominates releases that depend on each other's outputs.

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
    """Return the same, None where the engine does not apply."""
    pairs = mechanism.worst_case(adjacency).pairs(direction)
    if method == "auto" or (method == "exact" and not any(map(is_numerical, pairs))):
        return pairs
    if any(only_bounded(pair) for pair in pairs):  # H is not that of a product
        return None
    cases = [(part.worst_case(adjacency), n) for part, n in Composed(mechanism).parts()]
    remove = _each(method, [(case.remove, count) for case, count in cases])
    add = _each(method, [(case.add, count) for case, count in cases])
    if remove is None or add is None:
        return None
    both = {Direction.REMOVE: remove, Direction.ADD: add}
    return both[direction] if direction else tuple(dict.fromkeys(remove + add))


def _each(method: str, cases: list[tuple[tuple[Pair, ...], int]]) -> tuple[Pair, ...] | None:
    """Return all worst pairs; None where an engine is not for them, or releases choose one."""
    counts = [count for _, count in cases]
    if sum(counts) > 1 and any(len(pairs) > 1 for pairs, _ in cases):
        return None
    from dpassay.accountant.composition.choose import engine

    choices = product(*(pairs for pairs, _ in cases))
    made = [engine(method, apart(list(zip(choice, counts, strict=True)))) for choice in choices]
    found = tuple(pair for pair in made if pair is not None)
    return found if len(found) == len(made) else None


# --- How narrow an answer is: as narrow as comes soon, or to a width that is named ----------------
# A question is asked as a function of the width: it returns an enclosure of at most that relative
# width, or raises UndecidedError. Without a width the answer is the first of the widths that its
# pairs usually reach (`Known.width`) and coarser ones, and at last bounds that need no engine.

COARSEST = Fraction(1, 2)
"""Engines are asked for no more: a wider answer is one of these too."""
COARSER = (Fraction(1, 10**9), Fraction(1, 10**6), Fraction(1, 10**4), Fraction(1, 100), COARSEST)
"""Relative widths that are tried in turn where an engine refuses a finer one."""
_NEAR = 1.5
"""An engine that refuses is asked for no less than this times what it said it had reached."""

Ask = Callable[[Fraction], Interval]


PROBABILITIES = Interval(Decimal(0), Decimal(1))
NONNEGATIVE = Interval(Decimal(0), Decimal("Infinity"))
"""Ranges of numbers: an answer that is as wide says nothing."""


def answer(
    ask: Ask,
    relative_width: Number | None,
    finest: Fraction,
    bounds: Callable[[], Interval],
    *,
    whole: Interval,
) -> Interval:
    """Return the answer of a width, or the best that comes soon where none is named.

    Parameters
    ----------
    ask
        Encloses the answer to a relative width below 1, or raises UndecidedError. An `interval`
        that the error carries encloses the answer too.
    relative_width
        Any number > 0, or None.
    finest
        What is asked for first where no width is named.
    bounds
        Encloses the answer without an engine, however widely.
    whole
        What every such number lies in, whatever it is of.

    Raises
    ------
    UndecidedError
        If a width is named and not reached; `interval` is the best enclosure. With or without a
        width, if nothing is known but that the answer lies in `whole`.
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
    """Return the answer that is the value of a ball-valued function of some pairs."""

    def ask(width: Fraction) -> Interval:
        asked = to_width(pairs, width)
        return enclose(lambda: compute(asked), relative_width=width)

    return answer(ask, relative_width, finest or usual(pairs), bounds, whole=whole)


def usual(pairs: Sequence[Pair]) -> Fraction:
    """Return the width that answers about all of some pairs usually have."""
    return max(pair.known.width() for pair in pairs)


def best(ask: Ask, finest: Fraction, bounds: Callable[[], Interval], whole: Interval) -> Interval:
    """Return the first answer of a width from the finest on, and bounds where there is none.

    Where engines have twice refused and do not say what they reached the coarsest width is next.
    """
    return _first(ask, [finest, *(width for width in COARSER if width > finest)], bounds, whole)


def _wider(width: Fraction, known: float) -> list[Fraction]:
    """Return the widths that may do after the refusal of another, none where that would be long."""
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
    """Return the first answer; refuse, as an engine did first, one that says nothing."""
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
    """Return the enclosure that a refusal carries."""
    found = refusal.interval
    return None if found is None else Interval(found.lower, found.upper)


def narrower(one: Interval | None, other: Interval | None) -> Interval | None:
    """Return what both of two enclosures of one number leave; None where neither is known."""
    if one is None or other is None:
        return one or other
    return Interval(max(one.lower, other.lower), min(one.upper, other.upper))


def joined(
    asks: Sequence[Callable[[], Interval]], join: Callable[[Sequence[Interval]], Interval]
) -> Interval:
    """Return what several answers come to; where some are refused, refuse with what is known."""
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
    """Enclose the largest of some numbers."""
    return Interval(max(each.lower for each in answers), max(each.upper for each in answers))


def smallest(answers: Sequence[Interval]) -> Interval:
    """Enclose the smallest of some numbers."""
    return Interval(min(each.lower for each in answers), min(each.upper for each in answers))


def share(found: Interval) -> Interval:
    """Return the part of an enclosure that lies in [0, 1], as the number that it encloses does."""
    return Interval(max(found.lower, Decimal(0)), min(found.upper, Decimal(1)))

"""A density as pieces without branches, each positive or zero, and a proof that it has one mode.

The sign changes of every condition in the text are found with proof (`sweep`); between them each
branch is fixed. A second sweep determines the sign of (ln f)′ on every piece, including the tails
(`tail`). f has one mode if it never rises after it has fallen. On a cell where the sign of (ln f)′
is not determined, (ln f)″ ≤ 0 is required, so that the sign changes at most once, from + to −.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.density.balls import Holomorphic, real
from dpassay.accountant.density.ranges import Ranges, number_ends
from dpassay.accountant.density.sweep import STARTS, Break, signs, sweep
from dpassay.accountant.density.tail import Decay, Tail, TailError, decay, nearer
from dpassay.accountant.density.tree import (
    ZERO,
    Node,
    X,
    add,
    at,
    derivative,
    is_positive,
    log_of,
    mirrored,
    num,
    replaced,
    sign_of,
)
from dpassay.accountant.errors import InvalidInputError, UndecidedError
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.numbers.solve import fraction

_MOST_PIECES = 66
"""Most pieces: 64, and two of a moment. All of them are swept again for every shift."""
_SIMPLE = 1000
"""Largest denominator tried for an exact limit of the slope at infinity."""
_JUMP_BITS = 256
"""Bits at which irrational values on both sides of a jump are compared."""


@final
@dataclass(frozen=True)
class Piece:
    """f between two points (None: infinite), as a tree that is > 0 inside, or as 0."""

    low: Break | None
    high: Break | None
    tree: Node
    log: Node
    slope: Node
    bend: Node
    known: Mapping[Node, int]
    """The signs, 1 or −1, of terms that are ≥ 0 or ≤ 0 on the whole piece."""

    @cached_property
    def integrand(self) -> Holomorphic:
        """The density as an integrand for flint."""
        return Holomorphic(self.tree)

    @cached_property
    def log_integrand(self) -> Holomorphic:
        """The logarithm of the density as an integrand for flint."""
        return Holomorphic(self.log)

    @property
    def is_zero(self) -> bool:
        """Whether f is 0 on this piece."""
        return self.tree == ZERO


@final
@dataclass(frozen=True)
class Pieces:
    """All pieces from left to right, and the decay of f in each tail; None where f is 0."""

    parts: tuple[Piece, ...]
    left: Decay | None
    right: Decay | None
    continuous: bool

    @property
    def breaks(self) -> list[Break]:
        """The points between the pieces."""
        return [part.high for part in self.parts if part.high is not None]

    def mirrored(self) -> Pieces:
        """Return the pieces of f(−x)."""
        parts = tuple(
            _piece(
                mirrored(part.tree),
                turned(part.high),
                turned(part.low),
                {mirrored(term): sign for term, sign in part.known.items()},
            )
            for part in self.parts[::-1]
        )
        return Pieces(parts, self.right, self.left, self.continuous)


def turned(end: Break | None, about: Fraction = Fraction(0)) -> Break | None:
    """Return the end of a piece, reflected about a point."""
    return None if end is None else Break(2 * about - end.high, 2 * about - end.low)


def _piece(tree: Node, low: Break | None, high: Break | None, known: Mapping[Node, int]) -> Piece:
    if tree == ZERO:
        return Piece(low, high, ZERO, ZERO, ZERO, ZERO, {})
    log = log_of(tree, known)
    slope = derivative(log)
    return Piece(low, high, tree, log, slope, derivative(slope), known)


def pieces(tree: Node, argument: str) -> Pieces:
    """Return the pieces of a density; raise InvalidInputError if the formula is not a density."""
    parts: list[Piece] = []
    for low, high, node in resolved(tree, argument):
        known: dict[Node, int] = {}
        if low is not None and low.low >= 0:
            known[X] = 1
        _require_real(node, low, high, argument, known)
        _require_positive(node, low, high, argument, known)
        parts.append(_piece(node, low, high, known))
    if all(part.is_zero for part in parts):
        raise InvalidInputError(f"{argument} is 0 everywhere: it is no density.")
    ends = [
        None if part.is_zero else _decay(slope, part.high if right else turned(part.low), argument)
        for part, slope, right in (
            (parts[0], derivative(mirrored(parts[0].log)), False),
            (parts[-1], parts[-1].slope, True),
        )
    ]
    places = [part.high for part in parts if part.high is not None]
    return Pieces(tuple(parts), ends[0], ends[1], _is_continuous(tree, places))


def _is_continuous(tree: Node, places: Sequence[Break]) -> bool:
    """Whether f is proved continuous: no branch may jump, and f is finite at every break.

    The second condition excludes |x|/x, which has no value where it jumps.
    """
    if _has(tree, "if"):
        return False
    with ctx.workprec(_JUMP_BITS):
        values = [real(tree, ball(place.low).union(ball(place.high))) for place in places]
    return all(value.is_finite() for value in values)


def _has(tree: Node, op: str) -> bool:
    return tree.op == op or any(_has(part, op) for part in tree.parts)


def _decay(slope: Node, end: Break | None, argument: str) -> Decay:
    assert end is None
    for start in STARTS:
        try:
            return decay(slope, start)
        except TailError:
            continue
    raise InvalidInputError(
        f"{argument} was not proved to be integrable: its tails must fall like a power below -1 of "
        "|x|, or faster. Cut it off, as in 'exp(-abs(x)) if abs(x) < 9 else 0'."
    )


def resolved(tree: Node, argument: str) -> list[tuple[Break | None, Break | None, Node]]:
    """Return expressions without branches from left to right, with the ends of each."""
    try:
        return _resolved(tree, None, None)
    except UndecidedError as refusal:
        raise InvalidInputError(
            f"{argument}: {refusal}: where its pieces begin is not proved. "
            "Write the pieces by comparisons of x with numbers."
        ) from None


def _resolved(
    tree: Node, low: Break | None, high: Break | None
) -> list[tuple[Break | None, Break | None, Node]]:
    target = _condition(tree)
    if target is None:
        return [(low, high, tree)]
    changes, found = signs(target.parts[0], low, high)
    ends = [low, *changes, high]
    whole = []
    for i, sign in enumerate(found):
        chosen = target.parts[1 if sign > 0 else 2]
        resolved = replaced(tree, {target: chosen}.get)
        whole += _resolved(resolved, ends[i], ends[i + 1])
    if len(whole) > _MOST_PIECES:
        raise UndecidedError(f"There are more than {_MOST_PIECES} pieces")
    return whole


def _condition(tree: Node) -> Node | None:
    """Return a condition whose comparison contains no condition, or None."""
    if tree.op in ("if", "join"):
        return _condition(tree.parts[0]) or tree
    for part in tree.parts:
        if (found := _condition(part)) is not None:
            return found
    return None


def _require_real(
    tree: Node, low: Break | None, high: Break | None, argument: str, known: dict[Node, int]
) -> None:
    """Require that bases of roots and logarithms are > 0 inside the piece, and divisors not 0."""
    for part in tree.parts:
        _require_real(part, low, high, argument, known)
    base = tree.parts[0] if tree.op in ("log", "pow") else None
    if base is None or is_positive(base) or base in known:
        return
    whole = tree.op == "pow" and tree.number.denominator == 1
    if whole and tree.number > 0:
        with contextlib.suppress(UndecidedError):
            changes, found = signs(base, low, high)
            if not changes:
                known[base] = found[0]
        return
    what = "divides by" if whole else "takes a root or logarithm of"
    try:
        changes, found = signs(base, low, high)
    except UndecidedError as refusal:
        raise InvalidInputError(
            f"{argument} {what} a term whose sign is not proved. {refusal}."
        ) from None
    if changes:
        raise InvalidInputError(
            f"{argument} {what} a term that changes its sign at x = {_shown(changes[0])}. "
            "Write what holds on each side by a comparison."
        )
    if not whole and found[0] < 0:
        place = "everywhere" if low is high is None else f"next to x = {_shown(low or high)}"
        raise InvalidInputError(f"{argument} takes a root or logarithm of a term < 0 {place}.")
    known[base] = found[0]


def _require_positive(
    tree: Node, low: Break | None, high: Break | None, argument: str, known: dict[Node, int]
) -> None:
    if tree == ZERO or is_positive(tree, known):
        return
    try:
        changes, found = signs(tree, low, high)
    except UndecidedError as refusal:
        raise InvalidInputError(f"{argument} is not proved to be ≥ 0. {refusal}.") from None
    if -1 in found:
        place = changes[0] if changes else low or high
        where = "everywhere" if place is None else f"next to x = {_shown(place)}"
        raise InvalidInputError(
            f"{argument} is negative {where}: a density is ≥ 0. Cut it off there by max(…, 0)."
        )
    known[tree] = 1


def _shown(place: Break | None) -> str:
    assert place is not None
    return f"{float(place.low):.6g}"


UP, DOWN, TURN = 1, 2, 3
"""Labels of cells on which f rises, f falls, or (ln f)′ is non-increasing."""


def second_rise(found: Pieces) -> float | None:
    """Return None if f is proved to have one mode, else a point where it may rise again.

    Between pieces f may jump up, if it has not fallen yet, or down. On a TURN cell f may change
    from rising to falling. A TURN cell that follows a falling cell of the same piece falls too.
    """
    fallen = False
    for i, part in enumerate(found.parts):
        if i and not found.continuous:
            assert part.low is not None
            step = jump(found.parts[i - 1].tree, part.tree, part.low)
            if fallen and not step <= 0:
                return float(part.low.low)
            fallen = fallen or not step >= 0
        if part.slope == ZERO:  # f is constant here
            continue
        exact = _turns(part)
        if exact is not None:
            for place, sign in exact:
                if sign > 0 and fallen:
                    return place
                fallen = fallen or sign < 0
            continue
        turning, falling = False, False
        for low, _, label in _slopes(part, found):
            if label == 0 or (label == UP and fallen) or (label == TURN and fallen > falling):
                return low
            turning = label == TURN and not fallen
            falling = label == DOWN or (label == TURN and falling)
            fallen = fallen or label == DOWN
        fallen = fallen or turning
    return None


def _turns(part: Piece) -> list[tuple[float, int]] | None:
    """Return the points where f begins to rise or fall, with the sign; None if not determined.

    Exact polynomials are used, so zeros of f′ at which f does not turn are left out.
    """
    sign = sign_of(part.slope)
    if sign is None:
        return None
    try:
        changes, found = signs(sign, part.low, part.high)
    except UndecidedError:
        return None
    starts = [-np.inf if part.low is None else float(part.low.low)]
    return list(zip([*starts, *(float(each.low) for each in changes)], found, strict=True))


def steepest(found: Pieces) -> Fraction | None:
    """Return s if −(ln f)′ ≤ s everywhere with limit s at +∞ and f is continuous; else None.

    Then ln f(x − t) − ln f(x) ≤ st for every t > 0, with limit st as x → ∞.
    """
    right = found.right
    if right is None or right.power != 0 or not right.high.is_finite():
        return None
    far = nearer(found.parts[-1].slope, STARTS[-1], right)
    limit = fraction(far.high.mid()).limit_denominator(_SIMPLE)
    try:
        rest = Tail(right.start).product(add(num(limit), found.parts[-1].slope))
    except TailError:
        return None
    if not (rest.size.is_zero() or (rest.size > 0 and rest.vanishes)):
        return None
    for i, part in enumerate(found.parts):
        if part.is_zero:
            return None
        before = None if found.continuous or part.low is None else found.parts[i - 1].tree
        if before and part.low and not jump(before, part.tree, part.low).is_zero():
            return None
        try:
            _, signs_found = signs(add(num(limit), part.slope), part.low, part.high)
        except UndecidedError:
            return None
        if -1 in signs_found:
            return None
    return limit


def jump(before: Node, after: Node, place: Break) -> arb:
    """Return a ball that contains after − before at a place; exactly 0 if both agree there.

    NaN if one of them has no value there, since a quotient with divisor 0 may jump.
    """
    with ctx.workprec(_JUMP_BITS):
        x = ball(place.low).union(ball(place.high))
        size = real(after, x) - real(before, x)
        if place.exact and size.is_finite():
            a, b = (at(tree, num(place.low)) for tree in (before, after))
            if a == b:
                return arb(0)
            if a.op == b.op == "num":
                return ball(b.number - a.number)
        return size


def _slopes(part: Piece, found: Pieces) -> list[tuple[float, float, int]]:
    """Return labelled cells that cover a piece, including its unbounded ends."""
    change = derivative(part.tree)

    def judge(lows: Array, highs: Array) -> Array:
        ranges = Ranges(lows, highs, part.known)
        (a, b), (c, d), (_, bend) = ranges(part.slope), ranges(change), ranges(part.bend)
        turns = np.where(bend <= 0, TURN, 0)
        return np.where((a >= 0) | (c >= 0), UP, np.where((b <= 0) | (d <= 0), DOWN, turns))

    cells = []
    low = None if part.low is None else number_ends(part.low.low)[0]
    high = None if part.high is None else number_ends(part.high.high)[1]
    if low is None:
        assert found.left is not None
        low = float(-found.left.start)
        cells.append((-np.inf, low, UP))
    if high is None:
        assert found.right is not None
        high = float(found.right.start)
        return [*cells, *sweep(low, high, judge), (high, np.inf, DOWN)]
    return [*cells, *sweep(low, high, judge)]

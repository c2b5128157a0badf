"""A density g that falls with r = ‖x‖, as V = −ln g on r > 0: pieces, jumps, radii of levels.

Levels v are those of V. On a piece r is the variable, and v = V(r) grows; at a jump v is, and r is
fixed. Where V(o) = v + ε in one piece, o is analytic in either: on a convex set B around a real m

    o(u) − o(m) lies in the hull of v′(B)/V′(O) times u − m,

if that set, moved by o(m), lies inside O, and V′ has no zero in O: on the way from m to u the
solution does not leave O. Its curvature o″ = (v″ − V″ o′²)/V′ is then known on B, and by it o − r
to the second order.
"""

from __future__ import annotations

import functools
import math
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias, final

from flint import acb, arb

from dpassay.accountant.density.balls import Holomorphic, real
from dpassay.accountant.density.law import law
from dpassay.accountant.density.pieces import Piece, pieces, second_rise
from dpassay.accountant.density.sweep import Break
from dpassay.accountant.density.text import read
from dpassay.accountant.density.tree import ZERO, X, branch
from dpassay.accountant.errors import InvalidInputError, UndecidedError
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.numbers.precision import cached_property, ctx

_OCTAVES = range(-40, 64)
"""Powers of 2 between which radii are tabled: Newton's method begins there."""
_STEPS = 400
"""Of Newton's method, guarded by bisection."""
_INFLATED = arb("1.25")
"""Factor by which a guess is larger than what it has to contain."""
_TRIES = 8
"""Guesses of a set that contains the solutions, each larger."""

_SPARE, _GROWTH = 8, 64
"""Bits that the first guess around a root is wider than the precision, and how guesses grow."""
_CLOSING = 24
"""Bits of the precision that a place keeps from where g falls to 0."""
_MOST_RADII = 4096
"""Radii that are tabled."""

Target: TypeAlias = "int | arb | None"
"""Where V reaches a level: in a piece, by its number; at a jump, by its radius; nowhere, below."""


@final
@dataclass(frozen=True, eq=False)
class Part:
    """V between two radii, enclosed; `high` is None at infinity."""

    piece: Piece
    low: arb
    high: arb | None
    bottom: arb
    top: arb

    @property
    def is_flat(self) -> bool:
        """Whether V is the same all over the part."""
        return self.piece.slope == ZERO

    @cached_property
    def rise(self) -> Holomorphic:
        """−V′."""
        return Holomorphic(self.piece.slope)

    @cached_property
    def bend(self) -> Holomorphic:
        """−V″."""
        return Holomorphic(self.piece.bend)

    def level(self, r: acb, analytic: bool) -> acb:
        """Return V."""
        return -self.piece.log_integrand(r, analytic)

    def at(self, r: arb) -> arb:
        """Return V at a real radius."""
        found: arb = self.level(acb(r), False).real
        return found

    @cached_property
    def table(self) -> tuple[list[float], list[float]]:
        """Radii, and V there, in floats."""
        low = float(self.low.upper())
        high = math.inf if self.high is None else float(self.high.lower())
        steps = {2.0**n * m for n in _OCTAVES for m in (1, 1.2, 1.4, 1.6, 1.8)}
        inner = sorted(x for x in {low, *steps} if low <= x < high)
        inner += [] if math.isinf(high) else [low + (high - low) * k / 16 for k in range(1, 17)]
        radii: list[float] = []
        levels: list[float] = []
        for r in sorted(inner):
            v = float(self.at(arb(r)).mid())
            if math.isfinite(v) and (not levels or v > levels[-1]):
                radii.append(r)
                levels.append(v)
        return radii, levels


@final
class Radii:
    """The parts of V from 0 on, and the radius from which on g is 0."""

    def __init__(self, text: str) -> None:
        found = pieces(branch(X, read(text, "density"), ZERO), "density")
        self.decay = found.right
        charged: list[Piece] = []
        for piece in found.parts:  # equal steps are one
            if charged and charged[-1].tree == piece.tree and piece.slope == ZERO:
                charged[-1] = replace(charged[-1], high=piece.high)
            elif not piece.is_zero:
                charged.append(piece)
        self.parts = [_part(piece) for piece in charged]
        last = self.parts[-1]
        self.end, self.closing = last.high, None
        if last.high is not None and not last.top.is_finite():
            self.closing = (last.high * (1 - arb(2) ** (_CLOSING - ctx.prec))).lower()

    def target(self, level: arb) -> Target:
        """Return where V reaches a level. Raises UndecidedError next to the end of a piece."""
        if not level.is_finite() and self.end is not None:
            return self.end
        for k, part in enumerate(self.parts):
            if level < part.bottom:
                return part.low if k else None
            if level < part.top:
                if level > part.bottom:
                    return k
                break
            if not level > part.top:
                break
        else:
            assert self.end is not None
            return self.end
        raise UndecidedError("The radius of a level is not told from the end of a piece.")

    def own(self, stretch: Stretch) -> Target:
        """Return where V reaches the level it has there; where it rises, any number of a part.

        Raises UndecidedError where it is not proved to rise.
        """
        part = stretch.part
        if part is None or part.is_flat:
            place = stretch.place if part is None else part.low
            return None if place.is_zero() else place
        if not part.bottom < part.top:
            raise UndecidedError("Whether the density falls at all in a piece is not told.")
        return 0

    def radius(self, k: int, level: arb) -> arb:
        """Return the r in part k with V(r) = level, by Newton's method and its interval form.

        It begins between two radii of the table, which every one that is found joins.
        """
        part, wanted, known = self.parts[k], level.mid(), float(level.mid())
        radii, levels = part.table
        i = bisect_left(levels, known)
        low = arb(radii[i - 1]) if i else part.low.mid()
        high = arb(radii[i]) if i < len(radii) else None
        y = ((low if high is None else low + high) / 2).mid()
        if high is None and part.high is not None:
            high = part.high.mid()
        elif high is None:
            high = 2 * low + 1
            while not part.at(high) > level:
                low, high = high, 2 * high
        elif i:
            share = (known - levels[i - 1]) / (levels[i] - levels[i - 1])
            y = (low + (high - low) * share).mid()
        near = arb(2) ** (-ctx.prec // 2)
        for _ in range(_STEPS):
            excess = part.at(y) - wanted
            low, high = (low, y) if excess > 0 else (y, high)
            new = (y + excess / part.rise(acb(y), False).real).mid()
            if not low <= new <= high:
                new = ((low + high) / 2).mid()
            step, y = abs(new - y), new
            if step <= near * y:
                break
        if len(radii) < _MOST_RADII and i < len(radii) and low <= y <= high:
            radii.insert(i, float(y))
            levels.insert(i, known)
        excess = part.at(y) - level
        size = abs(y) * arb(2) ** (_SPARE - ctx.prec)
        for _ in range(_TRIES):
            around = arb(y, size.upper())
            found = y + excess / part.rise(acb(around), False).real
            if around.contains_interior(found):
                return found
            size = size * _GROWTH if not found.is_finite() else size + 2 * abs(found - y)
        raise UndecidedError("The radius of a level was not enclosed.")


@final
@dataclass(frozen=True, eq=False)
class Stretch:
    """Levels of one part by their radius, or of one jump by themselves, between two ends."""

    radii: Radii
    low: arb
    high: arb | None
    part: Part | None
    place: arb
    """The radius of a jump."""

    def start(self, u: arb) -> tuple[arb, arb]:
        """Return r and v at a real place."""
        return (self.place, u) if self.part is None else (u, self.part.at(u))

    def other(
        self, u: acb, shift: arb, target: Target, analytic: bool
    ) -> tuple[acb, acb, acb, acb] | None:
        """Return r, o, o − r and its slope, V(o) = v + ε, on a set around a real place; or None."""
        m = u.real.mid()
        away = u - m
        grows = acb(0 if self.part is None else 1)
        r_m, v_m = self.start(m)
        r = acb(r_m) + grows * away
        if shift.is_zero() and isinstance(target, int):
            return r, r, acb(0), acb(0)
        if not isinstance(target, int):
            assert target is not None
            return r, acb(target), target - r, -grows
        part = self.radii.parts[target]
        o_m = self.radii.radius(target, v_m + shift)
        if away.is_zero():
            return r, acb(o_m), acb(o_m - r_m), acb(0)
        rise = self._rise(u, analytic)
        first = self._rise(acb(m), False) / -part.rise(acb(o_m), False)
        size = first * away
        for _ in range(_TRIES):
            most = _INFLATED * size
            around = o_m + acb(arb(0, abs(most.real).upper()), arb(0, abs(most.imag).upper()))
            slope = rise / -part.rise(around, analytic)
            moved = slope * away
            if not moved.is_finite():
                return None
            if around.contains(o_m + moved) and _is_inside(moved, most):
                break
            size = moved
        else:
            return None
        bend = acb(0) if self.part is None else -self.part.bend(u, analytic)
        bend = (bend + part.bend(o_m + moved, analytic) * slope * slope) / -part.rise(
            o_m + moved, analytic
        )
        bent = away * away * bend / 2
        slope = _narrower(first + away * bend, slope)
        o = o_m + _narrower(first * away + bent, moved)
        gap = (o_m - r_m) + _narrower((first - grows) * away + bent, moved - grows * away)
        return r, o, gap, slope - grows

    def _rise(self, u: acb, analytic: bool) -> acb:
        """Return dv/du."""
        return acb(1) if self.part is None else -self.part.rise(u, analytic)


def _narrower(a: acb, b: acb) -> acb:
    return a if a.is_finite() and a.rad() < b.rad() else b


def _is_inside(moved: acb, most: acb) -> bool:
    """Whether one set around 0 lies strictly inside the other, or is 0 as that."""
    return all(
        a < b or a.is_zero()
        for a, b in (
            (abs(moved.real).upper(), abs(most.real).upper()),
            (abs(moved.imag).upper(), abs(most.imag).upper()),
        )
    )


def _part(piece: Piece) -> Part:
    low = _ball(piece.low)
    high = None if piece.high is None else _ball(piece.high)
    assert low is not None
    bottom = -real(piece.tree, low).log()
    top = arb.pos_inf() if high is None else -real(piece.tree, high).log()
    if not top.is_finite():  # g falls to 0
        top = arb.pos_inf()
    if not bottom.is_finite():
        raise InvalidInputError("density has to be bounded. Cut it off by min(…, a number).")
    return Part(piece, low, high, bottom, top)


def _ball(place: Break | None) -> arb | None:
    return None if place is None else ball(place.low).union(ball(place.high))


@functools.lru_cache(maxsize=64)
def radii(text: str, bits: int) -> Radii:
    """Return the radii of a density that falls, for this precision."""
    with ctx.workprec(bits):
        return Radii(text)


@functools.lru_cache(maxsize=64)
def require_falling(text: str) -> None:
    """Require a density that is a formula in r and never rises. Raises InvalidInputError."""
    found = law(text, "density")
    if not found.is_symmetric:
        raise InvalidInputError(
            f"Expected density={text!r} to be a formula in r, the norm of the noise, r ≥ 0."
        )
    if (place := second_rise(found.pieces)) is not None and not _falls_evenly(text):
        raise InvalidInputError(
            f"density is not proved to fall with r: look at r = {abs(place):.6g}. What is known "
            "of noise around a norm is that of densities that never rise."
        )


def _falls_evenly(text: str) -> bool:
    """Whether x may stand for r, smoothly at 0, and the density has one mode then."""
    try:
        even = law(re.sub(r"\br\b", "x", text), "density")
    except InvalidInputError:
        return False
    return even.is_symmetric and second_rise(even.pieces) is None


def stretches(found: Radii, *, of_levels: bool) -> Iterator[Stretch]:
    """Return parts that rise and jumps, in order, or all parts: what levels, or radii, are in.

    The last jump, to 0, has no upper end.
    """
    none = arb(0)
    for k, part in enumerate(found.parts):
        before = found.parts[k - 1] if k else None
        jumps = before is not None and part.bottom.lower() > before.top.upper()
        if before is not None and jumps and of_levels:
            yield Stretch(found, before.top.upper(), part.bottom.lower(), None, part.low)
        if of_levels and part.is_flat:
            continue
        high = None if part.high is None else part.high.lower()
        high = found.closing if found.closing is not None and part is found.parts[-1] else high
        yield Stretch(found, part.low.upper(), high, part, none)
    last = found.parts[-1]
    if of_levels and found.end is not None and last.top.is_finite():
        yield Stretch(found, last.top.upper(), None, None, found.end)

"""What the curvature of V = −ln f says of the Rényi divergences of f(x − t) from f(x).

Let V = V₁ + V₂ with V₁″ ≤ s and |V₂′| ≤ b. As x − t = ((a − 1)x + (x − at))/a, concavity of
V₁ − sx²/2 gives, for a > 1,

    aV₁(x − t) − (a − 1)V₁(x) ≥ V₁(x − at) − s a(a − 1)t²/2,

and for V₂ the same with 2(a − 1)bt in the place of the last term. So the integral of
e^{−aV(x − t) + (a − 1)V(x)} is at most ∫ f e^{s a(a − 1)t²/2 + 2(a − 1)bt}, and

    D_a/a ≤ s t²/2 + 2bt/a.

Outside of [−r, r] V₁ is V here; inside V₁′ is linear, so that kinks go to V₂. Where V″ ≥ s from
some R on, the inequality turns for x − at ≥ R, and D_a/a ≥ s t²/2 + ln P(X ≥ R)/(a(a − 1)): if V″
tends to ∞ on the right, so does D_a/a.
"""

from __future__ import annotations

import functools
from fractions import Fraction

import numpy as np
from flint import arb

from dpassay.accountant.density.balls import real
from dpassay.accountant.density.law import Law
from dpassay.accountant.density.pieces import Piece
from dpassay.accountant.density.ranges import Array, Ranges, number_ends, product, total
from dpassay.accountant.density.tail import Tail, TailError
from dpassay.accountant.numbers.interval import ball

_CELLS = 1024
"""Cells of a range: a bound that is wide by a share of a cell is good enough far out."""
_DOUBLINGS = 12
"""Radii r that are tried: a larger one has less curvature outside and more slope inside."""
_KEPT = 64
"""Densities whose bounds are kept."""


@functools.lru_cache(maxsize=_KEPT)
@np.errstate(all="ignore")
def curvatures(law: Law) -> list[tuple[arb, arb]]:
    """Return pairs (s, b), of several radii; none where f jumps or is 0 somewhere."""
    parts, found = law.pieces.parts, law.pieces
    if not found.continuous or any(part.is_zero for part in parts):
        return []
    if not all(place.exact for place in found.breaks):
        return []
    first = max([Fraction(1), *(abs(place.low) for place in found.breaks)])
    sides = [(law, parts[-1]), (law.mirrored, law.mirrored.pieces.parts[-1])]
    splits = [_split(law, sides, first * 2**doublings) for doublings in range(_DOUBLINGS)]
    if len(parts) == 1:
        inside = -_least(_cells(-first, first), parts[0])
        splits.append((max(inside, *(_outside(*side, first) for side in sides)), 0.0))
    return [(arb(max(s, 0.0)), arb(b)) for s, b in splits if np.isfinite(s) and np.isfinite(b)]


def steepens(law: Law) -> bool:
    """Whether V″ is proved to tend to ∞ on the right."""
    if law.pieces.right is None:
        return False
    try:
        form = Tail(law.pieces.right.start).product(law.pieces.parts[-1].bend)
    except TailError:
        return False
    return form.size < 0 and not form.vanishes and bool(form.exponent or form.power > 0)


def _split(law: Law, sides: list[tuple[Law, Piece]], r: Fraction) -> tuple[float, float]:
    """Return s and b of one radius."""
    right, left = (-real(side.slope, ball(r)) for _, side in sides)
    chord = (right + left) / (2 * ball(r))  # mirrored, V′ has the other sign
    middle, width = (right - left) / 2, _ends(chord)
    b = 0.0
    for part in law.pieces.parts:
        low = -r if part.low is None else part.low.low
        high = r if part.high is None else part.high.low
        cells = _cells(low, high)
        linear = total(product(cells, width), _ends(middle))  # V₁′
        ends = total(Ranges(*cells, part.known)(part.slope), linear)
        b = max(b, _most(np.abs(ends[0])), _most(np.abs(ends[1])))
    outside = [_outside(*side, r) for side in sides]
    return max(*outside, float(width[1][0])), b


def _outside(law: Law, part: Piece, r: Fraction) -> float:
    """Return an upper bound of V″ from r on, on the right."""
    assert law.pieces.right is not None
    start = max(law.pieces.right.start, r)
    tail = Tail(start)
    try:
        far = -tail.values(part.bend)
        most = _ends(far)[1][0]
    except TailError:
        most = np.inf
    near = -_least(_cells(r, start), part) if r < start else 0.0
    return float(max(near, most))


def _cells(low: Fraction, high: Fraction) -> tuple[Array, Array]:
    """Return cells that cover a range, in proportion to their distance where 0 is outside."""
    a, b = number_ends(low)[0], number_ends(high)[1]
    edges = np.geomspace(a, b, _CELLS + 1) if a > 0 else np.linspace(a, b, _CELLS + 1)
    edges[0], edges[-1] = a, b
    return edges[:-1], edges[1:]


def _least(cells: tuple[Array, Array], part: Piece) -> float:
    """Return a lower bound of (ln f)″ on cells."""
    return -_most(-Ranges(*cells, part.known)(part.bend)[0])


def _most(values: Array) -> float:
    return float(np.max(np.where(np.isnan(values), np.inf, values)))


def _ends(value: arb) -> tuple[Array, Array]:
    """Return a ball as a range of floats."""
    if not value.is_finite():
        return np.array([-np.inf]), np.array([np.inf])
    low, high = float(value.lower()), float(value.upper())
    return np.array([np.nextafter(low, -np.inf)]), np.array([np.nextafter(high, np.inf)])

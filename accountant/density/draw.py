"""Floating-point samples from a density by rejection, for simulation.

Between −R and R, ranges of f give upper bounds on cells. Beyond R, f is at most f(R)(R/x)^α
(`dpassay.accountant.density.tail`), and this bound is sampled by inversion. A point is accepted
with probability f over its bound, so accepted points have density f, up to rounding errors.
"""

from __future__ import annotations

from typing import Any

from flint import arb

from dpassay.accountant.core.arrays import NDArray, np
from dpassay.accountant.density.balls import real
from dpassay.accountant.density.law import Law
from dpassay.accountant.density.ranges import Ranges, number_ends
from dpassay.accountant.numbers.interval import ball

_CELLS = 4096
"""Number of cells per piece; fewer cells reject more points."""
_STEEPEST = 1e6
"""Largest exponent α of a tail's bound; a steeper tail uses the bound with this exponent."""
_ROUND = 1.2
"""Points drawn at once per accepted point needed."""


def draw(law: Law, size: int, rng: np.random.Generator) -> NDArray[Any]:
    """Draw `size` numbers with density f."""
    lows, highs, bounds = _cells(law)
    tails = [_tail(law), _tail(law.mirrored)]
    weights = np.concatenate([bounds * (highs - lows), [tail[2] for tail in tails]])
    weights /= weights.sum()
    kept = np.empty(0)
    while len(kept) < size:
        wanted = int(_ROUND * (size - len(kept))) + 8
        chosen = rng.choice(len(weights), wanted, p=weights)
        x, most = np.empty(wanted), np.empty(wanted)
        inner = chosen < len(lows)
        cell = chosen[inner]
        x[inner] = lows[cell] + (highs[cell] - lows[cell]) * rng.random(len(cell))
        most[inner] = bounds[cell]
        for i, (start, power, _, value) in enumerate(tails):
            mine = chosen == len(lows) + i
            away = start * rng.random(int(mine.sum())) ** (-1 / (power - 1)) if mine.any() else 0.0
            x[mine] = away if i == 0 else -np.asarray(away)
            most[mine] = value * (start / np.abs(x[mine])) ** power
        share = _values(law, x) / most
        kept = np.concatenate([kept, x[rng.random(wanted) < share]])
    return kept[:size]


def _cells(law: Law) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return cells between the tails, and upper bounds on f on them."""
    lows, highs, bounds = [], [], []
    for part in law.pieces.parts:
        if part.is_zero:
            continue
        low = -_start(law.mirrored) if part.low is None else number_ends(part.low.high)[1]
        high = _start(law) if part.high is None else number_ends(part.high.low)[0]
        scale = 1e-3
        ends = np.arcsinh(np.array([low, high]) / scale)
        edges = np.sinh(np.linspace(ends[0], ends[1], _CELLS + 1)) * scale
        edges[[0, -1]] = low, high
        most = Ranges(edges[:-1], edges[1:], part.known)(part.tree)[1]
        lows.append(edges[:-1])
        highs.append(edges[1:])
        bounds.append(most)
    return np.concatenate(lows), np.concatenate(highs), np.concatenate(bounds)


def _start(law: Law) -> float:
    """Return where the bound of the right tail begins."""
    tail = law.pieces.right
    assert tail is not None
    return float(4 * tail.start)


def _tail(law: Law) -> tuple[float, float, float, float]:
    """Return R, α, the mass of the bound beyond R, and f(R); a mass of 0 if f is 0 there."""
    if law.pieces.right is None:
        return 1.0, 2.0, 0.0, 0.0
    start = 4 * law.pieces.right.start
    tail = law.decay_from(start)
    assert tail is not None
    at = ball(start)
    falls = tail.low.lower() * ((1 + ball(tail.power)) * at.log()).exp()
    power = float(np.nextafter(float(falls.min(arb(_STEEPEST))), 0))
    value = float(real(law.pieces.parts[-1].log, at).exp().upper())
    return float(start), power, value * float(start) / (power - 1), value


def _values(law: Law, x: NDArray[Any]) -> NDArray[Any]:
    """Return f at many points, approximately."""
    found = np.zeros_like(x)
    for part in law.pieces.parts:
        low = -np.inf if part.low is None else float(part.low.low)
        high = np.inf if part.high is None else float(part.high.low)
        here = (x > low) & (x <= high)
        if here.any() and not part.is_zero:
            least, most = Ranges(x[here], x[here], part.known)(part.tree)
            found[here] = (least + most) / 2
    return found

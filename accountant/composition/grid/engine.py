"""The bounds of a product on a grid: H(ε) from above and from below, ε(δ), and β(α).

*Large losses.* Let B_i be the event that the loss of a release of kind i is above the last point
of its grid, A = 1 − Π (1 − P(B_i))^{k_i}, B = 1 − Π (1 − Q(B_i))^{k_i}. What the outcomes with
some B_i add to H(ε) is A − e^ε B + E_P[(e^{ε−L} − 1)⁺; some B_i], and the last term is at most

    e^ε Q(some B_i, L < ε) ≤ e^ε Σ k_i Q(B_i) Q(the sum of the others < ε − l_i).

The others are at least b + N, with b the sum of their least losses, each at most 0, and N normal:
so the last factor is 0, or at most e^{−t²/2}/2 with t standard deviations between. Where a release
has outcomes that P never has, its least loss is −∞, and nothing is cut.

Both laws of every release are on one grid (`dominate`), their sums tilted (`tilted`), and the grid
is chosen from rough laws (`plan`). The numbers of points are tried in turn: the width falls about
as the square of the step, which tells how many the asked width takes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, TypeVar, final

from flint import arb

from dpassay.accountant.composition.grid import dominate
from dpassay.accountant.composition.grid.dominate import Place
from dpassay.accountant.composition.grid.factors import Release
from dpassay.accountant.composition.grid.plan import Plan, guess, plan
from dpassay.accountant.composition.grid.tilted import TiltedSum, compose
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import shortened

Releases = tuple[tuple[Release, int], ...]
T = TypeVar("T")

LEAST, MOST, ALONE = 1 << 12, 1 << 21, 1 << 22
"""Grid points at first, at most, and at most of one kind of release: 2^21 take about a second per
ten different releases."""
_PRECISION = 192
"""Bits of the bounds: their rounding is far below that of the sums in floats."""
_ROOM = 1e-14
"""Covers the rounding of losses that are floats."""
_STEPS = 40
"""Steps of each search for ε: doubling and halving reach every float that matters in fewer."""
SETTLED = 1e-13
"""The least share of ε to which a root is sought."""
_NEAR_BY = 1 / 64
"""Share of a rough ε by which it may be off."""
_MOST_BLIND = 5
"""Grids on which a width may stay above a half."""
_SMOOTH, _LEAST_ORDER = 1.4, 0.7
"""Order of the fall from which on it is taken to be 2, that of densities, and the least one."""
_FIRST_FINER, _MOST_FINER = 4, 64
"""Times as many points on the second grid, which tells how the width falls, and on later ones."""
_CACHED = 6
"""Sums that are kept, up to 2^22 points each: more take memory, fewer are summed again."""


@final
@dataclass(frozen=True, eq=False)
class Bracket:
    """The sums of the laws above and below, on one frame; None where floats do not hold one."""

    upper: TiltedSum | None
    lower: TiltedSum | None
    large: Large | None = None

    def bounds(self, epsilon: arb) -> tuple[arb, arb]:
        """Return a lower and an upper bound of H(ε)."""
        return self.bound(epsilon, above=False), self.bound(epsilon, above=True)

    def bound(self, epsilon: arb, *, above: bool) -> arb:
        """Return an upper bound of H(ε), or a lower one."""
        with ctx.workprec(_PRECISION):
            sure, doubtful = arb(0), arb(0)
            if self.large is not None:
                sure, doubtful = self.large.parts(epsilon)
            if above:
                high = arb(1) if self.upper is None else self.upper.above(epsilon)
                high += sure + doubtful
                return high.upper().min(arb(1)) if high.is_finite() else arb(1)
            low = arb(0) if self.lower is None else self.lower.below(epsilon)
            return (low + sure).lower().max((-epsilon.expm1()).lower()).max(arb(0))


@final
@dataclass(frozen=True)
class Large:
    """What is known of the events B_i."""

    some_p: arb
    some_q: arb
    events: tuple[tuple[arb, float], ...]
    """k_i Q(B_i), and l_i."""
    least: arb
    """The sum of the least losses of all releases that have one."""
    mu: float

    def parts(self, epsilon: arb) -> tuple[arb, arb]:
        """Return A − e^ε B, and a bound of the last term."""
        growth, doubtful = epsilon.exp(), arb(0)
        for mass, loss in self.events:
            gap = loss + self.least - epsilon - arb(self.mu) ** 2 / 2
            if self.mu == 0:
                doubtful += arb(0) if gap >= 0 else mass
            else:
                doubtful += mass * ((-((gap / self.mu) ** 2) / 2).exp() / 2 if gap > 0 else 1)
        return self.some_p - growth * self.some_q, growth * doubtful


def _large(chosen: Plan, places: list[Place]) -> Large | None:
    """Return the events of the places that are cut, None where none is."""
    log_p, log_q, least, mu = arb(0), arb(0), arb(0), 0.0
    events = []
    with ctx.workprec(_PRECISION):
        for (release, count), place in zip(chosen.releases, places, strict=True):
            if release.mu is not None:
                mu = math.nextafter(release.mu, math.inf)
            elif release.lowest is not None:
                least += count * arb(release.lowest) * (1 + _ROOM)
            if not place.cut:
                continue
            last = place.losses()[-1:]
            tail = release.survival(last)
            p = arb(float(tail.above_p[0]), float(tail.error_p[0]) * 1.01)
            q = arb(float(tail.above_q[0]), float(tail.error_q[0]) * 1.01) * arb(-last[0]).exp()
            log_p, log_q = log_p + count * (-p).log1p(), log_q + count * (-q).log1p()
            loss = float(last[0]) - _ROOM * (1 + abs(float(last[0])))
            events.append(((count * q).upper(), loss))
        if not events:
            return None
        return Large(-log_p.expm1(), -log_q.expm1(), tuple(events), least, mu)


@functools.lru_cache(maxsize=_CACHED)
def bracket(chosen: Plan, points: int) -> Bracket:
    """Return both sums for a plan on so many points."""
    frame = chosen.frame(points)
    above, below, places = [], [], []
    for number, (release, count) in enumerate(chosen.releases):
        upper, lower = chosen.places(number, frame.step)
        places.append(upper)
        above.append((dominate.above(release.survival, upper), count))
        law = dominate.below(release.survival, lower, release.infinity)
        if law is not None:
            below.append((law, count))
    whole = len(below) == len(above)
    return Bracket(
        compose(above, frame), compose(below, frame) if whole else None, _large(chosen, places)
    )


def bounds(releases: Releases, epsilon: ExactReal, points: int) -> tuple[arb, arb]:
    """Return a lower and an upper bound of H(ε) on a grid of so many points."""
    return bracket(plan(releases, near(float(epsilon))), points).bounds(epsilon.ball())


def near(epsilon: float) -> float:
    """Cut to 12 bits, so that neighbouring questions share a sum."""
    return shortened(epsilon, 12)


class Bounds(Protocol):
    """What has two bounds of H(ε)."""

    def bound(self, epsilon: arb, *, above: bool) -> arb:
        """Return an upper bound of H(ε), or a lower one."""


def crossing(
    found: Bounds,
    target: arb,
    start: float,
    *,
    above: bool,
    near_by: float = _NEAR_BY,
    settled: float,
) -> Fraction | None:
    """Return a float near the root of one bound at which it is certainly on its side of δ.

    The first step from the start, and the last bracket, are these shares of the root. It is sought
    by the Illinois method: what an end that stays has is halved.
    """

    def excess(at: float) -> float:
        value = found.bound(arb(at), above=above)
        with ctx.workprec(_PRECISION):
            if not value > 0:
                return -math.inf
            ratio = (value / target).log()
            return float((ratio.upper() if above else ratio.lower()).mid())

    size = max(abs(start), 1e-9)
    step = size * near_by
    low = high = start
    at_low = at_high = excess(start)
    for _ in range(_STEPS):
        if at_high <= 0:
            break
        low, at_low, high, step = high, at_high, high + step, 2 * step
        at_high = excess(high)
    for _ in range(_STEPS):
        if at_low > 0:
            break
        high, at_high, low, step = low, at_low, low - step, 2 * step
        at_low = excess(low)
    if not at_low > 0 >= at_high:
        return None
    side = 0
    for _ in range(_STEPS):
        size = max(abs(low), abs(high))
        if high - low <= settled * size:
            break
        share = at_low / (at_low - at_high) if math.isfinite(at_high) else 0.5
        # Past the root, seen from the last end, for a bracket that is narrow.
        middle = low + (high - low) * share + side * settled / 4 * size
        if not low < middle < high:
            middle = (low + high) / 2
        value = excess(middle)
        if value > 0:
            low, at_low, at_high, side = middle, value, at_high / (2 if side > 0 else 1), 1
        else:
            high, at_high, at_low, side = middle, value, at_low / (2 if side < 0 else 1), -1
    return Fraction(high if above else low)


def inverse(
    releases: Releases,
    target: arb,
    points: int,
    start: float | None = None,
    *,
    near_by: float = _NEAR_BY,
    settled: float = SETTLED,
) -> tuple[Fraction | None, Fraction | None]:
    """Return points below and above ε(δ), None where one is not found.

    The root is about `start`, within the share `near_by` of it, and sought to the share `settled`.
    """
    if start is None:
        start = guess(releases, float(target.log()))
    found = bracket(plan(releases, near(start)), points)
    shares = {"near_by": min(max(near_by, 4 * settled), _NEAR_BY), "settled": settled}
    return (
        crossing(found, target, start, above=False, **shares),
        crossing(found, target, start, above=True, **shares),
    )


def refined(
    on_grid: Callable[[int], tuple[float, T]], wanted: float, limit: int, points: int = LEAST
) -> tuple[T, float, int]:
    """Return what is found on the first grid that is fine enough, or else on the last one tried.

    `on_grid` returns a width, and what is found, on so many points; the width that was reached and
    the points follow.
    """
    widths: list[float] = []
    while True:
        width, found = on_grid(points)
        widths.append(width)
        following = None if width <= wanted else _next_points(points, widths, wanted, limit)
        if following is None:
            return found, width, points
        points = following


def relative_width(lower: arb, upper: arb) -> float:
    """Return that of H between two bounds."""
    return float((upper - lower) / lower) if lower > 0 else math.inf


def _next_points(points: int, widths: list[float], wanted: float, limit: int) -> int | None:
    """Return the number of points to try next, None where no number in reach will do."""
    if points >= limit:
        return None
    order = 2.0
    if len(widths) > 1 and widths[-1] < widths[-2]:
        found = math.log(widths[-2] / widths[-1]) / math.log(_FIRST_FINER)
        order = 2.0 if found > _SMOOTH else max(found, _LEAST_ORDER)
    if not math.isfinite(widths[-1]) or widths[-1] > 0.5:
        return min(4 * points, limit) if len(widths) < _MOST_BLIND else None
    factor = (widths[-1] / wanted) ** (1 / order)
    if points * factor > 8 * limit and len(widths) > 2:
        return None
    most_finer = _FIRST_FINER if len(widths) == 1 else _MOST_FINER
    needed = points * 2.0 ** math.ceil(math.log2(min(max(factor, 2.0), most_finer)))
    return int(min(needed, limit))

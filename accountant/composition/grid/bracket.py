"""What two laws on a grid say of a product of any pairs."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

from flint import arb

from dpassay.accountant.composition.grid import engine
from dpassay.accountant.composition.grid.engine import Bracket, Releases
from dpassay.accountant.composition.grid.factors import releases
from dpassay.accountant.composition.grid.plan import guess, plan
from dpassay.accountant.composition.grid.samples import samples_sums
from dpassay.accountant.composition.product import Product
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers import ledger
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import shortened

_T = TypeVar("_T")

POINTS = (1 << 12, 1 << 14, 1 << 16, 1 << 18)
"""Grid points of the sum at flint's precisions 128, 256, 512 and from 1024 bits on."""
_DIGITS = 20
"""Of the ends, which are rounded outward."""
_LEAST_SIZE = Fraction(1, 10**9)
"""Losses below it have widths relative to it."""
_SOUGHT = 1 / 64
"""Share of the asked width to which the roots of both bounds are sought."""
_PLACE_BITS = 4
"""Bits of the ε of a coarse grid: with fewer they are made anew less often, and are less exact."""
_REUSED, _ENOUGH = 0.75, 1.02
"""Share of the sizes of two points by which a coarse grid for one serves the other, below it, and
the ratio of its bounds there: beyond, another grid is made."""
_ABOVE = 0.25
"""Share of ε by which sums for several points are made for one above them, and for none below."""
_AGREE = 0.05
"""Relative difference of the roots of both laws up to which their grid says where the root is."""
_NEARLY = 1e-3
"""Share of an estimate to which it is sought: secants of values go on from there."""
OF_SUMS = 1 << 18
"""Grid points at most for samples of several releases: the table of their sum is no finer."""
_ROOM = 0.98
"""Share of the asked width that the bounds may take: the rest is for rounding to decimals."""


def profile(product: Product, epsilon: ExactReal, most: int | None) -> arb:
    """Return a ball around the two bounds.

    Raises UndecidedError, with what was reached, if the width that is asked for needs a finer
    grid than there is.
    """
    wanted = product.relative_width
    if wanted is None:
        lower, upper = bounds(product, epsilon, _points())
        return lower.union(upper)
    if product.infinity_mass() == 1:
        return arb(1)

    def width(points: int) -> tuple[float, tuple[arb, arb]]:
        lower, upper = bounds(product, epsilon, points)
        reached = 0.0 if upper.is_zero() else engine.relative_width(lower, upper)
        return reached, (lower, upper)

    lower, upper = _refined(width, float(wanted) * _ROOM, "delta", _ends, most or _most(product))
    return lower.union(upper)


def inverse(
    product: Product,
    delta: ExactReal,
    relative_width: Fraction,
    most: int | None,
    start: float | None = None,
) -> Interval:
    """Enclose ε(δ) by the points at which the two bounds pass δ, searched from a start.

    Raises UndecidedError as for `profile`.
    """
    ledger.note("grid")
    starts: list[float | None] = [start]
    widths = [math.inf]
    settled = max(float(relative_width) * _SOUGHT, engine.SETTLED)

    def width(points: int) -> tuple[float, tuple[Fraction, Fraction] | None]:
        low, high = engine.inverse(
            _releases(product),
            delta.ball(),
            points,
            starts[-1],
            near_by=widths[-1],
            settled=settled,
        )
        about = low if high is None else high
        if about is not None:
            starts.append(float(about))
        if low is None or high is None:
            return math.inf, None
        reached = float((high - low) / max(min(abs(low), abs(high)), _LEAST_SIZE))
        widths.append(reached)
        return reached, (low, high)

    wanted = float(relative_width) * _ROOM
    found = _refined(width, wanted, "epsilon", _between, most or _most(product))
    answer = _between(found)
    if answer is None:
        raise UndecidedError(f"No epsilon was found for delta={delta} on a grid.")
    return answer


def _most(product: Product) -> int:
    if samples_sums(product):
        return OF_SUMS
    return engine.ALONE if len(product.factors) == 1 else engine.MOST


@functools.lru_cache(maxsize=64)
def _releases(product: Product) -> Releases:
    return releases(product.factors)


def coarsest(product: Product, epsilon: ExactReal) -> arb:
    """Return the upper bound of H(ε) on the coarsest grid."""
    return bounds(product, epsilon, engine.LEAST)[1]


def start(product: Product, log_delta: float) -> float:
    """Return an ε near the root of H(ε) = δ, in floats."""
    return guess(_releases(product), log_delta)


def estimate(product: Product, log_delta: float) -> float:
    """Return an ε nearer to that root, from the upper law on a coarse grid, which fails last."""
    at, delta = start(product, log_delta), arb(log_delta).exp()
    for points in POINTS[:2]:
        found = engine.bracket(plan(_releases(product), engine.near(at)), points)
        high = engine.crossing(found, delta, at, above=True, settled=_NEARLY)
        if high is not None:
            at = float(high)
            if found.bound(arb(at - _AGREE * abs(at)), above=False) > delta:
                break
    return at


def roughly(product: Product) -> Callable[[float], arb]:
    """Return H on coarse grids, each made for a point above and used while it says enough."""
    made: list[tuple[float, Bracket]] = []

    def value(epsilon: float) -> arb:
        for place, known in made:
            if epsilon <= place <= epsilon + _REUSED * (abs(place) + abs(epsilon)):
                lower, upper = known.bounds(arb(epsilon))
                if upper < _ENOUGH * lower:
                    return lower.union(upper)
        place = shortened(_above(product, epsilon, 0.5), _PLACE_BITS, math.ceil)
        least = shortened(epsilon - abs(epsilon) / 2, _PLACE_BITS, math.floor)
        chosen = plan(_releases(product), place, least)
        made.append((place, engine.bracket(chosen, engine.LEAST)))
        lower, upper = made[-1][1].bounds(arb(epsilon))
        return lower.union(upper)

    return value


def values_near(
    product: Product, epsilon: float, relative: float, most: int | None
) -> Callable[[float], arb]:
    """Return H near a point, to a relative width there or as narrow as grids have it.

    All values are from one pair of sums, made for a point a little above: bounds hold at every
    ε, and say nothing far above that point.
    """
    ledger.note("grid")
    place = engine.near(_above(product, epsilon, _ABOVE))
    chosen = plan(_releases(product), place, engine.near(epsilon - abs(epsilon) * _ABOVE))

    def width(points: int) -> tuple[float, Bracket]:
        known = engine.bracket(chosen, points)
        return engine.relative_width(*known.bounds(arb(epsilon))), known

    known, _, _ = engine.refined(width, relative, most or _most(product))

    def value(at: float) -> arb:
        lower, upper = known.bounds(arb(at))
        return lower.union(upper)

    return value


def _above(product: Product, epsilon: float, share: float) -> float:
    """Return a point above ε by a share of it, and at most midway to the largest loss."""
    place, largest = epsilon + share * abs(epsilon), float(product.max_finite_loss().mid())
    return place if epsilon >= largest else min(place, (epsilon + largest) / 2)


def upper_epsilon(product: Product, delta: ExactReal, points: int) -> Fraction:
    """Return a point, near the least one, at which H is certainly at most δ."""
    ledger.note("grid")
    found = engine.inverse(_releases(product), delta.ball(), points)[1]
    if found is None:
        raise UndecidedError(f"No epsilon was found for delta={delta} on a grid.")
    return found


def lower_epsilon(product: Product, delta: ExactReal, points: int) -> Fraction:
    """Return a point, near the largest one, at which H is certainly at least δ.

    Where the grid has none, a float below ln(1 − δ): H(ε) ≥ 1 − e^ε.
    """
    ledger.note("grid")
    found = engine.inverse(_releases(product), delta.ball(), points)[0]
    if found is None:
        least = enclose(lambda: arb.log1p(-delta.ball())).lower
        return Fraction(math.nextafter(float(least), -math.inf))
    return found


def bounds(product: Product, epsilon: ExactReal, points: int) -> tuple[arb, arb]:
    """Return the bounds of H(ε) on a grid with so many points."""
    ledger.note("grid")
    mass = product.infinity_mass()
    if mass == 1 or product.is_beyond(epsilon):
        return mass, mass
    return engine.bounds(_releases(product), epsilon, points)


def refuse_seldom(product: Product, epsilon: ExactReal) -> None:
    """Raise UndecidedError where a width that grids seldom have is asked for and is not near.

    The coarsest grid then knows H(ε) of losses with densities to less than a factor of two.
    """
    lower, upper = bounds(product, epsilon, POINTS[0])
    if not upper < 2 * lower:
        shown = _ends((lower, upper))
        raise UndecidedError(
            f"Reached delta in [{shown.lower:.8g}, {shown.upper:.8g}] on a grid of "
            f"{POINTS[0]} points, and no contour was short enough. Ask for a larger "
            "relative_width.",
            reached=engine.relative_width(lower, upper),
        )


def _refined(
    width: Callable[[int], tuple[float, _T]],
    wanted: float,
    name: str,
    enclosed: Callable[[_T], Interval | None],
    most: int,
) -> _T:
    """Return the bounds on the first grid on which they are as near as is wanted.

    Raises UndecidedError where no grid in reach has them.
    """
    found, reached, points = engine.refined(width, wanted, most)
    if reached <= wanted:
        return found
    known = enclosed(found)
    shown = f"[{known.lower:.8g}, {known.upper:.8g}]" if known else "no range"
    raise UndecidedError(
        f"Reached {name} in {shown}, of relative width {reached:.1e}, on a grid of {points} "
        f"points, and {most} points are the most. Ask for a larger relative_width.",
        reached=reached,
        interval=known,
    )


def _ends(bounds: tuple[arb, arb]) -> Interval:
    low = Interval.of_ball(bounds[0].lower().max(arb(0)), _DIGITS).lower
    return Interval(low, Interval.of_ball(bounds[1].upper(), _DIGITS).upper)


def _between(found: tuple[Fraction, Fraction] | None) -> Interval | None:
    if found is None:
        return None
    low, high = found
    return Interval.of_exact(low, _DIGITS).hull(Interval.of_exact(high, _DIGITS))


def _points() -> int:
    level = max(0, min(len(POINTS) - 1, (ctx.prec // 128).bit_length() - 1))
    return POINTS[level]

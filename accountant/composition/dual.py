"""The trade-off function β(α), from values of the profile alone.

It is for engines that enclose values to a relative width.

*Statement.* With z = e^ε, β(α) is the maximum over z > 0 of g(z) = 1 − H(ln z) − zα, a concave
function. Every value of g is a lower bound. For an upper bound take z₁ < z₂ < z₃ < z₄ with
g(z₁) ≤ g(z₂) and g(z₃) ≥ g(z₄). Let s be the slope of g from z₁ to z₂, r that from z₃ to z₄, and m
that from z₂ to z₃. By concavity

- outside of [z₁, z₄], g is at most g(z₁) or g(z₄);
- on [z₁, z₂] it is at most g(z₂) + (z₂ − z₁)(−m)⁺, and on [z₃, z₄] at most g(z₃) + (z₄ − z₃) m⁺;
- for any t in [z₂, z₃], it is at most g(z₂) + (t − z₂)s on [z₂, t], and at most
  g(z₃) + (z₃ − t)(−r) on [t, z₃].

If H is smooth, all differences are of second order in the distances. Floats choose the points;
values are balls, for which the conditions on g are certain.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from flint import arb

from dpassay.accountant.composition import lattice
from dpassay.accountant.composition.blur import Blurred, quantile_of_q
from dpassay.accountant.composition.fourier.engine import FOURIER, curve
from dpassay.accountant.composition.lattice import Grid
from dpassay.accountant.composition.product import Product
from dpassay.accountant.core.pair import Pair, max_finite_loss
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval, ball
from dpassay.accountant.numbers.precision import ctx

Values = Callable[[float], arb]

FINEST, FINEST_ON_LINES = Fraction(1, 10**7), Fraction(1, 10**11)
"""The finest relative widths of values from grids and from contour integrals; for finer ones, β is
computed from tails."""
_LEAST_LEVEL = 1e-14
"""Levels closer to 0 or 1 than this are left to tails: floats can hardly resolve them."""
_PRECISION = 128
"""Precision, in bits, of sums of values: far more than the values have."""
_LEAST = 1e-12
"""Floats cannot distinguish a smaller type II error, or power, from 0."""
_LARGEST = 700.0
"""Largest ε that is tried: its exponential is a finite float."""
_CLOSE = 0.05
"""On a grid the best ε is sought up to this far beyond twice the ε with H(ε) = α."""
_DOUBLINGS, _BISECTIONS = 6, 10
"""How often a range for that ε is moved, and then bisected; one step by the slope follows."""
_SLOPE_DISTANCE = 1 / 16
"""Distance of the points for that slope, as a share of ε: on grids H is no finer."""
_LEAST_SPREAD = 1e-9
"""Distance of the least and the largest finite loss below which floats give no slope between them.
"""
_SADDLE_BELOW, _ROOM_OF_SADDLE = 0.1, 1.0
"""Largest α for which a saddle point c gives a good quantile; and the distance in which it is
improved, in units of 1/(c + 1)."""
_ATTEMPTS = 10
"""Number of choices of the four points; each follows from the parabola through the last ones."""
_MOST_POINTS = 1 << 19
"""Largest number of grid points: near an atom of the losses more are slower and hardly better."""
_FAR = 0.1
"""Initial distance of the points next to the best one in the second phase, which bisects."""
_SLOW_HALVINGS, _LESS = 3, 0.9
"""The second phase stops after this many bisections in sequence that leave more than this share of
the width. It handles a kink of H, at an atom of the losses, which no parabola locates."""
_TWO_DIGITS = Fraction(1, 100)
"""Relative width of values that only make choices."""
_SHARE = 16
"""Ratio of the width of the answer to that of values of H, each of which enters about three times.
"""


def by_values(pair: Pair, level: ExactReal, width: Fraction, *, power: bool) -> Interval | None:
    """Return `tradeoff` for a product on a grid or on lines, or None if tails may do better.

    Raises UndecidedError if a grid does not reach the width; its tails would be worse.
    """
    if not (isinstance(pair, Product) and _LEAST_LEVEL < float(level) < 1 - _LEAST_LEVEL):
        return None
    if _has_bounds(pair):
        return tradeoff(pair, level, max(width, FINEST), power=power)
    if pair.engine != FOURIER or width < FINEST_ON_LINES:
        return None
    with contextlib.suppress(UndecidedError):
        return tradeoff(pair, level, width, power=power)
    return None


def tradeoff(product: Product, level: ExactReal, width: Fraction, *, power: bool) -> Interval:
    """Enclose β(α), or 1 − β(α) with `power`, to a relative width, by contours or on a grid.

    Raises UndecidedError if the width is not reached, with the enclosure that was in `interval`.
    """
    with ctx.workprec(_PRECISION):
        alpha = level.ball()
    ends = (
        _held(-float(max_finite_loss(product.reverse()))),
        _held(float(max_finite_loss(product))),
    )
    rough = _roughly(product)
    epsilon, drop = _start(product, rough, float(alpha), ends)
    least = 1 - float(rough(epsilon)) - math.exp(epsilon) * float(alpha)
    size = 1 - least if power else least
    if not _LEAST < size < 1:
        raise UndecidedError(
            "Floats cannot distinguish the type II error from 0 or 1. Give an alpha nearer to 1/2."
        )
    wanted = float(width) * size / _SHARE
    values_near = _values(product, wanted, float(rough(epsilon)))
    made, values = epsilon, values_near(epsilon)
    sure = alpha.max(product.infinity_mass())  # β(α) ≤ β(0)
    found = Interval.between(sure, arb(1)) if power else Interval.between(arb(0), 1 - sure)
    known: dict[float, arb] = {}

    def reached_by(points: Sequence[float]) -> Interval:
        with ctx.workprec(_PRECISION):
            z = [ball(Fraction(point)).exp() for point in points]
            for point, at in zip(points, z, strict=True):
                if point not in known:
                    known[point] = 1 - values(point) - at * alpha
            low, high = _bounds(z, [known[point] for point in points])
            if power:
                low, high = 1 - high, 1 - low
            reached = Interval.between(low, high)
            return Interval(max(found.lower, reached.lower), min(found.upper, reached.upper))

    for _ in range(_ATTEMPTS):
        if abs(epsilon - made) > abs(made) / 8:  # the bounds of a grid get worse so far away
            made, values = epsilon, values_near(epsilon)
        step = min(math.sqrt(wanted * _SHARE / 8 / drop), max(abs(epsilon), _CLOSE))
        points = [epsilon + step * k for k in (-1.5, -0.5, 0.5, 1.5)]
        if len(set(points)) < len(points):  # there are no floats between
            break
        found = reached_by(points)
        if _is_within(found, width):
            return found
        epsilon, drop = _parabola(points, [float(known[point]) for point in points], drop)
        epsilon = min(max(epsilon, ends[0]), ends[1])
    best = max(known, key=lambda point: float(known[point]))
    values, known = values_near(best), {}
    reached_by([best - _FAR, best, best + _FAR, best + 2 * _FAR])
    last, slow = math.inf, 0
    while slow < _SLOW_HALVINGS:
        for points in _around(known):
            if len(set(points)) == len(points):  # there are floats between
                found = reached_by(points)
        if _is_within(found, width):
            return found
        reached = float(found.upper - found.lower)
        last, slow = reached, slow + 1 if reached > _LESS * last else 0
    raise UndecidedError(
        f"Reached {'a power' if power else 'beta'} in {found} from values of delta. Ask for a "
        "larger relative_width.",
        reached=float(found.relative_width or math.inf),
        interval=found,
    )


def _has_bounds(product: Product) -> bool:
    return isinstance(product.engine, Grid | Blurred)


def _is_within(found: Interval, width: Fraction) -> bool:
    reached = found.relative_width
    return reached is not None and reached <= width


def _start(
    product: Product, rough: Values, alpha: float, ends: tuple[float, float]
) -> tuple[float, float]:
    """Return about the ε where g is largest, and c > 0 with g(ε + d) ≈ g(ε) − c d²."""
    if isinstance(product.engine, Blurred) and alpha <= _SADDLE_BELOW:
        start, fall = quantile_of_q(product, alpha)
        room = _ROOM_OF_SADDLE / fall
        return _between(rough, alpha, (start - room, start + room), ends, found=start)
    if _has_bounds(product):
        start = lattice.guess(product, math.log(alpha))
        room = 2 * abs(start) + _CLOSE
        return _between(rough, alpha, (start - room, start + room), ends)
    try:
        known = curve(product)
        epsilon = known.quantile_of_q(alpha)
        return epsilon, -known.tail_of_q(epsilon).slope * alpha * math.exp(epsilon) / 2
    except ArithmeticError as error:
        raise UndecidedError(
            "The type II error was not found in floats. Ask for a larger relative_width."
        ) from error


def _between(
    rough: Values,
    alpha: float,
    near: tuple[float, float],
    ends: tuple[float, float],
    *,
    found: float | None = None,
) -> tuple[float, float]:
    """Return the same from the root of Q(L > ε) = α, with difference quotients of H for Q(L > ε).

    The root is sought by bisection unless it is `found`, roughly.
    """
    least, most = ends
    if most - least < _LEAST_SPREAD:  # the kink of g is there
        return most, alpha * math.exp(most)

    def log_above(at: float, step: float) -> float:
        low, high = max(at - step, least), min(at + step, most)
        fall = float(rough(low)) - float(rough(high))
        return math.log(max(fall / (math.exp(high) - math.exp(low)), 1e-300))

    def is_left(at: float, width: float) -> bool:
        """Whether the root seems to be to the right of a point."""
        return log_above(at, width / 8) > math.log(alpha)

    left, right = max(near[0], least), min(near[1], most)
    if found is None:
        for _ in range(_DOUBLINGS):
            if right == most or not is_left(right, right - left):
                break
            left, right = right, min(2 * right - left, most)
        for _ in range(_DOUBLINGS):
            if left == least or is_left(left, right - left):
                break
            left, right = max(2 * left - right, least), left
        found, high = left, right
        for _ in range(_BISECTIONS):
            middle = (found + high) / 2
            found, high = (middle, high) if is_left(middle, high - found) else (found, middle)
    low = min(max(found, left), right)
    step = _SLOPE_DISTANCE * (abs(low) + (right - left) / 64)
    before, behind = max(low - step, left), min(low + step, right)
    first, last = (log_above(at, step / 2) for at in (before, behind))
    fall = (first - last) / (behind - before)
    if not fall > 0:
        return low, alpha * math.exp(low) / (2 * step)
    epsilon = (before + behind) / 2 + ((first + last) / 2 - math.log(alpha)) / fall
    epsilon = min(max(epsilon, before), behind)
    return epsilon, fall * alpha * math.exp(epsilon) / 2


def _bounds(z: list[arb], g: list[arb]) -> tuple[arb, arb]:
    """Return a lower and an upper bound on the maximum of g."""
    low = arb(0)
    for value in g:
        low = low.max(value.lower())
    if not (g[0] <= g[1] and g[2] >= g[3]):
        return low, arb(1)
    first, middle, last = ((g[i + 1] - g[i]) / (z[i + 1] - z[i]) for i in range(3))
    rise, fall = first.upper().max(arb(0)), (-last).upper().max(arb(0))
    gap = z[2] - z[1]
    share = fall / (rise + fall) if rise + fall > 0 else arb(1) / 2
    share = (share + (g[2] - g[1]) / gap / (rise + fall)).mid() if rise + fall > 0 else share
    share = share.max(arb(0)).min(arb(1)).mid()
    ends = (
        g[0],
        g[3],
        g[1] + (z[1] - z[0]) * (-middle).max(arb(0)),
        g[2] + (z[3] - z[2]) * middle.max(arb(0)),
        g[1] + gap * share * rise,
        g[2] + gap * (1 - share) * fall,
    )
    high = ends[0].upper()
    for end in ends[1:]:
        high = high.max(end.upper())
    return low, high.min(arb(1))


def _values(product: Product, wanted: float, size: float) -> Callable[[float], Values]:
    """Return a function of a point that returns H near it, to about the absolute width `wanted`.

    `size` is about H there. A grid is never made for a point where H is below the root of that
    width. No such grid is needed, and one made next to the largest loss is useless further left.
    """
    relative = min(wanted / max(size, 1e-300), 0.25)
    if not isinstance(product.engine, Grid):
        values = _to_width(product, Fraction(relative))
        return lambda _: values
    furthest = lattice.guess(product, math.log(wanted) / 2)
    most = min(product.engine.most or _MOST_POINTS, _MOST_POINTS)
    return lambda place: lattice.values_near(product, min(place, furthest), relative, most)


def _roughly(product: Product) -> Values:
    """Return a function that computes H to about two digits."""
    if isinstance(product.engine, Grid):
        return lattice.roughly(product)
    return _to_width(product, _TWO_DIGITS) if _has_bounds(product) else _estimates(product)


def _to_width(product: Product, width: Fraction) -> Values:
    """Return H to a relative width."""
    asked = product.to_width(width)
    return lambda at: asked.hockey_stick(ExactReal.of_rational(Fraction(at)))


def _estimates(product: Product) -> Values:
    """Return a function that computes H in floats, or the lower bound (1 − e^ε)⁺ if it cannot."""

    def value(epsilon: float) -> arb:
        log_delta = product.known.log_delta(epsilon)
        known = 0.0 if log_delta is None else math.exp(min(log_delta, 0.0))
        return arb(max(known, -math.expm1(min(epsilon, 0.0))))

    return value


def _held(epsilon: float) -> float:
    """Return ε limited to a range where its exponential is a finite float."""
    return min(max(epsilon, -_LARGEST), _LARGEST)


def _around(known: Mapping[float, arb]) -> list[list[float]]:
    """Return two lists of four points: the best one, its neighbours and the midpoints between."""
    order = sorted(known)
    best = max(range(len(order)), key=lambda index: float(known[order[index]]))
    at = order[best]
    left = order[best - 1] if best else 2 * at - order[-1]
    right = order[best + 1] if best + 1 < len(order) else 2 * at - order[0]
    points = [left, (left + at) / 2, at, (at + right) / 2, right]
    return [points[:4], points[1:]]


def _parabola(points: list[float], g: list[float], drop: float) -> tuple[float, float]:
    """Return the maximum of a parabola through the values, and its curvature."""
    step = points[1] - points[0]
    bend = (g[1] + g[2] - g[0] - g[3]) / (4 * step * step)
    slope = (g[3] - g[0] + g[2] - g[1]) / (4 * step)
    middle = (points[1] + points[2]) / 2
    if not bend > drop / 64:
        return middle + math.copysign(2 * step, slope), drop / 4
    return middle + max(-64 * step, min(64 * step, slope / (2 * bend))), bend

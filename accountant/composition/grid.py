"""Products of any pairs, enclosed by two discretised laws of the loss.

Every pair is bracketed between two laws on a grid (`accountant.composition.discretised`); the laws
of the sums are powers and products of polynomials in balls, tilted by e^{sL} so that what matters
at ε has relative accuracy:

    H(ε) = P(L = ∞) + M(s) Σ_{l > ε} t(l) e^{−sl} (1 − e^{ε−l}),   t(l) = p(l) e^{sl}/M(s).

The tilted masses t add up to 1. Those that are cut off, at any stage, are what their sum lacks; and
a unit of them adds at most M(s) e^{−sε} s^s/(1 + s)^{1+s}, the largest value of the summand. So the
enclosure is proved: nothing is estimated but the places to cut.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
from flint import arb, arb_poly

from accountant import ledger
from accountant.composition.discretised import Discretised, Law, discretise, reach
from accountant.composition.joint import Factor, FactorsPair
from accountant.composition.tilted_sum import Piece, TiltedSum
from accountant.composition.tilting import Floats, log_bound, tilt, window
from accountant.errors import NotApplicableError, UndecidedError
from accountant.interval import Interval, asked_width, ball
from accountant.number import ExactReal
from accountant.pair import Pair
from accountant.precision import ctx

if TYPE_CHECKING:
    from accountant.reference import Reference

CELLS = (1 << 11, 1 << 13, 1 << 15, 1 << 17)
"""Grid points of the sum at flint's precisions 128, 256, 512 and from 1024 bits on."""
COARSE = 400
BYTES = 96
"""Memory per grid point and law, in balls of the working precision."""

_PRECISION = 192
_TAIL = 60.0  # and of the mass of one release beyond the grid, relative to delta/count
_STRIDE = 40.0
_FEWEST = 4
_MOST_CELLS = 4 * CELLS[-1]
_BALL = 16.0  # a ball must be narrower by this than the interval that it becomes
_MOST_STEPS = 60
_CLOSE = Fraction(1, 10**12)
_TILTS = 1.25
_MOST_DEEPENINGS = 12
_MOST_LOG_CELLS = 600.0  # of a number that floats hold
_STEEPEST = 2.5
_SHOWN = 8  # digits


@final
@dataclass(frozen=True)
class GridPair(FactorsPair):
    """A product of pairs, each asked for its tails alone.

    The enclosure gets narrower as flint's precision rises, as the square of the grid where losses
    have densities, down to the finest grid of `CELLS`.
    """

    seldom_below: ClassVar[Fraction] = Fraction(1, 10**8)

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return a ball around the two bounds.

        Raises UndecidedError, with what was reached and the memory that it would take, if the
        width that is asked for needs a finer grid than there is.
        """
        ledger.note("grid")
        wanted = asked_width.get()
        if wanted is None:
            return _ball(*self.bounds(epsilon, _cells()))
        widths: list[float] = []
        for cells in CELLS:
            lower, upper = self.bounds(epsilon, cells)
            if upper.is_zero():
                return arb(0)
            widths.append(float((upper - lower) / lower) if lower > 0 else math.inf)
            if widths[-1] <= float(wanted) / _BALL:
                break
            _refuse_early(
                widths,
                float(wanted) / _BALL,
                f"delta in {_ends(lower, upper)}",
            )
        return _ball(lower, upper)

    def refuse_seldom(self, epsilon: ExactReal) -> None:
        """Raise UndecidedError where a width below `seldom_below` is asked for and is not near.

        The coarsest grid then knows H(ε) of losses with densities to less than a factor of two.
        """
        wanted = asked_width.get()
        if wanted is None or wanted >= self.seldom_below:
            return
        lower, upper = self.bounds(epsilon, CELLS[0])
        if not upper < 2 * lower:
            raise UndecidedError(
                f"Reached delta in {_ends(lower, upper)} on a grid of {CELLS[0]} points, and no "
                "contour was short enough. Ask for a larger relative_width.",
                reached=float((upper - lower) / lower) if lower > 0 else math.inf,
            )

    def inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Enclose ε(δ) by the points at which the two bounds pass δ.

        Raises UndecidedError as for `hockey_stick`.
        """
        ledger.note("grid")
        widths: list[float] = []
        start = _guess(self.any_factors, float(delta.ball().log()))
        place = _place(self.any_factors, start)
        for cells in CELLS:
            low = self._crossing(delta, cells, place, start, above=False)
            high = self._crossing(delta, cells, place, start, above=True)
            size = max(min(abs(low), abs(high)), Fraction(1, 10**9))
            widths.append(float((high - low) / size))
            if widths[-1] <= float(relative_width):
                break
            reached = f"epsilon in [{float(low):.8g}, {float(high):.8g}]"
            _refuse_early(widths, float(relative_width), reached)
        return Interval.of_exact(low, 20).hull(Interval.of_exact(high, 20))

    def upper_epsilon(self, delta: ExactReal, cells: int) -> Fraction:
        """Return a point, near the least one, at which H is certainly at most δ."""
        start = _guess(self.any_factors, float(delta.ball().log()))
        return self._crossing(delta, cells, _place(self.any_factors, start), start, above=True)

    def _crossing(
        self, delta: ExactReal, cells: int, place: tuple[int, float], start: float, *, above: bool
    ) -> Fraction:
        """Return a point, near the root, at which the bound is certainly on its side of δ."""

        def excess(at: Fraction) -> float:
            bound = self.bounds(ExactReal.of_rational(at), cells, place)[above]
            with ctx.workprec(_PRECISION):
                value = bound.upper() if above else bound.lower()
                if not value > 0:
                    return -1e4
                found = (value / delta.ball()).log()
                return float(found.upper() if above else found.lower())

        sign = 1 if above else -1
        step = Fraction(max(abs(start), 1.0)).limit_denominator(1000) / 16
        low = high = Fraction(start).limit_denominator(1 << 30)
        while excess(high) > 0:
            low, high, step = high, high + step, 2 * step
        while excess(low) <= 0 and low > -(1 << 40):
            low, high, step = low - step, low, 2 * step
        at_low, at_high = excess(low), excess(high)
        for turn in range(_MOST_STEPS):
            if high - low <= _CLOSE * max(abs(low), abs(high)):
                break
            share = at_low / (at_low - at_high) if turn % 3 < 2 else 0.5
            share = min(max(share + sign * 1e-10, 1e-9), 1 - 1e-9)
            middle = low + (high - low) * Fraction(share).limit_denominator(1 << 40)
            value = excess(middle)
            if value > 0:
                low, at_low = middle, value
            else:
                high, at_high = middle, value
        return high if above else low

    def bounds(
        self, epsilon: ExactReal, cells: int, place: tuple[int, float] | None = None
    ) -> tuple[arb, arb]:
        """Return the bounds of H(ε) on a grid with so many points.

        `place` is the depth and the tilt of another ε nearby, whose sums are used again: the
        bounds hold at any tilt.
        """
        ledger.note("grid")
        known = self.exact_max_loss()
        with ctx.workprec(_PRECISION):
            if known is not None and epsilon >= known:
                return arb(0), arb(0)
            if epsilon.ball() >= self.max_loss():
                return arb(0), arb(0)
            if self.infinity_mass() == 1:
                return arb(1), arb(1)
            depth, s = place or _place(self.any_factors, float(epsilon))
            above = _composed(self, cells, depth, s, above=True).hockey_stick(epsilon)
            below = _composed(self, cells, depth, s, above=False).hockey_stick(
                epsilon, dropped=False
            )
            floor = -epsilon.ball().expm1()
            upper = above.min(arb(1)) if above.is_finite() else arb(1)
            return below.max(floor).max(arb(0)), upper

    def reference(self) -> Reference:
        """Raise NotApplicableError: there is no second route to these products."""
        raise NotApplicableError(
            "The mpmath route does not integrate over products of losses that no formula is known "
            "for; the two bounds of the grid are each proved."
        )


def memory(cells: int) -> int:
    """Return the bytes that a grid of so many points takes, roughly."""
    return 6 * BYTES * cells


def _refuse_early(widths: list[float], wanted: float, reached: str) -> None:
    """Raise UndecidedError if the finest grid will not do, as far as the widths so far tell.

    One width below 1 tells it where even a fall with a power of the grid above the square, which no
    loss has for long, would not do.
    """
    done, order = len(widths), 2.0
    finest = widths[-1] * (CELLS[done - 1] / CELLS[-1]) ** _STEEPEST
    hopeless = widths[-1] < 1 and finest > wanted
    told = done > 1 and widths[-1] > wanted and math.isfinite(widths[-1])
    if done < len(CELLS) and not (told or hopeless):
        return
    if done > 1 and math.isfinite(widths[-1]):
        order = math.log(widths[-2] / widths[-1]) / math.log(CELLS[done - 1] / CELLS[done - 2])
        order = min(max(order, 0.5), 2.0) if math.isfinite(order) else 1.0
    if widths[-1] * (CELLS[done - 1] / CELLS[-1]) ** order <= wanted:
        return
    log_cells = math.inf
    if wanted > 0:
        log_cells = math.log(CELLS[done - 1])
        log_cells += (math.log(widths[-1]) - math.log(wanted)) / order
    if log_cells > _MOST_LOG_CELLS:
        raise UndecidedError(
            f"Reached {reached} on a grid of {CELLS[done - 1]} points, and {CELLS[-1]} points are "
            "the most. Ask for a larger relative_width."
        )
    cells = math.exp(log_cells)
    raise UndecidedError(
        f"Reached {reached}, of relative width {widths[-1]:.1e}, on a grid of {CELLS[done - 1]} "
        f"points; {wanted:.1e} would take about {cells:.1e} points and "
        f"{memory(int(cells)) / 2**30:.1e} GiB, and {CELLS[-1]} points are the most. Ask for a "
        "larger relative_width.",
        reached=widths[-1],
    )


def _ends(lower: arb, upper: arb) -> str:
    """Return the ends as decimals, which reach as far as the numbers do."""
    low = Interval.of_ball(lower.lower().max(arb(0)), _SHOWN).lower
    high = Interval.of_ball(upper.upper(), _SHOWN).upper
    return f"[{low.normalize():g}, {high.normalize():g}]"


def _ball(lower: arb, upper: arb) -> arb:
    return lower.lower().max(arb(0)).union(upper.upper())


def _cells() -> int:
    level = max(0, min(len(CELLS) - 1, (ctx.prec // 128).bit_length() - 1))
    return CELLS[level]


def _round_tilt(tilt: float) -> float:
    """Round to a power of a fixed ratio: neighbouring ε share their sums."""
    return _TILTS ** round(math.log(tilt) / math.log(_TILTS))


@final
@dataclass(frozen=True)
class _Plan:
    """The grid and the laws of the single releases on it, also as floats."""

    origins: tuple[Fraction, ...]
    step: Fraction
    laws: tuple[tuple[Discretised, int], ...]
    floats: tuple[Floats, ...]
    """Losses and logarithms of the masses of each upper law."""


@functools.lru_cache(maxsize=1024)
def _place(factors: tuple[Factor, ...], epsilon: float) -> tuple[int, float]:
    """Return how far out the ends of the grid must lie for δ(ε), and the tilt there."""
    count = sum(n for _, n in factors)
    depth = 0
    for _ in range(_MOST_DEEPENINGS):
        floats = _coarse(factors, depth)
        s = tilt(floats, epsilon)
        log_delta = log_bound(floats, s, epsilon)
        needed = math.ceil(max(0.0, math.log(count) - log_delta) / _STRIDE)
        if needed <= depth:
            break
        depth = needed
    return depth, _round_tilt(s)


def _guess(factors: tuple[Factor, ...], log_delta: float) -> float:
    """Return an ε near the root, from Chernoff's bound; an estimate for the choice of the grid."""
    low, high = -1.0, 1.0

    def excess(epsilon: float) -> float:
        depth, s = _place(factors, epsilon)
        return log_bound(_coarse(factors, depth), s, epsilon) - log_delta

    while excess(high) > 0:
        low, high = high, 2 * high
    while excess(low) < 0 and low > -1e6:
        low, high = 2 * low, low
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high


@functools.lru_cache(maxsize=64)
def _plan(pair: GridPair, cells: int, depth: int, tilt: float) -> _Plan:
    """Choose the grid: its step from the spread of the tilted sum, its ends from the tails.

    Of one pair both ends, of the others the upper ends are grid points.
    """
    coarse = _coarse(pair.any_factors, depth)
    low, high = window(coarse, tilt)
    ends = [_reach(each, depth) for each, _ in pair.any_factors]
    longest = max(top - bottom for bottom, top in ends)
    wanted = max(Fraction(high - low) / cells, longest / cells)
    bottom, top = ends[_aligned(pair.any_factors)]
    step = (top - bottom) / max(_FEWEST, math.ceil((top - bottom) / wanted))
    needed = float((high - low) / float(step))
    if needed > _MOST_CELLS:
        raise NotApplicableError(
            f"The sum of these losses spreads over {high - low:.3g}, which at the step of one "
            f"release ({float(step):.3g}) takes {needed:.1e} grid points and about "
            f"{memory(int(needed)) / 2**30:.1e} GiB. Compose fewer releases. Rényi divergences, "
            "rho and the largest loss have no such limit."
        )
    laws, origins = [], []
    for (each, count), (bottom, top) in zip(pair.any_factors, ends, strict=True):
        first = -max(_FEWEST, math.ceil((top - bottom) / step))
        laws.append((_discretised(each, top, step, first), count))
        origins.append(top)
    return _Plan(tuple(origins), step, tuple(laws), _as_floats(laws, origins, step))


def _aligned(factors: Sequence[Factor]) -> int:
    """Return the pair whose ends the step divides: the most frequent with a bounded loss."""
    counts = [count if pair.max_loss().is_finite() else 0 for pair, count in factors]
    return counts.index(max(counts))


@functools.lru_cache(maxsize=256)
def _reach(pair: Pair, depth: int) -> tuple[Fraction, Fraction]:
    """Return the ends of the grid of one pair, moved a little apart where they coincide."""
    low, high = reach(pair, -_TAIL - _STRIDE * depth)
    return (low, high) if high > low else (low - Fraction(1, 1 << 20), low)


@functools.lru_cache(maxsize=64)
def _discretised(pair: Pair, origin: Fraction, step: Fraction, first: int) -> Discretised:
    return discretise(pair, origin, step, first, 0)


def _as_floats(
    laws: Sequence[tuple[Discretised, int]], origins: Sequence[Fraction], step: Fraction
) -> tuple[Floats, ...]:
    found = []
    for (law, count), origin in zip(laws, origins, strict=True):
        index = np.arange(len(law.above.masses)) + law.above.first
        losses = float(origin) + float(step) * index
        logs = np.array(
            [float(m.mid().log()) if m.mid() > 0 else -np.inf for m in law.above.masses]
        )
        found.append((losses, logs, count))
    return tuple(found)


@functools.lru_cache(maxsize=64)
def _coarse(factors: tuple[Factor, ...], depth: int) -> tuple[Floats, ...]:
    laws, origins = [], []
    longest = max(top - bottom for bottom, top in (_reach(p, depth) for p, _ in factors))
    step = longest / COARSE
    for each, count in factors:
        bottom, top = _reach(each, depth)
        first = -max(_FEWEST, math.ceil((top - bottom) / step))
        laws.append((_discretised(each, top, step, first), count))
        origins.append(top)
    return _as_floats(laws, origins, step)


@functools.lru_cache(maxsize=32)
def _composed(pair: GridPair, cells: int, depth: int, tilt: float, *, above: bool) -> TiltedSum:
    plan = _plan(pair, cells, depth, tilt)
    with ctx.workprec(_PRECISION):
        s, h = arb(tilt), ball(plan.step)
        log_moment, start, shift, certain = arb(0), Fraction(0), arb(0), arb(0)
        total: Piece | None = None
        for n, (found, count) in enumerate(plan.laws):
            law = found.above if above else found.below
            own = plan.origins[n] + plan.step * law.first
            moment, piece = _tilted(law, s, h)
            log_moment += count * (moment.log() + s * (ball(own) + law.shift))
            single = float(ball(own) + law.shift)
            piece = _power(piece, count, plan.floats[n], (single, float(plan.step)), tilt)
            start, shift = start + count * own, shift + count * law.shift
            certain += count * (-law.infinity).log1p()
            total = piece if total is None else total.times(piece)
            low, high = window(plan.floats[: n + 1], tilt)
            base, step = float(ball(start) + shift), float(plan.step)
            total = total.cut((low - base) / step, (high - base) / step)
        assert total is not None
        masses = tuple(total.polynomial.coeffs())
        return TiltedSum(
            tilt=s,
            log_moment=log_moment,
            step=plan.step,
            origin=start + plan.step * total.first,
            shift=shift,
            masses=masses,
            dropped=(1 - sum(masses, start=arb(0))).max(arb(0)),
            infinity=-certain.expm1(),
        )


def _tilted(law: Law, s: arb, h: arb) -> tuple[arb, Piece]:
    """Return Σ p_i e^{shi} and its terms divided by it."""
    growth, factor = (s * h).exp(), arb(1)
    weights = []
    for mass in law.masses:
        weights.append(mass * factor)
        factor *= growth
    moment = sum(weights, start=arb(0))
    return moment, Piece(0, arb_poly(weights) * (1 / moment))


def _power(
    piece: Piece,
    count: int,
    floats: Floats,
    grid: tuple[float, float],
    tilt: float,
) -> Piece:
    """Return the law of the sum of `count` copies, by squaring, cut at every stage.

    `grid` is the loss of the first mass, and the step.
    """
    start, step = grid
    result, done = piece, 1
    for bit in bin(count)[3:]:
        result, done = result.times(result), 2 * done
        if bit == "1":
            result, done = result.times(piece), done + 1
        low, high = window(((floats[0], floats[1], done),), tilt)
        base = done * start
        result = result.cut((low - base) / step, (high - base) / step)
    return result

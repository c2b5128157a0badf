"""Contour integrals in floats: estimates of profiles and tails in about a millisecond.

The integrals are those of `fourier.measure` on the line through the saddle point. Nothing here is
proved. The aliasing bound determines the step, the size of the integrand on shifted contours the
nodes in x, and the line ends where its terms are negligible. Logarithms of moments keep their
relative accuracy for large counts and small q, because the first-order terms, whose expectation is
known, are subtracted before summation.

Neighbouring ε and powers M^n, as in a table of numbers of runs, share a line. It may be three
widths away from a saddle point, where its terms are e^4.5 times the integral. For each ε and n an
exponential of each term is left to compute, in one array for all.

A probability x is stored as ln x and ln(1 − x); the smaller of x and 1 − x is an integral, so
neither loses digits near 0 or 1. Inverses are roots of the log-odds ln x − ln(1 − x), which are
decreasing and smooth in ε over the whole range.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, final

from dpassay.accountant.composition.fourier.saddle import Strip, nearest_bound, saddle
from dpassay.accountant.composition.losses.float_mixture import TARGET, FloatMixture, ManyMixtures
from dpassay.accountant.core.arrays import NDArray, np
from dpassay.accountant.errors import UndecidedError

if TYPE_CHECKING:
    Floats: TypeAlias = NDArray[np.float64]
    Complexes: TypeAlias = NDArray[np.complex128]

MOST_NODES = 1 << 12
"""Largest number of nodes of a line, about a millisecond in floats; beyond it the line is refused.
"""
_CLOSE_SADDLE = 0.1
"""Error of the saddle point in its widths: a line this close has as few nodes as the exact one."""
_NEAR = 0.1
"""Error of ln δ that ends the search for a saddle point; Newton's method on its line does the rest.
"""
_TINY = 1e-12
"""Relative width of a bracket of saddle points below which floats have no information."""
_MOST_STEPS = 200
"""Limit on the steps of a search: each bisects a bracket at worst, and floats allow fewer."""
_MOST_LOSS = 8.0
"""How far ln of an integral may lie below that of its terms: e^8 units of rounding are 1e-12."""
_AHEAD = 1.3
"""Factor by which a line extends beyond the expected end of its terms."""
_AWAY = 3.0
"""Largest distance of a line from the saddle point, in the latter's widths for a normal law."""
_SHORTER = 0.8
"""A line near the saddle point is preferred if it shortens the period to less than this share."""
_MOST_RISE = 1.5
"""Largest increase of the terms on such a line, as a logarithm."""
_MOST_GROWTH = 5.0
"""Largest factor by which a line that is too short is extended."""
_LEAST_GROWTH = 1.02
"""Ratio of the tilts of an unknown and a known moment below which the search is given up."""
_LEAP = 16.0
"""Largest ratio of two successive tilts in a search; larger ones may overflow."""
_REACH = 1.0
"""How far from its own ε a line serves others, in standard deviations of its tilted law: further
away more terms cancel, and the period is longer."""
_SAME = 0.01
"""The same for a line that is made for a single ε, to be shared by the ends of its enclosure."""
_LOST_NEAR = 0.5
"""Relative distance from an ε at which a line lost its digits where no shared line is tried."""
_NEIGHBOUR = 1.0
"""Difference of logarithms up to which a search begins at the last root."""
_MOST_LINES = 32
"""Number of lines that are kept for later questions."""
_FEW_NODES = 1 << 10
"""Largest number of nodes of a shared line; a longer one takes more time than it saves."""
_MORE = 6.0
"""Largest power that a line made for one power shall serve too, as a multiple of it."""
_LEFT = 2.0
"""Distance of a shared line from the rightmost saddle point that it serves, in its widths."""
_SHARED_LOSS = 5.0
"""How far ln of an integral may lie below that of the terms of a shared line, as at three widths
from a saddle point."""
_ROOM = 1.5
"""Addition to the targeted −ln of the error of a line for several integrals, whose sizes are not
yet known exactly when it is made."""
_VAIN = 4
"""Number of successive integrals without a line after which no more are tried."""
_MOST_MOVES = 12
"""Largest number of Newton steps on a shared line, on which three or four are usual."""
_CELLS = 1 << 17
"""Entries of a block of terms: 2 MB, which caches hold."""
_LEAST_LOG = -0.5
"""Values of ln δ above this are compared directly, those below by the logarithm of −ln δ, which is
closer to linear there."""
SMALL_DELTA = -2.5
"""For smaller ln δ, the saddle point of δ is sought instead of ε."""
_SETTLED = 1e-7
"""Error of log-odds from which one Newton step is accurate to rounding."""
_ROUNDING = 1e-12
"""The same relative to the logarithm."""
_WIDER = 1.6
"""Factor by which the largest step grows while no bracket is known."""
_TOGETHER = 8
"""Number of kinds of samples from which their moments are summed together."""
_INFINITY = math.inf
CALL = Strip(0.0, _INFINITY, (0.0, -1.0))
MIDDLE = Strip(-1.0, 0.0, (0.0, -1.0))
PUT = Strip(-_INFINITY, -1.0, (0.0, -1.0))
ABOVE_P = Strip(0.0, _INFINITY, (0.0,))
BELOW_P = Strip(-_INFINITY, 0.0, (0.0,))
ABOVE_Q = Strip(-1.0, _INFINITY, (-1.0,))
BELOW_Q = Strip(-_INFINITY, -1.0, (-1.0,))


class FloatMoments(Protocol):
    """ln M(c) of one loss at real points, in floats."""

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """Return ln M(c) and its first two derivatives."""


class FloatTransform(FloatMoments, Protocol):
    """ln M(z) of one loss, in floats."""

    def log_ratio(self, c: float, t: Floats) -> tuple[Floats, Floats]:
        """Return ln M(c + it) − ln M(c) − it (ln M)'(c), as real and imaginary parts."""


@final
@dataclass(frozen=True)
class FloatGaussian:
    """ln M(z) = z(z + 1) μ²/2."""

    half: float

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """Return the closed form."""
        return c * (c + 1) * self.half, (2 * c + 1) * self.half, 2 * self.half

    def log_ratio(self, c: float, t: Floats) -> tuple[Floats, Floats]:
        """Return −t²μ²/2."""
        return -self.half * t * t, np.zeros_like(t)


@final
class FloatSum:
    """Moments of a sum of independent losses, and saddle-point approximations of δ."""

    def __init__(self, factors: Sequence[tuple[FloatMoments, int]]) -> None:
        self._factors = tuple(factors)
        for side in (False, True):
            rest, many = list[tuple[FloatMoments, int]](), list[tuple[FloatMixture, int]]()
            for part, count in self._factors:
                if isinstance(part, FloatMixture) and part.is_whole and part.mixed_first == side:
                    many.append((part, count))
                else:
                    rest.append((part, count))
            if len(many) >= _TOGETHER:
                self._factors = ((ManyMixtures(many), 1), *rest)
        self.cumulants = functools.lru_cache(maxsize=256)(self._cumulants)

    def _cumulants(self, c: float) -> tuple[float, float, float]:
        size = mean = variance = 0.0
        for part, count in self._factors:
            found = part.cumulants(c)
            size += count * found[0]
            mean += count * found[1]
            variance += count * found[2]
        return size, mean, variance

    def guess(self, log_delta: float) -> float:
        """Return an ε whose saddle-point approximation of ln δ is near log_delta."""
        return self.at_saddle(self.saddle_of(log_delta))

    def at_saddle(self, s: float) -> float:
        """Return the ε whose saddle point is s > 0."""
        return self.cumulants(s)[1] - 1 / s - 1 / (s + 1)

    def saddle_of(self, log_delta: float, start: float = 1.0) -> float:
        """Return the s whose approximation of ln δ is log_delta, by Newton's method in ln s."""
        low, high, s, last = 0.0, math.inf, start, math.inf
        for _ in range(_MOST_STEPS):
            try:
                value, fall = self._approximation(s)
            except UndecidedError:  # s is too large, for instance beyond a cut
                if s < _LEAST_GROWTH * low or low == 0.0:
                    raise
                high = s
                s = math.sqrt(low * high)
                continue
            move = _log_move(value, log_delta) / fall
            value -= log_delta
            low, high = (s, high) if value > 0 else (low, s)
            if abs(value) < _NEAR or high - low < _TINY * high:
                return s
            leap = math.log(_LEAP)
            wanted = s * math.exp(min(max(move, -leap), leap))
            slow = abs(value) > 0.5 * last and low > 0 and math.isfinite(high)
            last = abs(value)
            s = math.sqrt(low * high) if slow or not low < wanted < high else wanted
        raise UndecidedError(f"No saddle was found for ln(delta)={log_delta:.6g} in floats.")

    def _approximation(self, s: float) -> tuple[float, float]:
        """Return the saddle-point approximation of ln δ at the ε of s, and its decrease with ln s.

        The decrease neglects the change of the curvature.
        """
        size, _, variance = self.cumulants(s)
        curvature = variance + s**-2 + (s + 1) ** -2
        kappa = math.log(s * (s + 1)) + 0.5 * math.log(2 * math.pi * curvature)
        return size - s * self.at_saddle(s) - kappa, s * s * curvature


@final
class Powers:
    """The powers M^n of one transform, as for runs of n steps, and the lines that they share."""

    def __init__(self, factors: Sequence[tuple[FloatTransform, int]]) -> None:
        self._factors, self.moments = tuple(factors), FloatSum(factors)
        self._lines: dict[Strip, list[_Shared]] = {}
        self.asked = 0
        """The number of powers that were requested."""
        self.vain = 0
        """The last power for which no shared line worked; the next attempt is for twice as many."""

    def variances(self, c: float) -> list[float]:
        """Return the second derivative of count·ln M for each factor."""
        return [count * part.cumulants(c)[2] for part, count in self._factors]

    def log_ratio(self, c: float, t: Floats) -> tuple[Floats, Floats]:
        """Return ln M(c + it) − ln M(c) − it (ln M)'(c)."""
        real, imaginary = np.zeros(len(t)), np.zeros(len(t))
        for part, times in self._factors:
            a, b = part.log_ratio(c, t)
            real += times * a
            imaginary += times * b
        return real, imaginary

    def terms(  # noqa: PLR0917
        self, power: int, strip: Strip, c: float, step: float, reach: float, most: int
    ) -> tuple[Complexes, Complexes]:
        """Return ln M^n(c + it)/M^n(c) without its phase e^{it·mean}, and that M^n times κ(c + it).

        Both end where M^n κ is negligible, at first assumed to be at `reach`. Raises UndecidedError
        if there are more than `most` terms, or if they overflow.
        """
        while True:
            reach = min(_AHEAD * reach, most * step)
            t = np.arange(0.0, 3.0 + math.ceil(reach / step)) * step
            with np.errstate(over="ignore", invalid="ignore"):
                real, imaginary = self.log_ratio(c, t)
                logs, z = power * real + 1j * (power * imaginary), c + 1j * t
                found: Complexes = np.exp(logs)
                for pole in strip.poles:
                    found /= z - pole
                sizes = np.abs(found) / abs(found[0])
            if not np.isfinite(sizes).all():
                raise UndecidedError(f"The terms of the contour at {c:.6g} are beyond floats.")
            count = int(np.flatnonzero(sizes > math.exp(-TARGET - 1.0))[-1]) + 1
            if 8 * count <= 7 * len(t):
                return logs[:count], found[:count]
            if reach == most * step:
                raise UndecidedError(f"The contour at {c:.6g} needs too many nodes.")
            size = -math.log(float(sizes[7 * len(t) // 8 :].max()))
            reach *= min(max((TARGET + 1.0) / max(size, 1.0), 1.0), _MOST_GROWTH)

    def answers(
        self, strip: Strip, n: Floats, points: Floats, *, inverse: bool = False
    ) -> tuple[Floats, Floats]:
        """Return ln G(ε) of M^n and its derivative, for each n and ε; NaN where floats lose them.

        If `inverse`, the points are values of ln G, and each ε is returned in its place.
        """
        found = self.known(strip, n, points, inverse=inverse)
        left, order = np.isnan(found[0]), (-points if inverse else points) / n
        tries = _VAIN
        while left.any() and tries:
            first = int(np.argmax(np.where(left, order, -math.inf)))  # the rightmost, nearly
            left[first] = False
            self.extend(strip, n, points, found, np.append(first, left.nonzero()), inverse=inverse)
            tries = tries - 1 if np.isnan(found[0, first]) else _VAIN
            left &= np.isnan(found[0])
        return found[0], found[1]

    def extend(
        self,
        strip: Strip,
        n: Floats,
        points: Floats,
        found: Floats,
        cells: NDArray[np.intp],
        *,
        inverse: bool,
    ) -> None:
        """Make a line for the first cell and near ones, or else for it alone, and add answers."""
        lines, first = self._lines.setdefault(strip, []), cells[0]
        with contextlib.suppress(UndecidedError, ArithmeticError):
            s = self.saddle(strip, int(n[first]), float(points[first]), inverse=inverse)
            for some in (cells, cells[:1]):
                with contextlib.suppress(UndecidedError, ArithmeticError):
                    lines.append(self._line(strip, s, n[some], points[some], inverse=inverse))
                    lines[-1].answer(n, points, found, inverse=inverse)
                if not np.isnan(found[0, first]):
                    break
        del lines[:-_MOST_LINES]

    def known(self, strip: Strip, n: Floats, points: Floats, *, inverse: bool = False) -> Floats:
        """Return what existing lines answer, else NaN."""
        found = np.full((2, len(n)), math.nan)
        for line in reversed(self._lines.setdefault(strip, [])):
            line.answer(n, points, found, inverse=inverse)
            if not np.isnan(found[0]).any():
                break
        return found

    def saddle(self, strip: Strip, n: int, point: float, *, inverse: bool) -> float:
        """Return the saddle point of M^n for an ε, or for ln δ if `inverse`."""
        lines, times = self._lines.get(strip), FloatSum([(self.moments, n)])
        if not inverse:
            start = lines[-1].c if lines else None
            return saddle(times, strip, point, close=_CLOSE_SADDLE, start=start).c
        start = lines[-1].c * math.sqrt(lines[-1].power / n) if lines else 1.0  # of a similar δ
        return times.saddle_of(point, start)

    def _line(self, strip: Strip, s: float, n: Floats, points: Floats, *, inverse: bool) -> _Shared:
        """Return a line for the first n and point, whose saddle point is s, and some of the others.

        It is a little to the left of s, so that other saddle points, further left, are near it. The
        largest n determines where aliases are bounded.
        """
        known, alone = self.moments.cumulants, len(n) == 1
        curvature = float(n[0]) * known(s)[2] + sum((s - pole) ** -2 for pole in strip.poles)
        c = s if alone else s - min(_LEFT / math.sqrt(curvature), 0.5 * (s - strip.low))
        away, epsilon, value, _ = _placed(strip, c, known(c), n, points, inverse=inverse)
        near = away * away <= 2 * _SHARED_LOSS
        near[0] = True
        if not (alone or near[1:].any()):
            raise UndecidedError("No other integral is near.")
        n, epsilon, value = n[near], epsilon[near], value[near]
        i, target = int(n.argmax()), TARGET + _ROOM
        most, eps, log = FloatSum([(self.moments, int(n[i]))]), float(epsilon[i]), float(value[i])
        bounds, sides = list[tuple[float, float]](), list[tuple[float, float]]()
        for side in (-1, 1):
            _, at = nearest_bound(most, strip, eps, c, side, log, target)
            sides.append((at, 0.0 if at in strip.poles else known(at)[0]))
            excess = float((n * sides[-1][1] - at * epsilon - value).max())
            bounds.append(((max(excess, 0.0) + target) / abs(at - c), at))
        period = max(bounds)[0]
        at, shorter = _balanced(c, bounds, _AWAY / math.sqrt(curvature))
        if shorter < _SHORTER * period:
            rise = most.cumulants(at)[0] - at * eps + _log_kernel(strip, at)
            if rise < most.cumulants(c)[0] - c * eps + _log_kernel(strip, c) + _MOST_RISE:
                c, period = at, shorter
        power, step = int(n.min()), 2 * math.pi / period
        spread = power * known(c)[2] + sum((c - pole) ** -2 for pole in strip.poles)
        reach, largest = math.sqrt(2 * TARGET / spread), MOST_NODES if alone else _FEW_NODES
        logs, _ = self.terms(power, strip, c, step, reach, largest)
        t = step * np.arange(0.0, len(logs))
        kernel = np.ones(len(t), dtype=np.complex128)
        for pole in strip.poles:
            kernel /= c - pole + 1j * t
        kernel[0] *= 0.5
        loss = _MOST_LOSS if alone else _SHARED_LOSS
        return _Shared(strip, c, step, power, known(c), t, logs / power, kernel, sides, loss)


@final
class Estimator:
    """Estimates for a sum of independent losses, the power n of a transform that others share."""

    def __init__(self, powers: Powers, power: int) -> None:
        self.moments, self.powers, self.power = FloatSum([(powers.moments, power)]), powers, power
        powers.asked += 1
        self._lines: dict[Strip, list[Line]] = {}
        self.last: dict[Strip, tuple[float, tuple[float, ...]]] = {}
        """The last saddle point in each strip, and the points that bounded the aliases."""
        self._lost: dict[Strip, float] = {}
        """The last ε in each strip at which a line lost its digits."""
        self._root: tuple[float, float] | None = None
        self.cumulants = self.moments.cumulants

    def variances(self, c: float) -> list[float]:
        """Return the second derivative of count·ln M for each factor."""
        return [self.power * each for each in self.powers.variances(c)]

    def log_ratio(self, c: float, t: Floats) -> tuple[Floats, Floats]:
        """Return ln M(c + it) − ln M(c) − it (ln M)'(c)."""
        real, imaginary = self.powers.log_ratio(c, t)
        return self.power * real, self.power * imaginary

    def answers(
        self, strip: Strip, n: Floats, points: Floats, *, inverse: bool = False
    ) -> tuple[Floats, Floats]:
        """Return ln G(ε) and its derivative, or each ε, for n = 1; NaN where floats lose them."""
        found = np.full((2, len(n)), math.nan)
        for i, at in enumerate(points.tolist()):
            with contextlib.suppress(UndecidedError, ArithmeticError):
                found[:, i] = self.epsilon(at) if inverse else self.log_integral(strip, at)
        return found[0], found[1]

    def log_integral(self, strip: Strip, epsilon: float) -> tuple[float, float]:
        """Return ln G(ε) and its derivative, for the kernel with the poles of the strip.

        Raises UndecidedError if cancellation is too large.
        """
        line = None
        try:
            line = self.line(strip, epsilon)
            return line(epsilon)
        except UndecidedError:  # a line for this ε alone loses fewer digits than a shared one
            self._lost[strip] = epsilon
            if line is not None and line.is_alone and line.epsilon == epsilon:
                raise
            c = saddle(self, strip, epsilon, close=_CLOSE_SADDLE).c
            return self._line(strip, c, epsilon)(epsilon)

    def line(self, strip: Strip, epsilon: float) -> Line:
        """Return a line for ε, which may be that of a neighbour.

        From the second line on, lines are made such that they serve neighbours, unless one near ε
        has just lost its digits.
        """
        lines = self._lines.setdefault(strip, [])
        for line in reversed(lines):
            if abs(epsilon - line.epsilon) <= line.reach:
                return line
        start, _ = self.last.get(strip, (None, ()))
        c = saddle(self, strip, epsilon, close=_CLOSE_SADDLE, start=start).c
        lost = abs(epsilon - self._lost.get(strip, math.inf)) < _LOST_NEAR * abs(epsilon)
        lines.append(self._line(strip, c, epsilon, wide=bool(lines) and not lost))
        del lines[:-_MOST_LINES]
        return lines[-1]

    def _line(self, strip: Strip, c: float, epsilon: float, *, wide: bool = False) -> Line:
        """Return a line at or near the saddle point c, with a step for ε or (`wide`) near ε.

        If the moments explode near c, a line a little further away needs a shorter period.
        """
        size, mean, spread = self.cumulants(c)
        curvature = spread + sum((c - pole) ** -2 for pole in strip.poles)
        top = size - c * epsilon + _log_kernel(strip, c)
        level = top - 0.5 * math.log(2 * math.pi * curvature)
        reach = (_REACH if wide else _SAME) * math.sqrt(curvature)
        bounds = []
        for side in (-1, 1):
            known = [(epsilon, level)]
            if wide:
                known += [
                    (epsilon + move, level - c * move - 0.5 * _REACH**2) for move in (-reach, reach)
                ]
            bounds.append(
                max(nearest_bound(self, strip, at, c, side, log, TARGET) for at, log in known)
            )
        period = max(bounds)[0]
        self.last[strip] = c, tuple(s for _, s in bounds)
        at, shorter = _balanced(c, bounds, _AWAY / math.sqrt(curvature))
        if shorter < _SHORTER * period and not wide:
            there = self.cumulants(at)
            if there[0] - at * epsilon + _log_kernel(strip, at) < top + _MOST_RISE:
                c, period, (size, mean, spread) = at, shorter, there
        step = 2 * math.pi / period
        spread += sum((c - pole) ** -2 for pole in strip.poles)
        reach_of_terms = math.sqrt(2 * TARGET / spread)
        _, terms = self.powers.terms(self.power, strip, c, step, reach_of_terms, MOST_NODES)
        level += c * epsilon
        return Line(c, step, size, mean, level, terms, epsilon, reach, is_alone=not wide)

    def epsilon(self, log_delta: float) -> float:
        """Return the ε with ln δ(ε) = log_delta, for a δ below about 0.3.

        Each s is the saddle point of some ε, which has some δ, known to a few percent. From the s
        of this δ on, Newton's method stays on one line.
        """
        if (known := self._root) is not None and abs(known[0] - log_delta) < _NEIGHBOUR:
            with contextlib.suppress(UndecidedError, ArithmeticError):
                return self._newton(log_delta, known[1], None)
        n, at = np.array([1.0, _MORE]) * self.power, np.array([log_delta, log_delta])
        found = self.powers.known(CALL, n[:1], at[:1], inverse=True)
        if np.isnan(found[0, 0]) and self.powers.asked > 1 and self.power > 2 * self.powers.vain:
            found = np.full((2, 2), math.nan)
            self.powers.extend(CALL, n, at, found, np.arange(2), inverse=True)
            if np.isnan(found[0, 0]):
                self.powers.vain = self.power
        if not np.isnan(found[0, 0]):
            return float(found[0, 0])
        s = self.powers.saddle(CALL, self.power, log_delta, inverse=True)
        epsilon = self.moments.at_saddle(s)
        return self._newton(log_delta, epsilon, self._line(CALL, s, epsilon))

    def _newton(self, log_delta: float, epsilon: float, line: Line | None) -> float:
        """Return the root near ε, on the given line or on new ones."""
        for _ in range(_MOST_STEPS):
            value, slope = line(epsilon) if line else self.log_integral(CALL, epsilon)
            epsilon += (log_delta - value) / slope
            if abs(log_delta - value) <= max(_SETTLED, _ROUNDING * abs(log_delta)):
                self._root = log_delta, epsilon
                return epsilon
        raise UndecidedError(f"No epsilon was found for ln(delta)={log_delta:.6g} in floats.")


def _log_move(value: float, wanted: float) -> float:
    """Return the difference of two logarithms, as if small ones were linear in their logarithm."""
    if max(value, wanted) > _LEAST_LOG:
        return value - wanted
    return -value * math.log(wanted / value)


def _log_kernel(strip: Strip, c: float) -> float:
    return -sum(math.log(abs(c - pole)) for pole in strip.poles)


def _balanced(c: float, bounds: Sequence[tuple[float, float]], most: float) -> tuple[float, float]:
    """Return a point where the periods of two bounds are more alike, and the longer one there.

    A bound is a pair (size/|c − s|, s), whose size hardly depends on c.
    """
    (left, low), (right, high) = bounds
    left, right = left * (c - low), right * (high - c)
    even = (left * high + right * low) / (left + right)
    at = min(max(even, c - most), c + most)
    return at, max(left / (at - low), right / (high - at))


@final
@dataclass(frozen=True, slots=True)
class Line:
    """The terms of a sum on a line, for any ε near the one that it was made for."""

    c: float
    step: float
    size: float
    mean: float
    level: float
    """The saddle-point approximation of ln G(ε), plus cε."""
    terms: Complexes
    """M(c + it) κ(c + it)/M(c) without its phase e^{it·mean}."""
    epsilon: float
    reach: float
    """The largest distance of ε at which the line serves."""
    is_alone: bool = False
    """Whether it was made for this ε only."""

    def __call__(self, epsilon: float) -> tuple[float, float]:
        """Return ln G(ε) and its derivative.

        Raises UndecidedError if ln G is so far below the terms that floats lose it, which happens
        near a phase where a few large losses dominate the tilted law.
        """
        t = np.arange(0.0, len(self.terms)) * self.step
        terms = self.terms * np.exp(1j * (t * (self.mean - epsilon)))
        terms[0] *= 0.5
        total = float(terms.real.sum())
        value = self.size - self.c * epsilon + math.log(abs(total) * self.step / math.pi)
        if value < self.level - self.c * epsilon - _MOST_LOSS:
            raise UndecidedError(f"The terms at epsilon={epsilon:.6g} cancel in floats.")
        return value, float(np.dot(terms.imag, t)) / total - self.c


@final
@dataclass(frozen=True, slots=True)
class _Shared:
    """A line that serves every power M^n and ε with a saddle point near it."""

    strip: Strip
    c: float
    step: float
    power: int
    """The least power for which it is long enough."""
    cumulants: tuple[float, float, float]
    """ln M(c), and its first two derivatives."""
    t: Floats
    logs: Complexes
    """ln M(c + it) − ln M(c) − it (ln M)'(c)"""
    kernel: Complexes
    """κ(c + it), with the first value halved"""
    sides: Sequence[tuple[float, float]]
    """Points s on both sides of c with ln M(s), or 0 at a pole: M(s)^n e^{−sε} bounds aliases."""
    most_loss: float

    def answer(self, n: Floats, points: Floats, found: Floats, *, inverse: bool) -> None:
        """Replace NaN by ln G(ε) or ε and by the derivative of ln G, where the line has them."""
        away, epsilon, _, level = _placed(
            self.strip, self.c, self.cumulants, n, points, inverse=inverse
        )
        near = np.isnan(found[0]) & (away * away <= 2 * self.most_loss) & (n >= self.power)
        cells, rows = np.flatnonzero(near), max(1, _CELLS // len(self.t))
        for start in range(0, len(cells), rows):
            some = cells[start : start + rows]
            with np.errstate(all="ignore"):
                found[:, some] = self._answers(
                    n[some], epsilon[some], level[some], points[some], inverse=inverse
                )

    def _answers(
        self, n: Floats, epsilon: Floats, level: Floats, points: Floats, *, inverse: bool
    ) -> tuple[Floats, Floats]:
        """Return what `answer` needs; if `inverse`, Newton's method begins at the given ε."""
        size, mean, _ = self.cumulants
        moved, rows = n * mean - epsilon, self.kernel
        turned: Complexes = n[:, None] * self.logs
        for _ in range(_MOST_MOVES):
            turned.imag += moved[:, None] * self.t
            rows = rows * np.exp(turned)
            total = rows.real.sum(axis=1)
            value = n * size - self.c * epsilon + np.log(np.abs(total) * (self.step / math.pi))
            slope = rows.imag @ self.t / total - self.c
            lost = ~(value >= level - self.c * epsilon - self.most_loss)
            if not inverse:
                break
            moved, turned = (value - points) / slope, np.zeros_like(turned)
            epsilon = epsilon - moved
            apart = np.abs(value - points) > np.maximum(_SETTLED, _ROUNDING * np.abs(points))
            value = points
            if not (apart & ~lost).any():
                lost |= apart
                break
        else:
            lost |= apart
        for s, most in self.sides:  # aliases must be negligible
            excess = np.maximum(n * most - s * epsilon - value, 0.0) + TARGET
            lost |= ~(excess <= abs(s - self.c) * 2 * math.pi / self.step)
        return np.where(lost, math.nan, epsilon if inverse else value), slope


def _placed(
    strip: Strip,
    c: float,
    cumulants: tuple[float, float, float],
    n: Floats,
    points: Floats,
    *,
    inverse: bool,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return how far saddle points are to the left of c, ε, ln G(ε), and ln of the terms' sum + cε.

    The distance is in widths, and approximate as ln G is. If `inverse`, the points are ln G, and ε
    is approximate: the terms at c are e^{x²/2} times an integral whose saddle point is x away.
    """
    size, mean, spread = cumulants
    away = [c - pole for pole in strip.poles]
    curvature = n * spread + sum(each**-2 for each in away)
    top = n * mean - sum(1 / each for each in away)  # the ε with the saddle point c
    level = n * size + _log_kernel(strip, c) - 0.5 * np.log(2 * math.pi * curvature)
    if inverse:
        with np.errstate(invalid="ignore"):
            rise = c - np.sqrt(c * c + 2 * (level - c * top - points) / curvature)
        return rise * np.sqrt(curvature), top - curvature * rise, points, level
    x = (top - points) / np.sqrt(curvature)
    return x, points, level - c * points - 0.5 * x * x, level


@final
@dataclass(frozen=True, slots=True)
class Share:
    """A probability x that decreases with ε, as a float, or an array of them."""

    log: Any
    """ln x"""
    complement: Any = None
    """ln(1 − x), for tails and powers"""
    slope: Any = None
    """d ln x/dε, for profiles"""


@final
class FloatCurve:
    """The profile and the tails of a sum of losses, given its least and largest value.

    Every function raises UndecidedError if cancellation is too large.
    """

    def __init__(self, engine: Estimator, least: float, largest: float) -> None:
        self._engine, self._ends = engine, (least, largest)
        self._curves = Runs(engine, np.ones(1), least, largest)

    def runs(self, counts: NDArray[np.int64], of: int) -> Runs | None:
        """Return the curves for numbers of runs, where this one is for `of` runs.

        Return None if several releases have been combined into one, as Gaussian ones are.
        """
        power = self._engine.power
        if power % of:
            return None
        least, largest = (end / power for end in self._ends)
        return Runs(self._engine.powers, power // of * counts.astype(float), least, largest)

    def delta(self, epsilon: float) -> Share:
        """Return δ(ε)."""
        return self._share(self._curves.delta, epsilon, "epsilon")

    def epsilon(self, log_delta: float) -> float:
        """Return the ε with ln δ(ε) = log_delta."""
        return self._value(self._curves.epsilon, log_delta, "ln(delta)")

    def tail_of_p(self, epsilon: float) -> Share:
        """Return P(L > ε)."""
        return self._share(self._curves.tail_of_p, epsilon, "epsilon")

    def tail_of_q(self, epsilon: float) -> Share:
        """Return Q(L > ε)."""
        return self._share(self._curves.tail_of_q, epsilon, "epsilon")

    def power(self, alpha: float) -> Share:
        """Return P(L > ε) at the ε with Q(L > ε) = α."""
        return self._share(self._curves.power, alpha, "alpha")

    def quantile_of_q(self, alpha: float) -> float:
        """Return the ε with Q(L > ε) = α."""
        return self._value(self._curves.quantile_of_q, alpha, "alpha")

    def _value(self, question: Callable[[Floats], Floats], at: float, name: str) -> float:
        with np.errstate(all="ignore"):
            found = float(question(np.array([at]))[0])
        if math.isnan(found):
            raise _lost(f"{name}={at:.6g}")
        return found

    def _share(self, question: Callable[[Floats], Share], at: float, name: str) -> Share:
        with np.errstate(all="ignore"):
            found = question(np.array([at]))
        parts = found.log, found.complement, found.slope
        log, complement, slope = (float(each[0]) for each in parts)
        if math.isnan(log) or math.isnan(complement):
            raise _lost(f"{name}={at:.6g}")
        return Share(log, complement, slope)


@final
class Runs:
    """Profiles and tails of several powers M^n, each at one point; NaN where floats lose digits."""

    def __init__(self, known: Powers | Estimator, n: Floats, least: float, largest: float) -> None:
        """Take the least and the largest loss for n = 1."""
        self._known, self._n, self._least, self._largest = known, n, least, largest
        self._at_p, self._at_q = (known.moments.cumulants(c) for c in (0.0, -1.0))

    def delta(self, epsilon: Floats) -> Share:
        """Return δ(ε)."""
        return Share(*self._delta(self._n, epsilon))

    def epsilon(self, log_delta: Floats) -> Floats:
        """Return the ε with ln δ(ε) = log_delta."""
        n, rest = self._n, log_of_rest(log_delta)
        found = np.where(rest <= n * self._least, rest, math.nan)  # there δ(ε) = 1 − e^ε
        found = np.where(log_delta == -math.inf, n * self._largest, found)
        small = np.isnan(found) & (log_delta < SMALL_DELTA)
        if small.any():
            found[small] = self._known.answers(CALL, n[small], log_delta[small], inverse=True)[0]
        large = np.isnan(found) & ~small
        if large.any():
            odds, n = (log_delta - rest)[large], n[large]
            start = n * self._at_p[1] - np.sqrt(n * self._at_p[2])
            found[large] = self._root(self._delta, n, odds, start)
        return found

    def tail_of_p(self, epsilon: Floats) -> Share:
        """Return P(L > ε)."""
        above = epsilon >= self._n * self._at_p[1]
        return Share(*self._shares(self._n, epsilon, {ABOVE_P: above, BELOW_P: ~above}))

    def tail_of_q(self, epsilon: Floats) -> Share:
        """Return Q(L > ε)."""
        return Share(*self._tail_of_q(self._n, epsilon))

    def power(self, alpha: Floats) -> Share:
        """Return P(L > ε) at the ε with Q(L > ε) = α."""
        return self.tail_of_p(self.quantile_of_q(alpha))

    def quantile_of_q(self, alpha: Floats) -> Floats:
        """Return the ε with Q(L > ε) = α."""
        odds = np.log(alpha) - np.log1p(-alpha)
        return self._root(self._tail_of_q, self._n, odds, self._n * self._at_q[1])

    def _delta(self, n: Floats, epsilon: Floats) -> tuple[Floats, Floats, Floats]:
        spread = np.sqrt(n * self._at_p[2])
        call = epsilon >= n * self._at_p[1] - spread
        middle = ~call & (spread > 1) & (epsilon > n * self._at_q[1])
        parts = {CALL: call, MIDDLE: middle, PUT: ~call & ~middle}
        log, rest, slope = self._shares(n, epsilon, parts)
        low = epsilon <= n * self._least
        rest[low], log[low] = epsilon[low], log_of_rest(epsilon[low])
        slope[low] = -np.exp(rest[low] - log[low])
        return log, rest, slope

    def _tail_of_q(self, n: Floats, epsilon: Floats) -> tuple[Floats, Floats, Floats]:
        above = epsilon >= n * self._at_q[1]
        return self._shares(n, epsilon, {ABOVE_Q: above, BELOW_Q: ~above})

    def _shares(
        self, n: Floats, epsilon: Floats, parts: Mapping[Strip, NDArray[np.bool_]]
    ) -> tuple[Floats, Floats, Floats]:
        """Return ln x, ln(1 − x) and d ln x/dε from integrals in strips; x is 1 below all losses.

        It is 0 above them.
        """
        low, high = epsilon <= n * self._least, epsilon >= n * self._largest
        log = np.where(high, -math.inf, np.where(low, 0.0, math.nan))
        rest, slope = np.where(high, 0.0, np.where(low, -math.inf, math.nan)), log.copy()
        for strip, where in parts.items():
            some = np.flatnonzero(where & ~low & ~high)
            if not some.size:
                continue
            eps = epsilon[some]
            value, fall = self._known.answers(strip, n[some], eps)
            if strip == PUT:  # 1 − δ = e^ε − e^put
                kept = np.exp(value - eps)
                value, fall = eps + np.log1p(-kept), (1 - fall * kept) / (1 - kept)
            elif strip.poles == ABOVE_Q.poles:
                value, fall = value - eps, fall - 1
            value = np.minimum(value, 0.0)
            other = log_of_rest(value)
            if math.isinf(strip.high):
                log[some], rest[some], slope[some] = value, other, fall
            else:
                log[some], rest[some], slope[some] = other, value, -fall * np.exp(value - other)
        return log, rest, slope

    def _root(
        self,
        share: Callable[[Floats, Floats], tuple[Floats, Floats, Floats]],
        n: Floats,
        odds: Floats,
        first: Floats,
    ) -> Floats:
        """Return the ε with these log-odds, by Newton's method in brackets."""
        low, high, step = n * self._least, n * self._largest, np.sqrt(n * self._at_p[2])
        at, left = np.clip(first, low, high), np.flatnonzero(np.isfinite(odds))
        found = np.where(odds == math.inf, low, np.where(odds == -math.inf, high, math.nan))
        for _ in range(_MOST_STEPS):
            if not left.size:
                break
            log, rest, fall = share(n[left], at[left])
            gap, slope, here = log - rest - odds[left], fall * np.exp(-rest), at[left]
            low[left] = np.where(gap > 0, here, low[left])
            high[left] = np.where(gap > 0, high[left], here)
            usable = (slope < 0) & np.isfinite(slope) & np.isfinite(gap)
            side = np.sign(gap) * step[left]
            move = np.where(usable, -gap / slope, side)
            settled = np.maximum(_SETTLED, _ROUNDING * np.abs(odds[left]))
            done = usable & (np.abs(gap) <= settled)
            found[left[done]] = (here + move)[done]
            wanted, middle = here + np.clip(move, -step[left], step[left]), low[left] + high[left]
            middle = np.where(np.isfinite(middle), 0.5 * middle, here + side)
            at[left] = np.where((low[left] < wanted) & (wanted < high[left]), wanted, middle)
            left, step = left[~done & ~np.isnan(gap)], _WIDER * step
        return found


def log_of_rest(log: Floats) -> Floats:
    """Return ln(1 − e^log)."""
    rest = -np.exp(log)
    return np.where(log < -math.log(2), np.log1p(rest), np.log(-np.expm1(log)))


def _lost(where: str) -> UndecidedError:
    return UndecidedError(
        f"The estimate at {where} loses its digits to cancellation in floats. Ask for the "
        "enclosure, which raises its precision."
    )

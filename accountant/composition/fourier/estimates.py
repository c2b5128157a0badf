"""Contour integrals in floats: estimates of profiles and tails in about a millisecond.

The integrals are those of `fourier.measure` on the line through the saddle point. Nothing here is
proved. The aliasing bound determines the step, the size of the integrand on shifted contours the
nodes in x, and the line ends where its terms are negligible. Logarithms of moments keep their
relative accuracy for large counts and small q, because the first-order terms, whose expectation is
known, are subtracted before summation.

A probability x is stored as ln x and ln(1 − x); the smaller of x and 1 − x is an integral, so
neither loses digits near 0 or 1. Inverses are roots of the log-odds ln x − ln(1 − x), which are
decreasing and smooth in ε over the whole range.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, final

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
_AHEAD = 1.2
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
_NEIGHBOUR = 1.0
"""Difference of logarithms up to which a search begins at the last root."""
_MOST_LINES = 64
"""Number of lines that are kept for later questions."""
_FEW_NODES = 1 << 10
"""Largest number of nodes of a shared line; a longer one takes more time than it saves."""
_LESS, _MORE = 0.7, 6.0
"""Range of the powers that a shared line is made for, as multiples of the current power."""
_LEFT = 1.5
"""Distance of a shared line from the saddle point, towards those of larger powers, in its widths.
"""
_SHARED_LOSS = 5.0
"""How far ln of an integral may lie below that of the terms of a shared line."""
_MOST_SHARED = 8
"""Number of shared lines that are kept."""
_LEAST_LOG = -0.5
"""Values of ln δ above this are compared directly, those below by the logarithm of −ln δ, which is
closer to linear there."""
SMALL_DELTA = -2.5
"""For smaller ln δ, the saddle point of δ is sought instead of ε."""
_SETTLED = 1e-6
"""Error of log-odds from which one Newton step is accurate to rounding."""
_CLOSE = 1e-15
"""Relative size of the last step to a root."""
_ROUNDING = 1e-12
"""Relative size of steps which, if they no longer decrease, are due to rounding."""
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
    """The data that the powers M^n of one transform share, as for runs of n steps."""

    def __init__(self, factors: Sequence[tuple[FloatTransform, int]]) -> None:
        self.moments, self.lines = FloatSum(factors), list[_Shared]()
        self.asked = 0
        """The number of powers that were requested."""
        self.vain = 0
        """The last power for which no shared line worked; the next attempt is for twice as many."""


@final
class Estimator:
    """Estimates for a sum of independent losses, the power n of a transform that others share."""

    def __init__(
        self, factors: Sequence[tuple[FloatTransform, int]], powers: Powers, power: int
    ) -> None:
        self._factors, self.moments = tuple(factors), FloatSum([(powers.moments, power)])
        self._powers, self.power = powers, power
        powers.asked += 1
        self._lines: dict[Strip, list[Line]] = {}
        self.last: dict[Strip, tuple[float, tuple[float, ...]]] = {}
        """The last saddle point in each strip, and the points that bounded the aliases."""
        self._root: tuple[float, float] | None = None
        self.cumulants = self.moments.cumulants

    def to_power(self, power: int) -> Estimator:
        """Return the estimator for another power."""
        parts = [(part, count // self.power * power) for part, count in self._factors]
        return Estimator(parts, self._powers, power)

    def variances(self, c: float) -> list[float]:
        """Return the second derivative of count·ln M for each factor."""
        return [count * part.cumulants(c)[2] for part, count in self._factors]

    def log_integral(self, strip: Strip, epsilon: float) -> tuple[float, float]:
        """Return ln G(ε) and its derivative, for the kernel with the poles of the strip.

        Raises UndecidedError if cancellation is too large.
        """
        try:
            return self.line(strip, epsilon)(epsilon)
        except UndecidedError:  # a line for this ε alone loses fewer digits than a shared one
            c = saddle(self, strip, epsilon, close=_CLOSE_SADDLE).c
            return self._line(strip, c, epsilon)(epsilon)

    def line(self, strip: Strip, epsilon: float) -> Line:
        """Return a line for ε, which may be that of a neighbour.

        From the second line on, lines are made such that they serve neighbours.
        """
        lines = self._lines.setdefault(strip, [])
        for line in reversed(lines):
            if abs(epsilon - line.epsilon) <= line.reach:
                return line
        start, _ = self.last.get(strip, (None, ()))
        c = saddle(self, strip, epsilon, close=_CLOSE_SADDLE, start=start).c
        lines.append(self._line(strip, c, epsilon, wide=bool(lines)))
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
        _, terms = self._terms(strip, c, step, math.sqrt(2 * TARGET / spread))
        return Line(c, step, size, mean, level + c * epsilon, terms, epsilon, reach)

    def _terms(
        self, strip: Strip, c: float, step: float, reach: float, share: float = 1.0
    ) -> tuple[Complexes, Complexes]:
        """Return ln M(c + it)/M(c) without its phase e^{it·mean}, and that M times κ(c + it).

        Both end where M^share κ is negligible, at first assumed to be at `reach`. Raises
        UndecidedError if there are too many terms, or if they overflow.
        """
        most = (MOST_NODES if share == 1.0 else _FEW_NODES) * step
        while True:
            reach = min(_AHEAD * reach, most)
            t = np.arange(0.0, 3.0 + math.ceil(reach / step)) * step
            with np.errstate(over="ignore", invalid="ignore"):
                real, imaginary = self.log_ratio(c, t)
                logs, z = real + 1j * imaginary, c + 1j * t
                found: Complexes = np.exp(logs)
                for pole in strip.poles:
                    found /= z - pole
                sizes = np.exp((share - 1.0) * real) * np.abs(found) / abs(found[0])
            if not np.isfinite(sizes).all():
                raise UndecidedError(f"The terms of the contour at {c:.6g} are beyond floats.")
            count = int(np.flatnonzero(sizes > math.exp(-TARGET - 1.0))[-1]) + 1
            if 8 * count <= 7 * len(t):
                return logs[:count], found[:count]
            if reach == most:
                raise UndecidedError(f"The contour at {c:.6g} needs too many nodes.")
            size = -math.log(float(sizes[7 * len(t) // 8 :].max()))
            reach *= min(max((TARGET + 1.0) / max(size, 1.0), 1.0), _MOST_GROWTH)

    def log_ratio(self, c: float, t: Floats) -> tuple[Floats, Floats]:
        """Return ln M(c + it) − ln M(c) − it (ln M)'(c)."""
        real, imaginary = np.zeros(len(t)), np.zeros(len(t))
        for part, times in self._factors:
            a, b = part.log_ratio(c, t)
            real += times * a
            imaginary += times * b
        return real, imaginary

    def epsilon(self, log_delta: float) -> float:
        """Return the ε with ln δ(ε) = log_delta, for a δ below about 0.3.

        Each s is the saddle point of some ε, which has some δ, known to a few percent. From the s
        of this δ on, Newton's method stays on one line.
        """
        if (known := self._root) is not None and abs(known[0] - log_delta) < _NEIGHBOUR:
            with contextlib.suppress(UndecidedError, ArithmeticError):
                return self._newton(log_delta, known[1], None)
        for shared in reversed(self._powers.lines):
            if not _LESS <= self.power / shared.power <= _MORE:
                continue
            with contextlib.suppress(UndecidedError, ArithmeticError):
                return self._on_shared(shared, log_delta)
        s = self.moments.saddle_of(log_delta, self._start())
        if self._powers.asked > 1 and self.power > 2 * self._powers.vain:
            try:
                shared = self._made(s, log_delta)
                found = self._on_shared(shared, log_delta)
                self._powers.lines = [*self._powers.lines[1 - _MOST_SHARED :], shared]
                return found
            except (UndecidedError, ArithmeticError):
                self._powers.vain = self.power
        epsilon = self.moments.at_saddle(s)
        return self._newton(log_delta, epsilon, self._line(CALL, s, epsilon))

    def _start(self) -> float:
        """Return a first saddle point: at similar δ that of M^n is about n^−½ times that of M."""
        if not self._powers.lines:
            return 1.0
        known = self._powers.lines[-1]
        return known.c * math.sqrt(known.power / self.power)

    def _made(self, s: float, log_delta: float) -> _Shared:
        """Return a line to the left of the saddle point s, for this power and larger ones.

        The largest power needs the shortest step, at an ε estimated from ln δ and the line's terms.
        """
        moments, poles = self._powers.moments, CALL.poles
        _, _, spread = self.cumulants(s)
        c = s - _LEFT / math.sqrt(spread + sum((s - pole) ** -2 for pole in poles))
        largest = FloatSum([(moments, math.ceil(_MORE * self.power))])
        size, _, spread = largest.cumulants(c)
        top = size + _log_kernel(CALL, c) - 0.5 * math.log(spread)
        epsilon = (top - _SHARED_LOSS - log_delta) / c
        bounds = [
            nearest_bound(largest, CALL, epsilon, c, side, log_delta, TARGET) for side in (-1, 1)
        ]
        sides = [(at, moments.cumulants(at)[0] if at else 0.0) for _, at in bounds]
        known, step = moments.cumulants(c), 2 * math.pi / max(bounds)[0]
        reach = math.sqrt(2 * TARGET / (self.power * known[2]))
        logs, _ = self._terms(CALL, c, step, reach, _LESS)
        z = c + 1j * step * np.arange(0.0, len(logs))
        kernel: Complexes = np.asarray(1 / (z * (z + 1)), np.complex128)
        return _Shared(c, step, self.power, known, logs / self.power, kernel, sides)

    def _on_shared(self, shared: _Shared, log_delta: float) -> float:
        """Return the root found on a shared line, or raise UndecidedError if that fails."""
        line = shared.line(self.power)
        at = self._newton(log_delta, line.epsilon, line)
        shared.check(self.power, at, log_delta)
        return at

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
    most_loss: float = _MOST_LOSS

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
        if value < self.level - self.c * epsilon - self.most_loss:
            raise UndecidedError(f"The terms at epsilon={epsilon:.6g} cancel in floats.")
        return value, float(np.dot(terms.imag, t)) / total - self.c


@final
@dataclass(frozen=True, slots=True)
class _Shared:
    """A line for δ(ε) that serves every power M^n with a saddle point near it."""

    c: float
    step: float
    power: int
    """The power for which it was made."""
    cumulants: tuple[float, float, float]
    """ln M(c), and its first two derivatives."""
    logs: Complexes
    """ln M(c + it) − ln M(c) − it (ln M)'(c)"""
    kernel: Complexes
    sides: Sequence[tuple[float, float]]
    """Points s on both sides of c with ln M(s), or 0 at a pole: M(s)^n e^{−sε} bounds aliases."""

    def line(self, power: int) -> Line:
        """Return the line of M^power, or raise UndecidedError if it ends too early."""
        size, mean, spread = (power * each for each in self.cumulants)
        terms = np.exp(power * self.logs) * self.kernel
        count = int(np.flatnonzero(np.abs(terms) > abs(terms[0]) * math.exp(-TARGET - 1.0))[-1]) + 1
        if 8 * count > 7 * len(terms):
            raise UndecidedError(f"The shared line at {self.c:.6g} is too short.")
        poles = [self.c - pole for pole in CALL.poles]
        curvature = spread + sum(away**-2 for away in poles)
        level = size + _log_kernel(CALL, self.c) - 0.5 * math.log(2 * math.pi * curvature)
        at = mean - sum(1 / away for away in poles)
        return Line(self.c, self.step, size, mean, level, terms[:count], at, 0.0, _SHARED_LOSS)

    def check(self, power: int, epsilon: float, log_value: float) -> None:
        """Raise UndecidedError unless aliases are negligible compared with G(ε) of M^power."""
        for s, size in self.sides:
            excess = max(power * size - s * epsilon - log_value, 0.0) + TARGET
            if excess > abs(s - self.c) * 2 * math.pi / self.step:
                raise UndecidedError(f"The shared line at {self.c:.6g} has aliases.")


@final
@dataclass(frozen=True, slots=True)
class Share:
    """A probability x that decreases with ε: ln x, ln(1 − x) and d ln x/dε."""

    log: float
    complement: float
    """ln(1 − x)"""
    slope: float

    @property
    def odds(self) -> float:
        """The logarithm of x/(1 − x)."""
        return self.log - self.complement

    @property
    def odds_slope(self) -> float:
        """The derivative of the log-odds."""
        return self.slope * math.exp(-self.complement)


ALL = Share(0.0, -math.inf, 0.0)
NONE = Share(-math.inf, 0.0, -math.inf)


@final
class FloatCurve:
    """The profile and the tails of a sum of losses, given its least and largest value."""

    def __init__(self, engine: Estimator, least: float, largest: float) -> None:
        self._engine, self._least, self._largest = engine, least, largest
        self._roots: dict[str, tuple[float, float]] = {}
        _, self._mean, variance = self._engine.cumulants(0.0)
        self._spread = math.sqrt(variance)

    def of_runs(self, count: int, of: int) -> FloatCurve | None:
        """Return the curve for `count` runs, where this one is for `of` runs.

        Return None if several releases have been combined into one, as Gaussian ones are.
        """
        power = self._engine.power
        if power % of:
            return None
        share = count / of
        engine = self._engine.to_power(power // of * count)
        return FloatCurve(engine, share * self._least, share * self._largest)

    def delta(self, epsilon: float) -> Share:
        """Return δ(ε).

        Raises UndecidedError if cancellation is too large.
        """
        if epsilon >= self._largest:
            return NONE
        if epsilon <= self._least:
            return _share_of_complement(epsilon, 1.0)
        if epsilon >= self._mean - self._spread:
            return _share(*self._integral(CALL, epsilon))
        if self._spread > 1 and epsilon > self._engine.cumulants(-1.0)[1]:
            return _share_of_complement(*self._integral(MIDDLE, epsilon))
        put, slope = self._integral(PUT, epsilon)
        kept = math.exp(put - epsilon)  # 1 − δ = e^ε − e^put
        if put <= epsilon - 40:
            return _share_of_complement(epsilon, 1.0)
        complement = epsilon + math.log1p(-kept)
        return _share_of_complement(complement, (1 - slope * kept) / (1 - kept))

    def epsilon(self, log_delta: float) -> float:
        """Return the ε with ln δ(ε) = log_delta."""
        if log_delta == 0:
            return -math.inf
        if log_delta == -math.inf:
            return self._largest
        rest = _log_of_rest(log_delta)
        if rest <= self._least:  # below every loss δ(ε) = 1 − e^ε
            return rest
        odds = log_delta - rest
        if log_delta >= SMALL_DELTA:
            return self._root(self.delta, odds, self._mean - self._spread)
        try:
            return self._engine.epsilon(log_delta)
        except (UndecidedError, ArithmeticError) as error:
            raise _lost(f"ln(delta)={log_delta:.6g}") from error

    def tail_of_p(self, epsilon: float) -> Share:
        """Return P(L > ε)."""
        if not self._least < epsilon < self._largest:
            return ALL if epsilon <= self._least else NONE
        if epsilon >= self._mean:
            return _share(*self._integral(ABOVE_P, epsilon))
        return _share_of_complement(*self._integral(BELOW_P, epsilon))

    def tail_of_q(self, epsilon: float) -> Share:
        """Return Q(L > ε)."""
        if not self._least < epsilon < self._largest:
            return ALL if epsilon <= self._least else NONE
        above = epsilon >= self._engine.cumulants(-1.0)[1]
        value, slope = self._integral(ABOVE_Q if above else BELOW_Q, epsilon)
        return (_share if above else _share_of_complement)(value - epsilon, slope - 1)

    def power(self, alpha: float) -> Share:
        """Return P(L > ε) at the ε with Q(L > ε) = α."""
        if alpha in (0.0, 1.0):
            return ALL if alpha else NONE
        return self.tail_of_p(self.quantile_of_q(alpha))

    def quantile_of_q(self, alpha: float, settled: float = 0.0) -> float:
        """Return the ε with Q(L > ε) = α; stop after a step from log-odds with error `settled`."""
        odds = math.log(alpha) - math.log1p(-alpha)
        return self._root(self.tail_of_q, odds, self._engine.cumulants(-1.0)[1], settled)

    def _integral(self, strip: Strip, epsilon: float) -> tuple[float, float]:
        """Return ln G(ε) and its slope."""
        try:
            return self._engine.log_integral(strip, epsilon)
        except (UndecidedError, ArithmeticError) as error:
            raise _lost(f"epsilon={epsilon:.6g}") from error

    def _root(
        self, share: Callable[[float], Share], odds: float, first: float, settled: float = 0.0
    ) -> float:
        """Return the ε with these log-odds, by Newton's method in a bracket."""
        low, high = self._least, self._largest
        name = share.__name__
        if name in self._roots and abs(self._roots[name][0] - odds) < _NEIGHBOUR:
            first = self._roots[name][1]
        at, step = min(max(first, low), high), max(self._spread, 1e-300)
        last = math.inf
        for _ in range(_MOST_STEPS):
            found = share(at)
            if found.odds > odds:
                low = at
            else:
                high = at
            side = 1.0 if found.odds > odds else -1.0
            slope = found.odds_slope
            usable = slope < 0 and math.isfinite(slope) and math.isfinite(found.odds)
            move = (odds - found.odds) / slope if usable else side * step
            scale = max(abs(at), 1e-3 * self._spread)
            settled_here = usable and abs(found.odds - odds) <= settled
            close = abs(move) <= _CLOSE * scale or 0.5 * last <= abs(move) <= _ROUNDING * scale
            if settled_here or close:
                self._roots[name] = odds, at + move
                return at + move
            last = abs(move)
            wanted, step = at + min(max(move, -step), step), _WIDER * step
            if not low < wanted < high:
                finite = math.isfinite(low) and math.isfinite(high)
                wanted = 0.5 * (low + high) if finite else at + side * step
            if wanted in (low, high):  # neighbouring floats
                return wanted
            at = wanted
        raise _lost(f"log-odds {odds:.6g}")


def _share(log: float, slope: float) -> Share:
    log = min(log, 0.0)
    return Share(log, _log_of_rest(log), slope)


def _share_of_complement(complement: float, slope: float) -> Share:
    """Return the share with this ln(1 − x) and its slope."""
    complement = min(complement, 0.0)
    log = _log_of_rest(complement)
    return Share(log, complement, -slope * math.exp(complement - log))


def _log_of_rest(log: float) -> float:
    """Return ln(1 − e^log)."""
    if log == 0:
        return -math.inf
    return math.log1p(-math.exp(log)) if log < -0.7 else math.log(-math.expm1(log))


def _lost(where: str) -> UndecidedError:
    return UndecidedError(
        f"The estimate at {where} loses its digits to cancellation in floats. Ask for the "
        "enclosure, which raises its precision."
    )

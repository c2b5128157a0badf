"""The saddle–Fourier engine in floats: estimates of profiles and tails, in about a millisecond.

The integrals are those of `saddle_certified`, on the line through the saddle. Nothing is proved;
the step is chosen by the same aliasing bound, the nodes in x by the size of the integrand on
shifted contours, and the line ends where its terms no longer count. Logarithms of the moments
keep their relative accuracy for large counts and small q, as the terms of first order, whose
expectation is known, are subtracted before summation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, final

import numpy as np

from accountant.composition.saddle_bounds import Mixture
from accountant.composition.saddle_kernels import BY_EXCESS, Kernels, excess_of_log1p, on_line
from accountant.composition.saddle_search import Strip, nearest_bound, saddle
from accountant.errors import UndecidedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

TARGET = 34.5
"""−ln of the relative error that is aimed at."""
MOST_NODES = 1 << 12
MOST_POINTS = 1 << 16
"""Most nodes of the rule in x."""
_REACH = 8.8
_CLOSE = 0.03
_FEW = 16
_ROUNDING = 4e-16
_NEAR = 1e-2
_TINY = 1e-12
_MOST_STEPS = 100
_MOST_GRADES = 256
_MOST_LOSS = 8.0
_GROWTH = 1.1
_MOST_GROWTH = 3.0
_LEAST_GROWTH = 1.02
_LEAP = 4.0
_PROBES = np.array([1.0, 1.07, 1.19, 1.31])
_LEAST = 1.0 - TARGET
_INFINITY = math.inf
CALL = Strip(0.0, _INFINITY, (0.0, -1.0))
MIDDLE = Strip(-1.0, 0.0, (0.0, -1.0))
PUT = Strip(-_INFINITY, -1.0, (0.0, -1.0))
ABOVE_P = Strip(0.0, _INFINITY, (0.0,))
BELOW_P = Strip(-_INFINITY, 0.0, (0.0,))
ABOVE_Q = Strip(-1.0, _INFINITY, (-1.0,))
BELOW_Q = Strip(-_INFINITY, -1.0, (-1.0,))


class FloatTransform(Protocol):
    """ln M(z) of one loss, in floats."""

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """Return ln M(c) and its first two derivatives."""

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
class _Table:
    """Equidistant nodes in x with what does not depend on the tilt."""

    def __init__(self, floats: Mixture, start: int, last: int, step: float) -> None:
        self.start = start
        self.x = np.arange(start, last + 1.0) * step
        shift = np.minimum(floats.mu * self.x - 0.5 * floats.mu**2, 700.0)
        self._rise = math.exp(floats.log_share) * np.expm1(shift)
        self.bell = floats.bell(self.x)
        """ln(√(2π) φ)"""
        self.loss = np.where(
            np.abs(self._rise) < 0.5, np.log1p(self._rise), floats.log_density(self.x)
        )

    @functools.cached_property
    def gap(self) -> Floats:
        """L − (w − 1)"""
        return excess_of_log1p(self._rise)


@final
class FloatMixture:
    """Λ(z + 1), or Λ(−z), of a Gaussian mixture, by the trapezoidal rule in x."""

    def __init__(self, floats: Mixture, mixed_first: bool, loops: Kernels) -> None:
        self._floats, self._mixed_first, self._loops = floats, mixed_first, loops
        self._lost = floats.lost
        self._tables: dict[int, _Table] = {}
        self._rules: dict[int, tuple[int, float, float]] = {}
        self._line_grades: dict[tuple[float, int], int] = {}

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """Return those of Λ, at c + 1 or −c."""
        s = c + 1 if self._mixed_first else -c
        table, kept = self._nodes(s, 0.0)
        x, bell, loss, gap = table.x[kept], table.bell[kept], table.loss[kept], table.gap[kept]
        size, mean, variance = self._moments(s, x[1] - x[0], bell, loss, gap)
        return size, mean if self._mixed_first else -mean, variance

    def log_ratio(self, c: float, t: Floats) -> tuple[Floats, Floats]:
        """Return ln of 1 + E[e^{it(L − m)} − 1 − it(L − m)] under the tilted law of mean m."""
        s = c + 1 if self._mixed_first else -c
        table, kept = self._nodes(s, float(t[-1]))
        loss = table.loss[kept]
        logs = s * loss + table.bell[kept]
        mass = np.exp(logs - logs.max())
        mass /= mass.sum()
        away = loss - np.dot(mass, loss)
        if len(t) > _FEW and t[0] == 0 < t[1] and t[-1] == (len(t) - 1) * t[1]:  # 0, h, 2h, …
            real, imaginary = on_line(self._loops, mass, away, float(t[1]), len(t))
        else:
            real, imaginary = self._loops.line(mass, away, t)
        with np.errstate(divide="ignore"):
            log_size = 0.5 * np.log1p(2 * real + real * real + imaginary * imaginary)
        angle = np.arctan2(imaginary, 1 + real)
        return log_size, angle if self._mixed_first else -angle

    def _moments(
        self, s: float, step: float, bell: Floats, loss: Floats, gap: Floats
    ) -> tuple[float, float, float]:
        if math.isinf(self._floats.rise):
            size, mean, variance = self._loops.moments(s, step, bell, loss, gap)
            first, second = self._lost  # where the loops rely on E[1] = E[w] = 1
            if abs(size) < BY_EXCESS and first > 0:
                whole = math.exp(size)
                less = whole - first - s * (second - first)
                return math.log(less), (mean * whole + first - second) / less, variance
            return size, mean, variance
        logs = s * loss + bell
        top = float(logs.max())
        mass = np.exp(logs - top)
        total = float(mass.sum())
        mean = float(np.dot(mass, loss)) / total
        variance = float(np.dot(mass, (loss - mean) ** 2)) / total
        return top + math.log(total * step / math.sqrt(2 * math.pi)), mean, variance

    def _nodes(self, s: float, t: float) -> tuple[_Table, slice]:
        """Return the nodes of a rule, and which of them are needed."""
        if t:
            low, high = self._low(s), self._end(s)
            grade = self._grade_of_line(s, t, low, high)
        else:
            grade, low, high = self._rule_of_moments(s)
        step = 2.0 ** (-grade / 4)
        first, last = math.floor(low / step), math.ceil(high / step)
        if last - first > MOST_POINTS:
            raise UndecidedError(f"The moments at s={s:.6g} need {last - first} nodes in floats.")
        table = self._tables.get(grade)
        if table is None or first < table.start or last >= table.start + len(table.x):
            margin = (last - first) // 4
            table = _Table(self._floats, first - margin, last + margin, step)
            self._tables[grade] = table
        return table, slice(first - table.start, last - table.start + 1)

    def _low(self, s: float) -> float:
        low = -_REACH + (self._floats.peak(s) if s < 0 else 0.0)
        rise, width = self._floats.rise, self._floats.rise_width
        return max(low, rise - _REACH * width - max(rise, 0.0) * width * width)

    def _end(self, s: float) -> float:
        return self._floats.end(max(s, 2.0), 0.5 * _REACH * _REACH)  # w² is summed too

    def _rule_of_moments(self, s: float) -> tuple[int, float, float]:
        """Return the grade and the ends for real s, the same for all s between two powers of 2."""
        octave = math.frexp(s)[1] if s > 0 else -math.frexp(s)[1] - 10_000
        if octave not in self._rules:
            far = math.copysign(2.0 ** math.frexp(s)[1], s)
            low = min(self._low(far), self._low(0.5 * far))
            high = self._end(far)
            grade = self._grade(far, 0.0, low, high)
            if far > 2.0 or math.isfinite(self._floats.cut):
                end = self._end(0.5 * far)
                high = max(high, end)
                if math.isfinite(self._floats.cut):
                    grade = max(grade, self._grade(0.5 * far, 0.0, low, end))
            self._rules[octave] = grade, low, high
        return self._rules[octave]

    def _grade_of_line(self, s: float, t: float, low: float, high: float) -> int:
        """Return the grade for the last of the points t that begin with the same half octave."""
        half_octave = math.ceil(2 * math.log2(t))
        if len(self._line_grades) > _MOST_GRADES:
            self._line_grades.clear()
        if (s, half_octave) not in self._line_grades:
            self._line_grades[s, half_octave] = self._grade(s, 2.0 ** (half_octave / 2), low, high)
        return self._line_grades[s, half_octave]

    def _grade(self, s: float, t: float, low: float, high: float) -> int:
        """Return g where the step 2^(−g/4) is small enough, by the sizes on shifted contours.

        Beside a cut the contours are lowered, as far as the integrand is small there.
        """
        floats = self._floats
        whole = math.isinf(floats.cut) and math.isinf(floats.rise)
        x = low + (high - low) * (_COARSE if whole else _FINE)
        heights = min(floats.largest_shift, 2 * math.sqrt(TARGET)) * _SHARES
        y = heights[:, None]
        plain, grown = s * floats.log_density(x) - 0.5 * x * x, -0.5 * x * x
        if not whole:
            y = floats.lowered(x[None, :], np.repeat(y, len(x), axis=1), s)
            plain = plain + floats.log_kept(x, np.zeros_like(x))
            grown = grown + floats.log_kept(x + 0 * y, y)
        size, angle = floats.at_angle(x[None, :], floats.mu * y)
        grown = grown + s * size + t * angle
        excess = TARGET + 2.0 + np.maximum(grown + 0.5 * y * y - float(plain.max()), _LEAST)
        steps = 2 * math.pi * np.minimum((y / excess).min(axis=1), heights / (TARGET + 2.0))
        step = float(steps.max())
        return math.ceil(-4 * math.log2(step))


_SHARES = 1.6 ** -np.arange(0.0, 9.0)
_COARSE, _FINE = np.linspace(0.0, 1.0, 40), np.linspace(0.0, 1.0, 256)


@final
class Estimator:
    """Estimates for a sum of independent losses."""

    def __init__(
        self, factors: Sequence[tuple[FloatTransform, int]], most_loss: float = _MOST_LOSS
    ) -> None:
        self._factors, self._most_loss = tuple(factors), most_loss
        self.cumulants = functools.lru_cache(maxsize=256)(self._cumulants)

    def _cumulants(self, c: float) -> tuple[float, float, float]:
        size = mean = variance = 0.0
        for part, count in self._factors:
            found = part.cumulants(c)
            size += count * found[0]
            mean += count * found[1]
            variance += count * found[2]
        return size, mean, variance

    def variances(self, c: float) -> list[float]:
        """Return the second derivative of count·ln M for each factor."""
        return [count * part.cumulants(c)[2] for part, count in self._factors]

    def log_integral(self, strip: Strip, epsilon: float) -> tuple[float, float]:
        """Return ln G(ε) and its derivative, for the kernel with the poles of the strip."""
        point = saddle(self, strip, epsilon, close=_CLOSE)
        line = self._on_line(strip, point.c, epsilon)
        value, slope = line(epsilon)
        line.check(epsilon, value, self._most_loss)
        return value, slope

    def _on_line(self, strip: Strip, c: float, epsilon: float) -> Line:
        """Return the line through c, with a step that is good at and near ε."""
        size, mean, spread = self.cumulants(c)
        kappa = -sum(math.log(abs(c - pole)) for pole in strip.poles)
        curvature = spread + sum((c - pole) ** -2 for pole in strip.poles)
        level = size - c * epsilon + kappa - 0.5 * math.log(2 * math.pi * curvature)
        period = max(
            nearest_bound(self, strip, epsilon, c, side, level, TARGET)[0] for side in (-1, 1)
        )
        step = 2 * math.pi / period
        reach = math.sqrt(2 * TARGET / curvature)
        while (size_there := self._size(strip, c, reach)) > -TARGET - 1.0:
            if reach >= MOST_NODES * step:
                raise UndecidedError(
                    f"The contour for epsilon={epsilon:.6g} needs more than {MOST_NODES} nodes."
                )
            reach *= min(max((TARGET + 1.0) / max(-size_there, 1.0), _GROWTH), _MOST_GROWTH)
            reach = min(reach, MOST_NODES * step)
        t = np.arange(0.0, 3.0 + math.ceil(reach / step)) * step
        real, imaginary = self._log_ratio(c, t)
        return Line(strip, c, step, size, mean, level + c * epsilon, real, imaginary)

    def _log_ratio(self, c: float, t: Floats) -> tuple[Floats, Floats]:
        real, imaginary = np.zeros(len(t)), np.zeros(len(t))
        for part, times in self._factors:
            a, b = part.log_ratio(c, t)
            real += times * a
            imaginary += times * b
        return real, imaginary

    def _size(self, strip: Strip, c: float, reach: float) -> float:
        """Return the logarithm of the largest of a few terms at and beyond a point of the line."""
        t = reach * _PROBES
        sizes = self._log_ratio(c, t)[0]
        sizes -= sum(0.5 * np.log1p((t / (c - pole)) ** 2) for pole in strip.poles)
        return float(sizes.max())

    def log_delta(self, epsilon: float) -> float:
        """Return ln δ(ε)."""
        if not self._low(epsilon):
            return self._deep(epsilon)
        found = self.delta(epsilon)
        if not found > 0:
            raise UndecidedError(f"The estimate at epsilon={epsilon:.6g} has no digits.")
        return math.log(found)

    def delta(self, epsilon: float) -> float:
        """Return δ(ε); 0 where it is below the smallest float."""
        if not self._low(epsilon):
            return math.exp(self._deep(epsilon))
        if self.cumulants(0.0)[2] > 1.0 and epsilon > self.cumulants(-1.0)[1]:
            return -math.expm1(self.log_integral(MIDDLE, epsilon)[0])
        return math.exp(self.log_integral(PUT, epsilon)[0]) - math.expm1(epsilon)

    def _deep(self, epsilon: float) -> float:
        return self.log_integral(CALL, epsilon)[0]

    def _low(self, epsilon: float) -> bool:
        """Whether ε is well below the mean of the loss, so that the pole at 0 is in the way."""
        _, mean, variance = self.cumulants(0.0)
        return epsilon < mean - math.sqrt(variance)

    def log_tails(self, epsilon: float) -> tuple[float, float]:
        """Return ln P(L > ε) and ln Q(L > ε)."""
        above = epsilon >= self.cumulants(0.0)[1]
        p, _ = self.log_integral(ABOVE_P if above else BELOW_P, epsilon)
        beyond = epsilon >= self.cumulants(-1.0)[1]
        q, _ = self.log_integral(ABOVE_Q if beyond else BELOW_Q, epsilon)
        q -= epsilon
        return (
            p if above else math.log(-math.expm1(p)),
            q if beyond else math.log(-math.expm1(q)),
        )

    def epsilon(self, log_delta: float) -> float:
        """Return the ε with ln δ(ε) = log_delta, for a δ below about 0.3.

        The saddle point is found first: at every s it belongs to an ε and, to a few percent, to a
        δ. Then Newton's method runs on one line.
        """
        s = self._saddle_of(log_delta)
        epsilon, margin = self._at_saddle(s), self._most_loss / s  # δ falls like e^{−sε}
        floor, ceiling = epsilon - margin, epsilon + margin
        line = self._on_line(CALL, s, epsilon)
        for _ in range(_MOST_STEPS):
            value, slope = line(epsilon)
            if value > log_delta:
                floor = max(floor, epsilon)
            else:
                ceiling = min(ceiling, epsilon)
            move = (log_delta - value) / slope
            if abs(move * slope) <= 1e-15 * abs(log_delta) or abs(move) < _ROUNDING * abs(epsilon):
                break
            inside = floor < epsilon + move < ceiling
            epsilon = epsilon + move if inside else 0.5 * (floor + ceiling)
        else:
            raise UndecidedError(f"No epsilon was found for ln(delta)={log_delta:.6g} in floats.")
        line.check(epsilon, log_delta, self._most_loss)
        return epsilon + move

    def start(self, log_delta: float) -> float:
        """Return the ε for which the saddle-point approximation of ln δ is log_delta."""
        return self._at_saddle(self._saddle_of(log_delta))

    def _at_saddle(self, s: float) -> float:
        """Return the ε whose saddle is s > 0."""
        return self.cumulants(s)[1] - 1 / s - 1 / (s + 1)

    def _saddle_of(self, log_delta: float) -> float:
        """Return the s whose approximation of ln δ is log_delta, by Newton's method in ln s."""
        low, high, s, last = 0.0, math.inf, 1.0, math.inf
        for _ in range(2 * _MOST_STEPS):
            try:
                value, fall = self._approximation(s)
            except UndecidedError:  # too far: beyond a cut, say
                if s < _LEAST_GROWTH * low or low == 0.0:
                    raise
                high = s
                s = math.sqrt(low * high)
                continue
            value -= log_delta
            low, high = (s, high) if value > 0 else (low, s)
            if abs(value) < _NEAR or high - low < _TINY * high:
                return s
            leap = math.log(_LEAP)
            wanted = s * math.exp(min(max(value / fall, -leap), leap))
            slow = abs(value) > 0.5 * last and low > 0 and math.isfinite(high)
            last = abs(value)
            s = math.sqrt(low * high) if slow or not low < wanted < high else wanted
        raise UndecidedError(f"No saddle was found for ln(delta)={log_delta:.6g} in floats.")

    def _approximation(self, s: float) -> tuple[float, float]:
        """Return the saddle-point approximation of ln δ at the ε of s, and its fall with ln s.

        What the curvature changes is left out of the latter.
        """
        size, _, variance = self.cumulants(s)
        curvature = variance + s**-2 + (s + 1) ** -2
        kappa = math.log(s * (s + 1)) + 0.5 * math.log(2 * math.pi * curvature)
        return size - s * self._at_saddle(s) - kappa, s * s * curvature


@final
@dataclass(frozen=True)
class Line:
    """The values of ln M on a line, ready for any ε near the one it was made for."""

    strip: Strip
    c: float
    step: float
    size: float
    mean: float
    level: float
    """The saddle-point approximation of ln G(ε), plus cε."""
    real: Floats
    imaginary: Floats

    def check(self, epsilon: float, value: float, most_loss: float) -> None:
        """Raise UndecidedError where ln G(ε) is so far below the terms that floats lose it.

        That happens beside a phase in which a few large losses make up the tilted law.
        """
        if value < self.level - self.c * epsilon - most_loss:
            raise UndecidedError(
                f"The estimate at epsilon={epsilon:.6g} loses its digits to cancellation. Ask for "
                "the enclosure, which raises its precision."
            )

    def __call__(self, epsilon: float) -> tuple[float, float]:
        """Return ln G(ε) and its derivative."""
        t = np.arange(0.0, len(self.real)) * self.step
        phase = self.imaginary + t * (self.mean - epsilon)
        z = self.c + 1j * t
        terms = np.exp(self.real + 1j * phase)
        for pole in self.strip.poles:
            terms /= z - pole
        terms[0] *= 0.5
        total = float(np.sum(terms.real))
        slope = -float(np.sum((terms * z).real)) / total
        return self.size - self.c * epsilon + math.log(abs(total) * self.step / math.pi), slope

"""Contour integrals in floats: profiles and tails, in about a millisecond, without proof.

The integrals are those of `certified`, on the line through the saddle. Nothing is proved;
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

from accountant.composition.losses.float_mixture import TARGET
from accountant.composition.numeric.search import Strip, nearest_bound, saddle
from accountant.errors import UndecidedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Complexes: TypeAlias = NDArray[np.complex128]

MOST_NODES = 1 << 12
"""Most nodes of a line: a millisecond of floats; what needs more is refused."""
_CLOSE = 0.1
"""Error of the saddle in its widths: a line so near it has as few nodes as the one through it."""
_ROUNDING = 4e-16
"""Relative size of a move that is rounding."""
_NEAR = 0.1
"""Error of ln δ that ends the search of a saddle: Newton's method on its line does the rest."""
_TINY = 1e-12
"""Relative width of a bracket of saddles beyond which floats tell nothing."""
_MOST_STEPS = 100
"""Steps of Newton's method on one line, and half of those to its saddle: more only delay a
refusal."""
_MOST_LOSS = 8.0
"""How far ln of an integral may lie below that of its terms: e^8 units of rounding are 1e-12."""
_AHEAD = 1.2
"""Factor by which a line is made longer than its terms are expected to count."""
_CUBIC = 1e-5
"""An error in ln δ whose cube is no longer seen."""
_LEAST_BEND = 0.5
"""Halley's correction at most doubles a step of Newton's."""
_AWAY = 3.0
"""The most that a line is moved off the saddle, in widths of the saddle as a normal law has it."""
_SHORTER = 0.8
"""Share of the period below which a line beside the saddle is taken instead."""
_MOST_RISE = 1.5
"""The most that the terms may be larger there, as a logarithm."""
_MOST_GROWTH = 5.0
"""Largest factor by which a line that is too short is made longer."""
_LEAST_GROWTH = 1.02
"""Ratio of an unknown and a known moment's tilts at which their search is given up."""
_LEAP = 16.0
"""Largest ratio of two tilts in a search: larger ones leave what floats hold."""
_LEAST_LOG = -0.5
"""ln δ above it is compared as it is, below it by its own logarithm, which is straighter there."""
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
class Estimator:
    """Estimates for a sum of independent losses."""

    def __init__(
        self,
        factors: Sequence[tuple[FloatTransform, int]],
        most_loss: float = _MOST_LOSS,
        target: float = TARGET,
    ) -> None:
        self._factors, self.most_loss, self._target = tuple(factors), most_loss, target
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
        line = self.line(strip, epsilon)
        value, slope = line(epsilon)
        line.check(epsilon, value, self.most_loss)
        return value, slope

    def line(self, strip: Strip, epsilon: float) -> Line:
        """Return the line through the saddle, to be asked at and near ε."""
        return self._on_line(strip, saddle(self, strip, epsilon, close=_CLOSE).c, epsilon)

    def _on_line(self, strip: Strip, c: float, epsilon: float) -> Line:
        """Return a line at or near the saddle c, with a step that is good at and near ε.

        Where the moments explode beside c, a line a little further away needs a shorter period.
        """
        size, mean, spread = self.cumulants(c)
        curvature = spread + sum((c - pole) ** -2 for pole in strip.poles)
        top = size - c * epsilon + _log_kernel(strip, c)
        level = top - 0.5 * math.log(2 * math.pi * curvature)
        bounds = [
            nearest_bound(self, strip, epsilon, c, side, level, self._target) for side in (-1, 1)
        ]
        period = max(bounds)[0]
        at, shorter = _balanced(c, bounds, _AWAY / math.sqrt(curvature))
        if shorter < _SHORTER * period:
            there = self.cumulants(at)
            if there[0] - at * epsilon + _log_kernel(strip, at) < top + _MOST_RISE:
                c, period, (size, mean, spread) = at, shorter, there
        step = 2 * math.pi / period
        spread += sum((c - pole) ** -2 for pole in strip.poles)
        terms = self._terms(strip, c, step, math.sqrt(2 * self._target / spread))
        return Line(c, step, size, mean, level + c * epsilon, terms)

    def _terms(self, strip: Strip, c: float, step: float, reach: float) -> Complexes:
        """Return the terms of `Line` that count: the first guess is that those up to `reach` do.

        Raises UndecidedError if they are too many, or beyond floats.
        """
        most = MOST_NODES * step
        while True:
            reach = min(_AHEAD * reach, most)
            t = np.arange(0.0, 3.0 + math.ceil(reach / step)) * step
            with np.errstate(over="ignore", invalid="ignore"):
                real, imaginary = self._log_ratio(c, t)
                logs, z = real + 1j * imaginary, c + 1j * t
                found: Complexes = np.exp(logs)
                for pole in strip.poles:
                    found /= z - pole
                sizes = np.abs(found) / abs(found[0])
            if not np.isfinite(sizes).all():
                raise UndecidedError(f"The terms of the contour at {c:.6g} are beyond floats.")
            count = int(np.flatnonzero(sizes > math.exp(-self._target - 1.0))[-1]) + 1
            if 8 * count <= 7 * len(t):
                return found[:count]
            if reach == most:
                raise UndecidedError(f"The contour at {c:.6g} needs more than {MOST_NODES} nodes.")
            size = -math.log(float(sizes[7 * len(t) // 8 :].max()))
            reach *= min(max((self._target + 1.0) / max(size, 1.0), 1.0), _MOST_GROWTH)

    def _log_ratio(self, c: float, t: Floats) -> tuple[Floats, Floats]:
        real, imaginary = np.zeros(len(t)), np.zeros(len(t))
        for part, times in self._factors:
            a, b = part.log_ratio(c, t)
            real += times * a
            imaginary += times * b
        return real, imaginary

    def epsilon(self, log_delta: float) -> float:
        """Return the ε with ln δ(ε) = log_delta, for a δ below about 0.3.

        The saddle point is found first: at every s it belongs to an ε and, to a few percent, to a
        δ. Then Newton's method runs on one line.
        """
        s = self._saddle_of(log_delta)
        epsilon, margin = self._at_saddle(s), self.most_loss / s  # δ falls like e^{−sε}
        floor, ceiling = epsilon - margin, epsilon + margin
        line = self._on_line(CALL, s, epsilon)
        for _ in range(_MOST_STEPS):
            value, slope, bend = line.bent(epsilon)
            if value > log_delta:
                floor = max(floor, epsilon)
            else:
                ceiling = min(ceiling, epsilon)
            move = (log_delta - value) / slope
            away = abs(move * slope)
            move /= max(1 + 0.5 * move * bend / slope, _LEAST_BEND)
            if away <= max(_CUBIC, 1e-15 * abs(log_delta)) or abs(move) < _ROUNDING * abs(epsilon):
                break
            inside = floor < epsilon + move < ceiling
            epsilon = epsilon + move if inside else 0.5 * (floor + ceiling)
        else:
            raise UndecidedError(f"No epsilon was found for ln(delta)={log_delta:.6g} in floats.")
        line.check(epsilon, log_delta, self.most_loss)
        return epsilon + move

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
        """Return the saddle-point approximation of ln δ at the ε of s, and its fall with ln s.

        What the curvature changes is left out of the latter.
        """
        size, _, variance = self.cumulants(s)
        curvature = variance + s**-2 + (s + 1) ** -2
        kappa = math.log(s * (s + 1)) + 0.5 * math.log(2 * math.pi * curvature)
        return size - s * self._at_saddle(s) - kappa, s * s * curvature


def _log_move(value: float, wanted: float) -> float:
    """Return how far a value is from the wanted one, as if its logarithm were linear."""
    if max(value, wanted) > _LEAST_LOG:
        return value - wanted
    return -value * math.log(wanted / value)


def _log_kernel(strip: Strip, c: float) -> float:
    return -sum(math.log(abs(c - pole)) for pole in strip.poles)


def _balanced(c: float, bounds: Sequence[tuple[float, float]], most: float) -> tuple[float, float]:
    """Return a point where the periods of two bounds are more alike, and the longer one there.

    Each is (size/|c − s|, s), with a size that hardly depends on c.
    """
    (left, low), (right, high) = bounds
    left, right = left * (c - low), right * (high - c)
    even = (left * high + right * low) / (left + right)
    at = min(max(even, c - most), c + most)
    return at, max(left / (at - low), right / (high - at))


@final
@dataclass(frozen=True, slots=True)
class Line:
    """The terms of a sum on a line, ready for any ε near the one it was made for."""

    c: float
    step: float
    size: float
    mean: float
    level: float
    """The saddle-point approximation of ln G(ε), plus cε."""
    terms: Complexes
    """M(c + it) κ(c + it)/M(c) without its phase e^{it·mean}."""

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
        return self.bent(epsilon)[:2]

    def bent(self, epsilon: float) -> tuple[float, float, float]:
        """Return ln G(ε) and its first two derivatives."""
        t = np.arange(0.0, len(self.terms)) * self.step
        terms = self.terms * np.exp(1j * (t * (self.mean - epsilon)))
        terms[0] *= 0.5
        real = terms.real
        total = float(real.sum())
        aside = float(np.dot(terms.imag, t)) / total
        square = float(np.dot(real, t * t)) / total
        value = self.size - self.c * epsilon + math.log(abs(total) * self.step / math.pi)
        return value, aside - self.c, -square - aside * aside

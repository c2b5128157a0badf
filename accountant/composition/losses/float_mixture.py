"""Moments of Gaussian mixtures in floats, without error bounds.

Λ(s) = E[w(X)^s] = ∫ φ w^s dx for X ~ N(0, 1), where w is the density of the mixture against
N(0, 1).

*At real s*: Gauss–Legendre rules on panels. No panel is longer than 3/μ, because w has zeros at the
height π/μ above the axis. Panels end at distances 3τ·2^k from a cut of width τ; they are longer
where a normal law has no mass left.

*On lines s + it*, without cuts: the trapezoidal rule. A step η has an error of about e^{−2πy/η}
times the largest integrand at a height y above the axis, below the zeros of w. For s ≥ 0 the
integrand is at most e^{y²/2} times that on the axis; for s < 0 its growth is evaluated. On the axis
w^{it} oscillates, faster for larger t. But on the line Im x = v its absolute value e^{−t arg w}
decreases in t: between the axis and Im x = 2v the integrand is at most as large as for t = 0. So
one rule on that line serves all t ≥ 0.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

from flint import arb

from dpassay.accountant.composition.losses import bounds
from dpassay.accountant.composition.losses.bounds import BY_EXCESS, ROOT_2PI, Mixture, distinct
from dpassay.accountant.core.arrays import NDArray, np
from dpassay.accountant.errors import UndecidedError

if TYPE_CHECKING:
    Floats: TypeAlias = NDArray[np.float64]
    Complexes: TypeAlias = NDArray[np.complex128]

_POINTS = 16
"""Nodes of the rule on one panel."""
_LONGEST, _WHOLE, _LONG = 0.5, 1.0, 2.0
"""Longest panels: where the normal law has mass, with and without cuts; and far out, where only w^s
is large."""
_TURN = 3.0
"""Length of a panel in units of 1/μ: 16 nodes have an error of 1e-20, and 1e-13 on twice that."""
_USUAL = 48.0
"""|x| up to which panels are short; laws with usual tilts end before."""
_NEAREST = 3.0
"""Length of the first panel next to a cut, in its widths; χ is a polynomial on it to 1e-13."""
_GRAIN = 8.0
"""The range of the nodes is rounded outward to multiples of this, so that it seldom changes."""
_FARTHEST = 4096.0
"""|x| beyond which no moments are summed, as the tables would be long."""


@functools.cache
def _rule() -> tuple[Floats, Floats]:
    """Return nodes on (−1, 1), ascending, and weights; loading `numpy.polynomial` takes 15 ms."""
    rows = [arb.legendre_p_root(_POINTS, i, weight=True) for i in reversed(range(_POINTS))]
    points, weights = np.array([[float(x.mid()), float(w.mid())] for x, w in rows]).T
    return points, weights


@final
class Panels:
    """Nodes of the panels between two ends, with all that does not depend on the tilt."""

    def __init__(self, floats: Mixture) -> None:
        self._floats = floats
        self._low, self._high = math.inf, -math.inf
        self._longest = min(_LONGEST if floats.is_cut else _WHOLE, _TURN / floats.mu)
        self.x: Floats
        self.mass: Floats
        """φχ dx"""
        self.log_mass: Floats
        self.loss: Floats
        self.gap: Floats
        """L − (w − 1)"""

    def cover(self, low: float, high: float) -> None:
        """Extend the nodes to at least [low, high]; raise UndecidedError if that is too far."""
        if self._low <= low and high <= self._high:
            return
        if max(abs(low), abs(high)) > _FARTHEST:
            raise UndecidedError(
                f"Moments between x={low:.6g} and {high:.6g} leave the range ±{_FARTHEST:g}."
            )
        self._low = min(self._low, _GRAIN * math.floor(low / _GRAIN))
        self._high = max(self._high, _GRAIN * math.ceil(high / _GRAIN))
        ends, floats = self._ends(), self._floats
        points, weights = _rule()
        middle, half = 0.5 * (ends[1:] + ends[:-1])[:, None], 0.5 * np.diff(ends)[:, None]
        self.x = x = (middle + half * points).ravel()
        self.log_mass = floats.bell(x) + np.log((half * weights).ravel() / ROOT_2PI)
        self.mass = np.exp(self.log_mass)
        law = floats.mu, floats.log_share, floats.log_rest
        self.loss, self.gap = bounds.axis(*law, x)

    def _ends(self) -> Floats:
        """Return the ends of the panels in ascending order."""
        floats = self._floats
        low, high = max(self._low, -_USUAL), min(self._high + self._longest, _USUAL)
        ends: list[NDArray[Any]] = [np.arange(low, high, self._longest)]
        ends.append(np.arange(self._low, self._high + _LONG, _LONG))
        for at, width, _ in floats.edges:
            doublings = math.ceil(math.log2(max(self._longest / (_NEAREST * width), 1.0))) + 1
            away = _NEAREST * width * 2.0 ** np.arange(doublings)
            ends += [at - away, np.array([at]), at + away]
        found = distinct(np.concatenate(ends))
        return found[(found >= self._low) & (found <= self._high)]


TARGET = 34.5
"""−ln of the targeted relative error."""
MOST_POINTS = 1 << 15
"""Largest number of nodes of the rule in x."""
_AIM = TARGET + 2.0
_REACH = 8.8
"""Distance at which a normal density is e^−39 of its peak."""
_FEW = 16
"""Number of points t up to which each is summed by itself."""
_HIGHEST = 0.95
"""Largest height as a share of π/μ, where w has a zero; that w^s is small there does no harm."""
_TALLEST = math.sqrt(2 * _AIM)
"""Height at which e^{y²/2} is the reciprocal of the error: no higher line allows a larger step."""
_MOST_GROWTH = 4.5
"""ln of the largest growth of the integrand from the axis to Im x = 2v; to Im x = v it is about e.
"""
_TALL = math.sqrt(2 * _MOST_GROWTH)
"""Height at which e^{y²/2} is e^4.5."""
_LEAST_SQUARE = -0.5
"""|1 + z|² − 1 below which ln|1 + z| is computed directly."""
_LEAST_DIRECT = 0.01
"""Least |s|q for which E[w^s − 1] is summed directly: for a smaller one w^s − 1 is small, and
first-order terms that cancel cost digits."""
_MODERATE = 4.0
"""Without cuts one rule serves all s from −_MODERATE to 0."""
_NEAR = 16.0
"""Shift of the tilted law up to which one table of nodes serves all tilts s ≥ 0."""
_LEAST_SHARE = 1e-22
"""Share of the largest term below which terms are left out."""
_LOG_SHIFT_ERROR = 80.0
"""−ln of the error with which a tilted law is replaced by a shifted normal one; and the least ln M
for which it is."""
_SHARES = [1.6**-k for k in range(9)]
"""Heights that are tried, as shares of the largest one."""
_MOST_ENTRIES = 1 << 20
"""Largest table of losses of many mixtures: 8 MB; usual tilts take far less."""
_PLACES = 40
"""Number of points at which the growth of an integrand is evaluated."""


@final
@dataclass(frozen=True, slots=True)
class _Raised:
    """Equidistant nodes on a line Im x > 0, with all that does not depend on the tilt."""

    start: int
    bell: Complexes
    """−z²/2"""
    loss: Complexes


@final
class FloatMixture:
    """Λ(z + 1) or Λ(−z) for a Gaussian mixture: its transform M(z)."""

    def __init__(self, floats: Mixture, mixed_first: bool) -> None:
        self.floats, self.mixed_first = floats, mixed_first
        self.is_whole = not floats.is_cut
        self._panels, self._lost = Panels(floats), floats.lost
        self._law = floats.mu, floats.log_share, floats.log_rest
        self._share = math.exp(floats.log_share)
        self._ranges: dict[tuple[int, bool], tuple[float, float]] = {}
        self._heights: dict[int, tuple[int, float]] = {}
        self._raised: dict[tuple[int, float], _Raised] = {}
        self._last: tuple[float, NDArray[Any], NDArray[Any]] | None = None
        self.cumulants = functools.lru_cache(maxsize=256)(self._cumulants)

    def _cumulants(self, c: float) -> tuple[float, float, float]:
        """Return ln Λ at s = c + 1 or s = −c, and its first two derivatives with respect to c."""
        s = c + 1 if self.mixed_first else -c
        if self._is_shifted(s):
            log_share, square = self.floats.log_share, self.floats.mu**2
            size, mean = s * (log_share + 0.5 * (s - 1) * square), log_share + (s - 0.5) * square
            return size, mean if self.mixed_first else -mean, square
        size, mean, variance = self.moments(s)
        return size, mean if self.mixed_first else -mean, variance

    def log_ratio(self, c: float, t: Floats) -> tuple[Floats, Floats]:
        """Return ln(1 + E[e^{it(L − m)} − 1 − it(L − m)]) under the tilted law, whose mean is m."""
        s = c + 1 if self.mixed_first else -c
        if self._is_shifted(s):
            return -0.5 * (self.floats.mu * t) ** 2, np.zeros_like(t)
        mass: NDArray[Any]
        away: NDArray[Any]
        if (last := self._last) is not None and last[0] == s:
            _, mass, away = last
        else:
            mass, away = self._on_axis(s) if self.floats.is_cut else self._tilted(s)
            self._last = s, mass, away
        if len(t) > _FEW and t[0] == 0 < t[1] and t[-1] == (len(t) - 1) * t[1]:  # 0, h, 2h, …
            value = bounds.on_line(mass, away, float(t[1]), len(t))
        else:
            value = bounds.line(mass, away, t)
        log_size, angle = log_one_plus(value)
        return log_size, angle if self.mixed_first else -angle

    def _is_shifted(self, s: float) -> bool:
        """Whether w equals q e^l under the tilt s, up to what is negligible in floats.

        The law ∝ φ (q e^l)^s is N(sμ, 1) with mass q^s e^{s(s − 1)μ²/2}. Under it s(1 − q)/(q e^l)
        has the mean s e^{−(s − 1)μ²} (1 − q)/q.
        """
        if s < 1 or self.floats.is_cut:
            return False
        law = self.floats
        fall = (s - 1) * law.mu**2
        log_rest_share = math.log(s) + law.log_rest - law.log_share - fall
        return (
            log_rest_share < -_LOG_SHIFT_ERROR
            and s * (law.log_share + 0.5 * fall) > _LOG_SHIFT_ERROR
        )

    def moments(self, s: float) -> tuple[float, float, float]:
        """Return ln Λ(s) and its first two derivatives."""
        nodes, (low, high) = self._panels, self._range(s)
        nodes.cover(low, high)
        kept = slice(*np.searchsorted(nodes.x, (low, high)))
        log_mass, loss = nodes.log_mass[kept], nodes.loss[kept]
        if math.isinf(self.floats.rise):
            found = None
            if abs(s) * self._share > _LEAST_DIRECT and not self.floats.is_cut:
                found = bounds.moments_directly(s, nodes.mass[kept], loss)
            size, mean, variance = found or bounds.moments(
                s, nodes.mass[kept], log_mass, loss, nodes.gap[kept]
            )
            if self.floats.is_cut and abs(size) < BY_EXCESS:  # `bounds` assumes E[1] = E[w] = 1
                first, second = self._lost
                whole = math.exp(size)
                less = whole - first - s * (second - first)
                return math.log(less), (mean * whole + first - second) / less, variance
            return size, mean, variance
        logs = s * loss + log_mass
        top = float(logs.max())
        mass = np.exp(logs - top)
        total = float(mass.sum())
        mean = float(np.dot(mass, loss)) / total
        variance = float(np.dot(mass, (loss - mean) ** 2)) / total
        return top + math.log(total), mean, variance

    def _on_axis(self, s: float) -> tuple[Floats, Floats]:
        """Return the tilted law at real x, and L − m; with a cut no line above the axis is used.

        The panels, which the cut makes short, resolve the oscillations of w^{it} for small t.
        """
        low, high = self._range(s)
        self._panels.cover(low, high)
        kept = slice(*np.searchsorted(self._panels.x, (low, high)))
        found: tuple[Floats, Floats] = _shares(
            s, self._panels.loss[kept], self._panels.log_mass[kept]
        )
        return found

    def _tilted(self, s: float) -> tuple[Complexes, Complexes]:
        """Return the tilted law on the raised line, as shares of its mass, and L − m there."""
        grade, height = self._height(s)
        step = 2.0 ** (-grade / 4)
        first, last = _ends(step, *self._range(s))
        table = self._raised.get((grade, height))
        if table is None or first < table.start or last >= table.start + len(table.bell):
            more = (last - first) // 8  # on both sides, for other tilts
            start = first - more
            x = np.arange(float(start), last + more + 1.0) * step
            z = x + 1j * height
            table = _Raised(start, -0.5 * z * z, bounds.raised(*self._law, x, height))
            self._raised[grade, height] = table
        kept = slice(first - table.start, last - table.start + 1)
        return _shares(s, table.loss[kept], table.bell[kept])

    def _low(self, s: float) -> float:
        low = -_REACH + (self.floats.peak(s) if s < 0 else 0.0)
        rise, width = self.floats.rise, self.floats.rise_width
        return max(low, rise - _REACH * width - max(rise, 0.0) * width * width)

    def _end(self, s: float) -> float:
        return self.floats.end(max(s, 2.0), 0.5 * _REACH * _REACH)  # w² is summed too

    def _range(self, s: float) -> tuple[float, float]:
        """Return the range in which φχ w^s and φχ w² matter.

        It is usually the same for all s of one sign between two powers of 2.
        """
        far = self.floats.mu * max(s, 2.0)  # to the right of this φ w^s and φ w² fall like φ
        whole = not self.floats.is_cut
        if whole and s >= 0 and far < _NEAR:
            return -_REACH, far + _REACH
        key = math.frexp(max(abs(s), _MODERATE) if whole else abs(s))[1], s > 0
        if key not in self._ranges:
            ends = [math.copysign(2.0 ** (key[0] - i), s) for i in (0, 1)]
            low, high = min(map(self._low, ends)), max(map(self._end, ends))
            self._ranges[key] = low, high
        return self._ranges[key]

    def _height(self, s: float) -> tuple[int, float]:
        """Return the grade g of a rule on a line, whose step is 2^(−g/4), and its height."""
        floats = self.floats
        if s >= 0:  # the integrand grows like e^{y²/2} only
            tallest = min(_HIGHEST * math.pi / floats.mu, _TALL)
            return _grade(math.pi * tallest / (_AIM + 0.5 * tallest**2)), 0.5 * tallest
        key = math.frexp(max(-s, _MODERATE))[1]
        if key not in self._heights:
            far = -(2.0**key)
            x = np.linspace(*self._range(s), _PLACES)
            heights = min(floats.largest_shift, _TALLEST) * np.array(_SHARES)
            y = heights[:, None]
            grown = far * floats.at_angle(x[None, :], floats.mu * y)[0] + 0.5 * (y * y - x * x)
            grown -= float((far * floats.log_density(x) - 0.5 * x * x).max())
            growths = np.maximum(grown.max(axis=1), 0.0)
            mild = growths <= max(_MOST_GROWTH, float(growths.min()))
            tall = int(np.argmax(np.where(mild, heights, 0.0)))
            step = math.pi * float(heights[tall]) / (_AIM + float(growths[tall]))
            self._heights[key] = _grade(step), 0.5 * float(heights[tall])
        return self._heights[key]


@final
class ManyMixtures:
    """The sum of ln Λ over many mixtures without cuts, with one trapezoidal rule for all.

    With step h the error of the rule is e^{−2πy/h} times the integrand at a height y < π/μ. There
    |w| is at least cos(μy/2) times its value on the axis, and at most that value.
    """

    def __init__(self, factors: Sequence[tuple[FloatMixture, int]]) -> None:
        self._parts = [part for part, _ in factors]
        self._counts = np.array([float(count) for _, count in factors])
        self._mu = max(part.floats.mu for part in self._parts)
        self._tables: dict[tuple[int, bool], tuple[Floats, Floats, Floats] | None] = {}

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """Return the sums of the cumulants of all parts."""
        s = c + 1 if self._parts[0].mixed_first else -c
        if (table := self._table(s)) is None:
            each = np.array([part.cumulants(c) for part in self._parts])
            size, mean, variance = (self._counts @ each).tolist()
            return size, mean, variance
        mass, loss, gap = table
        rows, sure = bounds.moments_of_rows(s, mass, loss, gap)
        for i in np.flatnonzero(~sure):
            rows[:, i] = self._parts[i].moments(s)
        size, mean, variance = (rows @ self._counts).tolist()
        return size, mean if self._parts[0].mixed_first else -mean, variance

    def _table(self, s: float) -> tuple[Floats, Floats, Floats] | None:
        """Return φ dx, L and L − (w − 1) at the nodes, for all s of one sign up to a power of 2.

        Return None if there are too many nodes.
        """
        key = math.frexp(max(abs(s), _MODERATE))[1], s > 0
        if key not in self._tables:
            far = math.copysign(2.0 ** key[0], s)
            heights = min(_HIGHEST * math.pi / self._mu, _TALLEST) * np.array(_SHARES)
            grown = 0.5 * heights**2 + min(far, 0.0) * np.log(np.cos(0.5 * self._mu * heights))
            step = float((2 * math.pi * heights / (_AIM + grown)).max())
            low = min(part.floats.peak(far) for part in self._parts) if s < 0 else 0.0
            high = self._mu * max(far, 2.0)
            if (high - low + 2 * _REACH) / step * len(self._parts) > _MOST_ENTRIES:
                self._tables[key] = None
                return None
            x = np.arange(low - _REACH, high + _REACH + step, step)
            laws = [
                (part.floats.mu, part.floats.log_share, part.floats.log_rest)
                for part in self._parts
            ]
            rows = [bounds.axis(*law, x) for law in laws]
            mass = step / ROOT_2PI * np.exp(-0.5 * x * x)
            self._tables[key] = mass, np.array([r[0] for r in rows]), np.array([r[1] for r in rows])
        return self._tables[key]


def log_one_plus(z: Complexes) -> tuple[Floats, Floats]:
    """Return ln|1 + z| and arg(1 + z), accurate relative to z for small z."""
    real, imaginary = z.real, z.imag
    square = real * (2.0 + real) + imaginary * imaginary
    size = 0.5 * np.log1p(np.maximum(square, _LEAST_SQUARE))
    small = square < _LEAST_SQUARE
    if small.any():
        with np.errstate(divide="ignore"):
            size[small] = np.log(np.abs(1.0 + z[small]))
    return size, np.arctan2(imaginary, 1 + real)


def _grade(step: float) -> int:
    """Return g for the largest step 2^(−g/4) that is at most `step`."""
    return math.ceil(-4 * math.log2(step))


def _ends(step: float, low: float, high: float) -> tuple[int, int]:
    """Return the first and the last node."""
    first, last = math.floor(low / step), math.ceil(high / step)
    if last - first > MOST_POINTS:
        raise UndecidedError(
            f"The moments between x={low:.6g} and {high:.6g} need {last - first} nodes in floats."
        )
    return first, last


def _shares(s: float, loss: Any, bell: Any) -> tuple[Any, Any]:
    """Return the tilted law as shares of its mass, and L − m with its mean m; drop tiny terms."""
    logs = s * loss + bell
    mass = np.exp(logs - logs.real.max())
    seen = np.flatnonzero(np.abs(mass) > _LEAST_SHARE)
    kept = slice(seen[0], seen[-1] + 1)
    mass, loss = mass[kept] / mass[kept].sum(), loss[kept]
    return mass, loss - np.dot(mass, loss)

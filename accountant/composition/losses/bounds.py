"""Upper bounds for the moments of a Gaussian mixture on shifted contours.

Let l(x) = μx − μ²/2 be the loss of N(μ, 1) against N(0, 1), w(x) = 1 − q + q e^{l(x)} the density
of the mixture against N(0, 1), and Λ(s) = E[w(X)^s] for X ~ N(0, 1). For 0 ≤ y(x) ≤ π/(2μ) the
factors of w are vectors at an angle θ = μy ≤ π/2, so that on the contour x + iy(x)

- |w| increases with x and decreases with θ; arg w increases with both, from 0 to θ;
- |d ln|w|/dx| ≤ 2μp and |d arg w/dx| ≤ 2μp(1 − p) sin θ, with p = q e^l/w at real x.

By Cauchy's theorem |Λ(s − iτ)| ≤ ∫ φ(x) e^{y²/2} |w|^s e^{τ arg w} |dx + i dy| for a contour that
is shifted up. The integral is bounded by the largest value of every factor on each cell of a
partition, and by geometric tails outside. It is used for

- the error of the trapezoidal rule in x: at most 2 U/(e^{2πa/η} − 1) for the step η, with U the
  bound at y = a and τ = T, for every |t| ≤ T (Trefethen and Weideman 2014, Theorem 5.1);
- the decay of Λ(s + it): with τ = −T, it bounds |Λ(s + it)| for all |t| ≥ T.

The arithmetic is that of floats; a slack is added to every logarithm that exceeds the rounding
errors of its few operations a thousand times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np

from dpassay.accountant.composition.losses.kernels import (
    HALF_LOG_2PI,
    LEAST_RATE,
    LOSS_ERROR,
    ROOT_HALF,
    SLACK,
    distinct,
    log_half_erfc,
    log_half_erfc_at,
    log_near,
    log_sum,
    log_tilted,
)
from dpassay.accountant.errors import UndecidedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Complexes: TypeAlias = NDArray[np.complex128]

_FINER, _COARSER = 0.7, 1.19
"""Factors by which the step of a rule is made finer until its error is small, and coarser again."""
_FINEST = 1e-4
"""Step, as a share of the height, below which no rule is sought at that height."""
_STRETCH = 4.0
"""Length by which the range of an integrand is widened until it falls at both ends."""
_COARSE = 400
"""Cells of a bound that only chooses a rule: more are slower, fewer ask for finer rules."""
_FINE = 2400
"""Cells of a bound of the decay, which is multiplied by the count: wide ones lose a share of it."""
FALL = 30.0
"""The integrand is summed down to e^{−30} of its largest value."""
_FLOAT = 36.0
"""−ln of what floats do not add to 1."""
_NEAR_PEAK = 0.01
"""Error of a peak's place: a range about it has room for more."""
_CUT = 3.0
"""Phases in radians beyond which losses have no part in the contour: they would bend it for the
others."""
_FAR_WIDTHS = 60.0
"""Widths beyond a cut at which a mass that still counts is given up."""
_STEP, _GROWTH = 0.12, 1.3
"""Steps in which a search moves out: a share of the first length, later a factor of what is
reached."""
_STEEP = 2.0
"""Rise of ln|w|^s over a cell from which on its convexity is used: one value would be too large by
e²."""
_ASIDE = np.concatenate([0.25 * np.arange(1, 17), 4.0 * 1.15 ** np.arange(1, 50)])
_BESIDE = np.concatenate([-_ASIDE[::-1], [0.0], _ASIDE])
"""Distances from a cut, in its widths, at which cells end: dense where χ bends, wide far off."""
LARGEST_GRID = 1 << 20
"""Longest range of an integrand: its points would fill hundreds of megabytes."""


@final
@dataclass(frozen=True)
class Mixture:
    """The numbers of a mixture (1 − q) N(0, 1) + q N(μ, 1), as floats."""

    mu: float
    log_share: float
    """ln q"""
    log_rest: float
    """ln(1 − q)"""
    cut: float = math.inf
    """Where the normal law is cut off smoothly: φ is φχ, χ(x) = erfc((x − cut)/(τ√2))/2."""
    width: float = 1.0
    """τ"""
    rise: float = -math.inf
    """Where it begins, as smoothly: χ has the factor erfc((rise − x)/(τ'√2))/2 as well."""
    rise_width: float = 1.0
    """τ'"""

    @property
    def is_cut(self) -> bool:
        """Whether the normal law is cut off, or begins somewhere."""
        return math.isfinite(self.cut) or math.isfinite(self.rise)

    @property
    def lost(self) -> tuple[float, float]:
        """What the cut takes from N(0, 1) and from the mixture, without proof."""
        scale = math.sqrt(2 * (1 + self.width * self.width))
        plain, shifted = (0.5 * math.erfc((self.cut - m) / scale) for m in (0.0, self.mu))
        return plain, math.exp(self.log_rest) * plain + math.exp(self.log_share) * shifted

    def bell(self, x: Floats) -> Floats:
        """Return an upper bound of ln(√(2π) φ χ), which is nearly met."""
        if not self.is_cut:
            return -0.5 * x * x
        return -0.5 * x * x + self.log_kept(x, np.zeros_like(x))

    def log_kept(self, x: Floats, y: Floats) -> Floats:
        """Return an upper bound of ln|χ(x + iy)|, nearly met for y = 0."""
        return self._log_below(x, y) + self._log_above(x, y)

    def _log_below(self, x: Floats, y: Floats) -> Floats:
        if math.isinf(self.cut):
            return np.zeros_like(x)
        return log_half_erfc(
            (x - self.cut) * (ROOT_HALF / self.width), y * (ROOT_HALF / self.width)
        )

    def _log_above(self, x: Floats, y: Floats) -> Floats:
        if math.isinf(self.rise):
            return np.zeros_like(x)
        return log_half_erfc(
            (self.rise - x) * (ROOT_HALF / self.rise_width), y * (ROOT_HALF / self.rise_width)
        )

    def log_density(self, x: Floats) -> Floats:
        """Return ln w(x)."""
        return np.logaddexp(self.log_rest, self.log_shifted(x))

    def share(self, x: Floats) -> Floats:
        """Return p(x) = q e^l/w."""
        difference = self.log_rest - self.log_shifted(x)
        return np.exp(-np.logaddexp(0.0, difference))

    def _share_at(self, x: float) -> float:
        odds = self.log_share + self.mu * x - 0.5 * self.mu * self.mu - self.log_rest
        return 1 / (1 + math.exp(-odds)) if odds > -_FLOAT else math.exp(odds)

    def at_angle(self, x: Floats, angle: Floats | float) -> tuple[Floats, Floats]:
        """Return ln|w| and arg w where q e^l is turned by an angle in [0, π/2]."""
        terms = Terms.of(self, x)
        return terms.log_size(np.cos(angle)), terms.angle(np.sin(angle), np.cos(angle))

    def log_shifted(self, x: Floats) -> Floats:
        """Return ln q e^l."""
        return self.log_share + self.mu * x - 0.5 * self.mu * self.mu

    @property
    def largest_shift(self) -> float:
        """The largest height y that is allowed, a little below π/(2μ)."""
        return (0.5 * math.pi - 1e-9) / self.mu

    def reach(self, s: float, tau: float, height: float, fall: float) -> tuple[float, float]:
        """Return [a, b] outside which the integrand decays geometrically and is small.

        At both ends it is below e^{−fall} times its largest value, and falls at rate ≥ 1.
        """
        width = math.sqrt(2 * fall) + 1
        last = self.right(s)
        low, high = self._left(s, width), last + width
        tall = height if tau > 0 and height > 0 else math.inf
        while True:
            if high - low > LARGEST_GRID or high > self.cut + _FAR_WIDTHS * (1 + self.width):
                raise UndecidedError(f"The mass of a mixture tilted by {s:.6g} spreads too far.")
            x = np.linspace(low, high, max(64, int(4 * (high - low))))
            value = self._integrand(x, s, tau, height)
            floor = float(value.max()) - fall
            left, right = self.rates(low, high, s, tau, tall)
            if left >= LEAST_RATE and right >= LEAST_RATE and value[0] <= floor >= value[-1]:
                kept = np.flatnonzero(value > floor)
                if not kept.size:  # the logarithms have no digits for differences
                    raise UndecidedError(f"A mixture tilted by {s:.6g} is beyond floats.")
                return self._trimmed(x, int(kept[0]), int(kept[-1]), s, tau, tall)
            if left < LEAST_RATE or value[0] > floor:
                low -= _STRETCH
            if right < LEAST_RATE or value[-1] > floor:
                high += _STRETCH

    def _trimmed(  # noqa: PLR0917
        self, x: Floats, first: int, last: int, s: float, tau: float, height: float
    ) -> tuple[float, float]:
        """Cut off what is small, as far as the rates of decay outside stay large enough."""
        low, high = float(x[max(first - 1, 0)]), float(x[min(last + 1, len(x) - 1)])
        left = self.rates(low, float(x[-1]), s, tau, height)[0]
        right = self.rates(low, high, s, tau, height)[1]
        return (
            low if left >= LEAST_RATE else float(x[0]),
            high if right >= LEAST_RATE else float(x[-1]),
        )

    def right(self, s: float) -> float:
        """Return a point at or right of all maxima of φχ w^s: an iterate of x = sμ p(x)."""
        x = min(max(s, 0.0) * self.mu, max(self.cut, 0.0) + self.width)
        for _ in range(60):
            last, x = x, min(x, max(s, 0.0) * self.mu * self._share_at(x))
            if x > 0.999 * last:
                break
        return max(x, self.rise + 2 * self.rise_width)

    def end(self, s: float, fall: float) -> float:
        """Return a point right of which φχ w^s is below e^−fall of its largest value."""
        peak = self.right(s)
        away = far = math.sqrt(2 * fall)
        floor = self._log_term(peak, s) - fall
        while self._log_term(peak + far, s) > floor:
            far = far + _STEP * away if far < 2 * away else _GROWTH * far
        return peak + far

    def _log_term(self, x: float, s: float) -> float:
        odds = self.log_share + self.mu * x - 0.5 * self.mu * self.mu - self.log_rest
        more = odds + math.log1p(math.exp(-odds)) if odds > 0 else math.log1p(math.exp(odds))
        whole = math.isinf(self.cut)
        kept = 0.0 if whole else log_half_erfc_at((x - self.cut) * ROOT_HALF / self.width)
        return s * (self.log_rest + more) - 0.5 * x * x + kept

    def _left(self, s: float, width: float) -> float:
        """Return a first left end: the peak of φ w^s for s < 0 is where x = −|s| μ p(x)."""
        low = -width if s >= 0 else self.peak(s) - width
        return max(low, self.rise - width * self.rise_width)

    def peak(self, s: float) -> float:
        """Return where φ w^s is largest for s < 0: the root of x = sμ p(x), by Newton's method."""
        low, high = s * self.mu, 0.0
        x = high
        for _ in range(80):
            p = self._share_at(x)
            value = x - s * self.mu * p
            low, high = (low, x) if value > 0 else (x, high)
            x -= value / (1 - s * self.mu * self.mu * p * (1 - p))
            if not low < x < high:
                x = 0.5 * (low + high)
            if abs(value) < _NEAR_PEAK:
                break
        return x

    def _integrand(self, x: Floats, s: float, tau: float, height: float) -> Floats:
        if height == 0:
            return self.bell(x) + s * self.log_density(x)
        size, angle = self.at_angle(x, self.mu * height)
        value: Floats = self.bell(x) + s * size + tau * angle
        return value

    def rates(
        self, low: float, high: float, s: float, tau: float, height: float = math.inf
    ) -> tuple[float, float]:
        """Return rates at which the integrand f falls beyond the two ends, where y ≤ height.

        f(x) ≤ f(high) e^{−r(x − high)} for all x ≥ high, and so on the left: r bounds the slope of
        ln f.
        """
        tau *= math.sin(min(self.mu * height, 0.5 * math.pi))
        p_low, p_high = self._share_at(low), self._share_at(high)
        left = -low - 2 * self.mu * p_low * (max(-s, 0.0) + max(-tau, 0.0))
        left += max(self.rise - low, 0.0) / self.rise_width**2
        turning = p_high * (1 - p_high) if p_high >= 0.5 else 0.25
        right = self._falls(high, s, p_high) - 2 * self.mu * max(tau, 0.0) * turning
        return left, right

    def _falls(self, high: float, s: float, share: float) -> float:
        """Return a lower bound of x + (x − cut)⁺/τ² − sμ|v/w| for all x ≥ high.

        |v/w| ≤ min(1, 2p e^{μ(x − high)}); so the sum is concave where that is not 1.
        """
        pull = max(s, 0.0) * self.mu
        further = math.log(max(1.0, 0.5 / max(share, 1e-300))) / self.mu

        def at(x: float, size: float) -> float:
            return x + max(x - self.cut, 0.0) / self.width**2 - pull * size

        if high < self.cut < high + further:
            return min(at(high, min(1.0, 2 * share)), at(self.cut, 1.0))
        return min(at(high, min(1.0, 2 * share)), at(high + further, 1.0))

    def log_bound(self, s: float, tau: float, height: float, *, cells: int = _COARSE) -> float:
        """Return an upper bound of ln ∫ φ e^{y²/2} |w|^s e^{τ arg w} dx at constant y = height."""
        x = self._grid(s, tau, height, cells)
        return log_sum(self._cells(x, np.full(len(x), height), s, tau)[0])

    def rule(self, s: float, tau: float, height: float, log_error: float) -> tuple[float, float]:
        """Return a step of the trapezoidal rule, and ln of a bound of its error for |t| ≤ τ.

        The rule is wrong by ∫ f/(e^{−2πiz/η} − 1) dz over contours above and below the real line;
        they are at `height`, and lower where |χ| grows with the height, as far as f is small.
        """
        x = self._grid(s, tau, height, _COARSE)
        y = self.lowered(x, np.full(len(x), height), s)
        logs, least = self._cells(x, y, s, tau)
        logs = logs + math.log(2)

        def error(step: float) -> float:
            gap = 2 * math.pi * least / step
            with np.errstate(divide="ignore"):
                return log_sum(logs - gap - np.log(-np.expm1(-gap)))

        fine = 2 * math.pi * height / (max(log_sum(logs) - log_error, 0.0) + 1.0)
        while error(fine) > log_error:
            fine *= _FINER
            if fine < height * _FINEST:
                return fine, math.inf
        coarse = fine * _COARSER
        while error(coarse) <= log_error:
            fine, coarse = coarse, coarse * _COARSER
        return fine, error(fine)

    def _grid(self, s: float, tau: float, height: float, cells: int) -> Floats:
        return self.refined(np.linspace(*self.reach(s, tau, height, FALL), cells + 1))

    def refined(self, x: Floats) -> Floats:
        """Add points beside the cuts, closer the nearer they are."""
        places = [place + width * _BESIDE for place, width in self.edges if x[0] < place < x[-1]]
        if not places:
            return x
        added = np.concatenate(places)
        return distinct(np.concatenate([x, added[(added > x[0]) & (added < x[-1])]]))

    @property
    def edges(self) -> list[tuple[float, float]]:
        """Return the places of the cuts and their widths."""
        edges = [(self.cut, self.width), (self.rise, self.rise_width)]
        return [edge for edge in edges if math.isfinite(edge[0])]

    def log_decay(self, s: float, t: float) -> float:
        """Return an upper bound of ln|Λ(s + iu)| for all |u| ≥ t > 0.

        The contour is y = t g(x), where g is the Stein kernel of the loss under the law with
        density ∝ φ w^s: then the bound falls like e^{−t²V/2} for small t, with V the variance of
        the loss under that law, as |Λ| does. Large losses, whose phases differ by more than π or
        so, need no such care and are left out of the kernel. Any other contour would be as valid.
        """
        low, high = self.reach(s, -t, 0.0, FALL)
        x = np.linspace(low, high, _FINE + 1)
        loss = self.log_density(x)
        mass = self.bell(x) + s * loss
        kernel = stein_kernel(loss, mass, t) * (x[1] - x[0])
        height = np.clip(np.maximum.accumulate(t * kernel), 0.0, self.largest_shift)
        first = int(np.argmax(height > 0))
        height[:first] = np.minimum(height[first], np.sqrt(0.5 * (mass.max() - mass[:first])))
        rough, x = x, self.refined(x)
        height = self.lowered(x, np.interp(x, rough, height), s)
        return log_sum(self._cells(x, height, s, -t)[0])

    def lowered(self, x: Floats, height: Floats, s: float) -> Floats:
        """Lower a contour beside a cut, where |χ| grows with the height."""
        if math.isinf(self.cut) and math.isinf(self.rise):
            return height
        mass = self.bell(x) + s * self.log_density(x)
        spare = 1.0 + 0.5 * (float(mass.max()) - mass)
        found = height
        for away, width in ((self.cut - x, self.width), (x - self.rise, self.rise_width)):
            if np.isfinite(away).all():
                u = np.maximum(away, 0.0) * (ROOT_HALF / width)
                found = np.minimum(found, width / ROOT_HALF * np.sqrt(0.5 * u * u + spare))
        return found

    def _cells(self, x: Floats, y: Floats, s: float, tau: float) -> tuple[Floats, Floats]:
        """Bound the integral over the contour through the points x + iy, cell by cell.

        On a cell each factor is taken at the corner where it is largest. The last two are those
        outside. Returns the logarithms, and the least height on every cell.
        """
        lower, higher = np.minimum(y[:-1], y[1:]), np.maximum(y[:-1], y[1:])
        flattest, turned = self.mu * lower, self.mu * higher
        terms, wide = Terms.of(self, x), np.diff(x)
        left, right, cosine = (
            terms.part(slice(None, -1)),
            terms.part(slice(1, None)),
            np.cos(flattest),
        )
        if s * self.mu * float(wide.max()) > _STEEP:  # w^s is log-convex at every angle
            growth = [s * end.log_size(cosine) for end in (left, right)]
            tilt = s * self.mu * self.share(0.5 * (x[:-1] + x[1:]))
            base, size = log_tilted(x, tilt, growth), np.abs(growth) + np.abs(tilt * x[1:])
        else:
            size = s * (right.log_size(cosine) if s >= 0 else left.log_size(np.cos(turned)))
            base = log_near(x) + size
        if tau >= 0:
            angle = right.angle(np.sin(turned), np.cos(turned))
        else:
            angle = left.angle(np.sin(flattest), cosine)
        length = np.hypot(wide, np.diff(y)) / wide
        rise = 0.5 * higher * higher
        logs = base + self.log_kept_on(x, higher) + rise + tau * angle + np.log(length)
        rates = self.rates(float(x[0]), float(x[-1]), s, tau, float(max(y[0], y[-1])))
        outside = self.log_integrand(x[[0, -1]], s, tau, y[[0, -1]]) - np.log(rates) - HALF_LOG_2PI
        size_of_terms = 1 + 2 * float(np.abs(size).max()) + float(np.abs(tau * angle).max())
        size_of_terms += float((x * x).max() + rise.max())
        slack = SLACK * size_of_terms + LOSS_ERROR * (abs(s) + abs(tau))
        return np.concatenate([logs, outside]) + slack, np.concatenate([lower, y[[0, -1]]])

    def log_integrand(self, x: Floats, s: float, tau: float, height: Floats) -> Floats:
        """Return ln(√(2π) φ e^{y²/2} |w|^s e^{τ arg w}) at x + iy, y = height ≥ 0."""
        size, angle = self.at_angle(x, self.mu * height)
        return self.log_kept(x, height) + 0.5 * (height * height - x * x) + s * size + tau * angle

    def log_kept_on(self, x: Floats, height: Floats) -> Floats:
        """Return upper bounds of ln|χ| on cells.

        The bound of each factor falls away from its cut, or falls to both sides of it.
        """
        total = np.zeros(len(x) - 1)
        if not self.is_cut:
            return total
        left, right, y = (each.copy() for each in np.broadcast_arrays(x[:-1], x[1:], height))
        for place, side in ((self.cut, self._log_below), (self.rise, self._log_above)):
            if math.isfinite(place):
                peak = np.clip(place, left, right)
                ends = [side(at, y) for at in (left, right, peak)]
                total += np.maximum(np.maximum(*ends[:2]), ends[2])
        return total


@final
@dataclass(frozen=True, slots=True)
class Terms:
    """The two terms 1 − q and q e^l of w at real points, divided by the larger one."""

    log_top: Floats
    smaller: Floats
    is_shifted: NDArray[np.bool_]
    """Whether q e^l is the larger one."""

    @staticmethod
    def of(law: Mixture, x: Floats) -> Terms:
        """Return those of a mixture."""
        shifted = law.log_shifted(x)
        above = shifted - law.log_rest
        return Terms(np.maximum(shifted, law.log_rest), np.exp(-np.abs(above)), above > 0)

    def part(self, kept: slice) -> Terms:
        """Return those at some of the points."""
        return Terms(self.log_top[kept], self.smaller[kept], self.is_shifted[kept])

    def log_size(self, cosine: Floats | float) -> Floats:
        """Return ln|w| where q e^l is turned by an angle of this cosine, which is not negative."""
        found: Floats = self.log_top + 0.5 * np.log1p(self.smaller * (self.smaller + 2 * cosine))
        return found

    def angle(self, sine: Floats | float, cosine: Floats | float) -> Floats:
        """Return arg w where q e^l is turned by an angle."""
        still = np.where(self.is_shifted, self.smaller, 1.0)
        turned = np.where(self.is_shifted, 1.0, self.smaller)
        found: Floats = np.arctan2(turned * sine, still + turned * cosine)
        return found


def stein_kernel(loss: Floats, log_mass: Floats, t: float) -> Floats:
    """Return the Stein kernel of the small values of a loss, by the step between its points.

    `log_mass` are the logarithms of its density ∝ φ w^s at these points.
    """
    mass = np.exp(log_mass - log_mass.max())
    median = loss[np.searchsorted(np.cumsum(mass), 0.5 * mass.sum())]
    near = np.where(t * (loss - median) <= _CUT, mass, 0.0)
    mean = float(np.dot(near, loss) / near.sum())
    moment = near * (loss - mean)
    above = np.cumsum(moment[::-1])[::-1]
    kernel = np.where(loss > mean, above, -np.cumsum(moment))
    positive = near > 1e-12 * near.max()
    return np.where(positive, kernel / np.where(positive, near, 1.0), 0.0)

"""Moments E_B[w^s] of Gaussian mixtures at complex s: rules on shifted lines, and bounds on discs.

For s = a + it with t > 0 the trapezoidal rule on the line Im x = y > 0 has terms of size
φ e^{y²/2} |w|^a e^{−t arg w}, arg w ≥ 0: where the phases of w^{it} would turn fast on the real
line they are small here, and the step need not follow t. Between two lines, at the heights y₁ < y₂
(below 0 the sizes are e^{+t|arg w|}), the integrand is analytic: the rule halfway with step η is
wrong by at most (U₁ + U₂)/(e^{π(y₂ − y₁)/η} − 1), with U the bounds of `saddle_bounds` for the two
lines (Trefethen and Weideman 2014, Theorem 5.1). Both are largest at the corners of a box of s.

Bounds on discs: S(s) = Σ_j η φ(x_j) e^{sL_j} is entire; around s₀, |S − S₀ − S₁(s − s₀)| ≤ B r²/2
with B = Σ |terms| |L|² e^{r|L|}. Losses are centred, L − m, which multiplies S by e^{−sm}: so that
large powers of S lose nothing. Floats; their rounding, in S₀ and in S₁, is bounded term by term and
added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
from flint import acb

from accountant.composition.bent_curves import Curve, curve_bound, curve_ends, end_rate
from accountant.composition.saddle_bounds import Mixture
from accountant.composition.saddle_box import log_bounds
from accountant.errors import UndecidedError
from accountant.precision import ctx

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Complexes: TypeAlias = NDArray[np.complex128]

_LOG_2PI = math.log(2 * math.pi)
_LEVELS = 6
_LARGER = 4.0
_SCALE = 0.35
_RISE = Fraction(17, 20)
_SHARES = ((0.2, 0.95), (0.5, 0.95), (0.85, 0.95), (0.5, 0.45), (0.85, 0.45))
_ROUNDING = 2.0**-50
_SPARE = 8.0
_LONGEST = 40_000
_ROUGH = 30.0
_LEAST = 1e-15
_BELOW, _ABOVE = 1 - 1e-12, 1 + 1e-9
_ROUGH_BITS = 64
_LOGS = 800.0  # no logarithm of a float is larger


@final
@dataclass(frozen=True)
class Box:
    """All s = a + it with a₁ ≤ a ≤ a₂ and t₁ ≤ t ≤ t₂."""

    left: float
    right: float
    low: float
    high: float


@final
@dataclass(frozen=True)
class Rule:
    """The nodes x(j·step), first ≤ j ≤ last, of one mixture, good for all s in a box."""

    mixture: Mixture
    curve: Curve
    step: Fraction
    first: int
    last: int
    log_error: float
    """ln of a bound of |E[w^s] − Σ| in the box."""

    def floats(self) -> tuple[Complexes, Complexes, Floats, Floats]:
        """Return L = ln w and ln(η x' φ) at the nodes, and the sizes of what is rounded in them."""
        u = np.arange(self.first, self.last + 1.0) * float(self.step)
        x, speed = self.curve.at(u.astype(np.complex128))
        weight = -0.5 * x * x + np.log(speed) + math.log(float(self.step)) - 0.5 * _LOG_2PI
        size = np.abs(x)
        of_weight = np.abs(weight) + size * size
        if math.isfinite(self.mixture.cut):
            z = (x - self.mixture.cut) / (math.sqrt(2) * self.mixture.width)
            near = z.real > -6.0 - np.abs(z.imag)
            with ctx.workprec(_ROUGH_BITS):
                kept = [(acb(v.real, v.imag).erfc() / 2).log() for v in z[near].tolist()]
            weight[near] += np.array([complex(value) for value in kept])
            of_weight += (size + abs(self.mixture.cut)) * 2 * np.abs(z) / self.mixture.width
        known = self.mixture
        parts = abs(known.log_share) + abs(known.log_rest) + 0.5 * known.mu**2
        return known.log_at(x)[0], weight, parts + known.mu * size, of_weight


def rule(mixture: Mixture, box: Box, fall: float) -> Rule:
    """Choose the rule with the fewest nodes whose error is e^−fall of the size of its terms."""
    tallest = min(mixture.largest_shift, math.sqrt(2 * fall))
    if math.isfinite(mixture.cut):
        tallest = min(tallest, mixture.width * math.sqrt(2 * fall + mixture.cut**2))
    ends = (box.left, box.right)
    heights = [tallest * i / _LEVELS for i in range(-_LEVELS, _LEVELS + 1)]
    bounds = log_bounds(mixture, ends, box.low, box.high, np.array(heights))
    sizes = dict(zip(range(-_LEVELS, _LEVELS + 1), bounds.tolist(), strict=True))
    base = min(sizes[i] for i in range(_LEVELS + 1))
    jumps = 0.5 * (box.right * mixture.mu) ** 2 + box.right * mixture.log_share
    threshold = (mixture.log_rest - mixture.log_share) / mixture.mu + 0.5 * mixture.mu
    curves = math.isinf(mixture.cut) and threshold < mixture.right(box.right) + math.sqrt(2 * fall)
    if curves and box.low > 0 and box.right > 0 and jumps - 0.5 * math.pi * box.low > -fall:
        curved = _curved_rule(mixture, box, fall, base)
        if curved is not None:
            return curved
    best = (0.0, 0.0, 0, 0)
    for middle in range(_LEVELS):
        worse = max(sizes[middle] - base, 0.0)
        for aside in range(1, _LEVELS - middle + 1):
            level = float(np.logaddexp(sizes[middle - aside], sizes[middle + aside]))
            step = 2 * math.pi * aside / (fall + max(level - base, 0.0) + _SPARE)
            best = max(best, (step / (1 + worse / _LARGER), step, middle, aside))
    _, size, middle, aside = best
    if not size * tallest > 0 or not math.isfinite(base):
        raise UndecidedError("The moments grow too fast in a box. Take a smaller one.")
    step = _dyadic(size * tallest / _LEVELS)
    height, apart = heights[middle + _LEVELS], 2 * aside * tallest / _LEVELS
    tau = -box.low
    reaches = [mixture.reach(a, tau, height, fall + _SPARE) for a in ends]
    first = math.floor(min(r[0] for r in reaches) / step)
    last = math.ceil(max(r[1] for r in reaches) / step)
    _check(last - first, box)
    gap = math.pi * apart * (1 - 1e-9) / float(step)
    level = float(np.logaddexp(sizes[middle - aside], sizes[middle + aside]))
    logs = [level - math.log(-math.expm1(-gap)) - gap]
    for a in ends:
        edges = float(first * step), float(last * step)
        rates = mixture.rates(*edges, a, tau)
        for x, rate in zip(edges, rates, strict=True):
            if not rate > 0:
                raise UndecidedError("The moments do not decay. Ask for a larger relative_width.")
            at_end = mixture.log_integrand(x, a, tau, height) - 0.5 * _LOG_2PI
            logs.append(at_end + math.log(float(step)) - _log_expm1(float(step) * rate))
    return Rule(mixture, Curve(Fraction(height)), step, first, last, _log_sum(logs))


def _curved_rule(mixture: Mixture, box: Box, fall: float, base: float) -> Rule | None:
    """Return a rule on a curve that rises where the losses are large, if its terms are small."""
    threshold = (mixture.log_rest - mixture.log_share) / mixture.mu + 0.5 * mixture.mu
    scale = Fraction(_dyadic(_SCALE / mixture.mu))
    start = Fraction(_dyadic_near(threshold + 1.5 / mixture.mu))
    tallest = min(mixture.largest_shift, math.sqrt(2 * fall))
    corners = np.array([complex(a, t) for a in (box.left, box.right) for t in (box.low, box.high)])
    best: tuple[float, float, Curve, float] | None = None
    for share, part in _SHARES:
        height = share * tallest
        away = part * min(height, 0.9 * math.pi / mixture.mu - height, 2.5 * float(scale))
        curve = Curve(Fraction(height), _RISE, start, scale)
        here = curve_bound(mixture, curve, corners, 0.0, fall)
        if not here <= base:
            continue
        aside = [curve_bound(mixture, curve, corners, offset, fall) for offset in (-away, away)]
        if not math.isfinite(sum(aside)):
            continue
        level = _log_sum(aside)
        size = 2 * math.pi * away / (fall + max(level - here, 0.0) + _SPARE)
        if best is None or size > best[0]:
            best = size, away, curve, level
    if best is None:
        return None
    size, away, curve, level = best
    step = _dyadic(size)
    ends = curve_ends(mixture, curve, corners, 0.0, fall + _SPARE)
    if ends is None:
        return None
    first, last = math.floor(ends[0] / step), math.ceil(ends[1] / step)
    _check(last - first, box)
    gap = 2 * math.pi * away * (1 - 1e-9) / float(step)
    logs = [level - math.log(-math.expm1(-gap)) - gap]
    for u, side in ((float(first * step), -1), (float(last * step), 1)):
        value, rate = end_rate(mixture, curve, corners, u, side)
        if not rate > 0:
            return None
        logs.append(value + math.log(float(step)) - _log_expm1(float(step) * rate))
    return Rule(mixture, curve, step, first, last, _log_sum(logs))


def _check(count: int, box: Box) -> None:
    if count > _LONGEST:
        raise UndecidedError(
            f"The moments at s up to {box.right:.4g} + {box.high:.4g}i need {count} nodes. "
            "Ask for a larger relative_width."
        )


def _log_expm1(value: float) -> float:
    return value + math.log(-math.expm1(-value))


def _log_sum(logs: Sequence[float]) -> float:
    top = max(logs)
    return top + math.log(sum(math.exp(v - top) for v in logs)) + 1e-6


def _dyadic(value: float) -> Fraction:
    """Round down to six bits."""
    mantissa, exponent = math.frexp(value)
    return Fraction(math.floor(mantissa * 64), 64) * Fraction(2) ** exponent


def _dyadic_near(value: float) -> Fraction:
    return Fraction(round(value * 1024), 1024)


@final
@dataclass(frozen=True)
class Moments:
    """Π E[w_i^s]^{k_i} e^{s(s−1)v} in floats: the mixtures, and Gaussian losses of KL v in all."""

    mixtures: tuple[tuple[Mixture, int], ...]
    half: float
    means: tuple[float, ...]
    """The losses m_i by which the mixtures are centred."""

    @property
    def mean(self) -> float:
        """Σ k_i m_i."""
        return math.fsum(k * m for (_, k), m in zip(self.mixtures, self.means, strict=True))

    def rules(self, box: Box, fall: float) -> tuple[Rule, ...]:
        """Return a rule for every mixture."""
        return tuple(rule(mixture, box, fall + math.log(count)) for mixture, count in self.mixtures)

    def balanced(self, box: Box, needed: float) -> tuple[tuple[Rule, ...], float]:
        """Return rules whose errors are e^−needed of the moments, and what cancels in their sums.

        The moments are estimated at the middle of the box; where they are lost among their terms
        they are taken as e^−36 of these.
        """
        middle = np.array([complex(0.5 * (box.left + box.right), 0.5 * (box.low + box.high))])
        lost = 0.0
        for r, mean in zip(self.rules(box, _ROUGH), self.means, strict=True):
            _, zero, _, second, *_ = _series(r, mean, middle, np.zeros(1), plain=True)
            ratio = float(second[0]) / max(float(abs(zero[0])), _LEAST * float(second[0]))
            lost = max(lost, math.log(ratio))
        return self.rules(box, needed + lost), lost

    def on_discs(
        self, rules: Sequence[Rule], s: Complexes, radius: Floats, poles: Sequence[float], e: float
    ) -> tuple[Floats, Floats]:
        """Return ln|f| at every s, and upper bounds of ln|f| on discs around them.

        f = Π E[w_i^s]^{k_i} e^{s(s−1)v − sE} Π 1/|s − pole|; the first is an estimate.
        """
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return self._on_discs(rules, s, radius, poles, e)

    def _on_discs(
        self, rules: Sequence[Rule], s: Complexes, radius: Floats, poles: Sequence[float], e: float
    ) -> tuple[Floats, Floats]:
        shift = e - self.mean
        value = np.real(s * (s - 1)) * self.half - s.real * shift
        slope = (2 * s - 1) * self.half - shift
        bend = np.full(len(s), 2 * self.half)
        crude = np.real(s * (s - 1)) * self.half - s.real * shift
        crude = crude + (abs(2 * s - 1) * self.half + abs(shift)) * radius
        crude += self.half * radius * radius
        fine = np.ones(len(s), dtype=bool)
        loose, rounding = np.zeros(len(s)), np.zeros(len(s))
        for (_, count), mean, r in zip(self.mixtures, self.means, rules, strict=True):
            top, zero, first, second, blur, turn = _series(r, mean, s, radius)
            size, steep = np.abs(zero), np.abs(first) + turn
            spread = steep * radius + 0.5 * second * radius * radius + blur
            with np.errstate(divide="ignore", invalid="ignore"):
                value = value + count * (top + np.log(size))
                crude += count * (top + np.log(size + spread))
                low = size - spread
                safe = low > 0
                fine &= safe
                low = np.where(safe, low, 1.0)
                here = np.where(safe, zero, 1.0)
                slope = slope + count * np.where(safe, first / here, 0.0)
                bend += count * (second / low + ((steep + second * radius) / low) ** 2)
                loose += count * np.log1p(blur / low)
                loose += count * radius * (turn + blur * steep / low) / low
                rounding += count * _ROUNDING * (_LOGS + np.abs(top))
        kappa = np.zeros(len(s))
        for pole in poles:
            away = np.abs(s - pole)
            room = away * _BELOW - radius
            value = value - np.log(away)
            kappa -= np.log(np.where(room > 0, room, np.nan))
        better = value + np.abs(slope) * radius + 0.5 * bend * radius * radius + loose
        for pole in poles:
            better = better + np.log(np.abs(s - pole))
        bound = np.where(fine, np.minimum(better, crude), crude) + kappa + rounding
        scale = np.abs(s) * (abs(e) + sum(k * abs(m) for (_, k), m in self._pairs()))
        bound = bound + _ROUNDING * (scale + np.abs(s) ** 2 * self.half + 1e3)
        return value, np.where(np.isnan(bound), np.inf, bound)

    def _pairs(self) -> list[tuple[tuple[Mixture, int], float]]:
        return list(zip(self.mixtures, self.means, strict=True))


def _series(
    r: Rule, mean: float, s: Complexes, radius: Floats, *, plain: bool = False
) -> tuple[Floats, Complexes, Complexes, Floats, Floats, Floats]:
    """Return ln of a scale, and, divided by it: S₀, S₁, B and bounds of the errors of S and S₁.

    Instead of B, Σ |terms| if `plain`. That of S has the error of the rule.
    """
    loss, weight, of_loss, of_weight = r.floats()
    centred = loss - mean
    exponent = s[:, None] * centred[None, :] + weight[None, :]
    top = exponent.real.max(axis=1)
    terms = np.exp(exponent - top[:, None])
    sizes = np.abs(terms)
    absolute = np.abs(centred)
    zero, first = terms.sum(axis=1), terms @ centred
    if plain:
        return top, zero, first, sizes.sum(axis=1), np.zeros(len(s)), np.zeros(len(s))
    grown = sizes * np.exp(radius[:, None] * absolute[None, :])
    second = grown @ (absolute * absolute) * _ABOVE
    of_loss = of_loss + absolute + abs(mean) + 1.0
    of_term = 16 + np.abs(weight) + of_weight + 0.25 * len(loss)
    ledger = _ROUNDING * (sizes @ of_term + np.abs(s) * (sizes @ of_loss))
    turn = _ROUNDING * (
        sizes @ (of_term * absolute + of_loss) + np.abs(s) * (sizes @ (of_loss * absolute))
    )
    with np.errstate(over="ignore"):
        error = np.exp(r.log_error - s.real * mean + np.abs(mean) * radius - top)
    return top, zero, first, second, ledger + error, turn

"""Closed forms in floats, for arrays: Gaussian, Laplace and finite pairs. Nothing is proved.

*Accuracy.* ln δ, and ε, have an error of at most 1e-12, relative where they exceed 1; so have
logarithms of tails and of powers. Where cancellation or a jump takes more digits the value is NaN,
and `dpassay.accountant.questions.estimate` asks for an enclosure there.

*Gaussian.* With x = ε/μ − μ/2 and R(x) = e^{x²/2} Φ(−x), H(ε) = e^{−x²/2} (R(x) − R(x + μ)), which
keeps its digits far out: R is half of scipy's erfcx at x/√2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
from flint import arb

from dpassay.accountant.core.pair import Pair
from dpassay.accountant.mechanisms.additive.laplace import LaplacePair
from dpassay.accountant.numbers.interval import START_PRECISION
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.finite import FinitePair
from dpassay.accountant.pairs.gaussian import GaussianPair

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

_ALLOWED = 2.5e-13
"""Error of one logarithm that is allowed: some of them are added up."""
_UNIT = 2.0**-52
_MOST_STEPS = 100
"""Steps of Newton's method, which is monotone here, and quadratic at the end."""
_MOST_OUTCOMES = 64
"""Outcomes up to which all points are asked at once: more take more memory than time."""


@final
@dataclass(frozen=True, slots=True)
class Shares:
    """Probabilities x: ln x; and ln(1 − x) of tails and powers, d ln x/dε of profiles."""

    log: Floats
    complement: Floats | None = None
    slope: Floats | None = None


class Forms:
    """One pair in floats: see `fourier.estimates.FloatCurve` for what its questions mean."""

    delta: Callable[[Floats], Shares]
    epsilon: Callable[[Floats], Floats]
    power: Callable[[Floats], Shares]
    tail_of_p: Callable[[Floats], Shares]


def forms(pair: Pair) -> Forms | None:
    """Return the closed forms of a pair, None where there are none."""
    with ctx.workprec(START_PRECISION):
        if isinstance(pair, GaussianPair):
            return _Gaussian(_float(pair.mu()))
        if isinstance(pair, LaplacePair):
            return _Laplace(_float(pair.distance.ball()))
        if isinstance(pair, FinitePair):
            outcomes = pair.masses()
            if len(outcomes) <= _MOST_OUTCOMES:
                return _Finite(outcomes)
    return None


def _float(value: arb) -> float:
    return float(value.mid())


def _log_of_rest(log: Floats) -> Floats:
    """Return ln(1 − e^log)."""
    rest = -np.exp(log)
    return np.where(log < -math.log(2), np.log1p(rest), np.log(-np.expm1(log)))


def _known(value: Floats, error: Floats) -> Floats:
    """Return the values, NaN where their error matters."""
    return np.where(error <= _ALLOWED * np.maximum(1.0, np.abs(value)), value, math.nan)


@final
class _Gaussian(Forms):
    """N(μ, 1) against N(0, 1)."""

    def __init__(self, mu: float) -> None:
        self._mu = mu

    def delta(self, epsilon: Floats) -> Shares:
        """Return H(ε): by R where x > 0, and by normal tails elsewhere."""
        log, slope = np.empty_like(epsilon), np.empty_like(epsilon)
        far = epsilon > 0.5 * self._mu**2
        for side, ask in ((far, self._far), (~far, self._near)):
            if side.any():
                log[side], slope[side] = ask(epsilon[side])
        return Shares(log, slope=slope)

    def _far(self, epsilon: Floats) -> tuple[Floats, Floats]:
        from scipy.special import erfcx  # slow to import

        root, cut, half = math.sqrt(0.5), epsilon / self._mu, 0.5 * self._mu
        x = cut - half
        one, other = erfcx(x * root), erfcx((cut + half) * root)
        less = one - other
        log = np.log(0.5 * less) - 0.5 * x * x
        error = _UNIT * (4 * (one + other) / less + x * (cut + half))
        return _known(log, error), -other / less

    def _near(self, epsilon: Floats) -> tuple[Floats, Floats]:
        from scipy.special import log_ndtr

        cut, half = epsilon / self._mu, 0.5 * self._mu
        x = cut - half
        first, second = log_ndtr(-x), epsilon + log_ndtr(-cut - half)
        rest = np.logaddexp(log_ndtr(x), second)
        log = np.where(rest < -1, np.log1p(-np.exp(rest)), first + _log_of_rest(second - first))
        error = _UNIT * (8 * np.exp(first - log) + np.abs(x) * (np.abs(cut) + half))
        return _known(log, error), -np.exp(second - log)

    def epsilon(self, log_delta: Floats) -> Floats:
        """Return the root by Newton's method: ln H is concave, so it stays on the right of it."""
        known = np.clip(log_delta, -1e300, -1e-300)
        at = self._mu**2 / 2 + self._mu * np.sqrt(-2 * known)
        for _ in range(_MOST_STEPS):
            found = self.delta(at)
            assert found.slope is not None
            move = (known - found.log) / found.slope
            at = at + move
            if not (np.abs(move) > 1e-14 * np.maximum(np.abs(at), self._mu)).any():
                break
        ends = np.where(log_delta == 0, -math.inf, math.inf)
        return np.where((log_delta == 0) | (log_delta == -math.inf), ends, at)

    def power(self, alpha: Floats) -> Shares:
        """Return Φ(Φ⁻¹(α) + μ)."""
        from scipy.special import log_ndtr, ndtri

        at = ndtri(alpha) + self._mu
        return Shares(log_ndtr(at), log_ndtr(-at))

    def tail_of_p(self, loss: Floats) -> Shares:
        """Return Φ(μ/2 − l/μ)."""
        from scipy.special import log_ndtr

        at = 0.5 * self._mu - loss / self._mu
        return Shares(log_ndtr(at), log_ndtr(-at))


@final
class _Laplace(Forms):
    """Lap(t, 1) against Lap(0, 1)."""

    def __init__(self, distance: float) -> None:
        self._t = distance

    def delta(self, epsilon: Floats) -> Shares:
        """Return 1 − e^{(ε−t)/2}, or 1 − e^ε below −t, 0 from t on."""
        t = self._t
        rest = np.minimum(np.where(epsilon >= -t, 0.5 * (epsilon - t), epsilon), 0.0)
        log = _log_of_rest(rest)
        share = np.where(epsilon >= -t, 0.5, 1.0)
        slope = np.where(rest < 0, -share * np.exp(rest - log), -math.inf)
        return Shares(self._sharp(log, np.abs(epsilon - t)), slope=slope)

    def epsilon(self, log_delta: Floats) -> Floats:
        """Return the larger one of t + 2 ln(1 − δ) and ln(1 − δ)."""
        rest = _log_of_rest(log_delta)
        return np.maximum(self._t + 2 * rest, rest)

    def power(self, alpha: Floats) -> Shares:
        """Return e^t α, 1 − e^{−t}/(4α), and 1 − e^{−t}(1 − α), in turn."""
        t, low = self._t, 0.5 * math.exp(-self._t)
        middle = -t - np.log(4 * np.clip(alpha, low, 0.5))
        rest = np.where(alpha <= 0.5, middle, np.log1p(-alpha) - t)
        steep = t + np.log(np.minimum(alpha, low))
        log = np.where(alpha < low, steep, _log_of_rest(rest))
        return Shares(log, np.where(alpha < low, np.log1p(-np.exp(steep)), rest))

    def tail_of_p(self, loss: Floats) -> Shares:
        """Return 1 − e^{(l−t)/2}/2 between the atoms, which lie at ±t."""
        t = self._t
        rest = 0.5 * (np.clip(loss, -t, t) - t) - math.log(2)
        log = np.where(loss >= t, -math.inf, np.where(loss < -t, 0.0, _log_of_rest(rest)))
        complement = np.where(loss >= t, 0.0, np.where(loss < -t, -math.inf, rest))
        edge = np.minimum(np.abs(loss - t), np.abs(loss + t))
        return Shares(self._sharp(log, edge), self._sharp(complement, edge))

    def _sharp(self, value: Floats, distance: Floats) -> Floats:
        """Return the values, NaN where the rounding of t is seen."""
        return np.where(distance * _ALLOWED >= self._t * _UNIT, value, math.nan)


@final
class _Finite(Forms):
    """Finitely many outcomes."""

    def __init__(self, outcomes: list[tuple[float, float, float]]) -> None:
        rows = sorted(outcomes, key=lambda row: -row[2])
        self._p, self._q, self._losses = np.array(rows, float).reshape(-1, 3).T
        self._above = [np.append(0.0, np.cumsum(each)) for each in (self._p, self._q)]
        self._below = [np.append(np.cumsum(each[::-1])[::-1], 0.0) for each in (self._p, self._q)]

    def delta(self, epsilon: Floats) -> Shares:
        """Return Σ p (1 − e^{ε−L}) over the losses above ε."""
        away = epsilon[:, None] - self._losses
        above = away < 0
        terms = np.where(above, -np.expm1(np.minimum(away, 0.0)) * self._p, 0.0)
        total = terms.sum(axis=1)
        finite = np.where(np.isfinite(self._losses), np.abs(self._losses), 0.0)
        size = np.where(above, (finite + np.abs(epsilon)[:, None]) * self._p, 0.0).sum(axis=1)
        edge = np.abs(away).min(axis=1) < 1e-12 * (1 + np.abs(epsilon))
        log = np.log(total)
        error = _UNIT * len(self._p) * (1 + size / np.where(total > 0, total, 1.0))
        slope = -np.exp(epsilon) * (above * self._q).sum(axis=1) / total
        slope = np.where(edge, math.nan, np.where(total > 0, slope, -math.inf))
        sure = _known(log, error) if self._losses.size else log
        return Shares(np.where(edge & (total < 1e-3), math.nan, sure), slope=slope)

    def epsilon(self, log_delta: Floats) -> Floats:
        """Return NaN: exact corners decide where the inverse jumps."""
        return np.full_like(log_delta, math.nan)

    def power(self, alpha: Floats) -> Shares:
        """Return the largest power: the outcomes of largest loss first, the last one in part."""
        p, q = self._above
        place = np.clip(np.searchsorted(q, alpha, side="right") - 1, 0, len(self._p) - 1)
        mass = self._q[place]
        share = np.where(mass > 0, (alpha - q[place]) / np.where(mass > 0, mass, 1.0), 1.0)
        share = np.clip(share, 0.0, 1.0)
        power = p[place] + share * self._p[place]
        rest = self._below[0][place + 1] + (1 - share) * self._p[place]
        edge = (np.abs(alpha[:, None] - q).min(axis=1) < 1e-12) & (alpha > 0) & (alpha < 1)
        first = np.where((rest < 1e-9) | (power < 1e-9) | edge, math.nan, 0.0)
        return Shares(np.log(power) + first, np.log(rest) + first)

    def tail_of_p(self, loss: Floats) -> Shares:
        """Return Σ p over the losses above l."""
        above = loss[:, None] < self._losses
        edge = np.abs(loss[:, None] - self._losses).min(axis=1) < 1e-12 * (1 + np.abs(loss))
        first = np.where(edge, math.nan, 0.0)
        p, rest = (above * self._p).sum(axis=1), (~above * self._p).sum(axis=1)
        return Shares(np.log(p) + first, np.log(rest) + first)

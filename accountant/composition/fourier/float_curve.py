"""Profiles, tails and their inverses of a product of smooth losses in floats, without proof.

A probability x is kept as ln x and ln(1 − x), of which the smaller is an integral of its own, so
that neither loses digits near 0 and near 1. Inverses are roots of the log-odds ln x − ln(1 − x),
which are decreasing and smooth in ε over their whole range.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from accountant.composition.fourier.estimates import (
    ABOVE_P,
    ABOVE_Q,
    BELOW_P,
    BELOW_Q,
    CALL,
    MIDDLE,
    PUT,
)
from accountant.composition.fourier.measure import Loss, estimator
from accountant.composition.numeric.search import Strip
from accountant.errors import UndecidedError

SMALL_DELTA = -2.5
"""Below this ln δ the saddle point of δ is searched, rather than ε."""
_MOST_STEPS = 200
"""Steps of a root: each halves a bracket at worst, and floats have fewer halves."""
_CLOSE = 1e-15
"""Relative size of the last move to a root."""
_ROUNDING = 1e-12
"""Moves below this, relative to ε, that no longer get smaller are rounding."""
_WIDER = 1.6
"""Factor by which the longest step grows where no bracket is known."""


@final
@dataclass(frozen=True, slots=True)
class Share:
    """A probability x that falls with ε, by its logarithms, and d ln x/dε."""

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
    """A sum of losses, with its least and its largest value."""

    def __init__(self, loss: Loss, least: float, largest: float) -> None:
        self._loss, self._least, self._largest = loss, least, largest
        self._engine = estimator(loss)
        _, self._mean, variance = self._engine.cumulants(0.0)
        self._spread = math.sqrt(variance)

    def delta(self, epsilon: float) -> Share:
        """Return δ(ε).

        Raises UndecidedError where the digits are lost to cancellation.
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
        if rest <= self._least:  # δ(ε) = 1 − e^ε below every loss
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
        """Return the ε with Q(L > ε) = α, after one step from where the log-odds are `settled`."""
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
            if usable and abs(found.odds - odds) <= settled:
                return at + move
            if abs(move) <= _CLOSE * scale or 0.5 * last <= abs(move) <= _ROUNDING * scale:
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
    """Return the share with ln(1 − x) and its slope."""
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

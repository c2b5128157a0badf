"""Gauss–Legendre rules on panels that are short beside the cuts of a normal law.

A trapezoidal rule is as fine everywhere as it must be beside the sharpest cut. Here panels end at
distances 3τ·2^k from a cut of width τ, and none is longer than a half, or than 2 where a normal law
has nothing left.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from flint import arb

from accountant.composition.losses.bounds import Mixture
from accountant.composition.numeric import kernels
from accountant.composition.numeric.cells import GUARD_WIDTH, distinct
from accountant.composition.numeric.kernels import ROOT_2PI
from accountant.errors import UndecidedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

_POINTS = 16
_LONGEST, _LONG = 0.5, 2.0
_USUAL = 48.0
_NEAREST = 3.0
_GRAIN = 8.0
_FARTHEST = 4096.0
_MOST_PHASE = 16.0


@functools.cache
def _rule() -> tuple[Floats, Floats]:
    """Return points on (−1, 1), ascending, and weights; to load `numpy.polynomial` takes 15 ms."""
    rows = [arb.legendre_p_root(_POINTS, i, weight=True) for i in reversed(range(_POINTS))]
    points, weights = np.array([[float(x.mid()), float(w.mid())] for x, w in rows]).T
    return points, weights


@final
class Panels:
    """Nodes from a low end to a high one, with what does not depend on the tilt."""

    def __init__(self, floats: Mixture) -> None:
        self._floats = floats
        self._low, self._high = math.inf, -math.inf
        self.mass: Floats
        """φχ dx"""
        self.log_mass: Floats
        self.loss: Floats
        self.gap: Floats
        """L − (w − 1)"""

    def cover(self, low: float, high: float) -> None:
        """Make the nodes reach at least from `low` to `high`; UndecidedError if that is too far."""
        if self._low <= low and high <= self._high:
            return
        if max(abs(low), abs(high)) > _FARTHEST:
            raise UndecidedError(f"The moments between x={low:.6g} and {high:.6g} are not summed.")
        self._low = min(self._low, _GRAIN * math.floor(low / _GRAIN))
        self._high = max(self._high, _GRAIN * math.ceil(high / _GRAIN))
        ends, floats = self._ends(), self._floats
        points, weights = _rule()
        middle, half = 0.5 * (ends[1:] + ends[:-1])[:, None], 0.5 * np.diff(ends)[:, None]
        x = (middle + half * points).ravel()
        self.log_mass = floats.bell(x) + np.log((half * weights).ravel() / ROOT_2PI)
        self.mass = np.exp(self.log_mass)
        law = floats.mu, floats.log_share, floats.log_rest
        self.loss, self.gap = kernels.axis(*law, x)

    @staticmethod
    def resolve(loss: Floats, t: float) -> bool:
        """Whether e^{itL} turns by at most 16 radians on a panel: the rule then errs below 1e-13.

        `loss` has the values at nodes that follow each other.
        """
        turns = np.abs(loss[_POINTS - 1 :] - loss[: 1 - _POINTS])
        return t * float(turns.max(initial=0.0)) <= _MOST_PHASE

    def _ends(self) -> Floats:
        """Return the ends of the panels, in order."""
        floats = self._floats
        cuts = [(floats.cut, floats.width), (floats.rise, floats.rise_width)]
        low, high = max(self._low, -_USUAL), min(self._high + _LONGEST, _USUAL)
        ends: list[NDArray[Any]] = [np.arange(low, high, _LONGEST)]
        ends.append(np.arange(self._low, self._high + _LONG, _LONG))
        for at, width in [*cuts, (floats.guard, GUARD_WIDTH)]:
            if math.isfinite(at):
                doublings = math.ceil(math.log2(max(_LONGEST / (_NEAREST * width), 1.0))) + 1
                away = _NEAREST * width * 2.0 ** np.arange(doublings)
                ends += [at - away, np.array([at]), at + away]
        found = distinct(np.concatenate(ends))
        return found[(found >= self._low) & (found <= self._high)]

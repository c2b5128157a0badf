"""The privacy profile of the rank-one Gaussian law in floats: in milliseconds, without proof.

The integral along the curve {L = ε} of `accountant.pairs.rank_one.integrals`, by the double
exponential rule, whose nodes crowd at both ends of a piece: there the integrand behaves like a
power of the distance. A piece begins at x₀ with t = ±1, and far out it is as short as e^{−ε/(M−1)}:
its points are x₀ + v, where

    d − κ² = ±2κρ₀ + 2ε s(x) (1 − s(x₀)) (1 − e^{−v})

loses no digits. Nothing that supports a verdict comes from here: searches begin at what it
says, and enclosures prove what they find.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from flint import acb, arb

from accountant.numbers.exact import ExactReal
from accountant.numbers.precision import ctx
from accountant.pairs.rank_one.curve import Curve, TouchingError
from accountant.pairs.rank_one.integrals import Boundary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PRECISION = 160
"""Bits for the ends of the curve, which are found in balls."""
_REACH = 3.6
"""The rule is cut where its weights fall below 1e-25."""
_FIRST, _LEVELS = 128, 7
"""Nodes of the first rule, and how often they may be doubled."""
_CLOSE = 1e-12
"""Relative difference of two rules of which the second is taken."""
_ROUGH = 1e-7
"""The same where twice as many nodes gain nothing: floats lose digits on short pieces."""
_LEAST = 1e-280
"""Below this floats lose digits."""
_FAR = 14.0
"""Multiples of M − 1 beyond κ²/2 from which on ln δ is a line of slope −1/(M − 1), to 1e-8."""
_STEPS, _NEAR = 80, 1e-13
"""Steps of the search for ε, and an error of ln δ that is as good as none."""
_FARTHEST = 60
"""Doublings of ε in the search for δ."""


class _Piece(NamedTuple):
    """A piece of the curve in floats; `side` is t at its start, and `rho` is ρ₀."""

    start: float
    length: float
    rho: float
    side: float
    p_level: float
    q_level: float


def log_delta(epsilon: float, dimension: int, ratio: ExactReal) -> float | None:
    """Return ln δ(ε) for ε ≥ 0; None where floats do not find it."""
    if not 0 <= epsilon < math.inf:
        return None
    far = (epsilon - float(ratio) ** 2 / 2) / (dimension - 1) - _FAR
    if far > 0:
        near = log_delta(epsilon - far * (dimension - 1), dimension, ratio)
        return None if near is None else near - far
    with ctx.workprec(_PRECISION):
        curve = Curve(arb(epsilon), arb(dimension - 1) / 2, ratio.ball())
        try:
            boundary = Boundary.of(curve)
        except (TouchingError, ZeroDivisionError):
            return None
        constant = float(boundary.constant)
        pieces = []
        for piece in boundary.pieces:
            first = curve.at(acb(piece.start.mid()))
            pieces.append(
                _Piece(
                    float(piece.start.mid()),
                    float((piece.end - piece.start).mid()),
                    float(first.rho.real.mid()),
                    1.0 if first.t.real > 0 else -1.0,
                    float(piece.p_level.mid()),
                    float(piece.q_level.mid()),
                )
            )
    is_open = len(pieces) == 1 and pieces[0].p_level > 0
    total = pieces[0].p_level if is_open else 0.0
    for part in pieces:
        found = _integral(epsilon, (dimension - 1) / 2, float(ratio), part)
        if found is None:
            return None
        total += constant * found
    return math.log(total) if total > _LEAST else None


def epsilon(log_target: float, dimension: int, ratio: ExactReal) -> float | None:
    """Return the ε > 0 with ln δ(ε) = log_target; None where floats do not find it."""

    def excess(at: float) -> float:
        value = log_delta(at, dimension, ratio)
        if value is None:
            raise _MissingError
        return value - log_target

    try:
        low, high = 0.0, float(dimension - 1)  # far out δ falls as e^{−ε/(M − 1)}
        at_low, at_high = excess(low), excess(high)
        if at_low <= 0:
            return None
        for _ in range(_FARTHEST):
            if at_high < 0:
                break
            low, at_low, high = high, at_high, 2 * high
            at_high = excess(high)
        for _ in range(_STEPS):  # regula falsi, by the Illinois rule
            at = (low * at_high - high * at_low) / (at_high - at_low)
            value = excess(at)
            if abs(value) < _NEAR or not low < at < high:
                return at
            if value > 0:
                low, at_low, at_high = at, value, at_high / 2
            else:
                high, at_high, at_low = at, value, at_low / 2
    except _MissingError:
        pass
    return None


def _integral(epsilon: float, a: float, ratio: float, piece: _Piece) -> float | None:
    """Integrate over a piece by rules of twice as many nodes until two of them agree."""
    import numpy as np

    last, apart, count = math.nan, math.inf, _FIRST
    for _ in range(_LEVELS):
        step = 2 * _REACH / count
        place = (np.arange(count + 1) - count / 2) * step
        inner = math.pi / 2 * np.sinh(place)
        v = piece.length / (1 + np.exp(-2 * inner))
        weights = piece.length * step * math.pi / 4 * np.cosh(place) / np.cosh(inner) ** 2
        with np.errstate(all="ignore"):
            values = _integrand(v, epsilon, a, ratio, piece) * weights
        found = float(values[np.isfinite(values)].sum())
        apart, last, count = abs(found - last), found, 2 * count
        if apart <= _CLOSE * abs(found):
            break
    return last if apart <= _ROUGH * abs(last) else None


def _integrand(
    v: NDArray[np.float64], epsilon: float, a: float, ratio: float, piece: _Piece
) -> NDArray[np.float64]:
    """Return what `Boundary.hockey_stick` integrates, without its constant."""
    import numpy as np

    x = piece.start + v
    rest, s = 1 / (1 + np.exp(x)), 1 / (1 + np.exp(-x))
    z = rest * epsilon / a
    shape = z / np.expm1(z) if epsilon else np.ones_like(x)
    d = 2 * epsilon * s
    y = 2 * a * np.exp(x) * shape
    rho, w = np.sqrt(y), np.sqrt(y + d)
    further = -d / (1 + math.exp(piece.start)) * np.expm1(-v)
    t = (piece.side * 2 * ratio * piece.rho + further) / (2 * ratio * rho)
    dt = d * rest / (2 * ratio * rho) - t * (rest + s * (shape + z)) / 2
    sine = np.maximum((1 - t) * (1 + t), 0.0)
    # e^z du/dx: e^z (1 − u²) = 1 − t², and z' = −zs
    du = (t * dt - z * s * sine / 2) * (2 * ratio * w) / (d + ratio**2)
    weight = np.exp((a - 1) * np.log(sine))
    root = math.sqrt(2)
    p, q = (
        _each(math.erf, radius / root)
        if level == 0.0
        else (1 - level) - _each(math.erfc, radius / root)
        for radius, level in ((rho, piece.p_level), (w, piece.q_level))
    )
    found: NDArray[np.float64] = weight * (dt * p - np.exp(d / 2) * du * q)
    return found


def _each(function: Callable[[float], float], values: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    return np.array([function(value) for value in values.tolist()])


class _MissingError(Exception):
    """Floats do not find δ."""

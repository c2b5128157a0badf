"""Characteristic functions at many equidistant points: floats with a bound of their error.

Only operations that IEEE 754 rounds correctly are used (+, −, ×, /, √ and sums of products in any
order), so that every error is bounded beforehand; u = 2^−53 is the unit roundoff. Angles are
multiples of exact 64-bit fractions of a turn, whose products with integers wrap around exactly.
The nodes form rows of `ROW`: node k is number k mod ROW in row k div ROW, and e^{ikθ} is the
product of one entry of a table for the row and one of a table within the row.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from flint import acb, arb

from accountant.errors import UndecidedError
from accountant.precision import ctx

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"

ROW = 1024
UNIT = 2.0**-53
_TABLE_BITS = 12
_CIRCLE = 10 * UNIT  # the error of an entry of `circle`, without that of the angle
_TURN = 2.0**-62  # 2π·2^−65: the error in radians of an angle, per multiple
_CHUNK = 16
_MANY = 160
_NEGLIGIBLE = 1e-20
_MOST_DRIFT = 0.2
_LEAST_WEIGHT = 1e-20
_TINY = 1e-290  # what may have been lost to underflow
_SLACK = 1 + 1e-6  # covers the rounding of the bounds themselves


def fraction_of_turn(turns: arb) -> int:
    """Return the nearest multiple of 2^−64 to an angle in turns, modulo 1."""
    scaled = turns * arb(2) ** 64
    mantissa, exponent = (int(part) for part in scaled.mid().man_exp())
    if exponent >= 0:
        return (mantissa << exponent) % (1 << 64)
    return ((mantissa + (1 << (-exponent - 1))) >> -exponent) % (1 << 64)


@functools.lru_cache(maxsize=1)
def _table() -> Array:
    with ctx.workprec(80):
        size = 1 << _TABLE_BITS
        entries = [acb(0, 2 * arb.pi() * j / size).exp() for j in range(size)]
        return np.array([complex(float(e.real.mid()), float(e.imag.mid())) for e in entries])


def circle(steps: Sequence[int], count: int) -> Array:
    """Return e^{2πi·k·step/2^64}, one row per k < count, one column per step.

    The angle is a table entry plus δ < 2π/4096, of which five terms of the power series are taken.
    """
    turns = np.arange(count, dtype=np.uint64)[:, None] * np.array(steps, dtype=np.uint64)[None, :]
    rest_bits = np.uint64(64 - _TABLE_BITS)
    coarse = _table()[(turns >> rest_bits).astype(np.int64)]
    low = (turns & np.uint64((1 << int(rest_bits)) - 1)).astype(np.float64)
    delta = low * (2 * math.pi / 2.0**64)
    square = delta * delta
    cosine = 1 - square / 2 * (1 - square / 12)
    sine = delta * (1 - square / 6 * (1 - square / 20))
    found: Array = coarse * (cosine + 1j * sine)
    return found


class Factor(ABC):
    """The characteristic function φ of one tilted, centred loss, and how often it is a factor."""

    count: int

    @abstractmethod
    def rows(self, first: int, last: int) -> tuple[Array, Array | float]:
        """Return φ at the nodes of the rows first ≤ r < last, and bounds of |error|."""


def angle_error(rows: int) -> float:
    """Return the error of e^{ikθ} from the two tables, their product included."""
    return 2 * _CIRCLE + 4 * UNIT + _TURN * (ROW + rows)


@final
class Atoms(Factor):
    """φ(ω) = Σ w_x e^{iωλ_x}: a matrix product, in pieces of `_CHUNK` atoms.

    `error` is that of the list, where it stands for a density. Two real sums of 16 products err by
    at most 17u of Σ w_x, adding C pieces by Cu.
    """

    def __init__(
        self,
        weights: Sequence[arb],
        turns: Sequence[arb],
        count: int,
        rows: int,
        error: float = 0.0,
    ) -> None:
        self.count = count
        floats = [float(weight.mid()) for weight in weights]
        kept = [x for x, weight in enumerate(floats) if weight > _LEAST_WEIGHT]
        left_out = 2 * math.fsum(w for w in floats if w <= _LEAST_WEIGHT)
        turns, self._weights = [turns[x] for x in kept], np.array([floats[x] for x in kept])
        inner = circle([fraction_of_turn(turn) for turn in turns], ROW)
        outer = circle([fraction_of_turn(turn * ROW) for turn in turns], rows) * self._weights
        self._inner = np.ascontiguousarray(inner.real.T), np.ascontiguousarray(inner.imag.T)
        self._outer = np.ascontiguousarray(outer.real), np.ascontiguousarray(outer.imag)
        pieces = -(-len(self._weights) // _CHUNK)
        self._error = (1.5 * (18 + pieces) * UNIT + 2 * UNIT + angle_error(rows)) * _SLACK
        self._error += (left_out + error) * _SLACK

    def rows(self, first: int, last: int) -> tuple[Array, float]:
        """Return the sums."""
        real, imag = np.zeros((last - first, ROW)), np.zeros((last - first, ROW))
        (a, b), (c, d) = (part[first:last] for part in self._outer), self._inner
        for start in range(0, len(self._weights), _CHUNK):
            piece = slice(start, start + _CHUNK)
            real += a[:, piece] @ c[piece] - b[:, piece] @ d[piece]
            imag += a[:, piece] @ d[piece] + b[:, piece] @ c[piece]
        return (real + 1j * imag).ravel(), self._error


@final
class LaplaceLoss(Factor):
    """φ(ω) = [cosh(ts) + sinh(ts)/(2s)]/[the same at s = c], s = c + iω.

    With α = cosh(tc)/N, β = sinh(tc)/N, N = cosh(tc) + sinh(tc)/(2c), C = cos ωt, S = sin ωt:
    (αC + iβS) + (βC + iαS)/(2s), and 1 at ω = 0, also for c = 0. |sinh(ts)/(2s)| ≤ (t/2) cosh(tc):
    nothing is larger than α(1 + t/2), and |β| ≤ α ≤ 1. An error e of C + iS moves both numerators
    by at most e, so the value by at most e(1 + 1/|2s|), |s|² ≥ c² + h² at all other nodes; each of
    the two terms has less than 15 roundings of its own size, their sum one more.
    """

    def __init__(self, t: arb, line: arb, step: float, count: int, rows: int) -> None:
        self.count = count
        self._step, self._line = step, float(line)
        cosh, sinh = (t * line).cosh(), (t * line).sinh()
        whole = cosh + (t / 2 if line.is_zero() else sinh / (2 * line))
        self._alpha, self._beta = float(cosh / whole), float(sinh / whole)
        turn = t * arb(step) / (2 * arb.pi())
        self._inner = circle([fraction_of_turn(turn)], ROW)[:, 0]
        self._outer = circle([fraction_of_turn(turn * ROW)], rows)[:, 0]
        turned = angle_error(rows) * (1 + 0.5 / math.hypot(self._line, step))
        self._error = (turned + 30 * UNIT * (1 + float(t) / 2)) * _SLACK

    def rows(self, first: int, last: int) -> tuple[Array, float]:
        """Return the values."""
        turn = (self._outer[first:last, None] * self._inner[None, :]).ravel()
        omega = np.arange(first * ROW, last * ROW) * self._step
        if first == 0:
            omega[0] = self._step  # any other: the value at 0 is known
        over = 1 / (2 * (self._line + 1j * omega))
        cosh = self._alpha * turn.real + 1j * (self._beta * turn.imag)
        sinh = self._beta * turn.real + 1j * (self._alpha * turn.imag)
        found = cosh + sinh * over
        if first == 0:
            found[0] = 1.0
        return found, self._error


@final
class GaussianLoss(Factor):
    """φ(ω) = e^{−vω²/2}, from balls; 0 where it is below e^{−90}."""

    def __init__(self, variance: arb, step: float) -> None:
        self.count = 1
        self._scale = variance * arb(step) ** 2 / 2
        self.last = math.ceil(math.sqrt(90 / float(self._scale)))
        self._error = 2 * UNIT

    def rows(self, first: int, last: int) -> tuple[Array, float]:
        """Return the values."""
        found = np.zeros((last - first) * ROW, dtype=complex)
        start = first * ROW
        for k in range(start, min(last * ROW, self.last)):
            found[k - start] = float((-self._scale * k * k).exp().mid())
        return found, self._error


@final
@dataclass(frozen=True)
class Values:
    """Products Φ = Π φ_i^{n_i} at some nodes."""

    values: Array
    errors: Array
    """Bounds of |error|."""
    first: Array
    """Upper bounds of Π |φ_i|^{a_i}; with `second`, a_i + b_i = n_i."""
    second: Array


def products(factors: Sequence[Factor], first: int, last: int) -> Values:
    """Multiply the powers of all factors at the nodes of some rows.

    Of many factors the last are left out where the others are negligible: none exceeds 1.
    """
    if len(factors) > _MANY:
        some = _products(factors[:_MANY], first, last)
        most = some.first * some.second
        if most.max() < _NEGLIGIBLE:
            return Values(np.zeros_like(some.values), most, some.first, some.second)
    return _products(factors, first, last)


def _products(factors: Sequence[Factor], first: int, last: int) -> Values:
    """Multiply the powers of these factors.

    A complex product errs by 3u of its size, so a power by less than (1 + 3u)^n − 1, which is below
    d = e^{4nu} − 1 of what was computed as long as d ≤ ¼; a real one by u. With e the error of φ,
    that of φ^n is at most n e (|φ| + e)^{n−1}. Raises UndecidedError for so many releases that
    d > ¼.
    """
    size = (last - first) * ROW
    whole, errors = np.ones(size, dtype=complex), np.zeros(size)
    halves = [np.ones(size), np.ones(size)]
    odd = 0
    for factor in factors:
        phi, error = factor.rows(first, last)
        n = factor.count
        bound = _size(phi) + error
        power, drift = _power(phi, n), _drift(n)
        near = (n * error * _power(bound, n - 1) + drift * _size(power)) * (1 + drift) + _TINY
        own = _size(whole)
        errors = (errors * (_size(power) + near) + own * (near + 3 * UNIT * _size(power))) * _SLACK
        whole = whole * power
        smaller = np.minimum(bound, 1.0)
        half = _power(smaller, n // 2)
        halves = [entry * half for entry in halves]
        if n % 2:
            halves[odd] = halves[odd] * smaller
            odd = 1 - odd
    slack = (1 + 1e-12) * math.prod(1 + 2 * _drift(factor.count) for factor in factors)
    return Values(whole, errors, halves[0] * slack + _TINY, halves[1] * slack + _TINY)


def _drift(count: int) -> float:
    """Return d."""
    exponent = 4 * count * UNIT
    if exponent > _MOST_DRIFT:
        raise UndecidedError(
            f"Sixteen digits do not give the power {count} of a characteristic function. Ask "
            "with method='grid'."
        )
    return math.expm1(exponent)


def _size(values: Array) -> Array:
    if not np.iscomplexobj(values):
        return np.abs(values)
    found: Array = np.sqrt(values.real**2 + values.imag**2) * (1 + 8 * UNIT) + _TINY
    return found


def _power(values: Array, exponent: int) -> Array:
    """Return the power by squaring."""
    result, square = np.ones_like(values), values
    while exponent:
        if exponent & 1:
            result = result * square
        exponent >>= 1
        if exponent:
            square = square * square
    return result

"""The laws of losses with atoms under an exponential tilt, and the line to integrate on."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from flint import arb, ctx

from accountant.composition import node_values
from accountant.composition.joint import Factor
from accountant.composition.listed import MAX_VALUES, Listed, listed
from accountant.errors import UndecidedError
from accountant.mechanisms.laplace import LaplacePair
from accountant.pairs.gaussian import GaussianPair
from accountant.pairs.laplace_product import LaplaceProductPair

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PRECISION = 192
_SPARE = 16.0  # natural logarithm of the width to the share of it that a bound may have
_SMALL = 0.3
_HALF = 0.5


class Law(ABC):
    """One loss and how often it is released."""

    count: int
    missing = arb(0)

    @abstractmethod
    def moment(self, z: arb) -> arb:
        """Return E_P[e^{zL}] over the listed finite losses, z real."""

    @abstractmethod
    def mean(self, c: arb) -> arb:
        """Return any number near the mean of the loss tilted by e^{cL}."""

    @abstractmethod
    def log_moment(self, c: float) -> float:
        """Return ln E_P[e^{cL}], nearly."""

    @abstractmethod
    def factor(self, c: arb, step: float, rows: int) -> node_values.Factor:
        """Return the characteristic function of the tilted loss minus `mean`."""


@final
class ListedLaw(Law):
    """A list of values."""

    def __init__(self, law: Listed, count: int) -> None:
        self._law, self.count, self.missing = law, count, law.missing_p
        self._losses = np.array([float(loss) for loss in law.losses])
        self._logs = np.array([float(p.log()) for p in law.p])

    def moment(self, z: arb) -> arb:
        """Return Σ p e^{zl}."""
        terms = (
            p * (z * loss).exp() for p, loss in zip(self._law.p, self._law.losses, strict=True)
        )
        return sum(terms, start=arb(0))

    def _shares(self, c: float) -> tuple[NDArray[Any], float]:
        weights = self._logs + c * self._losses
        top = float(weights.max())
        return np.exp(weights - top), top

    def log_moment(self, c: float) -> float:
        """Return the logarithm of the sum."""
        shares, top = self._shares(c)
        return top + math.log(float(shares.sum()))

    def mean(self, c: arb) -> arb:
        """Return the mean in floats."""
        shares, _ = self._shares(float(c))
        return arb(float((shares * self._losses).sum() / shares.sum()))

    def factor(self, c: arb, step: float, rows: int) -> node_values.Factor:
        """Return the sum over the values."""
        moment, centre = self.moment(c), self.mean(c)
        pairs = list(zip(self._law.p, self._law.losses, strict=True))
        weights = [p * (c * loss).exp() / moment for p, loss in pairs]
        turns = [(loss - centre) * arb(step) / (2 * arb.pi()) for _, loss in pairs]
        return node_values.Atoms(weights, turns, self.count, rows)


@final
class LaplaceLaw(Law):
    """Laplace noise at distance t: e^{−t/2} (cosh(ts) + sinh(ts)/(2s)), s = z + ½."""

    def __init__(self, t: arb, count: int) -> None:
        self._t, self.count = t, count

    def moment(self, z: arb) -> arb:
        """Return the closed form."""
        s = z + arb(_HALF)
        if s.is_zero():
            return (-self._t / 2).exp() * (1 + self._t / 2)
        ts = self._t * s
        return (-self._t / 2).exp() * (ts.cosh() + ts.sinh() / (2 * s))

    def log_moment(self, c: float) -> float:
        """Return its logarithm."""
        s, t = abs(c + _HALF), float(self._t)
        ratio = -math.expm1(-2 * t * s) / (2 * s) if s > 1e-9 else t
        return t * (s - _HALF) + math.log((1 + math.exp(-2 * t * s) + ratio) / 2)

    def mean(self, c: arb) -> arb:
        """Return 0: the law is symmetric but for the tilt."""
        return arb(0)

    def factor(self, c: arb, step: float, rows: int) -> node_values.Factor:
        """Return the closed form on the line."""
        return node_values.LaplaceLoss(self._t, c + arb(_HALF), step, self.count, rows)


@final
class GaussianLaw(Law):
    """Gaussian noise: e^{μ² z(z + 1)/2}."""

    def __init__(self, square: arb) -> None:
        self._square, self.count = square, 1

    def moment(self, z: arb) -> arb:
        """Return the closed form."""
        return (self._square * z * (z + 1) / 2).exp()

    def log_moment(self, c: float) -> float:
        """Return its logarithm."""
        return float(self._square) * c * (c + 1) / 2

    def mean(self, c: arb) -> arb:
        """Return μ² (c + ½)."""
        return self._square * (c + arb(_HALF))

    @property
    def variance(self) -> float:
        """μ²."""
        return float(self._square)

    def factor(self, c: arb, step: float, rows: int) -> node_values.Factor:
        """Return e^{−μ² ω²/2}."""
        return node_values.GaussianLoss(self._square, step)


@functools.lru_cache(maxsize=16)
def laws_of(factors: tuple[Factor, ...], log_missing: float) -> tuple[Law, ...] | None:
    """Return the laws of all factors, None where one of them is of another kind."""
    found: list[Law] = []
    square = arb(0)
    with ctx.workprec(_PRECISION):
        for pair, count in factors:
            if isinstance(pair, GaussianPair):
                square += count * 2 * pair.kullback_leibler()
            elif isinstance(pair, LaplacePair):
                found.append(LaplaceLaw(pair.distance.ball(), count))
            elif isinstance(pair, LaplaceProductPair):
                unit = pair.unit.ball()
                found += [LaplaceLaw(t * unit, n * count) for t, n in pair.groups]
            else:
                law = listed(pair, log_missing)
                if law is None:
                    return None
                if law.p:
                    found.append(ListedLaw(law, count))
        if not square.is_zero():
            found.append(GaussianLaw(square))
    return tuple(found) or None


def known_laws(factors: tuple[Factor, ...], log_missing: float) -> tuple[Law, ...]:
    """Return the laws of all factors.

    Raises UndecidedError where so little may be missing that too many values would be listed.
    """
    found = laws_of(factors, log_missing)
    if found is None:
        raise UndecidedError(
            f"A delta so small that no mass above e^{log_missing:.0f} may be left out needs more "
            f"than {MAX_VALUES} values of one loss. Ask for a larger delta."
        )
    return found


@final
@dataclass(frozen=True)
class Line:
    """Re z = c, the step of the nodes, and the points of Chernoff's inequality."""

    c: float
    step: float
    above: float
    below: float
    last: float
    """The number of nodes after which a Gaussian factor has vanished; ∞ without one."""
    log_missing: float


def choose_line(factors: tuple[Factor, ...], epsilon: float, wanted: float) -> Line:
    """Return the line through the saddle near ε; estimates, rounded so that neighbours share it."""
    log_missing = -80.0
    while True:
        laws = known_laws(factors, log_missing)
        log_moment = _Sum(laws)
        c = _saddle(log_moment, epsilon)
        size = log_moment(c) - c * epsilon - math.log(abs(c) * (c + 1)) - 8.0
        needed = math.floor((min(size, 0.0) + math.log(wanted) - _SPARE) / 40) * 40.0
        if log_missing <= needed or all(law.missing == 0 for law in laws):
            break
        log_missing = needed
    slack = 6.0 - math.log(wanted)

    def least(sign: int, room: float, powers: range) -> tuple[float, float]:
        best = (math.inf, c)
        here = log_moment(c) - c * epsilon
        for power in powers:
            v = room * 2.0 ** (power / 2)
            there = log_moment(c + sign * v) - (c + sign * v) * epsilon
            # the bound is compared with the integrand over its width: |z(z + 1)| more
            need = (there - here + slack + math.log(abs(c) * (c + 1))) / v
            best = min(best, (need, c + sign * v))
        return best

    spread = math.sqrt(max(log_moment.variance(c), 1e-300))
    down, up = (c, math.inf) if c > 0 else (1 + c, -c)
    above = least(1, min(1 / spread, up), range(-8, 9) if c > 0 else range(-12, 1))
    below = least(-1, down, range(-16, 1))
    period = max(above[0], below[0], 4 * spread)
    step = 2.0 ** (math.floor(4 * math.log2(2 * math.pi / period)) / 4)
    variance = sum(law.variance for law in laws if isinstance(law, GaussianLaw))
    last = math.sqrt(180 / variance) / step + 1 if variance else math.inf
    return Line(c, step, above[1], below[1], last, log_missing)


def curvature(factors: tuple[Factor, ...], line: Line) -> float:
    """Return the second derivative of ln(M(c)/|c(c + 1)|), nearly."""
    c = line.c
    return _Sum(known_laws(factors, line.log_missing)).variance(c) + c**-2 + (1 + c) ** -2


def guess_epsilon(factors: tuple[Factor, ...], log_delta: float) -> float:
    """Return about the ε with ln H(ε) = log_delta < 0, by the saddle-point approximation."""
    laws = known_laws(factors, log_delta - 80.0)
    log_moment = _Sum(laws)

    def excess(epsilon: float) -> float:
        c = _saddle(log_moment, epsilon)
        if c < 0:  # most of the mass is above: H > ½ or so
            return 0.0 - log_delta
        curve = log_moment.variance(c) + c**-2 + (1 + c) ** -2
        size = log_moment(c) - c * epsilon - math.log(c * (c + 1))
        return size - math.log(2 * math.pi * curve) / 2 - log_delta

    low, high = 0.0, 1.0
    while excess(high) > 0 and high < 1e12:
        low, high = high, 2 * high
    while excess(low) < 0 and low > -1e9:
        low, high = 2 * low - 1, low
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        if high - low < 1e-6 * abs(high):
            break
    return high


@final
class _Sum:
    """ln M of the product, in floats."""

    def __init__(self, laws: Sequence[Law]) -> None:
        self._laws = laws

    def __call__(self, c: float) -> float:
        return math.fsum(law.count * law.log_moment(c) for law in self._laws)

    def variance(self, c: float) -> float:
        """Return the second derivative, nearly."""
        step = 1e-3 * max(abs(c), 1e-3)
        return (self(c + step) - 2 * self(c) + self(c - step)) / step**2


def _saddle(log_moment: Callable[[float], float], epsilon: float) -> float:
    """Return the least of ln M(c) − cε − ln|c(c + 1)|, on the side of 0 where the value is small.

    Rounded to a few digits.
    """

    def objective(c: float) -> float:
        return log_moment(c) - c * epsilon - math.log(abs(c) * (c + 1))

    def search(low: float, high: float, place: Callable[[float], float]) -> float:
        for _ in range(48):
            left, right = low + (high - low) * 0.382, low + (high - low) * 0.618
            if objective(place(left)) < objective(place(right)):
                high = right
            else:
                low = left
        return place((low + high) / 2)

    right = search(-12.0, 18.0, math.exp)
    middle = search(-8.0, 8.0, lambda x: -1 / (1 + math.exp(x)))
    best = right if objective(right) <= objective(middle) + 1e-9 else middle
    return float(f"{best:.3g}")

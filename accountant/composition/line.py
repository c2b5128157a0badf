"""The laws of losses under an exponential tilt, and the line to integrate on."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from flint import arb

from accountant.composition.decisive import Cut, cut_laws, log_large, small_parts
from accountant.composition.joint import Factor
from accountant.composition.laws import GaussianLaw, LaplaceLaw, Law, ListedLaw
from accountant.composition.listed import MAX_VALUES, listed
from accountant.composition.mixture_law import MixtureLaw, components
from accountant.composition.subsampled_laplace import SubsampledLaplaceLaw
from accountant.composition.subsampling import SubsampledPair
from accountant.errors import UndecidedError
from accountant.mechanisms.laplace import LaplacePair
from accountant.pairs.gaussian import GaussianPair
from accountant.pairs.laplace_product import LaplaceProductPair
from accountant.precision import ctx

_PRECISION = 192
_SPARE = 16.0  # natural logarithm of the width to the share of it that a bound may have
_LEAST_SIZE = 1e-300
_NEAR = 1e-2  # natural logarithm of delta
_FARTHEST = 1e100


@functools.lru_cache(maxsize=16)
def laws_of(
    factors: tuple[Factor, ...], log_missing: float, cut: Cut | None = None
) -> tuple[Law, ...] | None:
    """Return the laws of all factors, cut or whole; None where one of them is of another kind."""
    if cut is not None:
        whole = laws_of(factors, log_missing)
        with ctx.workprec(_PRECISION):
            return None if whole is None else cut_laws(whole, cut)
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
            elif isinstance(pair, SubsampledPair) and isinstance(pair.inner, LaplacePair):
                t, share = pair.inner.distance.ball(), pair.sampling_prob.ball()
                found.append(SubsampledLaplaceLaw(t, share, count, mixed_first=pair.mixed_first))
            elif (both := components(pair)) is not None:
                found.append(MixtureLaw(*both, count))
            else:
                law = listed(pair, log_missing)
                if law is None:
                    return None
                if law.p:
                    least = -pair.reverse().max_loss()
                    found.append(ListedLaw(law, count, least if least.is_finite() else None))
        if not square.is_zero():
            found.append(GaussianLaw(square))
    return tuple(found) or None


def known_laws(
    factors: tuple[Factor, ...], log_missing: float, cut: Cut | None = None
) -> tuple[Law, ...]:
    """Return the laws of all factors, cut or whole.

    Raises UndecidedError where so little may be missing that too many values would be listed.
    """
    found = laws_of(factors, log_missing, cut)
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
    """The number of nodes after which the product is negligible; ∞ if that is not known."""
    log_missing: float
    wanted: float
    """The relative width that is aimed at, up to a factor of 2."""
    cut: Cut | None = None

    def laws(self, factors: tuple[Factor, ...]) -> tuple[Law, ...]:
        """Return the laws of all factors, as the line takes them."""
        return known_laws(factors, self.log_missing, self.cut)

    def small_laws(self, factors: tuple[Factor, ...]) -> tuple[Law, ...]:
        """Return the laws of small losses alone, none where no such outcomes are left out."""
        if self.cut is None or self.cut.small is None:
            return ()
        parts = small_parts(self.laws(factors), self.cut)
        assert parts is not None  # as the line was chosen
        return tuple(part.law for part in parts)

    def log_beyond(self, factors: tuple[Factor, ...], omega: float) -> float:
        """Return an upper bound, but for 1e−9, of ln|Φ| for all frequencies from one on."""
        return _log_beyond(self.laws(factors), self.cut, self.c, omega)


def choose_line(
    factors: tuple[Factor, ...], epsilon: float, wanted: float, cut: Cut | None = None
) -> Line:
    """Return the line through the saddle near ε; estimates, rounded so that neighbours share it."""
    log_missing = -80.0
    while True:
        laws = known_laws(factors, log_missing, cut)
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
    # Chernoff's inequality is for exponents between the poles, where rounding may not lead out
    least_below, most_above = (0.0, math.inf) if c > 0 else (-1.0, 0.0)
    # the sum beyond K nodes is a share of about |Φ| c(c + 1) √(2πv)/(hK) of the integral
    share = abs(c) * (c + 1) * math.sqrt(2 * math.pi * _curvature(log_moment, c)) / step
    if not (share < _FARTHEST and step > 1 / _FARTHEST):
        raise UndecidedError(
            f"The losses are too small beside epsilon={epsilon:.6g} for sums in floats. Ask for an "
            "epsilon nearer to 0."
        )
    enough = math.log(wanted / share) - 3
    last = _last(laws, cut, c, step, enough)
    ends = min(above[1], most_above), max(below[1], least_below)
    return Line(c, step, *ends, last, log_missing, _rounded_down(wanted), cut)


def at_saddle(laws: Sequence[Law], epsilon: float) -> tuple[float, float, float]:
    """Return c, about ln M(c)e^{−cε}/(|c|(c + 1)), and the second derivative of that in c."""
    log_moment = _Sum(laws)
    c = _saddle(log_moment, epsilon)
    size = log_moment(c) - c * epsilon - math.log(abs(c) * (c + 1))
    return c, size, _curvature(log_moment, c)


def _rounded_down(width: float) -> float:
    return 2.0 ** math.floor(math.log2(width))


def log_beyond(laws: Sequence[Law], c: float, omega: float) -> float:
    """Return an upper bound of ln|M(c + iω')/M(c)| for all |ω'| ≥ ω, but for 1e−9 of rounding.

    A size that is 0 in floats counts as `_LEAST_SIZE`; what is below 1 is rounded up by 1e−12 of
    itself, more than what rounding the size and its logarithm takes away.
    """
    sizes = [(law.count, max(law.beyond(arb(c), omega), _LEAST_SIZE)) for law in laws]
    return math.fsum(n * math.log(min(size * (1 + 1e-12), 1.0)) for n, size in sizes)


def _log_beyond(laws: Sequence[Law], cut: Cut | None, c: float, omega: float) -> float:
    if cut is None or cut.small is None:
        return log_beyond(laws, c, omega)
    parts = small_parts(laws, cut)
    return 0.0 if parts is None else log_large(laws, parts, c, omega)


def _last(laws: Sequence[Law], cut: Cut | None, c: float, step: float, enough: float) -> float:
    """Return the least K with |Φ| ≤ K e^enough after K nodes, nearly; ∞ if none is known."""
    if all(type(law).beyond is Law.beyond for law in laws):
        return math.inf
    for power in range(8, 60):
        nodes = math.sqrt(2.0) ** power
        if _log_beyond(laws, cut, c, step * nodes) - math.log(nodes) < enough:
            return nodes
    return math.inf


def curvature(factors: tuple[Factor, ...], line: Line) -> float:
    """Return the second derivative of ln(M(c)/|c(c + 1)|), nearly."""
    return _curvature(_Sum(line.laws(factors)), line.c)


def _curvature(log_moment: _Sum, c: float) -> float:
    return log_moment.variance(c) + 1 / (c * c) + 1 / ((1 + c) * (1 + c))


def guess_epsilon(factors: tuple[Factor, ...], log_delta: float) -> float:
    """Return about the ε with ln H(ε) = log_delta < 0, by the saddle-point approximation."""
    laws = known_laws(factors, log_delta - 80.0)
    log_moment = _Sum(laws)

    tilt = math.inf

    def excess(epsilon: float) -> float:
        nonlocal tilt
        c = _saddle(log_moment, epsilon)
        tilt = abs(c)
        if c < 0:  # most of the mass is above: H > ½ or so
            return 0.0 - log_delta
        curve = _curvature(log_moment, c)
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
        if (high - low) * tilt < _NEAR:
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
        found = (self(c + step) - 2 * self(c) + self(c - step)) / (step * step)
        return max(found, 0.0)  # a large c, near a largest loss, leaves rounding alone


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
    rounded = float(f"{best:.3g}")
    return best if rounded == -1.0 else rounded  # no line is through a pole

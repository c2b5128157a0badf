"""How many terms the exact sums of a product of Laplace laws take; in floats, no proof.

See `accountant.composition.exact.laplace_product_sums`, which bounds what these choices cost.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

from accountant.errors import UndecidedError
from accountant.numbers.chernoff import rough_log_peak

Groups: TypeAlias = tuple[tuple[int, int], ...]
"""Multiples of the unit, ascending, and how many coordinates have each."""

MAX_TERMS = 2_000_000
"""Most pairs (J, m) of the exact sum."""
_FEW = 20_000
"""Terms up to which none is left out: finding out which do not matter takes as long."""
MAX_HALF = 1 << 18
"""Most sums of signed shifts of half of the coordinates."""
_HALF, _HALF_SQUARE = 2.0, 0.15  # microseconds of one of them, and of M² of it
"""Microseconds of one of them, and of M² of it: they choose between two ways of summing."""
_PARTS_STEP = 16
"""M is rounded up to a multiple, so that neighbouring ε share their tables."""
_COEFFICIENT, _ROW = 2.0, 3.0  # microseconds, roughly
"""Microseconds of a coefficient of a jump and of a row of weights, roughly."""
_LEAST_TILT, _MOST_TILT = -14.0, 18.0
"""Least and largest ln(c − pole) of a line: beyond them no ε of interest has its saddle."""
_GOLDEN = (math.sqrt(5) - 1) / 2
_NEAR_LINE = 1e-4
"""Accuracy of ln(c − pole): a line that is off by so little costs no bit."""


class Kernel(enum.Enum):
    """κ: what is integrated over l > ε."""

    P = "s - 1/2"
    Q = "s + 1/2"
    EXCESS = "s^2 - 1/4"

    @property
    def pole(self) -> float:
        """The last pole on the right."""
        return -0.5 if self is Kernel.Q else 0.5


@final
@dataclass(frozen=True)
class Plan:
    """c, M, and bits for the exact terms."""

    line: float
    parts: int
    lost: int
    cost: float = 0.0
    """Roughly how many microseconds it takes."""
    halved: bool = False
    """Whether the exact terms are sums over two halves of the coordinates."""


@final
class Floats:
    """ln Φ and what follows from it in floats: it chooses the sums and proves nothing."""

    def __init__(self, groups: Groups, unit: float, epsilon: float, kernel: Kernel) -> None:
        self.distances = [(multiple * unit, count) for multiple, count in groups]
        self.top = math.fsum(count * t for t, count in self.distances)
        self.coordinates = sum(count for _, count in groups)
        self.epsilon, self.kernel = epsilon, kernel

    def log_phi(self, c: float) -> float:
        """Return ln Φ(c), an even function."""
        c = abs(c)
        total = c * self.top
        for t, count in self.distances:
            ratio = -math.expm1(-2 * t * c) / (2 * c) if c > 1e-9 else t
            total += count * math.log((1 + math.exp(-2 * t * c) + ratio) / 2)
        return total

    def log_value(self, c: float) -> float:
        """Return ln Φ(c) e^{−cε} times the largest e^{−cy} k(y), y > 0."""
        s = c - 0.5
        peak = 0.0
        if self.kernel is Kernel.EXCESS:
            peak = rough_log_peak(s)
        return self.log_phi(c) - c * self.epsilon + peak

    def line(self) -> float:
        """Return c, nearly where |Φ(c) e^{−cε}/κ(c)| is least."""

        def objective(x: float) -> float:
            away = math.exp(x)
            c = self.kernel.pole + away
            log_kernel = x + (math.log1p(away) if self.kernel is Kernel.EXCESS else 0.0)
            return self.log_phi(c) - c * self.epsilon - log_kernel

        low, high = _LEAST_TILT, _MOST_TILT
        left, right = high - (high - low) * _GOLDEN, low + (high - low) * _GOLDEN
        at_left, at_right = objective(left), objective(right)
        while high - low > _NEAR_LINE:  # each step keeps one of the two points inside
            if at_left < at_right:
                high, right, at_right = right, left, at_left
                left = high - (high - low) * _GOLDEN
                at_left = objective(left)
            else:
                low, left, at_left = left, right, at_right
                right = low + (high - low) * _GOLDEN
                at_right = objective(right)
        return self.kernel.pole + math.exp((low + high) / 2)

    def shares(self, c: float) -> list[tuple[float, int]]:
        """Return the tilted probability of lying between the atoms."""
        found = []
        for t, count in self.distances:
            flat = math.tanh(t * c) / (2 * c) if abs(c) > 1e-9 else t / 2
            found.append((flat / (1 + flat), count))
        return found

    def exact_parts(self, c: float, bits: int) -> int:
        """Return the least M for which the terms m ≥ M are negligible."""
        shares = self.shares(c)
        mean = math.fsum(count * share for share, count in shares)
        low, high = math.ceil(mean), self.coordinates + 1
        while low < high:
            middle = (low + high) // 2
            v = max(middle / mean, 1.0) if mean > 0 else math.inf
            tail = math.fsum(n * math.log1p(p * (v - 1)) for p, n in shares)
            tail -= middle * math.log(v)
            low, high = (low, middle) if tail < -bits * math.log(2) else (middle + 1, high)
        step = _PARTS_STEP if low > _PARTS_STEP else 1
        return max(2, min(-(-low // step) * step, self.coordinates + 1))

    def lost(self, c: float, parts: int) -> int:
        """Return bits that the exact terms lose to cancellation, roughly."""
        z = max(self.top - self.epsilon, 0.0) / 2
        most = 0.0
        for m in range(parts):
            ways = math.lgamma(self.coordinates + 1) - math.lgamma(self.coordinates - m + 1)
            most = max(most, ways - 2 * math.lgamma(m + 1) + m * math.log(max(z, 1e-300)))
        size = self.log_value(c) - self.top / 2 + self.epsilon / 2
        return max(0, math.ceil((most - size) / math.log(2)))

    def start(self, log_delta: float) -> tuple[float, float]:
        """Return about the ε with ln H(ε) = log_delta, and the slope of ln H there."""
        low, high = _LEAST_TILT, math.log(1e5)
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if self._saddle(middle)[1] > log_delta else (low, middle)
        return max(self._saddle(low)[0], 0.0), -math.exp(low)

    def _saddle(self, x: float) -> tuple[float, float]:
        """Return the ε with its saddle at c = ½ + e^x, and about ln H there."""
        away = math.exp(x)
        c, step = 0.5 + away, 1e-4 * (0.5 + away)
        around = [self.log_phi(c + side * step) for side in (-1, 0, 1)]
        slope = (around[2] - around[0]) / (2 * step)
        curve = max((around[2] - 2 * around[1] + around[0]) / step**2, 1e-12)
        curve += away**-2 + (1 + away) ** -2
        epsilon = slope - 1 / away - 1 / (1 + away)
        log_kernel = x + math.log1p(away)
        size = around[1] - c * epsilon - log_kernel - math.log(2 * math.pi * curve) / 2
        return epsilon, size + (epsilon - self.top) / 2


def choose(groups: Groups, unit: float, epsilon: float, kernel: Kernel, bits: int) -> Plan:
    """Choose the sum that takes the least time.

    Raises UndecidedError if both are too long.
    """
    floats = Floats(groups, unit, epsilon, kernel)
    c = floats.line()
    jumps = _count_jumps(groups, epsilon / unit)
    whole = floats.coordinates + 1
    if jumps * whole > _FEW:
        whole = floats.exact_parts(c, bits)
    build = _ROW * jumps * sum(count for _, count in groups[1:])

    def exact_cost(parts: int) -> float:
        terms = jumps * parts
        return _COEFFICIENT * terms + build * (1 + parts / 64) if terms <= MAX_TERMS else math.inf

    entries = [_signs(half) for half in split(groups)]

    def halved_cost(parts: int) -> float:
        each = _HALF + _HALF_SQUARE * parts**2
        return sum(entries) * each if max(entries) <= MAX_HALF else math.inf

    sums, in_halves = exact_cost(whole), halved_cost(whole)
    cost = min(sums, in_halves)
    if cost == math.inf:
        raise too_long(float(jumps * whole))
    return Plan(c, whole, floats.lost(c, whole), cost, in_halves < sums)


def split(groups: Groups) -> tuple[Groups, Groups]:
    """Return two parts of the groups with about as many sums of signed shifts each."""
    halves: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for group in sorted(groups, key=lambda group: -group[1]):
        min(halves, key=_signs).append(group)
    return tuple(sorted(halves[0])), tuple(sorted(halves[1]))


def _signs(groups: Sequence[tuple[int, int]]) -> int:
    """Return at most how many sums of signed shifts there are."""
    return math.prod(count + 1 for _, count in groups)


def _count_jumps(groups: Groups, bar: float) -> int:
    """Return at most how many jumps lie above the bar."""
    signs, total = 1, 0
    for multiple, count in groups:
        signs *= count + 1
        total += multiple * count
    return min(signs, max(0, math.floor((total - bar) / 2) + 1))


def too_long(terms: float) -> UndecidedError:
    """Return the refusal of sums that no plan makes short."""
    return UndecidedError(
        f"The exact sum over the signs of these shifts has about {terms:.1e} terms, more than the "
        f"{MAX_TERMS} that are formed. Ask for a larger relative_width (1e-9 is enough for most), "
        "use fewer distinct shifts, or round them up to a common grid: delta grows with each."
    )

"""Where the bound on a line is best taken: the line, its nodes, and a cut at each, in floats.

Nothing here is proved. `accountant.geometry.shifts.line` proves whatever is chosen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np

from accountant.numbers.precision import cached_property

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Complexes: TypeAlias = NDArray[np.complex128]
    Integers: TypeAlias = NDArray[np.int64]

_ALIAS = 1e-8
"""Size at which the aliases of a step are aimed, as if of a normal law: they are bounded apart."""
_SMOOTHINGS = (0.5, 0.25, 0.12, 0.06)  # s, in units of 1/c
_SHARES, _FEW = (0.85, 0.7, 0.55), 50  # of the saddle; where κ is below
_SMOOTH_END = 4.0  # the nodes end where e^{−(sy)²/2} is e^{−8}
_MOST_NODES = 700
"""Nodes of a line from which on no less smooth one is tried: each has bounds of its own to find."""
_ANGLES = (0.1, 0.25, 0.45, 0.7, 0.95, 1.2, 1.4)
_STEEPEST = 1.45
"""Largest angle of a direction, below π/2, where its cosine vanishes."""
_SLOPES = (-16.0, -8.0, -4.0, -2.0, -1.0, -0.5, 0.0, 0.25, 0.5, 0.8, 1.0)
_TURNS = (-16.0, -8.0, -4.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
_CIRCLE = 2 * math.pi
_ROOM = 1.42 * math.pi  # below 3π/2
_ENDS = (
    *(0.0, 0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8),
    *(1.0, 1.3, 1.8, 2.5, 4.0, 7.0),
)
_BELOW, _ABOVE, _PER_E = 24, 24, 16  # values of t up to t*, from there on, and a factor e
_WAVE = 0.4  # radians of yt between two values of t
_FIRST_BLOCK, _TURNED = 8.0, 40.0  # values of y·T₂: the end of a block, and of slopes ≠ 0
_NEGLIGIBLE = 1e-7  # of the first node's bound
_CHORDS = 30
"""Chords that are raised to the envelope at t*: they touch it after a few."""
_STEPS = 45
"""Steps of golden section to a saddle, in ln c: a line near it is as good."""
_LARGEST_LINE = 150.0  # c·T₂


@final
@dataclass(frozen=True)
class Support:
    """p Re γ(t, z) + q Im γ(t, z) − bt − μγ(t, c), a function whose supremum is asked for."""

    real: float
    imaginary: float
    square: float
    moment: float


@final
@dataclass(frozen=True)
class Cut:
    """A bound of Re F at a node for the shifts of a cell: a line above ln cos of the phase.

    It touches at the angle atan(slope) + 2π·turns. `phase` proves that the phase of no shift is
    above 3π/2 + 2π·turns (for slope < 0: below −3π/2 + 2π·turns); a slope 0 needs no such proof.
    """

    slope: float
    turns: int
    support: Support
    phase: Support | None
    gain: float = field(compare=False)
    """About ln of the first node's bound over this one's: how little accuracy matters."""


@final
@dataclass(frozen=True)
class LinePlan:
    """The line Re z = c, the step, the smoothing s, the ends of the cells of A, and the cuts."""

    line: float
    step: float
    smoothing: float
    ends: tuple[float, ...]
    cuts: tuple[tuple[Cut | None, ...], ...]
    """A row for each node after the first, an entry for each cell between two ends."""
    log_bound: float
    """The logarithm of the bound, nearly."""


def plan(first: float, second: float, epsilon: float) -> LinePlan | None:
    """Return a plan for T₁ > T₂ > 0 and 0 ≤ ε < T₁; None where it would be too long.

    That is where ε is so near to T₁ that all coordinates must be at their atoms.
    """
    line = saddle(first, second, epsilon)
    if line * second > _LARGEST_LINE:
        return None
    best = _Planner(first, second, epsilon, line, _SMOOTHINGS[0] / line)
    for factor in _SMOOTHINGS[1:]:
        tried = _Planner(first, second, epsilon, line, factor / line)
        if len(tried.size) > _MOST_NODES or tried.log_bound >= best.log_bound:
            break
        best = tried
    for share in _SHARES if first**2 < _FEW * second**2 else ():
        factor = best.smoothing * best.line
        moved = share * line
        few = [_Planner(first, second, epsilon, moved, f / moved) for f in (factor, factor / 2)]
        tried = min(few, key=lambda planner: planner.log_bound)
        if tried.log_bound >= best.log_bound:
            break
        best = tried
    return best.plan()


def saddle(first: float, second: float, epsilon: float) -> float:
    """Return the c > 0 where M(c) e^{−cε}/(c(c + 1)) is least, M that of κ equal coordinates."""
    mean = second * second / first

    def height(x: float) -> float:
        c = math.exp(x)
        log_moment = first / mean * float(log_factor(mean, np.array([complex(c)])).real[0])
        return log_moment - c * epsilon - math.log(c) - math.log1p(c)

    low, high = math.log(1e-4 / (1 + first)), math.log(2 * _LARGEST_LINE / second)
    for _ in range(_STEPS):
        left, right = low + (high - low) * 0.382, low + (high - low) * 0.618
        low, high = (low, right) if height(left) < height(right) else (left, high)
    return math.exp((low + high) / 2)


def log_factor(t: float | Floats, z: Complexes) -> Complexes:
    """Return ln(((z + 1)e^{zt} + z e^{−(z+1)t})/(2z + 1)), continuous from 0 at t = 0."""
    fallen = z / (z + 1) * np.exp(-(2 * z + 1) * t)
    value: Complexes = z * t + np.log((z + 1) / (2 * z + 1)) + np.log1p(fallen)
    return value


@final
class _Block:
    """Some nodes with γ on a grid of t that is fine enough for them."""

    def __init__(self, first: float, second: float, line: float, y: Floats) -> None:
        self.first, self.mean = first, second * second / first
        above = _ABOVE + math.ceil(_PER_E * math.log(second / self.mean))
        waves = np.linspace(0.0, second, math.ceil(second * float(y[-1]) / _WAVE) + 2)
        rising = np.geomspace(self.mean, second, above)
        left = np.concatenate(
            [np.linspace(0.0, self.mean, _BELOW), waves[waves < self.mean * (1 - 1e-6)]]
        )
        left[left >= self.mean * (1 - 1e-9)] = self.mean
        right = np.concatenate([rising[1:], waves[waves > self.mean * (1 + 1e-6)]])
        left, right = np.unique(left), np.unique(right)
        self.t, self.at = np.concatenate([left, right]), len(left) - 1
        z = (line + 1j * y[:, None]).astype(np.complex128)
        self.gamma = np.zeros((len(y), len(self.t)), dtype=np.complex128)
        self.gamma[:, 1:] = log_factor(self.t[None, 1:], z) / self.t[None, 1:]
        self.real = np.zeros(len(self.t))
        self.real[1:] = log_factor(self.t[1:], np.array(complex(line))).real / self.t[1:]

    def value(self, function: Floats) -> Floats:
        """Return T₁ times the concave envelope at t*, of each row."""
        t, rows = self.t, np.arange(len(function))
        low, high = np.zeros(len(rows), dtype=np.int64), np.full(len(rows), len(t) - 1)
        for _ in range(_CHORDS):
            rise = (function[rows, high] - function[rows, low]) / (t[high] - t[low])
            over = function - function[rows, low, None] - rise[:, None] * (t - t[low, None])
            top = over.argmax(1)
            if not (over[rows, top] > 1e-10 * (1 + np.abs(function[rows, top]))).any():
                break
            low, high = np.where(top <= self.at, top, low), np.where(top > self.at, top, high)
        found: Floats = self.first * (function[rows, low] + rise * (self.mean - t[low]))
        return found

    def function(self, real: float, imaginary: float | Floats, moment: float) -> Floats:
        """Return the functions without their square term, a row for each node."""
        mixed: Floats = real * self.gamma.real + imaginary * self.gamma.imag
        return mixed - moment * self.real

    def support(self, node: int, real: float, imaginary: float, moment: float) -> Support:
        """Return the function of one node with the line that touches its envelope at t*."""
        function = real * self.gamma[node].real + imaginary * self.gamma[node].imag
        function = function - moment * self.real
        over = function - float(self.value(function[None, :])[0]) / self.first
        slopes = over / np.where(self.t == self.mean, math.nan, self.t - self.mean)
        left, right = slopes[: self.at], slopes[self.at + 1 :]
        return Support(real, imaginary, float((left.min() + right.max()) / 2), moment)


@final
@dataclass(frozen=True, eq=False)
class _Cell:
    """The logarithms of the bound and of its nodes, in a cell of A, and the cuts that give it."""

    log_bound: float
    nodes: Floats
    cuts: Integers
    """Rows: which angle (−1 for none), which slope in −A, and how many turns."""
    phases: dict[int, Integers]
    """Which slope in −A proves the phase, on either side."""


def _log_sum(exponents: Floats, weight: Floats) -> float:
    most = float(exponents.max())
    return math.log(float((weight * np.exp(exponents - most)).sum())) + most


@final
class _Planner:
    """The set of shifts, ε, a line and a smoothing."""

    def __init__(
        self, first: float, second: float, epsilon: float, line: float, smoothing: float
    ) -> None:
        self.line, self.smoothing = line, smoothing
        mean = second * second / first
        h = 1e-3 * line
        near = np.array([line - h, line, line + h], dtype=np.complex128)
        logs = first / mean * log_factor(mean, near).real - np.log(near * (near + 1)).real
        variance = float(logs[0] - 2 * logs[1] + logs[2]) / h**2
        self.step = _CIRCLE / math.sqrt(2 * math.log(1 / _ALIAS) * variance)
        count = int(_SMOOTH_END / smoothing / self.step) + 2
        y: Floats = self.step * np.arange(count, dtype=np.float64)
        z = line + 1j * y
        kernel = z * (z + 1) * (smoothing**2 / 2) - np.log(z * (z + 1)) - epsilon * z
        self.size, self.phase = kernel.real, kernel.imag
        self.top = first / mean * float(log_factor(mean, np.array(complex(line))).real)
        self.weight = np.full(count, self.step / math.pi)
        self.weight[0] /= 2
        self.blocks: list[tuple[int, _Block]] = []
        start, end = 0, _FIRST_BLOCK
        while start < count:
            stop = max(int(np.searchsorted(y * second, end)), start + 1)
            self.blocks.append((start, _Block(first, second, line, y[start:stop])))
            start, end = stop, 2 * end
        self.turned = max(int(np.searchsorted(y * second, _TURNED)), 1)

    @cached_property
    def tables(self) -> tuple[Floats, Floats, dict[int, Floats]]:
        """Return the slopes λ, the bounds at A = 0 and those of the phase.

        The indices of a bound are λ, the slope in −A, and the node.
        """
        count = len(self.size)
        own = np.zeros(count)
        for start, block in self.blocks:
            part = block.first * block.gamma[:, block.at].imag
            own[start : start + len(part)] = part
        own += self.phase
        own -= _CIRCLE * np.round(own / _CIRCLE)
        fixed = [sign * angle for angle in _ANGLES for sign in (1.0, -1.0)]
        angles = np.zeros((2 + len(fixed), count))
        angles[1] = np.clip(own, -_STEEPEST, _STEEPEST)
        angles[2:] = np.array(fixed)[:, None]
        angles[1:, self.turned :] = 0.0
        slopes = np.tan(angles)
        bounds = np.full((len(angles), len(_SLOPES), count), math.inf)
        phases = {side: np.full((len(_TURNS), count), math.inf) for side in (1, -1)}
        for start, block in self.blocks:
            here = slice(start, start + len(block.gamma))
            turned = start < self.turned
            for number in range(len(angles) if turned else 1):
                leaning = -slopes[number, here, None]
                for row, mu in enumerate(_SLOPES):
                    value = block.value(block.function(1.0, leaning, mu)) + mu * self.top
                    bounds[number, row, here] = value
            for side in phases if turned else ():
                for row, mu in enumerate(_TURNS):
                    value = block.value(block.function(0.0, float(side), mu)) + mu * self.top
                    phases[side][row, here] = value + side * self.phase[here]
        bounds += (self.size + np.log(np.cos(angles)) + slopes * (angles - self.phase))[:, None]
        return slopes, bounds, phases

    @cached_property
    def cells(self) -> list[_Cell]:
        """The best cuts in each cell."""
        slopes, bounds, phases = self.tables
        mus, turning = np.array(_SLOPES)[:, None], np.array(_TURNS)[:, None]
        found = []
        for low, high in pairwise(_ENDS):
            reach = {
                s: np.maximum(v - turning * low, v - turning * high) for s, v in phases.items()
            }
            least = {side: values.min(0) for side, values in reach.items()}
            best = self.size + self.top - low
            matters = best + np.log(self.weight / self.step) > best[0] + math.log(_NEGLIGIBLE)
            chosen = np.full((3, len(best)), -1)
            start, fall = self.size + self.top, np.ones(len(best))
            for number, slope in enumerate(slopes):
                over = (
                    np.where(slope < 0, -least[-1], least[1]) - np.sign(slope) * _ROOM
                ) / _CIRCLE
                turns = np.where(slope < 0, np.floor(over), np.ceil(over))
                turns = np.where(slope == 0, 0.0, turns)
                values = bounds[number] + slope * _CIRCLE * turns
                worst = np.maximum(values - mus * low, values - mus * high)
                index, value = worst.argmin(0), worst.min(0)
                better = (value < best) & matters
                best = np.where(better, value, best)
                start = np.where(better, values[index, np.arange(len(best))], start)
                fall = np.where(better, mus[index, 0], fall)
                cut = np.array([np.full(len(best), number), index, turns])
                chosen[:, better] = cut[:, better]
            total = max(_log_sum(start - fall * a, self.weight) for a in (low, high))
            found.append(_Cell(total, best, chosen, {s: v.argmin(0) for s, v in reach.items()}))
        return found

    @property
    def log_bound(self) -> float:
        """The logarithm of the bound."""
        return max(cell.log_bound for cell in self.cells)

    def plan(self) -> LinePlan:
        """Return the plan with the best cut of every node in every cell."""
        rows = [
            tuple(self._cut(cell, start + row, block, row) for cell in self.cells)
            for start, block in self.blocks
            for row in range(len(block.gamma))
        ]
        cuts = tuple(rows[1:])
        return LinePlan(self.line, self.step, self.smoothing, _ENDS, cuts, self.log_bound)

    def _cut(self, cell: _Cell, node: int, block: _Block, row: int) -> Cut | None:
        number, index, turns = (int(v) for v in cell.cuts[:, node])
        if number < 0:
            return None
        slope = float(self.tables[0][number, node])
        gain = float(self.size[0] + self.top - cell.nodes[node])
        support = block.support(row, 1.0, -slope, _SLOPES[index])
        if slope == 0:
            return Cut(0.0, 0, support, None, gain)
        side = 1 if slope > 0 else -1
        turn = _TURNS[int(cell.phases[side][node])]
        phase = block.support(row, 0.0, float(side), turn)
        return Cut(slope, turns, support, phase, gain)

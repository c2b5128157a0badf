"""Privacy in floats by a method independent of the package: laws as arrays, composed by FFT.

A release is a list of alternatives, each given by the masses p and q of the two laws on common
outcomes, or on cells of the line (Gauss–Legendre with four points per cell). For a single release
the sum is direct. For several, losses are moved to a grid, split between two nodes so that both
masses are preserved, tilted at the saddle point and convolved by FFT. A comparison with half the
nodes, and with cells of twice the width, estimates the error.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

Array = NDArray[Any]
NODES = 1 << 19  # of a grid of losses: 50 ms a transform
CELLS = 1 << 15  # of a piece of the line: the loss moves by 1e-3 of its spread in each
STEPS = np.geomspace(1e-3, 1e7, 31)  # of Chernoff bounds of the ends of a grid
LOST = 34.0  # −ln of the mass beyond the grid that folds back, of the tilted law
TIE = 1e-15  # relative difference of numbers that may be equal
BETA = 1e-7  # absolute error of β on a grid: once 2e-8 from an enumeration at an atom
NOISE = 1e-13  # of a transform, as a share of all tilted mass: heavy tails leave little above it
FLOAT = 3e-10  # relative error of the sums and transforms themselves


@dataclass(frozen=True, eq=False)
class Law:
    """The masses of P and Q; `cells` says that they belong to cells of a line.

    `drawn` laws are samples from P, of a pair with a symmetry that exchanges P and Q. The masses of
    Q are weights, unreliable for the other direction, which is the same by symmetry.
    """

    p: Array
    q: Array
    cells: bool = False
    drawn: bool = False

    def swapped(self) -> Law:
        """Return the law of the other direction."""
        return Law(self.q, self.p, self.cells)

    def sampled(self, rate: float) -> Law:
        """Return the law with the record present with a given probability."""
        return Law((1 - rate) * self.q + rate * self.p, self.q, self.cells)

    @functools.cached_property
    def mirrored(self) -> bool:
        """Whether both directions are equivalent."""
        if self.drawn:
            return True
        return self.p.ndim == 1 and np.allclose(self.p, self.q[::-1], rtol=1e-9, atol=1e-200)

    @functools.cached_property
    def halved(self) -> Law:
        """Return the law on cells of twice the width."""
        if not self.cells:
            return self
        even = len(self.p) // 2 * 2
        p, q = (np.append(x[:even].reshape(-1, 2).sum(1), x[even:]) for x in (self.p, self.q))
        return Law(p, q, True)

    @functools.cached_property
    def losses(self) -> tuple[Array, Array, float]:
        """Return the finite losses, the logarithms of their masses, and the infinite mass."""
        some = (self.p > 0) & (self.q > 0)
        logs = np.log(self.p[some])
        return logs - np.log(self.q[some]), logs, float(self.p[(self.p > 0) & ~some].sum())


def line(log_density: Callable[[Array], Array], shift: float, reach: float, *kinks: float) -> Law:
    """Return the law of noise and of noise that is shifted."""
    ends = sorted({-reach, reach + shift, *kinks, *(kink + shift for kink in kinks)})
    edges = np.unique(
        np.concatenate([np.linspace(a, b, CELLS + 1) for a, b in itertools.pairwise(ends)])
    )
    nodes, weights = np.polynomial.legendre.leggauss(4)
    half = np.diff(edges)[:, None] / 2
    x = edges[:-1, None] + half * (1 + nodes)
    p, q = (np.exp(log_density(x - s)) @ weights * half[:, 0] for s in (shift, 0.0))
    return Law(p / p.sum(), q / q.sum(), True)


@functools.cache
def gaussian(mu: float) -> Law:
    """Return Gaussian noise of standard deviation 1."""
    return line(lambda x: -x * x / 2, mu, 28.0)


@functools.cache
def laplace(shift: float) -> Law:
    """Return Laplace noise; beyond 0 and the shift the loss is constant, so one cell suffices."""
    x = np.linspace(0, shift, CELLS + 1)
    p = np.concatenate([[math.exp(-shift)], np.exp(x[1:] - shift) * -np.expm1(-np.diff(x)), [1]])
    return Law(p / 2, p[::-1] / 2, True)


def lattice(log_mass: Callable[[Array], Array], shift: int, reach: int) -> Law:
    """Return integer noise."""
    x = np.arange(-reach, reach + shift + 1)
    p, q = np.exp(log_mass(x - shift)), np.exp(log_mass(x))
    return Law(p / p.sum(), q / q.sum())


@functools.cache
def allocation(mu: float, steps: int) -> Law:
    """Return the law of Σ e^(L_i) of an epoch: under Q a sum of `steps` lognormal numbers."""
    z, top = np.linspace(-9, 9, 1 << 18), steps + 2 * math.exp(8 * mu)
    mass, step = np.exp(-z * z / 2), top / (4 * NODES)
    x = np.exp(mu * z - mu * mu / 2)
    mass, x = mass / mass.sum(), x / (x @ mass / mass.sum()) / step
    low = np.floor(x).astype(int)
    one = np.bincount(low, mass * (1 - x + low), 4 * NODES) + np.bincount(
        low + 1, mass * (x - low), 4 * NODES
    )
    q = np.maximum(np.fft.irfft(np.fft.rfft(one) ** steps, 4 * NODES), 0)
    return Law(q * np.arange(4 * NODES) * step / steps, q, True)


Product = Sequence[tuple[Law, int]]


def cumulant(product: Product, c: float) -> float:
    """Return ln E[e^(cL)] of the finite losses under P."""
    return sum(n * float(logsumexp(law.losses[1] + c * law.losses[0])) for law, n in product)


def ends_early(law: Law, c: float) -> bool:
    """Whether cells whose masses underflow may dominate E[e^(cL)]."""
    if not law.cells:
        return False
    losses, logs, _ = law.losses
    terms = logs + c * losses
    ends = max(terms[0], terms[-1])
    return bool(len(terms) > 2 and ends > terms.max() - 1)


class Grid:
    """The law of the sum of all losses, tilted by c, on a grid."""

    def __init__(self, product: Product, c: float, size: int) -> None:
        moment, self.c = cumulant(product, c), c
        ends = [
            side * min((cumulant(product, c + side * s) - moment + LOST) / s for s in STEPS)
            for side in (1, -1)
        ]
        step = 1.01 * (ends[0] - ends[1]) / size
        spectrum, self.log_moment, self.hidden = np.ones(size // 2 + 1, complex), 0.0, 0.0
        for law, n in product:
            loss, logs, _ = law.losses
            own = cumulant([(law, 1)], c)
            if (
                law.cells and len(loss) > 1
            ):  # ε may be on the way through a cell, if others have atoms
                change = np.diff(loss, append=loss[-1:]) ** 2
                change = float(np.exp(logs + c * loss - own) @ np.minimum(change, 1))
                self.hidden = max(self.hidden, change * (c + 1) ** 2 / 8)
            low = np.floor(loss / step)
            upper = np.clip(np.expm1(low * step - loss) / math.expm1(-step), 0, 1)
            masses = np.zeros(size)
            for node, share in ((low, 1 - upper), (low + 1, upper)):
                weight = share * np.exp(logs + c * node * step - own)
                masses += np.bincount((node % size).astype(int), weight, size)
            total = masses.sum()
            self.log_moment += n * (math.log(total) + own)
            spectrum *= np.fft.rfft(masses / total) ** n
        places = math.ceil(ends[1] / step - 0.005 * size) + np.arange(size)  # room at both
        self.losses, self.masses = places * step, np.fft.irfft(spectrum, size)[places % size]
        self.infinite = -math.expm1(sum(n * math.log1p(-law.losses[2]) for law, n in product))

    def delta(self, epsilon: float) -> float:
        """Return δ(ε) for any real ε."""
        first = np.searchsorted(self.losses, epsilon)
        above = self.losses[first:] - epsilon
        part = float(self.masses[first:] @ (np.exp(-self.c * above) * -np.expm1(-above)))
        return self.infinite + self.scale(epsilon) * max(part, 0.0)

    def scale(self, epsilon: float) -> float:
        """Return the factor that undoes the tilt at ε, capped where it would overflow."""
        return math.exp(min(self.log_moment - self.c * epsilon, 700))


def direct(law: Law, epsilon: float) -> tuple[float, float]:
    """Return max δ(ε) over laws in rows for one release, and a bound on the error of cells.

    Only the cell in which the loss crosses ε is not summed exactly. Its error is at most an eighth
    of its mass times the change of the loss.
    """
    apart = law.p - math.exp(min(epsilon, 700)) * law.q
    apart[apart < TIE * law.p] = 0  # equal, but for rounding
    gain, hidden = apart.sum(-1).max(), 0.0
    if law.cells:
        loss, logs, _ = law.losses
        change = np.abs(np.diff(loss, append=loss[-1:])) + np.abs(np.diff(loss, prepend=loss[:1]))
        near = np.abs(loss - epsilon) <= change
        hidden = float(np.exp(logs[near]) @ change[near]) / 4
    return float(gain), hidden


def tilt(product: Product, epsilon: float) -> float:
    """Return a tilt e^{k/8} near the saddle point of ε, so that nearby ε share a tilt; or 0."""
    best = minimize_scalar(
        lambda x: cumulant(product, math.exp(x)) - math.exp(x) * epsilon,
        bounds=(-3, 16),
        method="bounded",
        options={"xatol": 0.05},
    )
    return 0.0 if best.fun > -1 else math.exp(round(8 * best.x) / 8)


class Profile:
    """The profile and the trade-off function of a product of pairs."""

    def __init__(self, product: Product) -> None:
        self.product, self.grids = list(product), dict[float, list[Grid]]()
        self.alone = len(product) == 1 and product[0][1] == 1

    def at(self, c: float) -> list[Grid]:
        """Return the grid of a tilt, with half the nodes, and with cells of twice the width."""
        if c not in self.grids:
            halved = [(law.halved, n) for law, n in self.product]
            chosen = ((self.product, NODES), (self.product, NODES // 2), (halved, NODES))
            self.grids[c] = [Grid(one, c, size) for one, size in chosen]
        return self.grids[c]

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return δ(ε) for ε ≥ 0, and how far it may be off."""
        if self.alone:
            value, off = direct(self.product[0][0], epsilon)
            return value, off + FLOAT * value
        grids = self.at(tilt(self.product, epsilon))
        value, off = settled(*(grid.delta(epsilon) for grid in grids))
        first, step = grids[0], grids[0].losses[1] - grids[0].losses[0]
        count = sum(n for _, n in self.product)
        if epsilon > sum(n * float(law.losses[0].max()) for law, n in self.product) - count * step:
            off += value  # where splitting moves losses beyond the largest
        near = np.abs(first.losses - epsilon) <= min(count + 1, 50) * step  # an atom at ε itself
        weights = np.exp(np.minimum(first.log_moment - first.c * first.losses[near], 700))
        off += step * float(np.abs(first.masses[near]) @ weights)
        noise = NOISE * first.scale(epsilon)
        return value, off + first.hidden * value + noise

    def beta(self, alpha: float) -> tuple[float, float]:
        """Return 1 − P(S) of the best event or mixture with Q(S) = α, and how far it may be off."""
        laws = next((x, x.halved) for x, _ in self.product) if self.alone else None
        if laws:
            fine, cells = (trade_off(x.p, x.q, alpha) for x in laws)
            return settled(fine, fine, cells)
        found = []
        for grid in self.at(0.0):
            masses = grid.masses * math.exp(grid.log_moment)
            q = masses * np.exp(np.minimum(-grid.losses, 600))
            p, q = np.append(masses, grid.infinite), np.append(q, 0.0)
            found.append(trade_off(np.maximum(p, 0), np.maximum(q, 0), alpha))
        value, off = settled(*found)
        return value, off + BETA

    def renyi(self, order: float) -> tuple[float, float]:
        """Return the Rényi divergence of an order above 1, and how far it may be off."""
        if any(law.losses[2] for law, _ in self.product):
            return math.inf, 0.0
        if any(ends_early(law, order - 1) for law, _ in self.product):
            return math.inf, math.inf  # nothing is known
        halved = [(law.halved, n) for law, n in self.product]
        fine, cells = (cumulant(x, order - 1) / (order - 1) for x in (self.product, halved))
        rounding = 1e-14 * sum(n for _, n in self.product) / (order - 1)
        value, off = settled(fine, fine, cells)
        return value, off + rounding


def settled(fine: float, grid: float, cells: float) -> tuple[float, float]:
    """Extrapolate from grids and cells half as fine; the errors are of second order."""
    off = abs(fine - grid) + abs(fine - cells) + FLOAT * fine
    return fine + (2 * fine - grid - cells) / 3, off


def trade_off(p: Array, q: Array, alpha: float) -> float:
    """Return 1 − P(S) of the best event or mixture with Q(S) = α."""
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(np.where(p > 0, -(np.log(p) - np.log(q)), np.inf), kind="stable")
    power, level = np.cumsum(p[order]), np.cumsum(q[order])
    return max(0.0, 1 - float(np.interp(alpha, np.append(0, level), np.append(0, power))))

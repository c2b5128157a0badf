"""Moment generating functions M(z) = E_P[e^{zL}; L < ∞] of losses, for integrals along a line.

For z = c + it every factor gives M(c), the ratios M(c + inh)/M(c), and a bound of |M(c + it)| for
all t ≥ T at once. Here are closed forms and lists; mixtures of normal laws are in
`compositions.mixtures`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias, final

from mpmath import mp


@final
@dataclass(frozen=True)
class Row:
    """M(c), the ratios M(c + inh)/M(c) for n = 0, 1, …, and a bound of their error."""

    top: Any
    ratios: list[Any]
    error: Any


def spin(weights: Sequence[Any], angles: Sequence[Any], nodes: int) -> tuple[list[Any], Any]:
    """Return Σ_j w_j e^{inα_j} for n = 0, …, nodes, and a bound of the rounding.

    The w_j ≥ 0 have a sum near 1. Every power is made from the one before it, in integers of P bits
    after the point: a product and its two shifts add less than 4 units of 2^{−P} to the error, the
    start less than 1, in each of the terms.
    """
    bits = mp.prec

    def fixed(value: Any) -> int:
        return int(mp.nint(mp.ldexp(value, bits)))

    turns = [mp.expj(angle) for angle in angles]
    cosines, sines = [fixed(turn.real) for turn in turns], [fixed(turn.imag) for turn in turns]
    reals, imags = [fixed(weight) for weight in weights], [0] * len(weights)
    found = []
    for _ in range(nodes + 1):
        total = mp.mpc(sum(reals), sum(imags))
        found.append(total * mp.ldexp(1, -bits))
        terms = list(zip(reals, imags, cosines, sines, strict=True))
        reals = [(a * c - b * s) >> bits for a, b, c, s in terms]
        imags = [(a * s + b * c) >> bits for a, b, c, s in terms]
    return found, (4 * nodes + 1) * len(weights) * mp.ldexp(1, -bits)


class Factor:
    """The loss of one release; unless told otherwise, M does not fall along the line.

    What is called an estimate is in floats and proves nothing.
    """

    def log_moment(self, line: Any, digits: float) -> Any:
        """Bound ln M(c) from above, closely."""
        raise NotImplementedError

    def along(self, line: Any, step: Any, nodes: int, digits: float) -> Row:
        """Return M along the line, at n = 0, …, nodes."""
        raise NotImplementedError

    def cost(self, line: float, end: float, digits: float) -> float:
        """Estimate the products of complex numbers that a node takes."""
        raise NotImplementedError

    def estimate(self, line: float) -> float:
        """Estimate ln M(c)."""
        return float(self.log_moment(mp.mpf(line), 15))

    def estimate_cap(self, line: float, end: float) -> tuple[float, float]:
        """Estimate the least `log_cap`, and the height that gives it."""
        return self.estimate(line), 0.0

    def log_cap(self, line: Any, end: Any, height: float, digits: float) -> Any:
        """Bound ln |M(c + it)| from above for all t ≥ T."""
        return self.log_moment(line, digits)

    def closing(self, line: Any, end: Any, height: float, log_cap: Any) -> Any:
        """Bound ∫ b(t)/(b(T) t) dt over t ≥ T, b ≥ |M| decreasing with ln b(T) = log_cap."""
        return mp.inf

    def split(self, line: Any) -> tuple[Any, Any]:
        """Return a(c)/M(c) and C, where a is the transform of atoms, |M − a| ≤ M(c) C/t."""
        return mp.one, mp.zero


@final
@dataclass(frozen=True)
class Normal(Factor):
    """The loss of a Gaussian pair: ln M(z) = μ² z(z + 1)/2, which falls as e^{−μ²t²/2}."""

    mu: Any

    def log_moment(self, line: Any, digits: float) -> Any:
        """Return ln M(c)."""
        return mp.mpf(self.mu) ** 2 * line * (line + 1) / 2

    def estimate(self, line: float) -> float:
        """Return ln M(c)."""
        return float(self.mu) ** 2 * line * (line + 1) / 2

    def cost(self, line: float, end: float, digits: float) -> float:
        """Return the cost of one exponential function."""
        return 20

    def estimate_cap(self, line: float, end: float) -> tuple[float, float]:
        """Return ln |M(c + iT)|."""
        return self.estimate(line) - (float(self.mu) * end) ** 2 / 2, 0.0

    def log_cap(self, line: Any, end: Any, height: float, digits: float) -> Any:
        """Return ln |M(c + iT)|: it decreases."""
        return mp.mpf(self.mu) ** 2 * (line * (line + 1) - end**2) / 2

    def closing(self, line: Any, end: Any, height: float, log_cap: Any) -> Any:
        """Return 1/(μT)², as e^{−μ²(t² − T²)/2} falls so fast."""
        return 1 / (mp.mpf(self.mu) * end) ** 2

    def split(self, line: Any) -> tuple[Any, Any]:
        """Return no C: no atom is needed."""
        return mp.zero, mp.inf

    def along(self, line: Any, step: Any, nodes: int, digits: float) -> Row:
        """Return e^{μ²(i(2c + 1)t − t²)/2} for every t."""
        half = mp.mpf(self.mu) ** 2 / 2
        points = [n * step for n in range(nodes + 1)]
        ratios = [mp.exp(half * mp.mpc(-(t**2), (2 * line + 1) * t)) for t in points]
        return Row(mp.exp(self.log_moment(line, digits)), ratios, mp.zero)


@final
@dataclass(frozen=True)
class Listed(Factor):
    """A loss with finitely many values: their masses under P and Q, both positive."""

    masses: tuple[tuple[Any, Any], ...]
    infinite: Any = 0
    """The mass of P where L = ∞."""

    def estimate(self, line: float) -> float:
        """Return ln M(c), the largest term apart."""
        terms = [one + line * loss for one, loss in _logarithms(self)]
        return max(terms) + math.log(sum(math.exp(term - max(terms)) for term in terms))

    def losses(self) -> list[Any]:
        """Return the values."""
        return [mp.log(mp.mpf(p) / q) for p, q in self.masses]

    def cost(self, line: float, end: float, digits: float) -> float:
        """Return the number of values."""
        return len(self.masses)

    def log_moment(self, line: Any, digits: float) -> Any:
        """Return ln M(c)."""
        return mp.log(mp.fsum(p * (mp.mpf(p) / q) ** line for p, q in self.masses))

    def along(self, line: Any, step: Any, nodes: int, digits: float) -> Row:
        """Turn every mass, weighted with e^{cL}, by its loss."""
        terms = [p * (mp.mpf(p) / q) ** line for p, q in self.masses]
        top = mp.fsum(terms)
        angles = [step * loss for loss in self.losses()]
        ratios, error = spin([term / top for term in terms], angles, nodes)
        return Row(top, ratios, error)


@lru_cache(maxsize=1024)
def _logarithms(listed: Listed) -> list[tuple[float, float]]:
    return [(float(mp.log(p)), float(mp.log(mp.mpf(p) / q))) for p, q in listed.masses]


def _theta(v: Any) -> Any:
    """Return the sum of e^{−z²/2v} over all integers, to the working precision."""
    total, term = mp.zero, mp.exp(-1 / (2 * v))
    ratio, step = mp.exp(-3 / (2 * v)), mp.exp(-1 / v)
    while term > total * mp.eps:
        total, term, ratio = total + term, term * ratio, ratio * step
    return 1 + 2 * total


@final
@dataclass(frozen=True)
class DiscreteNormal(Factor):
    """The loss s(x − s/2)/v of discrete Gaussian laws, their parameter v and their shift s.

    M(z) is Σ_x e^{−(x − s)²/2v + zs(x − s/2)/v}/θ; at z = c the terms are e^{s²c(c + 1)/2v} times
    e^{−(x − m)²/2v} with m = s(1 + c). Terms with |x − m| > R have at most the part
    2(1 + √(πv/2)) e^{−R²/2v} of the latter, a sum that is at least 2e^{−1/8v}.
    """

    parameter: Any
    shift: int

    def estimate(self, line: float) -> float:
        """Estimate ln M(c)."""
        v, s = float(self.parameter), self.shift
        sums = []
        for centre in (s * (1 + line), 0.0):
            around = range(
                round(centre - 9 * math.sqrt(v)) - 1, round(centre + 9 * math.sqrt(v)) + 2
            )
            sums.append(sum(math.exp(-((x - centre) ** 2) / (2 * v)) for x in around))
        return s**2 * line * (line + 1) / (2 * v) + math.log(sums[0] / sums[1])

    def _reach(self, digits: float) -> int:
        return math.ceil(math.sqrt(2 * float(self.parameter) * (digits + 3) * math.log(10))) + 1

    def cost(self, line: float, end: float, digits: float) -> float:
        """Return the number of values that count."""
        return 2 * self._reach(digits)

    def _sum(self, line: Any, digits: float) -> tuple[list[tuple[int, Any]], Any, Any]:
        """Return the terms e^{−(x − m)²/2v}, ln(e^{…}/θ), and a bound of what is left out."""
        v, s, reach = mp.mpf(self.parameter), self.shift, self._reach(digits)
        centre = s * (1 + line)
        middle = int(mp.nint(centre))
        around = range(middle - reach, middle + reach + 1)
        terms = [(x, mp.exp(-((x - centre) ** 2) / (2 * v))) for x in around]
        left_out = 2 * (1 + mp.sqrt(mp.pi * v / 2)) * mp.exp(-((mp.mpf(reach) - 1) ** 2) / (2 * v))
        return terms, s**2 * line * (line + 1) / (2 * v) - mp.log(_theta(v)), left_out

    def terms(self, line: Any, digits: float) -> list[tuple[int, Any]]:
        """Return the terms that count, but for a factor."""
        return self._sum(line, digits)[0]

    def log_moment(self, line: Any, digits: float) -> Any:
        """Bound ln M(c) from above."""
        terms, log_scale, left_out = self._sum(line, digits)
        return log_scale + mp.log(mp.fsum(term for _, term in terms) + left_out)

    def along(self, line: Any, step: Any, nodes: int, digits: float) -> Row:
        """Turn every term by its loss."""
        terms, log_scale, left_out = self._sum(line, digits)
        whole, unit = mp.fsum(term for _, term in terms), self.shift / mp.mpf(self.parameter)
        angles = [step * unit * (x - mp.mpf(self.shift) / 2) for x, _ in terms]
        ratios, error = spin([term / whole for _, term in terms], angles, nodes)
        return Row(mp.exp(log_scale) * whole, ratios, error + 2 * left_out / whole)


@final
@dataclass(frozen=True)
class Laplace(Factor):
    """The loss of Laplace laws t apart: M(z) = ((1 + z) e^{tz} + z e^{−t(1 + z)})/(2z + 1).

    Tilted by e^{cL} it is two atoms and a density, of masses 1/(1 + f) and f/(1 + f). With
    s = c + 1/2, x = ts and f = tanh(x)/2s, their parts of M(c + iu)/M(c) are, in size,
    √(1 − sin²v/cosh²x) and √((1 + sin²v/sinh²x)/(1 + v²/x²)) times that, v = tu. Both fall up to
    v = π/2 (for the second, sin 2v/2v ≤ 1 ≤ sinh²x/x² and sin 2v/2v ≤ sin²v/v²). From there on they
    are at most 1 and x coth(x)/√(x² + v²).
    """

    distance: Any

    def _moment(self, z: Any) -> Any:
        t = mp.mpf(self.distance)
        return ((1 + z) * mp.exp(t * z) + z * mp.exp(-t * (1 + z))) / (2 * z + 1)

    def estimate_cap(self, line: float, end: float) -> tuple[float, float]:
        """Return the bound below: two atoms keep M from falling to 0."""
        return float(self.log_cap(mp.mpf(line), mp.mpf(end), 0.0, 15)), 0.0

    def log_cap(self, line: Any, end: Any, height: float, digits: float) -> Any:
        """Bound both parts, for all u ≥ T: near 0 as they fall, and beyond for good."""
        t, s = mp.mpf(self.distance), mp.mpf(line) + mp.mpf(1) / 2
        x, v, quarter = t * s, t * end, mp.pi / 2
        flat = mp.tanh(x) / (2 * s)
        most = 1 + flat * min(1, x * mp.coth(x) / mp.hypot(x, max(v, quarter)))
        if v < quarter:
            turned = mp.sin(v) ** 2
            density = (1 + turned / mp.sinh(x) ** 2) / (1 + (v / x) ** 2)
            atoms = 1 - turned / mp.cosh(x) ** 2
            most = max(most, mp.sqrt(atoms) + flat * mp.sqrt(density))
        return mp.log(self._moment(line) * most / (1 + flat))

    def split(self, line: Any) -> tuple[Any, Any]:
        """Return the mass of the atoms, and the other one times coth(x) s."""
        s = mp.mpf(line) + mp.mpf(1) / 2
        x = mp.mpf(self.distance) * s
        flat = mp.tanh(x) / (2 * s)
        return 1 / (1 + flat), flat / (1 + flat) * mp.coth(x) * s

    def cost(self, line: float, end: float, digits: float) -> float:
        """Return the cost of two exponential functions."""
        return 60

    def log_moment(self, line: Any, digits: float) -> Any:
        """Return ln M(c)."""
        return mp.log(self._moment(line))

    def along(self, line: Any, step: Any, nodes: int, digits: float) -> Row:
        """Evaluate the closed form."""
        top = self._moment(line)
        points = [mp.mpc(line, n * step) for n in range(nodes + 1)]
        return Row(top, [self._moment(z) / top for z in points], mp.zero)


Factors: TypeAlias = Sequence[tuple[Factor, int]]
"""Losses, and how often each is released."""

LN10 = math.log(10)
STRETCHES = (1.0, 1.4, 2.0, 3.0, 4.5)
"""Lines to try, in units of the saddle."""
_SHARES = (0.03, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.5, 5.0, 20.0)
_LEAST, _MOST = math.log(1e-8), math.log(1e5)


def log_moment(factors: Factors, line: float) -> float:
    """Estimate ln M(c)."""
    return sum(count * factor.estimate(line) for factor, count in factors)


def saddle(factors: Factors, eps: float) -> tuple[float, float]:
    """Return c > 0 with the least ln M(c) − cε − ln(c(c + 1)), and an estimate of ln H(ε)."""

    def height(log_c: float) -> float:
        c = math.exp(log_c)
        return log_moment(factors, c) - c * eps - math.log(c * (c + 1))

    low = high = _LEAST
    while high < _MOST and height(high + 1) < height(high):
        low, high = high, high + 1
    low, high = low - 1, high + 1
    for _ in range(24):
        one, two = low + 0.382 * (high - low), low + 0.618 * (high - low)
        low, high = (low, two) if height(one) < height(two) else (one, high)
    c, side = math.exp(low), 0.01
    bend = (height(low + side) - 2 * height(low) + height(low - side)) / (side * c) ** 2
    return c, height(low) - math.log(2 * math.pi * max(bend, 1e-12)) / 2


def period(factors: Factors, eps: float, c: float, wanted: float) -> tuple[float, float]:
    """Return B with aliases below e^wanted, and the s of their Chernoff bound."""
    points = [c * (1 + share) for share in _SHARES]
    ahead = [(log_moment(factors, s) - s * eps - wanted) / (s - c) for s in points]
    needed, beyond = min(zip(ahead, points, strict=True))
    return max(needed, -wanted / c, 1e-3), beyond

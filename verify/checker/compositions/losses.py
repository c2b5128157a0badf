"""Losses of single releases in balls: M(z) = E_P[e^{zL}; L < ∞], bounds of it, and tails.

For z = c + it every factor gives M at c + inh, and a bound of |M(c + it)| for all t ≥ T at once.
Here are closed forms and lists; mixtures of normal laws are in `compositions.mixtures`. A number of
a law is kept as a text, which is a ball: so equal questions are asked once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias, final

from flint import acb, acb_mat, arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.masses import theta
from dpassay.verifier.checker.reals import UnknownError, ball
from dpassay.verifier.checker.special import phi

BITS = 448
"""At which the numbers of a law are written down."""
_DIGITS, _NEEDED_BITS = 110, 330
"""Digits that are written, and the bits that have to be known."""
_REACH_DIGITS = 70
"""Digits of a discrete Gaussian law that are listed."""
_MOST_LISTED = 20_000
"""Of its values on each side: a list of more takes minutes to add up."""
Tails: TypeAlias = tuple[arb, arb]
"""P(L > y) and Q(L > y), without P(L = ∞)."""


def text(value: Any) -> str:
    """Write a number as a ball."""
    with ctx.workprec(max(ctx.prec, BITS)):
        return str((value if isinstance(value, arb) else ball(value)).str(_DIGITS))


def power_sums(weights: Sequence[Any], turns: Sequence[acb], count: int) -> list[acb]:
    """Return Σ_j w_j t_j^n for n = 0, …, count − 1: a product of two matrices of powers."""
    block = math.isqrt(count) + 1
    powers = [[acb(1)] * len(turns)]
    for _ in range(block):
        powers.append([power * turn for power, turn in zip(powers[-1], turns, strict=True)])
    far, firsts = powers.pop(), [[acb(weight) for weight in weights]]
    while len(firsts) * block < count:
        firsts.append([first * turn for first, turn in zip(firsts[-1], far, strict=True)])
    left, right = (
        acb_mat(len(rows), len(turns), [entry for row in rows for entry in row])
        for rows in (firsts, powers)
    )
    return list((left * right.transpose()).entries()[:count])


class Factor:
    """The loss of one release; unless told otherwise, M does not fall along the line.

    What is called an estimate is in floats and proves nothing.
    """

    infinite: str = "0"
    """The mass of P where L = ∞."""
    missing: str = "0"
    """The mass of P where L is left open."""
    farthest: float = math.inf
    """The largest c at which M is known."""
    highest: float = math.inf
    """The largest c at which it is bounded well."""

    def log_moment(self, line: arb, digits: float) -> arb:
        """Enclose ln M(c), or bound it from above where `close` says so."""
        raise NotImplementedError

    def close(self, line: arb) -> bool:
        """Whether `log_moment` encloses ln M(c), and does not only bound it."""
        return True

    def along(self, line: arb, step: arb, nodes: int, digits: float) -> list[acb]:
        """Enclose M along the line, at n = 0, …, nodes."""
        raise NotImplementedError

    def tails(self, level: arb) -> Tails:
        """Enclose P(L > y) and Q(L > y)."""
        raise NotImplementedError

    def cost(self, line: float, end: float, digits: float) -> float:
        """Estimate the products of complex numbers that a node takes."""
        raise NotImplementedError

    def table(self, line: float, step: float, nodes: int, digits: float) -> float:
        """Estimate the products that all nodes take together, besides."""
        return 0.0

    def estimate(self, line: float) -> float:
        """Estimate ln M(c)."""
        with ctx.workprec(64):
            return float(self.log_moment(arb(line), 15))

    def estimate_cap(self, line: float, end: float) -> tuple[float, float]:
        """Estimate the least `log_cap`, and the height that gives it."""
        with ctx.workprec(64):
            return float(self.log_cap(arb(line), arb(end), 0.0, 15)), 0.0

    def log_cap(self, line: arb, end: arb, height: float, digits: float) -> arb:
        """Bound ln |M(c + it)| from above for all t ≥ T."""
        return self.log_moment(line, digits)

    def closing(self, line: arb, end: arb, height: float, log_cap: arb) -> arb:
        """Bound ∫ b(t)/(b(T) t) dt over t ≥ T, b ≥ |M| decreasing with ln b(T) = log_cap."""
        return arb.pos_inf()

    def split(self, line: arb) -> tuple[arb, arb]:
        """Return a(c)/M(c) and C, where a is the transform of atoms, |M − a| ≤ M(c) C/t.

        No atom, and no C, where `closing` has a bound.
        """
        return arb(0), arb.pos_inf()


@final
@dataclass(frozen=True)
class Normal(Factor):
    """The loss of a Gaussian pair: ln M(z) = μ² z(z + 1)/2, which falls as e^{−μ²t²/2}."""

    mu: str

    def _log(self, z: Any) -> Any:
        return arb(self.mu) ** 2 * z * (z + 1) / 2

    def log_moment(self, line: arb, digits: float) -> arb:
        """Return ln M(c)."""
        return arb(self._log(line))

    def tails(self, level: arb) -> Tails:
        """Return Φ(±μ/2 − y/μ)."""
        mu = arb(self.mu)
        return phi(mu / 2 - level / mu), phi(-mu / 2 - level / mu)

    def cost(self, line: float, end: float, digits: float) -> float:
        """Return the cost of one exponential function."""
        return 20

    def log_cap(self, line: arb, end: arb, height: float, digits: float) -> arb:
        """Return ln |M(c + iT)|: it decreases."""
        return arb(self.mu) ** 2 * (line * (line + 1) - end**2) / 2

    def closing(self, line: arb, end: arb, height: float, log_cap: arb) -> arb:
        """Return 1/(μT)², as e^{−μ²(t² − T²)/2} falls so fast."""
        return 1 / (arb(self.mu) * end) ** 2

    def along(self, line: arb, step: arb, nodes: int, digits: float) -> list[acb]:
        """Evaluate the closed form."""
        return [self._log(acb(line, n * step)).exp() for n in range(nodes + 1)]


@final
@dataclass(frozen=True)
class Listed(Factor):
    """A loss with finitely many values: their masses under P and Q, both positive."""

    masses: tuple[tuple[str, str], ...]
    infinite: str = "0"
    missing: str = "0"

    def estimate(self, line: float) -> float:
        """Return ln M(c), the largest term apart."""
        terms = [one + line * loss for one, loss in _logarithms(self)]
        return max(terms) + math.log(sum(math.exp(term - max(terms)) for term in terms))

    def rows(self) -> list[tuple[arb, arb, arb]]:
        """Return the values with their masses."""
        pairs = ((arb(p), arb(q)) for p, q in self.masses)
        return [((p / q).log(), p, q) for p, q in pairs]

    def tails(self, level: arb) -> Tails:
        """Add up what is above; what may be a tie is left open."""
        found = [arb(0), arb(0)]
        for loss, *masses in self.rows():
            if not loss <= level:
                sure = loss > level
                found = [
                    total + (mass if sure else mass.union(arb(0)))
                    for total, mass in zip(found, masses, strict=True)
                ]
        return found[0], found[1]

    def split(self, line: arb) -> tuple[arb, arb]:
        """Return atoms alone."""
        return arb(1), arb(0)

    def cost(self, line: float, end: float, digits: float) -> float:
        """Return the number of values."""
        return len(self.masses)

    def weighted(self, line: arb) -> list[tuple[arb, arb]]:
        """Return the values with their masses times e^{cL}."""
        return [(loss, p * (line * loss).exp()) for loss, p, _ in self.rows()]

    def log_moment(self, line: arb, digits: float) -> arb:
        """Return ln M(c)."""
        return sum((weight for _, weight in self.weighted(line)), arb(0)).log()

    def along(self, line: arb, step: arb, nodes: int, digits: float) -> list[acb]:
        """Turn every mass, weighted with e^{cL}, by its loss."""
        rows = self.weighted(line)
        turns = [acb(0, step * loss).exp() for loss, _ in rows]
        return power_sums([weight for _, weight in rows], turns, nodes + 1)


def is_known(factor: Factor) -> bool:
    """Whether the numbers of a loss are known to the digits that a product needs."""

    def known(value: Any) -> bool:
        if isinstance(value, tuple):
            return all(map(known, value))
        return not isinstance(value, str) or arb(value).rel_accuracy_bits() >= _NEEDED_BITS

    return all(known(value) for name, value in vars(factor).items() if name != "missing")


@lru_cache(maxsize=1024)
def _logarithms(listed: Listed) -> list[tuple[float, float]]:
    return [(float(p.log()), float(loss)) for loss, p, _ in listed.rows()]


@lru_cache(maxsize=64)
def discrete_normal(parameter: Any, shift: int) -> Listed:
    """Return the loss of discrete Gaussian laws, of parameter v and at a distance s, as a list."""
    with ctx.workprec(BITS):
        v, whole = ball(parameter), ball(theta(parameter))
        reach = math.ceil(math.sqrt(2 * float(v) * _REACH_DIGITS * LN10)) + 1
        if reach > _MOST_LISTED:
            raise UnknownError("a discrete Gaussian law of so large a parameter")
        ends = range(-reach - shift, reach + shift + 1)
        masses = {z: (-arb(z * z) / (2 * v)).exp() / whole for z in ends}
        pairs = [(masses[z - shift], masses[z]) for z in range(-reach, reach + shift + 1)]
        missing = 1 - sum((p for p, _ in pairs), arb(0))
        return Listed(tuple((text(p), text(q)) for p, q in pairs), "0", str(missing.str(_DIGITS)))


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

    distance: str

    def _moment(self, z: Any) -> Any:
        t = arb(self.distance)
        return ((1 + z) * (t * z).exp() + z * (-t * (1 + z)).exp()) / (2 * z + 1)

    def tails(self, level: arb) -> Tails:
        """Return 1 − e^{(y−t)/2}/2 and e^{−(t+y)/2}/2 inside, and 0 or 1 elsewhere."""
        t = arb(self.distance)
        if level >= t:
            return arb(0), arb(0)
        if level < -t:
            return arb(1), arb(1)
        return 1 - ((level - t) / 2).exp() / 2, (-(t + level) / 2).exp() / 2

    def log_cap(self, line: arb, end: arb, height: float, digits: float) -> arb:
        """Bound both parts, for all u ≥ T: near 0 as they fall, and beyond for good."""
        t, s = arb(self.distance), line + arb(1) / 2
        x, v, quarter = t * s, t * end, arb.pi() / 2
        flat = x.tanh() / (2 * s)
        far = v.max(quarter)
        most = 1 + flat * (x * x.coth() / (x * x + far * far).sqrt()).min(arb(1))
        if not v >= quarter:
            turned = v.sin() ** 2
            density = (1 + turned / x.sinh() ** 2) / (1 + (v / x) ** 2)
            atoms = 1 - turned / x.cosh() ** 2
            most = most.max(atoms.sqrt() + flat * density.sqrt())
        return arb((self._moment(line) * most / (1 + flat)).log())

    def split(self, line: arb) -> tuple[arb, arb]:
        """Return the mass of the atoms, and the other one times coth(x) s."""
        s = line + arb(1) / 2
        x = arb(self.distance) * s
        flat = x.tanh() / (2 * s)
        return 1 / (1 + flat), flat / (1 + flat) * x.coth() * s

    def cost(self, line: float, end: float, digits: float) -> float:
        """Return the cost of two exponential functions."""
        return 60

    def log_moment(self, line: arb, digits: float) -> arb:
        """Return ln M(c)."""
        return arb(self._moment(line).log())

    def along(self, line: arb, step: arb, nodes: int, digits: float) -> list[acb]:
        """Evaluate the closed form."""
        return [self._moment(acb(line, n * step)) for n in range(nodes + 1)]


Factors: TypeAlias = tuple[tuple[Factor, int], ...]
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
    highest = min(factor.highest for factor, _ in factors)
    points = [c * (1 + share) for share in _SHARES if c * (1 + share) <= highest]
    ahead = [(log_moment(factors, s) - s * eps - wanted) / (s - c) for s in points]
    needed, beyond = min(zip(ahead, points, strict=True))
    return max(needed, -wanted / c, 1e-3), beyond

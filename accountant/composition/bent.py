"""Certified integrals on a contour that bends to the right, for transforms that decay slowly.

In the variable s of Λ(s) = E_B[w^s] (s = z + 1 for pairs with the mixture first, s = −z for the
others) the integral of `saddle_certified` is

    G = ± (1/2πi) ∫ f(s) ds,    f(s) = Π Λ_i(s)^{k_i} e^{−sE} κ(s),   E = ε or −ε,

upwards through a real point. On a vertical line the phases of few releases, or of rare large
losses, hardly cancel; but every loss is at least ln(1 − q), and so f falls to the right, like
e^{−E' Re s} with E' = E − Σ k_i ln(1 − q_i) > 0. It is analytic in the upper half plane, so that
the contour may go up in straight pieces, each in the direction in which |f| is smaller, to a last
vertical ray. Both halves together are 2i times the imaginary part of the upper one.

- *Pieces.* Gauss–Legendre quadrature with n nodes. If |f| ≤ M on the ellipse ρ around a piece of
  half-length δ, the coefficients of its Chebyshev series are at most 2Mρ^{−k}; the even ones from
  2n on are integrated wrongly, by 2 + 2/(4n² − 1) at most: the error is at most
  δ 4M (1 + 1/(4n² − 1)) ρ^{−2n}/(1 − ρ^{−2}).
- *M* is bounded on discs that cover the ellipse, in floats with a ledger (`bent_moments`); no
  pole of κ, or of Y, may lie on it or inside.
- *The ray* is bounded by the decay of the transforms (`saddle_certified.log_ray`).
- *Damping.* With κ comes a polynomial Y = Σ w_m y^m in y = 1/(2z + 1), for sums of integrals with
  the kernels of `saddle_certified.Kernel`: one contour, and |Y| ≤ Σ |w_m| |y|^m in all bounds.
- *The nodes* are evaluated in balls.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
from flint import acb, arb

from accountant.composition.bent_moments import Box, Moments, Rule
from accountant.composition.measure import Loss
from accountant.composition.saddle_certified import Kernel, log_ray
from accountant.composition.saddle_search import Strip, saddle
from accountant.composition.saddle_transform import GaussianTransform, MixtureTransform
from accountant.errors import UndecidedError
from accountant.interval import ball
from accountant.number import ExactReal
from accountant.precision import cached_property, ctx

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Complexes: TypeAlias = NDArray[np.complex128]

_LOG_2 = math.log(2)
_ARCS = 40
_RHOS = (2.0, 1.5)
_TURNS = tuple(complex(math.sin(a), math.cos(a)) for a in (0.0, 0.3, 0.6, 0.75))
_MOST_PIECES = 120
_SOONEST, _LONGER, _MUCH_FASTER = 24, 1.1, 10.0
_MOST_HALVINGS = 40
_FEWEST_NODES = 40
_MOST_BITS = 1500
_FEWEST_BITS = 24
_SHARE = 1 / 32
_GUARD = 30
_FALL = 38.0
_SPARE = 6.0
_FLATTEST = 0.42
_APART = 1.2
_SHARED = 10
_BELOW = 1 - 1e-12
_LAST_BITS = 1e-12  # of a logarithm of few rounded sums and powers
_BITS, _MOST_WORK = 256, 4e6
"""Most terms of moments, at so many bits; they cost about their square."""


@final
@dataclass(frozen=True)
class Integrand:
    """f(s) = Π E[w_i^s]^{k_i} e^{s(s−1)v − sE} κ(s), around a real point c."""

    loss: Loss
    kernel: Kernel
    mixed_first: bool
    c: float
    curvature: float
    """The second derivative of ln|f| at c along the real line."""
    weights: tuple[int, ...] = (1,)
    """The coefficients of Y."""

    @property
    def poles(self) -> tuple[float, ...]:
        """The poles of κ as a function of s."""
        return tuple(p + 1 if self.mixed_first else -p for p in self.kernel.poles)

    @property
    def singular(self) -> tuple[float, ...]:
        """The points at which f is not analytic: the poles, and that of Y."""
        return self.poles if len(self.weights) == 1 else (*self.poles, 0.5)

    @cached_property
    def moments(self) -> Moments:
        """The transforms in floats, centred at c."""
        mixtures, means, half = [], [], 0.0
        at = self.c - 1 if self.mixed_first else -self.c
        for part, count in self.loss.factors:
            if isinstance(part, MixtureTransform):
                mean = part.estimate().cumulants(at)[1]
                mixtures.append((part.floats(), count))
                means.append(mean if self.mixed_first else -mean)
            else:
                half += count * part.estimate().cumulants(1.0)[0] / 2
        return Moments(tuple(mixtures), half, tuple(means))

    def log_damping(self, away: Floats) -> Floats:
        """Return an upper bound of ln|Y|, but for rounding, at distances from z = −½."""
        first, *others = self.weights
        total = np.full(away.shape, float(abs(first)))
        for m, weight in enumerate(others, 1):
            total += abs(weight) * (0.5 / away) ** m
        found: Floats = np.log(total) + _LAST_BITS
        return found

    def away(self, s: Complexes) -> Floats:
        """Return |z + ½|."""
        found: Floats = np.abs(s - 0.5)  # s is z + 1, or −z
        return found

    def damping(self, s: acb) -> acb:
        """Return Y."""
        y = 1 / (2 * s - 1) if self.mixed_first else 1 / (1 - 2 * s)
        total = acb(0)
        for weight in reversed(self.weights):
            total = total * y + weight
        return total

    def slope(self, epsilon: float) -> float:
        """Return E."""
        return epsilon if self.mixed_first else -epsilon

    def constant(self, epsilon: float) -> float:
        """Return ln of the factor beside f: ε for pairs with the mixture first."""
        return epsilon if self.mixed_first else 0.0

    def real_point(self, s: float) -> Fraction:
        """Return the real part of z at a given real part of s."""
        return Fraction(s) - 1 if self.mixed_first else -Fraction(s)


@final
@dataclass(frozen=True)
class Piece:
    """A straight piece of the contour and its number of nodes, 0 where f is negligible."""

    start: complex
    end: complex
    nodes: int
    log_size: float
    """ln of the largest |f| on it, about."""
    log_error: float
    """ln of a bound of the error of its integral."""

    @property
    def sides(self) -> tuple[float, float]:
        """The real parts between which every ellipse lies on which |f| was bounded."""
        middle, half = (self.start.real + self.end.real) / 2, abs(self.end - self.start) / 2
        wide = half * (_RHOS[0] + 1 / _RHOS[0])
        return middle - wide, middle + wide


class Planner:
    """Chooses the pieces for one ε, so that their errors add up to e^log_tolerance or so."""

    def __init__(
        self, integrand: Integrand, epsilon: float, log_tolerance: float, bits: int
    ) -> None:
        self._f, self._epsilon = integrand, epsilon
        self._tolerance = log_tolerance
        self._most = _FEWEST_NODES + bits // 2
        self._e = integrand.slope(epsilon)

    def pieces(self) -> tuple[list[Piece], float]:
        """Return the pieces, and ln of a bound of what is left out beyond the last."""
        s = complex(self._f.c, 0.0)
        length = 2.0 / math.sqrt(self._f.curvature)
        asked = 0.0
        found: list[Piece] = []
        for _ in range(_MOST_PIECES):
            piece = self._piece(s, length)
            found.append(piece)
            s, length = piece.end, abs(piece.end - piece.start)
            if piece.nodes <= self._most // 2:
                length *= 2
            small = float(self._values([s])[0]) < self._tolerance - math.log(s.imag)
            if (small or piece.nodes == 0) and s.imag > _APART * asked:
                ray, asked = self._ray(s), s.imag
                if ray < self._tolerance:
                    return found, ray
                length = max(length, 0.5 * s.imag)
            if self._is_hopeless(found):
                break
        raise UndecidedError(
            f"The contour for epsilon={self._epsilon:.6g} needs more than {_MOST_PIECES} pieces. "
            "Ask for a larger relative_width, such as 1e-9."
        )

    def _is_hopeless(self, found: Sequence[Piece]) -> bool:
        """Whether |f| would have to fall ten times as fast on all pieces that are left."""
        if len(found) < _SOONEST:
            return False
        last, before = found[-1], found[-_SOONEST // 2]
        longer = abs(last.end - last.start) > _LONGER * abs(before.end - before.start)
        fall = (before.log_size - last.log_size) / (_SOONEST // 2 - 1)
        left = (_MOST_PIECES - len(found)) * _MUCH_FASTER * max(fall, 0.0)
        return not longer and last.log_size - self._tolerance > left

    def _ray(self, s: complex) -> float:
        f = self._f
        bound = log_ray(f.loss, f.kernel, f.real_point(s.real), s.imag)
        return bound - s.real * self._e + float(f.log_damping(np.array([s.imag]))[0])

    def _piece(self, start: complex, length: float) -> Piece:
        for _ in range(_MOST_HALVINGS):
            try:
                piece = self._try(start, self._end(start, length))
            except UndecidedError:
                piece = None
            if piece is not None:
                return piece
            length /= 2
        raise UndecidedError(f"No contour was found for epsilon={self._epsilon:.6g}.")

    def _end(self, start: complex, length: float) -> complex:
        """Return where |f| is smallest, among directions in which large losses do not grow."""
        ends = [
            start + length * turn
            for turn in _TURNS
            if turn.real == 0 or (start + length * turn).real <= _FLATTEST * start.imag
        ]
        values = self._values(ends)
        end = ends[int(np.argmin(values))]
        return complex(_short(end.real), _short(end.imag))

    def _values(self, s: Sequence[complex]) -> Floats:
        points = np.array(s)
        real, imaginary = points.real, points.imag
        box = Box(real.min(), real.max(), imaginary.min(), imaginary.max())
        moments = self._f.moments
        rules = moments.rules(box, _FALL)
        return moments.on_discs(rules, points, np.zeros(len(s)), self._f.poles, self._e)[0]

    def _try(self, start: complex, end: complex) -> Piece | None:
        """Return the piece if so few nodes do."""
        middle, half = (start + end) / 2, (end - start) / 2
        if half == 0:
            return None
        moments = self._f.moments
        for rho in _RHOS:
            if any(_inside((pole - middle) / half, rho) for pole in self._f.singular):
                continue
            try:
                rules = moments.rules(_around(middle, half, rho), _FALL)
            except UndecidedError:
                continue
            angles = (np.arange(_ARCS) + 0.5) * (2 * math.pi / _ARCS)
            turn = rho * np.exp(1j * angles)
            points = middle + half * (turn + 1 / turn) / 2
            radius = np.full(_ARCS, abs(half) * (rho + 1 / rho) / 2 * math.pi / _ARCS)
            values, bounds = moments.on_discs(rules, points, radius, self._f.poles, self._e)
            if len(self._f.weights) > 1:
                away = self._f.away(points) * _BELOW - radius
                if not away.min() > 0:
                    continue
                bounds = bounds + self._f.log_damping(away)
            level = float(bounds.max())
            if not level < math.inf:
                continue
            if level + math.log(2 * abs(half)) < self._tolerance + math.log(_SHARE):
                return Piece(start, end, 0, level, level + math.log(2 * abs(half)))
            rest = level + math.log(6 * abs(half)) - math.log1p(-(rho**-2))
            excess = rest - self._tolerance - math.log(_SHARE)
            nodes = max(2, math.ceil(excess / (2 * math.log(rho))))
            if nodes <= self._most:
                error = rest - 2 * nodes * math.log(rho)
                return Piece(start, end, nodes, float(values.max()), error)
        return None


def _inside(z: complex, rho: float) -> bool:
    """Whether z is on or in the ellipse around [−1, 1]: its foci add up to ρ + 1/ρ at most."""
    return abs(z - 1) + abs(z + 1) <= (rho + 1 / rho) * (1 + 1e-9)


def _around(middle: complex, half: complex, rho: float) -> Box:
    """Return a box around the ellipse."""
    long, short = (rho + 1 / rho) / 2, (rho - 1 / rho) / 2
    wide = math.hypot(long * half.real, short * half.imag) * (1 + 1e-12)
    tall = math.hypot(long * half.imag, short * half.real) * (1 + 1e-12)
    return Box(middle.real - wide, middle.real + wide, middle.imag - tall, middle.imag + tall)


def _short(value: float) -> float:
    """Round to 20 bits."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(mantissa * (1 << 20)), exponent - 20)


@final
@dataclass(frozen=True)
class Contour:
    """The terms at the nodes for ε₀; what the rest adds; the range of Re s."""

    terms: tuple[tuple[acb, acb], ...]
    """s, and the weighted value of f there."""
    log_error: float
    epsilon: Fraction
    least: float
    most: float
    mixed_first: bool
    sign: int
    """That of Y = 1 at the real point."""

    def integral(self, epsilon: ExactReal) -> arb:
        """Return ±(1/2πi) ∫ f ds for an ε near ε₀, at flint's current precision."""
        move = epsilon.ball() - ball(self.epsilon)
        turn = -move if self.mixed_first else move
        total = acb(0)
        for s, term in self.terms:
            total += term * (turn * s).exp()
        growth = (turn * arb(self.least)).exp().max((turn * arb(self.most)).exp())
        error = arb(self.log_error).exp() * growth
        value = self.sign * total.imag + arb(0, error.upper())
        return (value / arb.pi()) * (epsilon.ball().exp() if self.mixed_first else arb(1))


def bent_integral(  # noqa: PLR0917
    loss: Loss,
    mixed_first: bool,
    kernel: Kernel,
    strip: Strip,
    epsilon: ExactReal,
    bits: int,
    weights: tuple[int, ...] = (1,),
) -> arb:
    """Return a ball around G(ε), or Σ w_m G_m(ε), of relative accuracy of about 2^−bits.

    `strip` is the one of `saddle_certified`, in z. Where G is far below |f| at the saddle, digits
    cancel: then the same is done with as many bits more.

    Raises UndecidedError where the pieces or their nodes get too many.
    """
    extra = 0
    while True:
        near, most = _near(epsilon), bits + extra
        contour = _contour(loss, mixed_first, kernel, strip, near, most, weights)
        with ctx.workprec(bits + extra + 2 * _GUARD + loss.count.bit_length()):
            value = contour.integral(epsilon)
            reached = value.rel_accuracy_bits()
        if reached >= bits - 4 or bits + extra > _MOST_BITS:
            return value
        extra += max(_FEWEST_BITS, extra if reached <= 1 else bits - reached + 4)


def _near(epsilon: ExactReal) -> Fraction:
    """Return ε₀: ε to a few bits, for the contour to be asked again beside it."""
    value = float(epsilon)
    mantissa, exponent = math.frexp(value)
    return Fraction(math.ldexp(round(mantissa * (1 << _SHARED)), exponent - _SHARED))


@functools.lru_cache(maxsize=32)
def _contour(  # noqa: PLR0917
    loss: Loss,
    mixed_first: bool,
    kernel: Kernel,
    strip: Strip,
    epsilon: Fraction,
    bits: int,
    weights: tuple[int, ...],
) -> Contour:
    eps = float(epsilon)
    try:
        point = saddle(loss, strip, eps)
    except ArithmeticError as error:
        raise UndecidedError(f"A contour was not found: {error}.") from error
    c = point.c + 1 if mixed_first else -point.c
    integrand = Integrand(loss, kernel, mixed_first, c, point.curvature, weights)
    kappa = float(integrand.log_damping(integrand.away(np.array([c])))[0])
    kappa -= sum(math.log(abs(point.c - pole)) for pole in strip.poles)
    level = loss.cumulants(point.c)[0] - point.c * eps + kappa
    level -= 0.5 * math.log(2 * math.pi * point.curvature) + integrand.constant(eps)
    tolerance = level - bits * _LOG_2
    pieces, ray = Planner(integrand, eps, tolerance, bits).pieces()
    errors = [piece.log_error for piece in pieces] + [ray]
    asked = [(p, *_rules(integrand, p, eps, tolerance)) for p in pieces if p.nodes]
    work = sum(
        p.nodes * sum(r.last - r.first + 1 for r in rules) * max(1.0, needed / _BITS) ** 2
        for p, rules, needed in asked
    )
    if work > _MOST_WORK:
        raise UndecidedError(
            f"The contour for epsilon={eps:.6g} takes {work:.1e} terms of {_BITS} bits for {bits} "
            f"bits, more than {_MOST_WORK:.1e}. Ask for a larger relative_width, such as 1e-9."
        )
    terms = [term for entry in asked for term in _terms(integrand, *entry, epsilon)]
    top = max(errors)
    log_error = top + math.log(sum(math.exp(e - top) for e in errors)) + 1e-9
    sides = [side for piece in pieces for side in piece.sides]
    sign = 1 if math.prod(c - pole for pole in integrand.poles) > 0 else -1
    return Contour(tuple(terms), log_error, epsilon, min(sides), max(sides), mixed_first, sign)


def _rules(
    f: Integrand, piece: Piece, epsilon: float, tolerance: float
) -> tuple[tuple[Rule, ...], int]:
    """Return the rules of the moments on a piece, and how many bits they take."""
    start, end = piece.start, piece.end
    box = Box(
        min(start.real, end.real), max(start.real, end.real), start.imag, max(start.imag, end.imag)
    )
    needed = max(piece.log_size - tolerance, 0.0) + _SPARE
    rules, lost = f.moments.balanced(box, needed)
    size = math.frexp(1 + abs(complex(end)) + abs(epsilon))[1]
    bits = math.ceil((needed + lost) / _LOG_2) + f.loss.count.bit_length() + 2 * size + _GUARD
    return rules, bits


def _terms(
    f: Integrand, piece: Piece, rules: Sequence[Rule], bits: int, epsilon: Fraction
) -> list[tuple[acb, acb]]:
    """Return the nodes of a piece, and the weighted values of f there."""
    start, end = piece.start, piece.end
    with ctx.workprec(bits):
        first = acb(ball(Fraction(start.real)), ball(Fraction(start.imag)))
        last = acb(ball(Fraction(end.real)), ball(Fraction(end.imag)))
        middle, half = (first + last) / 2, (last - first) / 2
        roots = [arb.legendre_p_root(piece.nodes, i, weight=True) for i in range(piece.nodes)]
        points = [middle + half * x for x, _ in roots]
        values = _values(f, rules, points, epsilon)
        return [
            (s, half * weight * value)
            for s, value, (_, weight) in zip(points, values, roots, strict=True)
        ]


def _values(
    f: Integrand, rules: Sequence[Rule], points: Sequence[acb], epsilon: Fraction
) -> list[acb]:
    """Return f at the points."""
    e = ball(epsilon) if f.mixed_first else -ball(epsilon)
    exponents = [-s * e for s in points]
    factors = [acb(1)] * len(points)
    mixtures = iter(rules)
    for part, count in f.loss.factors:
        if not isinstance(part, MixtureTransform):
            assert isinstance(part, GaussianTransform)
            half = count * part.pair.kullback_leibler()
            exponents = [x + s * (s - 1) * half for x, s in zip(exponents, points, strict=True)]
            continue
        sums = part.on_line(next(mixtures)).at(points)
        for i, total in enumerate(sums):
            if abs(total) > 0 and count > 1:
                exponents[i] += count * _log(total)
            else:
                factors[i] *= total**count
    values = []
    for s, x, factor in zip(points, exponents, factors, strict=True):
        value = x.exp() * factor * f.damping(s)
        for pole in f.poles:
            value /= s - pole
        values.append(value)
    return values


def _log(value: acb) -> acb:
    """Return a logarithm; an integer multiple of it does not depend on the branch."""
    return value.log() if value.real > 0 else (-value).log() + acb(0, arb.pi())

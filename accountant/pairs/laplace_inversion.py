"""Distribution functions and put payoffs of a mean of lognormal variables, by Laplace inversion.

Let X = e^{μZ − μ²/2}, Z standard normal, W the mean of t independent ones, ψ(λ) = E e^{−λX/t}, and
φ = ψ^t the Laplace transform of W. `accountant.pairs.random_allocation` asks for the integrals

    I_m[f] = (1/2πi) ∫ e^{λK} f(λ) λ^{−m} dλ,   f = φ or φ₁ = E W e^{−λW} = ψ(λ)^{t−1} ψ(λ e^{μ²}).

*Continuation.* ψ is analytic off (−∞, 0]: for every real η with Re λe^{−iμη} = ρ ≥ 0 it is
∫ n(x − iη) exp(−λe^{−iμη} e^{μx − μ²/2}/t) dx, n the normal density, by moving the line. Hence
|ψ(λ)| ≤ e^{η²/2} ψ(ρ), and as much for ψ(λe^{μ²}).

*Curve.* λ(y) = ν(1 + sin(iy − α)) = ν(1 − sin α cosh y + i cos α sinh y), 0 < α < π/2, ν > 0: a
hyperbola, |λ| = ν(cosh y − sin α) and |λ'| ≤ ν cosh y. A shift of y by iτ makes α into β = α + τ.
For ω ≥ β, ω + β ≤ π and y ≥ 0,

    Re λe^{−iω} = ν(cos ω + ½ e^y sin(ω − β) − ½ e^{−y} sin(ω + β)) = ρ_ω(y),

which increases with y. So with μη = ω, the integrand of I_m at y, |y| ≥ Y, is at most

    (1/2π) e^{tω²/2μ²} ψ(ρ_ω(Y))^{t−1} e^{Kν(1 − sin β cosh y)} ν^{1−m} (1 − sin β)^{−m}.

*Errors.* With κ = Kν sin β and cosh y ≥ 1 + y²/2 its integral E(β) over all y, at Y = 0 and ω = β,
has ∫ e^{−κ(cosh y − 1)} dy ≤ √(2π/κ); so the trapezoidal rule of step h errs by at most
(E(α + d) + E(α − d))/(e^{2πd/h} − 1) for 0 < d < α, α + d < π/2 (Trefethen and Weideman 2014,
Theorem 5.1). Beyond Y = nh the sum is at most twice the integral from Y on, and
∫_Y^∞ e^{−κ(cosh y − cosh Y)} dy ≤ 1/(κ sinh Y).

*ψ* is the trapezoidal sum of its integral, on the line with an η near arg(λ)/μ: in the strip
|Im x| ≤ a in which the exponential is at most 1, the error is at most
(e^{(η+a)²/2} + e^{(η−a)²/2})/(e^{2πa/h} − 1), and what is beyond X is at most e^{η²/2} erfc(X/√2).

The curve is chosen by floats; nothing that is proved rests on that.
"""

from __future__ import annotations

import functools
import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from flint import acb, arb

from accountant.errors import UndecidedError
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import ball
from accountant.numbers.precision import ctx

_LOG_2 = math.log(2)
_MOST_NODES = 30_000
"""Nodes on a curve: some seconds."""
_TALLEST_LINE, _FARTHEST_LINE = 3.0, 2.5
"""The largest a and η: integrands grow by e^{(a + η)²/2}."""
_WIDEST = 1.2
"""The largest β: it stays below π/2."""
_SURE = 1e-10
"""Radians to which an angle is known; wider ones are refused."""
_HALF_TURN = math.pi / 2 - 1e-9
"""What a strip may turn by: angles are known to `_SURE`, and floats round far less."""
_TALL, _HIGH = 0.55, 0.5
"""α and d as shares of the largest β."""
_LARGEST_LOG = 600.0
"""Largest exponent that is formed in floats."""
_NEAR = 1e-12
"""More than a logarithm changes when it is rounded to a double."""
_GAIN = 0.3
"""Share of the wanted digits that the bound on the outer curve may lose."""
_ROUGH, _SPARE = 64, 16
_TURNS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
"""What ω/α is tried for the truncation."""


@final
@dataclass(frozen=True)
class Sum:
    """W = (1/t) Σ X_j of t independent X = e^{μZ − μ²/2}."""

    mu: ExactReal
    steps: int

    def line(self, point: acb, precision: int) -> tuple[Fraction, Rule]:
        """Return η of a line for ψ(λ), and the rule on it for |η|."""
        mu = float(self.mu)
        if not point.arg().rad() < _SURE:
            raise UndecidedError("A point of the transform is not known well. Raise the precision.")
        angle = math.atan2(float(point.imag.mid()), float(point.real.mid()))
        grain = 2.0 ** math.floor(math.log2(min(0.25, 0.2 / mu)))
        eta = math.copysign(min(grain * round(abs(angle) / mu / grain), _FARTHEST_LINE), angle)
        room = min((_HALF_TURN - abs(angle - mu * eta)) / mu, _TALLEST_LINE)
        mantissa, exponent = math.frexp(room)
        a = math.ldexp(math.floor(16 * mantissa) / 16, exponent)
        return Fraction(eta), _rule(self.mu, Fraction(abs(eta)), Fraction(a), precision)

    def transform(self, point: acb, precision: int, *, biased: bool = False) -> acb:
        """Return ψ(λ), or ψ(λ e^{μ²}), off the negative axis, to an absolute error of 2^−prec."""
        eta, rule = self.line(point, precision)
        upper = point if eta >= 0 else point.conjugate()
        shift = self.mu.ball()
        turned = -upper * acb(0, -shift * ball(abs(eta))).exp() / self.steps
        turned *= (shift * shift).exp() if biased else 1
        total = acb(0)
        for weight, size in zip(rule.weights, rule.sizes, strict=True):
            total += weight * (turned * size).exp()
        total += acb(arb(0, rule.error), arb(0, rule.error))
        return total if eta >= 0 else total.conjugate()

    def upper(self, point: arb) -> arb:
        """Return an upper bound of ψ at a point λ ≥ 0, close to it."""
        with ctx.workprec(_ROUGH):
            return self.transform(acb(point.lower()), _ROUGH).real.upper().min(arb(1))

    def log_phi(self, point: float) -> float:
        """Return about ln φ(λ) at a point λ > 0."""
        return _log_phi(float(self.mu), self.steps, point)


@functools.lru_cache(maxsize=8192)
def _log_phi(mu: float, steps: int, point: float) -> float:
    x = np.linspace(-9.0, 9.0, 361)
    weights = np.exp(-x * x / 2) * (0.05 / math.sqrt(2 * math.pi))
    tilt = -(point / steps) * np.exp(mu * x - mu * mu / 2)
    rest = float(weights @ -np.expm1(tilt))
    log = math.log1p(-rest) if rest < 0.5 else math.log(float(weights @ np.exp(tilt)) + 1e-300)
    return steps * log


@final
@dataclass(frozen=True, eq=False)
class Rule:
    """The nodes of the trapezoidal rule for ψ on a line, with its error."""

    weights: tuple[acb, ...]
    """h n(x − iη)"""
    sizes: tuple[arb, ...]
    """e^{μx − μ²/2}"""
    error: arb


@functools.lru_cache(maxsize=256)
def _rule(mu: ExactReal, eta: Fraction, a: Fraction, precision: int) -> Rule:
    with ctx.workprec(precision + _SPARE):
        fall = (precision + 4) * _LOG_2
        far, near = ball((eta + a) ** 2 / 2).exp(), ball((eta - a) ** 2 / 2).exp()
        step = Fraction(2 * math.pi * float(a) / (float((eta + a) ** 2) / 2 + fall))
        count = math.ceil(math.sqrt(2 * fall + float(eta) ** 2) / float(step)) + 1
        h, shift, size = ball(step), ball(eta), mu.ball()
        scale = h / (2 * arb.pi()).sqrt()
        points = [h * j for j in range(-count, count + 1)]
        weights = tuple(scale * acb((shift * shift - x * x) / 2, x * shift).exp() for x in points)
        sizes = tuple((size * (x - size / 2)).exp() for x in points)
        error = (far + near) / (2 * arb.pi() * ball(a) / h).expm1()
        error += (shift * shift / 2).exp() * (h * count / arb(2).sqrt()).erfc()
        return Rule(weights, sizes, error.upper())


def inverted(of: Sum, power: int, at: ExactReal, *, biased: bool = False) -> arb:
    """Return I_m[φ], or I_m[φ₁], at K = e^at, with about as many correct bits as the precision.

    Where Markov's inequality Q(W ≤ K) ≤ e^{νK} φ(ν) shows all to be tiny, [0, that] is enough: as
    W ≤ K there, P(W ≤ K) and E(K − W)⁺ are at most K times as much. Raises UndecidedError where
    the curve has too many nodes.
    """
    found = curve_for(of, power, Fraction(float(at)), 2.0 ** (-2 * ctx.prec))
    if isinstance(found, Curve):
        return found.total(at, biased=biased)
    return arb(0).union(arb(found))


def curve_for(of: Sum, power: int, log_k: Fraction, tiny: float) -> Curve | float:
    """Return a curve for all K near e^log_k; or Markov's bound where it is below `tiny`."""
    log = float(log_k)
    k = math.exp(min(log, _LARGEST_LOG))
    nu = Fraction(2.0 ** (_saddle(of, power, k)))
    if log < 0 and k * float(nu) + of.log_phi(float(nu)) < math.log(tiny):
        with ctx.workprec(_ROUGH):
            markov = (ball(nu) * (ball(log_k) + _NEAR).exp()).exp() * of.upper(ball(nu)) ** of.steps
            return math.nextafter(float(markov.upper()), 1.0) + sys.float_info.min
    nearby = math.exp(math.floor(2 * log) / 2)  # the worst one of those that share the curve
    return _curve(of, power, nu, Fraction(nearby), ctx.prec)


def _saddle(of: Sum, power: int, k: float) -> int:
    """Return the i for which e^{Kν} φ(ν) ν^{−m} is least at ν = 2^i: its logarithm is convex."""

    def size(i: int) -> float:
        point = 2.0**i
        return k * point + of.log_phi(point) - power * i * _LOG_2

    low, high = -100, 100
    while high - low > 0:
        middle = (low + high) // 2
        low, high = (low, middle) if size(middle) <= size(middle + 1) else (middle + 1, high)
    return low


@functools.lru_cache(maxsize=128)
def _curve(of: Sum, power: int, nu: Fraction, near: Fraction, bits: int) -> Curve:
    return Curve(of, power, nu, float(near), bits)


@final
class Curve:
    """The nodes of one hyperbola, for all K near one."""

    def __init__(self, of: Sum, power: int, nu: Fraction, k: float, bits: int) -> None:
        mu, t = float(of.mu), of.steps
        self.of, self.power, self.nu = of, power, nu
        target, scale = bits * _LOG_2, float(nu)
        size = k * scale + of.log_phi(scale) - power * math.log(scale)
        lost = max(-of.log_phi(scale) / t / _LOG_2, 0.0)
        self.precision = bits + _SPARE + math.ceil(lost) + 2 * t.bit_length()
        beta = min(_WIDEST, mu * math.sqrt(2 * (_GAIN * target + 3) / t))
        self.alpha, self.high = Fraction(_TALL * beta), Fraction(_HIGH * beta)
        self._psi: dict[tuple[Fraction, float, int], arb] = {}
        with ctx.workprec(_ROUGH):
            outside = float(self._edges(arb(k)).log().mid())
        self.step = Fraction(2 * math.pi * float(self.high) / (outside - size + target + 8))
        self._size = size - target
        self._nodes: dict[bool, list[tuple[acb, acb]]] = {}
        self.count, self.turn = self._end(k)

    def _bound(self, k: arb, beta: Fraction, turn: float, n: int) -> arb:
        """Return the bound of the integrand at |y| ≥ Y = nh without e^{−κ(cosh y − cosh Y)}."""
        mu, nu, b = self.of.mu.ball(), ball(self.nu), ball(beta)
        w, m, t = b * arb(turn), self.power, self.of.steps
        y = ball(self.step) * n if n else arb(0)
        key = (beta, turn, n)
        if key not in self._psi:
            rho = w.cos() + (y.exp() * (w - b).sin() - (-y).exp() * (w + b).sin()) / 2
            self._psi[key] = self.of.upper(nu * rho) if rho > 0 else arb.pos_inf()
        log = t * w * w / (2 * mu * mu) + (t - 1) * self._psi[key].log()
        log += k * nu * (1 - b.sin() * y.cosh())
        return log.exp() * nu ** (1 - m) / (2 * arb.pi() * (1 - b.sin()) ** m)

    def _edges(self, k: arb) -> arb:
        """Return E(α + d) + E(α − d)."""
        total = arb(0)
        for beta in (self.alpha + self.high, self.alpha - self.high):
            kappa = k * ball(self.nu) * ball(beta).sin()
            total += self._bound(k, beta, 1.0, 0) * (2 * arb.pi() / kappa).sqrt()
        return total

    def _beyond(self, k: arb, turn: float, n: int) -> arb:
        """Return the bound of the sum beyond Y = nh."""
        kappa = k * ball(self.nu) * ball(self.alpha).sin()
        return 2 * self._bound(k, self.alpha, turn, n) / (kappa * (ball(self.step) * n).sinh())

    def _end(self, k: float) -> tuple[int, float]:
        """Return the n at which the sum may end, and the best ω/α there."""
        most = (math.pi / 2) / float(self.alpha)
        turns = [turn for turn in _TURNS if turn <= most]
        n, at = 8, arb(k)
        with ctx.workprec(_ROUGH):
            while True:
                best = min((float(self._beyond(at, w, n).log().mid()), w) for w in turns)
                if best[0] <= self._size:
                    return n, best[1]
                n += max(8, n // 16)
                if n > _MOST_NODES:
                    raise UndecidedError(
                        f"A random allocation of {self.of.steps} steps needs more than "
                        f"{_MOST_NODES} nodes here. Ask for a larger relative_width."
                    )

    def points(self) -> list[tuple[acb, acb]]:
        """Return λ and λ^{−m} λ'/i at the nodes, half of it at the first."""
        found, nu = [], ball(self.nu)
        sine, cosine = ball(self.alpha).sin_cos()
        for j in range(self.count + 1):
            y = ball(self.step) * j
            tall, wide = y.sinh(), y.cosh()
            point = nu * acb(1 - sine * wide, cosine * tall)
            slope = nu * acb(cosine * wide, sine * tall)
            found.append((point, slope / point**self.power / (1 if j else 2)))
        return found

    def _terms(self, *, biased: bool) -> list[tuple[acb, acb]]:
        """Return the same times φ or φ₁."""
        if biased not in self._nodes:
            found, t = [], self.of.steps
            for point, weight in self.points():
                psi = self.of.transform(point, self.precision)
                phi = psi**t
                if biased:
                    phi = psi ** (t - 1) * self.of.transform(point, self.precision, biased=True)
                found.append((point, phi * weight))
            self._nodes[biased] = found
        return self._nodes[biased]

    def total(self, at: ExactReal, *, biased: bool) -> arb:
        """Return I_m at K = e^at."""
        with ctx.workprec(self.precision):
            k, total = at.ball().exp(), arb(0)
            for point, weight in self._terms(biased=biased):
                total += (weight * (point * k).exp()).real
            total *= ball(self.step) / arb.pi()
            return (total + arb(0, self.error(k).upper())).max(arb(0))

    def error(self, k: arb) -> arb:
        """Return the bound of the errors of the rule and of its end, for K."""
        aliased = self._edges(k) / (2 * arb.pi() * ball(self.high) / ball(self.step)).expm1()
        return aliased + self._beyond(k, self.turn, self.count)

"""The rank-one Gaussian pair for the independent route: quadrature over rays from a centre."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import mpmath
from mpmath import mp, mpf

from dpassay.accountant.numbers.exact import ExactReal

Integrand = Callable[[Any, Any], Any]
_MARKS = (-10, -4, 0, 4, 10)  # angular knots, in standard deviations of the cosine
_WIDE = 1000  # a dimension from which on the angle stays between the outermost marks
_BISECTIONS = 40
"""Halvings to a root in mpmath: 12 digits."""


@final
@dataclass(frozen=True)
class RankOneReference:
    """The densities of two rank-one Gaussian laws in polar coordinates (ρ, θ) round one centre.

    Round the centre of P, with t = sin θ the cosine to the shift, P has the density
    √(2/π) e^{−ρ²/2} cos^{M−2}θ / B((M−1)/2, ½) and Q the same times e^{−L}. Along a ray
    {L > ε}, ε ≥ 0, is (0, first) ∪ (second, ∞), found by bisection. For ε < 0 an integral over
    {L > ε} is that over all outcomes, known for integrands linear in the densities, without
    {−L ≥ |ε|}, which has this form round the centre of Q.
    """

    dimension: int
    ratio: ExactReal

    def hockey_stick(self, epsilon: ExactReal, digits: int = 50) -> Any:
        """Return E[(p − e^ε q)⁺]."""
        with mpmath.workdps(digits + 15):
            eps = epsilon.mpf()
            return self.integrate(lambda p, q: p - mp.exp(eps) * q, eps)

    def tails(self, epsilon: ExactReal, digits: int = 50) -> tuple[Any, Any]:
        """Return P(L > ε) and Q(L > ε)."""
        with mpmath.workdps(digits + 15):
            eps = epsilon.mpf()
            return (
                self.integrate(lambda p, _: p, eps),
                self.integrate(lambda _, q: q, eps),
            )

    def integrate(self, integrand: Integrand, epsilon: Any | None) -> Any:
        """Integrate over {L > ε}, or over all outcomes."""

        def exchanged(own: Any, other: Any) -> Any:
            return integrand(other, own)

        if epsilon is None:
            return self._over_rays(integrand, mpf(0)) + self._over_rays(exchanged, mpf(0))
        if epsilon >= 0:
            return self._over_rays(integrand, epsilon)
        return integrand(mpf(1), mpf(1)) - self._over_rays(exchanged, -epsilon)

    def _over_rays(self, integrand: Integrand, epsilon: Any) -> Any:
        """Integrate integrand(own, other) over {ln own/other > ε}, ε ≥ 0."""
        horizon, sphere = self._horizon(), self._sphere()

        def angular(theta: Any) -> Any:
            cosine = mp.sin(theta)
            weight = mp.cos(theta) ** (self.dimension - 2) / sphere
            first, second, _ = self._ray(cosine, epsilon)

            def value(rho: Any) -> Any:
                own = weight * _half_normal(rho)
                return integrand(own, own * mp.exp(-self._loss(rho, cosine)))

            def over(low: Any, high: Any) -> Any:
                high = min(high, horizon)
                if not low < high:
                    return mpf(0)
                knots = [low, *(k for k in self._knots(horizon) if low < k < high), high]
                return mp.quad(value, knots, method="gauss-legendre")

            return over(mpf(0), first) + over(second, mp.inf)

        half_turn = mp.pi / 2
        marks = [mark / mp.sqrt(self.dimension) for mark in _MARKS]
        marks = [mark for mark in marks if -half_turn < mark < half_turn]
        ends = [marks[0], marks[-1]] if self.dimension >= _WIDE else [-half_turn, half_turn]
        touching = self._touching(epsilon)
        if touching is None:
            return mp.quad(angular, sorted({*marks, *ends}), method="gauss-legendre")
        # a corner: there the two ends of a ray meet like square roots
        return mp.quad(angular, sorted({*marks, *ends, touching}), method="tanh-sinh")

    def _loss(self, rho: Any, cosine: Any) -> Any:
        kappa = self.ratio.mpf()
        square = rho * rho + 2 * kappa * rho * cosine + kappa * kappa
        return (self.dimension - 1) * mp.log(square / (rho * rho)) / 2 + (square - rho * rho) / 2

    def _ray(self, cosine: Any, epsilon: Any) -> tuple[Any, Any, Any]:
        """Return first, second and the least value of L − ε on a ray (for a positive cosine)."""
        kappa, m = self.ratio.mpf(), self.dimension

        def excess(log_rho: Any) -> Any:
            return self._loss(mp.exp(log_rho), cosine) - epsilon

        low = mp.log(kappa) - 5 - epsilon
        if cosine <= 0:  # L falls along the ray
            high = mp.log(kappa) + (60 if cosine == 0 else -mp.log(-cosine))
            if excess(high) > 0:
                return mp.exp(high), mp.inf, mpf(0)
            return mp.exp(_root(excess, low, high)), mp.inf, mpf(0)

        def slope(log_rho: Any) -> Any:
            along = kappa * cosine * mp.exp(log_rho)
            square = mp.exp(2 * log_rho) + 2 * along + kappa**2
            return along * square - (m - 1) * (along + kappa**2)

        bottom = _root(slope, mp.log(kappa) - 20, mp.log(m) + mp.dps + 10)
        least = excess(bottom)
        if least >= 0:
            return mp.inf, mp.inf, least
        far = mp.log((epsilon + 1) / (kappa * cosine)) + 5
        return mp.exp(_root(excess, low, bottom)), mp.exp(_root(excess, bottom, far)), least

    def _touching(self, epsilon: Any) -> Any | None:
        """Return the angle from which on whole rays lie in {L > ε}, None where none does."""

        def least(theta: Any) -> Any:
            return self._ray(mp.sin(theta), epsilon)[2]

        if epsilon <= 0 or least(mp.pi / 2) <= 0:
            return None
        return _root(least, mpf(10) ** -12, mp.pi / 2)

    def _horizon(self) -> Any:
        return mp.sqrt(2 * mp.log(10) * (mp.dps + 12)) + 2 * self.ratio.mpf()

    def _sphere(self) -> Any:
        return mp.beta(mpf(self.dimension - 1) / 2, mpf(1) / 2)

    def _knots(self, horizon: Any) -> list[Any]:
        """Radii that grow geometrically from the shift on."""
        first = self.ratio.mpf() / 2
        powers = (first * 3**k for k in itertools.count())
        return list(itertools.takewhile(lambda knot: knot < horizon, powers))


def _half_normal(rho: Any) -> Any:
    return mp.sqrt(2 / mp.pi) * mp.exp(-rho * rho / 2)


def _root(f: Callable[[Any], Any], low: Any, high: Any) -> Any:
    """Return the one change of sign of f: bisection, then secant steps inside the bracket."""
    positive = f(low) > 0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if (f(middle) > 0) == positive:
            low = middle
        else:
            high = middle
    for _ in range(mp.prec):
        at_low, at_high = f(low), f(high)
        if at_low == at_high:
            break
        point = (low * at_high - high * at_low) / (at_high - at_low)
        step = abs(point - high)
        low, high = high, point
        if step <= abs(point) * mpf(2) ** (8 - mp.prec):
            break
    return high

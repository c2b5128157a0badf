"""The independent route: privacy questions by quadrature and summation in mpmath.

Shares no arithmetic with the ball route: only the densities or masses of a pair are taken from
it. The answers are mpmath numbers at a chosen number of digits, without a proved error; tests
hold the two routes against each other.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

import mpmath
from flint import arb
from mpmath import mp, mpf

from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import ctx


class Reference(ABC):
    """A pair of laws given by its densities or masses."""

    @abstractmethod
    def integrate(self, integrand: Callable[[Any, Any], Any], epsilon: Any | None) -> Any:
        """Integrate integrand(p, q) over all outcomes with L > ε, or over all of them."""

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

    def renyi(self, order: ExactReal, digits: int = 50) -> Any:
        """Return ln(∫ p^a q^{1−a})/(a − 1)."""
        with mpmath.workdps(digits + 15):
            a = order.mpf()

            def power(p: Any, q: Any) -> Any:
                return q * (p / q) ** a if q else mpf(0)

            return mp.log(self.integrate(power, None)) / (a - 1)


@final
@dataclass(frozen=True)
class Continuous(Reference):
    """Two densities on the line whose loss is monotone between consecutive knots.

    `log_p` and `log_q` omit a common constant, given by `log_normaliser(mp)`.
    """

    log_p: Callable[[Any], Any]
    log_q: Callable[[Any], Any]
    log_normaliser: Callable[[Any], Any]
    knots: Callable[[], list[Any]]
    support: tuple[Any, Any] = (mpmath.ninf, mpmath.inf)
    reach: int = 40
    """The line is cut at knots, and then at steps that double from 1 up to beyond this reach."""

    def integrate(self, integrand: Callable[[Any, Any], Any], epsilon: Any | None) -> Any:
        """Integrate piece by piece with Gauss–Legendre and tanh–sinh quadrature."""
        knots = sorted(self.knots())
        ends = [self.support[0], *knots, self.support[1]]
        total = mpf(0)
        constant = mp.exp(self.log_normaliser(mp))

        def value(x: Any) -> Any:
            return integrand(mp.exp(self.log_p(x)), mp.exp(self.log_q(x)))

        for low, high in itertools.pairwise(ends):
            pieces = self._finite_pieces(low, high)
            for left, right in itertools.pairwise(pieces):
                for start, stop in self._above(left, right, epsilon):
                    total += mp.quad(value, [start, stop])
        return constant * total

    def _finite_pieces(self, low: Any, high: Any) -> list[Any]:
        """Cut an unbounded piece into steps that double, the last one unbounded."""
        if mp.isfinite(low) and mp.isfinite(high):
            return [low, high]
        start = high if mp.isinf(low) else low
        direction = -1 if mp.isinf(low) else 1
        cuts = [start]
        step = mpf(1)
        while step <= self.reach:
            cuts.append(start + direction * step)
            step *= 2
        cuts.append(direction * mp.inf)
        return cuts[::direction]

    def _above(self, left: Any, right: Any, epsilon: Any | None) -> list[tuple[Any, Any]]:
        """Return the part of a piece where L > ε (the loss is monotone on it)."""
        if epsilon is None:
            return [(left, right)]
        far = mpf(10) ** 12
        low = left if mp.isfinite(left) else right - far
        high = right if mp.isfinite(right) else left + far

        def excess(x: Any) -> Any:
            return self.log_p(x) - self.log_q(x) - epsilon

        at_low, at_high = excess(low), excess(high)
        if at_low <= 0 and at_high <= 0:
            return []
        if at_low >= 0 and at_high >= 0:
            return [(left, right)]
        rising = at_high > 0
        for _ in range(4 * mp.prec):
            middle = (low + high) / 2
            if middle in (low, high):
                break
            if (excess(middle) > 0) == rising:
                high = middle
            else:
                low = middle
        return [(low, right)] if rising else [(left, low)]


@final
@dataclass(frozen=True)
class Discrete(Reference):
    """Two mass functions on the integers from `lowest` on, summed until nothing is left.

    `masses(z)` returns (p, q) at the integer z. With `highest=None` the support is unbounded
    above, with `lowest=None` below; such tails must decrease at least geometrically, and are
    summed from `centre` outward until a term no longer counts at the working precision.
    """

    masses: Callable[[int], tuple[Any, Any]]
    lowest: int | None
    highest: int | None
    centre: int = 0

    def reverse(self) -> Discrete:
        """Return the same with P and Q exchanged."""
        return replace(self, masses=lambda z: self.masses(z)[::-1])

    def integrate(self, integrand: Callable[[Any, Any], Any], epsilon: Any | None) -> Any:
        """Sum over all outcomes with p > e^ε q."""
        total = mpf(0)
        factor = mpf(0) if epsilon is None else mp.exp(epsilon)
        peak = mpf(0)
        for step in (1, -1):
            z = self.centre if step > 0 else self.centre - 1
            bounded = (self.highest if step > 0 else self.lowest) is not None
            quiet = 0
            while self._inside(z) and quiet < 40:
                p, q = self.masses(z)
                size = max(p, factor * q)
                peak = max(peak, size)
                if epsilon is None or p > factor * q:
                    total += integrand(p, q)
                # before the event is met, far below every mass seen; after it, below its sum
                negligible = abs(total) * mpf(2) ** -mp.prec or peak * mpf(2) ** (-8 * mp.prec)
                quiet = quiet + 1 if size <= negligible and not bounded else 0
                z += step
        return total

    def _inside(self, z: int) -> bool:
        above = self.lowest is None or z >= self.lowest
        return above and (self.highest is None or z <= self.highest)


def ball_to_mpf(compute: Callable[[], arb]) -> Callable[[], Any]:
    """Turn a ball-valued parameter into an mpmath one, at mpmath's working precision."""

    def midpoint() -> Any:
        with ctx.workprec(mp.prec + 32):
            mantissa, exponent = compute().mid().man_exp()
        return mp.ldexp(mpf(int(mantissa)), int(exponent))

    return midpoint

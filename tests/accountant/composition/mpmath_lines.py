"""The independent route for products by contour integrals: the same integrals in mpmath."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import mpmath
from flint import arb
from mpmath import mp, mpf

from dpassay.accountant.composition.product import Factor
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms.additive.laplace import LaplacePair
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.finite import FinitePair, finite
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.pairs.subsampled import SubsampledPair
from tests.accountant.mpmath_reference import Reference, ball_to_mpf

_GUARD = 15
_LONGEST = 100_000


@final
@dataclass(frozen=True)
class SmoothReference(Reference):
    """M(z) by the trapezoidal rule in x, and δ and the tails by the same rule on a line.

    Steps are halved until two results agree; no error is proved, and no node is shared with the
    ball route.
    """

    factors: Sequence[Factor]

    def integrate(self, integrand: Callable[[Any, Any], Any], epsilon: Any | None) -> Any:
        """Raise NotApplicableError: the outcomes of many releases are not listed."""
        raise NotApplicableError("The mpmath route of a product has no list of outcomes.")

    def hockey_stick(self, epsilon: ExactReal, digits: int = 50) -> Any:
        """Return δ(ε) by the line through the saddle right of 0."""
        return self._line(lambda z: 1 / (z * (z + 1)), epsilon, digits)

    def tails(self, epsilon: ExactReal, digits: int = 50) -> tuple[Any, Any]:
        """Return P(L > ε) and Q(L > ε) by lines right of 0."""
        with mpmath.workdps(digits + _GUARD):
            factor = mp.exp(-epsilon.mpf())
        p = self._line(lambda z: 1 / z, epsilon, digits)
        return p, factor * self._line(lambda z: 1 / (z + 1), epsilon, digits)

    def renyi(self, order: ExactReal, digits: int = 50) -> Any:
        """Return ln M(a − 1)/(a − 1)."""
        with mpmath.workdps(digits + _GUARD):
            less = order.mpf() - 1
            return mp.re(self._log_moment(less)) / less

    def _line(self, kernel: Callable[[Any], Any], epsilon: ExactReal, digits: int) -> Any:
        with mpmath.workdps(digits + _GUARD):
            eps = epsilon.mpf()
            mp.dps += len(str(sum(count for _, count in self.factors)))

            def exponent(s: Any) -> Any:
                return mp.re(self._log_moment(s)) - s * eps + mp.log(kernel(s))

            c = _least(exponent)
            width = 1 / mp.sqrt(mp.diff(exponent, c, 2, h=mpf(10) ** -(mp.dps // 4)))
            peak, step = mp.exp(exponent(c)), width / 2
            known: dict[Any, Any] = {}

            def term(t: Any) -> Any:
                if t not in known:
                    z = mp.mpc(c, t)
                    known[t] = mp.re(mp.exp(self._log_moment(z) - z * eps) * kernel(z))
                return known[t]

            last = None
            while True:
                total, j = peak / 2, 1
                quiet = 0
                while quiet < 12 and j < _LONGEST:
                    value = term(j * step)
                    total += value
                    quiet = quiet + 1 if abs(value) < mp.eps * peak else 0
                    j += 1
                total *= step / mp.pi
                if last is not None and abs(total - last) < abs(total) * mpf(10) ** -digits:
                    return total
                last, step = total, step / 2

    def _log_moment(self, z: Any) -> Any:
        """Return Σ k_i ln M_i(z), up to multiples of 2πi k_i."""
        total = mpf(0)
        for pair, count in self.factors:
            if isinstance(pair, GaussianPair):
                total += count * z * (z + 1) * ball_to_mpf(pair.mu)() ** 2 / 2
            elif isinstance(pair, LaplacePair):
                total += count * mp.log(_laplace(pair.distance.mpf(), z))
            elif (small := finite(pair)) is not None:
                total += count * mp.log(_of_list(small, z))
            else:
                assert isinstance(pair, SubsampledPair)
                assert isinstance(pair.inner, GaussianPair)
                total += count * mp.log(_moment(pair.inner, pair, z))
        return total


def _laplace(t: Any, z: Any) -> Any:
    return ((z + 1) * mp.exp(t * z) + z * mp.exp(-t * (z + 1))) / (2 * z + 1)


def _of_list(pair: FinitePair, z: Any) -> Any:
    with ctx.workprec(mp.prec + 64):
        p, q = pair.source.masses(pair.index)[:: -1 if pair.flipped else 1]
        rows = [(_midpoint(a), _midpoint(b)) for a, b in zip(p, q, strict=True) if a > 0]
    return mp.fsum(a * (a / b) ** z for a, b in rows)


def _midpoint(value: arb) -> Any:
    mantissa, exponent = value.mid().man_exp()
    return mp.ldexp(mpf(int(mantissa)), int(exponent))


def _moment(inner: GaussianPair, pair: SubsampledPair, z: Any) -> Any:
    """Return E[w(X)^s] for X ~ N(0, 1) by the trapezoidal rule, s = z + 1 or −z."""
    mu, q = ball_to_mpf(inner.mu)(), pair.sampling_prob.mpf()
    s = z + 1 if pair.mixed_first else -z
    reach = mp.sqrt(2 * mp.log(1 / mp.eps)) + 2
    low, high = -reach - mp.log(1 + abs(s)) / mu * (mp.re(s) < 0), max(mp.re(s), 0) * mu + reach
    step, last = mpf(1) / 3, None
    while True:
        count = int((high - low) / step)
        total = mpf(0)
        for j in range(count + 1):
            x = low + j * step
            total += mp.exp(s * mp.log(1 - q + q * mp.exp(mu * x - mu * mu / 2)) - x * x / 2)
        total *= step / mp.sqrt(2 * mp.pi)
        if last is not None and abs(total - last) < abs(total) * mp.eps * 1000:
            return total
        last, step = total, step / 2


def _least(convex: Callable[[Any], Any]) -> Any:
    """Return a point near the minimum of a convex function on (0, ∞), by golden sections."""
    low, high = mpf(0), mpf(1)
    while convex(2 * high) < convex(high):
        high *= 2
    high *= 2
    ratio = (mp.sqrt(5) - 1) / 2
    for _ in range(18):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if convex(left) < convex(right) else (left, high)
    return (low + high) / 2

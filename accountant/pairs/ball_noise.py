"""The dominating pair of noise with the density e^{−‖x‖₂} in d ≥ 2 dimensions.

P is at a point v of length t, Q at 0. The loss L = t sin φ has the density w(φ) e^{z sin φ}/W of
`dpassay.accountant.geometry.ball_loss`; w is even, and reflection x → v − x exchanges P and Q.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from flint import acb, arb

from dpassay.accountant.core.pair import Known, ReflectedPair, Tails
from dpassay.accountant.geometry.ball_loss import bessel_k, moment, shape
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import ctx

if TYPE_CHECKING:
    pass


_SPARE_BITS = 8
"""Bits of the precision that an integral is not asked for."""
_FLAT = 3
"""Dimensions up to which the factor (1 − u²)^{(d−3)/2} is not log-concave, or is 1."""


@final
@dataclass(frozen=True)
class BallNoisePair(ReflectedPair):
    """Two laws of density e^{−‖x‖₂} at distance t > 0."""

    law_name = "ball-noise"

    distance: ExactReal
    dimension: int

    def _integral(self, low: arb, high: arb, rate: int, epsilon: ExactReal | None) -> arb:
        """Return ∫ w e^{± z sin φ}/W, or of w (e^{z sin φ} − e^{ε − z sin φ})/W."""
        d, z = self.dimension, self.distance.ball() / 2
        second, whole = shape(self.distance, d)
        level = None if epsilon is None else epsilon.ball() / 2

        def density(phi: acb, _: bool) -> acb:
            sine, cosine = phi.sin_cos()
            size: acb = cosine ** (d - 2) * (cosine * cosine + second)
            if level is None:
                return size * (rate * z * sine).exp()
            return size * (z * sine - level).sinh()

        found = acb.integral(
            density, acb(low), acb(high), rel_tol=arb(2) ** (_SPARE_BITS - ctx.prec)
        ).real
        return found / whole if level is None else 2 * level.exp() * found / whole

    def _angle(self, epsilon: ExactReal) -> arb:
        return (epsilon.ball() / self.distance.ball()).asin()

    def excess(self, epsilon: ExactReal) -> arb:
        """Return (2/W) e^{ε/2} ∫ w sinh(z sin φ − ε/2) from t sin φ = ε on."""
        return self._integral(self._angle(epsilon), arb.pi() / 2, 1, epsilon)

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the integrals on both sides of t sin φ = ε."""
        if epsilon >= self.distance:
            return Tails(arb(0), arb(1), arb(0), arb(1))
        if epsilon <= -self.distance:
            return Tails(arb(1), arb(0), arb(1), arb(0))
        at, end = self._angle(epsilon), arb.pi() / 2
        return Tails(*(
            self._integral(*sides, rate, None)
            for rate in (1, -1) for sides in ((at, end), (-end, at))
        ))  # fmt: skip

    def renyi(self, order: arb) -> arb:
        """Return ln M/(a − 1)."""
        if order == 1:
            return self._mean_loss()
        return moment(self.distance, self.dimension, acb(order - 0.5)).real.log() / (order - 1)

    @property
    def known(self) -> Known:
        """Return closed forms, and where a search may start."""
        return Known(
            rho_bound=self._rho_bound,
            max_loss=lambda: self.distance,
        )

    def _rho_bound(self) -> arb:
        """Return max(D_1, t²/2m), m = d − 3 + 2/(1 + k), where d > 3.

        However tilted, u = L/t has a density (1 − u²)^{(d−3)/2}(1 − u² + k)e^{yu} on [−1, 1], up to
        a factor. The second derivative of its logarithm is at most −m, and so its variance is at
        most 1/m (Brascamp and Lieb 1976). So K(a) = (a − 1)D_a has K″ ≤ t²/m, and
        D_a ≤ D_1 + (a − 1)t²/2m.
        """
        known = self.distance.ball() ** 2 / 2
        if self.dimension <= _FLAT:
            return known
        m = self.dimension - _FLAT + 2 / (1 + shape(self.distance, self.dimension)[0])
        return known.min(self.renyi(arb(1)).max(self.distance.ball() ** 2 / (2 * m)).upper())

    def _mean_loss(self) -> arb:
        """Return 2z² (K_{d/2−1} I_{d/2+1} + K_{d/2} I_{d/2}), as j_ν′ = y j_{ν+1}."""
        z, nu = self.distance.ball() / 2, arb(self.dimension) / 2
        less, more = bessel_k(z, self.dimension)
        return 2 * z**2 * (less * z.bessel_i(nu + 1) + more * z.bessel_i(nu))

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe a sheet of a hyperboloid."""
        return (
            f"outcomes more than {epsilon} scales nearer to the true answer under P than to that "
            f"under Q, which is {self.distance} scales away"
        )

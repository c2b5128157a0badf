"""Noise with the density e^{−‖x‖^p} in d ≥ 2 dimensions, ℓ2, at distance t, p > 1.

Level sets of P and Q are balls rB + v and r′B, r = x^{1/p} and r′ = (x + ε)^{1/p}, ε ≥ 0, as in
`dpassay.accountant.pairs.radial_noise`, and

    H(ε) = ∫ e^{−x} |(rB + v) ∖ r′B| dx/(Γ(d/p + 1)|B|).

Any direction is alike. What two convex symmetric bodies have in common falls with the length of a
shift between them: its volume is log-concave in the shift, by Brunn and Minkowski, and even. So H
grows with t, whatever increasing function of the norm the exponent is: the full distance is worst.

The balls are apart where r + r′ ≤ t, and the first lies in the second where r′ − r ≥ t. Between,
the spheres meet in a plane, cr beyond v and c′r′ beyond 0 in the direction of v,

    c = (r′² − r² − t²)/(2rt),  c′ = c r/r′ + t/r′,

and with the caps C of `dpassay.accountant.geometry.caps` |(rB + v) ∖ r′B|/|rB| is
C_{d+2}(c) − (r′/r)^d C_{d+2}(c′). Q(L > ε) is the share of the sphere r′ that lies in rB + v:

    e^ε Q(L > ε) = ∫ e^{−x} (x + ε)^{d/p − 1} C_d(c′) dx/Γ(d/p).

That cap is part of the surface of a convex body in rB + v, so that r′^{d−1} C_d(c′) ≤ r^{d−1}.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias, final

from flint import acb, arb

from dpassay.accountant.geometry.caps import cap
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.pairs.radial_noise import RadialPair

Ends: TypeAlias = tuple[acb, acb]
"""1 + c and 1 − c of a height c."""


@final
@dataclass(frozen=True)
class RoundNoisePair(RadialPair):
    """The pair at distance t > 0 for dimension d ≥ 2 and the power p > 1."""

    law_name = "round-noise"
    slope_share: ClassVar = arb(1)

    def _heights(self, epsilon: arb, x: acb, analytic: bool) -> tuple[Ends, Ends, acb]:
        """Return 1 ± c, 1 ± c′ and (d/p) ln(1 + ε/x).

        As products they are narrow where balls touch.
        """
        p, t = ball(1 / self.power), self.distance.ball()
        log, other = x.log(analytic=analytic), (1 + epsilon / x).log(analytic=analytic)
        r, far = (p * log).exp(), (p * (x + epsilon).log(analytic=analytic)).exp()
        gap = r * (p * other).expm1() if x.real.mid() > epsilon.mid() else far - r
        near, both, apart = t - gap, r + far + t, r + far - t
        first = (gap + t) * apart / (2 * r * t), near * both / (2 * r * t)
        second = (gap + t) * both / (2 * far * t), near * apart / (2 * far * t)
        return first, second, self.dimension * p * other

    def _excess(self, epsilon: arb, x: acb, analytic: bool) -> acb:
        first, second, growth = self._heights(epsilon, x, analytic)
        d = self.dimension + 2
        share = cap(*first, d, analytic) - growth.exp() * cap(*second, d, analytic)
        return self._weight(x, analytic) * share

    def _slope(self, epsilon: arb, x: acb, analytic: bool) -> acb:
        _, second, growth = self._heights(epsilon, x, analytic)
        size = self._weight(x, analytic) * growth.exp() * cap(*second, self.dimension, analytic)
        return size * ball(self.dimension / self.power) / (x + epsilon)

"""The loss of subsampled Laplace noise: two atoms and a density, for Fourier inversion.

With l the loss of Laplace noise at distance t and w(l) = 1 − q + q e^l, the loss is ln w under
Q w (direction REMOVE), and −ln w under Q (ADD, reflected), where Q has the atoms ½ at −t, e^{−t}/2
at t and the density ¼ e^{−(l + t)/2} between. So both moment generating functions are values of

    F(s) = ½ w(−t)^s + ½ e^{−t} w(t)^s + ¼ e^{−t/2} ∫ e^{−l/2} w(l)^s dl,

at s = 1 + z and s = −z. The integral is a Gauss–Legendre sum. With |f| ≤ M on and inside the
ellipse with foci ±t and half axes t(ρ ± 1/ρ)/2, polynomials of degree m are within
2Mρ^{−m}/(ρ − 1) of f on [−t, t]; N nodes, of weights > 0, are exact to degree 2N − 1, so that the
error is at most 8t Mρ^{1−2N}/(ρ − 1). M is a bound on small boxes around the ellipse (maximum
principle).

Beyond a frequency Ω the integral is at most 2(G(−t) + G(t))/Ω, G = ¼ e^{−(3l+t)/2} w^{s+1}/q for
the real part s: by parts, since G is its amplitude over the derivative of ln w, and ln G is convex
for s > −1, decreasing elsewhere.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import final

import numpy as np
from flint import acb, arb, arb_series

from accountant.composition import node_values
from accountant.composition.ends import End, EndExpansion, Stitched
from accountant.composition.joint import UnsuitedError
from accountant.composition.laws import Law, Small
from accountant.precision import ctx

MAX_NODES = 1 << 12
"""Most nodes of the quadrature."""
_REAL_BITS = 170
_LOG_ERROR = -46.0  # of the characteristic function: a share of what rounding has
_ARCS = 48
_ORDER = 20  # terms of the expansion at high frequencies
_RHOS = tuple(1 + 2.0 ** (k / 2) for k in range(-14, 8))


@final
@dataclass(frozen=True)
class Mixture:
    """w on [−t, t], at flint's current precision."""

    t: arb
    q: arb

    def log_w(self, loss: acb) -> acb:
        """Return ln w, |Im l| < π/2 or |w| > 0 on the right."""
        return (1 - self.q + self.q * loss.exp()).log()

    def ends(self, s: arb) -> tuple[arb, arb]:
        """Return the two atoms' terms of F(s)."""
        low, high = (self.log_w(acb(sign * self.t)).real for sign in (-1, 1))
        return (s * low).exp() / 2, (s * high - self.t).exp() / 2

    def log_integrand(self, s: arb, omega: float, loss: acb) -> arb:
        """Return a bound of ln|f| for all frequencies up to ω."""
        log = self.log_w(loss)
        turned = arb(omega) * abs(log.imag)
        return s * log.real + turned - loss.real / 2 - self.t / 2 - arb(4).log()

    def error(self, s: arb, omega: float, rho: float, nodes: int) -> arb:
        """Return a bound of the error of a Gauss–Legendre sum; +∞ where w might vanish."""
        half = arb(rho)
        wide, high = self.t * (half + 1 / half) / 2, self.t * (half - 1 / half) / 2
        if not (high < arb.pi() / 2 or self.q * wide.exp() < 1 - self.q):
            return arb.pos_inf()
        angles = (arb.pi() * arb(2 * arc + 1, 1) / (2 * _ARCS) for arc in range(_ARCS))
        # the upper half: the lower is its mirror image
        boxes = [acb(wide * angle.cos(), high * angle.sin()) for angle in angles]
        most = max(self.log_integrand(s, omega, box).upper() for box in boxes)
        return 8 * self.t * (most + (1 - 2 * nodes) * half.log()).exp() / (half - 1)

    def slopes(self, s: arb, sign: int, order: int) -> list[arb]:
        """Return the derivatives below an order, in ln w, of the density times w^s at l = ±t."""
        with ctx.workcap(order):
            log_w = self.log_w(acb(sign * self.t)).real
            rising = arb_series([0, 1])
            v = (rising.exp() * log_w.exp() - (1 - self.q)) / self.q
            density = ((s + 1) * (rising + log_w) - arb("1.5") * v.log() - self.t / 2).exp()
            return [density[k] * arb(k).fac() / (4 * self.q) for k in range(order)]

    def variation(self, s: arb, order: int) -> arb:
        """Return a bound of ∫ |D^(order)|, by Cauchy's inequality on pieces; +∞ if none is found.

        ln w − ln(1 − q) is the distance of the singularity of D.
        """
        low, high = (self.log_w(acb(sign * self.t)).real for sign in (-1, 1))
        high, pole, total = high.upper(), (1 - self.q).log(), arb(0)
        while not low >= high:
            radius = ((low - pole) / 2).min(arb("0.5"))
            top = (pole + (low - pole) * arb("1.25")).min(high)
            box = acb(low.union(top) + arb(0, 1) * radius, arb(0, 1) * radius)
            v = (box.exp() - (1 - self.q)) / self.q
            if not v.real > 0:
                return arb.pos_inf()
            log = (s + 1) * box - arb("1.5") * v.log() - self.t / 2
            largest = log.real.exp().upper() / (4 * self.q)
            total += (top - low) * arb(order).fac() * largest / radius**order
            low = top.upper()
        return total

    def nodes_needed(self, s: arb, omega: float, log_error: float) -> tuple[int, float]:
        """Return about the least number of nodes, and its ρ."""
        best = (MAX_NODES * 64, 2.0)
        for rho in _RHOS:
            bound = self.error(s, omega, rho, 0)
            size = float(bound.upper().log().upper()) - log_error
            if math.isfinite(size):
                best = min(best, (max(4, math.ceil(size / (2 * math.log(rho)))), rho))
        return best


@functools.lru_cache(maxsize=16)
def _legendre(nodes: int, precision: int) -> list[tuple[arb, arb]]:
    with ctx.workprec(precision):
        return [arb.legendre_p_root(nodes, k, weight=True) for k in range(nodes)]


@final
class SubsampledLaplaceLaw(Law):
    """The loss of Laplace noise at distance t, subsampled at rate q.

    Parameters
    ----------
    t, q
        Balls.
    mixed_first
        Whether P is the mixture: s = 1 + z, and else −z.
    count
        How often it is released.
    """

    def __init__(self, t: arb, q: arb, count: int, *, mixed_first: bool) -> None:
        self._law, self.count, self._mixed_first = Mixture(t, q), count, mixed_first
        self._moments: dict[tuple[str, int], arb] = {}
        self._rules: dict[int, list[tuple[arb, arb]]] = {}
        x, v = np.polynomial.legendre.leggauss(64)
        loss, share, distance = x * float(t), float(q), float(t)
        ends = np.array([-distance, distance])
        losses = np.concatenate([ends, loss])
        near = np.log1p(min(share, 0.5) * np.expm1(np.minimum(losses, 1.0)))
        far = np.logaddexp(float((1 - q).log()), float(q.log()) + losses)
        self._log_w = np.where((losses < 1) & (share <= 0.5), near, far)
        density = np.log(v * distance / 4) - (loss + distance) / 2
        atoms = [-math.log(2), -distance - math.log(2)]
        self._log_masses = np.concatenate([atoms, density])  # floats have no e^{−1000}

    def _exponent(self, z: arb) -> arb:
        return 1 + z if self._mixed_first else -z

    def moment(self, z: arb) -> arb:
        """Return F, by a quadrature with an error far below the precision of the sums."""
        key = (z.str(60), ctx.prec)
        if key not in self._moments:
            self._moments[key] = self._moment(self._exponent(z))
        return self._moments[key]

    def _moment(self, s: arb) -> arb:
        ends = self._law.ends(s)
        log_error = float((ends[0] + ends[1]).log()) - _REAL_BITS * math.log(2)
        count, rho = self._law.nodes_needed(s, 0.0, log_error)
        if count > MAX_NODES:
            raise UnsuitedError(
                f"The moment of order {float(s):.3g} of a subsampled Laplace loss takes "
                f"{count} nodes, more than {MAX_NODES}. Ask with method='grid'."
            )
        total = ends[0] + ends[1]
        for mass, log_w in self._quadrature(count):
            total += mass * (s * log_w).exp()
        return total + arb(0, 1) * self._law.error(s, 0.0, rho, count)

    def _quadrature(self, count: int) -> list[tuple[arb, arb]]:
        """Return masses under Q and ln w at the nodes."""
        if count not in self._rules:
            t = self._law.t
            self._rules[count] = [
                (weight * t / 4 * (-(x + 1) * t / 2).exp(), self._law.log_w(acb(t * x)).real)
                for x, weight in _legendre(count, ctx.prec)
            ]
        return self._rules[count]

    def log_moment(self, c: float) -> float:
        """Return ln F in floats."""
        s = 1 + c if self._mixed_first else -c
        logs = s * self._log_w + self._log_masses
        top = float(logs.max())
        return top + math.log(float(np.exp(logs - top).sum()))

    def mean(self, c: arb) -> arb:
        """Return the mean in floats."""
        logs = float(self._exponent(c)) * self._log_w + self._log_masses
        shares = np.exp(logs - logs.max())
        mean = float((shares * self._log_w).sum() / shares.sum())
        return arb(mean if self._mixed_first else -mean)

    def beyond(self, c: arb, omega: float) -> float:
        """Return what the atoms and the bound of the integral leave."""
        s, (t, q) = self._exponent(c), (self._law.t, self._law.q)
        ends, total = self._law.ends(s), self.moment(c)
        edge = arb(0)
        for sign in (-1, 1):
            log_w = self._law.log_w(acb(sign * t)).real
            edge += ((s + 1) * log_w - (3 * sign + 1) * t / 2).exp() / (4 * q)
        rest = (total - ends[0] - ends[1]).upper().min(2 * edge / arb(omega))
        return min(1.0, float(((ends[0] + ends[1] + rest) / total).upper()))

    def small(self, threshold: float, room: float) -> Small | None:
        """Return the law, which is bounded."""
        return self._bounded()

    def factor(self, c: arb, step: float, rows: int) -> node_values.Factor:
        """Return the quadrature at low, the expansion at the ends at high frequencies.

        Raises UnsuitedError where the quadrature takes too many nodes.
        """
        moment = self.moment(c)
        variation = self._law.variation(self._exponent(c), _ORDER) / moment
        first = rows
        if variation.is_finite():
            least = float((variation / arb(_LOG_ERROR).exp()).root(_ORDER).upper())
            if math.isfinite(least):
                first = max(1, math.ceil(min(least / step / node_values.ROW, rows)))
        if first >= rows:
            return self._sum(c, step, rows)
        ends = self._expansion(c, step, rows, first, variation)
        return Stitched(self._sum(c, step, first), first, ends)

    def _sum(self, c: arb, step: float, rows: int) -> node_values.Factor:
        """Return the atoms and the nodes of the quadrature as a list."""
        s, moment, centre = self._exponent(c), self.moment(c), self.mean(c)
        t, omega = self._law.t, step * rows * node_values.ROW
        count, rho = self._law.nodes_needed(s, omega, _LOG_ERROR + float(moment.log()))
        if count > MAX_NODES:
            raise UnsuitedError(
                "The density of this subsampled Laplace loss is too close to its singularity for "
                "an expansion at high frequencies. Ask with method='grid'."
            )
        error = self._law.error(s, omega, rho, count) / moment
        sign = 1 if self._mixed_first else -1
        points = [(arb("0.5"), self._law.log_w(acb(-t)).real)]
        points.append(((-t).exp() / 2, self._law.log_w(acb(t)).real))
        points += self._quadrature(count)
        weights = [mass * (s * log_w).exp() / moment for mass, log_w in points]
        turns = [(sign * log_w - centre) * arb(step) / (2 * arb.pi()) for _, log_w in points]
        return node_values.Atoms(weights, turns, self.count, rows, float(error.upper()))

    def _expansion(
        self, c: arb, step: float, rows: int, first: int, variation: arb
    ) -> EndExpansion:
        """Return the expansion, for the rows from the first one on."""
        s, moment, centre = self._exponent(c), self.moment(c), self.mean(c)
        sign, ends = 1 if self._mixed_first else -1, []
        for side, atom in zip((-1, 1), self._law.ends(s), strict=True):
            slopes = self._law.slopes(s, side, _ORDER)
            log_w = self._law.log_w(acb(side * self._law.t)).real
            # the density of the loss, which is turned round where that is −ln w
            turned = [side * sign ** (k + 1) * slope / moment for k, slope in enumerate(slopes)]
            ends.append(End(sign * log_w - centre, atom / moment, tuple(turned)))
        least = first * node_values.ROW * step
        rest = float((variation / arb(least) ** _ORDER).upper())
        return EndExpansion((ends[0], ends[1]), step, self.count, rows, least=least, rest=rest)

"""Products of discrete Gaussian pairs: the discrete noise on an embedding."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb, arb_poly

from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.theta import log_theta_ratio, theta, upper_tail
from dpassay.accountant.pairs.discrete_gaussian import HalfLinePair

MAX_TERMS = 1 << 17
"""Most values of the sum of the coordinates whose masses are formed."""
_MANY = ((1 << 11, 256), (MAX_TERMS, 768))
"""Values of the sum, and bits."""


@final
@dataclass(frozen=True)
class DiscreteGaussianProductPair(HalfLinePair):
    """d coordinates of parameter v moved by s, and one of parameter q²v moved by p (or none).

    Coordinates are Z ~ p(z) ∝ e^{−z²/2v}; p = 0 leaves the last one out. The loss is a function
    of U = q²s·Σz_i + p·z alone: L = (U − D/2)/(q²v), where U = U₀ under Q and U₀ + D under P,
    D = q²ds² + p². So {L > ε} = {U ≥ m}, with the exact m = ⌊q²vε + D/2⌋ + 1, and
    H(ε) = P(U₀ ≥ m − D) − e^ε P(U₀ ≥ m). The law of Σz_i is a power of a polynomial; what is cut
    off is bounded by the tails of one coordinate.
    Reflecting every coordinate exchanges P and Q.
    """

    law_name = "discrete-gaussian-product"

    parameter: Fraction
    count: int
    shift: int
    scale: int
    last_shift: int

    @property
    def distance(self) -> int:
        """D."""
        return self.scale**2 * self.count * self.shift**2 + self.last_shift**2

    def cut(self, epsilon: ExactReal) -> int:
        """Return m = ⌊(⌊2q²vε⌋ + D)/2⌋ + 1."""
        twice = ExactReal.of_rational(2 * self.scale**2 * self.parameter) * epsilon
        return (math.floor(twice) + self.distance) // 2 + 1

    def upper(self, start: int) -> arb:
        """Return P(U₀ ≥ start)."""
        step, p = self.scale**2 * self.shift, self.last_shift
        if p == 0:
            factor = _smooth(self.parameter, self.count)
            if factor is not None:
                whole = ExactReal.of_rational(self.count * self.parameter)
                return upper_tail(whole, -(-start // step)) * factor
        law = _law(self, ctx.prec)
        total = arb(0)
        if p == 0:
            first = max(-(-start // step), -law.reach)  # ⌈start/(q²s)⌉
            for s in range(first, law.reach + 1):
                total += law.sums[s + law.reach]
        else:
            for s in range(-law.reach, law.reach + 1):
                j = -(-(start - step * s) // p)
                if j <= law.last_reach:
                    total += law.sums[s + law.reach] * law.last_tails[max(j, -law.last_reach)]
        return total + law.left_out

    def renyi(self, order: arb) -> arb:
        """Return a·ρ plus ln(θ(a·shift)/θ(0))/(a − 1) of every coordinate."""
        v, w = self._parameters()
        ratio = self.count * log_theta_ratio(v, order * self.shift)
        if self.last_shift:
            ratio += log_theta_ratio(w, order * self.last_shift)
        return order * self.closed_rho() + ratio / (order - 1)

    def exact_closed_rho(self) -> ExactReal:
        """Return D/(2q²v)."""
        return ExactReal.of_rational(self.distance / (2 * self.scale**2 * self.parameter))

    def _parameters(self) -> tuple[ExactReal, ExactReal]:
        """Return v and q²v."""
        return (
            ExactReal.of_rational(self.parameter),
            ExactReal.of_rational(self.scale**2 * self.parameter),
        )

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the half-space {L > ε}."""
        last = f" + {self.last_shift}·(last coordinate)" if self.last_shift else ""
        return (
            f"noise under Q with {self.scale**2 * self.shift}·(sum of {self.count} coordinates)"
            f"{last} at least {self.cut(epsilon)} (it is {self.distance} higher under P)"
        )


def is_long(parameter: ExactReal, count: int) -> bool:
    """Whether so many coordinates have many sums, and no closed form to a usual precision."""
    known = parameter.rational
    if known is None:
        return False
    for most, bits in _MANY:
        values = 2 * count * math.sqrt(2 * known * bits)
        with ctx.workprec(bits):
            if values > most and _smooth(known, count) is None:
                return True
    return False


def _smooth(v: Fraction, count: int) -> arb | None:
    """Return a ball around 1 with P(S ≥ m) in θ-tail(dv, m) times it, S = z_1 + … + z_d.

    Or None where it would be wider than the current precision.

    The sum of d coordinates is nearly the discrete Gaussian law of parameter dv. Given the law
    of j coordinates as C_j e^{−s²/2jv} up to a factor, that of j + 1 is, on completing the square,
    e^{−s²/2(j+1)v} Σ_x e^{−(x−c)²/2w} with w = jv/(j + 1) ≥ v/2, and by Poisson summation the sum
    is √(2πw)(1 ± τ) for every c, τ = 2 Σ_{k≥1} e^{−2π²wk²} ≤ 2 Σ e^{−π²vk²}. So the weights of S
    are those of the discrete Gaussian times a constant and factors in (1 ± τ)^{d−1}, and after
    normalising its masses are within ((1 + τ)/(1 − τ))^{±(d−1)} of it.
    """
    spread = log_spread(ExactReal.of_rational(v), count).expm1().upper()
    if not spread < arb(2) ** (-ctx.prec):
        return None
    return arb(1, spread)


def log_spread(v: ExactReal, count: int) -> arb:
    """Return κ: the masses of a sum are those of one variable but for factors in e^{±κ}.

    The parameters are v, and count·v for the one. It is +∞ where none is known, for a small v.
    """
    q = (-(arb.pi() ** 2) * v.ball()).exp()
    tau = 2 * q / (1 - q)  # Σ q^{k²} ≤ q/(1 − q)
    return (count - 1) * (tau.log1p() - (-tau).log1p()) if tau < 1 else arb.pos_inf()


@final
@dataclass(frozen=True)
class _Law:
    """Masses of Σz_i on −reach..reach, upper tails of the last coordinate, and what is missing."""

    reach: int
    sums: list[arb]
    last_reach: int
    last_tails: dict[int, arb]
    left_out: arb


@functools.lru_cache(maxsize=4)
def _law(pair: DiscreteGaussianProductPair, precision: int) -> _Law:
    """Form the laws of both parts, leaving out less than 2^−precision."""
    v, w = pair._parameters()
    bits = precision + 2 * pair.count.bit_length() + 16
    reach = math.isqrt(math.ceil(2 * pair.parameter * bits)) + 1  # ln 2 < 1
    last = math.isqrt(math.ceil(2 * pair.scale**2 * pair.parameter * bits)) + 1
    last = last if pair.last_shift else 0
    if max(2 * reach * pair.count, last) > MAX_TERMS:
        raise NotApplicableError(
            f"The exact profile of {pair.count} discrete Gaussian coordinates of parameter "
            f"{float(pair.parameter):.6g} needs more than {MAX_TERMS} masses. Ask for rho or a "
            "Rényi divergence, which have closed forms, or for fewer dimensions."
        )
    powers = arb_poly(_weights(v, reach)) ** pair.count
    normaliser = theta(v) ** pair.count
    sums = [powers[i] / normaliser for i in range(2 * reach * pair.count + 1)]
    missing = pair.count * 2 * upper_tail(v, reach + 1)
    tails: dict[int, arb] = {}
    if pair.last_shift:
        above, last_normaliser = arb(0), theta(w)
        weights = _weights(w, last)
        for z in range(last, -last - 1, -1):
            above += weights[z + last] / last_normaliser
            tails[z] = above
        missing += 2 * upper_tail(w, last + 1)
    return _Law(reach * pair.count, sums, last, tails, arb(0).union(missing))


def _weights(v: ExactReal, reach: int) -> list[arb]:
    half = [
        (ExactReal.of_rational(-z * z) / v / ExactReal.of_rational(2)) for z in range(reach + 1)
    ]
    values = [exponent.ball().exp() for exponent in half]
    return values[:0:-1] + values

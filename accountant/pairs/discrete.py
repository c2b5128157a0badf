"""Worst pairs of integer noise: discrete Gaussian and discrete Laplace."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb, arb_poly

from dpassay.accountant.core.pair import Known, MirroredPair, Tails
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.theta import log_theta_ratio, theta, upper_tail

# --- Discrete Gaussian noise: one integer, several, and the noise of an embedding -----------------

MAX_TERMS = 1 << 17
"""Largest number of values of the sum of the coordinates for which masses are computed."""
_MANY = ((1 << 11, 256), (MAX_TERMS, 768))
"""Numbers of values of the sum that count as many, each with a precision in bits."""


@final
@dataclass(frozen=True)
class DiscreteGaussianPair(MirroredPair):
    """Discrete Gaussian laws p(z) ∝ e^{−z²/2v} and their integer shifts, in one or more dimensions.

    Under P each of d = `count` coordinates z_i of parameter v is shifted by s = `shift` ≥ 1. A
    further coordinate z of parameter q²v, q = `scale`, is shifted by p = `last_shift`; it is absent
    for p = 0. The loss depends on U = q²s·Σz_i + p·z only: L = (U − D/2)/(q²v), where U = U₀ under
    Q and U = U₀ + D under P, with D = q²ds² + p². So {L > ε} = {U ≥ m} with the integer
    m = ⌊q²vε + D/2⌋ + 1, which is computed exactly, and
    H(ε) = P(U₀ ≥ m − D) − e^ε P(U₀ ≥ m) (Canonne, Kamath and Steinke 2020, Theorem 7).

    The law of Σz_i is a power of a polynomial; the truncation error is bounded by the tails of one
    coordinate. Reflecting every coordinate exchanges P and Q. For more than one coordinate v must
    be rational.
    """

    law_name = "discrete-gaussian"

    parameter: ExactReal
    shift: int
    count: int = 1
    scale: int = 1
    last_shift: int = 0

    @property
    def is_one(self) -> bool:
        """Whether there is only one coordinate."""
        return self.count == 1 and not self.last_shift

    @property
    def _step(self) -> int:
        """The coefficient q²s of Σz_i in U."""
        return self.scale**2 * self.shift

    @property
    def distance(self) -> int:
        """The distance D = q²ds² + p² between U under P and U under Q."""
        return self._step * self.count * self.shift + self.last_shift**2

    def cut(self, epsilon: ExactReal) -> int:
        """Return m = ⌊(⌊2q²vε⌋ + D)/2⌋ + 1, exactly."""
        twice = self.parameter.times(2 * self.scale**2) * epsilon
        return (math.floor(twice) + self.distance) // 2 + 1

    def upper(self, start: int) -> arb:
        """Return P(U₀ ≥ start)."""
        step, p, first = self._step, self.last_shift, -(-start // self._step)
        if self.is_one:
            return upper_tail(self.parameter, first)
        if p == 0 and (factor := _smooth(self.rational_parameter, self.count)) is not None:
            return upper_tail(self.parameter.times(self.count), first) * factor
        law = _law(self, ctx.prec)
        total = arb(0)
        if p == 0:
            for s in range(max(first, -law.reach), law.reach + 1):
                total += law.sums[s + law.reach]
        else:
            for s in range(-law.reach, law.reach + 1):
                j = -(-(start - step * s) // p)
                if j <= law.last_reach:
                    total += law.sums[s + law.reach] * law.last_tails[max(j, -law.last_reach)]
        return total + law.left_out

    @property
    def rational_parameter(self) -> Fraction:
        """The parameter v, which is rational for more than one coordinate."""
        known = self.parameter.rational
        assert known is not None
        return known

    @property
    def last_parameter(self) -> ExactReal:
        """The parameter q²v of the last coordinate."""
        return self.parameter.times(self.scale**2)

    @property
    def known(self) -> Known:
        """Return ρ in closed form."""
        return Known(rho=lambda: self.exact_closed_rho().ball())

    def excess(self, epsilon: ExactReal) -> arb:
        """Return P(U₀ ≥ m − D) − e^ε P(U₀ ≥ m).

        The difference may lose about as many bits as v has, so the precision is raised by them.
        """
        m, lost = self.cut(epsilon), 2 * math.floor(self.parameter).bit_length() + 8
        with ctx.workprec(ctx.prec + lost + abs(math.floor(epsilon)).bit_length()):
            value = self.upper(m - self.distance) - epsilon.ball().exp() * self.upper(m)
        return +value

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the masses on both sides of m, each computed as a tail of its own."""
        m, d = self.cut(epsilon), self.distance
        return Tails(*map(self.upper, (m - d, d + 1 - m, m, 1 - m)))

    def renyi(self, order: arb) -> arb:
        """Return aρ + Σ ln(θ(as)/θ(0))/(a − 1) over the coordinates, θ(c) = Σ_z e^{−(z−c)²/2v}.

        It follows by completing the square in Σ p(z − s)^a p(z)^{1−a}. Since θ(c) ≤ θ(0), with
        equality at integers c, D_a ≤ aρ.
        """
        if order == 1:  # D_1 = ρ, since the noise has mean 0
            return self.exact_closed_rho().ball()
        ratio = self.count * log_theta_ratio(self.parameter, order * self.shift)
        if self.last_shift:
            ratio += log_theta_ratio(self.last_parameter, order * self.last_shift)
        return order * self.exact_closed_rho().ball() + ratio / (order - 1)

    def exact_closed_rho(self) -> ExactReal:
        """Return ρ = D/(2q²v).

        D_a ≤ aρ, with equality at integers a; in particular D_1 = ρ, since E_Q[U] = 0.
        """
        return ExactReal.of_rational(self.distance) / self.parameter.times(2 * self.scale**2)

    def law(self) -> dict[str, object]:
        """Return the parameter and the shift; for more than one coordinate all fields."""
        found = super().law()
        if self.is_one:
            return {name: found[name] for name in ("law", "parameter", "shift")}
        return found | {"law": "discrete-gaussian-product"}

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the half-space {L > ε}."""
        if self.is_one:
            return (
                f"outcomes at least {-(-self.cut(epsilon) // self.shift)} above the true answer "
                f"under Q (the true answer under P is {self.shift} higher)"
            )
        last = f" + {self.last_shift}·(last coordinate)" if self.last_shift else ""
        return (
            f"noise under Q with {self._step}·(sum of {self.count} coordinates){last} at least "
            f"{self.cut(epsilon)} (it is {self.distance} higher under P)"
        )


def is_long(parameter: ExactReal, count: int) -> bool:
    """Whether the sum takes many values and `_smooth` does not apply at a usual precision."""
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
    """Return a ball B around 1 such that P(S ≥ m) ∈ B·P(Z ≥ m) for all m, or None.

    S = z_1 + … + z_d is the sum of the coordinates and Z is discrete Gaussian of parameter dv. None
    if B would be wider than the current precision.

    Proof. Suppose the masses of the sum of j coordinates are C_j e^{−s²/2jv} up to a factor.
    Completing the square, those of j + 1 coordinates are e^{−s²/2(j+1)v} Σ_x e^{−(x−c)²/2w} with
    w = jv/(j + 1) ≥ v/2. By Poisson summation the sum over x is √(2πw)(1 ± τ) for every c, where
    τ = 2 Σ_{k≥1} e^{−2π²wk²} ≤ 2 Σ e^{−π²vk²}. So the weights of S are those of Z times a constant
    and a factor in (1 ± τ)^{d−1}. After normalisation the masses of S are those of Z times factors
    between ((1 − τ)/(1 + τ))^{d−1} and ((1 + τ)/(1 − τ))^{d−1}.
    """
    spread = log_spread(ExactReal.of_rational(v), count).expm1().upper()
    if not spread < arb(2) ** (-ctx.prec):
        return None
    return arb(1, spread)


def log_spread(v: ExactReal, count: int) -> arb:
    """Return κ such that the masses of S are those of Z times factors in [e^{−κ}, e^{κ}].

    S is the sum of `count` discrete Gaussian variables of parameter v, and Z is discrete Gaussian
    of parameter count·v; `_smooth` has the proof. κ = +∞ if v is too small for a bound.
    """
    q = (-(arb.pi() ** 2) * v.ball()).exp()
    tau = 2 * q / (1 - q)  # Σ q^{k²} ≤ q/(1 − q)
    return (count - 1) * (tau.log1p() - (-tau).log1p()) if tau < 1 else arb.pos_inf()


@final
@dataclass(frozen=True)
class _Law:
    """Masses of Σz_i on −reach, …, reach, upper tails of the last coordinate, and a bound.

    `left_out` is a ball from 0 to an upper bound of the mass that truncation leaves out.
    """

    reach: int
    sums: list[arb]
    last_reach: int
    last_tails: dict[int, arb]
    left_out: arb


@functools.lru_cache(maxsize=4)
def _law(pair: DiscreteGaussianPair, precision: int) -> _Law:
    """Compute the laws of both parts; the mass left out is less than 2^−precision."""
    v, w, parameter = pair.parameter, pair.last_parameter, pair.rational_parameter
    bits = precision + 2 * pair.count.bit_length() + 16
    reach = math.isqrt(math.ceil(2 * parameter * bits)) + 1  # ln 2 < 1
    last = math.isqrt(math.ceil(2 * pair.scale**2 * parameter * bits)) + 1
    last = last if pair.last_shift else 0
    if max(2 * reach * pair.count, last) > MAX_TERMS:
        raise NotApplicableError(
            f"The exact profile of {pair.count} discrete Gaussian coordinates of parameter "
            f"{float(parameter):.6g} needs more than {MAX_TERMS} masses. Ask for rho or a "
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
    exponents = (ExactReal.of_rational(Fraction(-z * z, 2)) / v for z in range(reach + 1))
    values = [exponent.ball().exp() for exponent in exponents]
    return values[:0:-1] + values


# --- Two discrete Laplace laws at an integer distance ---------------------------------------------


@final
@dataclass(frozen=True)
class DiscreteLaplacePair(MirroredPair):
    """P = law of Z + s, Q = law of Z, for P(Z = z) ∝ e^{−|z|/b} on the integers and s ≥ 1.

    The loss L(z) = (2·min(max(z, 0), s) − s)/b takes the s + 1 values (2j − s)/b. Whether it
    exceeds ε is decided exactly, by comparing 2j − s with the exact number ε·b. With r = e^{−1/b},
    P(Z ≥ m) = r^m/(1 + r) for m ≥ 0. So for 1 ≤ j ≤ s the event {L > ε} = {z ≥ j} has
    Q(z ≥ j) = r^j/(1 + r) and P(z < j) = r^{s+1−j}/(1 + r).
    The reflection z → s − z exchanges P and Q.
    """

    law_name = "discrete-laplace"

    scale: ExactReal
    shift: int

    def _cut(self, epsilon: ExactReal) -> int:
        """Return the least j in 0, …, s with 2j − s > ε·b, or s + 1 if there is none."""
        cut = (math.floor(epsilon * self.scale) + self.shift) // 2 + 1
        return min(max(cut, 0), self.shift + 1)

    def excess(self, epsilon: ExactReal) -> arb:
        """Return H(ε) = (1 − e^{ε−s/b} + Σ_{j ≤ z < s} (1 − r)(r^{s−z} − e^ε r^z))/(1 + r).

        The sum is evaluated in closed form; all its terms are positive.
        """
        j, s, eps = self._cut(epsilon), self.shift, epsilon.ball()
        rate = 1 / self.scale.ball()
        r = (-rate).exp()
        inner = r * -(rate * (j - s)).expm1() + (eps - rate * j).exp() * (rate * (j - s)).expm1()
        return (-(eps - rate * s).expm1() + inner) / (1 + r)

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the masses of z ≥ j and z < j."""
        j, s = self._cut(epsilon), self.shift
        if j > s:
            return Tails(arb(0), arb(1), arb(0), arb(1))
        if j == 0:
            return Tails(arb(1), arb(0), arb(1), arb(0))
        r = (-1 / self.scale.ball()).exp()
        p_below, q_above = r ** (s + 1 - j) / (1 + r), r**j / (1 + r)
        return Tails(p_above=1 - p_below, p_below=p_below, q_above=q_above, q_below=1 - q_above)

    def renyi(self, order: arb) -> arb:
        """Return ln(M)/(a − 1), where M = E_P[e^{(a−1)L}] sums z ≤ 0, 0 < z < s and z ≥ s.

        M = (e^{(a−1)s/b} + e^{−as/b})/(1 + r) + tanh(1/2b) e^{−as/b} Σ_{0<z<s} e^{(2a−1)z/b}.
        """
        if order == 1:
            return self._mean_loss()
        rate, s = 1 / self.scale.ball(), self.shift
        less, low = order - 1, (-order * rate * s).exp()
        moment = ((less * rate * s).exp() + low) / (1 + (-rate).exp())
        growth = (2 * order - 1) * rate
        inner = growth.exp() * (growth * (s - 1)).expm1() / growth.expm1()
        return (moment + (rate / 2).tanh() * low * inner).log() / less

    def _mean_loss(self) -> arb:
        """Return E_P[L] = (s(1 − r^s)/(1 + r) + tanh(1/2b) Σ_{0<k<s} (s − 2k) r^k)/b."""
        rate, s = 1 / self.scale.ball(), self.shift
        r = (-rate).exp()
        less = -(-rate).expm1()
        plain = (r - r**s) / less
        weighted = r * (1 - s * r ** (s - 1) + (s - 1) * r**s) / less**2
        ends = -s * (-rate * s).expm1() / (1 + r)
        return rate * (ends + (rate / 2).tanh() * (s * plain - 2 * weighted))

    @property
    def known(self) -> Known:
        """Return the largest loss s/b as an exact number."""
        return Known(max_loss=lambda: ExactReal.of_rational(self.shift) / self.scale)

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the half-line {L > ε}."""
        j = self._cut(epsilon)
        if j == 0:
            return "every outcome"
        if j > self.shift:
            return "the empty event"
        return (
            f"outcomes at least {j} above the true answer under Q "
            f"(the true answer under P is {self.shift} higher)"
        )

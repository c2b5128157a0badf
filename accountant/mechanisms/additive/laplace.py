"""Laplace noise and its relatives: truncated Laplace, staircase and logistic noise."""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, final

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, NDArray, np
from dpassay.accountant.core.mechanism import SymmetricDensity
from dpassay.accountant.core.pair import Known, MirroredPair, Tails, WorstCase
from dpassay.accountant.core.validate import Positive, Probability, declared
from dpassay.accountant.errors import expected, suggestion
from dpassay.accountant.numbers.exact import ExactReal, Number, exact
from dpassay.accountant.numbers.interval import RELATIVE_WIDTH, Interval, ball, enclose
from dpassay.accountant.pairs.finite import FiniteLaws, FinitePair
from dpassay.accountant.release.lattice import InverseNoise, LatticeSampler, StaircaseNoise

_HALF = ExactReal.of_rational(Fraction(1, 2))

# --- The Laplace mechanism ------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class LaplacePair(MirroredPair):
    """P = Lap(t, 1) and Q = Lap(0, 1) at distance t > 0.

    The loss L = |x| − |x − t| has atoms at ±t and a density in between, and H(ε) = 1 − e^{(ε−t)/2}
    for |ε| ≤ t. Reflection x → t − x exchanges P and Q.
    """

    law_name = "laplace"

    distance: ExactReal

    def excess(self, epsilon: ExactReal) -> arb:
        """Return 1 − e^{(ε−t)/2}."""
        return -((epsilon.ball() - self.distance.ball()) / 2).expm1()

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the tails of L > ε and L ≤ ε; an atom at ε belongs to the latter."""
        t = self.distance.ball()
        if epsilon >= self.distance:
            return Tails(arb(0), arb(1), arb(0), arb(1))
        if epsilon < -self.distance:
            return Tails(arb(1), arb(0), arb(1), arb(0))
        # L > ε is x > c with c = (t + ε)/2 in [0, t)
        c = (t + epsilon.ball()) / 2
        left_p, right_q = (c - t).exp() / 2, (-c).exp() / 2
        return Tails(p_above=1 - left_p, p_below=left_p, q_above=right_q, q_below=1 - right_q)

    @property
    def known(self) -> Known:
        """Return the closed forms of ε, ρ and the largest loss."""
        return Known(
            inverse=self._inverse, rho_bound=self._rho_bound, max_loss=lambda: self.distance
        )

    def _inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Enclose the ε with H(ε) = δ, which is max(t + 2 ln(1 − δ), ln(1 − δ)).

        The first value solves 1 − e^{(ε−t)/2} = δ, and is ≥ −t if it is the larger one. The second
        solves 1 − e^ε = δ, where 1 − e^ε is H(ε) for ε ≤ −t.
        """

        def epsilon() -> arb:
            rest = (-delta.ball()).log1p()
            return (self.distance.ball() + 2 * rest).max(rest)

        return enclose(epsilon, relative_width=relative_width)

    def renyi(self, order: arb) -> arb:
        """Return D_a = ln((a e^{(a−1)t} + (a−1) e^{−at})/(2a − 1))/(a − 1).

        D_1 = t + e^{−t} − 1.
        """
        t, less = self.distance.ball(), order - 1
        if order == 1:
            return t + (-t).expm1()
        moment = order * (less * t).exp() + less * (-order * t).exp()
        return (moment / (2 * order - 1)).log() / less

    def _rho_bound(self) -> arb:
        """Return D_1, which is the smallest ρ such that D_a ≤ aρ for all a > 1.

        *Proof.* Let u = a − ½ and v = u². Then e^{t/2 + (a−1)D_a} = cosh(ut) + sinh(ut)/(2u) is an
        entire function of v of order ½. Its zeros are v = −λ for the eigenvalues λ of −y″ = λy on
        [0, t] with y(0) = 0 and y′(t) = −y(t)/2. All λ are > 0, so the logarithm is concave for
        v > 0. Since (a − 1)D_a = 0 at v = ¼, it is at most its tangent there,
        (v − ¼)D_1 = a(a − 1)D_1.
        """
        return self.renyi(arb(1))

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the half-line {L > ε} in words."""
        return (
            f"outcomes above ({self.distance} + {epsilon})/2 scales past the true answer under Q "
            f"(the true answer under P is {self.distance} scales higher)"
        )


class LaplaceNoise(SymmetricDensity, ABC):
    """A mechanism whose noise is Lap(b) in every coordinate."""

    noise_argument = "scale"

    scale: Positive

    def mean_absolute_error(self) -> arb:
        """Return b."""
        return self.scale.ball()

    def variances(self) -> list[arb]:
        """Return [2b²]."""
        return [2 * self.scale.ball() ** 2]

    def quantile(self, probability: ExactReal) -> arb:
        """Return b ln(2p) for p ≤ ½ and −b ln(2(1 − p)) for larger p."""
        return self.scale.ball() * laplace_quantile(probability)


@declared
class Laplace(LaplaceNoise):
    """Release the true scalar answer plus Lap(b) noise, which has density e^{−|x|/b}/(2b).

    Parameters
    ----------
    scale
        b > 0; the standard deviation is √2·b.
    l1_sensitivity
        The largest distance between the true answers on two neighbours, for whichever relation it
        was computed. The mechanism is exactly (l1_sensitivity/b)-DP. For a vector of answers with a
        given shift between neighbours, use `LaplaceVector`.
    """

    example = "Laplace(scale=2)"

    scale: Positive = Positive()
    l1_sensitivity: Positive = Positive(1)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pair of Laplace laws at distance l1_sensitivity."""
        return WorstCase.symmetric(
            LaplacePair(self.l1_sensitivity / self.scale),
            "H(ε) = 1 − e^{(ε−t)/2} increases with the distance t of the true answers, so the "
            "worst pair is at distance l1_sensitivity.",
        )

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` releases."""
        return rng.laplace(0.0, float(self.scale), size)

    def inverse_noise(self) -> InverseNoise:
        """Return |noise| as a function of an exponential variable E: |noise| = bE.

        The survival function is P(noise ≥ bx) = e^{−x}/2 for x ≥ 0.
        """
        return InverseNoise(self.scale, _same, _same_ball, 1.0, _survival)


def laplace_quantile(probability: ExactReal) -> arb:
    """Return the quantile of Lap(1); −∞ at 0 and +∞ at 1."""
    if probability <= _HALF:
        return (2 * probability.ball()).log() if probability.sign else arb.neg_inf()
    return -(2 * complement(probability)).log() if probability.rational != 1 else arb.pos_inf()


def complement(probability: ExactReal) -> arb:
    """Return 1 − p, computed exactly if p is rational."""
    known = probability.rational
    return 1 - probability.ball() if known is None else ball(1 - known)


def _same(xp: Any, y: Any) -> Any:
    return y


def _same_ball(y: arb) -> arb:
    return y


def _survival(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.exp(-x) / 2


# --- Truncated Laplace noise ----------------------------------------------------------------------


@final
@dataclass(frozen=True)
class TruncatedLaplacePair(MirroredPair):
    """The density e^{−|x|}/N on [−a, a], N = 2(1 − e^{−a}), under P; shifted by d ≤ a under Q.

    The loss is ∞ on [−a, d − a), where Q has no mass, d on [d − a, 0], d − 2x on [0, d], and −d on
    [d, a]. So {L > ε} is [−a, t) with t = (d − ε)/2 if −d ≤ ε < d. If ε ≥ d, it is [−a, d − a),
    whose P-mass is m = e^{−a}(e^d − 1)/N. Reflection x → d − x exchanges P and Q.
    """

    law_name = "truncated-laplace"

    distance: ExactReal
    end: ExactReal

    def _constants(self) -> tuple[arb, arb, arb]:
        """Return e^{−a}, N and m."""
        end = (-self.end.ball()).exp()
        whole = -2 * (-self.end.ball()).expm1()
        return end, whole, end * self.distance.ball().expm1() / whole

    def excess(self, epsilon: ExactReal) -> arb:
        """Return (2(1 − e^{−t}) + e^{−a}(e^ε − 1))/N for ε < d, and m for ε ≥ d."""
        end, whole, m = self._constants()
        if epsilon >= self.distance:
            return m
        rise = epsilon.ball().expm1()
        t = (self.distance.ball() - epsilon.ball()) / 2
        return (end * rise - 2 * (-t).expm1()) / whole

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the masses on both sides of t."""
        end, whole, m = self._constants()
        if epsilon >= self.distance:
            return Tails(m, 1 - m, arb(0), arb(1))
        if epsilon < -self.distance:
            return Tails(arb(1), arb(0), 1 - m, m)
        d, a = self.distance.ball(), self.end.ball()
        t = (d - epsilon.ball()) / 2
        half = -(-a).expm1()
        return Tails(
            (half - (-t).expm1()) / whole,
            end * (a - t).expm1() / whole,
            end * (a - d + t).expm1() / whole,
            (half - (t - d).expm1()) / whole,
        )

    def renyi(self, order: arb) -> arb:
        """Return ∞, because infinite loss has positive probability."""
        return arb.pos_inf()

    @property
    def known(self) -> Known:
        """Return ρ = ∞ and the largest finite loss d."""
        return Known(rho=arb.pos_inf, finite_loss=self.distance.ball)

    def infinity_mass(self) -> arb:
        """Return m, the P-mass where Q has none."""
        return self._constants()[2]

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the half-line {L > ε} in words."""
        return (
            "outcomes below the point where the density under P exceeds "
            f"e^{epsilon} times that under Q, which is {self.distance} scales higher"
        )


@declared
class TruncatedLaplace(SymmetricDensity):
    """Release the true scalar answer plus noise with density ∝ e^{−|x|/b} on [−A, A].

    Geng, Ding, Guo and Kumar (2020). The error is at most A, at the cost of a δ > 0: for b = Δ/ε
    and A = b ln(1 + (e^ε − 1)/(2δ)) the mechanism is exactly (ε, δ)-DP.

    Parameters
    ----------
    scale
        b > 0.
    bound
        A ≥ sensitivity.
    sensitivity
        Δ, the largest distance between the true answers on two neighbours.

    Notes
    -----
    The full shift is worst, as for every log-concave density f: f(x − d)/f(x) increases in x where
    it is defined, so the best event is a half-line, whose probability increases with the shift.
    """

    example = "TruncatedLaplace(scale=2, bound=20)"
    noise_argument = None

    scale: Positive = Positive()
    bound: Positive = Positive()
    sensitivity: Positive = Positive(1)

    def __post_init__(self) -> None:
        if self.bound < self.sensitivity:
            raise expected("bound", self.bound, f"≥ sensitivity={self.sensitivity}")

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pair at distance `sensitivity`."""
        return WorstCase.symmetric(
            TruncatedLaplacePair(self.sensitivity / self.scale, self.bound / self.scale),
            "The density is log-concave, so the best event is a half-line, whose probability "
            "increases with the shift: the worst pair is at distance sensitivity.",
        )

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` releases."""
        ends = -np.expm1(-float(self.bound / self.scale))
        magnitude = -np.log1p(-ends * rng.random(size)) * float(self.scale)
        drawn: Array = magnitude * rng.choice([-1.0, 1.0], size)
        return drawn

    def _rest(self) -> arb:
        """Return 1/(e^a − 1), a = A/b."""
        return 1 / (self.bound / self.scale).ball().expm1()

    def variances(self) -> list[arb]:
        """Return [2b² − (A² + 2Ab)/(e^a − 1)]."""
        b, most = self.scale.ball(), self.bound.ball()
        return [2 * b * b - (most * most + 2 * most * b) * self._rest()]

    def mean_absolute_error(self) -> arb:
        """Return b − A/(e^a − 1)."""
        return self.scale.ball() - self.bound.ball() * self._rest()

    def quantile(self, probability: ExactReal) -> arb:
        """Return −sgn(2p − 1) b ln(1 − (1 − e^{−a})|2p − 1|), a = A/b; −A at 0 and A at 1."""
        p = probability.rational
        if p in (0, 1):
            return self.bound.ball() if p else -self.bound.ball()
        away = 2 * probability.ball() - 1 if p is None else ball(2 * p - 1)
        lost = abs(away) * (-(self.bound / self.scale).ball()).expm1()
        return -away.sgn() * self.scale.ball() * lost.log1p()


# --- The staircase mechanism ----------------------------------------------------------------------

Cost = Literal["absolute", "variance"]


@declared
class Staircase(SymmetricDensity, FiniteLaws):
    """Release a real answer plus noise whose density is a geometric staircase.

    Let Δ be the sensitivity and b = e^{−ε}. The density at x is a·b^{n(|x|/Δ)}/Δ, where
    n(y) = ⌊y⌋ + 1[y − ⌊y⌋ ≥ γ] increases by 1 after intervals of alternating lengths γ and 1 − γ,
    and a = (1 − b)/(2(γ + b(1 − γ))) (Geng and Viswanath, "The Optimal Noise-Adding Mechanism in
    Differential Privacy", 2016). The mechanism is ε-DP.

    Parameters
    ----------
    epsilon
        ε > 0, the largest privacy loss.
    gamma
        γ in [0, 1]; 0 and 1 give the same law. `optimal_gamma` returns the γ of least error.
    sensitivity
        Δ > 0, the largest distance between the true answers on two neighbours, for whichever
        relation it was computed.
    """

    example = "Staircase(epsilon=1, gamma='0.4')"

    noise_argument = "epsilon"
    noise_grows = False

    epsilon: Positive = Positive()
    gamma: Probability = Probability()
    sensitivity: Positive = Positive(1)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pair at distance Δ, whose loss is −ε, 0 or ε."""
        return WorstCase.symmetric(
            FinitePair(self, 0),
            "For a shift s in (0, Δ], n increases and n(y + 1) = n(y) + 1, so the loss is −ε, 0 or "
            "ε. Reflection exchanges P and Q, so the profile follows from p = P(L = ε) alone, "
            "H(x) = p(1 − e^{x−ε}) for 0 ≤ x ≤ ε and H(−x) = 1 − e^{−x} + e^{−x} H(x), and "
            "increases with p. At x = 0 H is the total variation distance, which for a symmetric "
            "unimodal density is P(|noise| ≤ s/2): it increases with s, so s = Δ is worst.",
        )

    def outcomes(self, index: int) -> Sequence[object]:
        """Describe the outcomes x of loss ε, 0 and −ε, for true answers Δ (P) and 0 (Q)."""
        gamma, distance = self.gamma, self.sensitivity
        cuts = [f"(1 - {gamma})*{distance}", f"{gamma}*{distance}"]
        near, far = cuts if gamma >= _HALF else cuts[::-1]
        return f"x >= {far}", f"{near} <= x < {far}", f"x < {near}"

    def masses(self, index: int) -> tuple[list[arb], list[arb]]:
        """Return the masses of the losses ε, 0, −ε under P and Q.

        They follow from P(L = ε) = P(|noise| ≤ Δ/2)/(1 − b).
        """
        b, gamma = self._ratio(), self.gamma.ball()
        half, fall = _HALF.ball(), self._fall()
        step = gamma + b * (1 - gamma)
        if self.gamma == _HALF:
            high, middle = half / step, arb(0)
        elif self.gamma > _HALF:
            high, middle = half / step, (gamma - half) * fall / step
        else:
            high, middle = (gamma + b * (half - gamma)) / step, b * (half - gamma) * fall / step
        return [high, middle, high * b], [high * b, middle, high]

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return ε, 0, −ε."""
        return [self.epsilon, ExactReal.of_rational(0), -self.epsilon]

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` releases: its sign, ⌊|x|/Δ⌋, and the place within a period."""
        gamma, b = float(self.gamma), math.exp(-float(self.epsilon))
        whole = rng.geometric(-math.expm1(-float(self.epsilon)), size) - 1
        inner = rng.random(size) * (gamma + b * (1 - gamma)) < gamma
        place = rng.random(size)
        part = np.where(inner, gamma * place, gamma + (1 - gamma) * place)
        sign = 1 - 2 * rng.integers(0, 2, size)
        return sign * (whole + part) * float(self.sensitivity)

    def lattice_sampler(self) -> LatticeSampler:
        """Return a sampler of staircase noise on a lattice, for every entry of an answer."""
        noise = StaircaseNoise(self.epsilon.ball, self.gamma.ball, self.sensitivity.ball)
        return LatticeSampler(noise, repeated=True)

    def variances(self) -> list[arb]:
        """Return [Δ² (b(1 + b)/(1 − b)² + (B/A) b/(1 − b) + C/A)].

        Up to a common factor, A = γ + b(1 − γ), B/2 with B = γ² + b(1 − γ²), and
        C = (γ³ + b(1 − γ³))/3 are the moments of order 0, 1 and 2 of the density on [0, Δ], Δ = 1.
        """
        b, fall = self._ratio(), self._fall()
        first, second, third = (self._moment(power) for power in (1, 2, 3))
        spread = b * (1 + b) / fall**2 + second / first * b / fall + third / (3 * first)
        return [self.sensitivity.ball() ** 2 * spread]

    def mean_absolute_error(self) -> arb:
        """Return E|noise| = Δ (b/(1 − b) + B/(2A)), with A and B as in `variances`."""
        ratio = self._moment(2) / (2 * self._moment(1))
        return self.sensitivity.ball() * (self._ratio() / self._fall() + ratio)

    def quantile(self, probability: ExactReal) -> arb:
        """Return the quantile, from P(noise > kΔ) = b^k/2 and the two densities in a period."""
        if probability < _HALF:
            return -self._upper_quantile(probability.ball())
        return self._upper_quantile(complement(probability))

    def _upper_quantile(self, rest: arb) -> arb:
        """Return the point that the noise exceeds with probability `rest` ≤ 1/2."""
        if rest.is_zero():
            return arb.pos_inf()
        epsilon, b, gamma = self.epsilon.ball(), self._ratio(), self.gamma.ball()
        # If `whole` is one period too small, the result is the same: the distribution function
        # continues with the slope with which this period ends.
        whole = ((-(2 * rest).log() / epsilon).lower()).floor().max(arb(0))
        height = self._fall() / (2 * self._moment(1))
        inside = _HALF.ball() - rest * (whole * epsilon).exp()
        part = (inside / height).max(gamma + (inside - height * gamma) / (height * b))
        return self.sensitivity.ball() * (whole + part)

    def _ratio(self) -> arb:
        """Return b = e^{−ε}."""
        return (-self.epsilon.ball()).exp()

    def _fall(self) -> arb:
        """Return 1 − b."""
        return -(-self.epsilon.ball()).expm1()

    def _moment(self, power: int) -> arb:
        """Return γ^power + b(1 − γ^power)."""
        b, value = self._ratio(), self.gamma.ball() ** power
        return value + b * (1 - value)


def optimal_gamma(
    epsilon: Number, cost: Cost, *, relative_width: Fraction = RELATIVE_WIDTH
) -> Interval:
    """Enclose the γ that minimises E|noise| ("absolute") or the variance ("variance").

    Let b = e^{−ε}. E|noise| depends on γ through B/A = (b + (1 − b)γ²)/(b + (1 − b)γ), whose only
    stationary point is γ = 1/(1 + e^{ε/2}). The derivative of the variance vanishes if
    ((1 − b)γ + b)³ = b(1 + b)/2 (Geng and Viswanath 2016, for the ℓ1 and ℓ2 cost). A rounded γ is
    ε-DP too, and increases the error only by a term of second order in the rounding.

    Raises
    ------
    InvalidInputError
        If ε ≤ 0, or `cost` is neither "absolute" nor "variance".
    """
    eps = exact(epsilon, "epsilon")
    if eps.sign <= 0:
        raise expected("epsilon", epsilon, "> 0", "Give a positive number.")
    if cost not in ("absolute", "variance"):
        known = ("absolute", "variance")
        raise expected("cost", cost, f"to be one of {list(known)}", suggestion(str(cost), known))

    def best() -> arb:
        if cost == "absolute":
            return 1 / (1 + (eps.ball() / 2).exp())
        b = (-eps.ball()).exp()
        return ((b * (1 + b) / 2).root(3) - b) / -(-eps.ball()).expm1()

    return enclose(best, relative_width=relative_width)


# --- The logistic mechanism -----------------------------------------------------------------------


@final
@dataclass(frozen=True)
class LogisticPair(MirroredPair):
    """Two logistic laws of scale 1: P at t > 0 and Q at 0, with densities f(x − t) and f(x).

    Let u = 1/(1 + e^{−x}) be the distribution function of Q. Then f(x) = u(1 − u), and the ratio of
    the densities is e^t/V² with V = u + e^t(1 − u). Under Q, u is uniform on [0, 1], so V is
    uniform on [1, e^t], and L = t − 2 ln V has density e^{−l/2}/(4 sinh(t/2)) on [−t, t]. Under P
    its density is e^{l/2}/(4 sinh(t/2)). The closed forms follow by integration, such as
    H(ε) = (1 − e^{(ε−t)/2})²/(1 − e^{−t}) for |ε| ≤ t. Reflection x → t − x exchanges P and Q.
    """

    law_name = "logistic"

    distance: ExactReal

    def excess(self, epsilon: ExactReal) -> arb:
        """Return (1 − e^{(ε−t)/2})²/(1 − e^{−t})."""
        t = self.distance.ball()
        return ((epsilon.ball() - t) / 2).expm1() ** 2 / -(-t).expm1()

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return (1 − r)/N, (1 − s)r/N, (1 − r)s/N and (1 − s)/N, where N = 1 − e^{−t}.

        Reflection exchanges r = e^{(ε−t)/2} and s = e^{−(ε+t)/2}.
        """
        if epsilon >= self.distance:
            return Tails(arb(0), arb(1), arb(0), arb(1))
        if epsilon <= -self.distance:
            return Tails(arb(1), arb(0), arb(1), arb(0))
        t, eps = self.distance.ball(), epsilon.ball()
        high, low, whole = (eps - t) / 2, -(eps + t) / 2, -(-t).expm1()
        upper, lower = -high.expm1() / whole, -low.expm1() / whole
        return Tails(upper, lower * high.exp(), upper * low.exp(), lower)

    def renyi(self, order: arb) -> arb:
        """Return D_a = ln M/(a − 1), M = E_Q[e^{aL}] = sinh((a − ½)t)/((2a − 1) sinh(t/2)).

        D_1 = t coth(t/2) − 2 is the derivative of ln M at a = 1.
        """
        t, twice = self.distance.ball(), 2 * order - 1
        if order == 1:
            return t * (t / 2).coth() - 2
        shape = (-(-twice * t).expm1()).log() - twice.log() - (-(-t).expm1()).log()
        return t + shape / (order - 1)

    @property
    def known(self) -> Known:
        """Return the largest loss t."""
        return Known(max_loss=lambda: self.distance)

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the half-line {L > ε} in words."""
        return (
            "outcomes beyond the point where the density around the true answer under P, which is "
            f"{self.distance} scales higher, exceeds e^{epsilon} times that under Q"
        )


@declared
class Logistic(SymmetricDensity):
    """Release the true scalar answer plus logistic noise, density e^{−x/s}/(s(1 + e^{−x/s})²).

    The mechanism is exactly (sensitivity/s)-DP. Its loss is bounded, as that of Laplace noise, but
    has no atoms, so δ(ε) decreases to 0 quadratically as ε approaches the largest loss.

    Parameters
    ----------
    scale
        s > 0; the standard deviation is πs/√3.
    sensitivity
        The largest distance between the true answers on two neighbours, for whichever relation it
        was computed.

    Notes
    -----
    The full shift is worst. *Proof.* The density f is log-concave, so f(x − d)/f(x) increases in x
    for every d > 0, and the best event that distinguishes the shift d from no shift is a half-line:
    H_d(ε) = max over c of P(Z ≥ c − d) − e^ε P(Z ≥ c). Each term increases with d. A shift by −d is
    the mirror image of a shift by d.
    """

    example = "Logistic(scale=2)"
    noise_argument = "scale"

    scale: Positive = Positive()
    sensitivity: Positive = Positive(1)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pair of logistic laws at distance `sensitivity`."""
        return WorstCase.symmetric(
            LogisticPair(self.sensitivity / self.scale),
            "The density is log-concave, so the best event is a half-line, whose probability "
            "increases with the shift: the worst pair is at distance sensitivity.",
        )

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` releases."""
        return rng.logistic(0.0, float(self.scale), size)

    def inverse_noise(self) -> InverseNoise:
        """Return |noise| as a function of an exponential variable E: s(E + ln(2 − e^{−E})).

        For s = 1, P(noise ≥ x) = 1/(1 + e^x), which equals e^{−y}/2 at
        x = ln(2e^y − 1) = y + ln(2 − e^{−y}). The derivative of x in y is at most 2.
        """
        return InverseNoise(self.scale, _magnitude, _magnitude_ball, 2.0, _logistic_survival)

    def variances(self) -> list[arb]:
        """Return [π²s²/3]."""
        return [(arb.pi() * self.scale.ball()) ** 2 / 3]

    def mean_absolute_error(self) -> arb:
        """Return 2s ln 2."""
        return 2 * self.scale.ball() * arb(2).log()

    def quantile(self, probability: ExactReal) -> arb:
        """Return s ln(p/(1 − p)); −∞ at 0 and +∞ at 1."""
        p = probability.rational
        if p in (0, 1):
            return arb.pos_inf() if p else arb.neg_inf()
        return self.scale.ball() * (probability.ball() / complement(probability)).log()


def _magnitude(xp: Any, y: Any) -> Any:
    return y + xp.log1p(-xp.expm1(-y))


def _magnitude_ball(y: arb) -> arb:
    return y + (-(-y).expm1()).log1p()


def _logistic_survival(x: NDArray[np.float64]) -> NDArray[np.float64]:
    decay = np.exp(-x)
    tail: NDArray[np.float64] = decay / (1 + decay)
    return tail

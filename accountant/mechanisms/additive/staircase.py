"""The staircase mechanism."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.noise import SymmetricDensity
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.validate import Positive, Probability
from dpassay.accountant.errors import expected, suggestion
from dpassay.accountant.numbers.exact import ExactReal, Number, exact
from dpassay.accountant.numbers.interval import RELATIVE_WIDTH, Interval, enclose
from dpassay.accountant.pairs.finite import FiniteLaws, FinitePair
from dpassay.accountant.release.lattice import LatticeSampler
from dpassay.accountant.release.lattice_noise import StaircaseNoise

Cost = Literal["absolute", "variance"]
_HALF = ExactReal.of_rational(Fraction(1, 2))
_ONE = ExactReal.of_rational(1)


@declared
class Staircase(SymmetricDensity, FiniteLaws):
    """Release a real answer plus noise whose density is a geometric staircase.

    With Δ the sensitivity and b = e^{−ε}, the density at x is a·b^{n(|x|/Δ)}/Δ where
    n(y) = ⌊y⌋ + 1[y − ⌊y⌋ ≥ γ] counts steps of widths γ, 1 − γ, γ, … in turn, and
    a = (1 − b)/(2(γ + b(1 − γ))) (Geng and Viswanath, "The Optimal Noise-Adding Mechanism in
    Differential Privacy", 2016). It is ε-DP.

    Parameters
    ----------
    epsilon
        ε > 0, the largest privacy loss.
    gamma
        γ in [0, 1]; 0 and 1 are the same law. `optimal_gamma` gives the best.
    sensitivity
        Δ > 0, the largest distance between the true answers on two neighbours (for whichever
        relation it was computed).
    """

    example = "Staircase(epsilon=1, gamma='0.4')"

    noise_argument = "epsilon"
    noise_grows = False

    epsilon: Positive = Positive()
    gamma: Probability = Probability()
    sensitivity: Positive = Positive(1)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pair at the full distance, where the loss is −ε, 0 or ε."""
        return WorstCase.symmetric(
            FinitePair(self, 0),
            "For a shift s in (0, Δ], n increases and n(y + 1) = n(y) + 1, so the loss is −ε, 0 or "
            "ε. Reflection exchanges P and Q, so the profile follows from p = P(L = ε) alone, "
            "H(x) = p(1 − e^{x−ε}) for 0 ≤ x ≤ ε and H(−x) = 1 − e^{−x} + e^{−x} H(x), and "
            "increases with p. At x = 0 H is the total variation distance, which for a symmetric "
            "unimodal density is P(|noise| ≤ s/2): it increases with s, so s = Δ is worst.",
        )

    def outcomes(self, index: int) -> Sequence[object]:
        """Name the sets of outcomes x with loss ε, 0 and −ε, for true answers Δ and 0."""
        gamma, distance = self.gamma, self.sensitivity
        cuts = [f"(1 - {gamma})*{distance}", f"{gamma}*{distance}"]
        near, far = cuts if gamma >= _HALF else cuts[::-1]
        return f"x >= {far}", f"{near} <= x < {far}", f"x < {near}"

    def masses(self, index: int) -> tuple[list[arb], list[arb]]:
        """Return the masses of P and Q by loss; P(L = ε) = P(|noise| ≤ Δ/2)/(1 − b)."""
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
        """Draw the noise of `size` releases: sign, whole steps, which part, and where in it."""
        gamma, b = float(self.gamma), math.exp(-float(self.epsilon))
        whole = rng.geometric(-math.expm1(-float(self.epsilon)), size) - 1
        inner = rng.random(size) * (gamma + b * (1 - gamma)) < gamma
        place = rng.random(size)
        part = np.where(inner, gamma * place, gamma + (1 - gamma) * place)
        sign = 1 - 2 * rng.integers(0, 2, size)
        return sign * (whole + part) * float(self.sensitivity)

    def lattice_sampler(self) -> LatticeSampler:
        """Return staircase noise for every entry of an answer, on a lattice."""
        noise = StaircaseNoise(self.epsilon.ball, self.gamma.ball, self.sensitivity.ball)
        return LatticeSampler(noise, repeated=True)

    def variances(self) -> list[arb]:
        """Return [Δ² (b(1 + b)/(1 − b)² + (B/A) b/(1 − b) + C/A)].

        A = γ + b(1 − γ), B = γ² + b(1 − γ²) and C = (γ³ + b(1 − γ³))/3 are the moments of the
        first two steps.
        """
        b, fall = self._ratio(), self._fall()
        first, second, third = (self._moment(power) for power in (1, 2, 3))
        spread = b * (1 + b) / fall**2 + second / first * b / fall + third / (3 * first)
        return [self.sensitivity.ball() ** 2 * spread]

    def mean_absolute_error(self) -> arb:
        """Return E|noise| = Δ (b/(1 − b) + B/(2A)), in the terms of `variances`."""
        ratio = self._moment(2) / (2 * self._moment(1))
        return self.sensitivity.ball() * (self._ratio() / self._fall() + ratio)

    def quantile(self, probability: ExactReal) -> arb:
        """Return the quantile, from P(noise > kΔ) = b^k/2 and the two slopes within a step."""
        if probability < _HALF:
            return -self._upper_quantile(probability.ball(), probability.sign == 0)
        rest = _complement(probability)
        return self._upper_quantile(rest, probability == _ONE)

    def _upper_quantile(self, rest: arb, unbounded: bool) -> arb:
        """Return the point that the noise exceeds with probability `rest` ≤ 1/2."""
        if unbounded:
            return arb.pos_inf()
        epsilon, b, gamma = self.epsilon.ball(), self._ratio(), self.gamma.ball()
        # One step too few does no harm: the next step has the slope on which this one ends.
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


def _complement(probability: ExactReal) -> arb:
    """Return 1 − p, narrow also where p is near 1."""
    if probability.rational is not None:
        return ExactReal.of_rational(1 - probability.rational).ball()
    return 1 - probability.ball()


def optimal_gamma(
    epsilon: Number, cost: Cost, *, relative_width: Fraction = RELATIVE_WIDTH
) -> Interval:
    """Enclose the γ of least E|noise| ("absolute") or least variance ("variance").

    With b = e^{−ε}, E|noise| depends on γ through B/A = (b + (1 − b)γ²)/(b + (1 − b)γ), whose
    only stationary point is γ = 1/(1 + e^{ε/2}); the derivative of the variance vanishes where
    ((1 − b)γ + b)³ = b(1 + b)/2 (Geng and Viswanath 2016, for the ℓ1 and ℓ2 cost). Any rounding
    of it is as private, and costs only the square of its distance.

    Raises
    ------
    InvalidInputError
        If ε ≤ 0 or the cost is neither of the two.
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

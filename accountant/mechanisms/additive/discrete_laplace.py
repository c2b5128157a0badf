"""The discrete Laplace (geometric) mechanism."""

from __future__ import annotations

from flint import arb

from dpassay.accountant.core.arrays import Array
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import Integer, Positive
from dpassay.accountant.mechanisms.additive.added_integers import LogConcaveIntegers
from dpassay.accountant.pairs.discrete_laplace import DiscreteLaplacePair
from dpassay.accountant.release import sampling


@declared
class DiscreteLaplace(LogConcaveIntegers):
    """Release a true integer plus Z, P(Z = z) = tanh(1/2b) e^{−|z|/b}, z an integer.

    The geometric mechanism of Ghosh, Roughgarden and Sundararajan (2009) with α = e^{−1/b};
    exactly sensitivity/b-DP.

    Parameters
    ----------
    scale
        b > 0. The variance is 1/(2 sinh²(1/2b)).
    sensitivity
        The largest distance, an integer ≥ 1, between the true answers on two neighbours (for
        whichever relation it was computed).

    Notes
    -----
    The full shift is worst, as for `DiscreteGaussian`: the law is log-concave.
    """

    example = "DiscreteLaplace(scale=2)"

    noise_argument = "scale"

    scale: Positive = Positive()
    sensitivity: Integer = Integer(1, least=1)

    def pair(self) -> DiscreteLaplacePair:
        """Return the laws of Z + sensitivity and Z."""
        return DiscreteLaplacePair(self.scale, self.sensitivity)

    def sample(self, size: int, *, rng: Randomness) -> Array:
        """Draw the integer noise of `size` releases, exactly."""
        if self.scale.rational is not None:
            return sampling.discrete_laplace(self.scale.rational, size, rng=rng)
        return super().sample(size, rng=rng)

    def mean_absolute_error(self) -> arb:
        """Return 1/sinh(1/b)."""
        return 1 / (1 / self.scale.ball()).sinh()

    def probability_exact(self) -> arb:
        """Return tanh(1/2b)."""
        return (1 / (2 * self.scale.ball())).tanh()

    def variances(self) -> list[arb]:
        """Return [1/(2 sinh²(1/2b))]."""
        return [1 / (2 * (1 / (2 * self.scale.ball())).sinh() ** 2)]

    def at_most(self, x: int) -> arb:
        """Return P(Z ≤ x)."""
        rate = 1 / self.scale.ball()
        if x < 0:
            return (rate * x).exp() / (1 + (-rate).exp())
        return 1 - (-rate * (x + 1)).exp() / (1 + (-rate).exp())

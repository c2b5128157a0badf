"""The discrete Laplace (geometric) mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from flint import arb

from accountant.core.adjacency import Adjacency
from accountant.core.mechanism import Mechanism
from accountant.core.pair import WorstCase
from accountant.core.randomness import SECURE
from accountant.core.validate import Integer, Positive
from accountant.mechanisms.additive.integer_quantile import integer_quantile
from accountant.numbers.exact import ExactReal
from accountant.pairs.discrete_laplace import DiscreteLaplacePair

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from accountant.core.randomness import Randomness


@final
@dataclass(frozen=True, repr=False)
class DiscreteLaplace(Mechanism):
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
    The full shift is worst. The law is log-concave, so p(z − d)/p(z) is non-decreasing in z for
    every d ≥ 0 and the best event against the shift d is a half-line:
    H_d(ε) = max over j of P(Z ≥ j − d) − e^ε P(Z ≥ j), where each term is non-decreasing in d.
    A shift by −d is the mirror image of a shift by d.
    """

    example = "DiscreteLaplace(scale=2)"

    noise_argument = "scale"

    scale: Positive = Positive()
    sensitivity: Integer = Integer(1, least=1)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the laws of Z + sensitivity and Z."""
        return WorstCase.symmetric(
            DiscreteLaplacePair(self.scale, self.sensitivity),
            "The law is log-concave, so the best event is a half-line, whose probability "
            "increases with the shift: the worst pair is at distance sensitivity.",
        )

    def sample(self, size: int, *, rng: Randomness) -> NDArray[Any]:
        """Draw the integer noise of `size` releases, exactly."""
        from accountant.release import sampling

        if self.scale.rational is not None:
            return sampling.discrete_laplace(self.scale.rational, size, rng=rng)
        return sampling.integers_by_inversion(self._at_most, size, rng=rng)

    def release(
        self, value: ArrayLike, size: int | None = None, *, rng: Randomness = SECURE
    ) -> NDArray[Any]:
        """Add exact integer noise to every entry of an integer answer."""
        from accountant.release.lattice import release_integers

        return release_integers(lambda count: self.sample(count, rng=rng), value, size)

    @property
    def is_symmetric(self) -> bool:
        """True."""
        return True

    def worst_shift(self) -> Any:
        """Return the full distance."""
        return self.sensitivity

    def mean_absolute_error(self) -> arb:
        """Return 1/sinh(1/b)."""
        return 1 / (1 / self.scale.ball()).sinh()

    def probability_exact(self) -> arb:
        """Return tanh(1/2b)."""
        return (1 / (2 * self.scale.ball())).tanh()

    def variances(self) -> list[arb]:
        """Return [1/(2 sinh²(1/2b))]."""
        return [1 / (2 * (1 / (2 * self.scale.ball())).sinh() ** 2)]

    def quantile(self, probability: ExactReal) -> arb:
        """Return the least integer x with P(Z ≤ x) ≥ probability."""
        return integer_quantile(self._at_most, lambda x: self._at_most(-x - 1), probability)

    def _at_most(self, x: int) -> arb:
        """Return P(Z ≤ x)."""
        rate = 1 / self.scale.ball()
        if x < 0:
            return (rate * x).exp() / (1 + (-rate).exp())
        return 1 - (-rate * (x + 1)).exp() / (1 + (-rate).exp())

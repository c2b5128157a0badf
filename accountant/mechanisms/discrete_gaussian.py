"""The discrete Gaussian mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from flint import arb

from accountant._validate import Integer, Positive
from accountant.adjacency import Adjacency
from accountant.mechanism import Mechanism
from accountant.mechanisms.integer_quantile import integer_quantile
from accountant.number import ExactReal
from accountant.pair import WorstCase
from accountant.pairs.discrete_gaussian import DiscreteGaussianPair
from accountant.pairs.theta import upper_tail, variance
from accountant.randomness import SECURE

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from accountant.randomness import Randomness


@final
@dataclass(frozen=True, repr=False)
class DiscreteGaussian(Mechanism):
    """Release a true integer plus Z, P(Z = z) ∝ e^{−z²/2σ²}, z an integer.

    Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020),
    Definition 1.

    Parameters
    ----------
    parameter
        σ² > 0 of the formula. It is *not* the variance, which is smaller (`variances`): by less
        than 10⁻⁶ of σ² where σ² ≥ 1, but without bound where σ² is small.
    sensitivity
        The largest distance, an integer ≥ 1, between the true answers on two neighbours (for
        whichever relation it was computed).

    Notes
    -----
    The full shift is worst. The law is log-concave: p(z)² ≥ p(z − 1) p(z + 1). So p(z − d)/p(z)
    is non-decreasing in z for every d ≥ 0, and the best event against the shift d is a half-line:
    H_d(ε) = max over m of P(Z ≥ m − d) − e^ε P(Z ≥ m), where each term is non-decreasing in d.
    A shift by −d is the mirror image of a shift by d.

    The tight zCDP parameter is sensitivity²/2σ², as for the continuous Gaussian: it bounds
    D_a/a at every order a and is attained at every a for which a·sensitivity is an integer.
    """

    noise_argument = "parameter"

    parameter: Positive = Positive()
    sensitivity: Integer = Integer(1, least=1)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the laws of Z + sensitivity and Z."""
        return WorstCase.symmetric(
            DiscreteGaussianPair(self.parameter, self.sensitivity),
            "The law is log-concave, so the best event is a half-line, whose probability "
            "increases with the shift: the worst pair is at distance sensitivity.",
        )

    @property
    def dimension(self) -> int:
        """One."""
        return 1

    def sample(self, size: int, *, rng: Randomness) -> NDArray[Any]:
        """Draw the integer noise of `size` releases, exactly."""
        from accountant import sampling

        if self.parameter.rational is not None:
            return sampling.discrete_gaussian(self.parameter.rational, size, rng=rng)
        return sampling.integers_by_inversion(self._at_most, size, rng=rng)

    def release(
        self, value: ArrayLike, size: int | None = None, *, rng: Randomness = SECURE
    ) -> NDArray[Any]:
        """Add exact integer noise to every entry of an integer answer."""
        from accountant.lattice import release_integers

        return release_integers(lambda count: self.sample(count, rng=rng), value, size)

    def variances(self) -> list[arb]:
        """Return [Σ z² e^{−z²/2σ²}/Σ e^{−z²/2σ²}], below σ²."""
        return [variance(self.parameter)]

    def quantile(self, probability: ExactReal) -> arb:
        """Return the least integer x with P(Z ≤ x) ≥ probability."""
        return integer_quantile(
            self._at_most, lambda x: upper_tail(self.parameter, x + 1), probability
        )

    def _at_most(self, x: int) -> arb:
        """Return P(Z ≤ x) = P(Z ≥ −x)."""
        return upper_tail(self.parameter, -x)

"""Gaussian noise on a sum to which a record contributes a random amount."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency, require
from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.noise import GaussianNoise
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.validate import Positive, Probabilities, Reals
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.wrappers.subsampled import PoissonSubsampled
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.pairs.gaussian_mixture import GaussianMixturePair, mixture

_ZERO, _TWO = ExactReal.of_rational(0), ExactReal.of_rational(2)


@declared
class MixtureOfGaussians(GaussianNoise):
    """Release a sum plus N(0, σ²) noise; a record adds at most s_i in ℓ2 norm with probability w_i.

    Parameters
    ----------
    standard_deviation
        σ > 0, per coordinate.
    sensitivities
        The s_i ≥ 0.
    sampling_probs
        The w_i, rational, of sum exactly 1. What is drawn is independent of what the other records
        add.

    Notes
    -----
    Two sensitivities, one of them 0, are Poisson subsampling; a person with k records, each
    sampled with probability q, has sensitivities 0, …, k with binomial probabilities. For
    add/remove, with Q = N(0, σ²) the law without the record, the pair
    (Σ w_i N(s_i, σ²), N(0, σ²)) dominates for REMOVE and its reverse for ADD: contributions in one
    direction, each as long as it may be, are worst (Choquette-Choo, Ganesh, Steinke and Thakurta
    2024; Ganesh 2024 for groups), and attain it.

    Where a record is replaced by another, both adding at most s_i in case i, the worst pair is
    (Σ w_i N(s_i, σ²), Σ w_i N(−s_i, σ²)). *Proof.* Given what is drawn for all others, let A_i and
    A'_i be the laws in case i, B that with neither record. For an event S with B(S) = Φ(c), by
    Neyman and Pearson, A_i(S) ≤ Φ(c + s_i/σ) and A'_i(S) ≥ Φ(c − s_i/σ), with equality for all i
    at once for a half-line and opposite shifts: Σ w_i (A_i(S) − e^ε A'_i(S)) is at most that of the
    pair. Given outputs only, it is jointly convex.
    """

    example = (
        "MixtureOfGaussians(standard_deviation=1, sensitivities=[0, 1, 2], "
        "sampling_probs=['0.81', '0.18', '0.01'])"
    )

    noise_argument = "standard_deviation"

    standard_deviation: Positive = Positive()
    sensitivities: Reals = Reals(least=0)
    sampling_probs: Probabilities = Probabilities()

    def __post_init__(self) -> None:
        if len(self.sensitivities) != len(self.sampling_probs):
            raise InvalidInputError(
                f"Expected sampling_probs to have {len(self.sensitivities)} entries, one for each "
                f"sensitivity, not {len(self.sampling_probs)}."
            )

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the mixture against N(0, 1), in units of σ, and the reverse.

        Of a record that is replaced, the mixtures of opposite shifts. Raises AdjacencyError unless
        a relation is named.
        """
        relation, simple = require(adjacency, self), self._simple()
        if simple is not None and relation is Adjacency.ADD_REMOVE:
            return simple.worst_case(relation)
        if isinstance(simple, Gaussian):
            return self._replaced(simple).worst_case(relation)
        if isinstance(simple, PoissonSubsampled):
            return simple.worst_case(relation)
        means = [each / self.standard_deviation for each in self.sensitivities]
        moved = mixture(self.sampling_probs, means)
        if relation is Adjacency.REPLACE_ONE:
            opposite = mixture(self.sampling_probs, [-each for each in means])
            return WorstCase.symmetric(
                GaussianMixturePair(moved, opposite),
                "In each case the two laws lie at most its sensitivity from the one with neither "
                "record; opposite shifts are worst, and attained without other records.",
            )
        pair = GaussianMixturePair(moved, ((Fraction(1), _ZERO),))
        return WorstCase(
            (pair,),
            (pair.reverse(),),
            "Shifts in one direction, each as long as it may be, are worst, and attained without "
            "other records.",
        )

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return that of a shift that is sure, twice as long where a record is replaced."""
        simple = self._simple()
        if not isinstance(simple, Gaussian):
            return None
        if require(adjacency, self) is Adjacency.REPLACE_ONE:
            simple = self._replaced(simple)
        return simple.exact_gaussian_mu(adjacency)

    def _replaced(self, simple: Gaussian) -> Gaussian:
        return Gaussian(self.standard_deviation, _TWO * simple.l2_sensitivity)

    def _simple(self) -> Mechanism | None:
        """Return the same release by its name, where it has one."""
        parts = mixture(self.sampling_probs, self.sensitivities)
        least, largest = parts[0][1], parts[-1][1]
        if largest.sign == 0:
            return PoissonSubsampled(Gaussian(self.standard_deviation), 0)
        noise = Gaussian(self.standard_deviation, largest)
        if len(parts) == 1:
            return noise
        if len(parts) == 2 and least.sign == 0:
            return PoissonSubsampled(noise, parts[-1][0])
        return None

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of one coordinate of `size` releases."""
        return Gaussian(self.standard_deviation).sample(size, rng=rng)

    def variances(self) -> Sequence[arb]:
        """Return [σ²]: the error of sampling is not noise."""
        return [self.standard_deviation.ball() ** 2]

    def quantile(self, probability: ExactReal) -> arb:
        """Return σ Φ⁻¹(probability)."""
        return Gaussian(self.standard_deviation).quantile(probability)

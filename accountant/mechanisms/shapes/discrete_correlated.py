"""Correlated discrete Gaussian noise: the embedding of Algorithm 1 on integers."""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency, require
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import Integer, Positive, Rational
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.theta import variance
from dpassay.accountant.pairs.discrete_gaussian_product import DiscreteGaussianProductPair
from dpassay.accountant.release import sampling
from dpassay.accountant.release.lattice import integers


@declared
class DiscreteCorrelatedGaussian(Mechanism):
    """Release d counts and the number of records from integers with discrete Gaussian noise.

    Records lie in {0,1}^d. With C = p/q in lowest terms and v = (d + C²)/μ², release

        g_i = 2f_i − n + Z_i  (i = 1, …, d),    g_{d+1} = pn + W,

    Z_i discrete Gaussian of parameter v and W of parameter q²v, and from these the counts
    (g_i + g_{d+1}/p)/2 and the size g_{d+1}/p (Lebeda, "note for practitioners"). It is exactly
    μ²/2-zCDP under add/remove. It is *not* μ-GDP: its Kullback–Leibler divergence, an integral of
    the profile with positive weights, is μ²/2 as for N(μ, 1) against N(0, 1), but its loss is
    discrete; so at some ε the profile exceeds the Gaussian one.

    Parameters
    ----------
    dimension
        d ≥ 1.
    mu
        μ > 0 of the continuous noise with the same parameters.
    c
        C > 0, rational; near d^{1/4} for the least query variance.
    """

    example = "DiscreteCorrelatedGaussian(dimension=4, mu=1, c='3/2')"

    # no noise_argument: the profile of discrete Gaussian noise need not be monotone in its
    # parameter (one integer, ε = 1: δ rises between parameters 0.5 and 0.56)

    dimension: Integer = Integer(least=1)
    mu: Positive = Positive()
    c: Rational = Rational(least=0, strict=True)

    @property
    def parameter(self) -> Fraction:
        """The parameter v = (d + C²)/μ² of Z_i, exactly."""
        return (self.dimension + self.c**2) / self.mu.square

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the product of d + 1 (add/remove) or d (replace-one) discrete pairs."""
        relation = require(adjacency, self)
        v, d = self.parameter, self.dimension
        if relation is Adjacency.ADD_REMOVE:
            pair = DiscreteGaussianProductPair(v, d, 1, self.c.denominator, self.c.numerator)
            why = "every record moves each g_i by ±1 and g_{d+1} by p; the laws are symmetric"
        else:
            pair = DiscreteGaussianProductPair(v, d, 2, 1, 0)
            why = (
                "a replacement moves g_i by −2, 0 or 2 and leaves n; dropping coordinates is "
                "post-processing, so moving all of them is worst"
            )
        return WorstCase.symmetric(pair, f"One pair up to reflection of coordinates: {why}.")

    def exact_rho(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return the tight ρ: μ²/2 under add/remove, 2dμ²/(d + C²) under replace-one."""
        if require(adjacency, self) is Adjacency.ADD_REMOVE:
            return ExactReal.of_rational(self.mu.square / 2)
        return ExactReal.of_rational(2 * self.dimension / self.parameter)

    def _parts(self) -> tuple[arb, arb]:
        """Return the variances of Z_i and of W/p."""
        q, p = self.c.denominator, self.c.numerator
        v = ExactReal.of_rational(self.parameter)
        return variance(v), variance(v * ExactReal.of_rational(q * q)) / p**2

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Release the counts and, last, the size: integers that are given exactly.

        Up to the noise a count is a fraction over 2p and the size one over p. The numerators are
        released integers; each quotient is rounded once, which looks at nothing else.
        """
        d, q, p = self.dimension, self.c.denominator, self.c.numerator
        answer = integers(value, coordinates=d + 1)
        z = sampling.discrete_gaussian(self.parameter, times * d, rng=rng).reshape(times, d)
        w = sampling.discrete_gaussian(self.parameter * q * q, times, rng=rng).reshape(times, 1)
        counts = (2 * p * answer[:d] + (p * z + w)) / (2 * p)
        released: Array = np.hstack([counts, (p * answer[d:] + w) / p]).astype(float)
        return released

    def variances(self) -> list[arb]:
        """Return (Var Z + Var W/p²)/4 for the counts, then Var W/p² for the size."""
        each, size = self._parts()
        return [(each + size) / 4] * self.dimension + [size]

    def covariance_matrix(self) -> list[list[arb]]:
        """Return the covariance of the counts and the size."""
        each, size = self._parts()
        d, own, common, with_size = self.dimension, (each + size) / 4, size / 4, size / 2
        rows = [[*(own if i == j else common for j in range(d)), with_size] for i in range(d)]
        return [*rows, [with_size] * d + [size]]

    def sample(self, size: int, *, rng: Randomness) -> Array:
        """Draw the noise of the counts and the size, one release per row.

        The integers Z and W are drawn exactly; only their final quotient is rounded.
        """
        d, q, p = self.dimension, self.c.denominator, self.c.numerator
        z = sampling.discrete_gaussian(self.parameter, size * d, rng=rng).reshape(size, d)
        w = sampling.discrete_gaussian(self.parameter * q * q, size, rng=rng).reshape(size, 1)
        result: Array = np.hstack([(p * z + w) / (2 * p), w / p]).astype(float)
        return result

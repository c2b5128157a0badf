"""Noise whose density falls with a norm: the K-norm mechanism of Hardt and Talwar (2010)."""

from __future__ import annotations

from typing import Any

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.mechanism import SymmetricDensity
from dpassay.accountant.core.pair import Pair, WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import Integer, OneOf, Positive
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms.additive.laplace import LaplacePair
from dpassay.accountant.pairs.ball_noise import BallNoisePair
from dpassay.accountant.release.lattice import LatticeSampler, independent


@declared
class KNorm(SymmetricDensity):
    """Release a vector of d answers plus noise with a density in proportion to e^{−‖x‖/b}.

    Its integral is d! b^d |K|, K the unit ball of the norm. It is exactly sensitivity/b-DP; in one
    dimension, and for any d where the norm is ℓ1, it is Laplace noise.

    Parameters
    ----------
    scale
        b > 0.
    dimension
        d, the number of answers.
    norm
        "l1", "l2" or "linf".
    sensitivity
        The largest distance in that norm between the true answers on two neighbours.

    Notes
    -----
    At distance t = sensitivity/b, in units of b, level sets are balls: for ε ≥ 0 and a shift v

    H_v(ε) = ∫ e^{−r} |(rK + v) ∖ (r + ε)K| dr / (d! |K|).

    For ‖v‖ ≤ t both balls contain a translate of sK, s = r − (t − ε)/2, so that H of no norm
    exceeds 1 − ∫ e^{−r} (s⁺)^d dr/d! = 1 − e^{(ε−t)/2}, that of Laplace noise. ℓ1 attains it by a
    shift of one coordinate, which the others do not see; ℓ∞ by one of all, as the cubes meet in a
    cube of side 2s. Of ℓ2 any direction is alike, and balls meet in less the farther apart they
    are (`dpassay.accountant.geometry.ball_loss`). For ε < 0 reflection gives the same.
    """

    example = "KNorm(scale=2, dimension=3)"
    noise_argument = "scale"

    scale: Positive = Positive()
    dimension: Integer = Integer(least=1)
    norm: OneOf = OneOf("l1", "l2", "linf", default="l2")
    sensitivity: Positive = Positive(1)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return two laws at the full distance."""
        t = self.sensitivity / self.scale
        if self.norm != "l2" or self.dimension == 1:
            pair: Pair = LaplacePair(t)
            reason = "No norm exceeds the profile of Laplace noise, and a shift attains it."
        else:
            pair = BallNoisePair(t, self.dimension)
            reason = "Level sets are balls, which meet in less the farther apart they are."
        return WorstCase.symmetric(pair, reason)

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` releases in floats, one row each.

        A point of K, uniform, times a radius that is Gamma(d + 1): level sets are balls. In the
        direction of a normal or Laplace vector, on the surface of K, it is Gamma(d).
        """
        shape, b = (size, self.dimension), float(self.scale)
        if self.norm == "linf":
            return rng.uniform(-b, b, shape) * rng.gamma(self.dimension + 1, size=(size, 1))
        at = rng.laplace(size=shape) if self.norm == "l1" else rng.normal(size=shape)
        order = 1 if self.norm == "l1" else 2
        radius = b * rng.gamma(self.dimension, size=(size, 1))
        drawn: Array = at * (radius / np.linalg.norm(at, ord=order, axis=1, keepdims=True))
        return drawn

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Release a true answer on a lattice where the coordinates of the noise are independent.

        Raises NotApplicableError elsewhere.
        """
        if self.norm != "l1" and self.dimension > 1:
            raise NotApplicableError(
                f"The coordinates of {self!r} depend on each other: no lattice sampler is known. "
                "Release noise with norm='l1'; `sample` simulates."
            )
        noise = independent(lambda: [self.scale.ball()] * self.dimension, "laplace")
        return LatticeSampler(noise).release(value, times, rng=rng)

    def worst_shift(self) -> Any:
        """Return the shift of one coordinate, of all for ℓ∞."""
        shift = np.zeros(self.dimension)
        shift[slice(None) if self.norm == "linf" else slice(1)] = float(self.sensitivity)
        return shift

    def _moment(self, order: int) -> arb:
        """Return b^n (d + n)!/d!: of the radius by which a point of K is scaled."""
        return self.scale.ball() ** order * arb(self.dimension + 1).rising(order)

    def variances(self) -> list[arb]:
        """Return E R² times the variance of a coordinate of a uniform point of K."""
        d = self.dimension
        inside = {
            "l1": arb(2) / ((d + 1) * (d + 2)), "l2": arb(1) / (d + 2), "linf": arb(1) / 3
        }[self.norm]  # fmt: skip
        return [self._moment(2) * inside]

    def mean_absolute_error(self) -> arb:
        """Return E R/(d + 1), E R Γ(d/2 + 1)/(√π Γ((d + 3)/2)) or E R/2."""
        half = arb(self.dimension) / 2
        inside = {
            "l1": arb(1) / (self.dimension + 1),
            "l2": ((half + 1).lgamma() - (half + 1.5).lgamma()).exp() / arb.pi().sqrt(),
            "linf": arb("0.5"),
        }[self.norm]
        return self._moment(1) * inside

"""Noise whose density falls with a norm: the K-norm mechanism of Hardt and Talwar (2010)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from flint import arb

from accountant.core.adjacency import Adjacency
from accountant.core.noise import SymmetricDensity
from accountant.core.pair import Pair, WorstCase
from accountant.core.validate import Integer, OneOf, Positive
from accountant.mechanisms.additive.laplace import LaplacePair
from accountant.pairs.ball_noise import BallNoisePair

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@final
@dataclass(frozen=True, repr=False)
class KNorm(SymmetricDensity):
    """Release a vector of d answers plus noise with the density e^{−‖x‖/b}/(d! b^d |K|).

    K is the unit ball of the norm and |K| its volume. Exactly sensitivity/b-DP. In one dimension,
    and for any d where the norm is ℓ1, it is Laplace noise.

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
    are (`accountant.geometry.ball_loss`). For ε < 0 reflection gives the same.
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

    def sample(self, size: int, *, rng: np.random.Generator) -> NDArray[Any]:
        """Draw the noise of `size` releases in floats, one row each.

        A point of K, uniform, times a Gamma(d + 1) radius: level sets are balls. A normal vector
        has a uniform direction, on which the radius is Gamma(d).
        """
        import numpy as np

        shape, b = (size, self.dimension), float(self.scale)
        if self.norm == "l1":
            return rng.laplace(0.0, b, shape)
        if self.norm == "linf":
            inside = rng.uniform(-b, b, shape)
            return inside * rng.gamma(self.dimension + 1, size=(size, 1))
        normal = rng.normal(size=shape)
        radius = b * rng.gamma(self.dimension, size=(size, 1))
        drawn: NDArray[Any] = normal * (radius / np.linalg.norm(normal, axis=1, keepdims=True))
        return drawn

    def worst_shift(self) -> Any:
        """Return the shift of one coordinate, of all for ℓ∞."""
        import numpy as np

        shift = np.zeros(self.dimension)
        shift[slice(None) if self.norm == "linf" else slice(1)] = float(self.sensitivity)
        return shift

    def variances(self) -> list[arb]:
        """Return [2b²], [(d + 1)b²] or [(d + 1)(d + 2)b²/3]: moments of the radius, over d or 3."""
        d = self.dimension
        factor = {"l1": arb(2), "l2": arb(d + 1), "linf": arb((d + 1) * (d + 2)) / 3}[self.norm]
        return [self.scale.ball() ** 2 * factor]

    def mean_absolute_error(self) -> arb:
        """Return b, b d Γ(d/2)/(√π Γ((d+1)/2)) or b (d + 1)/2."""
        b, half = self.scale.ball(), arb(self.dimension) / 2
        if self.norm == "l2":
            return 2 * b * half * (half.lgamma() - (half + 0.5).lgamma()).exp() / arb.pi().sqrt()
        return b if self.norm == "l1" else b * (half + 0.5)

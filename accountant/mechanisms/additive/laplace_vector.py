"""The Laplace mechanism for a vector of answers with a given shift between neighbours."""

from __future__ import annotations

from typing import Any

from dpassay.accountant.composition.exact.laplace_product import of_distances
from dpassay.accountant.composition.product import Product
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.validate import Positive, Reals, declared
from dpassay.accountant.mechanisms.additive.laplace import LaplaceNoise
from dpassay.accountant.release.lattice import LatticeSampler, independent


@declared
class LaplaceVector(LaplaceNoise):
    """Release d answers plus independent Lap(b) noise; neighbours differ by given shifts.

    Parameters
    ----------
    scale
        b > 0; the standard deviation of each coordinate is √2·b.
    shifts
        How far each answer moves between two neighbours, one entry per coordinate. Their ratios
        must be rational. The mechanism is exactly (Σ|shift|/b)-DP. For smaller ε, δ(ε) is much
        smaller than for one coordinate that moves by the whole ℓ1 distance.
    """

    example = "LaplaceVector(scale=4, shifts=[1, 2, 3])"

    scale: Positive = Positive()
    shifts: Reals = Reals()

    def __post_init__(self) -> None:
        self.pair()

    def pair(self) -> Product:
        """Return the pair of Lap(1)^d at |shifts|/b and Lap(1)^d at 0."""
        return of_distances(
            [shift / self.scale if shift.sign > 0 else -shift / self.scale for shift in self.shifts]
        )

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the product pair at the full shifts."""
        return WorstCase.symmetric(
            self.pair(),
            "The signs of the shifts do not matter, since each coordinate is symmetric. A pair at "
            "smaller distances is a post-processing of this one: where t' < t, stretch the "
            "coordinate by t'/t and add the independent noise that turns Lap(t'/t) into Lap(1), "
            "whose characteristic function c + (1 − c)/(1 + w²), c = (t'/t)², is a mixture of 1 "
            "and Laplace. So neighbours that differ by at most |shift| in each coordinate are "
            "covered too.",
        )

    @property
    def dimension(self) -> int:
        """The number d of coordinates."""
        return len(self.shifts)

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` releases, an array of shape (size, d)."""
        return rng.laplace(0.0, float(self.scale), (size, self.dimension))

    def lattice_sampler(self) -> LatticeSampler:
        """Return a sampler of independent Laplace noise on a lattice, for every coordinate."""
        noise = independent(lambda: [self.scale.ball()] * self.dimension, "laplace")
        return LatticeSampler(noise)

    def worst_shift(self) -> Any:
        """Return the shifts."""
        return np.array([float(entry) for entry in self.shifts])

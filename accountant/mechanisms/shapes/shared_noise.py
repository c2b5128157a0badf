"""Gaussian noise on counts of which a part is shared, and on the number of records beside them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

from flint import arb

from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.noise import GaussianNoise
from dpassay.accountant.core.validate import Integer
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms.additive.gaussian import normal_quantile
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.release.lattice import LatticeSampler
from dpassay.accountant.release.lattice_noise import independent, shared


class SharedNoise(GaussianNoise, ABC):
    """Release d counts with noise η + z_j, and with 2η the number of records, if that is released.

    η is normal, one for each group of counts, and all z_j are normal and independent. The groups
    follow each other, each with its number of records last.
    """

    noise_argument = "mu"
    noise_grows = False
    _of_one_count: ClassVar[str] = ""
    """How to ask for the quantile of a count, where the number of records is released."""

    dimension: Integer

    @abstractmethod
    def parts(self) -> tuple[arb, arb]:
        """Return Var η and Var z."""

    @property
    def _has_size(self) -> bool:
        """Whether the number of records is released."""
        return False

    @property
    def _groups(self) -> int:
        return 1

    def lattice_sampler(self) -> LatticeSampler:
        """Return the noise η + z_j and 2η of all groups, each coordinate on a lattice."""

        def scales() -> tuple[arb, arb, arb | None]:
            eta, own = (part.sqrt() for part in self.parts())
            return eta, own, 2 * eta if self._has_size else None

        if self.parts()[0].is_zero():
            return LatticeSampler(independent(lambda: [scales()[1]] * self.dimension))
        return LatticeSampler(shared(self.dimension, scales, self._groups))

    def variances(self) -> list[arb]:
        """Return Var η + Var z for the counts of a group, then 4 Var η for its size if released."""
        eta, own = self.parts()
        if not self._has_size:
            return [eta + own]
        return ([eta + own] * self.dimension + [4 * eta]) * self._groups

    def mean_squared_error(self) -> arb:
        """Return the average over the counts and, where they are released, the sizes."""
        entries = self.variances()
        if not self._has_size:
            return entries[0]
        return (self.dimension * entries[0] + entries[-1]) / (self.dimension + 1)

    def covariance_matrix(self) -> list[list[arb]]:
        """Return blocks: Var η between counts of a group, 2 Var η between a count and its size."""
        eta, own = self.parts()
        d, zero = self.dimension, arb(0)
        block = d + self._has_size
        counts, size_too, sizes, variance = eta, 2 * eta, 4 * eta, eta + own

        def entry(i: int, j: int) -> arb:
            if i // block != j // block:
                return zero
            if i == j:
                return variance if i % block < d else sizes
            return counts if i % block < d and j % block < d else size_too

        size = block * self._groups
        return [[entry(i, j) for j in range(size)] for i in range(size)]

    def quantile(self, probability: ExactReal) -> arb:
        """Return the quantile of the noise of a count, where sizes are not released."""
        if not self._has_size:
            return self.variances()[0].sqrt() * normal_quantile(probability)
        if not self._of_one_count:
            return super().quantile(probability)
        raise NotApplicableError(
            f"{type(self).__name__} releases counts and a size of different laws: it has no common "
            f"quantile. {self._of_one_count}"
        )

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` releases, one row each: every group's counts, and its size."""
        eta_spread, spread = (math.sqrt(float(part)) for part in self.parts())
        eta = rng.normal(0.0, eta_spread, (size, self._groups, 1))
        drawn = eta + rng.normal(0.0, spread, (size, self._groups, self.dimension))
        if self._has_size:
            drawn = np.concatenate([drawn, 2 * eta], axis=2)
        return drawn.reshape(size, -1)

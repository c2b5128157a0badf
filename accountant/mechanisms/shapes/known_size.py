"""Counts together with a public or released estimate of the number of records."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from flint import arb

from accountant.core.adjacency import Adjacency, require
from accountant.core.noise import GaussianNoise
from accountant.core.pair import WorstCase
from accountant.core.validate import Integer, OptionalPositive, Positive
from accountant.errors import NotApplicableError
from accountant.mechanisms.additive.gaussian import normal_quantile
from accountant.numbers.exact import ExactReal
from accountant.pairs.gaussian import GaussianPair

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from accountant.release.lattice import LatticeSampler


@final
@dataclass(frozen=True, repr=False)
class KnownSizeGaussian(GaussianNoise):
    """Release f − n/2 + ñ/2 + N(0, d/(4μ²)·I) for d counts f of n records, given an estimate ñ.

    Lebeda, Lemma 3.6. It is exactly μ-GDP under add/remove when ñ is one fixed public number for
    both neighbours. Setting ñ = n instead releases f + N(0, d/(4μ²)·I), which is 2μ-GDP and no
    better; with ñ = n + N(0, 1/μ₀²) released too, the whole is exactly √(μ² + μ₀²)-GDP.

    Parameters
    ----------
    dimension
        d ≥ 1; records lie in {0,1}^d or [0,1]^d.
    mu
        μ > 0.
    size_mu
        μ₀ > 0 where ñ is released by this mechanism, as the last coordinate; None where it is
        public. The laws below are then those of the noise alone: in addition there is the fixed
        error (ñ − n)/2 of every count.
    """

    example = "KnownSizeGaussian(dimension=9, mu=1)"

    noise_argument = "mu"
    noise_grows = False

    dimension: Integer = Integer(least=1)
    mu: Positive = Positive()
    size_mu: OptionalPositive = OptionalPositive()

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return N(μ', 1) against N(0, 1) with the exact μ' of the relation."""
        relation = require(adjacency, self)
        if relation is Adjacency.ADD_REMOVE:
            why = "f − n/2 moves by v − ½, and every {0,1} record v has ‖v − ½‖² = d/4"
            if self.size_mu is not None:
                why += "; ñ moves by 1, and given ñ the counts carry independent noise"
        else:
            why = "n stays, and f moves by v − v', at most ‖v − v'‖² = d, at v' = 1 − v"
        return WorstCase.symmetric(
            GaussianPair(self, relation),
            f"The squared norm is convex, so the worst records have entries 0 or 1: {why}.",
        )

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal:
        """Return √(μ² + μ₀²) under add/remove (μ for a public ñ), and 2μ under replace-one."""
        if require(adjacency, self) is Adjacency.REPLACE_ONE:
            return ExactReal.of_rational(2) * self.mu
        if self.size_mu is None:
            return self.mu
        return ExactReal.of_root(self.mu.square + self.size_mu.square)

    def _size_variance(self) -> arb:
        return arb(0) if self.size_mu is None else 1 / self.size_mu.ball() ** 2

    def lattice_sampler(self) -> LatticeSampler:
        """Return the noise of the counts, and of ñ last, each on a lattice."""
        from accountant.release.lattice import LatticeSampler
        from accountant.release.lattice_noise import independent, shared

        def own() -> arb:
            return arb(self.dimension).sqrt() / (2 * self.mu.ball())

        def scales() -> tuple[arb, arb, arb]:
            size = self._size_variance().sqrt()
            return size / 2, own(), size

        if self.size_mu is None:
            return LatticeSampler(independent(lambda: [own()] * self.dimension))
        return LatticeSampler(shared(self.dimension, scales))

    def variances(self) -> list[arb]:
        """Return d/(4μ²) + 1/(4μ₀²) for the counts, then 1/μ₀² for ñ where it is released."""
        size = self._size_variance()
        count = (self.dimension / self.mu.ball() ** 2 + size) / 4
        return [count] if self.size_mu is None else [count] * self.dimension + [size]

    def covariance_matrix(self) -> list[list[arb]]:
        """Return the covariance of the counts and, where it is released, ñ."""
        size, count, d = self._size_variance(), self.variances()[0], self.dimension
        rows = [[count if i == j else size / 4 for j in range(d)] for i in range(d)]
        if self.size_mu is not None:
            rows = [[*row, size / 2] for row in rows]
            rows.append([size / 2] * d + [size])
        return rows

    def quantile(self, probability: ExactReal) -> arb:
        """Return the quantile of the noise of a count (for a public ñ)."""
        if self.size_mu is not None:
            raise NotApplicableError(
                "KnownSizeGaussian releases counts and a size of different laws: it has no common "
                "quantile. Leave size_mu out for the quantile of a count given a public size."
            )
        return self.variances()[0].sqrt() * normal_quantile(probability)

    def sample(self, size: int, *, rng: np.random.Generator) -> NDArray[Any]:
        """Draw the noise of `size` releases, one row each, ñ in the last column."""
        import numpy as np

        spread = math.sqrt(self.dimension) / (2 * float(self.mu))
        counts = rng.normal(0.0, spread, (size, self.dimension))
        if self.size_mu is None:
            return counts
        estimate = rng.normal(0.0, 1 / float(self.size_mu), (size, 1))
        return np.hstack([counts + estimate / 2, estimate])

"""Counts together with a public or released estimate of the number of records."""

from __future__ import annotations

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency, require
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.validate import Integer, OptionalPositive, Positive
from dpassay.accountant.mechanisms.shapes.shared_noise import SharedNoise
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.pairs.gaussian import GaussianPair


@declared
class KnownSizeGaussian(SharedNoise):
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
    _of_one_count = "Leave size_mu out for the quantile of a count given a public size."

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
        return (self.mu.squared + self.size_mu.squared).root()

    def parts(self) -> tuple[arb, arb]:
        """Return 1/(4μ₀²), or 0 for a public ñ, and d/(4μ²)."""
        known = arb(0) if self.size_mu is None else 1 / self.size_mu.ball() ** 2
        return known / 4, self.dimension / self.mu.ball() ** 2 / 4

    @property
    def _has_size(self) -> bool:
        return self.size_mu is not None

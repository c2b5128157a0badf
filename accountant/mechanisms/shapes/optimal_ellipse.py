"""The Gaussian of least variance for sparse counts, for every sparsity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from accountant.geometry.ellipse import Ellipse, optimal_ellipse
from accountant.mechanisms.shapes.ellipse_base import EllipseMechanism


@final
@dataclass(frozen=True, repr=False)
class OptimalEllipse(EllipseMechanism):
    """Release k-sparse counts with the least query variance that any Gaussian can have.

    `accountant.geometry.ellipse` has the covariance and `accountant.geometry.dual.defects` the
    exact proof that no
    covariance is better. For k ≤ d/2 this is `CountEllipse`; for k = d it is Algorithm 1 of
    Lebeda without the size exactly where d is a perfect square, and strictly better elsewhere.

    Parameters
    ----------
    dimension
        d ≥ 1, the number of counts.
    sparsity
        k, from 1 to d.
    mu
        μ > 0: exactly μ-GDP under add/remove.
    """

    example = "OptimalEllipse(dimension=10, sparsity=3, mu=1)"

    @property
    def ellipse(self) -> Ellipse:
        """The covariance for μ = 1, with its dual weights."""
        return optimal_ellipse(self.dimension, self.sparsity)

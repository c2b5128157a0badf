"""The Count ellipse of Joseph and Yu."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from accountant.geometry.ellipse import Ellipse, count_ellipse
from accountant.mechanisms.shapes.ellipse_base import EllipseMechanism


@final
@dataclass(frozen=True, repr=False)
class CountEllipse(EllipseMechanism):
    """Release k-sparse counts with the noise that fits the records with exactly k ones.

    Query variance (k + √((d−1) k (d−k)))²/(d²μ²); at k = d/2 it is (d + 2√(d−1))/(4μ²)
    (Lebeda, Lemma 4.3). Optimal among all Gaussians for these k.

    Parameters
    ----------
    dimension
        d ≥ 1, the number of counts.
    sparsity
        k, at most max(1, d/2); `OptimalEllipse` goes on from there.
    mu
        μ > 0: exactly μ-GDP under add/remove.
    """

    example = "CountEllipse(dimension=10, sparsity=3, mu=1)"

    @property
    def ellipse(self) -> Ellipse:
        """The covariance for μ = 1, with its dual weights."""
        return count_ellipse(self.dimension, self.sparsity)

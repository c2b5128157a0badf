"""Poisson subsampling: each record takes part with a fixed probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from flint import arb

from accountant._validate import Probability
from accountant.adjacency import Adjacency, require
from accountant.errors import AdjacencyError, NotApplicableError
from accountant.mechanism import Mechanism
from accountant.mechanisms.parts import OneMechanism
from accountant.mechanisms.tabulated import Tabulated
from accountant.number import ExactReal
from accountant.pair import WorstCase
from accountant.pairs.finite import FinitePair

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


@final
@dataclass(frozen=True, repr=False)
class PoissonSubsampled(Mechanism):
    """Take each record independently with probability q, and run a mechanism on those taken.

    Parameters
    ----------
    mechanism
        The mechanism that is run on the sample. A composition is run on *one* sample;
        `Composed(PoissonSubsampled(…), count)` draws a new sample for every release.
    sampling_prob
        q in [0, 1]. At q = 1 nothing is changed, at q = 0 nothing is released of the data.

    Notes
    -----
    For the add/remove relation, and exactly (`accountant.composition.subsampling`): REMOVE
    compares (1 − q)B + qA with B, ADD compares B with (1 − q)B + qA, where A is the law of the
    release with the record and B without it; attained by neighbours without other records.
    Noise and error are those of the mechanism on its sample: the error of sampling is not noise.
    """

    mechanism: OneMechanism = OneMechanism()
    sampling_prob: Probability = Probability()

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the worst pairs of the mechanism, with one side mixed.

        Raises AdjacencyError unless add/remove is named.
        """
        from accountant.composition import subsampled

        inner = self.mechanism.worst_case(self._relation(adjacency))
        q = self.sampling_prob
        if q.rational == 1:
            return inner
        if q.sign == 0:
            same = FinitePair(Tabulated([1], [1]), 0)
            return WorstCase.symmetric(same, "No record is ever taken.")
        return WorstCase(
            tuple(subsampled(pair, q, mixed_first=True) for pair in inner.remove),
            tuple(subsampled(pair, q, mixed_first=False) for pair in inner.add),
            "Given which other records are taken, the record is there with probability q; mixing "
            "is jointly convex, so a worst pair of the mechanism gives a worst pair, attained "
            f"without other records. {inner.reason}",
        )

    def _relation(self, adjacency: Adjacency | None) -> Adjacency:
        relation = require(adjacency, self)
        if relation is Adjacency.REPLACE_ONE:
            raise AdjacencyError(
                "PoissonSubsampled is exact for adjacency='add-remove' only: under replace-one "
                "both datasets mix, and no exact dominating pair is implemented. Name "
                "adjacency='add-remove'."
            )
        return relation

    def gaussian_mu(self, adjacency: Adjacency | None) -> arb:
        """Return that of the mechanism at q = 1, where nothing is changed."""
        self._require_unchanged()
        return self.mechanism.gaussian_mu(self._relation(adjacency))

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return that of the mechanism at q = 1, else None."""
        relation = self._relation(adjacency)
        if self.sampling_prob.rational != 1:
            return None
        return self.mechanism.exact_gaussian_mu(relation)

    def _require_unchanged(self) -> None:
        if self.sampling_prob.rational != 1:
            raise NotApplicableError(
                "PoissonSubsampled is not exactly Gaussian DP: its trade-off function is not G_mu "
                "for any mu. Ask for its trade-off function, or verify a mu-GDP claim."
            )

    @property
    def dimension(self) -> int:
        """That of the mechanism."""
        return self.mechanism.dimension

    def sample(self, size: int, *, rng: np.random.Generator) -> NDArray[Any]:
        """Draw the noise of the mechanism."""
        return self.mechanism.sample(size, rng=rng)

    def release(
        self, value: ArrayLike, size: int | None = None, *, rng: np.random.Generator
    ) -> NDArray[Any]:
        """Refuse: the noise alone is not subsampled."""
        raise NotApplicableError(
            "PoissonSubsampled chooses records before it answers, so there is no one true answer. "
            "Choose each record with sampling_prob, and release the answer with the inner "
            "mechanism."
        )

    def variances(self) -> Sequence[arb]:
        """Return those of the mechanism."""
        return self.mechanism.variances()

    def mean_squared_error(self) -> arb:
        """Return that of the mechanism."""
        return self.mechanism.mean_squared_error()

    def covariance_matrix(self) -> list[list[arb]]:
        """Return that of the mechanism."""
        return self.mechanism.covariance_matrix()

    def quantile(self, probability: ExactReal) -> arb:
        """Return that of the mechanism."""
        return self.mechanism.quantile(probability)

"""Subsampling without replacement: a fixed number of records, all subsets equally likely."""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.validate import Integer
from dpassay.accountant.errors import AdjacencyError, expected
from dpassay.accountant.mechanisms.wrappers.parts import OnChosenRecords, OneMechanism
from dpassay.accountant.numbers.exact import ExactReal


@declared
class SampledWithoutReplacement(OnChosenRecords):
    """Draw `sample_size` of the `population` records, and run a mechanism on them.

    Parameters
    ----------
    mechanism
        The mechanism that is run on the sample.
    sample_size, population
        m and n, 1 ≤ m ≤ n: every subset of m records is equally likely.

    Notes
    -----
    For the replace-one relation, with γ = m/n and the worst pair (A, B) of the mechanism for
    replacing a record of the sample: the profile is the larger of those of ((1 − γ)B + γA, B) and
    (B, (1 − γ)B + γA). It is an upper bound for every pair of neighbours (Balle, Barthe and
    Gaboardi 2018, Theorem 9; Zhu, Dong and Wang 2022), and attained where all other records equal
    one of the two that are exchanged. The two directions differ, and each of several such releases
    may go either way (the other records may look like one of the two to one query and like the
    other to the next): `Composed` encloses their profile
    (`dpassay.accountant.composition.adaptive`).

    Other records may also be unlike both. Then nothing is known but that the profile is at most the
    larger of the two at every ε: the Rényi divergences and the trade-off function of such
    neighbours are bounded by those of a pair with that profile, the envelope, and questions about
    them are answered between these and what is attained.
    """

    example = (
        "SampledWithoutReplacement(mechanism=Gaussian(standard_deviation=1), sample_size=1, "
        "population=10)"
    )

    mechanism: OneMechanism = OneMechanism()
    sample_size: Integer = Integer(least=1)
    population: Integer = Integer(least=1)

    def __post_init__(self) -> None:
        if self.sample_size > self.population:
            raise expected(
                "sample_size",
                self.sample_size,
                f"≤ population={self.population}",
                "A sample is drawn from the population, without replacement.",
            )

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the worst pairs of the mechanism, with one side mixed.

        Raises AdjacencyError unless replace-one is named, or none where the mechanism needs none.
        """
        from dpassay.accountant.pairs.subsampled import subsampled

        if adjacency is Adjacency.ADD_REMOVE:
            raise AdjacencyError(
                "SampledWithoutReplacement has a fixed number of records: one is replaced, none "
                "added or removed. Name adjacency='replace-one', or use PoissonSubsampled."
            )
        inner = self.mechanism.worst_case(Adjacency.REPLACE_ONE)
        if self.sample_size == self.population:
            return inner
        share = ExactReal.of_rational(Fraction(self.sample_size, self.population))
        pairs = inner.pairs(None)
        return WorstCase(
            tuple(subsampled(pair, share, mixed_first=True) for pair in pairs),
            tuple(subsampled(pair, share, mixed_first=False) for pair in pairs),
            "The exchanged record is in the sample with probability m/n, else another one is in "
            "its place; advanced joint convexity bounds every such mixture, and it is attained "
            f"where all other records equal one of the two. {inner.reason}",
            enveloped=True,
        )

    @property
    def unchanged(self) -> Mechanism | None:
        """The mechanism, where everything is sampled."""
        return self.mechanism if self.sample_size == self.population else None

    def enclosed_gaussian_mu(self, adjacency: Adjacency | None) -> arb:
        """Return that of a record that is replaced."""
        return super().enclosed_gaussian_mu(Adjacency.REPLACE_ONE)

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return the same as an exact number."""
        return super().exact_gaussian_mu(Adjacency.REPLACE_ONE)

"""Poisson subsampling: each record takes part with a fixed probability."""

from __future__ import annotations

from typing import Any

from dpassay.accountant.core.adjacency import Adjacency, require
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import Probability
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.mechanisms.wrappers.parts import OnChosenRecords, OneMechanism
from dpassay.accountant.mechanisms.wrappers.tabulated import Tabulated
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.pairs.finite import FinitePair
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.pairs.gaussian_mixture import GaussianMixturePair, mixture


@declared
class PoissonSubsampled(OnChosenRecords):
    """Take each record independently with probability q, and run a mechanism on those taken.

    Parameters
    ----------
    mechanism
        The mechanism that is run on the sample. A composition is run on *one* sample;
        `Composed(PoissonSubsampled(…), count)` draws a new sample for every release.
    sampling_prob
        q in [0, 1]. At q = 1 nothing changes, at q = 0 nothing about the data is released.

    Notes
    -----
    For the add/remove relation, and exactly (`dpassay.accountant.pairs.subsampled`): REMOVE
    compares (1 − q)B + qA with B, ADD compares B with (1 − q)B + qA, where A is the law of the
    release with the record and B without it; attained by neighbours without other records.

    For the replace-one relation, of Gaussian noise alone, and exactly: with μ that of the noise for
    a record that is added or removed (which is what the sensitivity of the mechanism means here,
    under both relations), the worst pair is

        P = (1 − q) N(0, 1) + q N(μ, 1),   Q = (1 − q) N(0, 1) + q N(−μ, 1).

    *Proof.* Given which other records are taken, let A, A' and B be the laws with the one record,
    with the other one in its place, and with neither. Hockey-stick divergences are jointly convex,
    so that ((1 − q)B + qA, (1 − q)B + qA') is to be bounded. Let ε ≥ 0, e^η = 1 + (e^ε − 1)/q and
    β = e^{ε−η}. For every event S the difference of P(S) and e^ε Q(S) is (Balle, Barthe and
    Gaboardi 2018, Theorem 2)

        q (A(S) − e^η ((1 − β) B(S) + β A'(S))).

    A is μ-GDP from B, and 2μ-GDP from A', two steps away through B; so with p = A(S), by
    Neyman and Pearson, B(S) ≥ Φ(Φ⁻¹(p) − μ) and A'(S) ≥ Φ(Φ⁻¹(p) − 2μ), both with equality for a
    half-line and the laws N(μ, 1), N(0, 1), N(−μ, 1): the difference is at most that of P and Q
    there. For ε < 0, H(ε) = 1 − e^ε + e^ε H'(−ε) with H' of (Q, P), a pair of the same kind; and
    reflection exchanges P and Q. Records that move the sum by μ in opposite directions, without
    other records, attain it.

    Noise and error are those of the mechanism on its sample: the error of sampling is not noise.
    """

    example = "PoissonSubsampled(mechanism=Gaussian(standard_deviation=1), sampling_prob='1/10')"

    mechanism: OneMechanism = OneMechanism()
    sampling_prob: Probability = Probability()

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the worst pairs of the mechanism, with one side mixed, or both (replace-one).

        Raises
        ------
        AdjacencyError
            Unless a relation is named.
        NotApplicableError
            Under replace-one, for other noise than Gaussian.
        """
        from dpassay.accountant.pairs.subsampled import subsampled

        if require(adjacency, self) is Adjacency.REPLACE_ONE:
            return self._replaced()
        inner = self.mechanism.worst_case(adjacency)
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

    def _replaced(self) -> WorstCase:
        """Return the pair for a record that is replaced."""
        q, mu = self.sampling_prob.rational, self._shift()
        if q == 0:
            same = FinitePair(Tabulated([1], [1]), 0)
            return WorstCase.symmetric(same, "No record is ever taken.")
        if q is None:
            raise NotApplicableError(
                f"Expected sampling_prob={self.sampling_prob} to be rational under replace-one. "
                "Write a fraction."
            )
        if q == 1:
            pair = GaussianPair(self, Adjacency.REPLACE_ONE)
            return WorstCase.symmetric(pair, "Two opposite shifts lie at distance 2*mu.")
        zero = ExactReal.of_rational(0)
        shares = [1 - q, q]
        return WorstCase.symmetric(
            GaussianMixturePair(mixture(shares, [zero, mu]), mixture(shares, [zero, -mu])),
            "Given which other records are taken, the replaced record is there with probability "
            "q, before and after; the two laws with it lie at distance mu from the one without, "
            "and at most 2*mu apart. Opposite shifts of a sum are worst, and attained without "
            "other records.",
        )

    def _shift(self) -> ExactReal:
        """Return μ of the noise for a record that is added or removed.

        Raises NotApplicableError for other noise than Gaussian: that opposite shifts are possible,
        and that half-lines are worst for both at once, is then not known.
        """
        parts = [part for part, _ in Composed(self.mechanism).parts()]
        mu = self.mechanism.exact_gaussian_mu(Adjacency.ADD_REMOVE)
        if mu is None or not all(isinstance(part, Gaussian) for part in parts):
            raise NotApplicableError(
                "PoissonSubsampled is exact for adjacency='replace-one' with Gaussian noise only: "
                "both datasets mix, and no worst pair is known for other noise. Name "
                "adjacency='add-remove', or use SampledWithoutReplacement."
            )
        return mu

    @property
    def unchanged(self) -> Mechanism | None:
        """The mechanism, at q = 1."""
        return self.mechanism if self.sampling_prob.rational == 1 else None

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return that of the mechanism at q = 1, twice that for a replaced record."""
        if self.unchanged is not None and require(adjacency, self) is Adjacency.REPLACE_ONE:
            return ExactReal.of_rational(2) * self._shift()
        return super().exact_gaussian_mu(adjacency)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Refuse: the noise alone is not subsampled."""
        raise NotApplicableError(
            "PoissonSubsampled chooses records before it answers, so there is no one true answer. "
            "Choose each record with sampling_prob, and release the answer with the inner "
            "mechanism."
        )

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return no answer, and those of the mechanism: other records make it no worse."""
        return [(_nothing(shift), shift) for _, shift in self.mechanism.worst_answers()]

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Run the mechanism on the answer where the record is taken, and on 0 where it is not."""
        taken = rng.random(size) < float(self.sampling_prob)
        present = int(taken.sum())
        with_record = self.mechanism.outputs(answer, present, rng=rng)
        without = self.mechanism.outputs(_nothing(answer), size - present, rng=rng)
        released: Array = np.empty((size, *with_record.shape[1:]), with_record.dtype)
        released[taken], released[~taken] = with_record, without
        return released


def _nothing(answer: Any) -> Any:
    """Return the answer without the record: 0 in every entry."""
    if isinstance(answer, (list, tuple)):
        return [_nothing(entry) for entry in answer]
    return np.zeros_like(np.asarray(answer))

"""Random sampling of records: Poisson, without replacement, random allocation, shuffling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from math import log2
from typing import Any, TypeAlias

from flint import arb, arb_poly

from dpassay.accountant.core.adjacency import Adjacency, require
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.mechanism import GaussianNoise, Mechanism
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import (
    Integer,
    Positive,
    Probabilities,
    Probability,
    Reals,
    declared,
)
from dpassay.accountant.errors import (
    AdjacencyError,
    InvalidInputError,
    NotApplicableError,
    expected,
)
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.additive.laplace import Laplace
from dpassay.accountant.mechanisms.wrappers.channel import (
    LocalReport,
    RandomizedResponse,
    Rappor,
    SubsetSelection,
    Tabulated,
    UnaryEncoding,
)
from dpassay.accountant.mechanisms.wrappers.composed import (
    Composed,
    Guaranteed,
    OnChosenRecords,
    OneMechanism,
)
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.pairs.allocation import RandomAllocationPair
from dpassay.accountant.pairs.between import Between
from dpassay.accountant.pairs.finite import FiniteLaws, FinitePair
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.pairs.shuffling import ShuffledReports
from dpassay.accountant.pairs.subsampled import GaussianMixturePair, mixture, subsampled
from dpassay.accountant.release.lattice import categories

# --- Poisson subsampling: each record is included independently with a fixed probability ----------

_UNCHANGED = WorstCase.symmetric(FinitePair(Tabulated([1], [1]), 0), "No record is ever taken.")


@declared
class PoissonSubsampled(OnChosenRecords):
    """Take each record independently with probability q, and run a mechanism on the sample.

    Parameters
    ----------
    mechanism
        The mechanism that is run on the sample. All parts of a composition see the *same* sample;
        `Composed(PoissonSubsampled(…), count)` draws a new sample for every release.
    sampling_prob
        q in [0, 1]. q = 1 includes every record; with q = 0 the output is independent of the data.

    Notes
    -----
    *Add/remove.* Let A and B be the laws of the release with and without the record. The exact
    worst pair is ((1 − q)B + qA, B) for REMOVE and (B, (1 − q)B + qA) for ADD
    (`dpassay.accountant.pairs.subsampled`). Datasets without further records attain it.

    *Replace-one*, for Gaussian noise only. Let μ be the Gaussian DP parameter of the noise for
    adding or removing a record; under both relations the sensitivity of the mechanism refers to
    adding or removing a record. The exact worst pair is

        P = (1 − q) N(0, 1) + q N(μ, 1),   Q = (1 − q) N(0, 1) + q N(−μ, 1).

    *Proof.* Fix which other records are sampled. Let A, A' and B be the laws of the release with
    the record, with its replacement, and with neither. Hockey-stick divergences are jointly convex,
    so it suffices to bound those of the pair ((1 − q)B + qA, (1 − q)B + qA'). Let ε ≥ 0,
    e^η = 1 + (e^ε − 1)/q and β = e^{ε−η}. For every event S, the probability under the first law
    minus e^ε times that under the second is (Balle, Barthe and Gaboardi 2018, Theorem 2)

        q (A(S) − e^η ((1 − β) B(S) + β A'(S))).

    (A, B) is μ-GDP, and (A, A') is 2μ-GDP by group privacy through B. With p = A(S), the
    Neyman–Pearson lemma gives B(S) ≥ Φ(Φ⁻¹(p) − μ) and A'(S) ≥ Φ(Φ⁻¹(p) − 2μ). Both are equalities
    for a half-line and the laws N(μ, 1), N(0, 1), N(−μ, 1), so the difference is at most that of
    P and Q on a half-line. For ε < 0, H(ε) = 1 − e^ε + e^ε H'(−ε), where H' is the profile of
    (Q, P), a pair of the same kind; reflection exchanges P and Q. Two records that move the sum by
    μ in opposite directions, in datasets without further records, attain the bound.

    Noise and error are those of the mechanism on its sample. They exclude the sampling error.
    """

    example = "PoissonSubsampled(mechanism=Gaussian(standard_deviation=1), sampling_prob='1/10')"

    mechanism: OneMechanism = OneMechanism()
    sampling_prob: Probability = Probability()

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the worst pairs of the mechanism with one law mixed, or both under replace-one.

        Raises
        ------
        AdjacencyError
            If no relation is given.
        NotApplicableError
            Under replace-one, if the noise is not Gaussian.
        """
        if require(adjacency, self) is Adjacency.REPLACE_ONE:
            return self._replaced(self._shift())
        inner = self.mechanism.worst_case(adjacency)
        q = self.sampling_prob
        if q.rational == 1:
            return inner
        if q.sign == 0:
            return _UNCHANGED
        return WorstCase(
            tuple(subsampled(pair, q, mixed_first=True) for pair in inner.remove),
            tuple(subsampled(pair, q, mixed_first=False) for pair in inner.add),
            "Given which other records are taken, the record is there with probability q; mixing "
            "is jointly convex, so a worst pair of the mechanism gives a worst pair, attained "
            f"without other records. {inner.reason}",
        )

    def _replaced(self, mu: ExactReal) -> WorstCase:
        """Return the worst pair under replace-one."""
        q = self.sampling_prob.rational
        if q == 0:
            return _UNCHANGED
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

        Raises NotApplicableError if the noise is not Gaussian. The proof for replace-one needs that
        opposite shifts are possible, and that one half-line is the worst event against both.
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
        """The mechanism if q = 1, else None."""
        return self.mechanism if self.sampling_prob.rational == 1 else None

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return the mechanism's μ if q = 1, doubled under replace-one; else None."""
        if self.unchanged is not None and require(adjacency, self) is Adjacency.REPLACE_ONE:
            return self._shift().times(2)
        return super().exact_gaussian_mu(adjacency)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Raise NotApplicableError: the noise cannot be added without sampling the records."""
        raise NotApplicableError(
            "PoissonSubsampled chooses records before it answers, so there is no one true answer. "
            "Choose each record with sampling_prob, and release the answer with the inner "
            "mechanism."
        )

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return pairs (0, a): the worst dataset holds no record besides the one that differs."""
        return [(_nothing(shift), shift) for _, shift in self.mechanism.worst_answers()]

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw outputs of the mechanism on `answer` with probability q, else on 0."""
        taken = rng.random(size) < float(self.sampling_prob)
        present = int(taken.sum())
        with_record = self.mechanism.outputs(answer, present, rng=rng)
        without = self.mechanism.outputs(_nothing(answer), size - present, rng=rng)
        released: Array = np.empty((size, *with_record.shape[1:]), with_record.dtype)
        released[taken], released[~taken] = with_record, without
        return released


def _nothing(answer: Any) -> Any:
    """Return the answer on a dataset without records: 0 in every entry."""
    if isinstance(answer, (list, tuple)):
        return [_nothing(entry) for entry in answer]
    return np.zeros_like(np.asarray(answer))


# --- Subsampling without replacement: a fixed number of records, all subsets equally likely -------


@declared
class SampledWithoutReplacement(OnChosenRecords):
    """Run a mechanism on `sample_size` of `population` records, drawn without replacement.

    Parameters
    ----------
    mechanism
        The mechanism that is run on the sample.
    sample_size, population
        m and n, 1 ≤ m ≤ n. All subsets of m records are equally likely.

    Notes
    -----
    The relation is replace-one. Let γ = m/n and let (A, B) be the worst pair of the mechanism for
    replacing a record of the sample. The privacy profile is the larger of those of
    ((1 − γ)B + γA, B) and (B, (1 − γ)B + γA). It bounds every pair of neighbours (Balle, Barthe and
    Gaboardi 2018, Theorem 9; Zhu, Dong and Wang 2022), and is attained if all other records equal
    the old or the new record. The two pairs differ. In a composition each release may use either of
    them, because the other records may equal the old record for one query and the new record for
    the next; `Composed` therefore encloses the profile (`dpassay.accountant.composition.adaptive`).

    If the other records equal neither, only the bound on the profile is known. Rényi divergences
    and trade-off functions of such neighbours are bounded by those of a pair that has the larger
    profile (the envelope). Answers to these questions are intervals from the attained value to
    this bound.
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
        """Return the worst pairs of the mechanism with one law mixed.

        Raises AdjacencyError under add/remove. No relation means replace-one.
        """
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
        """The mechanism if m = n, else None."""
        return self.mechanism if self.sample_size == self.population else None

    def enclosed_gaussian_mu(self, adjacency: Adjacency | None) -> arb:
        """Return μ of the mechanism under replace-one if m = n."""
        return super().enclosed_gaussian_mu(Adjacency.REPLACE_ONE)

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return the same μ as an exact number if m = n, else None."""
        return super().exact_gaussian_mu(Adjacency.REPLACE_ONE)


# --- Random allocation: each record is used in k steps of an epoch, chosen uniformly --------------


@declared
class RandomAllocation(OnChosenRecords):
    """Run a mechanism `steps` times; each record is used in `participations` random steps.

    Parameters
    ----------
    mechanism
        The mechanism of one step. Its noise is Gaussian, as in `Gaussian(standard_deviation=1)`.
    steps
        t ≥ 1, the number of steps of one epoch.
    participations
        k, the number of different steps that use a record, 1 ≤ k ≤ t. All sets of k steps are
        equally likely, and different records choose independently. The profile is exact for k = 1
        and k = t, and bounded on both sides otherwise.

    Notes
    -----
    The relation is add/remove, or equivalently zero-out: divisors and the number of steps do not
    depend on the data. The scheme is also called balls and bins (Chua, Harrison, Kamath, Leeman,
    Sinha and Zhang 2025; Feldman and Shenfeld 2025). Let μ be the Gaussian DP parameter of one
    step. For k = 1 the worst pair is

        P = (1/t) Σ_j N(μ e_j, I),   Q = N(0, I),

    as (P, Q) for REMOVE and (Q, P) for ADD. `Composed(RandomAllocation(…), count)` draws new steps
    in each epoch.

    *Proof.* Other records choose their steps independently, and hockey-stick divergences are
    jointly convex, so their choices can be fixed. Step j may depend on all earlier outputs y. If
    step j uses the record, it moves the mean by a vector of length μ s_j(y) standard deviations,
    0 ≤ s_j ≤ 1. The output can be simulated from one coordinate Z without knowing whether Z is
    N(μ, 1) or N(0, 1): along that vector take s_j Z plus √(1 − s_j²) times new standard noise, and
    in all orthogonal directions new noise. So the outputs are a post-processing, step by step, of a
    draw from P or from Q. A record that always moves its step by the full sensitivity attains the
    pair.

    *Several participations, upper bound.* Partition ⌊t/k⌋k random steps at random into k equal
    blocks, and choose one step of each block uniformly. The result is a uniform set of k steps, so
    by joint convexity the profile is at most that of k allocations to ⌊t/k⌋ steps. *Lower bound.*
    The sum of all steps is N(kμ, t) against N(0, t), and the first step alone uses the record with
    probability k/t.

    This is not an epoch of fixed-size shuffled batches, in which the steps of different records
    are dependent: that can be far less private. Noise and error are those of one step.
    """

    example = "RandomAllocation(mechanism=Gaussian(standard_deviation=1), steps=10)"

    mechanism: OneMechanism = OneMechanism()
    steps: Integer = Integer(least=1)
    participations: Integer = Integer(1, least=1)

    def __post_init__(self) -> None:
        if self.participations > self.steps:
            raise expected(
                "participations",
                self.participations,
                f"≤ steps={self.steps}",
                "A record takes part in different steps.",
            )

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the worst pair for k = 1 or k = t, and lower and upper bounds for other k.

        Raises AdjacencyError unless the relation is add-remove, and NotApplicableError if the noise
        is not Gaussian and k < t.
        """
        if require(adjacency, self) is Adjacency.REPLACE_ONE:
            raise AdjacencyError(
                "RandomAllocation is known for a record that is added or removed: both datasets "
                "mix where one is replaced. Name adjacency='add-remove', or give its mechanism "
                "twice the sensitivity and no allocation."
            )
        if self.unchanged is not None:
            return self.unchanged.worst_case(adjacency)
        mu = self.mechanism.exact_gaussian_mu(Adjacency.ADD_REMOVE)
        if mu is None:  # the noise is not Gaussian
            raise NotApplicableError(
                f"RandomAllocation of {type(self.mechanism).__name__} is not known. Use Gaussian, "
                "or PoissonSubsampled, which is another way to sample."
            )
        if self.participations > 1:
            return self._between(mu, adjacency)
        pair = RandomAllocationPair(mu, self.steps)
        return WorstCase(
            (pair,),
            (pair.reverse(),),
            "Given the steps of the other records, the outputs are a randomised function, step by "
            "step, of a draw of one of two laws: independent standard normal coordinates, and the "
            "same with mu added to one of them, chosen uniformly. A record that always moves its "
            "step by the full sensitivity attains it.",
        )

    def _between(self, mu: ExactReal, adjacency: Adjacency | None) -> WorstCase:
        """Return lower and upper bounds for 1 < k < t."""
        k, t = self.participations, self.steps
        together = Gaussian(ExactReal.of_root(Fraction(t)) / mu, k)
        (first,) = PoissonSubsampled(self.mechanism, Fraction(k, t)).worst_case(adjacency).remove
        least = (GaussianPair(together, None), first)
        (most,) = self.blocks.worst_case(adjacency).remove
        pair = Between(least, most, f"how private {k} steps of {t} are")
        return WorstCase(
            (pair,),
            (pair.reverse(),),
            "Lower bound: the sum of all steps, and the first step alone. Upper bound: "
            f"{k} allocations to {t // k} steps, one in each block of a random partition.",
        )

    @property
    def blocks(self) -> Mechanism:
        """A mechanism that is at most as private, k allocations to ⌊t/k⌋ steps each."""
        few = self.steps // self.participations
        one = self.mechanism if few == 1 else RandomAllocation(self.mechanism, few)
        return Composed(one, self.participations)

    @property
    def only_alone(self) -> str:
        """Why it cannot be composed if 1 < k < t, where only bounds are known, else empty."""
        if self.participations in (1, self.steps):
            return ""
        return (
            f"participations={self.participations} of steps={self.steps} is only known between two "
            f"bounds. Ask about {self.blocks!r}, which is at most as private."
        )

    @property
    def unchanged(self) -> Mechanism | None:
        """The composition of all steps if k = t, else None."""
        return Composed(self.mechanism, self.steps) if self.participations == self.steps else None

    @property
    def dimension(self) -> int:
        """The number of coordinates of all steps together."""
        return self.steps * self.mechanism.dimension

    covariance_matrix = Mechanism.covariance_matrix  # of all steps, which are independent

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of all steps, one row per run."""
        return Composed(self.mechanism, self.steps).sample(size, rng=rng)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Raise NotApplicableError: the noise cannot be added without allocating the records."""
        raise NotApplicableError(
            "RandomAllocation chooses the steps of records before it answers, so there is no one "
            "true answer. Choose the steps of each record at random, and release the answer of "
            "each step with the inner mechanism."
        )

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return the worst answers of one step; further records do not make them worse."""
        return self.mechanism.worst_answers()

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the outputs of all steps, one row per run: `answer` is added to k random steps."""
        if np.ndim(answer):
            raise NotApplicableError("RandomAllocation is simulated for one number per step.")
        order = rng.random((size, self.steps)).argsort(axis=1)
        released: Array = self.sample(size, rng=rng).reshape(size, self.steps)
        released += np.where(order < self.participations, float(answer), 0.0)
        return released


# --- The shuffle model: local reports of n users --------------------------------------------------

Counts: TypeAlias = tuple[int, ...]
"""The number of records, or of reports, of each category."""
_MOST_MASSES = 60_000
"""Limit on the probabilities of all pairs together; they take a second at each precision.

It allows 244 users with 2 categories and 17 users with 3.
"""
_MOST_USERS = 10**7
"""Limit on the users: a bound sums about 10 √users terms, which takes a second for 10⁷ users."""
_LARGEST_EPSILON = 100
"""Limit on ε of one report: a larger one needs millions of bits, and its reports are never lies."""


def largest_loss(response: Mechanism) -> ExactReal:
    """Return the pure-DP parameter ε of one user's report."""
    if isinstance(response, Laplace):
        return response.l1_sensitivity / response.scale
    if isinstance(response, Rappor):
        return ExactReal.of_rational(((2 - response.flip) / response.flip) ** 2).log()
    assert isinstance(response, (RandomizedResponse, UnaryEncoding, SubsetSelection, Guaranteed))
    return response.epsilon


@declared
class Shuffled(Mechanism, FiniteLaws):
    """Publish how many of n users reported each category; each user randomises their own report.

    Parameters
    ----------
    mechanism
        The randomiser of each user: `RandomizedResponse(epsilon=2)`; a report of a set
        (`UnaryEncoding`, `SubsetSelection`, `Rappor`); a noisy number, such as
        `Laplace(scale=1, l1_sensitivity=2)` for numbers in a range of length 2; or
        `Guaranteed(epsilon=2)` for an arbitrary 2-DP randomiser.
    users
        n ≥ 1, the number of users. Each sends one report.

    Notes
    -----
    The shuffler hides who sent which report, so only the histogram of the reports is published.
    Neighbours replace the record of one user; n is public.

    *Many users, reports of sets or numbers, arbitrary randomisers.* δ and ε have different lower
    and upper bounds (`dpassay.accountant.pairs.shuffling`).

    *Randomised response with few users.* All pairs of neighbours are examined. Let user 1 change
    from category a to b, and let m_c be the number of other users that hold category c. Let F(M)
    be the law of the histogram if M_c users hold category c. Then P = F(m + e_a) and
    Q = F(m + e_b). F(M) has the generating function Π_c f_c^{M_c}, where f_c(x) = Σ_j r(c, j) x_j
    is the generating function of one report. Renaming the categories renames the histogram, so it
    suffices to take a = 0, b = 1 and the other counts (m_2, …, m_{k−1}) in descending order.
    Exchanging a and b turns the pair of (m_0, m_1, …) into the reverse of the pair of
    (m_1, m_0, …), so the list covers both directions.

    No single m is worst for all ε. With two categories the loss increases with the number of
    reports of a, and δ(ε) = max over m_0 and J of A g(J − 1) − (e^ε − 1) P(S ≥ J), where S is the
    number of reports of a by the other users, g its probability mass function, p the probability of
    a true report, and A = p − e^ε(1 − p). If one more user holds a instead of b, the value changes
    by (2p − 1)(A h(J − 2) − (A + e^ε − 1) h(J − 1)), where h is the mass function without that
    user. This changes sign once, from + to −, because h(J − 2)/h(J − 1) decreases in m_0. So for
    fixed J the value increases and then decreases in m_0. The maximum is often in the interior:
    the other users do not all hold one category, as lower bounds usually assume.
    """

    example = "Shuffled(mechanism=RandomizedResponse(epsilon=2), users=4)"
    no_variance = (
        "Shuffled has no variance: its counts are of reports, not of records. "
        "Ask for delta, epsilon or the trade-off function."
    )

    mechanism: OneMechanism = OneMechanism()
    users: Integer = Integer(least=1)

    def __post_init__(self) -> None:
        response = self.mechanism
        known = (RandomizedResponse, LocalReport, Laplace, Guaranteed)
        if not isinstance(response, known) or (
            isinstance(response, Guaranteed) and response.delta.sign
        ):
            raise NotApplicableError(
                "Shuffled knows randomised response, reports of sets and numbers with Laplace "
                f"noise, not {response!r}. Write "
                "Shuffled(mechanism=RandomizedResponse(epsilon=1, categories=3), users=10), or "
                "Guaranteed(epsilon=1) for any randomiser that is 1-DP."
            )
        if self._epsilon > ExactReal.of_rational(_LARGEST_EPSILON):
            raise expected("mechanism.epsilon", self._epsilon, f"≤ {_LARGEST_EPSILON}")
        if self.users > _MOST_USERS:
            raise expected("users", self.users, f"≤ {_MOST_USERS}", "More take too long to add up.")

    @property
    def _epsilon(self) -> ExactReal:
        return largest_loss(self.mechanism)

    @cached_property
    def _is_listed(self) -> bool:
        """Whether the list of all pairs is within `_MOST_MASSES`."""
        if not isinstance(self.mechanism, RandomizedResponse):
            return False
        k = self.mechanism.categories
        if (k - 1) * log2(self.users + 1) > log2(_MOST_MASSES):
            return False
        histograms: int = (self.users + 1) ** (k - 1)
        return len(self._others) * histograms <= _MOST_MASSES

    @property
    def _response(self) -> RandomizedResponse:
        if isinstance(self.mechanism, (LocalReport, Laplace)):
            raise NotApplicableError(
                f"Shuffled gives bounds for {self.mechanism!r}, but does not run it. Shuffle what "
                "its own release returns."
            )
        if not isinstance(self.mechanism, RandomizedResponse):
            raise NotApplicableError(
                f"Expected a randomiser that can be run, not {self.mechanism!r}, which stands for "
                "all that have the guarantee. Write RandomizedResponse(epsilon=…)."
            )
        return self.mechanism

    @property
    def only_alone(self) -> str:
        """Why it cannot be composed for many users, where no dominating pair is known."""
        if self._is_listed:
            return ""
        return "of so many users only bounds of delta are known, which do not compose."

    @cached_property
    def _others(self) -> list[Counts]:
        """The counts m of the other users, with all (m_0, m_1) and the rest in descending order."""
        rest = self.users - 1
        if self._response.categories == 2:
            return [(first, rest - first) for first in range(rest, -1, -1)]
        return [
            (first, second, *others)
            for first in range(rest, -1, -1)
            for second in range(rest - first, -1, -1)
            for others in _falling(rest - first - second, self._response.categories - 2)
        ]

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return a pair for each m, or bounds if the list is too long.

        Raises AdjacencyError under add/remove.
        """
        if adjacency is Adjacency.ADD_REMOVE:
            raise AdjacencyError(
                "Shuffled has a known number of users, whose records are replaced. "
                "Name adjacency='replace-one', or none."
            )
        if not self._is_listed:
            response = self.mechanism
            report = response if isinstance(response, LocalReport) else None
            categories: int = getattr(response, "categories", 0)
            return WorstCase.symmetric(
                ShuffledReports(
                    self._epsilon, categories, self.users, report, isinstance(response, Laplace)
                ),
                "Upper bound: with some probability, another user sends a report that user 1 could "
                "have sent. Lower bound: datasets in which all other users hold the same input.",
            )
        pairs = tuple(FinitePair(self, index) for index in range(len(self._others)))
        return WorstCase(
            pairs,
            pairs,
            "One user changes from the first category to the second; everything that the others "
            "may hold is listed, up to renaming.",
        )

    def outcomes(self, index: int) -> Sequence[object]:
        """Return the histograms; with two categories, the number of reports of the first one."""
        if self._response.categories == 2:
            return range(self.users + 1)
        return [",".join(map(str, counts)) for counts, _ in self._histograms]

    @cached_property
    def _histograms(self) -> list[tuple[Counts, int]]:
        """All histograms, each with the exponent of its monomial (as in `_power`)."""
        base, found = self.users + 1, []
        for exponent in range(base ** (self._response.categories - 1)):
            digits, left = [], exponent
            for _ in range(self._response.categories - 1):
                left, digit = divmod(left, base)
                digits.append(digit)
            if sum(digits) <= self.users:
                found.append(((*digits, self.users - sum(digits)), exponent))
        return found

    def masses(self, index: int) -> tuple[list[arb], list[arb]]:
        """Return the laws P and Q of the histogram.

        The working precision is raised so that small masses keep their relative accuracy.
        """
        bits = ctx.prec
        odds = float(self._response.epsilon.ball().exp().upper()) + self._response.categories
        with ctx.workprec(bits + int(self.users * log2(odds)) + 64):
            others = arb_poly([1])
            for category, count in enumerate(self._others[index]):
                if count:
                    others = others * _power(self, category, count, ctx.prec)
            laws = [others * _power(self, category, 1, ctx.prec) for category in (0, 1)]
            p, q = ([law[place] for _, place in self._histograms] for law in laws)
        return p, q

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return ±ε if all reports are of category 0 or all of category 1, and 0 if P = Q.

        P(h) − Q(h) is a multiple of g(h − e_0) − g(h − e_1), where g is the law of the histogram of
        the other users. This is 0 if h_0 = h_1 = 0, and by symmetry if h_0 = h_1 and m_0 = m_1.
        Other losses are None.
        """
        epsilon, alike = self._response.epsilon, self._others[index][0] == self._others[index][1]
        found: list[ExactReal | None] = []
        for counts, _ in self._histograms:
            first, second = counts[:2]
            if first == second and (first == 0 or alike):
                found.append(ExactReal.of_rational(0))
            elif self.users in (first, second):
                found.append(epsilon if first else -epsilon)
            else:
                found.append(None)
        return found

    @property
    def dimension(self) -> int:
        """The number of categories."""
        return self._response.categories

    def sample(self, size: int, *, rng: Randomness) -> Array:
        """Draw `size` histograms exactly if all users hold the first category."""
        return self.outputs((self.users, *[0] * (self.dimension - 1)), size, rng=rng)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Draw `times` histograms of reports for an array with the category of each user."""
        records = categories(value, self.dimension)
        if records.shape != (self.users,):
            raise expected(
                "value", records.shape, f"to be {self.users} records", "One of each user."
            )
        counts = tuple(int((records == category).sum()) for category in range(self.dimension))
        return self.outputs(counts, times, rng=rng)

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return the two datasets of every pair, as counts of users per category."""
        return [
            ((first + 1, second, *rest), (first, second + 1, *rest))
            for first, second, *rest in self._others
        ]

    def outputs(self, answer: Any, size: int, *, rng: Randomness) -> Array:
        """Draw `size` histograms of reports, one per row, if answer[c] users hold category c."""
        drawn = np.zeros((size, self.dimension), dtype=np.int64)
        for category, count in enumerate(answer):
            lies = self._response.sample(size * int(count), rng=rng).reshape(size, int(count))
            reports = (lies + category) % self.dimension
            for other in range(self.dimension):
                drawn[:, other] += (reports == other).sum(axis=1)
        return drawn


def _falling(total: int, parts: int, most: int | None = None) -> Iterator[Counts]:
    """Yield the non-increasing lists of `parts` integers in [0, most] that sum to `total`."""
    if parts == 0:
        if total == 0:
            yield ()
        return
    for first in range(min(total, total if most is None else most), -1, -1):
        if first * parts < total:
            return
        for rest in _falling(total - first, parts - 1, first):
            yield (first, *rest)


@lru_cache(maxsize=4096)
def _power(shuffled: Shuffled, category: int, count: int, bits: int) -> arb_poly:
    """Return f_c^count as a polynomial in x: x_{k−1} = 1, and x_j = x^{(n + 1)^j} for other j."""
    if count > 1:
        half = _power(shuffled, category, count // 2, bits)
        whole = half * half
        return whole * _power(shuffled, category, 1, bits) if count % 2 else whole
    response = shuffled.mechanism
    assert isinstance(response, RandomizedResponse)
    k, base = response.categories, shuffled.users + 1
    odds = response.epsilon.ball().exp()
    places = [base**j for j in range(k - 1)] + [0]
    entries = [arb(0)] * (places[-2] + 1)
    for j, place in enumerate(places):
        entries[place] = (odds if j == category else arb(1)) / (odds + k - 1)
    return arb_poly(entries)


# --- Gaussian noise on a sum with a random contribution of each record ----------------------------


@declared
class MixtureOfGaussians(GaussianNoise):
    """Release a sum plus N(0, σ²) noise; a record adds ≤ s_i in ℓ2 norm with probability w_i.

    Parameters
    ----------
    standard_deviation
        σ > 0, per coordinate.
    sensitivities
        The s_i ≥ 0.
    sampling_probs
        The w_i, rational numbers that sum to exactly 1. The contribution of a record is drawn
        independently of all others.

    Notes
    -----
    Two sensitivities, one of them 0, give Poisson subsampling. A person with k records, each
    sampled with probability q, has sensitivities 0, …, k with binomial probabilities.

    *Add/remove.* The pair (Σ w_i N(s_i, σ²), N(0, σ²)) dominates for REMOVE, and its reverse for
    ADD. Contributions of full length in one direction are worst, and attain it (Choquette-Choo,
    Ganesh, Steinke and Thakurta 2024; Ganesh 2024 for groups).

    *Replace-one.* Both records add at most s_i in case i. The worst pair is
    (Σ w_i N(s_i, σ²), Σ w_i N(−s_i, σ²)). *Proof.* Fix the contributions of all other records. Let
    A_i and A'_i be the laws of the release in case i with the old and the new record, and B the law
    with neither. For an event S with B(S) = Φ(c), the Neyman–Pearson lemma gives
    A_i(S) ≤ Φ(c + s_i/σ) and A'_i(S) ≥ Φ(c − s_i/σ), with equality for all i at once for a
    half-line and opposite shifts. So Σ w_i (A_i(S) − e^ε A'_i(S)) is at most its value for the
    pair. By joint convexity the bound still holds after averaging over the other records.
    """

    example = (
        "MixtureOfGaussians(standard_deviation=1, sensitivities=[0, 1, 2], "
        "sampling_probs=['0.81', '0.18', '0.01'])"
    )

    noise_argument = "standard_deviation"

    standard_deviation: Positive = Positive()
    sensitivities: Reals = Reals(least=0)
    sampling_probs: Probabilities = Probabilities()

    def __post_init__(self) -> None:
        if len(self.sensitivities) != len(self.sampling_probs):
            raise InvalidInputError(
                f"Expected sampling_probs to have {len(self.sensitivities)} entries, one for each "
                f"sensitivity, not {len(self.sampling_probs)}."
            )

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the mixture against N(0, 1), in units of σ, and the reverse pair.

        Under replace-one, return the mixtures with opposite shifts. Raises AdjacencyError if no
        relation is given.
        """
        relation, simple = require(adjacency, self), self._simple()
        if simple is not None and relation is Adjacency.ADD_REMOVE:
            return simple.worst_case(relation)
        if isinstance(simple, Gaussian):
            return self._replaced(simple).worst_case(relation)
        if isinstance(simple, PoissonSubsampled):
            return simple.worst_case(relation)
        means = [each / self.standard_deviation for each in self.sensitivities]
        moved = mixture(self.sampling_probs, means)
        if relation is Adjacency.REPLACE_ONE:
            opposite = mixture(self.sampling_probs, [-each for each in means])
            return WorstCase.symmetric(
                GaussianMixturePair(moved, opposite),
                "In each case the two laws lie at most its sensitivity from the one with neither "
                "record; opposite shifts are worst, and attained without other records.",
            )
        pair = GaussianMixturePair(moved, ((Fraction(1), ExactReal.of_rational(0)),))
        return WorstCase(
            (pair,),
            (pair.reverse(),),
            "The worst shifts all have one direction and their full length; they are attained "
            "without other records.",
        )

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return μ if the shift is deterministic, doubled under replace-one; else None."""
        simple = self._simple()
        if not isinstance(simple, Gaussian):
            return None
        if require(adjacency, self) is Adjacency.REPLACE_ONE:
            simple = self._replaced(simple)
        return simple.exact_gaussian_mu(adjacency)

    def _replaced(self, simple: Gaussian) -> Gaussian:
        return Gaussian(self.standard_deviation, simple.l2_sensitivity.times(2))

    def _simple(self) -> Mechanism | None:
        """Return the equal Gaussian or PoissonSubsampled mechanism, None if there is none."""
        parts = mixture(self.sampling_probs, self.sensitivities)
        least, largest = parts[0][1], parts[-1][1]
        if largest.sign == 0:
            return PoissonSubsampled(Gaussian(self.standard_deviation), 0)
        noise = Gaussian(self.standard_deviation, largest)
        if len(parts) == 1:
            return noise
        if len(parts) == 2 and least.sign == 0:
            return PoissonSubsampled(noise, parts[-1][0])
        return None

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of one coordinate of `size` releases."""
        return Gaussian(self.standard_deviation).sample(size, rng=rng)

    def variances(self) -> Sequence[arb]:
        """Return [σ²], which excludes the sampling error."""
        return [self.standard_deviation.ball() ** 2]

    def quantile(self, probability: ExactReal) -> arb:
        """Return σ Φ⁻¹(probability)."""
        return Gaussian(self.standard_deviation).quantile(probability)

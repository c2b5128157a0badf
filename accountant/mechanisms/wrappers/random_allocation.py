"""Random allocation: each record takes part in one step of an epoch, chosen uniformly."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dpassay.accountant.core.adjacency import Adjacency, require
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import Integer
from dpassay.accountant.errors import AdjacencyError, NotApplicableError, expected
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.mechanisms.wrappers.parts import OnChosenRecords, OneMechanism
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.pairs.allocated_noise import AllocatedNoise, allocated
from dpassay.accountant.pairs.allocation_event import AllocationEvent
from dpassay.accountant.pairs.between import Between
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.pairs.random_allocation import RandomAllocationPair


@declared
class RandomAllocation(OnChosenRecords):
    """Run a mechanism `steps` times, each record in `participations` of them by chance.

    Parameters
    ----------
    mechanism
        The mechanism of one step, such as `Gaussian(standard_deviation=1)`. Other noise needs one
        worst pair, with finite losses.
    steps
        t ≥ 1: the steps of one epoch.
    participations
        How many different steps a record takes part in, 1 ≤ k ≤ t, all sets of k steps being
        equally likely, and those of different records independent. Gaussian noise is exact at
        k = 1 and k = t, with two ends elsewhere; noise whose loss has few values, such as
        DiscreteLaplace, is exact; other noise has two ends, near each other, for k = 1.

    Notes
    -----
    For the add/remove relation (equally: a record is zeroed out, while divisors and the number of
    steps stay), also called balls and bins (Chua, Harrison, Kamath, Leeman, Sinha and Zhang 2025;
    Feldman and Shenfeld 2025). With μ that of one step, the worst pair of k = 1 is

        P = (1/t) Σ_j N(μ e_j, I),   Q = N(0, I),

    REMOVE compares P with Q, ADD compares Q with P. `Composed(RandomAllocation(…), count)` draws
    new steps in each of several epochs.

    *Proof.* Other records choose their steps independently; hockey-stick divergences are jointly
    convex, so these are given. Step j may depend on all earlier outputs y; there the record, if it
    takes part, moves the mean by a vector of length μ s_j(y) noise deviations, 0 ≤ s_j ≤ 1. From
    one coordinate Z, N(μ, 1) or N(0, 1), the output is made without knowing which: s_j Z plus
    √(1 − s_j²) of new standard noise, put into the direction of the vector, and new noise in
    all orthogonal ones. So the outputs are a randomised function, step by step, of a draw of P or
    of Q, which is no easier to tell apart. A record that always moves its step by the full
    sensitivity attains the pair.

    Of other noise (A, B), the worst pair of one step with and without the record, takes the place
    of N(μ, 1) and N(0, 1): from a draw of it a function makes one of the laws of a step, whichever
    of both it is (Blackwell), for every earlier output.

    *Several participations, above.* A random partition of ⌊t/k⌋ k steps into k equal blocks, and
    one step of each block by chance, are k steps by chance: by joint convexity no worse than k
    allocations to ⌊t/k⌋ steps. *Below.* H is at least P(S) − e^ε Q(S) for every event S: those of
    the mean W of the likelihood ratios of the steps, on which nearly all of that of P and Q depends
    where t is large, or of powers of them; and those of the sum of all steps, N(kμ, t) against
    N(0, t).

    It is not a shuffled epoch of fixed batches, where the steps of records depend on each other:
    that can be far less private. Noise and error are those of the mechanism of one step.
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
        """Return the pair of one participation, or that of all steps.

        Of other numbers of participations the pair is only enclosed. Raises AdjacencyError unless
        add-remove is named, NotApplicableError for noise that is not Gaussian.
        """
        if require(adjacency, self) is Adjacency.REPLACE_ONE:
            raise AdjacencyError(
                "RandomAllocation is known for a record that is added or removed: both datasets "
                "mix where one is replaced. Name adjacency='add-remove', or give its mechanism "
                "twice the sensitivity and no allocation."
            )
        if self.unchanged is not None:
            return self.unchanged.worst_case(adjacency)
        mu = self._mu()
        if mu is None:
            return self._of_any_noise(adjacency)
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

    def _mu(self) -> ExactReal | None:
        """Return μ of a Gaussian step."""
        return self.mechanism.exact_gaussian_mu(Adjacency.ADD_REMOVE)

    def _of_any_noise(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pair of noise that is not Gaussian."""
        inner = self.mechanism.worst_case(adjacency)
        pair = allocated(inner, self.steps, self.participations)
        if pair is None:
            raise NotApplicableError(
                f"RandomAllocation of {type(self.mechanism).__name__} is known for noise with one "
                "worst pair and finite losses, and for several participations where the loss of a "
                "step has few values. Use Gaussian, one participation, or PoissonSubsampled, which "
                "is another way to sample."
            )
        return WorstCase(
            (pair,),
            (pair.reverse(),),
            "Given the steps of the other records, the outputs are a randomised function, step by "
            "step, of a draw of one of two laws: that of the worst pair without the record in "
            "every step, and the same with it in the steps that are chosen; attained by a record "
            f"that attains the pair in every step. {inner.reason}",
        )

    def _between(self, mu: ExactReal, adjacency: Adjacency | None) -> WorstCase:
        """Return both ends for several participations."""
        k, t = self.participations, self.steps
        together = Gaussian(ExactReal.of_root(Fraction(t)) / mu, k)
        least = (GaussianPair(together, None), AllocationEvent(mu, t, k))
        (most,) = self.blocks.worst_case(adjacency).remove
        pair = Between(least, most, f"how private {k} steps of {t} are")
        return WorstCase(
            (pair,),
            (pair.reverse(),),
            "Below: means of powers of the likelihood ratios of the steps, and the sum of all. "
            f"Above: {k} allocations to {t // k} steps, one in each block of a random partition.",
        )

    @property
    def blocks(self) -> Mechanism:
        """What is no more private: k allocations to ⌊t/k⌋ steps."""
        few = self.steps // self.participations
        one = self.mechanism if few == 1 else RandomAllocation(self.mechanism, few)
        return Composed(one, self.participations)

    @property
    def only_alone(self) -> str:
        """Say what to compose where several participations have two ends."""
        if self.participations == self.steps:
            return ""
        if self._mu() is None:
            (pair,) = self.worst_case(Adjacency.ADD_REMOVE).remove
            epochs = f"Several epochs of {self!r} are not known. Ask about one, or use Gaussian."
            return epochs if isinstance(pair, AllocatedNoise) else ""
        if self.participations == 1:
            return ""
        return (
            f"participations={self.participations} of steps={self.steps} is known between two ends "
            f"only. Ask about {self.blocks!r}, which is no more private."
        )

    @property
    def unchanged(self) -> Mechanism | None:
        """All steps, where a record takes part in all."""
        return Composed(self.mechanism, self.steps) if self.participations == self.steps else None

    @property
    def dimension(self) -> int:
        """That of all steps together."""
        return self.steps * self.mechanism.dimension

    covariance_matrix = Mechanism.covariance_matrix  # of all steps, which are independent

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of all steps."""
        return Composed(self.mechanism, self.steps).sample(size, rng=rng)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Refuse: the noise alone allocates nothing."""
        raise NotApplicableError(
            "RandomAllocation chooses the steps of records before it answers, so there is no one "
            "true answer. Choose the steps of each record at random, and release the answer of "
            "each step with the inner mechanism."
        )

    def worst_answers(self) -> list[tuple[Any, Any]]:
        """Return those of one step: other records make it no worse."""
        return self.mechanism.worst_answers()

    def outputs(self, answer: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Add the answer to the noise of the steps that are chosen, one row per run."""
        if np.ndim(answer):
            raise NotApplicableError("RandomAllocation is simulated for one number per step.")
        order = rng.random((size, self.steps)).argsort(axis=1)
        released: Array = self.sample(size, rng=rng).reshape(size, self.steps)
        released += np.where(order < self.participations, float(answer), 0.0)
        return released

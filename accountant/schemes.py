"""How batches are made, and what a whole training run then releases.

A run adds N(0, (noise_multiplier · C)²) noise to the sum of gradients that are clipped to norm C,
in every step; all is in units of C. What a step sees of the data is the sampling, and each
sampling comes with its own neighbouring relation:

* "poisson": every record is in a batch with probability q = batch_size/dataset_size, independently
  of all else; neighbours by add-remove. One step is `PoissonSubsampled(Gaussian(noise_multiplier),
  q)`; with `group=k` neighbours differ in k records, of which Binomial(k, q) are in a batch, and a
  step is a `MixtureOfGaussians`. Its pair is worst for adaptively chosen steps too.
* "truncated-poisson": Poisson samples of which truncated_batch_size records are kept, at random,
  where there are more; neighbours by add-remove. ε has two ends, which nearly meet where hardly
  any batch is cut (`accountant.truncated_batches`).
* "without-replacement": every batch is a uniform subset of batch_size records, drawn anew;
  neighbours by replace-one. Replacing a clipped gradient moves the sum by at most 2C, so a step is
  `SampledWithoutReplacement(Gaussian(noise_multiplier, l2_sensitivity=2), …)`.
* "random-allocation": every record is in one step of each epoch, chosen uniformly, independently of
  all else; neighbours by add-remove. An epoch is `RandomAllocation(Gaussian(…), steps=t)`, t =
  ⌊dataset_size/batch_size⌋. More steps are no worse: one of t' > t is one of a random set of t, and
  hockey-stick divergences are jointly convex.
* "shuffle": the records are put into a random order in each epoch and cut into batches. Neighbours
  differ in a record whose gradient is 0 in one of them ("add-remove" in the answers: batches stay).
  Given the order, which does not depend on gradients, a record is in one batch of an epoch, so that
  an epoch is a Gaussian release of it, and by joint convexity no worse for a random order: that is
  the upper end. The lower one is that of a dataset and an event
  (`accountant.pairs.shuffled_batches`), or for one epoch, if larger, that of the dataset where all
  other gradients are 0. There only the batch of the record matters, and with ⌈N/B⌉
  batches its law w is that of a random allocation, or less even; the uniform law is the mean of w
  over permutations of the steps, which leave hockey-stick divergences alone, so that by joint
  convexity the allocation is no worse.

What is proved of one is no guarantee for another: that of Poisson batches is none for a shuffle.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

from accountant import ask
from accountant.core.adjacency import Adjacency
from accountant.core.mechanism import Mechanism
from accountant.core.validate import integer
from accountant.errors import InvalidInputError, NotApplicableError, expected, suggestion
from accountant.mechanisms.additive.gaussian import Gaussian
from accountant.mechanisms.additive.mixture_of_gaussians import MixtureOfGaussians
from accountant.mechanisms.wrappers.composed import Composed
from accountant.mechanisms.wrappers.random_allocation import RandomAllocation
from accountant.mechanisms.wrappers.sampled_without_replacement import SampledWithoutReplacement
from accountant.mechanisms.wrappers.subsampled import PoissonSubsampled
from accountant.numbers.exact import ExactReal, Number, exact
from accountant.numbers.interval import Interval
from accountant.pairs.shuffled_batches import ShuffledBatches
from accountant.truncated_batches import TruncatedBatches

TRUNCATED = "truncated-poisson"
"""The sampling that needs a limit of its batches."""


@final
@dataclass(frozen=True, slots=True)
class Loop:
    """How long a training loop runs, on what."""

    batch: int
    size: int
    epochs: Fraction | None
    """None where the steps are counted."""
    given_steps: int | None
    group: int
    most: int | None = None
    """Records that a Poisson batch may have; None where there is no limit."""

    @classmethod
    def of(
        cls,
        batch_size: int,
        dataset_size: int,
        epochs: Number | None,
        steps: int | None,
        group: int = 1,
        *,
        most: int | None = None,
    ) -> Loop:
        """Return the loop of checked settings."""
        batch = integer("batch_size", batch_size, least=1)
        size = integer("dataset_size", dataset_size, least=1)
        people = integer("group", group, least=1)
        if most is not None:
            most = integer("truncated_batch_size", most, least=1)
        if batch > size:
            raise expected("batch_size", batch, f"≤ dataset_size={size}", "Are the two swapped?")
        if (epochs is None) == (steps is None):
            raise InvalidInputError(
                "Expected the length of the run: epochs=30 (--epochs 30) or steps=7032 "
                "(--steps 7032), one of them."
            )
        if steps is not None:
            return cls(batch, size, None, integer("steps", steps, least=1), people, most)
        number = exact(epochs, "epochs").rational  # type: ignore[arg-type]  # it is given
        if number is None or number <= 0:
            raise expected("epochs", epochs, "to be a positive rational number")
        return cls(batch, size, number, None, people, most)

    @property
    def share(self) -> Fraction:
        """Share of the records in a batch."""
        return Fraction(self.batch, self.size)

    @property
    def steps(self) -> int:
        """Steps of batches that are sampled anew."""
        if self.epochs is None:
            return self.given_steps or 0
        return math.ceil(self.epochs / self.share)

    @property
    def steps_in_words(self) -> str:
        """Where the number of steps comes from."""
        if self.epochs is None:
            return f"The run has {self.steps} steps."
        return f"{self.epochs} epochs are {self.steps} steps (rounded up)."

    @property
    def full_batches(self) -> int:
        """Batches of an epoch that are full: its least number of steps."""
        return self.size // self.batch

    @property
    def whole_epochs(self) -> tuple[int, int]:
        """How many epochs are run from end to end, and how many are begun, at most."""
        if self.epochs is None:
            done = self.steps // math.ceil(1 / self.share)
            return done, math.ceil(Fraction(self.steps, self.full_batches))
        return math.floor(self.epochs), math.ceil(self.epochs)

    @property
    def epochs_in_words(self) -> str:
        """How epochs are counted, and batches in them."""
        (done, begun), full = self.whole_epochs, self.full_batches
        counted = "" if done == begun else ", parts counted as whole ones"
        words = f"The run has {begun} epoch{'s' if begun > 1 else ''}{counted}"
        if self.size % self.batch == 0:
            return f"{words}, of {full} step{'s' if full > 1 else ''} each."
        return f"{words}, of {full} steps or more each ({self.size}/{self.batch} is not whole)."


@final
@dataclass(frozen=True, slots=True)
class Scheme:
    """What a run releases under one sampling."""

    mechanism: Mechanism
    """All steps together, or what is no better."""
    adjacency: Adjacency
    assumptions: tuple[str, ...]
    steps: int
    share: Fraction
    below: Callable[[ExactReal], tuple[Interval, str]] | None = None
    """A lower bound of ε(δ) and its reason, where the mechanism gives the upper one only."""
    ends: Callable[[ExactReal], tuple[Interval, str]] | None = None
    """An enclosure of ε(δ) and what its ends rest on, where the mechanism is not all there is."""

    def epsilon(self, delta: ExactReal) -> tuple[Interval, str]:
        """Enclose ε(δ), and say what its ends rest on where they differ in kind."""
        if self.ends is not None:
            return self.ends(delta)
        asked = self.of(self.mechanism, delta)
        if self.below is None:
            return asked, ""
        lower, reason = self.below(delta)
        return Interval(min(lower.lower, asked.lower), asked.upper), reason

    def of(self, mechanism: Mechanism, delta: ExactReal) -> Interval:
        """Enclose ε(δ) of a mechanism for these neighbours."""
        found: Interval = ask.epsilon(mechanism, delta, adjacency=self.adjacency)
        return found


def scheme(sampling: str, sigma: ExactReal, loop: Loop) -> Scheme:
    """Return what a run releases.

    Raises InvalidInputError for an unknown sampling or a limit of batches that does not fit it,
    NotApplicableError for a group of which nothing is proved.
    """
    if sampling not in SCHEMES:
        raise InvalidInputError(
            f"Expected sampling to be one of {', '.join(SCHEMES)}, not {sampling!r}. "
            f"{suggestion(str(sampling), SCHEMES)}"
        )
    if (loop.most is None) == (sampling == TRUNCATED):
        raise InvalidInputError(
            f"Expected truncated_batch_size with sampling={TRUNCATED!r}: the records that are kept "
            "of a larger batch."
            if loop.most is None
            else f"Expected sampling={TRUNCATED!r} with truncated_batch_size={loop.most}, not "
            f"{sampling!r}."
        )
    if loop.group != 1 and sampling != "poisson":
        raise NotApplicableError(
            f"group={loop.group} is answered for sampling='poisson' only. Leave group out."
        )
    return SCHEMES[sampling](sigma, loop)


def _times(release: Mechanism, count: int) -> Mechanism:
    return release if count == 1 else Composed(release, count)


def _poisson(sigma: ExactReal, loop: Loop) -> Scheme:
    """Each of a person's records is in each step with probability q."""
    q, group = loop.share, loop.group
    release: Mechanism = PoissonSubsampled(Gaussian(sigma), ExactReal.of_rational(q))
    if group > 1:
        law = [
            math.comb(group, taken) * q**taken * (1 - q) ** (group - taken)
            for taken in range(group + 1)
        ]
        release = MixtureOfGaussians(sigma, list(range(group + 1)), law)
    records = "one record is" if group == 1 else f"{group} records are"
    return Scheme(
        _times(release, loop.steps),
        Adjacency.ADD_REMOVE,
        (
            f"Every step takes each record with probability {loop.batch}/{loop.size}, "
            "independently: batches differ in size, and none is cut or filled up.",
            f"Neighbours: {records} added or removed.",
            loop.steps_in_words,
        ),
        loop.steps,
        q,
    )


def _truncated_poisson(sigma: ExactReal, loop: Loop) -> Scheme:
    """Where batches are cut, a record that is kept may take the place of another one."""
    assert loop.most is not None
    cut = TruncatedBatches(sigma, loop.size, loop.share, loop.most, loop.steps)
    whole = _poisson(sigma, loop)

    def ends(delta: ExactReal) -> tuple[Interval, str]:
        upper, crowded = cut.upper(delta)
        how = (
            f"in up to {crowded} steps a record may take another one's place, which moves the sum "
            "by 2C"
            if crowded
            else "no batch is cut"
        )
        return Interval(cut.lower(delta), upper), (
            f"Lower end: all other gradients are 0. Upper end: {how}; what is worse is so rare "
            "that delta pays for it."
        )

    assumption, *rest = whole.assumptions
    limited = assumption.replace(
        "and none is cut or filled up.",
        f"none is filled up, and of more than {loop.most} records {loop.most} are kept, all "
        "subsets equally likely.",
    )
    return replace(whole, mechanism=cut.worst(), assumptions=(limited, *rest), ends=ends)


def _without_replacement(sigma: ExactReal, loop: Loop) -> Scheme:
    release = SampledWithoutReplacement(Gaussian(sigma, 2), loop.batch, loop.size)
    return Scheme(
        _times(release, loop.steps),
        Adjacency.REPLACE_ONE,
        (
            f"Every step draws {loop.batch} of the {loop.size} records, all subsets equally "
            "likely, independently of the steps before.",
            "Neighbours: one record is replaced by another, which moves a sum by up to 2C.",
            loop.steps_in_words,
        ),
        loop.steps,
        loop.share,
    )


def _allocated(sigma: ExactReal, steps: int, epochs: int) -> Mechanism:
    return _times(RandomAllocation(Gaussian(sigma), steps), epochs)


def _random_allocation(sigma: ExactReal, loop: Loop) -> Scheme:
    (_, epochs), t = loop.whole_epochs, loop.full_batches
    return Scheme(
        _allocated(sigma, t, epochs),
        Adjacency.ADD_REMOVE,
        (
            "In every epoch each record is in one step, each step equally likely, independently "
            "of the other records and epochs: batches differ in size, and none is cut or filled "
            "up.",
            "Neighbours: one record is added or removed, or has the gradient 0; the number of "
            "steps and what sums are divided by stay.",
            loop.epochs_in_words,
        ),
        loop.given_steps or epochs * t,
        Fraction(1, t),
    )


def _shuffle(sigma: ExactReal, loop: Loop) -> Scheme:
    done, begun = loop.whole_epochs
    most = math.ceil(1 / loop.share)

    def below(delta: ExactReal) -> tuple[Interval, str]:
        if done == 0 or delta.sign == 0:
            return Interval.of_exact(0), "Lower end: 0, as no epoch is whole."
        found, event = ShuffledBatches(sigma, loop.batch, loop.size, done).lower(delta)
        first = Interval.of_ball(found)
        reason = (
            "Lower end: all other gradients are -C*u for one direction u, the record's is C*u; "
            f"the event: {event} along u."
        )
        if done > 1:
            return first, reason
        even: Interval = ask.epsilon(
            _allocated(sigma, most, 1), delta, adjacency=Adjacency.ADD_REMOVE
        )
        if even.lower > first.lower:
            return even, (
                "Lower end: all other gradients are 0, and a test tells in which batches the "
                "record is, as for random allocation."
            )
        return first, reason

    whole = "" if loop.size % loop.batch == 0 else ", the last batch being smaller"
    return Scheme(
        _times(Gaussian(sigma), begun),
        Adjacency.ADD_REMOVE,
        (
            "In every epoch the records are put into a random order and cut into batches of "
            f"{loop.batch}{whole}; the order does not depend on the gradients.",
            "Neighbours: one record has the gradient 0 in one of them; batches and what sums are "
            "divided by stay.",
            loop.epochs_in_words,
        ),
        loop.given_steps or begun * most,
        loop.share,
        below,
    )


SCHEMES: dict[str, Callable[[ExactReal, Loop], Scheme]] = {
    "poisson": _poisson,
    "random-allocation": _random_allocation,
    "shuffle": _shuffle,
    TRUNCATED: _truncated_poisson,
    "without-replacement": _without_replacement,
}
"""How batches are made, by name."""

"""How batches are made, and what a whole training run then releases.

A run adds N(0, (noise_multiplier · C)²) noise to the sum of gradients that are clipped to norm C,
in every step; all is in units of C. What a step sees of the data is the sampling, and each
sampling comes with its own neighbouring relation:

* "poisson": every record is in a batch with probability q = batch_size/dataset_size, independently
  of all else; neighbours by add-remove. One step is `PoissonSubsampled(Gaussian(noise_multiplier),
  q)`; with `group=k` neighbours differ in k records, of which Binomial(k, q) are in a batch, and a
  step is a `MixtureOfGaussians`. Its pair is worst for adaptively chosen steps too. (Other schemes
  have two ends for groups: `accountant.groups`.)
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
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import final

from accountant import ask, groups
from accountant.core.adjacency import Adjacency
from accountant.core.mechanism import Mechanism
from accountant.core.validate import integer
from accountant.errors import InvalidInputError, expected, suggestion
from accountant.groups import times
from accountant.mechanisms.additive.gaussian import Gaussian
from accountant.mechanisms.wrappers.random_allocation import RandomAllocation
from accountant.mechanisms.wrappers.sampled_without_replacement import SampledWithoutReplacement
from accountant.numbers.exact import ExactReal, Number, exact
from accountant.numbers.interval import Interval
from accountant.pairs.shuffled_batches import ShuffledBatches
from accountant.truncated_batches import TruncatedBatches, sampled

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
        said = "One epoch is" if self.epochs == 1 else f"{self.epochs} epochs are"
        return f"{said} {self.steps} step{'s' * (self.steps > 1)} (rounded up)."

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
    ends: Callable[[ExactReal], tuple[Interval, str]] | None = None
    """An enclosure of ε(δ) and what its ends rest on, where the mechanism is not all there is."""

    def epsilon(self, delta: ExactReal) -> tuple[Interval, str]:
        """Enclose ε(δ), and say what its ends rest on where they differ in kind."""
        if self.ends is not None:
            return self.ends(delta)
        return _of(self.mechanism, self.adjacency, delta), ""


def _of(mechanism: Mechanism, adjacency: Adjacency, delta: ExactReal) -> Interval:
    found: Interval = ask.epsilon(mechanism, delta, adjacency=adjacency)
    return found


def scheme(sampling: str, sigma: ExactReal, loop: Loop) -> Scheme:
    """Return what a run releases.

    Raises InvalidInputError for an unknown sampling or a limit of batches that does not fit it.
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
    return SCHEMES[sampling](sigma, loop)


def _poisson(sigma: ExactReal, loop: Loop) -> Scheme:
    """Each of a person's records is in each step with probability q."""
    q, group = loop.share, loop.group
    records = "one record is" if group == 1 else f"{group} records are"
    return Scheme(
        times(sampled(sigma, q, group), loop.steps),
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
    cut = TruncatedBatches(sigma, loop.size, loop.share, loop.most, loop.steps, loop.group)
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
    k = loop.group
    release = SampledWithoutReplacement(Gaussian(sigma, 2), loop.batch, loop.size)
    alone, always = times(release, loop.steps), times(Gaussian(sigma, 2 * k), loop.steps)

    def ends(delta: ExactReal) -> tuple[Interval, str]:
        least = groups.drawn(sigma, loop.batch, loop.size, loop.steps, k)
        found: Interval = ask.epsilon(least, delta, adjacency=Adjacency.ADD_REMOVE)
        rule = groups.by_rule(partial(_of, alone, Adjacency.REPLACE_ONE), k, delta)
        upper = min(rule, _of(always, Adjacency.REPLACE_ONE, delta).upper)
        return Interval(found.lower, upper), (
            f"Lower end: all other gradients are -C*u for one direction u, those of the {k} "
            f"records C*u. Upper end: they are replaced one after the other, or are in all batches."
        )

    records = "one record is replaced" if k == 1 else f"{k} records are replaced, each"
    return Scheme(
        alone if k == 1 else always,
        Adjacency.REPLACE_ONE,
        (
            f"Every step draws {loop.batch} of the {loop.size} records, all subsets equally "
            "likely, independently of the steps before.",
            f"Neighbours: {records} by another, which moves a sum by up to 2C.",
            loop.steps_in_words,
        ),
        loop.steps,
        loop.share,
        None if k == 1 else ends,
    )


def _allocated(sigma: ExactReal, steps: int, epochs: int) -> Mechanism:
    return times(RandomAllocation(Gaussian(sigma), steps), epochs)


def _random_allocation(sigma: ExactReal, loop: Loop) -> Scheme:
    (_, epochs), t, k = loop.whole_epochs, loop.full_batches, loop.group
    alone = _allocated(sigma, t, epochs)
    shared = groups.shared_noise(sigma, t, epochs, k)

    def ends(delta: ExactReal) -> tuple[Interval, str]:
        of = partial(_of, adjacency=Adjacency.ADD_REMOVE, delta=delta)
        below = [of(each).lower for each in groups.gathered(sigma, t, epochs, k)]
        rule = groups.by_rule(partial(_of, alone, Adjacency.ADD_REMOVE), k, delta)
        return Interval(max(below), min(rule, of(shared).upper)), (
            "Lower end: the gradients of the records are orthogonal, or one, and all others 0. "
            "Upper end: each record has its part of the noise, or they are left out one after the "
            "other."
        )

    return Scheme(
        alone if k == 1 else shared,
        Adjacency.ADD_REMOVE,
        (
            "In every epoch each record is in one step, each step equally likely, independently "
            "of the other records and epochs: batches differ in size, and none is cut or filled "
            "up.",
            f"Neighbours: {_zeroed(k, 'added or removed')}; the number of steps and what sums "
            "are divided by stay.",
            loop.epochs_in_words,
        ),
        loop.given_steps or epochs * t,
        Fraction(1, t),
        None if k == 1 else ends,
    )


def _zeroed(group: int, changed: str = "") -> str:
    """Say by whom neighbours differ."""
    if group == 1:
        who, is_, has = "one record", "is", "has"
    else:
        who, is_, has = f"{group} records", "are", "have"
    first = f"{who} {is_} {changed}, or" if changed else who
    return f"{first} {has} the gradient 0"


def _shuffle(sigma: ExactReal, loop: Loop) -> Scheme:
    (done, begun), k = loop.whole_epochs, loop.group
    most = math.ceil(1 / loop.share)
    whole = times(Gaussian(sigma, k), begun)

    def ends(delta: ExactReal) -> tuple[Interval, str]:
        if k == 1:
            upper = _of(whole, Adjacency.ADD_REMOVE, delta).upper
        else:
            together = Fraction(loop.batch - 1, max(1, loop.size - 1))
            upper = groups.shuffled(sigma, begun, k, together, delta)
        lower, reason = below(delta)
        return Interval(min(lower, upper), upper), reason

    def below(delta: ExactReal) -> tuple[Decimal, str]:
        if done == 0 or delta.sign == 0:
            return Decimal(0), "Lower end: 0, as no epoch is whole."
        found, event = ShuffledBatches(sigma, loop.batch, loop.size, done).lower(delta)
        first = Interval.of_ball(found).lower
        reason = (
            "Lower end: all other gradients are -C*u for one direction u, the record's is C*u; "
            f"the event: {event} along u."
        )
        others: list[Mechanism] = [
            Gaussian(sigma * ExactReal.of_root(Fraction(done * most)), k * done)
        ]
        if done == 1:
            others.append(_allocated(sigma, most, 1))
        even = max(_of(each, Adjacency.ADD_REMOVE, delta).lower for each in others)
        if even > first:
            return even, (
                "Lower end: all other gradients are 0, and a test tells in which batches a record "
                "is, as for random allocation, or adds up all sums."
            )
        return first, reason

    smaller = "" if loop.size % loop.batch == 0 else ", the last batch being smaller"
    return Scheme(
        whole,
        Adjacency.ADD_REMOVE,
        (
            "In every epoch the records are put into a random order and cut into batches of "
            f"{loop.batch}{smaller}; the order does not depend on the gradients.",
            f"Neighbours: {_zeroed(k)} in one of them; batches and what sums are divided by stay.",
            loop.epochs_in_words,
        ),
        loop.given_steps or begun * most,
        loop.share,
        ends,
    )


SCHEMES: dict[str, Callable[[ExactReal, Loop], Scheme]] = {
    "poisson": _poisson,
    "random-allocation": _random_allocation,
    "shuffle": _shuffle,
    TRUNCATED: _truncated_poisson,
    "without-replacement": _without_replacement,
}
"""How batches are made, by name."""

"""How batches are made, and what a whole training run then releases.

A run adds N(0, (noise_multiplier · C)²) noise to the sum of gradients that are clipped to norm C,
in every step; all is in units of C. What a step sees of the data is the sampling, and each
sampling comes with its own neighbouring relation:

* "poisson": every record is in a batch with probability q = batch_size/dataset_size, independently
  of all else; neighbours by add-remove. One step is `PoissonSubsampled(Gaussian(noise_multiplier),
  q)`; with `group=k` neighbours differ in k records, of which Binomial(k, q) are in a batch, and a
  step is a `MixtureOfGaussians`. Its pair is worst for adaptively chosen steps too. (Other schemes
  have two ends for groups: `dpassay.accountant.training.groups`.)
* "truncated-poisson": Poisson samples of which truncated_batch_size records are kept, at random,
  where there are more; neighbours by add-remove. ε has two ends, which nearly meet where hardly
  any batch is cut (`dpassay.accountant.training.batches`).
* "without-replacement": every batch is a uniform subset of batch_size records, drawn anew;
  neighbours by replace-one. Replacing a clipped gradient moves the sum by at most 2C, so a step is
  `SampledWithoutReplacement(Gaussian(noise_multiplier, l2_sensitivity=2), …)`.
* "with-replacement": each of the batch_size places of a batch takes one of the records, uniformly,
  drawn anew; neighbours by replace-one, with two ends; add-remove is exact
  (`dpassay.accountant.training.batches`).
* "random-allocation": every record is in one step of each epoch, chosen uniformly, independently of
  all else; neighbours by add-remove. An epoch is `RandomAllocation(Gaussian(…), steps=t)`, t =
  ⌊dataset_size/batch_size⌋. More steps are no worse: one of t' > t is one of a random set of t, and
  hockey-stick divergences are jointly convex.
* "shuffle": the records are put into a random order in each epoch and cut into batches. Neighbours
  differ in a record whose gradient is 0 in one of them ("add-remove" in the answers: batches stay).
  Given the order, which does not depend on gradients, a record is in one batch of an epoch, so that
  an epoch is a Gaussian release of it, and by joint convexity no worse for a random order: that is
  the upper end. The lower one is that of a dataset and an event
  (`dpassay.accountant.pairs.shuffling`), or for one epoch, if larger, that of the dataset
  where all other gradients are 0. There only the batch of the record matters, and with ⌈N/B⌉
  batches its law w is that of a random allocation, or less even; the uniform law is the mean of w
  over permutations of the steps, which leave hockey-stick divergences alone, so that by joint
  convexity the allocation is no worse.

The other neighbouring relations are in `dpassay.accountant.training.schemes`.

What is proved of one is no guarantee for another: that of Poisson batches is none for a shuffle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import TypeAlias, final

from dpassay.accountant import ask
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError, expected, suggestion
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.wrappers.sampling import (
    PoissonSubsampled,
    RandomAllocation,
    SampledWithoutReplacement,
)
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.pairs.shuffling import ShuffledBatches
from dpassay.accountant.training import groups
from dpassay.accountant.training.batches import TruncatedBatches, WithReplacement, sampled
from dpassay.accountant.training.groups import (
    by_rule,
    drawn,
    gathered,
    one_is_drawn,
    shared_noise,
    shuffled,
    times,
)
from dpassay.accountant.training.loops import Loop, Scheme, enclosed, least_epsilon, rational_below

"""Training under the neighbouring relations that a sampling does not come with: two ends of ε.

Neighbours differ in one record, added or removed, replaced by another ("replace-one"), or with the
gradient 0 in one of them ("zero-out"); the number of steps stays. A replacement by a record whose
gradient is 0 is a zero-out, so that what is proved above of replace-one holds for it, and what is
attained by zero-out is attained by replace-one. Gradients have norm at most 1, u is a unit vector.

* *Poisson*: zero-out is add-remove. Replace-one is exact (`MixtureOfGaussians`), for k records too.
* *Random allocation*: zero-out is add-remove. Replace-one, above: given the steps, an epoch is a
  Gaussian release of sensitivity 2; or the record is zeroed out, and the other one put in
  (`dpassay.accountant.training.groups`, the rule for two). Below: zero-out, or −u for u, and the
  sum of all noisy sums, N(2E, Etσ²) against N(0, Etσ²).
* *Shuffled batches*, replace-one: sensitivity 2 in each epoch; below u is replaced by −u where all
  others are −u. Add-remove: a random order of N records is one of N − 1 of which that at a random
  place makes room for the record and moves to the end. So one batch moves by at most 2 and the last
  one by at most 1, together by √5; below the record is u, all others −u, and the batches that are
  full with and without it are looked at.
* *Truncated Poisson batches*: whatever is drawn, a record that is kept moves the sum by at most 2,
  as does the other one in its place: no worse than a sample of sensitivity 2 without replacement
  with the same probability. And δ is at most that of batches that are not cut, plus T P(J ≥ B).
  Below all other gradients are 0, and the record is kept with probability q P(J < B) at least.
* *Without replacement*, add-remove: a sample of B others, one of which makes room for the record
  with probability B/N, which moves the sum by at most 2. So it is exactly a Poisson sample of
  sensitivity 2, attained where all others are −u. Zero-out: above replace-one, below all others 0.

Of k records. *Without replacement*, add-remove: a sample of N − k others, of which J make room, J
of the k being in a batch of B of N: exactly a mixture. *Shuffled batches*: k times as far, and the
bounds of `dpassay.accountant.training.groups` with moves twice as long. *Random allocation*: all k
are zeroed out, and the others put in. Elsewhere the upper ends are those of the rule for groups, or
of `one_is_drawn`, and no lower end is below that of one record.
"""

RELATIONS = ("add-remove", "replace-one", "zero-out")

Asked: TypeAlias = tuple[Mechanism, Adjacency]
Bound: TypeAlias = Callable[[ExactReal], Decimal]


@final
@dataclass(frozen=True)
class _Ends:
    """Releases that are no worse, and releases that are no better, each under a relation."""

    most: tuple[Asked, ...]
    least: tuple[Asked, ...] = ()
    below: Bound | None = None
    """A lower bound of another kind."""
    rare: tuple[Asked, Fraction] | None = None
    """A release that is no better but with a probability."""
    twice: Asked | None = None
    """A release that is no better where it is changed twice."""
    above: Bound | None = None
    """An upper bound of another kind."""

    def upper(self, delta: ExactReal) -> Interval:
        """Return the least upper bound, as an interval from 0, or from it where it is negative."""
        found = [enclosed(*each, delta).upper for each in self.most]
        if self.rare is not None:
            rare, chance = self.rare
            left = rational_below(delta) - chance
            if left > 0:
                found.append(enclosed(*rare, ExactReal.of_rational(left)).upper)
        if self.twice is not None:
            run, relation = self.twice
            found.append(by_rule(lambda each: enclosed(run, relation, each), 2, delta))
        if self.above is not None:
            found.append(self.above(delta))
        return Interval(min(Decimal(0), *found), min(found))

    def lower(self, delta: ExactReal) -> Decimal:
        """Return the largest lower bound."""
        found = [enclosed(*each, delta).lower for each in self.least]
        if self.below is not None:
            found.append(self.below(delta))
        return max(found, default=least_epsilon(delta))


def in_words(relation: str, group: int) -> str:
    """Say by what neighbours differ."""
    one = group == 1
    who, is_, has = ("one record", "is", "has") if one else (f"{group} records", "are", "have")
    return {
        "add-remove": f"Neighbours: {who} {is_} added or removed; the number of steps and what "
        "sums are divided by stay.",
        "replace-one": f"Neighbours: {who} {is_} replaced by {'another' if one else 'others'}, "
        "which moves a sum by up to 2C each.",
        "zero-out": f"Neighbours: {who} {has} the gradient 0 in one of them.",
    }[relation]


def with_neighbours(assumptions: Sequence[str], relation: str, group: int) -> tuple[str, ...]:
    """Return the assumptions of a run with other words for its neighbours."""
    words = in_words(relation, group)
    return tuple(words if text.startswith("Neighbours:") else text for text in assumptions)


def lower_end(low: Decimal, delta: ExactReal, otherwise: str) -> str:
    """Say what a lower end rests on: `otherwise`, unless every mechanism has it."""
    every = low == least_epsilon(delta)
    return f"Lower end: {'ln(1 - delta), which every mechanism has' if every else otherwise}."


def other(base: Scheme, sampling: str, relation: str, sigma: ExactReal, loop: Loop) -> Scheme:
    """Return a scheme under a relation that is not its own."""
    k = loop.group
    known = _KNOWN[sampling, relation](sigma, loop)
    alone = _KNOWN[sampling, relation](sigma, replace(loop, group=1))
    run, adjacency = known.most[0]
    exact = known.least == known.most
    if k > 1 and not exact:  # in every step each of them moves the sum by up to 2C
        run = times(Gaussian(sigma, 2 * k), loop.steps)

    def ends(delta: ExactReal) -> tuple[Interval, str]:
        upper, low = known.upper(delta).upper, known.lower(delta)
        if k > 1:
            always = enclosed(run, adjacency, delta).upper
            upper = min(upper, by_rule(alone.upper, k, delta), always)
            low = max(low, alone.lower(delta))
        least = lower_end(low, delta, "a dataset whose other gradients are 0, or all the same")
        return Interval(min(low, upper), upper), f"{least} Upper end: proved for every dataset."

    return replace(
        base,
        mechanism=run,
        adjacency=adjacency,
        assumptions=with_neighbours(base.assumptions, relation, k),
        ends=None if exact else ends,
    )


def _allocation(sigma: ExactReal, loop: Loop) -> _Ends:
    (_, epochs), t, k = loop.whole_epochs, loop.full_batches, loop.group
    zeroed = shared_noise(sigma, t, epochs, k), Adjacency.ADD_REMOVE
    moved = times(Gaussian(sigma, 2 * k), epochs), Adjacency.REPLACE_ONE
    attained = [*gathered(sigma, t, epochs, k), _added_up(sigma, t * epochs, 2 * k * epochs)]
    return _Ends((moved,), tuple((each, Adjacency.ADD_REMOVE) for each in attained), twice=zeroed)


def _added_up(sigma: ExactReal, steps: int, moves: int) -> Mechanism:
    """Return the release of the sum of all noisy sums."""
    return Gaussian(sigma * ExactReal.of_root(Fraction(steps)), moves)


def _shuffled(sigma: ExactReal, loop: Loop, *, added: bool) -> _Ends:
    (done, begun), k = loop.whole_epochs, loop.group
    moves = ExactReal.of_root(Fraction(5 * k**2)) if added else ExactReal.of_rational(2 * k)
    relation = Adjacency.ADD_REMOVE if added else Adjacency.REPLACE_ONE
    full = (loop.size - 1 if added else loop.size) // loop.batch
    least: tuple[Asked, ...] = ()
    if k > 1 and done:
        steps = done * math.ceil(1 / loop.share)
        least = ((_added_up(sigma, steps, (1 if added else 2) * k * done), Adjacency.ADD_REMOVE),)

    def below(delta: ExactReal) -> Decimal:
        if not done or not full or delta.sign == 0 or k > 1:
            return least_epsilon(delta)
        found, _ = ShuffledBatches(sigma, loop.batch, loop.size, done, full, (2, 0)).lower(delta)
        return Interval.of_ball(found).lower

    def above(delta: ExactReal) -> Decimal:
        together = Fraction(loop.batch - 1, max(1, loop.size - 1))
        return shuffled(sigma / ExactReal.of_rational(2), begun, k, together, delta)

    return _Ends(
        ((times(Gaussian(sigma, moves), begun), relation),),
        least,
        below=below,
        above=None if added or k == 1 else above,
    )


def _truncated(sigma: ExactReal, loop: Loop, *, zero: bool) -> _Ends:
    assert loop.most is not None
    k = loop.group
    cut = TruncatedBatches(sigma, loop.size, loop.share, loop.most, loop.steps, k)
    relation = Adjacency.ADD_REMOVE if zero else Adjacency.REPLACE_ONE
    kept = 1 - cut.crowded
    whole = one_is_drawn(sigma, loop.batch, loop.size, loop.steps, k)
    return _Ends(
        ((whole, Adjacency.REPLACE_ONE),),
        ((cut.run(0, kept), relation),) if kept else (),
        rare=((cut.run(0), relation), loop.steps * cut.crowded),
    )


def _subset(sigma: ExactReal, loop: Loop, *, zero: bool) -> _Ends:
    k = loop.group
    if not zero and loop.batch > loop.size - k:
        raise expected(
            "batch_size",
            loop.batch,
            f"< dataset_size={loop.size}"
            + (f" - {k - 1}" if k > 1 else "")
            + f" where {'a record is' if k == 1 else f'{k} records are'} removed",
            "A batch has as many records without it." if k == 1 else "Batches keep their size.",
        )
    moves = 1 if zero else 2
    run = (
        times(PoissonSubsampled(Gaussian(sigma, moves), _share(loop)), loop.steps)
        if k == 1
        else drawn(sigma, loop.batch, loop.size, loop.steps, k, moves=moves)
    )
    least = ((run, Adjacency.ADD_REMOVE),)
    if not zero:
        return _Ends(least, least)
    whole = one_is_drawn(sigma, loop.batch, loop.size, loop.steps, k)
    return _Ends(((whole, Adjacency.REPLACE_ONE),), least)


def _share(loop: Loop) -> ExactReal:
    return ExactReal.of_rational(loop.share)


_KNOWN: dict[tuple[str, str], Callable[[ExactReal, Loop], _Ends]] = {
    ("random-allocation", "replace-one"): _allocation,
    ("shuffle", "add-remove"): lambda sigma, loop: _shuffled(sigma, loop, added=True),
    ("shuffle", "replace-one"): lambda sigma, loop: _shuffled(sigma, loop, added=False),
    ("truncated-poisson", "replace-one"): lambda sigma, loop: _truncated(sigma, loop, zero=False),
    ("truncated-poisson", "zero-out"): lambda sigma, loop: _truncated(sigma, loop, zero=True),
    ("without-replacement", "add-remove"): lambda sigma, loop: _subset(sigma, loop, zero=False),
    ("without-replacement", "zero-out"): lambda sigma, loop: _subset(sigma, loop, zero=True),
}
"""What is known of a sampling under a relation that is not its own."""


_APART = Fraction(1, 1000)
"""Relative width of ends that are some percent apart: more digits take many times as long."""
TRUNCATED, REPLACED = "truncated-poisson", "with-replacement"
"""The sampling that needs a limit of its batches, and one that is named in several places."""


def scheme(sampling: str, sigma: ExactReal, loop: Loop, neighbours: str | None = None) -> Scheme:
    """Return what a run releases, for the neighbours that a sampling comes with, or for others.

    Raises InvalidInputError for an unknown sampling or relation, or a limit of batches that does
    not fit it.
    """
    if sampling not in SCHEMES:
        raise InvalidInputError(
            f"Expected sampling to be one of {', '.join(SCHEMES)}, not {sampling!r}. "
            f"{suggestion(str(sampling), SCHEMES, listed=False)}".rstrip()
        )
    if (loop.most is None) == (sampling == TRUNCATED):
        raise InvalidInputError(
            f"Expected truncated_batch_size with sampling={TRUNCATED!r}: the records that are kept "
            "of a larger batch."
            if loop.most is None
            else f"Expected sampling={TRUNCATED!r} with truncated_batch_size={loop.most}, not "
            f"{sampling!r}."
        )
    if neighbours is None or neighbours == OWN[sampling]:
        return SCHEMES[sampling](sigma, loop)
    if neighbours not in RELATIONS:
        raise InvalidInputError(
            f"Expected neighbours to be one of {', '.join(RELATIONS)}, not {neighbours!r}. "
            f"{suggestion(str(neighbours), RELATIONS, listed=False)}".rstrip()
        )
    if sampling == REPLACED:
        return _with_replacement(sigma, loop, neighbours)
    replaced = neighbours == "replace-one"
    if sampling == "poisson" or (sampling == "random-allocation" and not replaced):
        own = SCHEMES[sampling](sigma, loop)  # a record adds its gradient or not
        words = with_neighbours(own.assumptions, neighbours, loop.group)
        relation = Adjacency.REPLACE_ONE if replaced else Adjacency.ADD_REMOVE
        return replace(own, adjacency=relation, assumptions=words)
    one = SCHEMES[sampling](sigma, replace(loop, group=1))
    return other(one, sampling, neighbours, sigma, loop)


def _poisson(sigma: ExactReal, loop: Loop) -> Scheme:
    """Each of a person's records is in each step with probability q."""
    q, group = loop.share, loop.group
    records = "one record is" if group == 1 else f"{group} records are"
    return Scheme(
        times(sampled(sigma, q, group), loop.steps),
        Adjacency.ADD_REMOVE,
        (
            f"Every step takes each record with probability {loop.share_in_words}, "
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
        low = cut.lower(delta)
        least = lower_end(low, delta, "all other gradients are 0")
        return Interval(low, upper), (
            f"{least} Upper end: {how}; what is worse is so rare that delta pays for it."
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
    together = groups.one_is_drawn(sigma, loop.batch, loop.size, loop.steps, k)

    def ends(delta: ExactReal) -> tuple[Interval, str]:
        least = groups.drawn(sigma, loop.batch, loop.size, loop.steps, k)
        found: Interval = ask.epsilon(least, delta, adjacency=Adjacency.ADD_REMOVE)
        rule = groups.by_rule(partial(enclosed, alone, Adjacency.REPLACE_ONE), k, delta)
        both = (enclosed(run, Adjacency.REPLACE_ONE, delta).upper for run in (always, together))
        return Interval(found.lower, min(rule, *both)), (
            f"Lower end: all other gradients are -C*u for one direction u, those of the {k} "
            "records C*u. Upper end: they are replaced one after the other, are in a batch all or "
            "none, or in all batches."
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


def _with_replacement(sigma: ExactReal, loop: Loop, neighbours: str = "replace-one") -> Scheme:
    k, added = loop.group, neighbours == "add-remove"
    if k >= loop.size:
        raise expected("group", k, f"< dataset_size={loop.size}", "Others must be there.")
    run = WithReplacement(sigma, loop.batch, Fraction(k, loop.size), loop.steps)
    relation = Adjacency.ADD_REMOVE if added else Adjacency.REPLACE_ONE

    def ends(delta: ExactReal) -> tuple[Interval, str]:
        width = None if added else _APART
        upper = run.upper(delta, relation, width)
        lower = run.lower(delta, 1 if neighbours == "zero-out" else 2, width)
        reason = (
            "Both ends: a person's records are in so many places of a batch, cut where more are "
            "so rare that delta pays for it."
            if added
            else "Lower end: all other gradients are 0, or the opposite of the person's. Upper "
            "end: wherever a person's records are, they and what replaces them move a sum in "
            "opposite directions by 2C."
        )
        return Interval(min(lower, upper), upper), reason

    return Scheme(
        run.whole,
        relation,
        (
            f"Every step fills {loop.batch} places with one of the {loop.size} records each, all "
            "equally likely, independently: a record may be in a batch more than once.",
            in_words(neighbours, k),
            loop.steps_in_words,
        ),
        loop.steps,
        loop.share,
        ends,
    )


def _allocated(sigma: ExactReal, steps: int, epochs: int) -> Mechanism:
    return times(RandomAllocation(Gaussian(sigma), steps), epochs)


def _random_allocation(sigma: ExactReal, loop: Loop) -> Scheme:
    (_, epochs), t, k = loop.whole_epochs, loop.full_batches, loop.group
    alone = _allocated(sigma, t, epochs)
    shared = groups.shared_noise(sigma, t, epochs, k)

    def ends(delta: ExactReal) -> tuple[Interval, str]:
        of = partial(enclosed, adjacency=Adjacency.ADD_REMOVE, delta=delta)
        below = [of(each).lower for each in groups.gathered(sigma, t, epochs, k)]
        rule = groups.by_rule(partial(enclosed, alone, Adjacency.ADD_REMOVE), k, delta)
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
            upper = enclosed(whole, Adjacency.ADD_REMOVE, delta).upper
        else:
            together = Fraction(loop.batch - 1, max(1, loop.size - 1))
            upper = groups.shuffled(sigma, begun, k, together, delta)
        lower, reason = below(delta)
        return Interval(min(lower, upper), upper), reason

    def below(delta: ExactReal) -> tuple[Decimal, str]:
        if done == 0 or delta.sign == 0:
            return least_epsilon(delta), "Lower end: ln(1 - delta), as no epoch is whole."
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
        even = max(enclosed(each, Adjacency.ADD_REMOVE, delta).lower for each in others)
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
    REPLACED: _with_replacement,
}
"""How batches are made, by name."""

OWN = {
    "poisson": "add-remove",
    "random-allocation": "add-remove",
    "shuffle": "zero-out",
    TRUNCATED: "add-remove",
    "without-replacement": "replace-one",
    REPLACED: "replace-one",
}
"""The neighbours that each comes with."""

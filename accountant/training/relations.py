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

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias, final

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import expected
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.wrappers.subsampled import PoissonSubsampled
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.pairs.shuffled_batches import ShuffledBatches
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
from dpassay.accountant.training.truncated_batches import TruncatedBatches

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

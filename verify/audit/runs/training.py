"""Training: the runs that choose the event, and the event that they choose."""

from __future__ import annotations

import math

from dpassay.verifier.audit.learning import features, vectors
from dpassay.verifier.audit.learning.features import Proposer
from dpassay.verifier.audit.learning.learn import VALUES, bits_of, choose, shares_of
from dpassay.verifier.audit.learning.outputs import Alphabet, Matrix, Sides, joined, stacked
from dpassay.verifier.audit.learning.rule import Chosen
from dpassay.verifier.audit.learning.wording import all_worded
from dpassay.verifier.audit.runs import blocks, laws
from dpassay.verifier.audit.runs.blocks import (
    TESTING,
    TRAINING,
    Blocks,
    Datasets,
    Prepared,
    Task,
)
from dpassay.verifier.audit.runs.plan import Plan, oddities, probe, require_independent
from dpassay.verifier.audit.runs.target import MechanismError, Target

_TRAINING_SHARE = 0.1
"""The part of 10⁵ runs that chooses the event for δ = 0."""
_SHARE_FOR_RARE = 0.2
"""The part for δ > 0: rare events take longer to learn."""
_FULL_SHARE = 100_000
"""Runs a side at which these are the shares."""
_SHARE_DECAY = 0.2
"""The power of the runs with which the share falls: learning gains more slowly than the test."""
_MOST_OFTEN = 2.0
"""The share grows by this factor at most where runs are few."""
_LARGEST_SHARE = 0.4
"""Of pairs that share the training: the test keeps more than a half."""
_MOST_TRAINING = 1_000_000
"""Training runs a side: seconds, and no event is learned better."""
_MOST_TRAINING_ENTRIES = 12_000_000
"""Numbers of a side, for wide outputs: 96 MB of doubles."""
_LEAST_TRAINING = 200
"""Training runs a side, up to half of all: fewer choose by luck."""
_OF_PAIRS = 2
"""One of so many pairs goes on to the next stage of training."""


def train(plan: Plan) -> Prepared:
    """Draw training runs of the pairs and choose.

    All pairs share a half of the runs, the quarter of them that promises most half of the rest, and
    so on: the last one gets all that is left (Karnin, Koren and Somekh, "Almost optimal exploration
    in multi-armed bandits", 2013).
    """
    alphabet = Alphabet()
    notes: list[str] = []
    width = probe(plan, alphabet, notes)
    training = left = training_runs(plan, width)
    sides: dict[int, Sides] = {}
    alive, refused, stage, each = list(range(len(plan.pairs))), [], 0, 0
    while True:
        share = left if len(alive) == 1 else left // (2 * len(alive))
        share = max(share, min(training, _LEAST_TRAINING) if stage == 0 else 1)
        rules: dict[int, Chosen] = {}
        for index in alive:
            try:
                more = _sides(plan, index, stage, share, width, alphabet=alphabet)
            except MechanismError as error:
                if len(plan.pairs) == 1:
                    raise
                refused.append(f"a pair was left out: {error}")
                continue
            mixed = alphabet.width is not None
            odd = oddities(*more, mixed=mixed, with_bits=plan.bits is not False)
            notes += [note for note in odd if note not in notes]
            sides[index] = joined(sides.get(index), more)
            rules[index] = choose(
                *sides[index],
                plan.guarantee,
                runs=plan.samples - training,
                significance=plan.significance,
                values=proposers(plan.target, plan.pairs[index]),
                bits=bits_of(plan.bits),
                shares=shares_of(plan.bits, claimed=plan.claimed),
                mixed=mixed,
            )
        if not rules:
            raise MechanismError(f"Every pair of neighbours failed; the last one: {refused[-1]}")
        stage, each, left = stage + 1, each + share, left - share * len(alive)
        ranked = sorted(rules, key=lambda index: -_promise(rules[index], plan))
        alive = ranked[: math.ceil(len(ranked) / _OF_PAIRS)]
        if left < each * len(alive) / _OF_PAIRS:  # too few more to change much
            break
    notes += refused[:3] + ([f"{len(refused)} pairs were left out"] if len(refused) > 3 else [])
    best = ranked[0]
    if best:  # `probe` looked at the first pair
        require_independent(plan, best, alphabet, notes)
    rule = all_worded(rules[best], sides[best], alphabet.width, alphabet.names)
    fresh = plan.samples - training
    whole = Task(
        plan.target,
        plan.pairs[best],
        rule,
        width,
        alphabet.width,
        blocks.block_size(fresh, width),
        plan.seed,
        (TESTING, best),
        plan.timeout,
    )
    return Prepared(rule, best, Blocks(whole, fresh), training, tuple(notes))


def proposers(target: Target, pair: Datasets) -> list[Proposer]:
    """Return what proposes features of values: the known loss, distances to the datasets, all."""
    known = laws.losses(target, pair)
    if known is not None and isinstance(target, laws.MechanismTarget) and target.simulated:
        return [known, features.plain]
    return [*([] if known is None else [known]), vectors.between(pair), *VALUES]


def _promise(chosen: Chosen, plan: Plan) -> float:
    """Return what a pair promises: by its values, by bits too where they are part of the claim."""
    bits = chosen.bits if plan.bits else None
    return max(chosen.values.predicted, -math.inf if bits is None else bits.predicted)


def training_runs(plan: Plan, width: int) -> int:
    """Return how many runs a side choose the event: a tenth, more for δ > 0, coordinates or pairs.

    For δ > 0 rare events are best, and rare events take longer to learn. What is learned improves
    more slowly than the test does: the share falls as the runs grow, like their fifth root. Pairs
    share the runs: with too few for each, the pair that was luckiest would be tested.
    """
    rare = plan.guarantee.profile is not None or any(p.delta > 0 for p in plan.guarantee.points)
    share = _SHARE_FOR_RARE if rare else _TRAINING_SHARE
    share *= min(_MOST_OFTEN, (_FULL_SHARE / plan.samples) ** _SHARE_DECAY)
    share = min(_LARGEST_SHARE, share * len(plan.pairs))
    if width > 1:
        share = min(0.5, max(share, 10 * math.sqrt(width / plan.samples)))
    wanted = max(share * plan.samples, min(_LEAST_TRAINING, plan.samples / 2))
    return int(min(wanted, _MOST_TRAINING, max(1000, _MOST_TRAINING_ENTRIES // width)))


def _sides(
    plan: Plan, index: int, stage: int, runs: int, width: int, *, alphabet: Alphabet
) -> Sides:
    """Draw training runs of one pair in one stage; texts become known to the alphabet."""
    size = blocks.block_size(runs, width)
    sides: list[list[Matrix]] = [[], []]
    for side, dataset in enumerate(plan.pairs[index]):
        for number, start in enumerate(range(0, runs, size)):
            count = min(size, runs - start)
            key = (index, number, side, stage) if stage else (index, number, side)
            rng = blocks.generator(plan.seed, TRAINING, *key)
            with blocks.time_limit(plan.timeout, f"A block of {count} runs of {plan.target.name}"):
                own = Alphabet(alphabet.width, alphabet.names)
                drawn = blocks.draw(plan.target, dataset, count, rng, alphabet=own, width=width)
            sides[side].append(drawn)
    first, second = (stacked(parts) for parts in sides)
    return first, second

"""The audit: train, choose one event, test it once on fresh runs.

The training runs of every pair of neighbours propose events; the one that promises most is tested
on one pair with runs that nobody looked at. There is one test, so the whole significance is its
own: what was searched before (pairs, features, thresholds, points of the claim, both orders) is
paid for with the training runs, before any fresh run is drawn.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from accountant.adjacency import Adjacency
from accountant.errors import InvalidInputError, expected
from accountant.mechanism import Mechanism
from verify.audit import blocks
from verify.audit.blocks import PROBING, TESTING, TRAINING, Blocks, Datasets, Tally, Task
from verify.audit.exact_test import (
    SPARED,
    Counts,
    delta_lower_bound,
    epsilon_lower_bound,
    p_value,
)
from verify.audit.features import Proposer
from verify.audit.guarantee import Claim, Guarantee, Point, guarantee
from verify.audit.learn import DEFAULT_PROPOSERS, choose
from verify.audit.outputs import Alphabet, Matrix, stacked
from verify.audit.result import AuditResult, Outcome
from verify.audit.rule import Rule
from verify.audit.target import MechanismError, Target, target

_PROBE = 8
_TRAINING_SHARE = 0.1
_SHARE_FOR_RARE = 0.2
_FULL_SHARE = 100_000
"""Runs a side at which these are the shares."""
_SHARE_DECAY = 0.2
_MOST_OFTEN = 2.0
_LARGEST_SHARE = 0.4
_MOST_TRAINING = 1_000_000
_MOST_TRAINING_ENTRIES = 24_000_000
_LEAST_TRAINING = 200


def audit(
    mechanism: Any,
    claim: Claim,
    *,
    pairs: Iterable[Datasets] | None = None,
    samples: int = 100_000,
    significance: float = 0.05,
    seed: int | None = None,
    adjacency: Adjacency | str | None = None,
    executor: Executor | None = None,
    checkpoint: Path | str | None = None,
    timeout: float | None = None,
    proposers: Sequence[Proposer] = DEFAULT_PROPOSERS,
    progress: Callable[[int, int], None] | None = None,
    device: str | None = None,
) -> AuditResult:
    """Audit a claim about a mechanism that can only be run.

    Parameters
    ----------
    mechanism
        A mechanism of this package, a callable `mechanism(dataset, rng)`, an object with
        `sample(dataset, size, rng)`, or anything else that `verify.audit.target` knows.
    claim
        ε, (ε, δ), {"mu": μ}, a profile δ(·) or a mechanism whose profile is claimed.
    pairs
        Pairs of neighbouring datasets; by default the worst pair of a mechanism of this package.
    samples
        Runs a side, training included.
    significance
        The largest probability with which a private mechanism is accused.
    seed
        Of everything that is drawn; None draws one and reports it (or takes a checkpoint's).
    adjacency
        The relation of a claimed mechanism's profile, where it depends on it.
    executor
        Any executor of `concurrent.futures` for the blocks of the test; the result does not depend
        on it. The mechanism has to be picklable for processes.
    checkpoint
        A file in which counted blocks are kept: the same call continues where it was killed.
    timeout
        Seconds that one block may take.
    device
        numpy, torch:cpu or torch:cuda: draw and count a mechanism of this package there, with the
        event chosen from its exact law (`verify.audit.device`).

    Raises
    ------
    InvalidInputError
        If an argument is out of range, or there are too few samples to refute anything.
    MechanismError
        If the mechanism raises, hangs or returns no output per run.
    """
    started = time.perf_counter()
    whole = guarantee(claim, adjacency=adjacency)
    path = None if checkpoint is None else Path(checkpoint)
    plan = Plan.of(
        mechanism,
        whole,
        pairs=pairs,
        samples=samples,
        significance=significance,
        seed=blocks.kept_seed(path) if seed is None else seed,
        timeout=timeout,
    )
    if device is None:
        trained = _train(plan, path, proposers)
        fresh, digest = trained.blocks(plan), plan.digest()
    else:
        from verify.audit.device import prepare

        known = prepare(plan, device, executor)
        trained = _Trained(known.rule, known.pair, 1, None, 0, known.notes)
        fresh, digest = known.blocks, blocks.digest(plan.digest(), device)
    tally = Tally(trained.rule.partition.size, digest, path, plan.seed)
    try:
        blocks.run(fresh, tally, executor, progress, timeout)
    except MechanismError as error:
        raise MechanismError(f"{error} {_kept(tally, len(fresh), path)}") from error.__cause__
    return _decide(plan, trained, tally, time.perf_counter() - started)


def _kept(tally: Tally, of: int, path: Path | None) -> str:
    runs = int(tally.histogram.sum())
    where = f"are in {path}; the same call continues there" if path else "were discarded"
    advice = "" if path else " (name a checkpoint= to keep them)"
    return f"{len(tally.done)} of {of} blocks ({runs} runs) were counted and {where}{advice}."


@final
@dataclass(frozen=True)
class Plan:
    """What is fixed before the first run."""

    target: Target
    guarantee: Guarantee
    pairs: tuple[Datasets, ...]
    samples: int
    significance: float
    seed: int
    timeout: float | None

    @staticmethod
    def of(
        mechanism: Any,
        whole: Guarantee,
        *,
        pairs: Iterable[Datasets] | None,
        samples: int,
        significance: float,
        seed: int | None,
        timeout: float | None,
        check_size: bool = True,
    ) -> Plan:
        """Check the arguments."""
        if not 0 < significance < 1:
            raise expected("significance", significance, "in (0, 1)")
        if samples < 20:
            raise expected("samples", samples, "≥ 20", "Training and test need some runs each.")
        listed = tuple(pairs) if pairs is not None else own_pairs(mechanism)
        if not listed:
            raise InvalidInputError("Expected at least one pair of neighbouring datasets.")
        fixed = secrets.randbits(63) if seed is None else int(seed)
        plan = Plan(target(mechanism), whole, listed, samples, significance, fixed, timeout)
        if check_size:
            plan.require_enough()
        return plan

    def require_enough(self) -> None:
        """Raise where even the clearest counts could not refute the claim."""
        points = self.guarantee.candidates()
        if any(_can_refute(p, self.samples, self.significance) for p in points):
            return
        needed = self.samples
        while not any(_can_refute(p, needed, self.significance) for p in points):
            needed *= 2
            if needed > 1 << 60:
                raise InvalidInputError("No number of runs can refute this claim.")
        raise InvalidInputError(
            f"Expected samples={self.samples} to be enough: even an event of probability 1 against "
            f"0 is refuted at significance {self.significance:g} only from about {needed} runs."
        )

    def digest(self) -> str:
        """Return what a checkpoint must agree with."""
        pairs = [[repr(_plain(side)) for side in pair] for pair in self.pairs]
        return blocks.digest(
            self.target.name,
            self.guarantee.to_json(),
            pairs,
            self.samples,
            self.significance,
            self.seed,
        )


def _can_refute(point: Point, runs: int, significance: float) -> bool:
    counts = Counts(runs, runs, 0, runs)
    spared = SPARED * significance
    return p_value(counts, float(point.epsilon), float(point.delta), spared=spared) <= significance


def _plain(dataset: Any) -> Any:
    return dataset.tolist() if hasattr(dataset, "tolist") else dataset


def own_pairs(mechanism: Any) -> tuple[Datasets, ...]:
    """Return the pairs that a mechanism of this package, or its attribute `pairs`, names."""
    from verify.audit.laws import neighbours

    if isinstance(mechanism, Mechanism):
        return tuple(neighbours(mechanism))
    listed = getattr(mechanism, "pairs", None)
    if listed is not None and not callable(listed):
        return tuple(listed)
    raise InvalidInputError(
        "Expected pairs of neighbouring datasets: pairs=[(dataset, neighbour), …], or a search "
        "with verify.audit.neighbours."
    )


@final
@dataclass(frozen=True, eq=False)
class _Trained:
    """What the training runs gave."""

    rule: Rule
    pair: int
    width: int
    mixed: int | None
    training: int
    notes: tuple[str, ...]

    def blocks(self, plan: Plan) -> Blocks:
        """Return the blocks of the test."""
        fresh = plan.samples - self.training
        whole = Task(
            plan.target,
            plan.pairs[self.pair],
            self.rule,
            self.width,
            self.mixed,
            blocks.block_size(fresh, self.width),
            plan.seed,
            (TESTING, self.pair),
            plan.timeout,
        )
        return Blocks(whole, fresh)


def _train(plan: Plan, path: Path | None, proposers: Sequence[Proposer]) -> _Trained:
    """Draw the training runs of every pair and choose."""
    alphabet = Alphabet()
    notes: list[str] = []
    width = probe(plan, alphabet, notes)
    training = _training_runs(plan, width)
    share = max(min(training, _LEAST_TRAINING), training // len(plan.pairs))
    best: tuple[Rule, int] | None = None
    refused: list[str] = []
    for index in range(len(plan.pairs)):
        try:
            first, second = _training_sides(plan, path, index, share, (width, alphabet.width))
        except MechanismError as error:
            if len(plan.pairs) == 1:
                raise MechanismError(
                    f"{error} No run of the test was counted yet: the event was being chosen."
                ) from error.__cause__
            refused.append(f"a pair was left out: {error}")
            continue
        mixed = alphabet.width is not None
        notes += [note for note in oddities(first, second, mixed=mixed) if note not in notes]
        fresh = plan.samples - training
        rule = choose(
            first,
            second,
            plan.guarantee,
            runs=fresh,
            significance=plan.significance,
            proposers=proposers,
        )
        if best is None or rule.predicted > best[0].predicted:
            best = (rule, index)
    if best is None:
        raise MechanismError(f"Every pair of neighbours failed; the last one: {refused[-1]}")
    notes += refused[:3] + ([f"{len(refused)} pairs were left out"] if len(refused) > 3 else [])
    return _Trained(best[0], best[1], width, alphabet.width, training, tuple(notes))


def probe(plan: Plan, alphabet: Alphabet, notes: list[str]) -> int:
    """Run a few times: learn the form of an output, and whether runs follow the rng."""
    widths = []
    for index, pair in enumerate(plan.pairs[:4]):
        for side, dataset in enumerate(pair):
            for form in (Alphabet(width=alphabet.width), alphabet):
                rng = blocks.generator(plan.seed, PROBING, index, 0, side)
                try:
                    with blocks.time_limit(plan.timeout, f"{_PROBE} runs of {plan.target.name}"):
                        rows = blocks.draw(plan.target, dataset, _PROBE, rng, alphabet=form)
                except MechanismError:
                    if len(plan.pairs) == 1:
                        raise
                    continue
                widths.append(rows.shape[1])
    if not widths or len(plan.pairs) > 1:
        return int(max(widths, default=1))
    drawn = [
        blocks.draw(plan.target, plan.pairs[0][0], 64, rng, alphabet=Alphabet(width=alphabet.width))
        for rng in (
            blocks.generator(plan.seed, PROBING, 0, 1, 0),
            blocks.generator(plan.seed, PROBING, 0, 1, 0),
            blocks.generator(plan.seed, PROBING, 0, 2, 0),
        )
    ]
    again, other = _same(drawn[0], drawn[1]), _same(drawn[0], drawn[2])
    constant = bool((drawn[0] == drawn[0][:1]).all())
    if other and not constant:
        raise MechanismError(
            f"{plan.target.name} returned the same outputs for different random generators: its "
            "runs are not independent. Does it seed a generator of its own?"
        )
    if constant and again and other:
        notes.append("64 runs gave one output: the mechanism may be deterministic on this dataset")
    elif not again:
        notes.append(
            "the mechanism does not follow the rng it is given: runs cannot be drawn again"
        )
    return int(max(widths))


def _same(first: Matrix, second: Matrix) -> bool:
    return first.shape == second.shape and bool(np.array_equal(first, second, equal_nan=True))


def _training_runs(plan: Plan, width: int) -> int:
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


def _training_sides(
    plan: Plan, path: Path | None, index: int, runs: int, form: tuple[int, int | None]
) -> tuple[Matrix, Matrix]:
    """Draw the training runs of one pair, or read those that an interrupted audit kept."""
    width, mixed = form
    kept = None if path is None else path.with_name(f"{path.name}.training-{index}.npz")
    if kept is not None and kept.exists():
        with np.load(kept, allow_pickle=False) as data:
            if str(data["audit"]) == plan.digest():
                return data["first"], data["second"]
    sides = []
    for side, dataset in enumerate(plan.pairs[index]):
        parts: list[Matrix] = []
        left = runs
        while left:
            size = min(left, blocks.block_size(runs, width))
            rng = blocks.generator(plan.seed, TRAINING, index, len(parts), side)
            with blocks.time_limit(plan.timeout, f"A block of {size} runs of {plan.target.name}"):
                parts.append(
                    blocks.draw(
                        plan.target,
                        dataset,
                        size,
                        rng,
                        alphabet=Alphabet(width=mixed),
                        width=width,
                    )
                )
            left -= size
        sides.append(stacked(parts))
    if kept is not None:
        np.savez(kept, first=sides[0], second=sides[1], audit=plan.digest())
    return sides[0], sides[1]


def oddities(first: Matrix, second: Matrix, *, mixed: bool) -> Iterable[str]:
    """Say what is odd about the outputs that an event is learned from."""
    both = np.concatenate([first, second])
    lengths = np.unique(both[:, 0]) if mixed else both[:0, 0]
    if len(lengths) > 1:
        yield (
            f"outputs have {len(lengths)} different lengths, {lengths[0]:g} to {lengths[-1]:g} "
            "(the length counts as part of the output)"
        )
    if not np.issubdtype(both.dtype, np.floating):
        return
    if np.isnan(both).any():
        share = float(np.isnan(both).any(axis=1).mean())
        yield f"{share:.2%} of the training outputs contain NaN (it counts as a value)"
    if np.isinf(both).any():
        yield "some outputs are infinite"


def _decide(plan: Plan, trained: _Trained, tally: Tally, seconds: float) -> AuditResult:
    """Compute the one exact p-value and the bounds."""
    rule, point = trained.rule, trained.rule.point
    histogram, misfits = tally.histogram[:, :-1], int(tally.histogram[:, -1].sum())
    counts = rule.counts(histogram)
    spared = SPARED * plan.significance
    found = p_value(counts, float(point.epsilon), float(point.delta), spared=spared)
    notes = list(trained.notes)
    if misfits:
        notes.append(f"{misfits} fresh outputs had another shape than every training output")
    if len({p.epsilon for p in plan.guarantee.points}) == 1 and point.delta > 0:
        needed = math.ceil(20 / float(point.delta))
        if plan.samples < needed:
            notes.append(
                f"a violation of the size of delta = {float(point.delta):g} itself shows only from "
                f"about {needed} runs a side"
            )
    return AuditResult(
        outcome=Outcome.REFUTED if found <= plan.significance else Outcome.NOT_REFUTED,
        target=plan.target.name,
        guarantee=plan.guarantee,
        pair=plan.pairs[trained.pair],
        pairs=len(plan.pairs),
        rule=rule,
        point=point,
        counts=counts,
        p_value=found,
        significance=plan.significance,
        spared=spared,
        epsilon=epsilon_lower_bound(counts, float(point.delta), plan.significance),
        delta=delta_lower_bound(counts, float(point.epsilon), plan.significance),
        histogram=histogram,
        seed=plan.seed,
        training=trained.training,
        samples=plan.samples - trained.training,
        seconds=seconds,
        notes=tuple(notes),
    )

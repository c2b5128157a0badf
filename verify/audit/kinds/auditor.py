"""The audit: train, choose one event, test it once on fresh runs.

The training runs of every pair of neighbours propose events; the one that promises most is tested
on one pair with runs that nobody looked at. What was searched before (pairs, features, thresholds,
points of the claim, both orders) is paid for with the training runs, before any fresh run is drawn:
nearly the whole significance belongs to this one test, and a twentieth of it to a few rare events
(`learning.hedged`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.numbers.reading import few
from dpassay.verifier.audit.kinds import known as exactly
from dpassay.verifier.audit.kinds.result import AuditResult
from dpassay.verifier.audit.learning.features import Proposer
from dpassay.verifier.audit.learning.hedged import decide
from dpassay.verifier.audit.learning.learn import DEFAULT_PROPOSERS
from dpassay.verifier.audit.runs import blocks, disk
from dpassay.verifier.audit.runs.blocks import Datasets, Prepared, Tally
from dpassay.verifier.audit.runs.plan import Plan
from dpassay.verifier.audit.runs.target import MechanismError
from dpassay.verifier.audit.runs.training import train
from dpassay.verifier.audit.statistics.guarantee import Claim, guarantee


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
    errors_are_outputs: bool = False,
) -> AuditResult:
    """Audit a claim by runs: of a mechanism that can only be run, or of how one is sampled.

    What is known of the claim without any run, of a mechanism of this package, is the first note.

    Parameters
    ----------
    mechanism
        A mechanism of this package, a callable `mechanism(dataset, rng)`, an object with
        `sample(dataset, size, rng)`, or anything else that `runs.target` knows.
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
    errors_are_outputs
        Whether a run that raises has an output, the type of the error, instead of ending the audit:
        whoever sees that a program fails sees that.

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
        seed=disk.kept_seed(path) if seed is None else seed,
        timeout=timeout,
        errors_are_outputs=errors_are_outputs,
    )
    disk.begin(path, plan.digest(), plan.seed)
    known = train(plan, path, proposers)
    tally = Tally(known.rule.size, plan.digest(), path, plan.seed, known.rule.digest())
    try:
        blocks.run(known.blocks, tally, executor, progress, timeout)
    except MechanismError as error:
        counted = f"{len(tally.done)} of {len(known.blocks)} blocks ({tally.histogram.sum()} runs)"
        kept = f"{counted} were counted and {disk.whereabouts(path)}"
        raise MechanismError(f"{error} {kept}") from error.__cause__
    told = exactly.note(mechanism, claim, adjacency)
    return _decide(plan, known, tally, time.perf_counter() - started, told)


def _decide(plan: Plan, known: Prepared, tally: Tally, seconds: float, told: str) -> AuditResult:
    """Compute the one exact p-value and the bounds."""
    histogram, misfits = tally.histogram[:, :-1], int(tally.histogram[:, -1].sum())
    found = decide(known.rule, histogram, plan.significance)
    point = found.rule.point
    notes = [*filter(None, [told]), *known.notes]
    if misfits:
        notes.append(f"{misfits} fresh outputs had another shape than every training output")
    if len({p.epsilon for p in plan.guarantee.points}) == 1 and point.delta > 0:
        needed = math.ceil(20 / float(point.delta))
        if plan.samples < needed:
            notes.append(
                f"a violation of the size of delta = {few(point.delta)} itself shows only from "
                f"about {needed} runs a side"
            )
    return AuditResult.of(
        plan,
        found,
        known.pair,
        training=known.training,
        samples=plan.samples - known.training,
        seconds=seconds,
        notes=tuple(notes),
    )

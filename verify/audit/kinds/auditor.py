"""The audit: train, choose one event, test it once on fresh runs.

The training runs of every pair of neighbours propose events; the one that promises most is tested
on one pair with runs that nobody looked at. What was searched before (pairs, features, thresholds,
points of the claim, both orders) is paid for with the training runs, before any fresh run is drawn:
nearly the whole significance belongs to this one test, and a twentieth of it to a few rare events
(`learning.hedged`).
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.numbers.exact import Number
from dpassay.accountant.numbers.reading import few
from dpassay.verifier.audit.kinds.known import known_or_none, told
from dpassay.verifier.audit.kinds.result import AuditResult
from dpassay.verifier.audit.runs import blocks
from dpassay.verifier.audit.runs.blocks import Datasets
from dpassay.verifier.audit.runs.laws import MechanismTarget
from dpassay.verifier.audit.runs.plan import Plan, can_refute
from dpassay.verifier.audit.runs.training import train
from dpassay.verifier.audit.statistics.guarantee import Claim, guarantee

_STEP, _LEAST = 8, 250
"""Until refuted: how many times the runs of the audit before, and the fewest runs a side."""


def audit(
    mechanism: Any,
    claim: Claim | None = None,
    *,
    pairs: Iterable[Datasets] | None = None,
    samples: int = 100_000,
    significance: float = 0.05,
    delta: Number = 0,
    bits: bool | None = None,
    seed: int | None = None,
    adjacency: Adjacency | str | None = None,
    executor: Executor | None = None,
    timeout: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    errors_are_outputs: bool = False,
) -> AuditResult:
    """Test a claim by runs, or without one estimate ε and δ(ε) from them.

    The values of outputs have the first word: they decide the verdict. The last bits of floats are
    looked at apart from them, and have a verdict of their own.

    Parameters
    ----------
    mechanism
        A mechanism of this package, a callable `mechanism(dataset, rng)`, an object with
        `sample(dataset, size, rng)`, or anything else that `runs.target` knows.
    claim
        ε, (ε, δ), {"mu": μ}, a profile δ(·) or a mechanism whose profile is claimed. None for an
        estimate: certified lower bounds of δ(ε) and ε(δ), with the exact ones beside them for a
        mechanism of this package, whose noise is then drawn in floats.
    pairs
        Pairs of neighbouring datasets; by default the worst pair of a mechanism of this package.
    samples
        Runs a side, training included.
    significance
        The largest probability with which a private mechanism is accused, of all bounds together.
    delta
        Where ε is bounded best, without a claim.
    bits
        Whether the last bits of floats are looked at: by default yes, for a verdict of their own;
        False leaves them out; True makes them part of the claim.
    seed
        Of everything that is drawn; None draws one and reports it.
    adjacency
        The relation of a claimed mechanism's profile, where it depends on it.
    executor
        Any executor of `concurrent.futures` for the blocks of the test; the result does not depend
        on it. The mechanism has to be picklable for processes.
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
    whole = guarantee((0, delta) if claim is None else claim, adjacency=adjacency)
    plan = Plan.of(
        mechanism,
        whole,
        pairs=pairs,
        samples=samples,
        significance=significance,
        seed=seed,
        timeout=timeout,
        errors_are_outputs=errors_are_outputs,
        claimed=claim is not None,
        bits=bits,
    )
    known = train(plan)
    histogram = blocks.run(known.blocks, executor, progress, timeout)
    finding = None if claim is None else known_or_none(mechanism, claim, adjacency)
    misfits = int(histogram[:, -1].sum())
    return AuditResult.of(
        plan,
        known.rule,
        histogram[:, :-1],
        known.pair,
        training=known.training,
        samples=plan.samples - known.training,
        seconds=time.perf_counter() - started,
        adjacency=adjacency,
        notes=(*told(finding), *known.notes, *_notes(plan, misfits)),
        finding=finding,
    )


def audit_until_refuted(
    mechanism: Any,
    claim: Claim,
    *,
    pairs: Iterable[Datasets] | None = None,
    samples: int = 1_000_000,
    significance: float = 0.05,
    seed: int | None = None,
    **options: Any,
) -> AuditResult:
    """Audit with more and more runs, the last time with `samples` a side; stop once refuted.

    There are few audits, each with eight times the runs of the one before and an equal part of the
    significance: a private mechanism is accused by any of them with probability at most
    `significance`. The result is that of the audit that refutes, else of the last one.
    Other arguments and errors as for `audit`.
    """
    whole = guarantee(claim, adjacency=options.get("adjacency"))
    sizes = [samples]
    while sizes[0] >= _STEP * _LEAST:
        sizes.insert(0, sizes[0] // _STEP)
    level = significance / len(sizes)
    listed = None if pairs is None else list(pairs)
    fixed = secrets.randbits(63) if seed is None else int(seed)
    for size in sizes:
        if size < samples and not can_refute(whole, size, level):
            continue
        found = audit(
            mechanism, whole, pairs=listed, samples=size, significance=level, seed=fixed, **options
        )
        if found.refuted:
            break
    which = f"audit {sizes.index(size) + 1} of {len(sizes)} of growing size"
    note = f"{which}, each at significance {few(level)}"
    return replace(found, notes=(*found.notes, note))


def _notes(plan: Plan, misfits: int) -> Iterable[str]:
    """Say what limits what was found."""
    if isinstance(plan.target, MechanismTarget) and plan.target.simulated:
        yield "noise was drawn in floats, as its law says; a claim is tested on releases"
    if misfits:
        yield f"{misfits} fresh outputs had another shape than every training output"
    points = plan.guarantee.points
    if plan.claimed and len({point.epsilon for point in points}) == 1 and points[0].delta > 0:
        needed = math.ceil(20 / float(points[0].delta))
        if plan.samples < needed:
            yield (
                f"a violation of the size of delta = {few(points[0].delta)} itself shows only from "
                f"about {needed} runs a side"
            )

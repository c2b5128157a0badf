"""The audit: train, choose one event, test it once on fresh runs.

The training runs of every pair of neighbours propose events; the one that promises most is tested
on one pair with runs that nobody looked at. What was searched before (pairs, features, thresholds,
points of the claim, both orders) is paid for with the training runs, before any fresh run is drawn:
nearly the whole significance belongs to this one test, and a twentieth of it to a few rare events
(`learning.learn`).

What needs no run: the exact verdict on a claim about a mechanism of this package.

`assert_private`: a claim as one line of a test suite, proved where it can be, else audited.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import numpy as np

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import DpassayError
from dpassay.accountant.numbers.exact import Number
from dpassay.accountant.numbers.reading import few
from dpassay.verifier.audit.kinds.result import AuditResult
from dpassay.verifier.audit.outcome import read_count, read_seed, read_significance
from dpassay.verifier.audit.runs import blocks
from dpassay.verifier.audit.runs.blocks import Datasets, time_limit
from dpassay.verifier.audit.runs.plan import Plan, can_refute, own_pairs, train
from dpassay.verifier.audit.runs.target import MechanismTarget, target
from dpassay.verifier.audit.statistics.guarantee import Claim, Guarantee, guarantee
from dpassay.verifier.claims import guarantee as claimed_by
from dpassay.verifier.decide import decide
from dpassay.verifier.verdict import Finding, Verdict

_WORDS = ({"epsilon"}, {"epsilon", "delta"}, {"mu"}, {"rho"}, {"order", "renyi"})


def known(mechanism: Any, claim: Claim, adjacency: Adjacency | str | None = None) -> Finding | None:
    """Decide a claim about a mechanism of this package: HOLDS or REFUTED; None where neither is.

    Of several points (ε, δ) the first that is refuted is told; None too for a claimed curve, and
    for a program, which can only be run.

    Raises AdjacencyError where the verdict depends on a relation that is not given.
    """
    if not isinstance(mechanism, Mechanism) or not (listed := _words(claim)):
        return None
    relation = Adjacency.read(adjacency)
    near = None if relation is None else relation.value
    findings = [
        decide(claimed_by(words, mechanism=str(mechanism), adjacency=near, source="audit")).finding
        for words in listed
    ]
    refuted = [finding for finding in findings if finding.verdict is Verdict.REFUTED]
    if not refuted and any(not finding.holds for finding in findings):
        return None
    return (refuted or findings)[0]


def known_or_none(
    mechanism: Any, claim: Claim, adjacency: Adjacency | str | None = None
) -> Finding | None:
    """Return the same for an audit, which has its runs where there is no exact answer."""
    try:
        return known(mechanism, claim, adjacency)
    except DpassayError:  # no relation is given, or the runs are of what has no exact answer
        return None


def told(finding: Finding | None) -> list[str]:
    """Say in a line what is known without any run; nothing where nothing is."""
    if finding is None:
        return []
    return [f"known exactly, without any run: {finding.verdict}: {finding.formal}"]


def _words(claim: Claim) -> list[dict[str, Any]]:
    """Return the points of a claim, each in the words of `guarantee`."""
    if isinstance(claim, Guarantee):
        return [point.to_json() for point in claim.points]
    if isinstance(claim, Mapping):
        return [dict(claim)] if set(claim) in _WORDS else []
    if isinstance(claim, Mechanism) or callable(claim):
        return []
    if isinstance(claim, Sequence) and not isinstance(claim, str):
        points: list[Any] = list(claim)
        if len(points) == 2 and not isinstance(points[0], (list, tuple)):
            points = [points]
        if any(not isinstance(point, (list, tuple)) or len(point) != 2 for point in points):
            return []  # as `guarantee` says
        return [{"epsilon": epsilon, "delta": delta} for epsilon, delta in points]
    return [{"epsilon": claim}]


_STEP, _SMALLEST = 8, 250
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
    level, fixed = read_significance(significance), read_seed(seed)
    sizes = [read_count(samples)]
    while sizes[0] >= _STEP * _SMALLEST:
        sizes.insert(0, sizes[0] // _STEP)
    level /= len(sizes)
    listed = None if pairs is None else list(pairs)
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


_LEAST = 1000
"""Runs a side, however slow the mechanism is: fewer could refute little at 1e-6."""
_MOST = 20_000_000
"""Runs a side, however fast it is: beyond, scoring takes longer than drawing."""
_SHARE = 0.5
"""Part of the time that drawing may take: scoring and the certificate need the rest."""


class PrivacyError(AssertionError):
    """The claim was refuted; `result` holds the evidence."""

    def __init__(self, result: AuditResult | Finding) -> None:
        super().__init__(str(result))
        self.result = result


def assert_private(
    mechanism: Any,
    claim: Claim,
    *,
    pairs: Iterable[Datasets] | None = None,
    alpha: float = 1e-6,
    seconds: float = 20.0,
    seed: int = 0,
    samples: int | None = None,
    adjacency: Adjacency | str | None = None,
    bits: bool | None = None,
) -> AuditResult | Finding:
    """Raise PrivacyError if a claim is refuted; return the finding or the audit otherwise.

    A claim about a mechanism of this package is decided exactly, without any run, wherever
    `verify` decides it; runs are drawn besides where `pairs` or `samples` ask for them. All else
    is audited.

    Parameters
    ----------
    mechanism, claim, pairs
        As for `dpassay.verifier.audit.audit`.
    alpha
        The largest probability with which a private mechanism fails the test.
    seconds
        What it may take, roughly. The number of runs is fixed from the speed of a few runs before
        the outcome of any is looked at.
    seed
        The same runs every time, so that a test does not flicker; change it for fresh ones.
    samples
        Runs a side instead, whatever they take.
    adjacency
        The neighbouring relation, required where the guarantee of a mechanism depends on it.
    bits
        Whether the last bits of floats are looked at, as for `audit`: the test fails by them where
        they are part of the claim, bits=True.
    """
    finding = known(mechanism, claim, adjacency)
    if finding is not None and finding.refuted:
        raise PrivacyError(finding)
    if finding is not None and pairs is None and samples is None:
        return finding
    listed = None if pairs is None else list(pairs)
    count = samples or _affordable(mechanism, listed, seconds)
    result = audit(
        mechanism,
        claim,
        pairs=listed,
        samples=count,
        significance=alpha,
        seed=seed,
        adjacency=adjacency,
        bits=bits,
    )
    if result.refuted:
        raise PrivacyError(result)
    return result


def _affordable(mechanism: Any, pairs: list[Datasets] | None, seconds: float) -> int:
    """Return how many runs a side take about half of the time."""
    audited = target(mechanism)
    dataset = (pairs or list(own_pairs(mechanism)))[0][0]
    rng = np.random.default_rng(0)
    size, spent = 8, 0.0
    while spent < seconds / 200 and size < _MOST // 64:
        size *= 4
        started = time.perf_counter()
        with time_limit(seconds, f"{size} runs of {audited.name}"):
            audited.sample(dataset, size, rng)
        spent = time.perf_counter() - started
    rate = size / max(spent, 1e-9)
    return int(min(_MOST, max(_LEAST, _SHARE * seconds * rate / 2)))

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, Unpack, overload

import numpy as np

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import DpassayError, InvalidInputError
from dpassay.accountant.numbers.reading import few
from dpassay.verifier.audit.kinds.result import AuditResult
from dpassay.verifier.audit.runs import blocks
from dpassay.verifier.audit.runs.blocks import Datasets, time_limit
from dpassay.verifier.audit.runs.plan import Plan, can_refute, own_pairs, read_pairs, train
from dpassay.verifier.audit.runs.target import MechanismTarget, named, target
from dpassay.verifier.audit.statistics.guarantee import (
    Claim,
    Guarantee,
    guarantee,
    read_count,
    read_seed,
    read_significance,
)
from dpassay.verifier.claims import guarantee as claimed_by
from dpassay.verifier.decide import decide
from dpassay.verifier.sentence import (
    ONE_CLAIM,
    Words,
    bounded,
    in_words,
    one_claim,
    read_sentence,
    said_once,
)
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


class Runs(Words, total=False):
    """What an audit of runs takes besides its claim and the number of runs."""

    pair: Datasets | None
    pairs: Iterable[Datasets] | None
    significance: float
    bits: bool | None
    seed: int | None
    executor: Executor | None
    timeout: float | None
    progress: Callable[[int, int], None] | None


@overload
def audit(
    mechanism: Callable[..., Any],
    claim: Claim | str | None = None,
    *,
    samples: int | None = None,
    **runs: Unpack[Runs],
) -> AuditResult: ...


@overload
def audit(
    mechanism: Any, claim: Claim | str | None = None, *, samples: int, **runs: Unpack[Runs]
) -> AuditResult: ...


@overload
def audit(
    mechanism: Any, claim: Claim | str | None = None, *, samples: None = None, **runs: Unpack[Runs]
) -> AuditResult | Finding: ...


@in_words
def audit(
    mechanism: Any,
    claim: Claim | str | None = None,
    *,
    pair: Datasets | None = None,
    pairs: Iterable[Datasets] | None = None,
    samples: int | None = None,
    significance: float = 0.05,
    bits: bool | None = None,
    seed: int | None = None,
    executor: Executor | None = None,
    timeout: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    **words: Unpack[Words],
) -> AuditResult | Finding:
    """Run a mechanism on two neighbouring datasets: test a claim, or estimate ε and δ(ε).

    What is known exactly of a claim about a mechanism of this package is answered as `verify` does,
    unless an argument such as `samples` or `pairs` asks for runs. Of runs the values of outputs
    decide the verdict; the last bits of floats are looked at apart from them, and have their own.

    Parameters
    ----------
    mechanism
        A mechanism of this package, as an object or as text; a callable such as
        `mechanism(dataset, rng)` or `mechanism(dataset, size, rng)`, or "package.module:callable";
        an object with `sample(dataset, size, rng)`; a measurement of OpenDP, a mechanism of
        diffprivlib, a `dpassay.verifier.audit.Command`.
    claim
        ε, (ε, δ), {"mu": μ}, a profile δ(·), a mechanism whose profile is claimed, or text such as
        "(1, 1e-5)-DP". Without a claim the result is an estimate: certified lower bounds of δ(ε)
        and ε(δ), with the exact ones beside them for a mechanism of this package, whose noise is
        then drawn in floats.
    epsilon, delta, mu, rho
        The claim in words instead; `delta` alone says where an estimate bounds ε best.
    pair, pairs
        Neighbouring datasets: one pair, or several of which the most promising one is tested; by
        default the worst pair of a mechanism of this package.
    samples
        Runs a side, training included; 100 000 unless given.
    significance
        The largest probability with which a private mechanism is accused, of all bounds together.
    bits
        Whether the last bits of floats are looked at: by default yes, with a verdict of their own;
        False leaves them out; True makes them part of the claim.
    seed
        Of everything that is drawn; None draws one and reports it.
    adjacency
        The neighbouring relation of a mechanism whose guarantee depends on it.
    executor
        Any executor of `concurrent.futures` for the blocks of the test; the result does not depend
        on it. The mechanism has to be picklable for processes.
    timeout
        Seconds that one block may take.

    Raises
    ------
    InvalidInputError
        If an argument is out of range, or there are too few samples to refute anything.
    MechanismError
        If the mechanism raises, hangs or returns no output per run.

    Examples
    --------
    >>> found = audit("DiscreteLaplace(scale=2)", samples=2000, seed=1)
    >>> found.epsilon < 0.5
    True
    >>> audit("Laplace(1)", epsilon="0.9").verdict.value
    'REFUTED'
    """
    started = time.perf_counter()
    about, asked = _in_words(mechanism, {**words})
    claimed, adjacency = one_claim(claim, asked)
    runs_wanted = (pair, pairs, samples, executor)
    if claimed is not None and all(each is None for each in runs_wanted):
        decided = known(about, claimed, adjacency)
        if decided is not None:
            return decided
    whole = guarantee(bounded(words) if claimed is None else claimed, adjacency=adjacency)
    plan = Plan.of(
        about,
        whole,
        pairs=_listed(pair, pairs),
        samples=100_000 if samples is None else samples,
        significance=significance,
        seed=seed,
        timeout=timeout,
        claimed=claimed is not None,
        bits=bits,
    )
    prepared = train(plan)
    histogram = blocks.run(prepared.blocks, executor, progress, timeout)
    finding = None if claimed is None else known_or_none(about, claimed, adjacency)
    misfits = int(histogram[:, -1].sum())
    return AuditResult.of(
        plan,
        prepared.rule,
        histogram[:, :-1],
        prepared.pair,
        training=prepared.training,
        samples=plan.samples - prepared.training,
        seconds=time.perf_counter() - started,
        adjacency=adjacency,
        notes=(*told(finding), *prepared.notes, *_notes(plan, misfits)),
        finding=finding,
    )


def _in_words(mechanism: Any, words: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Read a mechanism or package.module:callable that is text, with what a sentence claims."""
    if not isinstance(mechanism, str):
        return mechanism, words
    about, said = read_sentence(mechanism)
    return named(about), said_once(said, words)


def _listed(pair: Datasets | None, pairs: Iterable[Datasets] | None) -> Iterable[Datasets] | None:
    """Return all pairs that are named, which can be gone through again; None for none."""
    if pair is not None:
        return [*(pairs or ()), pair]
    return [*pairs] if isinstance(pairs, Iterator) else pairs


@in_words
def audit_until_refuted(
    mechanism: Any,
    claim: Claim | str | None = None,
    *,
    pair: Datasets | None = None,
    pairs: Iterable[Datasets] | None = None,
    samples: int = 1_000_000,
    significance: float = 0.05,
    bits: bool | None = False,
    seed: int | None = None,
    executor: Executor | None = None,
    timeout: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    **words: Unpack[Words],
) -> AuditResult:
    """Audit with more and more runs, the last time with `samples` a side; stop once refuted.

    There are few audits, each with eight times the runs of the one before and an equal part of the
    significance: a private mechanism is accused by any of them with probability at most
    `significance`. The result is that of the audit that refutes, else of the last one. The values
    of outputs alone are looked at unless `bits` says otherwise. Arguments and errors as for
    `audit`.
    """
    about, asked = _in_words(mechanism, {**words})
    claimed, adjacency = _required(*one_claim(claim, asked))
    whole = guarantee(claimed, adjacency=adjacency)
    level, fixed = read_significance(significance), read_seed(seed)
    sizes = [read_count(samples)]
    while sizes[0] >= _STEP * _SMALLEST:
        sizes.insert(0, sizes[0] // _STEP)
    level /= len(sizes)
    listed = _listed(pair, pairs)
    for size in sizes:
        if size < samples and not can_refute(whole, size, level):
            continue
        found: AuditResult = audit(
            about,
            whole,
            pairs=listed,
            samples=size,
            significance=level,
            bits=bits,
            seed=fixed,
            executor=executor,
            timeout=timeout,
            progress=progress,
            adjacency=adjacency,
        )
        if found.refuted:
            break
    which = f"audit {sizes.index(size) + 1} of {len(sizes)} of growing size"
    note = f"{which}, each at significance {few(level)}"
    return replace(found, notes=(*found.notes, note))


def _required(claim: Any, adjacency: Any) -> tuple[Any, Any]:
    if claim is None:
        raise InvalidInputError(f"Expected a claim. {ONE_CLAIM}")
    return claim, adjacency


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


@in_words
def assert_private(
    mechanism: Any,
    claim: Claim | str | None = None,
    *,
    pair: Datasets | None = None,
    pairs: Iterable[Datasets] | None = None,
    alpha: float = 1e-6,
    seconds: float = 20.0,
    seed: int = 0,
    samples: int | None = None,
    bits: bool | None = None,
    **words: Unpack[Words],
) -> AuditResult | Finding:
    """Raise PrivacyError if a claim is refuted; return the finding or the audit otherwise.

    A claim about a mechanism of this package is decided exactly, without any run, wherever
    `verify` decides it; runs are drawn besides where `pairs` or `samples` ask for them. All else
    is audited.

    Parameters
    ----------
    mechanism, claim, epsilon, delta, mu, rho, pair, pairs, samples, adjacency, bits
        As for `audit`; the test fails by last bits only where they are part of the claim.
    alpha
        The largest probability with which a private mechanism fails the test.
    seconds
        What it may take, roughly. The number of runs is fixed from the speed of a few runs before
        the outcome of any is looked at.
    seed
        The same runs every time, so that a test does not flicker; change it for fresh ones.
    """
    about, asked = _in_words(mechanism, {**words})
    claimed, adjacency = _required(*one_claim(claim, asked))
    finding, listed = known(about, claimed, adjacency), _listed(pair, pairs)
    if finding is not None and finding.refuted:
        raise PrivacyError(finding)
    if finding is not None and listed is None and samples is None:
        return finding
    result = audit(
        about,
        claimed,
        pairs=listed,
        samples=samples or _affordable(about, listed, seconds),
        significance=alpha,
        seed=seed,
        adjacency=adjacency,
        bits=bits,
    )
    if result.refuted:
        raise PrivacyError(result)
    return result


def _affordable(mechanism: Any, pairs: Iterable[Datasets] | None, seconds: float) -> int:
    """Return how many runs a side take about half of the time."""
    audited = target(mechanism)
    dataset = (own_pairs(mechanism) if pairs is None else read_pairs(pairs))[0][0]
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

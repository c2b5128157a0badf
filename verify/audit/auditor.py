"""The audit: train, choose one event, test it once on fresh runs.

Events are learned from the training runs of every pair of neighbours. The most promising one is
tested on one pair, with fresh runs. The search over pairs, features, thresholds, points of the
claim and both orders costs training runs and no significance: nearly all of that belongs to this
one test, and a twentieth to a few rare events (`learn`).

`known` decides a claim about a mechanism of this package without runs, where it can be decided
exactly; `assert_private` tests a claim in one line of a test suite; `replay` draws the audit of a
certificate again from its seed. A replay is not part of the kernel: it takes the runs from the
audited sampler, and learns the event again from the training runs.
"""

from __future__ import annotations

import ast
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, Unpack, final, overload

import numpy as np

from dpassay.accountant import notation
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import DpassayError, InvalidInputError
from dpassay.accountant.numbers.interval import few
from dpassay.verifier.ask import (
    ONE_CLAIM,
    Words,
    bounded,
    in_words,
    is_notation,
    merged,
    one_claim,
    read_sentence,
)
from dpassay.verifier.audit.guarantees import (
    Claim,
    guarantee,
    read_count,
    read_seed,
    read_significance,
)
from dpassay.verifier.audit.result import AuditResult
from dpassay.verifier.audit.runs import (
    Datasets,
    MechanismTarget,
    Plan,
    can_refute,
    named,
    neighbours,
    own_pairs,
    read_pairs,
    run,
    target,
    time_limit,
    train,
)
from dpassay.verifier.claims import guarantee as claimed_by
from dpassay.verifier.decide import decide
from dpassay.verifier.verdict import Finding, Verdict


def known(mechanism: Any, claim: Claim, adjacency: Adjacency | str | None = None) -> Finding | None:
    """Decide a claim about a mechanism of this package: HOLDS or REFUTED; None where neither is.

    Of several points (ε, δ) the first that is refuted is returned. It is None, too, for a claimed
    curve, and for a program, which can only be run.

    Raises AdjacencyError where the verdict depends on a relation that is not given.
    """
    is_own = isinstance(mechanism, Mechanism)
    listed = guarantee(claim, adjacency=adjacency).words if is_own else ()
    if not listed:
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
    """Return the same, or None if the exact answer fails: an audit has its runs."""
    try:
        return known(mechanism, claim, adjacency)
    except DpassayError:  # no relation is given, or the runs are of what has no exact answer
        return None


def exact_note(finding: Finding | None) -> list[str]:
    """Say what is known without any run, in a line if there is something."""
    if finding is None:
        return []
    return [f"known exactly, without any run: {finding.verdict}: {finding.formal}"]


_STEP, _SMALLEST = 8, 250
"""Until refuted: how many times the runs of the audit before, and the fewest runs on each side."""


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

    A claim about a mechanism of this package is decided exactly where `verify` can decide it,
    unless an argument such as `samples` or `pairs` asks for runs. The values of the outputs decide
    the verdict; the last bits of floats get a separate one.

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
        The claim as numbers; `delta` alone says where an estimate bounds ε.
    pair, pairs
        Neighbouring datasets: one pair, or several of which the most promising one is tested; by
        default the worst pair of a mechanism of this package.
    samples
        Runs on each side, training included (default 100 000).
    significance
        The largest probability of a false accusation, for all bounds together.
    bits
        Whether the last bits of floats are examined: by default with a verdict of their own; False
        ignores them, True makes them part of the claim.
    seed
        The seed of all randomness; None draws one and reports it.
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
    histogram = run(prepared.blocks, executor, progress, timeout)
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
        notes=(*exact_note(finding), *prepared.notes, *_notes(plan, misfits)),
        finding=finding,
    )


def _in_words(mechanism: Any, words: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Read a mechanism or package.module:callable from text, and the claim of a sentence."""
    if not isinstance(mechanism, str):
        return mechanism, words
    about, said = read_sentence(mechanism)
    return named(about), merged(said, words)


def _listed(pair: Datasets | None, pairs: Iterable[Datasets] | None) -> Iterable[Datasets] | None:
    """Return all pairs that are given, as a collection; None if there are none."""
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
    """Audit with more and more runs, the last time with `samples` on each side; stop once refuted.

    There are few audits, each with eight times the runs of the one before and an equal part of the
    significance: a private mechanism is accused by any of them with probability at most
    `significance`. The result is that of the audit that refutes, else of the last one. The values
    of outputs alone are examined unless `bits` says otherwise. Arguments and errors as for
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
"""Runs on each side, however slow the mechanism is: fewer could refute little at 1e-6."""
_MOST = 20_000_000
"""Runs on each side, however fast it is: beyond, scoring takes longer than drawing."""
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

    A claim about a mechanism of this package is decided exactly, without runs, wherever `verify`
    can decide it; runs are added if `pairs` or `samples` ask for them. All else is audited.

    Parameters
    ----------
    mechanism, claim, epsilon, delta, mu, rho, pair, pairs, samples, adjacency, bits
        As for `audit`; the last bits of floats fail the test only if they are part of the claim.
    alpha
        The largest probability with which a private mechanism fails the test.
    seconds
        About how long it may take. The number of runs is fixed by the speed of a few runs, before
        any outcome is examined.
    seed
        The seed of the runs. It is fixed, so that the test gives the same result every time; change
        it for fresh runs.
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
    """Return how many runs on each side take about half of the time."""
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


_MOST_RUNS = 10**8
"""Runs on each side that are drawn again: beyond, whoever checks waits for minutes."""
_MOST_SEEDS = 1e18
"""Seeds that somebody may have tried before this one."""


@final
@dataclass(frozen=True)
class Replayed:
    """What drawing again showed."""

    problems: list[tuple[str, str]]
    runs: int = 0
    rests_on: tuple[str, ...] = ()
    """What a replay cannot show."""
    not_replayed: str = ""
    """Why the runs cannot be drawn again; empty where they were."""
    any_seed: bool = False
    """Whether the verdict holds even if the seed was chosen; bounds, whose confidence is that of
    one seed, do not."""


def replay(request: tuple[Mapping[str, Any], bool]) -> Replayed:
    """Draw the runs of a checked certificate again; the flag allows to import what it names."""
    data, code = request
    theorem, witness = data["theorem"], data["witness"]
    how = witness.get("replay")
    if how is None:
        return Replayed([], not_replayed="the certificate does not say how they were drawn")
    how = dict.fromkeys(("pairs", "search", "adjacency")) | how
    foreign = not is_notation(how["target"])
    if foreign and not code:
        why = f"{how['target']} is code that the certificate names, which --replay-code runs"
        return Replayed([], not_replayed=why)
    if theorem["claim"]["kind"] == "profile":
        return Replayed([], not_replayed="the claimed profile is a function of its author")
    if how["samples"] > _MOST_RUNS:
        return Replayed([], not_replayed=f"more than {_MOST_RUNS} runs; audit with another seed")
    try:
        result = _again(named(how["target"]), data, how)
        found = result.certificate(witness["replay"])
    except DpassayError as error:
        return Replayed([], not_replayed=str(error))
    own, theirs = dict(_leaves(json.loads(json.dumps(found)))), dict(_leaves(data))
    changed = [path for path in {**own, **theirs} if own.get(path) != theirs.get(path)]
    why = "is not what the seed gives (or another version of numpy drew it)"
    rests = []
    if foreign:
        rests.append(f"that the code that is now called {how['target']} is what was meant")
    if how["pairs"] or how["search"]:
        pairs = witness.get("pair") or witness["pairs"]
        rests.append(f"that {pairs} are neighbours under the claim")
    refuted = theorem["verdict"] == "REFUTED"
    chosen = refuted and result.p_value * _MOST_SEEDS > result.significance
    if chosen:
        rests.append(
            f"that the seed {witness['seed']} was not chosen among many for its outcome; audit "
            "with another one"
        )
    problems = [(path, why) for path in changed]
    return Replayed(problems, 2 * how["samples"], tuple(rests), any_seed=not chosen)


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield every leaf of nested data with its path, such as `witness.marks[0]`."""
    if isinstance(value, Mapping) and value:
        for key, entry in value.items():
            yield from _leaves(entry, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value:
        for index, entry in enumerate(value):
            yield from _leaves(entry, f"{path}[{index}]")
    else:
        yield path, value


def _again(mechanism: Any, data: Mapping[str, Any], how: Mapping[str, Any]) -> Any:
    """Make the audit once more."""
    arguments: dict[str, Any] = {
        "pairs": _pairs(how),
        "samples": how["samples"],
        "significance": float(data["theorem"]["significance"]),
        "seed": int(data["witness"]["seed"]),
        "adjacency": how["adjacency"],
    }
    return audit(mechanism, _claim(data["theorem"]["claim"]), **arguments)


def _claim(claim: Mapping[str, Any]) -> Any:
    if claim["kind"] == "epsilon-delta":
        return [(point["epsilon"], point["delta"]) for point in claim["points"]]
    if claim["kind"] == "gaussian":
        return {"mu": claim["parameter"]}
    return notation.parse(claim["parameter"])


def _pairs(how: Mapping[str, Any]) -> list[tuple[Any, Any]] | None:
    """Return the pairs of datasets, None for a mechanism's own."""
    found: list[tuple[Any, Any]] = [
        (literal(first), literal(second)) for first, second in how["pairs"] or ()
    ]
    if how["search"]:
        found += neighbours(how["search"], adjacency=how["adjacency"] or "add-remove")
    return found or None


def literal(text: str) -> Any:
    """Read a dataset; raise InvalidInputError where it is no Python literal."""
    special = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}
    if text in special:
        return special[text]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise InvalidInputError(
            f"Expected a dataset as a Python literal such as 0, [1, 2] or '\"text\"', not {text!r}."
        ) from None

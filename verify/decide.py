"""Decide claims: every case of a claim, the worst one reported, the verdict of the whole."""

from __future__ import annotations

import dataclasses
import re
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec

from dpassay.accountant.errors import InvalidInputError, UndecidedError
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.numbers.precision import watched
from dpassay.verifier.claims import Claim, Decision, Scalar, Scope, errors
from dpassay.verifier.proof import proved, reachable
from dpassay.verifier.verdict import Finding, Rigour, Verdict

SECONDS = 300
"""Seconds of processor time that one claim may take."""
_LISTED = 20
"""At most so many values of a variable are listed; of more, the ends and their number."""
_UNIVERSAL = re.compile(r"\b(every|all|any)\b(?!-)|∀", re.IGNORECASE)
_ORDER = (Verdict.REFUTED, Verdict.UNDECIDED, Verdict.PENDING, Verdict.SUPPORTED, Verdict.HOLDS)
"""The verdict of a claim is the first of these that any of its cases has."""
_STANDING = (Verdict.HOLDS, Verdict.SUPPORTED)
_OPEN = (Verdict.SUPPORTED, Verdict.UNDECIDED)


def formal(claim: Claim) -> str:
    """Say what a claim says: its cases and domains, its assumptions, and its assertion."""
    parts = []
    if claim.where:
        listed = ", ".join(f"{name} in {_values(given)}" for name, given in claim.where.items())
        parts.append(f"in the cases {listed}")
    if claim.for_all:
        domains = " and ".join(domain.words(name) for name, domain in claim.for_all.items())
        parts.append(f"for every {domains}")
    if claim.assume:
        parts.append(f"where {' and '.join(claim.assume)}")
    quantified = " ".join(parts)
    text = f"{quantified}: {claim.assertion()}" if quantified else claim.assertion()
    if claim.adjacency:
        text += f", for neighbours by {claim.adjacency}"
    if claim.let:
        text += ", with " + ", ".join(f"{name} = {value}" for name, value in claim.let.items())
    return text


def note(claim: Claim) -> str:
    """Say if the author's words are universal but the claim is about listed cases only."""
    if _UNIVERSAL.search(claim.statement) and not claim.has_range():
        return "The file's words say more than was decided: only the listed cases."
    return ""


def _values(values: Sequence[Scalar]) -> str:
    texts = [str(value) for value in values]
    if len(texts) <= _LISTED:
        return "{" + ", ".join(texts) + "}"
    return "{" + ", ".join([*texts[:4], "…", texts[-1]]) + "}" + f" ({len(texts)} values)"


class Decided(NamedTuple):
    """A finding, and what its certificate is made from."""

    finding: Finding
    scope: Scope
    """The case that is reported."""
    decision: Decision
    claim: Claim


def decide(claim: Claim, lemmas: Iterable[Claim] = ()) -> Decided:
    """Decide a claim and say why.

    Every listed case is decided; the worst one (largest true/claimed) is reported with its
    witness. A claim over whole domains is at best SUPPORTED, unless its proof is accepted, which
    may name the `lemmas`: the claims of the same file.

    Raises
    ------
    InvalidInputError
        If the claim cannot be evaluated (a bad argument, an unknown variable, no case left).
    UndecidedError
        If that takes more than `SECONDS`, or more memory than there is.
    """
    lemmas = tuple(lemmas)
    try:
        with ended_after(SECONDS):
            return _decided(claim, lemmas)
    except (LateError, MemoryError) as spent:
        why = str(spent) or "it takes more memory than there is"
        raise UndecidedError(f"Claim {claim.id!r} is not decided: {why}.") from None


class _Spent(BaseException):
    """Raised inside a block that has used up its time; nothing there may catch it."""


class LateError(TimeoutError):
    """A block took too long."""


@contextmanager
def ended_after(seconds: float, *, by_the_clock: bool = False) -> Iterator[None]:
    """Raise LateError if a block takes more processor time, or more time by the clock.

    Only in the main thread, where the system has interval timers; a block inside shares its time.
    """
    timed = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    timer = (signal.ITIMER_REAL if by_the_clock else signal.ITIMER_VIRTUAL) if timed else 0
    if not timed or signal.getitimer(timer)[0]:
        yield
        return
    alarm = signal.SIGALRM if by_the_clock else signal.SIGVTALRM

    def stop(*_: object) -> None:
        raise _Spent

    before = signal.signal(alarm, stop)
    try:
        signal.setitimer(timer, seconds)
        yield
    except _Spent:
        raise LateError(f"it takes more than {seconds:g} s of processor time") from None
    finally:
        signal.setitimer(timer, 0)
        signal.signal(alarm, before or signal.SIG_DFL)


def _decided(claim: Claim, lemmas: Sequence[Claim]) -> Decided:
    """Decide a claim in its listed cases, and by its proof."""
    started = time.perf_counter()
    for each in (claim, *(reachable(claim, lemmas) if claim.proof else ())):
        if wrong := errors(each.plain()):
            said = "; ".join(": ".join(filter(None, entry)) for entry in wrong)
            raise InvalidInputError(f"Claim {each.id!r}: {said}.")
    cases = list(claim.cases())
    if not cases:
        raise InvalidInputError(
            f"Claim {claim.id!r}: its assumptions leave no case. Widen where, for_all or assume."
        )
    with watched() as engines:
        decided = [(scope, _decide(claim, scope)) for scope in cases]
    verdict = next(v for v in _ORDER if any(d.verdict is v for _, d in decided))
    scope, decision = max(
        ((s, d) for s, d in decided if d.verdict is verdict), key=lambda case: case[1].severity()
    )
    decision = _explained(claim, scope, decision)
    by_proof = verdict in _OPEN and claim.proof and "limit" not in claim.proof
    if by_proof or (verdict is Verdict.HOLDS and claim.for_all):
        verdict, decision = _over_the_range(claim, decision, len(cases), lemmas)
    decision = dataclasses.replace(decision, verdict=verdict)
    if engines and decision.rigour is Rigour.PROVED:
        decision = dataclasses.replace(decision, rigour=Rigour.BOUNDED)
    finding = _finding(claim, scope, decision)
    finding = msgspec.structs.replace(
        finding, cases=len(cases), seconds=round(time.perf_counter() - started, 3)
    )
    return Decided(finding, scope, decision, claim)


def _decide(claim: Claim, scope: Scope) -> Decision:
    """Decide one case; a precision that does not suffice is UNDECIDED, with its reason."""
    try:
        return claim.decide(scope)
    except UndecidedError as error:
        return Decision(verdict=Verdict.UNDECIDED, reason=str(error))
    except InvalidInputError as error:
        if claim.id == claim.kind and not scope.variables:  # of a sentence: it has no name
            raise
        case = f" (case {scope.to_json()})" if scope.variables else ""
        raise InvalidInputError(f"Claim {claim.id!r}{case}: {error}") from error


def _explained(claim: Claim, scope: Scope, decision: Decision) -> Decision:
    """Add the evidence to a decision, if there is a decision and the evidence can be computed."""
    if not decision.claimed:
        return decision
    try:
        return claim.explain(scope, decision)
    except UndecidedError as error:
        return dataclasses.replace(decision, reason=f"{decision.reason} No evidence: {error}")


def _over_the_range(
    claim: Claim, decision: Decision, count: int, lemmas: Iterable[Claim]
) -> tuple[Verdict, Decision]:
    """Return HOLDS if the claim's proof is accepted; else what its cases support."""
    objection = "Between and beyond them nothing is proved."
    if claim.proof:
        theorem, objection = proved(claim, lemmas)
        if theorem:
            reason = f"{theorem.removeprefix('HOLDS: ')}. {decision.reason}"
            route = f"proof by {claim.proof.get('method', 'limit')}"
            return Verdict.HOLDS, dataclasses.replace(decision, reason=reason, route=route)
        objection = f"Its proof was not accepted: {objection}"
    if decision.verdict is Verdict.HOLDS:
        objection = f"All {count} cases of the grid were proved. {objection}"
    verdict = Verdict.UNDECIDED if decision.verdict is Verdict.UNDECIDED else Verdict.SUPPORTED
    return verdict, dataclasses.replace(decision, reason=f"{decision.reason} {objection}")


def _finding(claim: Claim, scope: Scope, decision: Decision) -> Finding:
    witness: dict[str, Any] = dict(decision.witness)
    if scope.variables:
        witness = {"case": scope.to_json(), **witness}
    return Finding(
        id=claim.id,
        source=claim.source,
        statement=claim.statement,
        kind=claim.kind,
        verdict=decision.verdict,
        true=_plain(decision.true),
        claimed=decision.claimed,
        margin=_plain(decision.margin),
        rigour=decision.rigour,
        witness=witness,
        reason=" ".join(decision.reason.split()),
        formal=formal(claim),
        note=note(claim) if decision.verdict in _STANDING else "",
        expected=claim.expected,
        adjacency=claim.adjacency,
        route=decision.route,
        cause=claim.cause if decision.verdict is Verdict.REFUTED else "",
        error=claim.error if decision.verdict is Verdict.REFUTED else "",
        correction=claim.correction,
    )


def _plain(values: dict[str, Interval]) -> dict[str, Any]:
    return {name: interval.to_json() for name, interval in values.items()}

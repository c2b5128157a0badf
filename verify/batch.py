"""Decide many claims: in parallel, with finished ones kept for a run that is interrupted."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, final

import msgspec

from accountant.errors import DpassayError, InvalidInputError, UndecidedError
from verify import certificate
from verify.argument import conclude
from verify.claim import Claim
from verify.proof import plain, reachable
from verify.verdict import Finding, Verdict

_FEW = 4
"""So few claims are decided before other processes would have started."""


@final
@dataclass(frozen=True)
class Outcome:
    """What became of one claim."""

    finding: Finding | None
    certificate: dict[str, Any] | None = None
    error: str = ""
    """Why there is no finding."""
    undecided: bool = False
    """Whether the error is one of precision, not of input."""


def decide(claim: Claim, lemmas: Sequence[Claim] = ()) -> Outcome:
    """Decide one claim; an error is an outcome too, so that the others go on."""
    try:
        return Outcome(*certificate.certify(claim, lemmas))
    except UndecidedError as error:
        return Outcome(None, error=f"{claim.id}: {error}", undecided=True)
    except DpassayError as error:
        return Outcome(None, error=str(error))


def decide_all(
    claims: Sequence[Claim],
    *,
    lemmas: Sequence[Claim] = (),
    jobs: int = 1,
    keep: Path | None = None,
) -> Iterator[tuple[int, Outcome]]:
    """Decide claims and yield (index, outcome) in the order in which they are finished.

    Parameters
    ----------
    claims
        What to decide.
    lemmas
        Further claims that a proof may name; every one of `claims` is one already.
    jobs
        Number of processes. They are stopped when the iteration is left, for whatever reason.
    keep
        A file of JSON lines. Outcomes that it has are taken from it; others are added as soon as
        they are known.

    Raises
    ------
    InvalidInputError
        If `keep` exists and is not such a file.
    """
    kept = _read(keep) if keep is not None else {}
    named = [reachable(claim, [*lemmas, *claims]) for claim in claims]
    prints = [fingerprint(*each) for each in zip(claims, named, strict=True)]
    waiting = []
    for index, claim in enumerate(claims):
        if prints[index] in kept:
            yield index, kept[prints[index]]
        else:
            waiting.append((index, claim, named[index]))
    for index, outcome in _decided(waiting, jobs):
        if keep is not None and outcome.finding is not None:
            _append(keep, prints[index], outcome)
        yield index, outcome


def concluded(claims: Sequence[Claim], outcomes: Mapping[int, Outcome]) -> dict[int, Outcome]:
    """Return the outcomes in the order of the claims, those by argument as ARGUED."""
    found = {index: o.finding for index, o in sorted(outcomes.items()) if o.finding is not None}
    findings = conclude([claims[index] for index in found], list(found.values()))
    final = dict(zip(found, findings, strict=True))
    return {index: _with(outcome, final.get(index)) for index, outcome in sorted(outcomes.items())}


def _with(outcome: Outcome, finding: Finding | None) -> Outcome:
    """Return an outcome with what became of its finding, and a certificate that says the same."""
    data = outcome.certificate
    if data is not None and finding is not None and finding.verdict is Verdict.ARGUED:
        data = certificate.argued(data)
    return replace(outcome, finding=finding, certificate=data)


def fingerprint(claim: Claim, lemmas: Sequence[Claim] = ()) -> str:
    """Return a digest of the claim, of what its proof names, and of the version that decides."""
    data = [version("dpassay"), certificate.SCHEMA_VERSION, *map(plain, [claim, *lemmas])]
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def _decided(
    claims: Sequence[tuple[int, Claim, Sequence[Claim]]], jobs: int
) -> Iterator[tuple[int, Outcome]]:
    if jobs <= 1 or len(claims) <= _FEW:
        for index, claim, lemmas in claims:
            yield index, decide(claim, lemmas)
        return
    executor = ProcessPoolExecutor(
        min(jobs, len(claims)),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_leave_interrupts_to_the_parent,
    )
    try:
        futures: dict[Future[Outcome], int] = {
            executor.submit(decide, claim, lemmas): index for index, claim, lemmas in claims
        }
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        executor.shutdown()


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _append(path: Path, key: str, outcome: Outcome) -> None:
    finding = None if outcome.finding is None else outcome.finding.to_json()
    line = {"fingerprint": key, "finding": finding, "certificate": outcome.certificate}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _read(path: Path) -> dict[str, Outcome]:
    """Read kept outcomes; a last line that was cut off is dropped from the file."""
    if not path.exists():
        return {}
    try:
        lines = path.read_text("utf-8").splitlines(keepends=True)
    except UnicodeDecodeError:
        raise _not_ours(path, 1) from None
    found: dict[str, Outcome] = {}
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
            finding = msgspec.convert(entry["finding"], Finding)
            found[entry["fingerprint"]] = Outcome(finding, entry["certificate"])
        except (ValueError, TypeError, KeyError, msgspec.ValidationError):
            cut_off = number == len(lines) and number > 1 and not line.endswith("\n")
            if not cut_off:
                raise _not_ours(path, number) from None
            path.write_text("".join(lines[:-1]), "utf-8")
    return found


def _not_ours(path: Path, line: int) -> InvalidInputError:
    return InvalidInputError(
        f"{path} is not a file of finished claims (line {line}). Give --resume a new file, or one "
        "that an earlier run has written."
    )

"""Decide many claims: in parallel, with finished ones kept for a run that is interrupted."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, final

import msgspec

from dpassay.accountant.errors import DpassayError, InvalidInputError, UndecidedError
from dpassay.verifier.claim import Claim
from dpassay.verifier.decide import decide as decided
from dpassay.verifier.processes import workers
from dpassay.verifier.proof import conclude, reachable
from dpassay.verifier.verdict import Finding, Verdict

_FEW = 4
"""So few claims are decided before other processes would have started."""
_ROUNDS = 32
"""How often a process is given work: often enough that slow claims do not wait for one."""
_MOST_AT_ONCE = 64
"""Claims that a process is given at once: handing one over takes as long as a simple verdict."""
_Task: TypeAlias = tuple[int, Claim, Sequence[Claim]]
"""A claim's place, the claim, and what its proof names."""


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


def decide(claim: Claim, lemmas: Sequence[Claim] = (), *, certified: bool = True) -> Outcome:
    """Decide one claim; an error is an outcome too, so that the others go on."""
    try:
        if not certified:
            return Outcome(decided(claim, lemmas).finding)
        from dpassay.verifier import prover

        return Outcome(*prover.decided(claim, lemmas))
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
    certified: bool = True,
) -> Iterator[tuple[int, Outcome]]:
    """Decide claims and yield (index, outcome) in the order in which they are finished.

    `lemmas` are further claims that a proof may name. The `jobs` processes are stopped when the
    iteration is left, for whatever reason. `certified` outcomes carry certificates, which take
    most of their memory. Outcomes that the file `keep` has (JSON lines) are taken from it; others
    are added as soon as they are known.

    Raises InvalidInputError if `keep` exists and is not such a file.
    """
    kept = _read(keep) if keep is not None else {}
    by_id = {claim.id: claim for claim in (*lemmas, *claims)}
    named = [reachable(claim, by_id) for claim in claims]
    prints = [fingerprint(*each) for each in zip(claims, named, strict=True)] if keep else []
    waiting = []
    for index, claim in enumerate(claims):
        if keep is not None and prints[index] in kept:
            yield index, kept[prints[index]]
        else:
            waiting.append((index, claim, named[index]))
    for index, outcome in _decided(waiting, jobs, certified or keep is not None):
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
        from dpassay.verifier import prover

        data = prover.argued(data)
    return replace(outcome, finding=finding, certificate=data)


def fingerprint(claim: Claim, lemmas: Sequence[Claim] = ()) -> str:
    """Return a digest of the claim, of what its proof names, and of the version that decides."""
    from dpassay.verifier.kernel import VERSION

    data = [_version(), VERSION, *(each.plain() for each in (claim, *lemmas))]
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


@functools.cache
def _version() -> str:
    from importlib.metadata import version  # slow to import, and only resumed runs ask for it

    return version("dpassay")


def _decided(claims: Sequence[_Task], jobs: int, certified: bool) -> Iterator[tuple[int, Outcome]]:
    if jobs <= 1 or len(claims) <= _FEW:
        for index, claim, lemmas in claims:
            yield index, decide(claim, lemmas, certified=certified)
        return
    size = min(_MOST_AT_ONCE, max(1, len(claims) // (_ROUNDS * jobs)))
    parts = [claims[start : start + size] for start in range(0, len(claims), size)]
    advice = "Run the command again with --jobs 1; with --resume FILE what is finished is kept."
    with workers(min(jobs, len(claims)), "decided claims", advice) as executor:
        waiting = {executor.submit(_decide_part, part, certified) for part in parts}
        while waiting:  # what is finished is let go of, lest everything is kept twice
            finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                yield from future.result()


def _decide_part(claims: Sequence[_Task], certified: bool) -> list[tuple[int, Outcome]]:
    """Decide some claims, in a process of their own."""
    return [(index, decide(claim, rest, certified=certified)) for index, claim, rest in claims]


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

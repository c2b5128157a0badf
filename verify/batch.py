"""Decide many claims, in parallel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

from dpassay.accountant.errors import DpassayError, UndecidedError
from dpassay.verifier.claims import Claim
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
    claims: Sequence[Claim], *, lemmas: Sequence[Claim] = (), jobs: int = 1, certified: bool = True
) -> Iterator[tuple[int, Outcome]]:
    """Decide claims and yield (index, outcome) in the order in which they are finished.

    `lemmas` are further claims that a proof may name. The `jobs` processes are stopped when the
    iteration is left, for whatever reason. `certified` outcomes carry certificates, which take
    most of their memory.
    """
    by_id = {claim.id: claim for claim in (*lemmas, *claims)}
    tasks = [(index, claim, reachable(claim, by_id)) for index, claim in enumerate(claims)]
    yield from _decided(tasks, jobs, certified)


def concluded(claims: Sequence[Claim], outcomes: Mapping[int, Outcome]) -> dict[int, Outcome]:
    """Return the outcomes in the order of the claims, those by argument as ARGUED."""
    found = {index: o.finding for index, o in sorted(outcomes.items()) if o.finding is not None}
    findings = conclude([claims[index] for index in found], list(found.values()))
    final = dict(zip(found, findings, strict=True))
    return {
        index: _consistent(outcome, final.get(index)) for index, outcome in sorted(outcomes.items())
    }


def _consistent(outcome: Outcome, finding: Finding | None) -> Outcome:
    """Return an outcome with what became of its finding, and a certificate that says the same."""
    data = outcome.certificate
    if data is not None and finding is not None and finding.verdict is Verdict.ARGUED:
        from dpassay.verifier import prover

        data = prover.argued(data)
    return replace(outcome, finding=finding, certificate=data)


def _decided(claims: Sequence[_Task], jobs: int, certified: bool) -> Iterator[tuple[int, Outcome]]:
    if jobs <= 1 or len(claims) <= _FEW:
        for index, claim, lemmas in claims:
            yield index, decide(claim, lemmas, certified=certified)
        return
    size = min(_MOST_AT_ONCE, max(1, len(claims) // (_ROUNDS * jobs)))
    parts = [claims[start : start + size] for start in range(0, len(claims), size)]
    advice = "Run the command again with --jobs 1."
    with workers(min(jobs, len(claims)), "decided claims", advice) as executor:
        waiting = {executor.submit(_decide_part, part, certified) for part in parts}
        while waiting:  # what is finished is let go of, lest everything is kept twice
            finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                yield from future.result()


def _decide_part(claims: Sequence[_Task], certified: bool) -> list[tuple[int, Outcome]]:
    """Decide some claims, in a process of their own."""
    return [(index, decide(claim, rest, certified=certified)) for index, claim, rest in claims]

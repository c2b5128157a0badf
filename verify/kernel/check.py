"""Check certificates: which module proves which kind, three outcomes, and what it all rests on.

VALID        the theorem was proved, from its own text alone; the witness only gave hints
CONDITIONAL  nothing is wrong; what the theorem rests on besides is listed
INVALID      a field is wrong, and is named

`check` decides one certificate within a budget. `check_file` does so in a process of its own, which
the system ends at a limit of time or memory: whatever a stranger wrote, it takes no more than that.
"""

from __future__ import annotations

import json
import os
import signal
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from select import select
from typing import Any

from . import schema
from .numbers import Budget, NotProved, Proof, Wrong
from .theorem import Theorem, quoted, safe, said

Data = Mapping[str, Any]
SECONDS = 60
"""Of processor time for one certificate."""
BYTES = 10**9
"""Of memory for one certificate, besides what the program itself takes."""
_PATIENCE = 10
"""How much longer a check may take by the clock, on a machine that is busy."""

PROVERS = {
    "releases": "approximate-dp pure-dp gaussian-dp renyi-dp zcdp profile tradeoff",
    "statements": "relation printed-number monotone limit minimiser optimality",
    "programs": "count-noise integer-noise gaussian-shape",
    "statistics": "audit sequential-audit one-run-audit",
}
"""Module → the kinds of theorems that its `prove` proves."""
_PROVED = {
    "releases": ("a mechanism's guarantee", "nothing, or the lattice of a composition"),
    "statements": ("formulas at points and over ranges", "points, or boxes with their methods"),
    "programs": ("least noise", "a law and the multipliers that no law can beat"),
    "statistics": ("what runs say against a claim", "the counts, bets or scores"),
}
"""What each module proves, and its witnesses."""


class Outcome(StrEnum):
    """What a check ends with, the worst last."""

    VALID = "VALID"
    CONDITIONAL = "CONDITIONAL"
    INVALID = "INVALID"

    @property
    def exit_code(self) -> int:
        """0, 3 or 1."""
        return {"VALID": 0, "CONDITIONAL": 3, "INVALID": 1}[self.value]

    @staticmethod
    def worst(outcomes: Iterable[Outcome]) -> Outcome:
        """Return the worst outcome."""
        return max(outcomes, key=[*Outcome].index, default=Outcome.INVALID)


@dataclass(frozen=True)
class Checked:
    """What was found about one certificate."""

    theorem: Theorem | None = None
    """What was proved, or would be if the assumptions are true; None where something is wrong."""
    assumptions: tuple[str, ...] = ()
    problems: tuple[tuple[str, str], ...] = ()
    """The field that is wrong, as a path such as `witness.flows[3]`, and what is wrong with it."""
    lemmas: tuple[str, ...] = ()
    """The rows of the table of lemmas that the theorem rests on."""
    numbers: Mapping[str, str] = field(default_factory=dict)
    """What was computed on the way."""
    name: str = ""
    """What its author calls it: foreign text."""
    seconds: float = 0.0

    @property
    def outcome(self) -> Outcome:
        """The outcome."""
        if self.problems:
            return Outcome.INVALID
        return Outcome.CONDITIONAL if self.assumptions else Outcome.VALID

    @property
    def no_certificate(self) -> str:
        """Why a file holds no certificate at all; empty where it does."""
        return next((why for path, why in self.problems if path == "file"), "")

    def __bool__(self) -> bool:
        raise TypeError("compare .outcome: VALID, CONDITIONAL and INVALID are different")

    def __str__(self) -> str:
        """Return the outcome, and what it is about, in as many lines as there are assumptions."""
        if self.problems:
            wrong = (f"{safe(path)}: {safe(why, 2500)}" for path, why in self.problems)
            return "\n  ".join([str(self.outcome), *wrong])
        if not self.assumptions:
            return f"{self.outcome}  {self.theorem}"
        given = (f"rests on: {safe(text, 2500)}" for text in self.assumptions)
        return "\n  ".join([str(self.outcome), *given, f"theorem:  {self.theorem}"])

    __repr__ = __str__

    def to_json(self) -> dict[str, Any]:
        """Return plain data; no text in it can leave its place on a terminal or page."""
        return {
            "id": safe(self.name),
            "outcome": str(self.outcome),
            "theorem": None if self.theorem is None else asdict(self.theorem),
            "assumptions": [safe(text, 2500) for text in self.assumptions],
            "problems": [{"field": safe(f), "message": safe(m, 2500)} for f, m in self.problems],
            "lemmas": list(self.lemmas),
            "numbers": {key: safe(value) for key, value in self.numbers.items()},
            "seconds": round(self.seconds, 3),
        }


def check(certificate: Any, budget: Budget | None = None) -> Checked:
    """Check one certificate, as `json.loads` or `schema.read` gives it."""
    started, name = time.perf_counter(), _name(certificate)

    def found(**fields: Any) -> Checked:
        return Checked(**fields, name=name, seconds=time.perf_counter() - started)

    try:
        data = schema.require(certificate)
        theorem, witness = data["theorem"], data["witness"]
        _case(theorem, witness)
        _known(data["lemmas"])
        conditions, to_prove = _argued(theorem)
        try:
            proof = prove(to_prove, witness, budget or Budget())
        except NotProved as error:
            proof = Proof(lemmas=set(data["lemmas"]))
            conditions.append(f"the theorem itself, which was not proved here: {error}")
        else:
            _same_lemmas(data["lemmas"], proof.lemmas)
        return found(
            theorem=said(theorem, witness, proof),
            assumptions=tuple(dict.fromkeys([*conditions, *proof.conditions])),
            lemmas=tuple(sorted(proof.lemmas)),
            numbers=dict(proof.numbers),
        )
    except Wrong as error:
        return found(problems=((error.field, error.reason),))
    except ValueError as error:  # of a text that no module could read
        return found(problems=(("theorem", str(error)),))
    except RecursionError:
        return found(problems=(("theorem", "has formulas that are nested too deeply"),))


def prove(theorem: Data, witness: Data, budget: Budget) -> Proof:
    """Prove a theorem of the schema with the module of its kind."""
    module = next(name for name, kinds in PROVERS.items() if theorem["kind"] in kinds.split())
    found: Proof = import_module(f".{module}", __package__).prove(theorem, witness, budget)
    return found


def _name(certificate: Any) -> str:
    theorem = certificate.get("theorem") if isinstance(certificate, Mapping) else None
    known = theorem if isinstance(theorem, Mapping) else {}
    return str(known.get("id") or known.get("kind") or "")[:1000]


def _argued(theorem: Data) -> tuple[list[str], Data]:
    """Return what an ARGUED theorem rests on, and what is left to prove: its listed cases."""
    if theorem["verdict"] != "ARGUED":
        return [], theorem
    if not theorem["argument"].strip():
        raise Wrong("theorem.argument", "is missing")
    conditions = [f"the argument of its author: {quoted(theorem['argument'], 2000)}"]
    conditions += [f"the claim {quoted(claim)}" for claim in theorem["lemmas"]]
    return conditions, {**theorem, "verdict": "SUPPORTED"}


def _case(theorem: Data, witness: Data) -> None:
    """Require the case that a refutation shows to be about the variables of the theorem."""
    case = witness.get("case", {})
    names = {*theorem.get("where", ()), *theorem.get("for_all", ()), theorem.get("variable")}
    if not isinstance(case, dict) or not {*case} <= names | {"epsilon", "alpha", "order"}:
        raise Wrong("witness.case", "expected values of the variables of the theorem")


def _known(rows: list[str]) -> None:
    """Require rows of the table of lemmas."""
    from .lemmas import LEMMAS

    if unknown := [row for row in rows if row not in LEMMAS]:
        raise Wrong("lemmas", f"{unknown[0]} is no row of the table")


def _same_lemmas(stated: list[str], used: set[str]) -> None:
    """Require the rows that a certificate names to be those that its proof used."""
    if set(stated) != set(used):
        raise Wrong("lemmas", f"expected {json.dumps(sorted(used))}")


# --- a process of its own -----------------------------------------------------------------------
def check_file(content: bytes, *, seconds: int = SECONDS, memory: int = BYTES) -> Iterator[Checked]:
    """Check every certificate of a file, each within the limits, and yield what is found.

    Where there is no `os.fork`, only the budget of `check` limits the time.
    """
    index, count = 0, 1
    while index < count:
        for answer in _answers(content, index, seconds, memory):
            if isinstance(answer, int):
                count = answer
            else:
                yield _from_json(answer)
                index += 1
        if index < count:
            limit = f"it takes more than {seconds} s of processor time or {memory // 10**6} MB"
            yield Checked(assumptions=(f"the theorem itself, which was not checked: {limit}",))
            index += 1


def _answers(content: bytes, start: int, seconds: int, memory: int) -> Iterator[Any]:
    """Yield the number of certificates, and what is found about each from `start` on."""
    if not hasattr(os, "fork"):
        found: list[Any] = []
        _serve(content, start, seconds, found.append)
        yield from found
        return
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # threads of the caller do not matter to the child
        child = os.fork()
    if not child:
        with suppress(BaseException), os.fdopen(writing, "wb", 0) as pipe:
            _limit_memory(memory)
            _serve(
                content, start, seconds, lambda data: pipe.write(json.dumps(data).encode() + b"\n")
            )
        os._exit(0)
    os.close(writing)
    try:
        rest = b""
        while select([reading], [], [], (seconds + 5) * _PATIENCE)[0]:
            more = os.read(reading, 1 << 16)
            if not more:
                return
            *lines, rest = (rest + more).split(b"\n")
            yield from map(json.loads, lines)
    finally:
        os.close(reading)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _serve(content: bytes, start: int, seconds: int, answer: Callable[[Any], object]) -> None:
    """Answer for the certificates of a file."""
    _limit_time(seconds)
    try:
        certificates = schema.read(content)
    except Wrong as error:
        answer(_to_json(Checked(problems=((error.field, error.reason),))))
        return
    answer(len(certificates))
    for certificate in certificates[start:]:
        _limit_time(seconds)
        try:
            found = check(certificate, Budget(seconds=0.8 * seconds))
        except MemoryError:
            return
        except Exception as error:  # noqa: BLE001  (a stranger's data may find any mistake)
            why = f"the check stopped with {type(error).__name__}: {error}. Please report it"
            found = Checked(assumptions=(f"the theorem itself: {why}",), name=_name(certificate))
        answer(_to_json(found))


def _to_json(found: Checked) -> dict[str, Any]:
    return asdict(found)


def _from_json(data: Data) -> Checked:
    theorem = None if data["theorem"] is None else Theorem(**data["theorem"])
    tuples = {key: tuple(data[key]) for key in ("assumptions", "lemmas")}
    problems = tuple((path, why) for path, why in data["problems"])
    return Checked(**{**data, "theorem": theorem, **tuples, "problems": problems})


def _limit_time(seconds: int) -> None:
    """Let the system end this process after so much more processor time."""
    with suppress(ImportError):
        import resource

        until = int(time.process_time()) + 1 + seconds
        resource.setrlimit(resource.RLIMIT_CPU, (until, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _limit_memory(memory: int) -> None:
    """Refuse this process more memory than it has now and so much more."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with open("/proc/self/statm", encoding="ascii") as file:
            now = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (now + memory, now + memory))


# --- what is trusted ----------------------------------------------------------------------------
def trust(rows: Iterable[str] | None = None) -> str:
    """Say what a VALID rests on: these files and lines, and the rows of the table of lemmas.

    `rows` are those that a certificate rests on; all of them by default.
    """
    from .lemmas import LEMMAS

    files = sorted(
        (path.name, len(path.read_text("utf-8").splitlines()))
        for path in Path(__file__).parent.glob("*.py")
    )
    lines = ["A VALID rests on python-flint (Arb, FLINT), Python, and the files", ""]
    lines += [f"  {name:<16} {count:>5} lines" for name, count in files]
    lines += [f"  {'in all':<16} {sum(count for _, count in files):>5} lines", ""]
    for module, (what, witness) in _PROVED.items():
        kinds = ", ".join(PROVERS[module].split())
        lines += [f"{module}: {what} ({kinds})", f"  witness: {witness}"]
    lines += ["", "and on these lemmas, which are trusted as they are printed", ""]
    chosen = LEMMAS if rows is None else {name: LEMMAS[name] for name in sorted({*rows})}
    for name, row in chosen.items():
        lines += [f"  {name}: {row.statement}", f"    {row.source}"]
    return "\n".join(lines if chosen else [*lines[:-1], "  none"])

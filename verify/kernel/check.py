"""Check a certificate: dispatch to the module for its kind, and report the outcome.

VALID        the theorem was proved from its own text; the witness only supplied hints
CONDITIONAL  no error was found; the unproved assumptions are listed
INVALID      a field is wrong; the field is named

Check an untrusted certificate in a separate process with limits of time and memory, as `dpassay
check` and `dpassay-check` do. A process that is stopped has called nothing VALID.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any

from . import schema
from .numbers import Budget, NotProved, Proof, Wrong
from .theorem import Theorem, quoted, safe

Data = Mapping[str, Any]
SECONDS = 60
"""Limit of processor time for one certificate."""
BYTES = 10**9
"""Limit of memory for one certificate, in addition to the memory of the program itself."""
_LONGEST = 2500
"""Limit on the length of a message, in characters."""

PROVERS = {
    "releases": (
        "approximate-dp pure-dp gaussian-dp renyi-dp zcdp",
        "a mechanism's guarantee; witness: empty, or the lattice of a composition",
    ),
    "cases": (
        "relation",
        "a comparison of formulas; witness: a case, or the proof over a range",
    ),
    "statements": ("limit optimality", "formulas over ranges; witness: the proof"),
    "programs": (
        "count-noise integer-noise gaussian-shape",
        "least noise; witness: a feasible law, and dual multipliers",
    ),
    "statistics": (
        "audit one-run-audit",
        "a test of a claim on runs of a program; witness: counts or scores",
    ),
}
"""Module → the kinds of theorems that its `prove` handles, and their witness."""


class Outcome(StrEnum):
    """Outcome of a check, from best to worst."""

    VALID = "VALID"
    CONDITIONAL = "CONDITIONAL"
    INVALID = "INVALID"

    @property
    def exit_code(self) -> int:
        """The exit code of the command: 0, 3 or 1."""
        return {"VALID": 0, "CONDITIONAL": 3, "INVALID": 1}[self.value]

    @staticmethod
    def worst(outcomes: Iterable[Outcome]) -> Outcome:
        """Return the worst outcome; INVALID if there is none."""
        return max(outcomes, key=[*Outcome].index, default=Outcome.INVALID)


@dataclass(frozen=True)
class Checked:
    """The result of checking one certificate."""

    theorem: Theorem | None = None
    """The theorem, which holds if the assumptions do; None for an INVALID certificate."""
    assumptions: tuple[str, ...] = ()
    problems: tuple[tuple[str, str], ...] = ()
    """Errors: the path of a field, such as `witness.flows[3]`, and the reason."""
    lemmas: tuple[str, ...] = ()
    """Names of the rows of the table of lemmas that the proof used."""
    numbers: Mapping[str, str] = field(default_factory=dict)
    """Intermediate results, as text."""
    name: str = ""
    """The author's identifier of the claim: untrusted text."""
    seconds: float = 0.0
    files: tuple[str, ...] = ()
    """The modules of the kernel that were loaded when the check ended."""

    @property
    def outcome(self) -> Outcome:
        """INVALID with problems, else CONDITIONAL with assumptions, else VALID."""
        if self.problems:
            return Outcome.INVALID
        return Outcome.CONDITIONAL if self.assumptions else Outcome.VALID

    def __bool__(self) -> bool:
        raise TypeError("a check is neither true nor false: compare .outcome")

    def __str__(self) -> str:
        """Return the outcome with the theorem, its assumptions or the problems."""
        if self.problems:
            wrong = (f"{safe(path)}: {safe(why, _LONGEST)}" for path, why in self.problems)
            return "\n  ".join([str(self.outcome), *wrong])
        if not self.assumptions:
            return f"{self.outcome}  {self.theorem}"
        given = (f"rests on: {safe(text, _LONGEST)}" for text in self.assumptions)
        last = [f"theorem:  {self.theorem}"] if self.theorem else []
        return "\n  ".join([str(self.outcome), *given, *last])

    __repr__ = __str__

    def report(self, place: str = "") -> str:
        """Return the text that the commands print about the certificate."""
        lines = [f"  {safe(name)}: {safe(value)}" for name, value in self.numbers.items()]
        if self.lemmas:
            lines.append(f"  lemmas: {', '.join(self.lemmas)}")
        last = f"  certificate{place} called {quoted(self.name)}, {self.seconds:.2f} s"
        return "\n".join([str(self), *lines, last])

    def to_json(self) -> dict[str, Any]:
        """Return data for JSON, with all untrusted text escaped."""
        problems = [{"field": safe(f), "message": safe(m, _LONGEST)} for f, m in self.problems]
        return {
            "id": safe(self.name),
            "outcome": str(self.outcome),
            "theorem": None if self.theorem is None else asdict(self.theorem),
            "assumptions": [safe(text, _LONGEST) for text in self.assumptions],
            "problems": problems,
            "lemmas": list(self.lemmas),
            "numbers": {key: safe(value) for key, value in self.numbers.items()},
            "files": list(self.files),
            "seconds": round(self.seconds, 3),
        }


def check(certificate: Any, budget: Budget | None = None) -> Checked:
    """Check one certificate, as returned by `schema.read`; never raises for a bad certificate."""
    started = time.perf_counter()
    found = _checked(certificate, budget or Budget(seconds=0.8 * SECONDS))
    theorem = certificate.get("theorem") if isinstance(certificate, Mapping) else None
    known = theorem if isinstance(theorem, Mapping) else {}
    name = str(known.get("id") or known.get("kind") or "")[:1000]
    seconds = time.perf_counter() - started
    return Checked(**found, name=name, seconds=seconds, files=tuple(_loaded()))


def _loaded() -> list[str]:
    package = f"{__package__}."
    return sorted(name.removeprefix(package) for name in sys.modules if name.startswith(package))


def _checked(certificate: Any, budget: Budget) -> dict[str, Any]:
    try:
        data = schema.require(certificate)
        theorem, witness, rows = data["theorem"], data["witness"], data["lemmas"]
        conditions, to_prove = _argued(theorem)
        _require_case(theorem, witness)
        try:
            proof = prove(to_prove, witness, budget)
        except (NotProved, OverflowError, MemoryError) as error:
            rows, proof = [], Proof()
            conditions.append(
                f"the theorem itself, which was not proved here: {str(error) or 'memory'}"
            )
        if rows and {*rows} != proof.lemmas:
            raise Wrong("lemmas", f"expected {json.dumps(sorted(proof.lemmas))}")
        return {
            "theorem": in_words(theorem, witness, proof),
            "assumptions": tuple(dict.fromkeys([*conditions, *proof.conditions])),
            "lemmas": tuple(sorted(proof.lemmas)),
            "numbers": dict(proof.numbers),
        }
    except Wrong as error:
        return {"problems": ((error.field, error.reason),)}
    except RecursionError:
        return {"problems": (("theorem", "has formulas that are nested too deeply"),)}
    except (ArithmeticError, ValueError, LookupError, TypeError, AttributeError) as error:
        return {"problems": (("certificate", f"has a text or hint that cannot be read: {error}"),)}


def prove(theorem: Data, witness: Data, budget: Budget) -> Proof:
    """Prove a theorem that fits the schema, with the module for its kind."""
    found: Proof = _module(theorem).prove(theorem, witness, budget)
    return found


def in_words(theorem: Data, witness: Data, proof: Proof) -> Theorem:
    """Return the proved theorem in the kernel's words."""
    words = _module({"kind": "relation"} if "argument" in theorem else theorem)
    found: Theorem = words.in_words(theorem, witness, proof)
    return found


def _module(theorem: Data) -> Any:
    kind = theorem["kind"]
    name = next(name for name, (kinds, _) in PROVERS.items() if kind in kinds.split())
    return import_module(f".{name}", __package__)


def _argued(theorem: Data) -> tuple[list[str], Data]:
    """Return the assumptions of an ARGUED theorem, and the theorem to prove: its listed cases."""
    if theorem["verdict"] != "ARGUED":
        return [], theorem
    if not theorem["argument"].strip():
        raise Wrong("theorem.argument", "is missing")
    conditions = [f"the argument of its author: {quoted(theorem['argument'], 2000)}"]
    conditions += [f"the claim {quoted(claim)}" for claim in theorem["lemmas"]]
    return conditions, {**theorem, "verdict": "SUPPORTED"}


def _require_case(theorem: Data, witness: Data) -> None:
    """Raise Wrong if the case of a refutation has variables that the theorem does not."""
    names = {*theorem.get("where", ()), *theorem.get("for_all", ()), theorem.get("variable")}
    if not {*witness.get("case", {})} <= names:
        raise Wrong("witness.case", "expected values of the variables of the theorem")


def trust(found: Sequence[Checked] = ()) -> str:
    """Return what a VALID rests on: the kernel's files with line counts, and the lemmas.

    With results of checks, only the files that were loaded for them and the lemmas they used.
    """
    from .lemmas import LEMMAS

    rows, loaded = ({x for one in found for x in getattr(one, k)} for k in ("lemmas", "files"))
    paths = sorted(Path(__file__).parent.glob("*.py"))
    paths = [path for path in paths if not found or path.stem in loaded]
    files = {path.name: len(path.read_text("utf-8").splitlines()) for path in paths}
    files["in all"] = sum(files.values())
    lines = ["A VALID rests on python-flint (Arb, FLINT), Python, and these files", ""]
    lines += [f"  {name:<16} {count:>5} lines" for name, count in files.items()]
    if not found:
        lines += ["", *(f"{name}: {kinds}\n  {what}" for name, (kinds, what) in PROVERS.items())]
    lines += ["", "and on these lemmas, which the kernel takes as given", ""]
    chosen = {name: LEMMAS[name] for name in sorted(rows if found else LEMMAS)}
    for name, row in chosen.items():
        lines += [f"  {name}: {row.statement}", f"    {row.source}"]
    return "\n".join(lines if chosen else [*lines[:-1], "  none"])

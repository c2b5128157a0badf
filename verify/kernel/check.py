"""Check a certificate: which module proves which kind, three outcomes, and what it all rests on.

VALID        the theorem was proved, from its own text alone; the witness only gave hints
CONDITIONAL  nothing is wrong; what the theorem rests on besides is listed
INVALID      a field is wrong, and is named

A stranger's certificate belongs in a process of its own with limits of time and memory: `dpassay
check` and `dpassay-check` see to that. A process that dies has called nothing VALID.
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
"""Of processor time for one certificate."""
BYTES = 10**9
"""Of memory for one certificate, besides what the program itself takes."""
_LONGEST = 2500
"""Characters of one message."""

PROVERS = {
    "releases": (
        "approximate-dp pure-dp gaussian-dp renyi-dp zcdp",
        "a mechanism's guarantee; witness: nothing, or the lattice of a composition",
    ),
    "cases": (
        "relation",
        "a comparison of formulas; witness: a case, or for ranges boxes with their methods",
    ),
    "statements": ("limit optimality", "formulas over ranges; witness: boxes with their methods"),
    "programs": (
        "count-noise integer-noise gaussian-shape",
        "least noise; witness: a law, and multipliers that no law can beat",
    ),
    "statistics": (
        "audit one-run-audit",
        "what runs say against a claim; witness: counts or scores",
    ),
}
"""Module → the kinds of theorems that its `prove` proves, and from which witness."""


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
    files: tuple[str, ...] = ()
    """The modules of the kernel that the process had loaded: no other one can make it VALID."""

    @property
    def outcome(self) -> Outcome:
        """The outcome."""
        if self.problems:
            return Outcome.INVALID
        return Outcome.CONDITIONAL if self.assumptions else Outcome.VALID

    def __bool__(self) -> bool:
        raise TypeError("a check is neither true nor false: compare .outcome")

    def __str__(self) -> str:
        """Return the outcome, and what it is about, in as many lines as there are assumptions."""
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
        """Return what is printed about the certificate, in several lines."""
        lines = [f"  {safe(name)}: {safe(value)}" for name, value in self.numbers.items()]
        if self.lemmas:
            lines.append(f"  lemmas: {', '.join(self.lemmas)}")
        last = f"  certificate{place} called {quoted(self.name)}, {self.seconds:.2f} s"
        return "\n".join([str(self), *lines, last])

    def to_json(self) -> dict[str, Any]:
        """Return plain data; no text in it can leave its place on a terminal or page."""
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
    """Check one certificate, as `schema.read` gives it."""
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
            "theorem": said(theorem, witness, proof),
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
    """Prove a theorem of the schema with the module of its kind."""
    found: Proof = _module(theorem).prove(theorem, witness, budget)
    return found


def said(theorem: Data, witness: Data, proof: Proof) -> Theorem:
    """Say what was proved, in the kernel's words."""
    words = _module({"kind": "relation"} if "argument" in theorem else theorem)
    found: Theorem = words.said(theorem, witness, proof)
    return found


def _module(theorem: Data) -> Any:
    kind = theorem["kind"]
    name = next(name for name, (kinds, _) in PROVERS.items() if kind in kinds.split())
    return import_module(f".{name}", __package__)


def _argued(theorem: Data) -> tuple[list[str], Data]:
    """Return what an ARGUED theorem rests on, and what is left to prove: its listed cases."""
    if theorem["verdict"] != "ARGUED":
        return [], theorem
    if not theorem["argument"].strip():
        raise Wrong("theorem.argument", "is missing")
    conditions = [f"the argument of its author: {quoted(theorem['argument'], 2000)}"]
    conditions += [f"the claim {quoted(claim)}" for claim in theorem["lemmas"]]
    return conditions, {**theorem, "verdict": "SUPPORTED"}


def _require_case(theorem: Data, witness: Data) -> None:
    """Require the case that a refutation shows to be about the variables of the theorem."""
    names = {*theorem.get("where", ()), *theorem.get("for_all", ()), theorem.get("variable")}
    if not {*witness.get("case", {})} <= names:
        raise Wrong("witness.case", "expected values of the variables of the theorem")


def trust(found: Sequence[Checked] = ()) -> str:
    """Say what a VALID rests on: files with their lines, and the rows of the table of lemmas.

    Of certificates these are what was loaded to check them, and their rows; else all.
    """
    from .lemmas import LEMMAS

    rows, loaded = ({x for one in found for x in getattr(one, k)} for k in ("lemmas", "files"))
    paths = sorted(Path(__file__).parent.glob("*.py"))
    paths = [path for path in paths if not found or path.stem in loaded]
    files = {path.name: len(path.read_text("utf-8").splitlines()) for path in paths}
    files["in all"] = sum(files.values())
    lines = ["A VALID rests on python-flint (Arb, FLINT), Python, and the files", ""]
    lines += [f"  {name:<16} {count:>5} lines" for name, count in files.items()]
    if not found:
        lines += ["", *(f"{name}: {kinds}\n  {what}" for name, (kinds, what) in PROVERS.items())]
    lines += ["", "and on these lemmas, which are trusted as they are printed", ""]
    chosen = {name: LEMMAS[name] for name in sorted(rows if found else LEMMAS)}
    for name, row in chosen.items():
        lines += [f"  {name}: {row.statement}", f"    {row.source}"]
    return "\n".join(lines if chosen else [*lines[:-1], "  none"])

"""The theorem in the kernel's own words, made of checked fields alone.

Whatever comes from the certificate is foreign. A formula stands as it is, on one line; any other
text stands between quotation marks, which do not occur inside. A character that does not print as
itself (control characters, line ends, marks of direction, combining marks) stands as an escape. So
no text can end its own line, or pass for a word of the kernel.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .numbers import Proof, ball, rational

Data = Mapping[str, Any]
LONGEST, LONGEST_FORMULA = 200, 1000
"""Characters of somebody's words, and of a formula, that are shown."""


@dataclass(frozen=True)
class Theorem:
    """What was proved."""

    mechanism: str
    """The notation; empty for what is about no mechanism."""
    adjacency: str
    claimed: str
    verdict: str

    def __str__(self) -> str:
        """Say it in one line."""
        subject = f"{self.mechanism} is " if self.mechanism else ""
        relation = f" under {self.adjacency}" if self.adjacency else ""
        return f"{self.verdict}: {subject}{self.claimed}{relation}"


# --- foreign texts ------------------------------------------------------------------------------
def safe(text: object, longest: int = LONGEST) -> str:
    r"""Return a text on one line: what does not print as itself escaped, what is too long cut off.

    >>> safe("one\nVALID"), safe("\x1b[2J")
    ('one\\nVALID', '\\x1b[2J')
    """
    whole = str(text)
    shown = "".join(map(_character, whole[:longest]))
    return shown if len(whole) <= longest else f"{shown}… ({len(whole)} characters)"


def _character(character: str) -> str:
    plain = character.isprintable() and unicodedata.combining(character) == 0
    if character == " " or (plain and unicodedata.category(character) != "Cf"):
        return character
    return character.encode("unicode_escape").decode("ascii")


def quoted(text: object, longest: int = LONGEST) -> str:
    """Return somebody's words between quotation marks, which do not occur inside."""
    return '"' + safe(text, longest).replace('"', "'") + '"'


_OF_FORMULAS = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.Call, ast.keyword, ast.Constant, ast.Name),
    *(ast.List, ast.Compare, ast.operator, ast.USub, ast.UAdd, ast.expr_context, ast.cmpop),
)


def formula(text: object) -> str:
    """Return a formula on one line; quoted where it is none, or only a word.

    A name of three or more capital letters is no part of one: it may be a word of the kernel.
    """
    line = " ".join(str(text).split())
    try:
        nodes = [*ast.walk(ast.parse(line, mode="eval"))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return quoted(line, LONGEST_FORMULA)
    names = [node.id for node in nodes if isinstance(node, ast.Name)]
    shouted = any(name.isupper() and len(name) > 2 for name in names)
    plain = line.isascii() and not shouted and all(isinstance(n, _OF_FORMULAS) for n in nodes)
    return safe(line, LONGEST_FORMULA) if plain else quoted(line, LONGEST_FORMULA)


def bracketed(text: str) -> str:
    """Return a formula as it stands before a hyphen: in brackets unless it is one word."""
    line = formula(text)
    return line if re.fullmatch(r"[\w.]+", line) else f"({line})"


# --- what was proved ----------------------------------------------------------------------------
def said(theorem: Data, proof: Proof) -> Theorem:
    """Say what was proved."""
    if (kind := theorem["kind"]) not in _OPTIMA:
        return _audit(theorem, proof)
    return Theorem("", "", f"the least {_OPTIMA[kind](theorem)} {_optimum(theorem)}", "OPTIMAL")


def _power(theorem: Data) -> str:
    epsilon, ratio = theorem["epsilon"], theorem["ratio"]
    return f"epsilon = {formula(epsilon)}" if ratio is None else f"E = {formula(ratio)}"


def _count_noise(theorem: Data) -> str:
    support, last = theorem["support"], theorem["max_count"]
    counts = f"n >= {support}" if last is None else f"n from {theorem['min_count']} to {last}"
    events = "all events" if theorem["objective"] == "true-delta" else "single outcomes"
    return (
        f"delta at {_power(theorem)}, of {events}, of noise with mean 0 and P(0) = "
        f"{formula(theorem['eta'])} on -min(n, {support})..{support} for all counts {counts}"
    )


def _integer_noise(theorem: Data) -> str:
    names = {"absolute": "mean absolute error", "error": "P(Z != 0)", "cost": "mean cost"}
    what = names.get(theorem["objective"]) or str(theorem["objective"])
    if theorem["costs"]:
        what += f" [{', '.join(map(formula, theorem['costs']))}] of |Z| = 1, 2, ..."
    limit = "" if theorem["delta"] is None else f", delta = {formula(theorem['delta'])}"
    law = "law that falls with |z|" if theorem["monotone"] else "law"
    if theorem["error_free"] is not None:
        law += f" with P(Z = 0) = {formula(theorem['error_free'])}"
    return (
        f"{what} of a {law} on -{theorem['support']}..{theorem['support']} at "
        f"{_power(theorem)}{limit}, sensitivity {theorem['sensitivity']},"
    )


def _gaussian_shape(theorem: Data) -> str:
    which = "total variance" if theorem["objective"] == "total" else "worst variance"
    if {*theorem["weights"]} != {"1"}:
        which += f", weighted by [{', '.join(map(formula, theorem['weights']))}],"
    return f"{which} of Gaussian noise that is 1-GDP over {formula(theorem['space'])}"


_OPTIMA = {
    "count-noise": _count_noise,
    "integer-noise": _integer_noise,
    "gaussian-shape": _gaussian_shape,
}


def _optimum(theorem: Data) -> str:
    lower, upper = rational(theorem["lower"]), rational(theorem["upper"])
    text = theorem["upper"]
    shown = formula(text) if len(text) <= 60 else f"about {ball(upper).str(12, radius=False)}"
    if lower == upper:
        return f"is {shown}, exactly optimal"
    power = next((k for k in range(6, 400) if upper - lower > upper / 10 ** (k + 1)), 400)
    return f"is at most {shown}, optimal within a relative gap of 1e-{power}"


def _audit(theorem: Data, proof: Proof) -> Theorem:
    parts, delta = [], theorem.get("delta")
    if at := theorem.get("tested"):
        delta = at["delta"]
        parts.append(f"tested at ({formula(at['epsilon'])}, {formula(delta)})")
    name = "p_value" if "p_value" in theorem else "evidence"
    word = {"p_value": "p-value at most", "evidence": "evidence at least"}[name]
    parts += [f"{word} {formula(theorem[name])}", proof.numbers.get("counts", "its counts")]
    text = f"{theorem['verdict']} at significance {formula(theorem['significance'])}"
    text += f" ({', '.join(parts)})"
    if (bound := theorem.get("epsilon_lower_bound", "0")) != "0":
        text += f"; with that confidence epsilon({formula(delta)}) >= {formula(bound)}"
    target = quoted(theorem["target"]) if "target" in theorem else "one run with canaries"
    return Theorem(target, "", guarantee(theorem["claim"]), text)


def guarantee(claim: Data) -> str:
    """Say what an audited claim claims, of the fields that are tested."""
    kind, parameter = claim["kind"], claim["parameter"]
    if kind == "epsilon-delta":
        points = (f"({formula(p['epsilon'])}, {formula(p['delta'])})" for p in claim["points"])
        return f"{', '.join(points)}-DP"
    if kind == "gaussian":
        return f"{bracketed(parameter)}-GDP"
    if kind == "mechanism":
        return f"as private as {formula(parameter)}"
    return f"of the profile that is called {quoted(claim['description'])}"

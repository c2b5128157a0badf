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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .numbers import Proof

Data = Mapping[str, Any]
LONGEST, LONGEST_FORMULA = 200, 1000
"""Characters of somebody's words, and of a formula, that are shown."""
MOST_VALUES = 12
"""Values of a parameter that are listed."""


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
    return shown if len(whole) <= longest else f"{shown}... ({len(whole)} characters)"


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
    *(
        ast.List,
        ast.Compare,
        ast.IfExp,
        ast.operator,
        ast.USub,
        ast.UAdd,
        ast.expr_context,
        ast.cmpop,
    ),
)


def formula(text: object) -> str:
    """Return a formula on one line; quoted where it, or a text inside of it, is none."""
    line = " ".join(str(text).split())
    return (safe if _plain(line) else quoted)(line, LONGEST_FORMULA)


def _plain(line: str) -> bool:
    """Return whether a line is a formula.

    A name of three or more capital letters is no part of one: it may be a word of the kernel.
    """
    try:
        nodes = [*ast.walk(ast.parse(line, mode="eval"))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    names = [node.id for node in nodes if isinstance(node, ast.Name)]
    texts = [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    shouted = any(name.isupper() and len(name) > 2 for name in names)
    plain = line.isascii() and not shouted and all(isinstance(n, _OF_FORMULAS) for n in nodes)
    return plain and all(text == "" or _plain(text.strip()) for text in texts)


def bracketed(text: str) -> str:
    """Return a formula as it stands before a hyphen: in brackets unless it is one word."""
    line = formula(text)
    return line if re.fullmatch(r"[\w.]+", line) else f"({line})"


# --- claims -------------------------------------------------------------------------------------
_CLAIMED = {
    "approximate-dp": "({epsilon}, {delta})-DP",
    "pure-dp": "({epsilon}, 0)-DP",
    "gaussian-dp": "{mu}-GDP",
    "renyi-dp": "of Renyi divergence at most {epsilon} at order {order}",
    "zcdp": "{rho}-zCDP",
    "profile": "(epsilon, {bound})-DP for every epsilon in [{low}, {high}]",
    "tradeoff": "of trade-off function at least {bound} for every alpha in [{low}, {high}]",
    "relation": "{claim}",
    "printed-number": "{expression} rounds to {printed}",
    "monotone": "{expression} is {direction} in {variable}",
    "limit": "{expression} tends to {limit}",
    "minimiser": "{expression} is least at {variable} = {claimed}",
}
_SIGNS = {"low": ">=", "above": ">", "high": "<=", "below": "<"}


def said(theorem: Data, witness: Data, proof: Proof) -> Theorem:
    """Say what was proved."""
    kind = theorem["kind"]
    if theorem["verdict"] == "OPTIMAL":
        from .programs import least

        return Theorem("", "", least(theorem), "OPTIMAL")
    if kind.endswith("audit"):
        from .statistics import tested

        return tested(theorem, proof)
    mechanism = formula(theorem["mechanism"]) if "mechanism" in theorem else ""
    claimed = _assertion(theorem) + _scope(theorem)
    verdict = str(theorem["verdict"])
    if verdict == "REFUTED" and (case := witness.get("case")):
        verdict += " at " + ", ".join(f"{safe(k)} = {formula(v)}" for k, v in case.items())
    if verdict == "SUPPORTED":
        grids = {name: domain["grid"] for name, domain in theorem["for_all"].items()}
        points = {theorem["variable"]: theorem["at"]} if theorem.get("at") else {}
        places = "; ".join(_listed(name, values) for name, values in (points | grids).items())
        verdict += f" in the listed cases ({places}); nothing is proved beyond"
    return Theorem(mechanism, theorem["adjacency"] or "", claimed, verdict)


def _assertion(theorem: Data) -> str:
    if theorem["kind"] == "optimality":
        return _optimality(theorem)
    words = {name: formula(text) for name, text in theorem.items() if isinstance(text, str)}
    words |= {name: bracketed(theorem[name]) for name in ("mu", "rho") if name in theorem}
    text = _CLAIMED[theorem["kind"]].format_map(words)
    if theorem["kind"] not in ("monotone", "minimiser", "limit"):
        return text
    name, over = words["variable"], theorem["over"]
    if theorem["kind"] == "limit":
        end = (over or {}).get("high") or (over or {}).get("below") or "infinity"
        rate = f", off by at most {words['rate']}" if theorem["rate"] else ""
        rate += f" over {_domain(name, over)}" if rate and over else ""
        return f"{text} as {name} tends to {formula(end)}{rate}"
    if over is None:
        return f"{text} among {_listed(name, theorem['at'])}"
    return f"{text} over {_domain(name, over)}"


def _optimality(theorem: Data) -> str:
    """Say what no rival is below; the rivals are described by the fields of `among`."""
    below, slack = formula(theorem["value"]), formula(theorem["tolerance"])
    if slack != "0":
        below = f"({below})/(1 + {slack})"
    if (among := theorem["among"]) is None:
        rivals = " and ".join(formula(theorem[k]) for k in ("lower_bound", "competitor"))
        return f"nothing is below {below}: neither {rivals}"
    return f"no {_fields(among)} is below {below}"


def _fields(entry: Data) -> str:
    """Say a record: its type with the fields that are given."""
    given = [f"{name}={described(v)}" for name, v in entry.items() if name != "type" and v]
    return f"{entry['type']}({', '.join(given)})"


def described(value: Any) -> str:
    """Say a field of a record: a record, a list of formulas, or a formula."""
    if isinstance(value, dict):
        return _fields(value)
    return f"[{', '.join(map(formula, value))}]" if isinstance(value, list) else formula(value)


def _scope(theorem: Data) -> str:
    """Say what the claim ranges over."""
    parts = [f"for every {_domain(name, domain)}" for name, domain in theorem["for_all"].items()]
    parts += [f"in the cases {_listed(name, values)}" for name, values in theorem["where"].items()]
    parts += [f"if {formula(text)}" for text in theorem["assume"]]
    parts += [f"where {safe(name)} = {formula(text)}" for name, text in theorem["let"].items()]
    return "".join(f", {part}" for part in parts)


def _domain(name: str, domain: Data) -> str:
    texts = [f"{sign} {formula(domain[end])}" for end, sign in _SIGNS.items() if domain[end]]
    whole = " (integer)" if domain["integer"] else ""
    if not texts and not whole:
        return f"{safe(name)} in a domain that is given in words: {quoted(domain['statement'])}"
    return f"{safe(name)} {' and '.join(texts)}{whole}"


def _listed(name: str, values: Sequence[Any]) -> str:
    shown = [formula(value) for value in values[:MOST_VALUES]]
    if len(values) == 1:
        return f"{safe(name)} = {shown[0]}"
    more = f", ... ({len(values)} values)" if len(values) > MOST_VALUES else ""
    return f"{safe(name)} in {{{', '.join(shown)}{more}}}"

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
    *(ast.List, ast.Compare, ast.IfExp, ast.operator, ast.USub, ast.UAdd, ast.expr_context),
    ast.cmpop,
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


def described(value: Any) -> str:
    """Say a field: a record, its type with the fields that are given; a list; or a formula."""
    if isinstance(value, dict):
        given = [f"{name}={described(v)}" for name, v in value.items() if name != "type" and v]
        return f"{value['type']}({', '.join(given)})"
    return f"[{', '.join(map(formula, value))}]" if isinstance(value, list) else formula(value)

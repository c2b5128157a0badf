"""The theorem in the kernel's own words, built from checked fields only.

All text of a certificate is untrusted. A formula is printed as it is, on one line. Any other text
is printed in double quotes, with double quotes inside replaced. Control characters, line ends,
direction marks and combining marks are printed as escapes. So no text can break its line, or be
mistaken for the kernel's own words.
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
"""Limits on the printed length of other text and of a formula, in characters."""


@dataclass(frozen=True)
class Theorem:
    """A theorem, as text."""

    mechanism: str
    """Notation of the mechanism, or empty."""
    adjacency: str
    claimed: str
    verdict: str

    def __str__(self) -> str:
        """Return the theorem on one line."""
        subject = f"{self.mechanism} is " if self.mechanism else ""
        relation = f" under {self.adjacency}" if self.adjacency else ""
        return f"{self.verdict}: {subject}{self.claimed}{relation}"


# --- foreign texts ------------------------------------------------------------------------------
def safe(text: object, longest: int = LONGEST) -> str:
    r"""Return a text on one line, with special characters escaped and cut at `longest`.

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
    """Return untrusted text in double quotes, with double quotes inside replaced."""
    return '"' + safe(text, longest).replace('"', "'") + '"'


_OF_FORMULAS = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.Call, ast.keyword, ast.Constant, ast.Name),
    *(ast.List, ast.Compare, ast.IfExp, ast.operator, ast.USub, ast.UAdd, ast.expr_context),
    ast.cmpop,
)


def formula(text: object) -> str:
    """Return a formula on one line, quoted if it or a string inside it is no formula."""
    line = " ".join(str(text).split())
    return (safe if _plain(line) else quoted)(line, LONGEST_FORMULA)


def _plain(line: str) -> bool:
    """Return whether a line is a formula.

    Names of three or more capital letters are excluded: they may be verdicts or outcomes.
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
    """Return a formula to put before a hyphen: in brackets unless it is one word."""
    line = formula(text)
    return line if re.fullmatch(r"[\w.]+", line) else f"({line})"


def described(value: Any) -> str:
    """Return the text of a field: a record with its nonempty fields, a list or a formula."""
    if isinstance(value, dict):
        given = [f"{name}={described(v)}" for name, v in value.items() if name != "type" and v]
        return f"{value['type']}({', '.join(given)})"
    return f"[{', '.join(map(formula, value))}]" if isinstance(value, list) else formula(value)

"""Foreign texts, printed so that nobody can mistake them for the checker's own words."""

from __future__ import annotations

import unicodedata

_LONGEST = 200
_LONGEST_FORMULA = 1000


def safe(text: object, longest: int = _LONGEST) -> str:
    r"""Return a text on one line: what is not printable escaped, what is too long cut off.

    Control characters, line ends, marks of direction and lone surrogates are written as escapes.

    >>> safe("one\nVALID"), safe("\x1b[2J")
    ('one\\nVALID', '\\x1b[2J')
    """
    whole = str(text)
    shown = "".join(map(_character, whole[:longest]))
    return shown if len(whole) <= longest else f"{shown}… ({len(whole)} characters)"


def quoted(text: object, longest: int = _LONGEST) -> str:
    """Return somebody's words between quotation marks, which do not occur inside."""
    return '"' + safe(text, longest).replace('"', "'") + '"'


def formula(text: object) -> str:
    """Return a checked expression on one line."""
    return safe(" ".join(str(text).split()), _LONGEST_FORMULA)


def _character(character: str) -> str:
    if character == " " or (character.isprintable() and unicodedata.combining(character) == 0):
        return character
    return character.encode("unicode_escape").decode("ascii")

"""Docstrings are plain English with code in single backticks; Sphinx reads reStructuredText."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_CODE = re.compile(r"(^\s*(?:>>>|\.\.\.).*$|``?[^`]+``?)", re.M)
_MARKS = re.compile(r"(?<!\\)([*|]|_(?!\w))")


def plain(text: str) -> str:
    r"""Return a text with code as reStructuredText has it, and its marks taken as they are.

    >>> plain("|x| of `f(x)`") == r"\|x\| of ``f(x)``"
    True
    """
    parts = _CODE.split(text)
    return "".join(
        (f"``{part.strip('`')}``" if part.startswith("`") else part)
        if index % 2
        else _MARKS.sub(r"\\\1", part)
        for index, part in enumerate(parts)
    )


_ATTRIBUTES = {"attribute", "data", "property"}
_WHOLE: dict[str, list[str]] = {}
"""The docstrings of attributes by name: napoleon takes what stands before a colon for a type."""


def _read(_app: Sphinx, what: str, name: str, _it: Any, _options: Any, lines: list[str]) -> None:
    lines[:] = plain("\n".join(lines)).split("\n")
    if what in _ATTRIBUTES:
        _WHOLE[name] = list(lines)


def _mend(_app: Sphinx, what: str, name: str, _it: Any, _options: Any, lines: list[str]) -> None:
    if what in _ATTRIBUTES:
        lines[:] = _WHOLE[name]


def setup(app: Sphinx) -> dict[str, bool]:
    """Change docstrings before napoleon reads their sections, and put back what it tears."""
    app.connect("autodoc-process-docstring", _read, priority=100)
    app.connect("autodoc-process-docstring", _mend, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

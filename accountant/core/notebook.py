"""How objects are shown in notebooks: small HTML, made on demand."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from html import escape as _escape
from typing import Any

from dpassay.accountant.errors import NotApplicableError, printable

_CELL = "padding:.2em .7em;text-align:left;vertical-align:top"
_COLOURS = {
    "HOLDS": "#1b6e3c",
    "ARGUED": "#4b3f8f",
    "REFUTED": "#a32c00",
    "SLIP": "#8a3a7a",
    "SUPPORTED": "#1f5a94",
    "UNDECIDED": "#6a5200",
    "PENDING": "#555555",
}


def escape(text: object) -> str:
    """Return a text for HTML, without marks of direction and control characters."""
    return _escape(printable(text))


def summary(thing: object) -> str:
    """Return the first paragraph of the docstring of a class, on one line."""
    text = inspect.cleandoc(type(thing).__doc__ or "")
    return " ".join(text.split("\n\n")[0].split())


def describe_html(thing: object) -> str:
    """Return the notation and, below it, what the law is."""
    return f"<code>{escape(repr(thing))}</code><br><em>{escape(summary(thing))}</em>"


def describe_markdown(thing: object) -> str:
    """Return the same as Markdown."""
    return f"`{thing!r}`\n\n*{summary(thing)}*"


def badge(verdict: str) -> str:
    """Return a verdict as a coloured word; its text alone tells it."""
    colour = _COLOURS.get(verdict, "#333333")
    style = f"background:{colour};color:#fff;padding:.1em .5em;border-radius:.3em;font-weight:700"
    return f'<span style="{style}">{escape(verdict)}</span>'


def rows(entries: Sequence[tuple[str, str]]) -> str:
    """Return a table of names and values; the values are HTML already."""
    lines = "".join(
        f'<tr><th scope="row" style="{_CELL}">{escape(name)}</th>'
        f'<td style="{_CELL}">{value}</td></tr>'
        for name, value in entries
        if value
    )
    return f"<table>{lines}</table>"


def table(lines: Sequence[Sequence[str]], struck: Sequence[bool] = ()) -> str:
    """Return a table with a head line; rows may be struck out. All cells are plain text."""
    head = "".join(f'<th scope="col" style="{_CELL}">{escape(cell)}</th>' for cell in lines[0])
    body = []
    for index, line in enumerate(lines[1:]):
        style = _CELL
        if index < len(struck) and struck[index]:
            style += ";color:#666;text-decoration:line-through"
        cells = "".join(f'<td style="{style}">{escape(cell)}</td>' for cell in line)
        body.append(f"<tr>{cells}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def frame(records: Sequence[dict[str, Any]]) -> Any:
    """Return a pandas DataFrame of records."""
    try:
        import pandas
    except ImportError:
        raise NotApplicableError(
            "to_pandas() needs pandas: pip install pandas. Without it to_records() has the same "
            "rows as dictionaries."
        ) from None
    return pandas.DataFrame(records)

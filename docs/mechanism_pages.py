"""Write the pages of the mechanisms: law, worst pair, guarantees and a plot of one example each.

What a page says is the docstring of the class and what the accountant answers when the page is
made, so that it is never out of date. `docs/build.py` calls it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from dpassay.accountant import notation
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import AdjacencyError, DpassayError
from dpassay.accountant.mechanisms import DESCRIPTIONS
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import accuracy, guarantees, profile

WIDTH = Fraction(1, 10**12)
SHORT = 240
LEAST = Fraction(1, 10**6)

GROUPS = {
    "additive": "Noise added to an answer",
    "selection": "Selection of a candidate",
    "shapes": "Noise shaped for many answers",
    "counting": "Counts and running counts",
    "wrappers": "Finite laws, guarantees and releases of other mechanisms",
}
"""The folders of mechanisms in `dpassay.accountant`, and the title of each in the index."""


def examples() -> dict[str, list[tuple[Mechanism, str | None]]]:
    """Return the example that each mechanism declares, and its relation where one is needed."""
    found: dict[str, list[tuple[Mechanism, str | None]]] = {folder: [] for folder in GROUPS}
    for name, kind in DESCRIPTIONS.items():
        if issubclass(kind, Mechanism):
            if not kind.example:
                raise LookupError(f"Expected {name} to declare an example: its page shows one.")
            mechanism = notation.parse(kind.example)
            found[kind.__module__.split(".")[-2]].append((mechanism, _relation(mechanism)))
    return found


def _relation(mechanism: Mechanism) -> str | None:
    """Return the first relation under which a mechanism has a worst pair; None where none is."""
    for relation in (None, *Adjacency):
        try:
            mechanism.worst_case(relation)
        except AdjacencyError:
            continue
        except DpassayError:
            break
        return None if relation is None else relation.value
    return None


def write(folder: Path, *, plots: bool = True) -> list[str]:
    """Write all pages and their index; return the names of the mechanisms.

    Parameters
    ----------
    plots
        Whether to draw the profiles.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["# Mechanisms", "", "Each page is made from the class itself and from the accountant."]
    names = []
    for group, listed in examples().items():
        lines += ["", f"## {GROUPS[group]}", "", "| mechanism | law |", "|---|---|"]
        for mechanism, relation in listed:
            name = type(mechanism).__name__
            drawn = plots and _draw(mechanism, relation, folder / f"{name}.svg")
            (folder / f"{name}.md").write_text(page(mechanism, relation, drawn), encoding="utf-8")
            lines.append(f"| [{name}]({name}.md) | {_cell(_paragraphs(mechanism)[0])} |")
            names.append(name)
    lines += ["", "```{toctree}", ":hidden:", "", *names, "```", ""]
    (folder / "index.md").write_text("\n".join(lines), encoding="utf-8")
    return names


def page(mechanism: Mechanism, relation: str | None, plot: bool) -> str:
    """Return the page of one mechanism."""
    name = type(mechanism).__name__
    under = f" under {relation}" if relation else ""
    parts = [f"# {name}", *_paragraphs(mechanism)]
    parts += [
        "## An example",
        f"```python\nimport dpassay\n\nnoise = dpassay.{_call(mechanism)}\n```",
    ]
    try:
        worst = mechanism.worst_case(_adjacency(relation))
        parts += ["## The worst pair", _plain(worst.reason)]
    except DpassayError as refusal:
        parts += ["## The worst pair", _plain(str(refusal))]
    parts.append(f"## What is proved of it{under}")
    rows = [f"| {label} | {_answer(ask)} |" for label, ask in _questions(mechanism, relation)]
    parts.append("\n".join(["| question | answer |", "|---|---|", *rows]))
    if plot:
        parts.append(f"![The privacy profile of the example: delta against epsilon]({name}.svg)")
    flag = f" --adjacency {relation}" if relation else ""
    parts.append(f'```sh\ndpassay profile "{mechanism!r}"{flag} --epsilon 1 --delta 1e-5\n```')
    return "\n\n".join(parts) + "\n"


def _questions(
    mechanism: Mechanism, relation: str | None
) -> list[tuple[str, Callable[[], Interval]]]:
    return [
        (
            "δ at ε = 1",
            lambda: profile.delta(mechanism, 1, adjacency=relation, relative_width=WIDTH),
        ),
        (
            "ε at δ = 1e-5",
            lambda: profile.epsilon(mechanism, "1e-5", adjacency=relation, relative_width=WIDTH),
        ),
        ("largest privacy loss", lambda: profile.epsilon(mechanism, 0, adjacency=relation)),
        ("total variation", lambda: guarantees.total_variation(mechanism, adjacency=relation)),
        ("exact μ of Gaussian DP", lambda: guarantees.mu(mechanism, adjacency=relation)),
        (
            "ρ of zCDP",
            lambda: guarantees.rho(mechanism, adjacency=relation),
        ),
        ("mean squared error", lambda: accuracy.mean_squared_error(mechanism)),
    ]


def _answer(ask: Callable[[], Interval]) -> str:
    try:
        return str(ask()).replace("Infinity", "∞")
    except DpassayError as refusal:
        text = _cell(_plain(str(refusal)))
        return text if len(text) <= SHORT else text[:SHORT].rsplit(" ", 1)[0] + " …"


def _draw(mechanism: Mechanism, relation: str | None, path: Path) -> bool:
    """Draw the profile; return whether it is known well enough for that."""
    from dpassay.figures import profile as plotted
    from dpassay.figures import style

    try:
        table = plotted.compute(mechanism, adjacency=relation, least=LEAST)
    except DpassayError:
        return False
    style.save(plotted.draw(table), path)
    return True


def _adjacency(relation: str | None) -> object:
    return Adjacency.read(relation)


def _call(mechanism: Mechanism) -> str:
    """Return the notation as Python: nested names need the package's name too."""
    names = "|".join(DESCRIPTIONS)
    nested = re.sub(rf"(?<=[=\[ ])({names})\(", r"dpassay.\1(", repr(mechanism))
    return nested


def _paragraphs(mechanism: Mechanism) -> list[str]:
    """Return the docstring of a class as Markdown."""
    text = inspect.getdoc(type(mechanism)) or ""
    parts = re.split(r"^(Parameters|Notes)\n-+\n", text, flags=re.M)
    found = [_plain(part) for part in parts[0].strip().split("\n\n")]
    for heading, body in zip(parts[1::2], parts[2::2], strict=True):
        if heading == "Parameters":
            found += ["## Parameters", _parameters(body)]
        else:
            found += ["## Why", *(_plain(part) for part in body.strip("\n").split("\n\n"))]
    return found


def _parameters(body: str) -> str:
    """Return the arguments as a list."""
    entries: list[list[str]] = []
    for line in body.strip("\n").splitlines():
        if line and not line.startswith(" "):
            entries.append([line, ""])
        elif entries:
            entries[-1][1] += f" {line.strip()}"
    return "\n".join(f"- `{name}`: {_plain(text.strip())}" for name, text in entries)


def _plain(text: str) -> str:
    """Escape what Markdown would read as marks, outside of code, tables and emphasised words."""
    if text.startswith("    "):
        return text
    if re.match(r"=+ +=", text):
        return f"```text\n{text}\n```"
    parts = re.split(r"(`[^`]+`|(?<!\S)\*[A-Za-z][^*`]*\*(?!\w))", text)
    return "".join(
        part if index % 2 else re.sub(r"([*_<\[\]$\\])", r"\\\1", part)
        for index, part in enumerate(parts)
    )


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())

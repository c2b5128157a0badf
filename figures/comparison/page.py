"""The plot of a comparison, and its HTML page: the recommendation, then its reasons."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpassay.figures import style
from dpassay.figures.pages import template
from dpassay.figures.pages.template import render
from dpassay.verifier.compare import output

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpassay.verifier.compare import Comparison, Row


_WIDE = 7.0
"""Width of the plot in inches."""
_NARROW = 4.4
"""Its width on a page, where it must be readable on a phone."""
_BAR = 0.35
"""Height per candidate, in inches."""
_TITLE = 75
"""Characters per line of the title."""
_MANY_DECADES = 20.0
"""Ratio of the values above which the axis is logarithmic."""


def bars(found: Comparison, *, titled: bool = True, ax: Axes | None = None) -> Figure:
    """Draw the first metric of all candidates, the best on top; bars of refuted ones are hollow."""
    name = found.ranked_by.name
    rows = [(row, value) for row in found.rows if (value := row.value(name)) is not None]
    width = _WIDE if titled else _NARROW
    with style.sheet(width, 1.2 + _BAR * len(rows), ax) as (figure, axes):
        colour = style.CURVES[0].colour
        for place, (row, value) in enumerate(rows):
            size = float(value.upper)
            filled = colour if row.is_private else "none"
            axes.barh(place, size, color=filled, edgecolor=colour, height=0.6)
            text = f"{size:.4g}" if row.is_private else f"{size:.4g}, not private"
            beside: dict[str, Any] = {"xytext": (4, 0), "textcoords": "offset points"}
            letters = 8 if titled else 10
            axes.annotate(text, (size, place), va="center", fontsize=letters, **beside)
        axes.set_yticks(range(len(rows)), [row.candidate.name for row, _ in rows])
        axes.invert_yaxis()
        axes.margins(x=0.2)
        axes.grid(visible=False)
        if _spans([float(value.upper) for _, value in rows]):
            axes.set_xscale("log")
        axes.set_xlabel(_axis(found, name))
        if titled:
            title = "\n".join(textwrap.wrap(output.headline(found), _TITLE))
            axes.set_title(title, fontsize=9, loc="left")
        return figure


def _spans(values: list[float]) -> bool:
    """Whether values are positive and need a logarithmic axis."""
    return bool(values) and min(values) > 0 and max(values) > _MANY_DECADES * min(values)


def _axis(found: Comparison, name: str) -> str:
    meaning = next(entry.meaning for entry in found.metrics if entry.name == name)
    return f"{name}: {meaning}" if len(meaning) < 45 else name


def page(found: Comparison, command: Sequence[str]) -> str:
    """Return the page as HTML; `command` reproduces it."""
    heads = [entry.name for entry in found.metrics]
    name = found.ranked_by.name
    title = f"{name} of every candidate"
    alt = "; ".join(f"{row.candidate.name}: {row.metrics[name]}" for row in found.rows)
    return render(
        "compare.html",
        found=found,
        headline=output.headline(found).replace("`", ""),
        workload=repr(found.workload),
        code=output.release_code(found),
        title=title,
        picture=template.element(bars(found, titled=False), "plot-0", title, alt),
        heads=["mechanism", "verdict", "noise", "you need", *heads],
        rows=[_row(found, row) for row in found.rows],
        best=output.best_lines(found),
        command=template.shell(command),
    )


def _row(found: Comparison, row: Row) -> dict[str, Any]:
    from dpassay.verifier.compare.output import need, noise, number

    cells = [
        {"text": number(row.metrics[entry.name]), "best": row in found.best(entry.name)}
        for entry in found.metrics
    ]
    return {
        "name": row.candidate.name,
        "mechanism": repr(row.found.mechanism),
        "verdict": row.verdict.value,
        "noise": noise(row.found),
        "need": need(row),
        "struck": not row.is_private,
        "cells": cells,
        "why": row.why,
        "certificate": row.certificate,
        "file": f"{template.slug(row.candidate.name)}.json",
        "command": _verification(found, row),
    }


def _verification(found: Comparison, row: Row) -> str:
    """Return the command that verifies whether a candidate keeps the budget."""
    from dpassay.accountant.budget.target import EpsilonDelta, Mu, Rho

    parts = ["dpassay", "verify", repr(row.found.whole)]
    match found.budget.target:
        case EpsilonDelta(epsilon, delta):
            parts += ["--epsilon", str(epsilon), "--delta", str(delta)]
        case Mu(mu):
            parts += ["--mu", str(mu)]
        case Rho(rho):
            parts += ["--rho", str(rho)]
        case _:
            parts[1:2] = ["profile"]
            parts += ["--epsilon", "1"]
    return template.shell([*parts, "--adjacency", found.budget.adjacency.value])

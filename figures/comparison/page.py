"""A comparison as one self-contained HTML page: the decision first, then what it rests on."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dpassay.figures.pages import svg
from dpassay.figures.pages.template import render

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpassay.verifier.compare import Comparison, Row, Sweep
    from dpassay.verifier.compare.data import OnData


def page(
    found: Comparison,
    sweeps: Sequence[Sweep],
    pictures: Sequence[tuple[str, str, Figure]],
    command: Sequence[str],
    data: Mapping[str, OnData],
) -> str:
    """Return the page.

    Parameters
    ----------
    pictures
        Title, text alternative and figure of each plot.
    command
        What reproduces the page.
    data
        The errors on the user's data by the name of the candidate; empty without data.
    """
    from dpassay.verifier.compare import output

    heads = [entry.name for entry in found.metrics]
    heads += ["simulated rmse", *(["rmse / true answers"] if data else [])]
    crossings = [str(crossing) for sweep in sweeps for crossing in sweep.crossovers]
    return render(
        "compare.html",
        found=found,
        headline=output.headline(found).replace("`", ""),
        workload=repr(found.workload),
        code=output.release_code(found),
        pictures=[
            {
                "title": title,
                "svg": svg.inline(svg.of(figure), slug=f"plot-{index}", title=title, alt=alt),
            }
            for index, (title, alt, figure) in enumerate(pictures)
        ],
        heads=["mechanism", "verdict", "noise", "you need", *heads],
        rows=[_row(found, row, data) for row in found.rows],
        best=output.best_lines(found),
        crossings=crossings if sweeps else None,
        command=shlex.join(command),
    )


def _row(found: Comparison, row: Row, data: Mapping[str, OnData]) -> dict[str, Any]:
    from dpassay.verifier.compare.needs import need
    from dpassay.verifier.compare.noise import noise
    from dpassay.verifier.compare.output import number, simulated

    cells = [
        {"text": number(row.metrics[entry.name]), "best": row in found.best(entry.name)}
        for entry in found.metrics
    ]
    cells.append({"text": simulated(row), "best": False})
    if data:
        known = data.get(row.candidate.name)
        cells.append({"text": f"{known.relative:.4g}" if known else "-", "best": False})
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
        "file": f"{svg.slug(row.candidate.name)}.json",
        "command": _verification(found, row),
    }


def _verification(found: Comparison, row: Row) -> str:
    """Return the command that decides whether one candidate keeps the budget."""
    from dpassay.accountant.budget.target import EpsilonDelta, Mu, Rho

    parts = ["dpassay", "verify", repr(row.found.whole)]
    target: Any = found.budget.target
    match target:
        case EpsilonDelta():
            parts += ["--epsilon", str(target.epsilon), "--delta", str(target.delta)]
        case Mu():
            parts += ["--mu", str(target.mu)]
        case Rho():
            parts += ["--rho", str(target.rho)]
        case _:
            parts[1:2] = ["profile"]
            parts += ["--epsilon", "1"]
    return shlex.join([*parts, "--adjacency", found.budget.adjacency.value])

"""A comparison as one self-contained HTML page."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from figures.pages import svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from verify.compare import Comparison, Row, Sweep
    from verify.compare.data import OnData

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff;
       max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { margin-top: 2.5rem; border-bottom: 2px solid #1a1a1a; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid #bbb; }
th:first-child, td:first-child { text-align: left; }
tr.struck td { color: #666; text-decoration: line-through; }
tr.struck td.verdict { text-decoration: none; }
td.best { font-weight: 700; background: #e3f3ea; }
figure { margin: 0; } figure svg { width: 100%; height: auto; max-width: 50rem; }
code, pre { font-size: .85em; } pre { overflow-x: auto; background: #f4f4f4; padding: .7rem; }
.warning { border: 3px double #a32c00; padding: .7rem; }
"""


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
    drawings = "\n".join(
        f"<figure>{svg.inline(svg.of(figure), slug=f'plot-{index}', title=title, alt=alt)}"
        f"<figcaption>{escape(title)}</figcaption></figure>"
        for index, (title, alt, figure) in enumerate(pictures)
    )
    incomplete = (
        ""
        if found.complete
        else '<p class="warning">Interrupted: further candidates were not judged.</p>'
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n<title>Comparison of mechanisms</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<header><h1>Which mechanism?</h1>\n"
        f"<p><strong>Budget:</strong> {escape(str(found.budget))}<br>"
        f"<strong>Workload:</strong> <code>{escape(repr(found.workload))}</code></p>{incomplete}"
        "</header>\n<main>\n"
        f"{_table(found, data)}\n{_why(found)}\n<h2>Plots</h2>\n{drawings}\n"
        f"{_crossovers(sweeps)}\n{_left_out(found)}\n{_evidence(found)}\n"
        f"<h2>Reproduce</h2>\n<pre>{escape(shlex.join(command))}</pre>\n"
        f"{_calibrations(found)}\n</main>\n</body>\n</html>\n"
    )


def _table(found: Comparison, data: Mapping[str, OnData]) -> str:
    from verify.compare.output import number, simulated

    heads = ["mechanism", "verdict", *(entry.name for entry in found.metrics), "simulated rmse"]
    heads += ["rmse / true answers"] if data else []
    best = {entry.name: {id(row) for row in found.best(entry.name)} for entry in found.metrics}
    lines = []
    for row in found.rows:
        cells = [
            f'<td title="{escape(repr(row.found.mechanism))}">{escape(row.candidate.name)}</td>',
            f'<td class="verdict">{row.verdict.value}</td>',
        ]
        for entry in found.metrics:
            mark = ' class="best"' if id(row) in best[entry.name] else ""
            cells.append(f"<td{mark}>{number(row.metrics[entry.name])}</td>")
        cells.append(f"<td>{escape(simulated(row))}</td>")
        if data:
            known = data.get(row.candidate.name)
            cells.append(f"<td>{f'{known.relative:.4g}' if known else '-'}</td>")
        struck = "" if row.is_private else ' class="struck"'
        lines.append(f"<tr{struck}>{''.join(cells)}</tr>")
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in heads)
    return (
        f'<div class="scroll"><table>\n<caption>The best private candidate by each metric is '
        f"shaded; what is not proved to keep the budget is struck out.</caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>{''.join(lines)}</tbody>\n</table></div>"
    )


def _why(found: Comparison) -> str:
    entries = "".join(
        f"<li><strong>{escape(row.candidate.name)}</strong>: {escape(row.why)}{_bound(row)}</li>"
        for row in found.rows
    )
    return f"<h2>Why</h2>\n<ul>{entries}</ul>"


def _bound(row: Row) -> str:
    from verify.compare.output import at_least

    bound = row.found.bound
    if bound is None:
        return ""
    return f" No {escape(row.found.bound_for)} has a variance below {at_least(bound)}."


def _crossovers(sweeps: Sequence[Sweep]) -> str:
    entries = [str(crossing) for found in sweeps for crossing in found.crossovers]
    if not sweeps:
        return ""
    if not entries:
        return "<h2>Crossovers</h2>\n<p>The same candidate is best all along the sweeps.</p>"
    listed = "".join(f"<li>{escape(text)}</li>" for text in entries)
    return f"<h2>Crossovers</h2>\n<ul>{listed}</ul>"


def _left_out(found: Comparison) -> str:
    entries = "".join(
        f"<li><strong>{escape(entry.name)}</strong>: {escape(entry.reason)}</li>"
        for entry in found.left_out
    )
    return f"<h2>Left out</h2>\n<ul>{entries}</ul>" if entries else ""


def _evidence(found: Comparison) -> str:
    entries = []
    for row in found.rows:
        if row.certificate is None:
            continue
        text = json.dumps(row.certificate, indent=1, ensure_ascii=False)
        entries.append(
            f"<details><summary>{escape(row.candidate.name)}: {row.verdict.value}</summary>"
            f"<pre>{escape(text)}</pre></details>"
        )
    return (
        "<h2>Certificates</h2>\n<p>Saved to a file, each is verified by "
        f"<code>dpassay check FILE</code>.</p>\n{''.join(entries)}"
    )


def _calibrations(found: Comparison) -> str:
    entries = "".join(
        f"<li><code>{escape(_verification(found, row))}</code></li>" for row in found.rows
    )
    return f"<p>Each guarantee by itself:</p>\n<ul>{entries}</ul>"


def _verification(found: Comparison, row: Row) -> str:
    from accountant.budget.target import EpsilonDelta, Mu, Rho

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

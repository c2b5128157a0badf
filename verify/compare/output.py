"""Comparisons as a table in the terminal, as CSV and as LaTeX."""

from __future__ import annotations

import csv
import io
from decimal import ROUND_FLOOR, Context

from accountant.interval import Interval
from verify.compare.comparison import Comparison, Row
from verify.verdict import Verdict

_DIGITS = 5
_FEW_PERCENT = 10
_TEX = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "≤": r"$\le$", "≥": r"$\ge$"}


def table(found: Comparison) -> list[list[str]]:
    """Return the rows of the table; the best by each metric is marked with *."""
    header = ["mechanism", "verdict", *(entry.name for entry in found.metrics), "simulated rmse"]
    best = {entry.name: {id(row) for row in found.best(entry.name)} for entry in found.metrics}
    lines = [header]
    for row in found.rows:
        cells = [row.candidate.name, row.verdict.value]
        for entry in found.metrics:
            mark = "*" if id(row) in best[entry.name] else ""
            cells.append(number(row.metrics[entry.name]) + mark)
        lines.append([*cells, simulated(row)])
    return lines


def number(value: Interval | str | None) -> str:
    """Return a few digits of a metric, or a dash."""
    if not isinstance(value, Interval):
        return "-"
    return f"{float(value.upper):.{_DIGITS}g}"


def simulated(row: Row) -> str:
    """Return the simulated root mean squared error, and whether it agrees."""
    if row.simulation is None:
        return "-"
    value = f"{row.simulation.mean_squared_error**0.5:.4g}"
    return value if row.simulation.agrees else f"{value} DISAGREES"


def best_lines(found: Comparison) -> list[str]:
    """Say in one line for each metric which candidate is best, and how much the next one costs."""
    lines = []
    for entry in found.metrics:
        best = found.best(entry.name)
        if not best:
            continue
        names = " and ".join(row.candidate.name for row in best)
        others = sorted(
            (ratio, row.candidate.name)
            for row in found.rows
            if row.is_private and row not in best
            for ratio in [found.ratio(row, entry.name)]
            if ratio is not None and ratio > 0
        )
        if entry.more_is_better:
            others.reverse()
        after = f"; next: {others[0][1]}, {_times(others[0][0])}" if others else ""
        lines.append(f"{entry.name}: {names}{after}")
    for row in found.rows:
        bound = row.found.bound
        if bound is not None and row.is_private:
            lines.append(f"no {row.found.bound_for} has a variance below {at_least(bound)}")
    return list(dict.fromkeys(lines))


def at_least(bound: Interval) -> str:
    """Return twelve digits of a lower bound, rounded down."""
    return f"{Context(prec=12, rounding=ROUND_FLOOR).plus(bound.lower)}"


def _times(ratio: float) -> str:
    """Say how many times, or by how many percent where that is little."""
    percent = 100 * (ratio - 1)
    if abs(percent) < _FEW_PERCENT:
        return f"{abs(percent):.2g} % {'more' if percent > 0 else 'less'}"
    return f"{ratio:.4g} times that"


def to_csv(found: Comparison) -> str:
    """Return every number, with both ends, as CSV."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    header = ["name", "mechanism", "verdict"]
    for entry in found.metrics:
        header += [f"{entry.name}_lower", f"{entry.name}_upper"]
    writer.writerow([*header, "simulated_mean_squared_error", "standard_error", "reason"])
    for row in found.rows:
        cells = [row.candidate.name, repr(row.found.mechanism), row.verdict.value]
        for entry in found.metrics:
            value = row.value(entry.name)
            cells += ["", ""] if value is None else [str(value.lower), str(value.upper)]
        simulation = row.simulation
        cells += (
            ["", ""]
            if simulation is None
            else [repr(simulation.mean_squared_error), repr(simulation.standard_error)]
        )
        writer.writerow([*cells, row.why])
    return file.getvalue()


def to_latex(found: Comparison) -> str:
    """Return a table for LaTeX with booktabs; the best is bold, what is struck out is in grey."""
    columns = "l" + "r" * len(found.metrics)
    lines = [
        rf"% {found.budget}; {found.workload!r}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(["mechanism", *(_tex(entry.name) for entry in found.metrics)]) + r" \\",
        r"\midrule",
    ]
    best = {entry.name: {id(row) for row in found.best(entry.name)} for entry in found.metrics}
    for row in found.rows:
        cells = [_tex(row.candidate.name)]
        for entry in found.metrics:
            text = number(row.metrics[entry.name])
            bold = id(row) in best[entry.name]
            cells.append(rf"\textbf{{{text}}}" if bold else text)
        if not row.is_private:
            note = "not private" if row.verdict is Verdict.REFUTED else "not proved private"
            cells[0] += f" ({note})"
            cells = [rf"\textcolor{{gray}}{{{cell}}}" for cell in cells]
        lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _tex(text: str) -> str:
    return "".join(_TEX.get(character, character) for character in text)

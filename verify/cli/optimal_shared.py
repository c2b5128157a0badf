"""What the kinds of `dpassay optimal` share: certificates, drawings, and sweeps that survive."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol, final

from dpassay.accountant.errors import DpassayError, InvalidInputError
from dpassay.verifier.cli.shell import ExitCode, checked_path, note, say, say_json


class DrawLaws(Protocol):
    """Draws laws on integers into a file."""

    def __call__(
        self,
        series: Sequence[tuple[str, Sequence[float], Sequence[float]]],
        path: Path,
        *,
        title: str,
        x: str = "",
    ) -> None:
        """Draw (label, values, probabilities) of each law, or the least δ against x."""


def write_certificate(path: str, data: dict[str, Any]) -> None:
    """Write a certificate, and say so."""
    from dpassay.verifier.prover import write

    write(Path(path), [data])
    note(f"certificate: {path}")


def digits(value: Fraction | float) -> str:
    """Return twelve digits, with the exponents that enclosures are printed with.

    >>> digits(Fraction(1, 3)), digits(5e-5), digits(1.25e-8)
    ('0.333333333333', '0.00005', '1.25e-8')
    """
    return f"{Decimal(f'{float(value):.12g}'):g}"


def values(given: Sequence[str] | None) -> list[str | None]:
    """Return the values of an option that may be repeated or hold commas; None if not given.

    >>> values(["1,2", "3"])
    ['1', '2', '3']
    """
    if given is None:
        return [None]
    found = [text.strip() for entry in given for text in entry.split(",") if text.strip()]
    return [*found] or [None]


@final
@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of noise on integers that is solved for once, or for every cell of a sweep.

    `axes` names the options that may have several values, `fixed` the others that a cell depends
    on, `kept` the parts of its plain data that a cell has.
    """

    name: str
    axes: Sequence[str]
    fixed: Sequence[str]
    kept: Sequence[str]
    solve: Callable[[argparse.Namespace, Mapping[str, str | None]], Any]
    certificate: Callable[[Any], dict[str, Any]]
    to_json: Callable[[Any], dict[str, Any]]
    line: Callable[[Mapping[str, Any]], str]
    """Of a cell."""
    quiet: Callable[[Any], str]
    show: Callable[[Any, argparse.Namespace], None]
    laws: Callable[[Any], tuple[Sequence[tuple[str, int, Sequence[float]]], str]]
    """What is drawn, and its title."""
    swept: str = ""
    """The part of its plain data, an enclosure, that a sweep draws; none if empty."""

    def run(self, options: argparse.Namespace, draw: DrawLaws | None) -> int:
        """Solve and print, or sweep."""
        axes = {name: values(getattr(options, name)) for name in self.axes}
        path = checked_path(options.plot, draw)
        if options.out is not None or any(len(entries) > 1 for entries in axes.values()):
            if (path is not None and not self.swept) or options.certificate is not None:
                plot = "" if self.swept else "neither --plot nor "
                raise InvalidInputError(
                    f"A sweep takes {plot or 'no '}--certificate: ask cell by cell."
                )
            fixed = {"kind": self.name, **{name: getattr(options, name) for name in self.fixed}}
            used = {name: entries for name, entries in axes.items() if entries != [None]}
            code, found = _sweep(
                used, lambda cell: self._cell(options, cell), self.line, options, fixed
            )
            if path is not None and draw is not None and code == ExitCode.DONE:
                about = f"Least {self.swept} of {self.name}, {options.objective}"
                self._draw_sweep(used, found, draw, path, about)
            return code
        solution = self.solve(options, {name: entries[0] for name, entries in axes.items()})
        if options.certificate is not None:
            write_certificate(options.certificate, self.certificate(solution))
        if options.json:
            say_json(self.to_json(solution))
        elif options.quiet:
            say(self.quiet(solution))
        else:
            self.show(solution, options)
        if path is not None and draw is not None:
            laws, title = self.laws(solution)
            series = [(label, range(low, low + len(law)), law) for label, low, law in laws]
            draw(series, path, title=title)
            note(f"wrote {path}")
        return ExitCode.DONE

    def _draw_sweep(
        self,
        axes: Mapping[str, Sequence[str | None]],
        found: Sequence[Mapping[str, Any]],
        draw: DrawLaws,
        path: Path,
        about: str,
    ) -> None:
        """Draw what was swept against the first axis with several values, a curve for the rest."""
        x = next((name for name, entries in axes.items() if len(entries) > 1), next(iter(axes)))
        several = [name for name, entries in axes.items() if len(entries) > 1 and name != x]
        curves: dict[str, list[tuple[float, float]]] = {}
        for each in found:
            cell, ends = each["cell"], each[self.swept]
            label = ", ".join(f"{name} {cell[name]}" for name in several)
            middle = (Fraction(ends["lower"]) + Fraction(ends["upper"])) / 2
            curves.setdefault(label, []).append((float(Fraction(cell[x])), float(middle)))
        same = [f"{name} {entries[0]}" for name, entries in axes.items() if len(entries) == 1]
        title = ", ".join([about, *same])
        series = [
            (label, [place for place, _ in sorted(points)], [value for _, value in sorted(points)])
            for label, points in curves.items()
        ]
        draw(series, path, title=title, x=x)
        note(f"wrote {path}")

    def _cell(self, options: argparse.Namespace, cell: Mapping[str, str | None]) -> dict[str, Any]:
        found = self.to_json(self.solve(options, cell))
        return {key: found[key] for key in self.kept}


def shown(bounds: Mapping[str, str]) -> str:
    """Print an enclosure that was read from JSON."""
    from dpassay.accountant.numbers.interval import Interval

    return str(Interval(Decimal(bounds["lower"]), Decimal(bounds["upper"])))


def add_files(parser: argparse.ArgumentParser, *, evidence: str) -> None:
    """Add --certificate, --plot, and --out for sweeps."""
    add = parser.add_argument
    add("--certificate", metavar="FILE", help=f"write {evidence}, for dpassay check")
    add("--plot", type=Path, metavar="FILE", help="draw the laws (.png, .pdf or .svg)")
    add(
        "--out",
        metavar="FILE",
        type=Path,
        help="with a sweep: append each finished cell as JSON, and reuse finished ones",
    )


def _sweep(
    axes: Mapping[str, Sequence[str | None]],
    solve: Callable[[dict[str, str | None]], dict[str, Any]],
    shown: Callable[[Mapping[str, Any]], str],
    options: argparse.Namespace,
    fixed: Mapping[str, object],
) -> tuple[int, list[dict[str, Any]]]:
    """Solve and print every combination of the values; return the exit code and the answers.

    What the file of finished ones holds is not solved again.

    A cell without an answer (an infeasible one) carries its "error". An interrupt leaves what was
    finished in the file.
    """
    from importlib.metadata import version

    from dpassay.verifier.progress import Progress

    stamp = {"version": version("dpassay"), "fixed": dict(fixed)}
    known = _finished(options.out, stamp)
    cells = [dict(zip(axes, entry, strict=True)) for entry in itertools.product(*axes.values())]
    progress = Progress(len(cells), sys.stderr, silent=options.quiet, unit="cells")
    found: list[dict[str, Any]] = []
    interrupted = False
    try:
        for cell in cells:
            answer = known.get(_key(cell))
            if answer is None:
                try:
                    answer = solve(cell)
                except DpassayError as error:
                    answer = {"error": str(error)}
                _keep(options.out, stamp, cell, answer)
            found.append({"cell": cell, **answer})
            if not options.json:
                said = answer["error"] if "error" in answer else shown(answer)
                say("  ".join([*(f"{k}={v}" for k, v in cell.items()), said]))
            progress.advance(_key(cell))
    except KeyboardInterrupt:
        interrupted = True
    finally:
        progress.close()
    if options.json:
        say_json({"schema_version": 1, "cells": found})
    if interrupted:
        kept = "" if options.out is None else f"; kept in {options.out}"
        note(f"interrupted: {len(found)} of {len(cells)} cells are finished{kept}")
        return ExitCode.INTERRUPTED, found
    failed = any("error" in each for each in found)
    return ExitCode.USAGE if failed else ExitCode.DONE, found


def _key(cell: Mapping[str, str | None]) -> str:
    return " ".join(f"{name}={value}" for name, value in cell.items() if value is not None)


def _finished(path: Path | None, stamp: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    """Return the finished cells of a file; a last line that was cut off is left out."""
    if path is None or not path.exists():
        return {}
    known: dict[str, dict[str, Any]] = {}
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
            if entry["stamp"] == stamp:
                known[_key(entry["cell"])] = entry["answer"]
        except (ValueError, KeyError, TypeError, AttributeError):
            if number < len(lines):
                raise InvalidInputError(
                    f"Line {number} of {path} is no finished cell. Give another --out."
                ) from None
    return known


def _keep(
    path: Path | None,
    stamp: Mapping[str, object],
    cell: Mapping[str, str | None],
    answer: Mapping[str, Any],
) -> None:
    if path is None:
        return
    text = json.dumps({"stamp": stamp, "cell": cell, "answer": answer}, ensure_ascii=False)
    whole = not path.exists() or path.read_bytes()[-1:] in (b"\n", b"")
    with path.open("a", encoding="utf-8") as stream:
        stream.write(("" if whole else "\n") + text + "\n")

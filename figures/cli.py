"""`dpassay figures`: make the figures of the papers, or check their numbers."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpassay.verifier.cli.shell import Command, ExitCode, note, say, say_json

if TYPE_CHECKING:
    from dpassay.figures.description import Settings
    from dpassay.figures.production import Made
    from dpassay.verifier.verdict import Finding

_OUT = "dpassay-figures"
_DESCRIPTION = f"""\
Make the figures of the five papers: PNG, PDF, SVG, the plotted numbers as CSV, provenance as
JSON, and a gallery page with the verdicts ({_OUT}/index.html).
"""
_EPILOG = """\
examples:
  dpassay figures
  dpassay figures --list
  dpassay figures --only better-gaussian/3 --out /tmp/figures
  dpassay figures --paper count-queries --column
  dpassay figures --check --fast

exit code: 1 if --check finds drift, 2 if a figure could not be made
"""


_OPTIONS = f"""\
--list  list the figures and make none
--only ID []  only this figure (repeatable)
--paper NAME []  only the figures of a paper
--out DIR ={_OUT}  folder (default {_OUT})
--column  pictures as wide as a paper's column, 3.4 inches, panels below each other
--fast  a reduced grid, watermarked
| --full  the papers' own sizes: may take hours
--check  compare the numbers with the stored ones; write no files
--data DIR  folder of the original data
--seed N :int  seed of the simulations
--jobs N :int =2  processes (default 2)
"""


def run(options: argparse.Namespace) -> int:
    """Make or check the figures, and print the result."""
    from dpassay.figures import registry

    settings = _settings(options)
    names = registry.selected(options.only, options.paper)
    if options.list:
        return _list(names, options)
    registry.require({name: registry.description(name).needs for name in names})
    if not options.check:
        _need_folder(options.out)
    made, interrupted = _make(names, settings, options)
    errors = {one.name: one.error for one in made if one.error}
    findings: dict[str, Finding] = {}
    if not (options.check or interrupted):
        findings = _gallery(names, errors, options)
    if options.json:
        say_json(_to_json(made, findings, options))
    else:
        _say(made, options, complete=not interrupted)
    for name, reason in errors.items():
        note(f"error: {name}: {reason}")
    if interrupted:
        note(f"interrupted after {len(made)} of {len(names)} figures")
        return ExitCode.INTERRUPTED
    if errors:
        return ExitCode.USAGE
    return ExitCode.REFUTED if any(one.drift for one in made) else ExitCode.DONE


def _settings(options: argparse.Namespace) -> Settings:
    from dpassay.accountant.errors import InvalidInputError, expected
    from dpassay.figures.description import DEFAULT_SEED, Settings, Size

    if options.jobs < 1:
        raise InvalidInputError(f"Expected --jobs {options.jobs} ≥ 1.")
    if options.seed is not None and options.seed < 0:
        raise expected("seed", options.seed, "≥ 0")
    if options.data is not None and not options.data.is_dir():
        raise InvalidInputError(f"Expected --data {options.data} to be a folder.")
    if options.check and (options.full or options.data is not None or options.seed is not None):
        raise InvalidInputError(
            "--check compares with tables of the default or the --fast size, the default seed and "
            "no data files. Leave out --full, --data and --seed."
        )
    size = Size.FAST if options.fast else Size.FULL if options.full else Size.DEFAULT
    seed = DEFAULT_SEED if options.seed is None else options.seed
    return Settings(size=size, seed=seed, data=options.data, column=options.column)


def _need_folder(out: Path) -> None:
    """Create the output folder, or raise before anything is computed."""
    from dpassay.accountant.errors import InvalidInputError

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(f"Cannot make the folder {out}: {error.strerror}.") from None
    if not os.access(out, os.W_OK | os.X_OK):
        raise InvalidInputError(f"Cannot write into the folder {out}: choose another with --out.")


def _list(names: Sequence[str], options: argparse.Namespace) -> int:
    from dpassay.figures import registry

    about = {name: registry.description(name) for name in names}
    if options.json:
        rows = [
            {"id": n, "figure": d.number, "title": d.title, "claims": list(d.claims)}
            for n, d in about.items()
        ]
        say_json({"schema_version": 1, "figures": rows})
        return ExitCode.DONE
    from dpassay.verifier import terminal

    terminal.show([terminal.Row((n, d.number), d.title) for n, d in about.items()], sys.stdout)
    return ExitCode.DONE


def _make(
    names: Sequence[str], settings: Settings, options: argparse.Namespace
) -> tuple[list[Made], bool]:
    """Return the finished figures, in order, and whether the run was interrupted."""
    from dpassay.figures import production

    found: dict[str, Made] = {}
    interrupted = False
    out = None if options.check else options.out
    started = time.monotonic()
    try:
        for one in production.make_all(names, settings, out, jobs=options.jobs):
            found[one.name] = one
            if not options.quiet:
                done = "failed" if one.error else f"{one.seconds:.1f} s"
                clock = f"{time.monotonic() - started:.0f} s"
                note(f"{len(found)} of {len(names)} figures, {clock}: {one.name} ({done})")
    except KeyboardInterrupt:
        interrupted = True
        sys.stderr.write("\n")
    return [found[name] for name in names if name in found], interrupted


def _gallery(
    names: Sequence[str], errors: dict[str, str], options: argparse.Namespace
) -> dict[str, Finding]:
    """Write the gallery of all figures in the folder, and return the findings that it shows."""
    from dpassay.figures import gallery, production, registry

    there = [n for n in registry.FIGURES if n in names or production.provenance(n, options.out)]
    findings = gallery.decide(there, jobs=options.jobs)
    gallery.write(there, options.out, findings, errors)
    return findings


def _to_json(
    made: Sequence[Made], findings: dict[str, Finding], options: argparse.Namespace
) -> dict[str, Any]:
    from dpassay.figures import gallery, production

    rows: list[dict[str, Any]] = []
    for one in made:
        row: dict[str, Any] = {"id": one.name, "seconds": round(one.seconds, 3)}
        if one.error:
            row["error"] = one.error
        elif options.check:
            row["drift"] = list(one.drift)
        else:
            about = production.provenance(one.name, options.out)
            paths = production.files(one.name, options.out)
            row["table_sha256"] = about["table_sha256"] if about else None
            row["files"] = [str(path) for path in paths.values()]
            row["verdicts"] = {
                claim: findings[claim].verdict.value
                for claim in gallery.claims_of(one.name)
                if claim in findings
            }
        rows.append(row)
    return {"schema_version": 1, "figures": rows}


_SHOWN = 5
"""Maximal number of differences printed per figure."""


def _say(made: Sequence[Made], options: argparse.Namespace, *, complete: bool) -> None:
    if options.check:
        for one in made:
            if not one.error:
                say(f"{'DRIFT' if one.drift else 'same '}  {one.name}")
            for line in one.drift[:_SHOWN]:
                say(f"       {line}")
            if len(one.drift) > _SHOWN:
                say(f"       and {len(one.drift) - _SHOWN} more")
        return
    finished = [one for one in made if not one.error]
    if not options.quiet:
        for one in finished:
            say(f"{options.out / one.name}.pdf")
    if not complete:  # there is no page
        return
    count = f"{len(finished)} figure{'s' * (len(finished) != 1)}"
    say(f"{count}: {options.out / 'index.html'}")


COMMAND = Command(
    "figures",
    "make the papers' figures",
    _DESCRIPTION,
    _EPILOG,
    _OPTIONS,
    run,
    quiet="no progress, and no list of files",
)

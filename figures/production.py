"""Make figures: compute, draw and write them, or compare them with the stored tables.

A figure consists of five files, OUT/<paper>/<number>.png, .pdf, .svg, .csv and .json. The last one
is the provenance. It is written last, so that its presence shows that the figure is complete.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any, final

from dpassay.accountant.errors import DpassayError
from dpassay.figures import registry, style
from dpassay.figures.description import Settings, Size
from dpassay.figures.table import Table
from dpassay.verifier.processes import workers

PICTURES = (".png", ".pdf", ".svg")
ABOUT = "about.json"
"""The file with the columns and parameters of the stored tables."""
_SCHEMA_VERSION = 1
"""Version of the provenance files."""
_WATERMARK = "reduced grid"
_LIBRARIES = ("dpassay", "matplotlib", "numpy", "scipy", "python-flint")


@final
@dataclass(frozen=True)
class Made:
    """The outcome for one figure."""

    name: str
    seconds: float = 0.0
    error: str = ""
    """Why the figure could not be made, else ""."""
    drift: tuple[str, ...] = ()
    """Differences of the recomputed table from the stored one."""


def files(name: str, out: Path) -> dict[str, Path]:
    """Return the paths of a figure's files by suffix."""
    return {suffix: out / f"{name}{suffix}" for suffix in (*PICTURES, ".csv", ".json")}


def make(name: str, settings: Settings, out: Path | None) -> Made:
    """Compute one figure, then draw and write it; without a folder, compare it with the stored one.

    Errors are reported in the outcome and not raised.
    """
    started = time.perf_counter()
    try:
        table = computed(name, settings)
    except (DpassayError, OSError) as error:
        return Made(name, error=_reason(error))
    drift: list[str] = []
    if out is None:
        text = stored_table(name, settings.size)
        drift = ["there is no stored table"] if text is None else table.differences(text)
        if settings.size is Size.DEFAULT and table.about() != stored_about().get(name):
            drift.append(f"columns or parameters differ from those in {ABOUT}")
    else:
        _write(name, settings, table, out, started)
    return Made(name, time.perf_counter() - started, drift=tuple(drift))


def _write(name: str, settings: Settings, table: Table, out: Path, started: float) -> None:
    """Draw a table and write all files, the provenance last and atomically."""
    paths = files(name, out)
    paths[".json"].parent.mkdir(parents=True, exist_ok=True)
    paths[".json"].unlink(missing_ok=True)
    figure = registry.load(name).draw(table)
    if settings.column:
        style.narrow(figure)
    if settings.size is Size.FAST:
        style.watermark(figure, _WATERMARK)
    for suffix in PICTURES:
        style.save(figure, paths[suffix])
    paths[".csv"].write_text(table.to_csv(), encoding="utf-8")
    about = _provenance(name, settings, table, time.perf_counter() - started)
    about |= {"finding": figure.get_label(), "width": figure.get_figwidth()}
    text = json.dumps(about, indent=2, ensure_ascii=False)
    part = paths[".json"].with_suffix(".json.part")
    part.write_text(text + "\n", encoding="utf-8")
    os.replace(part, paths[".json"])


def computed(name: str, settings: Settings) -> Table:
    """Compute one figure's table."""
    plot = registry.load(name)
    registry.require({name: plot.description.needs})
    return plot.compute(settings)


def make_stored(name: str, out: Path) -> Made:
    """Draw and write one figure from its stored table."""
    started = time.perf_counter()
    table = stored(name)
    if table is None:
        return Made(name, error="there is no stored table")
    _write(name, Settings(), table, out, started)
    return Made(name, time.perf_counter() - started)


def make_all(
    names: Sequence[str], settings: Settings, out: Path | None, *, jobs: int
) -> Iterator[Made]:
    """Make figures, or check them if `out` is None, and yield each outcome when it is finished."""
    if jobs <= 1 or len(names) <= 1:
        for name in names:
            yield make(name, settings, out)
        return
    advice = "Run the command again with --jobs 1."
    with workers(min(jobs, len(names)), "made a figure", advice) as executor:
        futures: list[Future[Made]] = [executor.submit(make, n, settings, out) for n in names]
        for future in as_completed(futures):
            yield future.result()


def stored_table(name: str, size: Size) -> str | None:
    """Return the CSV that is distributed with the program, None if there is none of this size.

    A fast table that equals the default one is stored only once.
    """
    stored = resources.files("dpassay.figures") / "tables"
    sizes = (size, Size.DEFAULT) if size is Size.FAST else (size,)
    paths = [stored / stored_name(name, each) for each in sizes]
    return next((path.read_text("utf-8") for path in paths if path.is_file()), None)


def stored(name: str) -> Table | None:
    """Return the default table that is distributed with the program, None if there is none."""
    text, about = stored_table(name, Size.DEFAULT), stored_about().get(name)
    return None if text is None or about is None else Table.of_csv(text, **about)


@cache
def stored_about() -> dict[str, dict[str, Any]]:
    """Return the columns and parameters of the default tables, by figure id."""
    path = resources.files("dpassay.figures") / "tables" / ABOUT
    return dict(json.loads(path.read_text("utf-8"))) if path.is_file() else {}


def stored_name(name: str, size: Size) -> str:
    """Return the path of a stored table, relative to figures/tables.

    >>> stored_name("better-gaussian/1", Size.FAST)
    'better-gaussian/1.fast.csv'
    """
    return f"{name}.csv" if size is Size.DEFAULT else f"{name}.{size.value}.csv"


def provenance(name: str, out: Path) -> dict[str, Any] | None:
    """Return the provenance of a finished figure, None if there is no valid one."""
    try:
        data = json.loads(files(name, out)[".json"].read_text("utf-8"))
    except (OSError, ValueError):
        return None
    known = {"seconds", "table_sha256"}
    return data if isinstance(data, dict) and known <= data.keys() else None


def _provenance(name: str, settings: Settings, table: Table, seconds: float) -> dict[str, Any]:
    description = registry.description(name)
    return {
        "schema_version": _SCHEMA_VERSION,
        "id": name,
        "figure": description.number,
        "title": description.title,
        "size": settings.size.value,
        "seed": settings.seed,
        "data": None if settings.data is None else str(settings.data),
        "assumptions": list(description.assumptions),
        **table.about(),
        "rows": len(table.rows),
        "versions": {"python": platform.python_version()}
        | {library: version(library) for library in _LIBRARIES},
        "seconds": round(seconds, 3),
        "table_sha256": table.digest(),
    }


def _reason(error: DpassayError | OSError) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)

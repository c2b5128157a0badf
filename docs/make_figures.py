"""Store the tables of the figures that `dpassay figures --check` compares with, and list them.

    python docs/make_figures.py [--only PAPER/ID]... [--size fast|default]

Computes the figures asked for (all by default) at both sizes, writes figures/tables/ and
docs/figures.md. The page keeps the seconds and titles of the figures that were not computed.
"""

from __future__ import annotations

import argparse
import platform
import re
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from dpassay.figures import production, registry
from dpassay.figures.description import Settings, Size

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "figures.md"
TABLES = ROOT / "figures" / "tables"
_ROW = re.compile(r"\| `([^`]+)` \|.*\| ([\d.]+) \| ([\d.]+) \|$")
_TITLE = re.compile(r"\| `([^`]+)` \| (.*) \| “(.*)” \| (.*) \|$")
_HEAD = """\
# Figures

`dpassay figures` makes every figure below: PNG, PDF, SVG, the plotted numbers as CSV, provenance
as JSON, and a gallery page: a card for each figure, picked by paper and by verdict, which opens to
the paper's statement and the verdicts on it. `--fast` takes a reduced grid, `--check` compares
recomputed numbers with the tables in `figures/tables/`, `--full` takes the papers' own sizes,
`--data DIR` the original data files. The docstring of `figures/registry.py` says how to
add a figure.

Made by `python docs/make_figures.py`; seconds on one core ({machine}), computing, drawing
and writing. The first figure of a process also loads the libraries.

| id | in the paper | what | seconds | seconds with `--fast` |
|---|---|---|---|---|
"""
_TITLES = """
## Titles, and the words of the papers

Each picture's title says what is found with its numbers. Beside it: the sentence of the paper that
it is about, and where that stands; "…" is what is left out, or a formula that the text at hand has
lost. A title that says "printed" names the place, and its numbers stand there.

| id | title | the paper | where |
|---|---|---|---|
"""


def main() -> None:
    """Compute, store, list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="PAPER/ID")
    parser.add_argument("--size", choices=[Size.FAST.value, Size.DEFAULT.value])
    options = parser.parse_args()
    seconds, titles = _known()
    sizes = [Size(options.size)] if options.size else [Size.FAST, Size.DEFAULT]
    for name in registry.selected(options.only, []):
        for size in sizes:
            path = TABLES / production.stored_name(name, size)
            path.parent.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory() as folder:
                made = production.make(name, Settings(size=size), Path(folder))
                if made.error:
                    raise SystemExit(f"{name}: {made.error}")
                shutil.copyfile(production.files(name, Path(folder))[".csv"], path)
                about = production.provenance(name, Path(folder))
                if size is Size.DEFAULT and about is not None:
                    titles[name] = about["finding"]
            seconds[name, size] = made.seconds
            default = TABLES / production.stored_name(name, Size.DEFAULT)
            fast = TABLES / production.stored_name(name, Size.FAST)
            if fast.exists() and default.exists() and fast.read_bytes() == default.read_bytes():
                fast.unlink()  # what is the same is stored once
            sys.stderr.write(f"{name} ({size.value}): {made.seconds:.1f} s\n")
    _write(seconds, titles)


def _known() -> tuple[dict[tuple[str, Size], float], dict[str, str]]:
    """Return the seconds and the titles that the page has."""
    seconds, titles = {}, {}
    for line in PAGE.read_text("utf-8").splitlines() if PAGE.exists() else []:
        if row := _ROW.match(line):
            seconds[row[1], Size.DEFAULT] = float(row[2])
            seconds[row[1], Size.FAST] = float(row[3])
        elif row := _TITLE.match(line):
            titles[row[1]] = row[2].replace("\\|", "|")
    return seconds, titles


def _write(seconds: dict[tuple[str, Size], float], titles: dict[str, str]) -> None:
    lines = []
    for name in registry.FIGURES:
        about = registry.load(name).DESCRIPTION
        times = [f"{seconds.get((name, size), 0):.1f}" for size in (Size.DEFAULT, Size.FAST)]
        lines.append(f"| `{name}` | {about.number} | {about.title} | {' | '.join(times)} |")
    total = [
        f"{sum(seconds.get((name, size), 0) for name in registry.FIGURES):.0f}"
        for size in (Size.DEFAULT, Size.FAST)
    ]
    lines.append(f"| all | | {len(lines)} figures | {' | '.join(total)} |")
    head = _HEAD.format(machine=f"{platform.system()} {platform.machine()}")
    said = []
    for name in registry.FIGURES:
        about = registry.load(name).DESCRIPTION
        cells = (titles.get(name, ""), f"“{about.quote}”", about.where)
        escaped = " | ".join(cell.replace("|", "\\|") for cell in cells)
        said.append(f"| `{name}` | {escaped} |")
    page = head + "\n".join(lines) + "\n" + _TITLES + "\n".join(said) + "\n"
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()

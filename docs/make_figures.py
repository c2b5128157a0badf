"""Store the tables of the figures that `dpassay figures --check` compares with, and list them.

    python docs/make_figures.py [--only PAPER/ID]... [--size fast|default]

Computes the figures asked for (all by default) at both sizes, writes figures/tables/ and
docs/figures.md. The page keeps the titles of the figures that were not computed.
"""

from __future__ import annotations

import argparse
import json
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
_ROW = re.compile(r"\| `([^`]+)` \| (.*) \|$")
_HEAD = """\
# Figures

`dpassay figures` makes every figure below: PNG, PDF, SVG, the plotted numbers as CSV, provenance as
JSON, and a gallery page with the verdicts. `--fast` takes a reduced grid, `--check` compares
recomputed numbers with the tables in `figures/tables/`, `--data DIR` takes the original data:
`mnist.npz` and `cifar10.npz` with the arrays x_train, y_train, x_test and y_test,
`uber-raw-data-apr14.csv`, and `Swarm_Behaviour.csv`.

Each title is the finding of the figure. Only a title that says "Printed" quotes a number of the
paper. The gallery has the paper's sentence that each figure answers.

| id | title |
|---|---|
"""


def main() -> None:
    """Compute, store, list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="PAPER/ID")
    parser.add_argument("--size", choices=[Size.FAST.value, Size.DEFAULT.value])
    options = parser.parse_args()
    titles, known = _known(), production.stored_about()
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
                    known[name] = {key: about[key] for key in ("columns", "parameters")}
            default = TABLES / production.stored_name(name, Size.DEFAULT)
            fast = TABLES / production.stored_name(name, Size.FAST)
            if fast.exists() and default.exists() and fast.read_bytes() == default.read_bytes():
                fast.unlink()  # what is the same is stored once
            sys.stderr.write(f"{name} ({size.value}): {made.seconds:.1f} s\n")
    text = json.dumps(dict(sorted(known.items())), indent=1, ensure_ascii=False)
    (TABLES / production.ABOUT).write_text(text + "\n", encoding="utf-8")
    _write(titles)


def _known() -> dict[str, str]:
    """Return the titles that the page has."""
    lines = PAGE.read_text("utf-8").splitlines() if PAGE.exists() else []
    rows = filter(None, map(_ROW.match, lines))
    return {row[1]: row[2].replace("\\|", "|") for row in rows}


def _write(titles: dict[str, str]) -> None:
    escaped = {name: titles.get(name, "").replace("|", "\\|") for name in registry.FIGURES}
    rows = [f"| `{name}` | {title} |" for name, title in escaped.items()]
    PAGE.write_text(_HEAD + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

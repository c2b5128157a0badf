"""The list of figures, by id; a figure is imported when it is used.

To add a figure:

1. Write its words into `figures/words/PAPER.toml` (`dpassay.figures.description.Description`).
2. Write two functions into the module that these name, and add them to its PLOTS:

   * `compute(settings) -> Table`: all numbers that are drawn, in one table of long form (a label
     column such as `curve` or `panel`, then the coordinates), each column with its unit and the
     tolerance of `--check`. What the numbers depend on goes into the table's parameters. Chance
     comes from `settings.rng("what for")` only, sizes from `settings.pick(...)`;
   * `draw(table) -> Figure`: the picture, with `dpassay.figures.style.panels`; nothing is computed.
     Its title, by `dpassay.figures.style.finding`, is what a reader shall take away, with numbers
     of the table; it is kept as "finding" in the provenance.

   matplotlib, numpy, scipy and what is heavier are imported inside the functions.
3. Run `python docs/make_figures.py --only PAPER/ID`: it stores the tables that `--check` compares
   with, at the default and the reduced size, in `figures/tables/`, and writes `docs/figures.md`.
4. Add a test of the table against values from somewhere else, and look at the picture.

A figure that uses a stand-in for data says so on its face: put the words into the title, and the
kind of the data into the table's parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec

from dpassay.accountant.errors import InvalidInputError, NotApplicableError, suggestion
from dpassay.figures.description import Description, Plot, Plots, described

PAPERS = (
    "better-gaussian",
    "count-on-your-elders",
    "elliptical-gaussian",
    "count-queries",
    "less-is-more",
)
FIGURES = tuple(f"{paper}/{part}" for paper in PAPERS for part in described(paper))
"""The ids of all figures, in the order of the papers."""
EXTRAS = {"sklearn": "figures", "threadpoolctl": "figures"}
"""The extra that brings each module."""


def load(name: str) -> Plot:
    """Import a figure."""
    about = description(name)
    plots: Plots = import_module(f"dpassay.figures.{about.module}").PLOTS
    return Plot(about, *plots[name.partition("/")[2]])


def description(name: str) -> Description:
    """Return the words about a figure."""
    of_paper, _, part = name.partition("/")
    return described(of_paper)[part]


def paper(name: str) -> str:
    """Return the paper of a figure's id."""
    return name.partition("/")[0]


def selected(only: list[str], of_papers: list[str]) -> list[str]:
    """Return the ids that are asked for by id or by paper, all if nothing is asked for.

    Raises InvalidInputError if a figure or a paper is unknown.
    """
    for name in only:
        if name not in FIGURES:
            raise InvalidInputError(f"No figure has the id {name!r}. {suggestion(name, FIGURES)}")
    for name in of_papers:
        if name not in PAPERS:
            hint = suggestion(name, PAPERS)
            raise InvalidInputError(f"No paper with figures has the name {name!r}. {hint}")
    return [
        name
        for name in FIGURES
        if name in only or paper(name) in of_papers or not (only or of_papers)
    ]


def require(needs: Mapping[str, tuple[str, ...]]) -> None:
    """Do nothing if all modules are there that some figures, by their names, need.

    Raises NotApplicableError if one is missing; the message has the command that installs it.
    """
    missing = {
        figure: [name for name in modules if find_spec(name) is None]
        for figure, modules in needs.items()
    }
    lacking = [figure for figure, modules in missing.items() if modules]
    if lacking:
        extras = sorted({EXTRAS[name] for modules in missing.values() for name in modules})
        raise NotApplicableError(
            f"{', '.join(lacking)}: install what they need with pip install "
            f"'dpassay[{','.join(extras)}]' (in a clone, pip install '.[{','.join(extras)}]'), or "
            "name other figures with --only."
        )

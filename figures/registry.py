"""The list of figures by id. A figure's module is imported on first use.

To add a figure:

1. Describe it in `figures/words/PAPER.toml` (`dpassay.figures.description.Description`).
2. Write two functions in the module that the description names, and add them to its PLOTS:

   * `compute(settings) -> Table` computes all numbers in one table in long form: label columns such
     as `curve` or `panel`, then the coordinates, each with its unit and the tolerance of `--check`.
     Record in the table's parameters what the numbers depend on. Take random numbers only from
     `settings.rng("purpose")`, and sizes from `settings.pick(...)`.
   * `draw(table) -> Figure` draws the table with `dpassay.figures.style.panels` and computes
     nothing. Its title, set by `dpassay.figures.style.finding`, states the main finding with
     numbers from the table; the provenance keeps it as "finding".

   Import matplotlib, numpy, scipy and heavier modules inside the functions.
3. Run `python docs/make_figures.py --only PAPER/ID`. It stores the tables that `--check` compares
   with, at the default and the reduced size, in `figures/tables/`, and writes `docs/figures.md`.
4. Add a test that compares the table with independent values, and look at the picture.

A figure with stand-in data must say so in its title, and name the data in the table's parameters.
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
"""Maps optional modules to the extra that installs them."""


def load(name: str) -> Plot:
    """Import the module of a figure and return its functions."""
    about = description(name)
    plots: Plots = import_module(f"dpassay.figures.{about.module}").PLOTS
    return Plot(about, *plots[name.partition("/")[2]])


def description(name: str) -> Description:
    """Return the description of a figure."""
    of_paper, _, part = name.partition("/")
    return described(of_paper)[part]


def paper(name: str) -> str:
    """Return the paper's part of a figure's id."""
    return name.partition("/")[0]


def selected(only: list[str], of_papers: list[str]) -> list[str]:
    """Return the ids selected by id or by paper; all ids if both lists are empty.

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
    """Raise NotApplicableError if a module that one of the figures needs is not installed.

    `needs` maps ids to modules. The message contains the command that installs what is missing.
    """
    missing = {
        figure: [name for name in modules if find_spec(name) is None]
        for figure, modules in needs.items()
    }
    lacking = [figure for figure, modules in missing.items() if modules]
    if lacking:
        extras = sorted({EXTRAS[name] for modules in missing.values() for name in modules})
        raise NotApplicableError(
            f"{', '.join(lacking)}: install the modules they need with pip install "
            f"'dpassay[{','.join(extras)}]' (in a clone, pip install '.[{','.join(extras)}]'), or "
            "choose other figures with --only."
        )

"""The list of figures, by id; a figure is imported when it is used.

To add a figure:

1. Write, in the file of its paper, a `dpassay.figures.description.Description` (the paper's number,
   what is plotted, the paper's statement, the ids of the ledger's claims about it without the
   paper's name, the assumptions, a text alternative) and two functions:

   * `compute(settings) -> Table`: all numbers that are drawn, in one table of long form (a label
     column such as `curve` or `panel`, then the coordinates), each column with its unit and the
     tolerance of `--check`. What the numbers depend on goes into the table's parameters. Chance
     comes from `settings.rng("what for")` only, sizes from `settings.pick(...)`;
   * `draw(table) -> Figure`: the picture, with `dpassay.figures.style.panels`; nothing is computed.
     Its title, by `dpassay.figures.style.finding`, is what a reader shall take away, with numbers
     of the table; it is kept as "finding" in the provenance.

   Add the three to PLOTS at the end of the file. matplotlib, numpy, scipy and what is heavier are
   imported inside the functions.
2. Add a line to FIGURES below.
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
from dpassay.figures.description import Plot

FIGURES: dict[str, str] = {
    "better-gaussian/1": "better_gaussian",
    "better-gaussian/2": "better_gaussian",
    "better-gaussian/3": "better_gaussian",
    "count-on-your-elders/1": "count_on_your_elders",
    "count-on-your-elders/2": "count_on_your_elders",
    "count-on-your-elders/error-by-length": "count_on_your_elders",
    "count-on-your-elders/error-by-arity": "count_on_your_elders",
    "count-on-your-elders/crossover": "count_on_your_elders",
    "count-on-your-elders/laplace-variance": "count_on_your_elders",
    "count-on-your-elders/laplace-guarantee": "count_on_your_elders",
    "elliptical-gaussian/1": "elliptical_gaussian",
    "elliptical-gaussian/2": "elliptical_gaussian",
    "count-queries/1": "count_queries",
    "count-queries/2": "count_queries",
    "count-queries/3": "count_queries",
    "count-queries/4": "count_queries",
    "count-queries/composition": "count_queries",
    "less-is-more/1": "less_is_more.drawings",
    "less-is-more/2": "less_is_more.drawings",
    "less-is-more/3": "less_is_more.drawings",
    "less-is-more/4": "less_is_more.maps",
    "less-is-more/5": "less_is_more.losses",
    "less-is-more/6": "less_is_more.components",
    "less-is-more/7": "less_is_more.learning",
    "less-is-more/8": "less_is_more.learning",
    "less-is-more/9": "less_is_more.losses",
    "less-is-more/10": "less_is_more.maps",
    "less-is-more/11": "less_is_more.components",
    "less-is-more/table-1": "less_is_more.losses",
}
"""Module of each figure, in the order of the papers."""
EXTRAS = {"torch": "casestudies", "sklearn": "audit", "threadpoolctl": "audit"}
"""The extra that brings each module."""


def load(name: str) -> Plot:
    """Import a figure."""
    plots: dict[str, Plot] = import_module(f"dpassay.figures.{FIGURES[name]}").PLOTS
    return plots[name.partition("/")[2]]


def papers() -> list[str]:
    """Return the names of the papers that have figures."""
    return list(dict.fromkeys(paper(name) for name in FIGURES))


def paper(name: str) -> str:
    """Return the paper of a figure's id."""
    return name.partition("/")[0]


def selected(only: list[str], of_papers: list[str]) -> list[str]:
    """Return the ids that are asked for by id or by paper, all if nothing is asked for.

    Raises
    ------
    InvalidInputError
        If a figure or a paper is unknown.
    """
    for name in only:
        if name not in FIGURES:
            raise InvalidInputError(f"No figure has the id {name!r}. {suggestion(name, FIGURES)}")
    for name in of_papers:
        if name not in papers():
            hint = suggestion(name, papers())
            raise InvalidInputError(f"No paper with figures has the name {name!r}. {hint}")
    return [
        name
        for name in FIGURES
        if name in only or paper(name) in of_papers or not (only or of_papers)
    ]


def require(needs: Mapping[str, tuple[str, ...]]) -> None:
    """Do nothing if all modules are there that some figures, by their names, need.

    Raises
    ------
    NotApplicableError
        If one is missing; the message has the command that installs it.
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

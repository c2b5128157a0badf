"""Write the tables of docs/training.md and docs/matrix.md: what is exact, two-sided, refused.

    python docs/make_schemes.py

Every sampling under every neighbouring relation, and every participation of a matrix mechanism, are
asked; a test holds the pages to the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import dpassay
from dpassay.accountant.training.schemes import OWN, RELATIONS, SCHEMES, TRUNCATED

DOCS = Path(__file__).resolve().parent
BEGIN, END = "<!-- schemes:begin -->", "<!-- schemes:end -->"
DELTA = "1e-5"
_EXACT = Fraction(1, 10**5)
"""Relative width up to which an answer is called exact: all digits that are shown."""
_PARTICIPATIONS: dict[str, dict[str, Any]] = {
    "single": {"participation": "single"},
    "cyclic": {"participation": "cyclic", "separation": 10},
    "min-separation": {"participation": "min-separation", "separation": 10},
    "cyclic, sampled": {
        "participation": "cyclic",
        "separation": 10,
        "step_sampling_prob": "1/2",
    },
}
_STRATEGIES: dict[str, dict[str, Any]] = {
    '`"identity"`': {"strategy": "identity"},
    '`"square-root"`, 5 bands': {"strategy": "square-root", "bands": 5},
    '`"square-root"`': {"strategy": "square-root"},
    '`"tree"`, restarted': {"strategy": "tree", "bands": 10},
}


def cell(ask: Callable[[], dpassay.Interval]) -> str:
    """Return an answer with its kind."""
    try:
        found = ask()
    except dpassay.DpassayError:
        return "refused"
    width = found.relative_width
    if width is not None and width <= _EXACT:
        return f"{float(found.upper):.4g}"
    return f"[{float(found.lower):.4g}, {float(found.upper):.4g}]"


def samplings() -> Iterator[str]:
    """Yield the lines of the table of samplings."""
    yield "| sampling | neighbours | ε, one record | ε, a person with two |"
    yield "|---|---|---|---|"
    for sampling in SCHEMES:
        for relation in RELATIONS:

            def ask(group: int, sampling: str = sampling, relation: str = relation) -> Any:
                return dpassay.dpsgd(
                    2,
                    10,
                    100,
                    epochs=3,
                    delta=DELTA,
                    sampling=sampling,
                    neighbours=relation,
                    group=group,
                    truncated_batch_size=20 if sampling == TRUNCATED else None,
                ).epsilon

            own = " (own)" if OWN[sampling] == relation else ""
            cells = [cell(lambda ask=ask, k=k: ask(k)) for k in (1, 2)]  # type: ignore[misc]
            yield f"| {sampling} | {relation}{own} | {' | '.join(cells)} |"


def matrices() -> Iterator[str]:
    """Yield the lines of the table of matrix mechanisms."""
    yield f"| participation | neighbours | {' | '.join(_STRATEGIES)} |"
    yield "|---|---|" + "---|" * len(_STRATEGIES)
    for name, schema in _PARTICIPATIONS.items():
        for relation in ("add-remove", "replace-one"):

            def ask(given: dict[str, Any], schema: Any = schema, relation: Any = relation) -> Any:
                arguments = {"noise_multiplier": 4, "steps": 30, **given, **schema}
                made = dpassay.MatrixMechanism(**arguments)
                return dpassay.epsilon(made, DELTA, adjacency=relation)

            cells = [
                cell(lambda ask=ask, given=given: ask(given))  # type: ignore[misc]
                for given in _STRATEGIES.values()
            ]
            yield f"| {name} | {relation} | {' | '.join(cells)} |"


PAGES: dict[str, Callable[[], Iterator[str]]] = {"training.md": samplings, "matrix.md": matrices}


def written(page: str) -> tuple[str, str]:
    """Return a page, and what it should be."""
    text = (DOCS / page).read_text("utf-8")
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    table = "\n".join(PAGES[page]())
    return text, f"{head}{BEGIN}\n\n{table}\n\n{END}{tail}"


def main() -> None:
    """Write both tables."""
    for page in PAGES:
        (DOCS / page).write_text(written(page)[1], "utf-8")


if __name__ == "__main__":
    main()

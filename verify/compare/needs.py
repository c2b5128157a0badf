"""What a mechanism asks of the program that uses it, in a word, and whether libraries have it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dpassay.verifier.compare.candidate import Layout

if TYPE_CHECKING:
    from dpassay.verifier.compare.comparison import Row

_INTEGERS = ("DiscreteGaussian", "DiscreteLaplace", "IntegerNoise", "Skellam", "BoundedCountNoise")
_LOADERS = {
    "Poisson batches": "Poisson loader",
    "random allocation": "random steps",
    "batches without replacement": "fresh batches",
    "each record once": "any loader",
}
"""How batches are made, by how the name of a way to train begins."""
_COMMON = (
    "Poisson batches",
    "Gaussian",
    "Laplace",
    "discrete Gaussian",
    "discrete Laplace",
    "exponential mechanism",
    "permute-and-flip",
)
"""Candidates that dp-accounting, OpenDP, Opacus or diffprivlib can run."""
_RELATION = re.compile(r"\((add-remove|replace-one|zero-out)\)$")


def need(row: Row) -> str:
    """Return what the data or the program must have."""
    name = row.candidate.name
    loader = next((word for start, word in _LOADERS.items() if name.startswith(start)), "")
    if loader:
        return loader
    if row.found.layout is Layout.STREAM:
        return "state"
    return "integers" if type(row.found.mechanism).__name__ in _INTEGERS else "secure noise"


def is_common(row: Row) -> bool:
    """Whether usual libraries have it."""
    return row.candidate.name.startswith(_COMMON)


def relation_free(row: Row) -> str:
    """Return the name of a way to train without its relation."""
    return _RELATION.sub("", row.candidate.name).strip()


def relation(row: Row) -> str:
    """Return the neighbouring relation that the name of a way to train ends with; else empty."""
    found = _RELATION.search(row.candidate.name)
    return found[1] if found else ""

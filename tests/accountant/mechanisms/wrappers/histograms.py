"""Histograms of shuffled reports by enumeration, user by user and without any symmetry."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

Rows = Sequence[Sequence[Any]]
"""Of each record the probabilities of its reports: floats, fractions or numbers of mpmath."""


def bits(p: Any, q: Any, k: int) -> list[list[Any]]:
    """Return the rows of k bits: that of the own category is 1 with p, the others with q."""
    found = []
    for own in range(k):
        odds = [p if place == own else q for place in range(k)]
        rows = itertools.product((0, 1), repeat=k)
        found.append(
            [math.prod(o if b else 1 - o for o, b in zip(odds, row, strict=True)) for row in rows]
        )
    return found


def law(rows: Rows, records: Sequence[int], one: Any = 1.0) -> dict[tuple[int, ...], Any]:
    """Return the law of the histogram of all reports; `one` is the number 1."""
    found: dict[tuple[int, ...], Any] = {(0,) * len(rows[0]): one}
    for record in records:
        after: dict[tuple[int, ...], Any] = {}
        for counts, chance in found.items():
            for j, share in enumerate(rows[record]):
                more = (*counts[:j], counts[j] + 1, *counts[j + 1 :])
                after[more] = after.get(more, 0 * one) + chance * share
        found = after
    return found


def worst(rows: Rows, others: Sequence[int], bound: Any, one: Any = 1.0) -> Any:
    """Return δ(ln bound) over all changes of one record beside the records of the others."""
    laws = [law(rows, [own, *others], one) for own in range(len(rows))]
    return max(
        sum((max(p[h] - bound * q[h], 0 * one) for h in p), start=0 * one)
        for p, q in itertools.permutations(laws, 2)
    )


def worst_of_all(rows: Rows, users: int, bound: Any, one: Any = 1.0) -> Any:
    """Return δ(ln bound) over all datasets."""
    everybody = itertools.combinations_with_replacement(range(len(rows)), users - 1)
    return max(worst(rows, others, bound, one) for others in everybody)

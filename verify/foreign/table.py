"""A profile as a table: a lower and an upper bound of δ at every ε of a grid."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.numbers.exact import ExactReal, Number, exact
from dpassay.accountant.questions import profile

_PARTS = 3
"""Parts of a grid A:B:N."""
_MOST = 1_000_000
"""Points of a grid."""


def read_grid(text: str) -> list[ExactReal]:
    """Return N evenly spaced numbers from A to B, both among them, of the text A:B:N.

    Raises InvalidInputError for anything else.
    """
    parts = text.split(":")
    try:
        low, high, size = exact(parts[0]).rational, exact(parts[1]).rational, int(parts[2])
    except (IndexError, ValueError):
        low = high = None
        size = 0
    if low is None or high is None or len(parts) != _PARTS or not 2 <= size <= _MOST or low >= high:
        raise InvalidInputError(
            f"Expected a grid A:B:N of N from 2 to {_MOST} rational numbers from A to B > A, such "
            f"as 0:5:51, not {text!r}."
        )
    step = (high - low) / (size - 1)
    return [ExactReal.of_rational(low + i * step) for i in range(size)]


def profile_table(
    mechanism: Mechanism,
    epsilons: Sequence[Number],
    *,
    adjacency: Adjacency | str | None = None,
    relative_width: Number | None = None,
) -> str:
    """Return CSV with the columns epsilon, delta_lower and delta_upper.

    Both bounds are proved, and rounded outward.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["epsilon", "delta_lower", "delta_upper"])
    for epsilon in epsilons:
        at = exact(epsilon, "epsilon")
        found = profile.delta(mechanism, at, adjacency=adjacency, relative_width=relative_width)
        writer.writerow([str(at), *found.to_json().values()])
    return file.getvalue()

"""The guarantee of one release, (ε, δ), as an exact pair of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

from accountant.core.validate import NonNegative, Probability, integer
from accountant.errors import InvalidInputError
from accountant.numbers.exact import Number


@final
@dataclass(frozen=True)
class Guarantee:
    """(ε, δ)-DP of one release, with ε ≥ 0 and δ in [0, 1]."""

    epsilon: NonNegative = NonNegative()
    delta: Probability = Probability(0)


Repeated: TypeAlias = tuple[Guarantee, int]
Given: TypeAlias = Iterable[tuple[Number, Number] | tuple[Number, Number, int]]
"""(ε, δ) or (ε, δ, count) of each release."""


def read(releases: Given) -> Sequence[Repeated]:
    """Read a list of guarantees.

    Raises InvalidInputError for an empty list, a count below 1 or an entry of another length.
    """
    found: list[Repeated] = []
    for index, entry in enumerate(releases):
        if len(entry) not in (2, 3):
            raise InvalidInputError(
                f"Expected releases[{index}] to be (epsilon, delta) or (epsilon, delta, count)."
            )
        count = integer(f"releases[{index}].count", entry[2] if len(entry) > 2 else 1, least=1)
        found.append((Guarantee(entry[0], entry[1]), count))
    if not found:
        raise InvalidInputError("Expected at least one release.")
    return found

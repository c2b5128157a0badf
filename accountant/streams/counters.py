"""The streaming form of any mechanism for continual counting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from accountant import notation
from accountant.errors import InvalidInputError, expected
from accountant.mechanisms.discrete_kary_tree import DiscreteKaryTree
from accountant.mechanisms.kary_tree import KaryTree
from accountant.mechanisms.linear_counter import LinearCounter
from accountant.streams.stream_counter import StreamCounter
from accountant.streams.tree_counter import TreeCounter

if TYPE_CHECKING:
    import numpy as np

Counter: TypeAlias = TreeCounter | StreamCounter


def counter_of(mechanism: object, *, rng: np.random.Generator, lattice: bool = False) -> Counter:
    """Return a counter at its beginning.

    With `lattice` its outputs are multiples of one power of two (or integers, of
    `DiscreteKaryTree`), without a channel in their bits.

    Raises InvalidInputError for what is not for streams.
    """
    if isinstance(mechanism, (KaryTree, DiscreteKaryTree)):
        return TreeCounter(mechanism, rng=rng, lattice=lattice)
    if isinstance(mechanism, LinearCounter):
        return StreamCounter(mechanism, rng=rng, lattice=lattice)
    raise expected(
        "mechanism",
        mechanism,
        "to be for streams",
        "Known: BinaryTree, BridgedTree, DelannoyCounter, DiscreteKaryTree, HonakerTree, KaryTree, "
        "SmoothBinary, SquareRootFactorization.",
    )


def continued(record: dict[str, Any], *, rng: np.random.Generator) -> Counter:
    """Continue from a record of any counter.

    Raises InvalidInputError where it is not one.
    """
    try:
        mechanism = notation.parse(record["mechanism"])
    except (KeyError, TypeError) as error:
        raise InvalidInputError(f"This is not the record of a counter: {error!r}.") from error
    if isinstance(mechanism, LinearCounter):
        return StreamCounter.of_record(record, rng=rng)
    return TreeCounter.of_record(record, rng=rng)

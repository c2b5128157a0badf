"""The streaming form of any mechanism for continual counting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from accountant import notation
from accountant.core.randomness import SECURE
from accountant.counting.streams.stream_counter import StreamCounter
from accountant.counting.streams.tree_counter import TreeCounter
from accountant.errors import InvalidInputError, expected
from accountant.mechanisms.counting.discrete_kary_tree import DiscreteKaryTree
from accountant.mechanisms.counting.kary_tree import KaryTree
from accountant.mechanisms.counting.linear_counter import LinearCounter

if TYPE_CHECKING:
    from accountant.core.randomness import Randomness

Counter: TypeAlias = TreeCounter | StreamCounter


def counter_of(
    mechanism: object, *, rng: Randomness = SECURE, insecure_floats: bool = False
) -> Counter:
    """Return a counter at its beginning.

    Its outputs are multiples of one power of two (integers, of `DiscreteKaryTree`) and its noise
    is the operating system's, so that neither the bits nor the noise tell about the inputs. With
    `insecure_floats`, or a generator of NumPy, they may: that is for simulation.

    Raises InvalidInputError for what is not for streams.
    """
    if isinstance(mechanism, (KaryTree, DiscreteKaryTree)):
        return TreeCounter(mechanism, rng=rng, insecure_floats=insecure_floats)
    if isinstance(mechanism, LinearCounter):
        return StreamCounter(mechanism, rng=rng, insecure_floats=insecure_floats)
    raise expected(
        "mechanism",
        mechanism,
        "to be for streams",
        "Known: BinaryTree, BridgedTree, DelannoyCounter, DiscreteKaryTree, HonakerTree, KaryTree, "
        "NormalizedSquareRoot, SmoothBinary, SquareRootFactorization.",
    )


def continued(record: dict[str, Any], *, rng: Randomness = SECURE) -> Counter:
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

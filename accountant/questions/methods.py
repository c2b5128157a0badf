"""The worst pairs of a composition in the form that an engine takes, chosen by name."""

from __future__ import annotations

from itertools import product

from dpassay.accountant.composition.choose import FOR, METHODS, RENAMED, engine
from dpassay.accountant.composition.product import apart, is_numerical
from dpassay.accountant.core.adjacency import Adjacency, Direction
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.errors import InvalidInputError, NotApplicableError, suggestion
from dpassay.accountant.mechanisms.wrappers.composed import Composed


def pairs_of(
    mechanism: Mechanism,
    method: str,
    adjacency: Adjacency | None,
    direction: Direction | None = None,
) -> tuple[Pair, ...]:
    """Return the worst pairs in the form that an engine takes.

    Composition is adaptive throughout: an engine is asked about the product of the worst pairs,
    which dominates releases that depend on each other's outputs.

    Raises
    ------
    InvalidInputError
        If there is no engine of that name.
    NotApplicableError
        If the engine does not apply; the message says which ones do.
    """
    if method in RENAMED:
        raise InvalidInputError(
            f"method={method!r} is now method={RENAMED[method]!r}. Ask with that."
        )
    if method not in METHODS:
        raise InvalidInputError(
            f"Expected method={method!r} to be one of {', '.join(METHODS)}. "
            f"{suggestion(method, METHODS, listed=False)}".rstrip()
        )
    found = _pairs(mechanism, method, adjacency, direction)
    if found is None:
        others = [f"'{name}'" for name in applicable(mechanism, adjacency)]
        raise NotApplicableError(f"{FOR[method]} Ask with method={' or '.join(others)}.")
    return found


def applicable(mechanism: Mechanism, adjacency: Adjacency | None) -> list[str]:
    """Return the names of the engines that apply, "auto" first."""
    return [name for name in METHODS if _pairs(mechanism, name, adjacency, None) is not None]


def _pairs(
    mechanism: Mechanism, method: str, adjacency: Adjacency | None, direction: Direction | None
) -> tuple[Pair, ...] | None:
    """Return the same, None where the engine does not apply."""
    pairs = mechanism.worst_case(adjacency).pairs(direction)
    if method == "auto" or (method == "exact" and not any(map(is_numerical, pairs))):
        return pairs
    if any(pair.only_bounded for pair in pairs):  # H is not that of a product
        return None
    cases = [(part.worst_case(adjacency), n) for part, n in Composed(mechanism).parts()]
    remove = _each(method, [(case.remove, count) for case, count in cases])
    add = _each(method, [(case.add, count) for case, count in cases])
    if remove is None or add is None:
        return None
    both = {Direction.REMOVE: remove, Direction.ADD: add}
    return both[direction] if direction else tuple(dict.fromkeys(remove + add))


def _each(method: str, cases: list[tuple[tuple[Pair, ...], int]]) -> tuple[Pair, ...] | None:
    """Return all worst pairs; None where an engine is not for them, or releases choose one."""
    counts = [count for _, count in cases]
    if sum(counts) > 1 and any(len(pairs) > 1 for pairs, _ in cases):
        return None
    choices = product(*(pairs for pairs, _ in cases))
    made = [engine(method, apart(list(zip(choice, counts, strict=True)))) for choice in choices]
    found = tuple(pair for pair in made if pair is not None)
    return found if len(found) == len(made) else None

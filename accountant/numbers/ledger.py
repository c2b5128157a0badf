"""Whether floats with an error ledger are part of what supports a number.

Some engines of compositions bound errors, or form sums, in floats that IEEE 754 rounds, and add a
bound of all rounding errors to a ball. What rests on them is an enclosure, but not one of ball
arithmetic alone. They say so here, and whoever draws a conclusion watches.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_watch: ContextVar[set[str] | None] = ContextVar("watch", default=None)


def note(engine: str) -> None:
    """Say that an engine whose floats have an error ledger is asked."""
    used = _watch.get()
    if used is not None:
        used.add(engine)


@contextmanager
def watched() -> Iterator[set[str]]:
    """Collect the names of the engines that are asked inside, also for a watch around it."""
    used: set[str] = set()
    outer = _watch.get()
    token = _watch.set(used)
    try:
        yield used
    finally:
        _watch.reset(token)
        if outer is not None:
            outer |= used

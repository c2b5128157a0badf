"""flint's precision, for one thread at a time.

flint keeps one precision, and one length of power series, for the whole process. A thread that
sets either holds a lock until it is done, so that no other changes it meanwhile: every thread
computes with what it asked for. The lock is re-entrant, as computations are nested.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, final

import flint

from dpassay.accountant.errors import UndecidedError

MOST_BITS = 1 << 26
"""Largest precision: 8 MB a number. What needs more would take hours, and gigabytes."""

_T = TypeVar("_T")
_lock = threading.RLock()


@final
class _Context:
    """What this package uses of flint's context."""

    @property
    def prec(self) -> int:
        """The current precision in bits."""
        return int(flint.ctx.prec)

    @contextmanager
    def workprec(self, bits: int) -> Iterator[None]:
        """Compute with so many bits.

        Raises UndecidedError where numbers of so many would fill the memory.
        """
        if bits > MOST_BITS:
            raise UndecidedError(
                f"This needs numbers of {bits:.3g} bits, more than the {MOST_BITS} allowed: an "
                "argument is too large or too small. Give one that is nearer to 1."
            )
        with _lock, flint.ctx.workprec(bits):
            yield

    @contextmanager
    def workcap(self, length: int) -> Iterator[None]:
        """Keep so many terms of each power series."""
        with _lock:
            before = flint.ctx.cap
            flint.ctx.cap = length
            try:
                yield
            finally:
                flint.ctx.cap = before


ctx = _Context()


class cached_property(functools.cached_property[_T]):  # noqa: N801 (it stands for functools' own)
    """A cached property whose value may take the lock of the precision.

    Before Python 3.12 the original has a lock of its own: two threads that take both in different
    orders would wait for each other for ever.
    """

    def __init__(self, compute: Callable[[Any], _T]) -> None:
        super().__init__(compute)
        self.lock = _lock


# --- Whether floats with an error ledger are part of what supports a number -----------------------
# Some engines of compositions bound errors, or form sums, in floats that IEEE 754 rounds, and add a
# bound of all rounding errors to a ball. What rests on them is an enclosure, but not one of ball
# arithmetic alone. They say so here, and whoever draws a conclusion watches.

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

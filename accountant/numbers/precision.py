"""flint's precision, which one thread at a time may set.

flint has one precision, and one length of power series, for the whole process. A thread that sets
either holds a lock until it is done, so no other thread can change it meanwhile. The lock is
re-entrant because computations are nested.
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
"""Largest precision: 8 MB a number. More would take hours and gigabytes."""

_T = TypeVar("_T")
_lock = threading.RLock()


@final
class _Context:
    """The part of flint's context that this package uses."""

    @property
    def prec(self) -> int:
        """The current precision in bits."""
        return int(flint.ctx.prec)

    @contextmanager
    def workprec(self, bits: int) -> Iterator[None]:
        """Set the precision, in bits, inside a `with` block.

        Raises UndecidedError above `MOST_BITS`, where numbers would fill the memory.
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
        """Set the length at which power series are truncated inside a `with` block."""
        with _lock:
            before = flint.ctx.cap
            flint.ctx.cap = length
            try:
                yield
            finally:
                flint.ctx.cap = before


ctx = _Context()


class cached_property(functools.cached_property[_T]):  # noqa: N801 (it stands for functools' own)
    """A cached property whose computation may take the lock of the precision.

    Before Python 3.12, `functools.cached_property` has a lock of its own. Two threads that take
    both locks in different orders would deadlock.
    """

    def __init__(self, compute: Callable[[Any], _T]) -> None:
        super().__init__(compute)
        self.lock = _lock


# --- Record of the engines whose enclosures rest on floats with proved error bounds ---------------
# Some composition engines bound errors, or form sums, in IEEE 754 floats and add a bound on all
# rounding errors to a ball. Their result is an enclosure, but not one of ball arithmetic alone.
# They note this here; code that draws a conclusion collects the notes with `watched`.

_watch: ContextVar[set[str] | None] = ContextVar("watch", default=None)


def note(engine: str) -> None:
    """Record that an engine of this kind was used."""
    used = _watch.get()
    if used is not None:
        used.add(engine)


@contextmanager
def watched() -> Iterator[set[str]]:
    """Collect the names of the engines used inside the block; an outer `watched` gets them too."""
    used: set[str] = set()
    outer = _watch.get()
    token = _watch.set(used)
    try:
        yield used
    finally:
        _watch.reset(token)
        if outer is not None:
            outer |= used

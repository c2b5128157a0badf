"""What one call of `verify` or `check` may spend: processor time and memory.

A thread looks on while the call runs, and stops it where too much is spent. Numbers that would grow
without end are held as balls (`MOST_BITS`), and the cases of a claim are counted before anything is
computed (`rules.MOST_CASES`).
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar, final

SECONDS = 300
"""Of processor time for one claim or certificate."""
BYTES = 2 * 10**9
"""Of memory for it, besides what the program has when it begins."""
MOST_BITS = 1 << 17
"""Of a rational number that is kept exactly; a longer one becomes a ball."""
_GLANCE = 0.05
"""Seconds between two looks at what is spent."""

Answer = TypeVar("Answer")
Parameters = ParamSpec("Parameters")
_running = threading.local()


class SpentError(Exception):
    """The budget of a call is spent; the message says of what."""


class _Stop(BaseException):
    """Raised inside the call; nothing there may catch it."""


def within_budget(
    function: Callable[Parameters, Answer], *values: Parameters.args, **named: Parameters.kwargs
) -> Answer:
    """Call a function within the budget; a call inside another one shares that one's.

    Raises SpentError where it takes more.
    """
    if getattr(_running, "watch", None) is not None:
        return function(*values, **named)
    seconds, memory = SECONDS, BYTES
    _running.watch = watch = _Watch(seconds, memory)
    try:
        with watch:
            return function(*values, **named)
    except _Stop:
        raise SpentError(
            f"it takes more than {seconds} s of processor time, or {memory // 10**6} MB of memory"
        ) from None
    finally:
        _running.watch = None


@final
class _Watch:
    """A thread that stops the one that made it where too much is spent."""

    def __init__(self, seconds: float, memory: int) -> None:
        self._target = threading.get_ident()
        self._time = _processor_time(self._target)
        self._end, self._most = self._time() + seconds, _memory() + memory
        self._lock, self._over = threading.Lock(), threading.Event()
        self._sent = False
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._lock:
            self._over.set()
        # What was sent and has not arrived is waited for: the interpreter does not forget a
        # withdrawn exception, and under a profiler it would never go on.
        with suppress(_Stop):
            while self._sent and kind is not _Stop:
                time.sleep(0)

    def _look(self) -> None:
        while not self._over.wait(_GLANCE):
            if self._time() > self._end or _memory() > self._most:
                with self._lock:
                    if not self._over.is_set():
                        self._sent = True
                        _raise_in(self._target, _Stop)
                return


def _raise_in(thread: int, kind: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind))


def _processor_time(thread: int) -> Callable[[], float]:
    """Return a clock of one thread where the system has one, else that of the wall."""
    with suppress(AttributeError, OSError):
        clock: Any = time.pthread_getcpuclockid(thread)
        return lambda: time.clock_gettime(clock)
    return time.monotonic


def _memory() -> int:
    """Return what this process has in memory; 0 where the system does not say."""
    with suppress(OSError, ValueError, AttributeError), open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0

"""Calls in a process of their own, which has so much time and memory for each of them.

A call that takes more ends that process, and nothing else; the next one has a new process. Nothing
has to be interrupted in the middle of a calculation.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, final

from dpassay.verifier.kernel import Checked, check
from dpassay.verifier.kernel.check import BYTES, SECONDS

_PATIENCE = 20
"""How much longer a call may take by the clock, on a machine that is busy."""


@final
class Limited(AbstractContextManager["Limited"]):
    """A function of one argument that is called in a process of its own."""

    def __init__(self, function: Callable[[Any], Any], *, seconds: int, memory: int) -> None:
        self._function, self._seconds, self._memory = function, seconds, memory
        self._process: BaseProcess | None = None

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self._end()

    def call(self, argument: Any) -> tuple[Any, str]:
        """Return what the function returns, or None and why there is nothing."""
        if self._process is None:
            self._start()
        started = time.monotonic()
        try:
            self._pipe.send(argument)
            if self._pipe.poll(self._seconds * _PATIENCE):
                result: tuple[Any, str] = self._pipe.recv()
                return result
        except (EOFError, OSError):
            pass
        self._end()
        limits = f"{self._seconds} s of processor time, or {self._memory // 10**6} MB of memory"
        return None, f"ended after {time.monotonic() - started:.0f} s: it takes more than {limits}"

    def _start(self) -> None:
        # Copying this process is fast; it is safe on Linux, where the child touches no threads.
        context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
        self._pipe, there = context.Pipe()
        arguments = (there, self._function, self._seconds, self._memory)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads of the caller
            self._process.start()
        there.close()

    def _end(self) -> None:
        if self._process is not None:
            self._pipe.close()
            self._process.kill()
            self._process.join()
            self._process = None


def check_all(
    certificates: Iterable[Any], *, seconds: int = SECONDS, memory: int = BYTES
) -> Iterator[Checked]:
    """Check certificates, each within the limits, and yield what is found."""
    with Limited(check, seconds=seconds, memory=memory) as limited:
        for data in certificates:
            found, why = limited.call(data)
            unchecked = f"the theorem itself, which was not checked: the check {why}"
            yield Checked(assumptions=(unchecked,)) if found is None else found


def _serve(pipe: Connection, function: Callable[[Any], Any], seconds: int, memory: int) -> None:
    """Answer what comes until nothing does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, and ends this
    _limit_memory(memory)
    with suppress(EOFError, OSError):
        while True:
            argument = pipe.recv()
            _limit_time(seconds)
            try:
                found = function(argument), ""
            except MemoryError:
                return
            except Exception as error:  # noqa: BLE001  (a stranger's data may find any mistake)
                found = None, f"stopped with {type(error).__name__}: {error}. Please report it"
            pipe.send(found)


def _limit_time(seconds: int) -> None:
    """Let the system end this process after so much more processor time."""
    with suppress(ImportError):
        import resource

        until = math.ceil(time.process_time()) + seconds
        resource.setrlimit(resource.RLIMIT_CPU, (until, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _limit_memory(memory: int) -> None:
    """Refuse this process more memory than it has now and so much more."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with open("/proc/self/statm", encoding="ascii") as file:
            now = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (now + memory, now + memory))

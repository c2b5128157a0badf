"""Work in other processes: pools that end with their parent, and calls with limits."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any, final

from dpassay.accountant.errors import NotApplicableError

if TYPE_CHECKING:
    from dpassay.verifier.kernel import Checked

# --- Processes that work for another one, and end when it does ------------------------------------

_POLL_SECONDS = 1.0
"""Seconds between two looks at whether the parent is still there."""


@contextmanager
def workers(count: int, what: str, advice: str) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of processes, which are stopped when it is left, for whatever reason.

    Raises NotApplicableError, with what a process did and advice, if one is stopped from outside.
    """
    executor = ProcessPoolExecutor(
        count,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=work_for,
        initargs=(os.getpid(),),
    )
    try:
        yield executor
    except BrokenProcessPool:
        raise NotApplicableError(
            f"A process that {what} was stopped from outside, as happens where memory runs out. "
            f"{advice}"
        ) from None
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        executor.shutdown()


def work_for(parent: int) -> None:
    """Leave interrupts to the parent, and end with it: an `initializer` of worker processes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with(parent)


def end_with(parent: int) -> None:
    """Let this process end soon after its parent: an `initializer` of worker processes.

    The workers of a pool whose parent is killed would wait for ever.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_POLL_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


# --- Calls in a process of their own, which has so much time and memory for each of them ----------
# A call that takes more ends that process, and nothing else; the next one has a new process.
# Nothing has to be interrupted in the middle of a calculation.

_CLOCK_FACTOR = 20
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
            if self._pipe.poll(self._seconds * _CLOCK_FACTOR):
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
    certificates: Iterable[Any], *, seconds: int | None = None, memory: int | None = None
) -> Iterator[Checked]:
    """Check certificates, each within the limits (of the kernel), and yield what is found."""
    from dpassay.verifier.kernel import Checked, check
    from dpassay.verifier.kernel.check import BYTES, SECONDS

    with Limited(check, seconds=seconds or SECONDS, memory=memory or BYTES) as limited:
        for data in certificates:
            found, why = limited.call(data)
            unchecked = f"the theorem itself, which was not checked: the check {why}"
            yield Checked(assumptions=(unchecked,)) if found is None else found


def _serve(pipe: Connection, function: Callable[[Any], Any], seconds: int, memory: int) -> None:
    """Answer requests until the pipe is closed."""
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

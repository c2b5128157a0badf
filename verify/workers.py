"""Processes that work for another one, and end when it does."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from dpassay.accountant.errors import NotApplicableError

_GLANCE = 1.0
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
            time.sleep(_GLANCE)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()

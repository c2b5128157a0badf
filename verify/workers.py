"""Processes that work for another one, and end when it does."""

from __future__ import annotations

import os
import signal
import threading
import time

_GLANCE = 1.0
"""Seconds between two looks at whether the parent is still there."""


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

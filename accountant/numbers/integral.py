"""Integration that Ctrl-C can interrupt.

flint does not pass on an exception raised inside a callback: the integration continues, each
further call raises another exception on top of it, and the chain finally crashes the interpreter.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from flint import acb, arb

Integrand = Callable[[acb, bool], acb]


def integral(f: Integrand, left: arb, right: arb, **limits: Any) -> acb:
    """Return `acb.integral`. An interrupt (Ctrl-C) ends it early and is delivered afterwards.

    After an interrupt the integrand returns NaN, so that the result is still an enclosure if the
    handler of the interrupt raises no exception.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        return acb.integral(f, acb(left), acb(right), **limits)
    frames: list[FrameType | None] = []

    def until_interrupted(x: acb, analytic: bool) -> acb:
        return acb(arb.nan()) if frames else f(x, analytic)

    signal.signal(signal.SIGINT, lambda _, frame: frames.append(frame))
    try:
        value = acb.integral(until_interrupted, acb(left), acb(right), **limits)
    finally:
        signal.signal(signal.SIGINT, handler)
    if frames:
        handler(signal.SIGINT, frames[0])
    return value

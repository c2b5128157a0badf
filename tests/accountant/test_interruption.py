"""Ctrl-C during an integration is neither lost nor a crash."""

from __future__ import annotations

import os
import signal
from types import FrameType

import pytest
from flint import acb, arb

from accountant.pairs.rank_one.interruption import integral


def test_an_integral_that_is_not_interrupted() -> None:
    value = integral(lambda x, _: x.exp(), arb(0), arb(1))
    assert value.real.contains(arb(1).expm1())
    assert value.real.rel_accuracy_bits() > 40


def test_an_interrupt_is_delivered_after_the_integration() -> None:
    calls = []

    def interrupted(x: acb, analytic: bool) -> acb:
        calls.append(analytic)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return x.exp()

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        integral(interrupted, arb(0), arb(1))
    assert len(calls) == 3
    assert signal.getsignal(signal.SIGINT) is before


def test_a_handler_that_goes_on_gets_an_enclosure() -> None:
    noted: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        noted.append(number)

    def interrupted(x: acb, _: bool) -> acb:
        if not noted:
            os.kill(os.getpid(), signal.SIGINT)
        return x.exp()

    before = signal.signal(signal.SIGINT, note)
    try:
        value = integral(interrupted, arb(0), arb(1))
    finally:
        signal.signal(signal.SIGINT, before)
    assert noted == [signal.SIGINT]
    assert not value.real.is_finite()

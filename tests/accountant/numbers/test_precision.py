"""Threads that ask at once: each computes with the precision that it set."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import flint
import pytest
from flint import arb

from accountant.errors import UndecidedError
from accountant.mechanisms import Composed, Gaussian, HonakerTree, Laplace
from accountant.numbers.interval import enclose
from accountant.numbers.precision import cached_property, ctx
from accountant.questions import profile

WIDE, NARROW = Fraction(1, 10**6), Fraction(1, 10**200)
_PATIENCE = 0.3
"""Seconds that a thread leaves to the other one, which may be waiting for it."""


@pytest.fixture
def impatient() -> Iterator[None]:
    """Let threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def both(first: Callable[[], Any], second: Callable[[], Any]) -> tuple[Any, Any]:
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.submit(first), pool.submit(second)
        return one.result(timeout=60), other.result(timeout=60)


def test_a_thread_keeps_its_precision_while_another_one_asks() -> None:
    inside, asked, read = (threading.Event() for _ in range(3))
    seen: list[int] = []

    def slow() -> arb:
        seen.append(ctx.prec)
        inside.set()
        asked.wait(_PATIENCE)
        seen.append(ctx.prec)
        read.set()
        return arb.pi()

    def quick() -> arb:
        asked.set()
        read.wait(_PATIENCE)
        return arb.pi()

    def after() -> Any:
        inside.wait()
        return enclose(quick, relative_width=WIDE)

    before = int(flint.ctx.prec)
    both(lambda: enclose(slow, relative_width=NARROW), after)
    assert seen[0] == seen[1]
    assert int(flint.ctx.prec) == before


def test_a_thread_keeps_its_length_of_series() -> None:
    inside, asked, read = (threading.Event() for _ in range(3))

    def long() -> int:
        with ctx.workcap(20):
            inside.set()
            asked.wait(_PATIENCE)
            terms = len(flint.arb_series([1, 1]).exp())
            read.set()
            return terms

    def short() -> int:
        inside.wait()
        with ctx.workcap(3):
            asked.set()
            read.wait(_PATIENCE)
            return len(flint.arb_series([1, 1]).exp())

    assert both(long, short) == (20, 3)


def test_answers_are_as_narrow_as_asked(impatient: None) -> None:
    """Mechanisms of several kinds, from two threads; nothing is shared but the caches."""
    mechanisms = [Gaussian(3), Laplace(2), Composed(Laplace(3), 4)]

    def ask(width: Fraction) -> list[Any]:
        return [
            profile.delta(mechanism, Fraction(k, 7), relative_width=width).relative_width
            for k in range(12)
            for mechanism in mechanisms
        ]

    wide, narrow = both(lambda: ask(WIDE), lambda: ask(NARROW))
    assert all(found <= WIDE for found in wide)
    assert all(found <= NARROW for found in narrow)


@pytest.mark.parametrize("epsilon", ["1e12", "1e30", "1e300"])
def test_numbers_that_would_fill_the_memory_are_refused(epsilon: str) -> None:
    """δ(0) of a tree of Laplace noise is 1 − e^{−ε/2} and the like: so many bits show it."""
    with pytest.raises(UndecidedError, match="Give one that is nearer to 1"):
        profile.delta(HonakerTree(steps=1000, epsilon=epsilon), 0, relative_width=WIDE)
    found = profile.delta(HonakerTree(steps=1000, epsilon=epsilon), 0)
    assert (str(found.lower), str(found.upper)) == ("0", "1")


class Law:
    """Something whose cached value takes the lock."""

    inside = threading.Event()

    @cached_property
    def value(self) -> int:
        """Set inside and outside of another precision."""
        self.inside.set()
        with ctx.workprec(99):
            return ctx.prec


def test_a_cached_value_does_not_make_two_threads_wait_for_each_other() -> None:
    held = threading.Event()

    def precision_first() -> int:
        with ctx.workprec(64):
            held.set()
            Law.inside.wait(_PATIENCE)
            return Law().value

    def value_first() -> int:
        held.wait()
        return Law().value

    assert both(precision_first, value_first) == (99, 99)

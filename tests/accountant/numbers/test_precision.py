"""Threads that ask at once, interrupts, and numbers whose exponent is too long to write out."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from typing import Any

import flint
import pytest
from flint import acb, arb

from dpassay.accountant.mechanisms import BinaryTree, Composed, Gaussian, Laplace
from dpassay.accountant.numbers import interval
from dpassay.accountant.numbers.integral import integral
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.questions import profile

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
def test_numbers_that_would_fill_the_memory_are_rounded(epsilon: str) -> None:
    """δ(0) of a tree of Laplace noise is 1 − e^{−ε/2} and the like: so many bits show it."""
    found = profile.delta(BinaryTree(steps=1000, epsilon=epsilon), 0, relative_width=WIDE)
    assert 1 - WIDE < found.lower < found.upper == 1


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


@pytest.mark.parametrize(
    ("sign", "base", "power", "divisor"),
    [
        (1, 2, -40000, 3),
        (1, 2, 40000, 7),
        (-1, 2, -70000, 3),
        (1, 10, -12000, 1),
        (1, 10, 12000, 1),
    ],
)
def test_scaling_agrees_with_the_exact_expansion(
    sign: int, base: int, power: int, divisor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ctx.workprec(200):
        ball = sign * arb(base) ** power / divisor
        scaled = Interval.of_ball(ball)
        monkeypatch.setattr(interval, "LONGEST_EXPANSION", 1 << 40)
        written = Interval.of_ball(ball)
    assert scaled.lower <= written.lower <= written.upper <= scaled.upper
    assert (scaled.upper - scaled.lower) <= abs(scaled.lower) * Decimal("2e-39")


def test_the_smallest_probabilities_are_enclosed() -> None:
    # e^{−8·10⁸}, whose exact binary fraction has a billion digits
    with ctx.workprec(200):
        found = Interval.of_ball((-arb(8) * 10**8).exp())
    assert str(found.lower).startswith("3.0019160158007233843836718676")
    assert found.lower.adjusted() == found.upper.adjusted() == -347435586


def test_beyond_every_decimal_the_ends_still_enclose() -> None:
    with ctx.workprec(200):
        tiny, huge = (-arb(8) * 10**20).exp(), (arb(8) * 10**20).exp()
        assert Interval.of_ball(tiny).lower == 0
        assert Interval.of_ball(-tiny).upper == 0
        assert 0 < Interval.of_ball(tiny).upper < Decimal("1e-400000000000000000")
        assert Interval.of_ball(huge).upper == Decimal("Infinity")
        assert Interval.of_ball(-huge).upper < Decimal("-1e400000000000000000")

"""Enclosures of numbers whose binary exponent is too long to write out."""

from __future__ import annotations

from decimal import Decimal

import pytest
from flint import arb, ctx

from accountant.numbers import interval
from accountant.numbers.interval import Interval


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
        monkeypatch.setattr(interval, "_LONGEST_EXPANSION", 1 << 40)
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

"""The tilted sum of laws on a grid contains the sum over all outcomes, whatever frame is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from accountant.composition.grid.dominate import GridLaw
from accountant.composition.grid.tilted import Frame, compose
from accountant.numbers.interval import ball

_LAW = st.lists(st.integers(0, 9), min_size=1, max_size=9).filter(any)


def grid_law(weights: Sequence[int], first: int, step: float) -> GridLaw:
    index = np.arange(first, first + len(weights))
    return GridLaw(step / 4, index, np.array(weights, dtype=float) / 64, 0.0)


def direct(laws: Sequence[tuple[GridLaw, int]], step: float, at: float, *, linear: bool) -> arb:
    """Sum over all outcomes."""
    sums = {Fraction(0): Fraction(1)}
    for law, count in laws:
        for _ in range(count):
            grown: dict[Fraction, Fraction] = {}
            for loss, mass in sums.items():
                for n, own in zip(law.index.tolist(), law.masses.tolist(), strict=True):
                    place = loss + Fraction(law.origin) + n * Fraction(step)
                    grown[place] = grown.get(place, Fraction(0)) + mass * Fraction(own)
            sums = grown
    found = arb(0)
    for loss, mass in sums.items():
        if loss > at:
            gap = ball(loss - Fraction(at))
            found += ball(mass) * (gap if linear else -(-gap).expm1())
    return found


@given(
    st.lists(st.tuples(_LAW, st.integers(-6, 6), st.integers(1, 3)), min_size=1, max_size=2),
    st.tuples(st.integers(-18, 1), st.floats(-14, 7), st.integers(7, 12), st.integers(0, 60)),
    st.floats(-30, 80),
    st.booleans(),
)
def test_any_frame_contains_the_sum(
    parts: list[tuple[list[int], int, int]],
    chosen: tuple[int, float, int, int],
    at: float,
    linear: bool,
) -> None:
    log_step, log_tilt, log_points, before = chosen
    step = 2.0**log_step
    laws = [(grid_law(weights, first, step), count) for weights, first, count in parts]
    lowest = sum(n * (law.origin + step * law.index[0]) for law, n in laws)
    frame = Frame(
        float(np.exp(log_tilt)), step, lowest - step * before, 1 << log_points, (1.0, 1.0),
        linear=linear,
    )  # fmt: skip
    found, epsilon = compose(laws, frame), lowest + at * step
    if found is None:
        return
    with ctx.workprec(192):
        true = direct(laws, step, epsilon, linear=linear)
        slack = arb("1e-40")
        assert found.below(arb(epsilon)).lower() <= true + slack
        assert not found.above(arb(epsilon)).upper() < true - slack


@pytest.mark.parametrize(("log_points", "most"), [(17, 1 << 13), (20, 1 << 13)])
def test_few_frequencies_say_what_all_say(log_points: int, most: int) -> None:
    """400 releases with masses on 1001 points, against a transform of all in floats."""
    points, step, count = 1 << log_points, 2.0**-16, 400
    row = np.linspace(1, 2, 1001) / 1501.5
    laws = [(GridLaw(0.0, np.arange(1001), row, 0.0), count)]
    sums = np.fft.irfft(np.fft.rfft(row, 1 << 19) ** count)
    losses = step * np.arange(1 << 19)
    middle = float(losses @ sums)
    found = compose(laws, Frame(1.5, step, middle - points * step / 2, points, (60.0, 60.0)))
    assert found is not None
    assert found.spectrum.size < most
    for at in (middle - 0.1, middle, middle + 0.1):
        low, high = (float(end.mid()) for end in (found.below(arb(at)), found.above(arb(at))))
        true = float(np.maximum(-np.expm1(at - losses), 0) @ sums)
        assert low * (1 - 1e-9) <= true <= high * (1 + 1e-9)
        assert high - low < 1e-8 * high

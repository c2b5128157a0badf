"""A smooth end of a normal law: its bounds off the axis and in tails, and the masses it takes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from flint import acb, arb, ctx

from accountant.composition.smooth_cut import SmoothCut

ENDS = [SmoothCut(2.5, 0.25), SmoothCut(6.0, 1.0), SmoothCut(-1.0, 0.0625)]
PARTS = [(arb("0.9"), arb(0)), (arb("0.1"), arb("1.5"))]


def chi(end: SmoothCut, z: acb) -> acb:
    return ((z - end.at) / (arb(end.width) * arb(2).sqrt())).erfc() / 2


def mass(end: SmoothCut, low: float, high: float, *, left: bool = False) -> arb:
    """Return what is taken from the mixture, or left of it, between two places: a quadrature."""

    def integrand(x: acb, _: bool) -> acb:
        density = sum((w * (-((x - m) ** 2) / 2).exp() for w, m in PARTS), start=acb(0))
        kept = chi(end, x)
        return density / (2 * arb.pi()).sqrt() * (kept if left else 1 - kept)

    cells = np.linspace(low, high, 65)
    total = acb(0)
    for a, b in itertools.pairwise(cells):
        total += acb.integral(integrand, a, b)
    return total.real


@pytest.mark.parametrize("end", ENDS)
def test_off_the_axis(end: SmoothCut) -> None:
    with ctx.workprec(128):
        for u in (-9.0, -2.0, -0.3, 0.0, 0.7, 5.0):
            for v in (0.1, 1.0, 4.0):
                x, y = end.at + u * end.width, v * end.width
                value, other = (abs(one) for one in (chi(end, acb(x, y)), 1 - chi(end, acb(x, y))))
                most = (end.kept(arb(x)).log() + end.growth(arb(y))).exp()
                assert value <= most * (1 + arb(2) ** -60)
                place = np.array([x])
                for size, above in ((value, False), (other, True)):
                    bound = end.log_most(place, np.array([y]), above=above)[0]
                    assert float(size.log()) <= bound + 1e-12 * (1 + abs(bound))
                    # at most what |e^{−s²}| on the line to that point has, and 2 + that
                    assert bound <= v * v / 2 + 1
                assert end.log_kept(place)[0] == pytest.approx(
                    float(end.kept(arb(x)).log()), rel=0.02, abs=1e-12
                )


@pytest.mark.parametrize("end", ENDS)
def test_tail(end: SmoothCut) -> None:
    with ctx.workprec(128):
        for k in (arb(0), arb(3), arb("12.5")):
            peak, middle, steep = end.tail(k)
            for away in (0.0, 0.5, 3.0, 20.0):
                x = arb(end.at + away * end.width)
                value = (k * x - x * x / 2).exp() * end.kept(x)
                bound = (peak - steep * (x - middle) ** 2 / 2).exp()
                assert value <= bound * (1 + arb(2) ** -60)
                assert bound < (2 + 3 * away) * value  # Mills' ratio


@pytest.mark.parametrize("end", ENDS)
def test_masses(end: SmoothCut) -> None:
    with ctx.workprec(96):
        assert end.taken(PARTS).overlaps(mass(end, -12.0, 16.0) + arb(0, 1e-20))
        for gap in (1.0, 4.0):
            t = end.at - gap * end.width - end.width**2 * (end.at + 1.5)
            bound, true = end.taken_below(t, PARTS), mass(end, -12.0, t)
            assert true <= bound
            if bound < 1:
                assert bound < 400 * true  # a half-plane for a quadrant
            t = end.at + gap * end.width
            bound, true = end.left_above(t, PARTS), mass(end, t, 16.0, left=True)
            assert true <= bound
            assert bound < 400 * true or t < 1.5


def test_nothing_is_known_of_a_threshold_below_the_means() -> None:
    assert SmoothCut(2.5, 0.25).taken_below(1.0, PARTS) == 1
    assert math.isfinite(float(SmoothCut(0.5, 0.25).left_above(1.0, PARTS)))

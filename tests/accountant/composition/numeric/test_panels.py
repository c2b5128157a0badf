"""Moments of cut normal laws on panels: beside an integral in mpmath."""

from __future__ import annotations

import functools
import math

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

from accountant.composition.losses.bounds import Mixture
from accountant.composition.losses.float_mixture import FloatMixture, Panels
from accountant.composition.numeric.cells import GUARD_WIDTH
from accountant.errors import UndecidedError
from tests.quick import quick

CUT = Mixture(1.7, math.log(1e-4), math.log1p(-1e-4), cut=6.0, width=1 / 16, guard=8.5)
RISEN = Mixture(
    1.7, math.log(1e-4), math.log1p(-1e-4), cut=9.0, width=1 / 128, rise=6.5, rise_width=1 / 64
)
NARROW = Mixture(0.1, math.log(1e-6), math.log1p(-1e-6), cut=20.0, width=1 / 128, guard=20.3125)


@functools.cache
def moments(law: Mixture, s: float) -> tuple[mpf, mpf, mpf]:
    """Integrate φχw^s L^k for k = 0, 1, 2; the law of mass 1 − q and q as its floats are meant."""
    share = mp.exp(mpf(law.log_share))
    edges = [(law.cut, law.width), (law.rise, law.rise_width), (law.guard, GUARD_WIDTH)]
    edges = [edge for edge in edges if math.isfinite(edge[0])]

    def kept(x: mpf) -> mpf:
        value = mpf(1)
        for at, width in edges:
            u = (x - at) / (width * mp.sqrt(2))
            value *= mp.erfc(-u if at == law.rise else u) / 2
        return value

    def w(x: mpf) -> mpf:
        return 1 - share + share * mp.exp(law.mu * x - mpf(law.mu) ** 2 / 2)

    beside = [at + k * width for at, width in edges for k in (-40, -9, -3, 0, 3, 9, 40)]
    ends = sorted(set(beside) | {0.5 * j for j in range(-30, 2 * int(law.cut) + 20)})
    found = [
        mp.quad(lambda x, k=k: mp.npdf(x) * kept(x) * w(x) ** s * mp.log(w(x)) ** k, ends)
        for k in range(3)
    ]
    mean = found[1] / found[0]
    return mp.log(found[0]), mean, found[2] / found[0] - mean**2


@pytest.mark.parametrize(
    ("law", "s"),
    quick(
        [(CUT, 2.0), (CUT, 30.0), (RISEN, -3.0), (RISEN, 20.0), (NARROW, 2e5), (NARROW, 3e6)], 0, 2
    ),
)
def test_moments_beside_an_integral(law: Mixture, s: float) -> None:
    found = FloatMixture(law, True).cumulants(s - 1)
    with mpmath.workdps(25):
        known = moments(law, s)
    # relative to s·q for the logarithm: q itself is rounded to 2^−53 of its logarithm
    size = max(abs(float(known[0])), s * math.exp(law.log_share))
    assert abs(found[0] - float(known[0])) < 1e-10 * size
    assert found[1:] == pytest.approx([float(known[1]), float(known[2])], rel=1e-10, abs=0)


def test_few_nodes_serve_a_sharp_cut() -> None:
    panels = Panels(NARROW)
    panels.cover(-9.0, 21.0)
    assert len(panels.loss) < 2000  # as fine as the cut everywhere they were 15 000
    before = panels.loss
    panels.cover(-8.0, 20.0)
    assert panels.loss is before
    panels.cover(-8.0, 60.0)
    assert len(panels.loss) > len(before)


def test_a_phase_that_turns_too_far_on_a_panel_is_not_resolved() -> None:
    loss = np.linspace(0.0, 10.0, 161)  # 1/16 from node to node
    assert Panels.resolve(loss, 17.0)
    assert not Panels.resolve(loss, 17.1)


def test_tilts_beyond_all_that_is_kept_are_refused() -> None:
    panels = Panels(CUT)
    with pytest.raises(UndecidedError, match="not summed"):
        panels.cover(-9.0, 1e5)

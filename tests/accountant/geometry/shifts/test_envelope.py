from __future__ import annotations

import numpy as np
import pytest
from flint import arb, ctx

from accountant.geometry.shifts.envelope import Envelope
from accountant.geometry.shifts.plan import Support, log_factor

SUPPORTS = [
    Support(1.0, 0.0, 0.0, 0.0),
    Support(1.0, 0.0, 2.0, -1.0),
    Support(1.0, -0.4, 5.0, 0.5),
    Support(0.0, 1.0, 0.0, 0.0),
    Support(0.0, -1.0, 1.0, 4.0),
    Support(1.0, 8.0, 30.0, -16.0),
]


@pytest.mark.parametrize(("line", "y"), [(0.7, 0.3), (2.5, 40.0), (20.0, 11.0), (20.0, 400.0)])
@pytest.mark.parametrize("support", SUPPORTS)
def test_the_supremum(line: float, y: float, support: Support) -> None:
    """It is above F at 20 000 points, and by little above the largest of these values.

    Values of F err by less than 1e-9 of its terms; between two points, of a ratio of 1.0007, F
    rises by less than 1e-3 of them.
    """
    top = 0.5
    t = np.geomspace(1e-6, top, 20_000)
    at_z = log_factor(t, np.array(complex(line, y))) / t
    at_c = log_factor(t, np.array(complex(line))).real / t
    terms = (
        support.real * at_z.real,
        support.imaginary * at_z.imag,
        -support.square * t,
        -support.moment * at_c,
    )
    size = max(float(np.abs(term).max()) for term in terms)
    largest = max(0.0, float(np.sum(terms, axis=0).max()))
    with ctx.workprec(96):
        found = Envelope(line, arb(y), 0.02, top).supremum(support, 1e-3 * size)
    assert largest - 1e-9 * size <= found <= largest + 3e-3 * size


def test_a_small_tolerance_is_reached() -> None:
    with ctx.workprec(96):
        envelope = Envelope(3.0, arb(2), 0.01, 1.0)
        loose = envelope.supremum(Support(1.0, 0.4, 2.0, 0.5), 1e-1)
        tight = envelope.supremum(Support(1.0, 0.4, 2.0, 0.5), 1e-6)
    t = np.linspace(1e-5, 1.0, 200_001)
    at_z = log_factor(t, np.array(complex(3.0, 2.0))) / t
    at_c = log_factor(t, np.array(complex(3.0))).real / t
    largest = float((at_z.real + 0.4 * at_z.imag - 2 * t - 0.5 * at_c).max())
    assert 0 < largest <= tight <= largest + 2e-6
    assert tight <= loose <= largest + 2e-1

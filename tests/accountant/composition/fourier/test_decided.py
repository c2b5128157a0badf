"""Many small losses mixed with rare large ones, and ε near 0: lines without decisive losses."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import ctx

from accountant.composition.choose import smooth
from accountant.composition.fourier.certified import Kernel, integral
from accountant.composition.fourier.engine import FOURIER
from accountant.composition.fourier.estimates import ABOVE_P, ABOVE_Q, CALL
from accountant.composition.fourier.jumps_integral import jump_integral
from accountant.composition.fourier.measure import LOSS, Loss
from accountant.composition.fourier.sure import decided_integral, estimate
from accountant.core.adjacency import Adjacency
from accountant.errors import UndecidedError
from accountant.mechanisms import Composed, Gaussian, PoissonSubsampled
from accountant.numbers.exact import exact
from accountant.questions import profile
from tests.quick import quick

NEAR = Fraction(1, 10**9)
KERNELS = [(Kernel.CALL, CALL), (Kernel.ABOVE_P, ABOVE_P), (Kernel.ABOVE_Q, ABOVE_Q)]
MIXED = ("0.5897", "1.804e-6", 99048)
"""Of which ε(8.89e-6) had no answer in 100 s."""


def composed(*parts: tuple[str, str, int]) -> Composed:
    return Composed(
        [
            Composed(PoissonSubsampled(Gaussian(standard_deviation=sigma), q), count)
            for sigma, q, count in parts
        ]
    )


def removal(mechanism: Composed) -> Loss:
    product = smooth(mechanism.worst_case(Adjacency.ADD_REMOVE).remove[0])
    assert product is not None
    return FOURIER.loss(product)


@pytest.mark.parametrize(("kernel", "strip"), KERNELS)
@pytest.mark.parametrize(
    ("parts", "epsilon"),
    quick(
        [
            ([("1.1", "0.004", 1000)], "1"),
            ([("1.1", "0.004", 1000)], "3"),
            ([("0.6", "1e-4", 1000)], "0.1"),
            ([("0.8", "0.01", 300), ("2", "0.05", 50)], "0.7"),
        ],
        0,
    ),
)
def test_it_agrees_with_other_lines(
    parts: list[tuple[str, str, int]], epsilon: str, kernel: Kernel, strip: object
) -> None:
    loss, at = removal(composed(*parts)), exact(epsilon)
    assert strip in {CALL, ABOVE_P, ABOVE_Q}
    with ctx.workprec(160):
        found = decided_integral(loss, kernel, kernel.strip(1.0), at, 40)
        other = jump_integral(loss, kernel, kernel.strip(1.0), at, 60)
        assert found.overlaps(other)
        assert found.rel_accuracy_bits() >= 28
        fine = decided_integral(loss, kernel, kernel.strip(1.0), at, 70)
        assert fine.overlaps(other)
        assert fine.rel_accuracy_bits() >= 58


@pytest.mark.slow
def test_small_losses_and_rare_jumps() -> None:
    mechanism = composed(MIXED)
    found = profile.epsilon(mechanism, "8.89e-6", adjacency="add-remove", relative_width=NEAR)
    assert found.relative_width is not None
    assert found.relative_width <= NEAR
    middle = float(found.lower)
    above, below = (by_fourier(at) for at in (middle * 0.999, middle * 1.001))
    assert above > 8.89e-6 > below


def by_fourier(epsilon: float) -> float:
    """Return δ of MIXED by a transform of the law of one loss on a grid, in floats.

    Losses are split between two points so that means stay; that adds 1e-4 of the variance at most.
    What is above 0.2 decides alone.
    """
    sigma, q, count = float(MIXED[0]), float(MIXED[1]), MIXED[2]
    mu, step, size = 1 / sigma, 2.0**-23, 1 << 22
    x = (np.arange(-12 * 1024, 16 * 1024) + 0.5) / 1024
    loss = np.log1p(q * np.expm1(mu * x - mu * mu / 2))
    mass = np.exp(-0.5 * x * x) / (1024 * math.sqrt(2 * math.pi)) * np.exp(loss)
    large = loss > 0.2
    sure = count * float((mass * -np.expm1(epsilon - loss))[large].sum())
    place = (loss[~large] / step) % size
    left = np.floor(place).astype(int)
    share = place - left
    law = np.bincount(left % size, mass[~large] * (1 - share), size)
    law += np.bincount((left + 1) % size, mass[~large] * share, size)
    total = np.fft.irfft(np.fft.rfft(law) ** count, size)
    sums = np.arange(size) * step
    sums[sums > 0.25] -= size * step
    return sure + float((total * -np.expm1(np.minimum(epsilon - sums, 0.0))).sum())


def test_nothing_decides_below_zero() -> None:
    loss = removal(composed(MIXED))
    with pytest.raises(UndecidedError, match="decides alone"):
        decided_integral(loss, Kernel.CALL, CALL, exact("-0.01"), 40)


@pytest.mark.parametrize("epsilon", ["0", "0.02", "0.3"])
def test_a_line_with_losses_taken_apart_agrees_with_a_straight_one(epsilon: str) -> None:
    """Also the estimate of ln δ, and of the tails of the loss, with its slope."""
    loss, at, bits = removal(composed(("0.9", "0.003", 400))), exact(epsilon), 30
    for kernel, strip in KERNELS:
        first, second = (way(loss, kernel, strip, at, bits) for way in (decided_integral, integral))
        assert first.overlaps(second)
        assert first.rel_accuracy_bits() >= bits - LOSS
        value, slope = estimate(loss, strip, float(epsilon))
        assert abs(value - float(second.log().mid())) < 1e-7
        beside = estimate(loss, strip, float(epsilon) + 1e-5)[0]
        assert math.isclose((beside - value) / 1e-5, slope, rel_tol=1e-2, abs_tol=1e-3)

"""Many small losses mixed with rare large ones, and ε near 0: lines without decisive losses."""

from __future__ import annotations

import math

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
from tests.quick import quick

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

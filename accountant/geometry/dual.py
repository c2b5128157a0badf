"""Proof that an ellipse is private and that no Gaussian has a smaller variance.

For a law w on the records let M = E_w[vv']. A covariance Σ that is 1-GDP has v'Σ⁻¹v ≤ 1 for
every record, so tr(Σ⁻¹M) ≤ 1, and by Cauchy and Schwarz

    (tr M^{1/2})² = (tr Σ^{1/2}·Σ^{−1/2}M^{1/2})² ≤ tr Σ · tr(M^{1/2}Σ⁻¹M^{1/2}) ≤ tr Σ.

With w a law on the number of ones j, uniform given j, M has the eigenvalue P = E[j²]/d once, and
Q/(d−1), Q = E[j] − P, with multiplicity d − 1: the bound is (√P + √((d−1)Q))². It holds for every
Σ, permutation invariant or not, and for mechanisms that release more and post-process linearly.
All checks here are exact, and independent of how the ellipse was made.
"""

from __future__ import annotations

from typing import Final

from flint import fmpq

from dpassay.accountant.geometry.ellipse import Ellipse
from dpassay.accountant.numbers.surd import Surd

_ZERO: Final = fmpq(0)


def dual_bound(dimension: int, weights: tuple[tuple[int, fmpq], ...]) -> Surd:
    """Return (√P + √((d−1)Q))², a lower bound on the trace of every private covariance."""
    mean = sum((weight * j for j, weight in weights), _ZERO)
    along = sum((weight * j * j for j, weight in weights), _ZERO) / dimension
    across = (dimension - 1) * (mean - along)
    return Surd.of(along + across, 2, along * across)


def defects(ellipse: Ellipse) -> tuple[str, ...]:
    """Return what is wrong with the claim that `ellipse` is private and optimal; () if nothing.

    Checks positive axes, every constraint j = 0, …, sparsity, weights that are a law on
    1, …, sparsity, and equality of the trace with the dual bound.
    """
    d, k = ellipse.dimension, ellipse.sparsity
    if not 1 <= k <= d:
        return (f"Expected sparsity={k} between 1 and dimension={d}.",)
    if ellipse.axis_ones.sign() <= 0 or ellipse.axis_rest.sign() <= 0:
        return ("Expected positive axes.",)
    numbers = [j for j, _ in ellipse.weights]
    if not numbers or not all(1 <= j <= k for j in numbers):
        return (f"Expected weights on numbers of ones {numbers} within 1..{k}.",)
    probabilities = [weight for _, weight in ellipse.weights]
    if any(weight < 0 for weight in probabilities) or sum(probabilities, _ZERO) != 1:
        return (f"Expected weights {probabilities} ≥ 0 that sum to 1.",)
    found = []
    if not _is_private(ellipse, numbers[0]):
        found.append(f"Expected v'Σ⁻¹v ≤ 1 for up to {k} ones.")
    bound = dual_bound(d, ellipse.weights)
    if not bound.equals(ellipse.trace):
        found.append(f"Expected trace {ellipse.trace} = dual bound {bound}.")
    return tuple(found)


def _is_private(ellipse: Ellipse, peak: int) -> bool:
    """Decide h(j) = quadratic·j² + linear·j ≤ 1 for every integer j in 0..sparsity.

    If h is convex the ends decide, and h(0) = 0. If it is concave, a `peak` no lower than its
    neighbours is the maximum over the integers.
    """
    d, k = ellipse.dimension, ellipse.sparsity
    linear = ellipse.axis_rest.reciprocal() if d > 1 else Surd.of(0)
    quadratic = (ellipse.axis_ones.reciprocal() - linear).times(fmpq(1, d))

    def excess(j: int) -> Surd:
        return quadratic.times(j * j) + linear.times(j) + Surd.of(-1)

    if quadratic.sign() >= 0:
        return excess(k).sign() <= 0
    # h(j+1) − h(j) = quadratic·(2j+1) + linear
    step_down = quadratic.times(2 * peak - 1) + linear
    step_up = quadratic.times(2 * peak + 1) + linear
    is_peak = step_down.sign() >= 0 and (peak == k or step_up.sign() <= 0)
    return is_peak and excess(peak).sign() <= 0

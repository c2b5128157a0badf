"""The best joint Gaussian release of sparse counts and of the number of records."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import final

from flint import fmpq

from accountant.errors import expected
from accountant.geometry.ellipse import require_sparsity
from accountant.numbers.exact import Number, exact
from accountant.numbers.surd import Surd, to_fmpq


@final
@dataclass(frozen=True, slots=True)
class SizeRelease:
    """Lemma 3.5 of Lebeda with C⁴ = d + 4λ, for μ = 1, proved optimal.

    It minimises Σ Var(query) + λ·Var(size) over all joint Gaussians of the sum of k-sparse
    records and their number. `CorrelatedGaussian(dimension, mu, c)` is this law for any C.
    """

    dimension: int
    sparsity: int
    size_weight: fmpq
    c_squared: Surd

    @property
    def size_variance(self) -> Surd:
        """A = d/C² + 1."""
        return self.c_squared.reciprocal().times(self.dimension) + Surd.of(1)

    @property
    def query_variance(self) -> Surd:
        """(d + C² + d/C² + 1)/4."""
        total = self.size_variance + self.c_squared + Surd.of(self.dimension)
        return total.times(fmpq(1, 4))


def optimal_size_release(
    dimension: int, sparsity: int, size_weight: Number | Fraction
) -> SizeRelease | None:
    """Return the optimal release for λ = size_weight where Lemma 3.5's family contains it.

    Every record (v, 1) has Mahalanobis norm exactly 1 under the family, so any law on the
    records is complementary to it; the weighted dual tr(WΣ) ≥ (tr(W^{1/2}MW^{1/2})^{1/2})² with
    W = diag(1, …, 1, λ) is attained when M ∝ ΣWΣ, that is when the number of ones j has mean
    a = (d + d/C²)/2 and variance dλ/(d + 4λ). Integers in 0..k carry such a law if and only if
    f(1 − f) ≤ variance ≤ a(k − a), f the fractional part of a (the moments lie in the convex hull
    of the points (j, j²)). For k = d ≥ 2 every λ ≥ d/(4(d − 1)) is covered.

    Returns
    -------
    SizeRelease or None
        None where the family is not optimal.

    Raises
    ------
    InvalidInputError
        Unless 1 ≤ sparsity ≤ dimension and λ ≥ 0 is rational.
    """
    require_sparsity(dimension, sparsity)
    given = exact(size_weight, "size_weight").rational
    if given is None or given < 0:
        raise expected("size_weight", size_weight, "to be a rational number ≥ 0")
    weight = to_fmpq(given)
    d, fourth_power = dimension, dimension + 4 * weight
    c_squared = Surd.of(0, 1, fourth_power)
    mean = (c_squared.reciprocal() + Surd.of(1)).times(fmpq(d, 2))
    variance = d * weight / fourth_power
    # d/(2C²) = √(d²/(4C⁴)), so the floor of 2a − d is an integer root
    excess = fmpq(d * d) / fourth_power
    low = (d + isqrt(int(excess.p) // int(excess.q))) // 2
    square = Surd.of(  # of the mean
        fmpq(d * d, 4) * (1 + 1 / fourth_power), fmpq(d * d, 2) / fourth_power, fourth_power
    )
    second_moment = square + Surd.of(variance)
    # E[(j − low)(j − low − 1)] ≥ 0 and E[j(k − j)] ≥ 0 describe the hull of the (j, j²)
    above_integers = second_moment + mean.times(-(2 * low + 1)) + Surd.of(low * (low + 1))
    below_chord = mean.times(sparsity) - second_moment
    if above_integers.sign() < 0 or below_chord.sign() < 0:
        return None
    return SizeRelease(dimension, sparsity, weight, c_squared)

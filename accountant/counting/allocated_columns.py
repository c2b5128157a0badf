"""Random allocation of a matrix mechanism: a record has one of b first steps, by chance.

It takes part in steps j, j + b, …, j uniform among the first b, independently of all else: balls
in bins (Choquette-Choo, Ganesh, Haque, Steinke and Thakurta 2024, "Near Exact Privacy Amplification
for Matrix Mechanisms"). With m_j = Σ_i C_{·,j+ib} and w_j = Σ_i |C_{·,j+ib}|, in units of σ, a
record of constant gradient has P = (1/b) Σ_j N(m_j, I) against Q = N(0, I), and

    W = dP/dQ = (1/b) Σ_j exp(X_j − Var X_j/2),   X Gaussian with covariances ⟨m_j, m_k⟩.

*Kahane's inequality* (1986, "Une inégalité du type de Slepian et Gordon sur les processus
gaussiens"): for convex f, E f(Σ p_j exp(X_j − Var X_j/2)), p_j ≥ 0, does not fall where covariances
grow, entry by entry. H of (P, Q) and of (Q, P) are such numbers, with f(w) = (w − e^ε)⁺ and
(1 − e^ε w)⁺. So covariances that are all a, but d ≥ a on the diagonal, bound them from above where
they are not smaller, from below where they are not larger. These are exactly the covariances of a
Gaussian release of μ = √a and a random allocation to b steps of μ = √(d − a).

*Adaptive gradients are no worse than w_j.* In step t let the record move the mean by v_j(y), if it
has j, for the outputs y before: ‖v_j‖ ≤ w_tj, so ⟨v_j, v_k⟩ ≤ w_tj w_tk. Replace steps by scalar
ones of means w_tj from the last on. Given y, and the numbers z of the steps replaced already, W is
Σ_j p_j(y) a_j(z) exp(⟨v_j, Z⟩ − ‖v_j‖²/2), and Kahane's inequality replaces v_j by w_tj.

*A stride s.* Let j mod s be known as well: no more private, by joint convexity. Then ⌊b/s⌋ first
steps or more are left, s apart, whose columns overlap less, or not at all: more are no worse. The
upper bound takes the s of the least χ² divergence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.counting.strategies import Dense, Toeplitz
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.mechanisms.wrappers.random_allocation import RandomAllocation
from dpassay.accountant.numbers.exact import ExactReal

_STEEPEST = 300.0
"""Largest exponent of a χ² divergence in floats."""


@final
@dataclass(frozen=True, slots=True)
class Even:
    """Covariances a of `steps` normal variables, d on the diagonal, in units of σ²."""

    common: Fraction
    whole: Fraction
    steps: int

    def release(self, noise: ExactReal) -> Mechanism:
        """Return the Gaussian release and the random allocation."""
        rest = self.whole - self.common
        if self.steps == 1 or not rest:
            return Gaussian(noise, ExactReal.of_root(self.whole))
        apart = RandomAllocation(Gaussian(noise, ExactReal.of_root(rest)), self.steps)
        together = [Gaussian(noise, ExactReal.of_root(self.common))] if self.common else []
        return Composed([*together, apart]) if together else apart

    def log_chi_square(self, noise: ExactReal) -> float:
        """Return about ln E W²."""
        a, d = (float(each) / float(noise) ** 2 for each in (self.common, self.whole))
        spread = min(d - a, _STEEPEST)
        return a + (d - a - spread) + math.log1p(math.expm1(spread) / self.steps)


def allocated_columns(
    matrix: Toeplitz | Dense, separation: int, noise: ExactReal
) -> tuple[Even, Even]:
    """Return covariances that are no larger, and what bounds all gradients.

    Raises NotApplicableError for too many steps, and where columns of two records have a negative
    inner product.
    """
    dense = matrix.dense() if isinstance(matrix, Toeplitz) else matrix
    if dense is None:
        raise NotApplicableError(
            "Random allocation of a strategy takes the inner products of all columns, here of too "
            "many digits. Give at most 1024 steps and shorter coefficients."
        )
    b, below = separation, dense.below**2
    signed = _gram(dense, b)
    low = min(signed[i][i] for i in range(b))
    common = min((signed[i][j] for i in range(b) for j in range(i)), default=0)
    least = Even(Fraction(min(common, low), below), Fraction(low, below), b)
    if least.common < 0:
        raise NotApplicableError(
            "Random allocation is known for a strategy whose columns have no negative inner "
            "products. Use participation='cyclic', which is no more private."
        )
    above = _gram(Dense(tuple(tuple(map(abs, row)) for row in dense.integers), 1), b)
    whole = Fraction(max(above[i][i] for i in range(b)), below)
    strides = []
    for s in range(1, b + 1):
        common = max((above[i][j] for i in range(b) for j in range(i % s, i, s)), default=0)
        strides.append(Even(Fraction(common, below), whole, b // s))
        if not common:
            break
    return least, min(strides, key=lambda even: even.log_chi_square(noise))


def _gram(dense: Dense, b: int) -> list[list[int]]:
    """Return inner products of the sums of every b-th column."""
    sums = tuple(tuple(sum(row[j::b]) for j in range(b)) for row in dense.integers)
    return Dense(sums, 1).gram

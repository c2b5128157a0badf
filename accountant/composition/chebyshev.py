"""Polynomials on [0, 1] in powers of σ and in Chebyshev's basis T_k(2σ − 1)."""

from __future__ import annotations

import functools
import math
from fractions import Fraction

from flint import arb, arb_mat, arb_poly, fmpz_poly

from accountant.interval import ball


def clenshaw(coefficients: list[arb], x: arb) -> arb:
    """Return Σ c_k T_k(x)."""
    one, two = arb(0), arb(0)
    for c in reversed(coefficients[1:]):
        one, two = 2 * x * one - two + c, one
    return x * one - two + coefficients[0]


@functools.lru_cache(maxsize=512)
def shifted(k: int) -> fmpz_poly:
    """Return T_k(2σ − 1) in powers of σ."""
    if k < 2:
        return fmpz_poly([1]) if k == 0 else fmpz_poly([-1, 2])
    return fmpz_poly([-2, 4]) * shifted(k - 1) - shifted(k - 2)


def monomials(coefficients: list[arb]) -> arb_poly:
    """Return Σ c_k T_k(2σ − 1) in powers of σ."""
    total = arb_poly([0])
    for k, c in enumerate(coefficients):
        total += arb_poly(shifted(k)) * c
    return total


def borel(poly: arb_poly) -> arb_poly:
    """Multiply the coefficient of σ^i by i!: products become convolutions, but for one power."""
    return arb_poly([poly[i] * arb(i).fac() for i in range(poly.degree() + 1)])


def unborel(poly: arb_poly) -> arb_poly:
    """Return the convolution: divide by (i + 1)!, and raise the power by one."""
    return arb_poly([0, *(poly[i] / arb(i + 1).fac() for i in range(poly.degree() + 1))])


def to_chebyshev(size: int) -> arb_mat:
    """Return the matrix from powers of σ.

    σ^j = 2^{1−2j} Σ_k C(2j, j − k) T_k(2σ − 1), with half of the term for k = 0.
    """
    rows = []
    for k in range(size):
        row = []
        for j in range(size):
            if k > j:
                row.append(arb(0))
            else:
                share = Fraction(math.comb(2 * j, j - k), 1 << (2 * j))
                row.append(ball(share if k == 0 else 2 * share))
        rows.append(row)
    return arb_mat(rows)

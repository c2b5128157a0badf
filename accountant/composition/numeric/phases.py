"""Sums of phases Σ v_n (e^{itx_n} − 1) at t = 0, h, 2h, …, in floats with a bound of their error.

Only operations that IEEE 754 rounds correctly are used (+, −, ×, rounding to integers, and sums of
products in any order); u = 2^−53 is the unit roundoff. With j = bG + g and

    a = e^{ibGhx} − 1,   b = e^{ighx} − 1,   e^{ijhx} − 1 = a(1 + b) + b,

the sums are a product of two matrices, of some 2√N entries per phase for N points t. The matrices
are split into heads of few bits, whose products are summed exactly, and rests whose products are
2^21 times smaller, so that the error does not grow with the number of phases.

*Error.* An angle y = jhx with x and its product rounded is wrong by 2u|y|. Halved and reduced by a
multiple of π/2 it is wrong by u more, unless that multiple is 0; the power series and the products
that make 2i sin(y/2) e^{iy/2} of it lose 6u|y|. In all e^{iy} − 1 is wrong by less than 10u|y|, as
|e^{iy} − 1| ≤ |y|. So, with weights that are wrong by 2u and |1 + b| = 1 rounded, the product is
wrong by less than 20u|bGhx| + 36u|ghx| for every phase before summation. What the sums of N rests
add is N·u times the sum of their sizes, at most N 2^−B Σ v_n|bGhx_n| for heads of B bits (below 4u
of the sum for N ≤ 2^13), and for v itself gh(Σ min(v_n, 2^−B max v)|x_n| + 2^−B max|x_n|). So far
the sum is wrong by less than 24u(bG + 2g)h Σ v_n|x_n|, and what the rests beside v add.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.floating[Any]]
    Complexes: TypeAlias = NDArray[np.complex128]

MOST_PHASES = 1 << 13
_UNIT = 2.0**-53
_ERROR = 24 * _UNIT
LARGEST_ANGLE = 2.0**20
"""Largest t·|x_n|: multiples of π/2 are then products without rounding."""
_SLACK = 1 + 1e-6  # covers the rounding of the bound itself
_HEAD = float.fromhex("0x1.921fb544p+0")  # π/2 = _HEAD + _MIDDLE + _TAIL, 33 bits in each head
_MIDDLE = float.fromhex("0x1.0b4611a6p-34")
_TAIL = float.fromhex("0x1.3198a2e037073p-69")
_SINE = tuple((-1) ** n / math.factorial(2 * n + 1) for n in range(1, 10))
_COSINE = tuple((-1) ** n / math.factorial(2 * n) for n in range(1, 10))


def error_of_sums(weights: Floats, x: Floats) -> float:
    """Return c such that c·(bG + 2g)h bounds the error of `phase_sums` at j = bG + g."""
    size = np.abs(x)
    bits = _bits(len(x))
    rests = float(np.minimum(weights, 2.0**-bits * weights.max()) @ size)
    rests += 2.0**-bits * float(size.max())
    return _SLACK * (_ERROR * float(weights @ size) + len(x) * _UNIT * rests)


def blocks(count: int) -> int:
    """Return G, the number of points in a block."""
    return max(1, math.isqrt(count))


def phase_sums(weights: Floats, x: Floats, step: float, count: int) -> Complexes:
    """Return Σ v_n (e^{ijhx_n} − 1) for 0 ≤ j < count, with v_n > 0 of sum 1."""
    inner = blocks(count)
    outer = -(-count // inner)
    near = turned(np.arange(inner) * step, x)
    far = turned(np.arange(outer) * (inner * step), x) * weights
    whole = np.vstack([(near + 1.0).real, near.imag, near.real])
    product = _product(np.vstack([far.real, far.imag, weights[None, :]]), whole)
    one, two, rest = (slice(k * inner, (k + 1) * inner) for k in range(3))
    real = product[:outer, one] - product[outer:-1, two] + product[-1, rest]
    imaginary = product[:outer, two] + product[outer:-1, one] + product[-1, two]
    found: Complexes = (real + 1j * imaginary).ravel()[:count]
    return found


def turned(t: Floats, x: Floats) -> Complexes:
    """Return e^{it_j x_n} − 1, one row for every t."""
    half = (0.5 * t)[:, None] * x[None, :]
    turns = np.rint(half * (2 / math.pi))
    rest = ((half - turns * _HEAD) - turns * _MIDDLE) - turns * _TAIL
    square = rest * rest
    small = rest + rest * _series(_SINE, square)
    large = 1.0 + _series(_COSINE, square)
    quarter = turns.astype(np.int64) & 3
    odd = (quarter & 1) == 1
    sine = np.where(odd, large, small) * (1 - (quarter & 2))
    cosine = np.where(odd, -small, large) * (1 - (quarter & 2))
    found: Complexes = 2.0 * sine * (-sine + 1j * cosine)
    return found


def _series(terms: tuple[float, ...], square: Floats) -> Floats:
    """Return the power series Σ c_n z^n, n ≥ 1."""
    found = terms[-1] * square
    for term in terms[-2::-1]:
        found = (found + term) * square
    return found


def _bits(number: int) -> int:
    """Return how many bits heads may have, so that sums of so many products are exact."""
    return (52 - (number - 1).bit_length()) // 2


def _product(first: Floats, second: Floats) -> Floats:
    """Return the product of a matrix and the transpose of another one, heads without rounding."""
    heads = [_head(matrix, _bits(first.shape[1])) for matrix in (first, second)]
    rests = [matrix - head for matrix, head in zip((first, second), heads, strict=True)]
    found: Floats = heads[0] @ heads[1].T + (heads[0] @ rests[1].T + rests[0] @ second.T)
    return found


def _head(matrix: Floats, bits: int) -> Floats:
    """Return the leading bits of the entries of every row, relative to its largest."""
    top = np.maximum(np.abs(matrix).max(axis=1, keepdims=True), 2.0**-900)
    shift = np.ldexp(1.5, np.frexp(top)[1] + (52 - bits))
    found: Floats = (matrix + shift) - shift
    return found

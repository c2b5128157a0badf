"""Exact quadratic forms: factors of a rational matrix, its least eigenvalue, maxima on vertices."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, final

from flint import arb, fmpq, fmpq_mat

from dpassay.accountant.errors import InvalidInputError

Rows: TypeAlias = tuple[tuple[Fraction, ...], ...]

MAX_VERTICES = 1 << 20
"""Most vertices that are enumerated."""


@final
@dataclass(frozen=True, slots=True)
class Factors:
    """Σ = L D L' of a positive semidefinite rational matrix, L unit lower triangular."""

    lower: Rows
    pivots: tuple[Fraction, ...]

    def whiten(self, vector: Sequence[Fraction]) -> tuple[Fraction, ...] | None:
        """Return y = L⁻¹v, for which v'Σ⁺v = Σ y_i²/D_i; None if v leaves the range of Σ."""
        y: list[Fraction] = []
        for row, entry, pivot in zip(self.lower, vector, self.pivots, strict=True):
            value = entry - sum((a * b for a, b in zip(row, y, strict=False)), Fraction(0))
            if pivot == 0 and value != 0:
                return None
            y.append(value)
        return tuple(y)

    def product(self, left: Sequence[Fraction], right: Sequence[Fraction]) -> Fraction:
        """Return Σ l_i r_i/D_i of two whitened vectors."""
        terms = zip(left, right, self.pivots, strict=True)
        return sum((a * b / pivot for a, b, pivot in terms if pivot), Fraction(0))


@functools.lru_cache(maxsize=64)
def factor(rows: Rows) -> Factors:
    """Factor a symmetric rational matrix as L D L' with D ≥ 0.

    Raises
    ------
    InvalidInputError
        If it is not positive semidefinite: a pivot is negative, or zero above a column that
        is not.
    """
    size = len(rows)
    work = [list(row) for row in rows]
    lower = [[Fraction(i == j) for j in range(size)] for i in range(size)]
    pivots = []
    for k in range(size):
        pivot = work[k][k]
        column = [work[i][k] for i in range(k + 1, size)]
        if pivot < 0 or (pivot == 0 and any(column)):
            raise InvalidInputError(
                "Expected a positive semidefinite matrix. The leading minor of order "
                f"{k + 1 if pivot < 0 else k + 2 + next(i for i, c in enumerate(column) if c)} "
                "shows a direction of negative variance."
            )
        pivots.append(pivot)
        if pivot == 0:
            continue
        for i in range(k + 1, size):
            ratio = work[i][k] / pivot
            lower[i][k] = ratio
            if ratio:
                for j in range(k + 1, i + 1):
                    work[i][j] -= ratio * work[j][k]
                    work[j][i] = work[i][j]
    return Factors(tuple(map(tuple, lower)), tuple(pivots))


def least_eigenvalue(rows: Rows) -> arb:
    """Enclose the least eigenvalue of a symmetric rational matrix, at the current precision.

    The characteristic polynomial is exact, and its roots are isolated.
    """
    polynomial = flint_matrix(rows).charpoly().numer()
    roots: Any = polynomial.complex_roots()  # pairs (root, multiplicity), all of them real
    real: list[arb] = [root.real for root, _ in roots]
    least = real[0]
    for root in real[1:]:
        least = least.min(root)
    return least


def inverse(rows: Rows) -> Rows:
    """Return the exact inverse of an invertible rational matrix."""
    inverted = flint_matrix(rows).inv()
    size = len(rows)
    return tuple(
        tuple(Fraction(int(inverted[i, j].p), int(inverted[i, j].q)) for j in range(size))
        for i in range(size)
    )


def flint_matrix(rows: Rows) -> fmpq_mat:
    """Return the matrix as flint holds it."""
    return fmpq_mat([[fmpq(entry.numerator, entry.denominator) for entry in row] for row in rows])


def vertex_count(dimension: int, sparsity: int, *, signed: bool) -> int:
    """Return the number of vertices that `largest_value` looks at."""
    if signed:
        return math.comb(dimension, sparsity) << (sparsity - 1)
    return sum(math.comb(dimension, ones) for ones in range(1, sparsity + 1))


def largest_value(form: Rows, sparsity: int, *, signed: bool) -> Fraction:
    """Return the maximum of x'Wx, W positive semidefinite, over vectors with ≤ k non-zeros.

    Parameters
    ----------
    form
        W, exact.
    sparsity
        k, between 1 and the size of W.
    signed
        Whether entries are in [−1, 1] rather than [0, 1]; the form is convex, so entries ±1
        (exactly k of them), or 1 (at most k), suffice.

    Raises
    ------
    InvalidInputError
        If there are more than MAX_VERTICES vertices.
    """
    count = vertex_count(len(form), sparsity, signed=signed)
    if count > MAX_VERTICES:
        raise InvalidInputError(
            f"Expected at most {MAX_VERTICES} vertices, not {count} (dimension {len(form)}, "
            f"{sparsity} non-zero entries). Give a Diagonal or Exchangeable covariance, for "
            "which there is a closed form, or fewer dimensions."
        )
    scale = math.lcm(*(entry.denominator for row in form for entry in row))
    integers = [[int(entry * scale) for entry in row] for row in form]
    zero = [0] * len(form)
    search = _largest_signed if signed else _largest_unsigned
    return Fraction(search(integers, 0, zero, 0, sparsity), scale)


def _largest_unsigned(
    form: list[list[int]], start: int, gradient: list[int], value: int, left: int
) -> int:
    """Maximise over the ways to add at most `left` ones at positions from `start` on.

    `gradient[i]` is (Wx)_{start+i} for the x chosen so far, `value` is x'Wx.
    """
    best = value
    for offset, slope in enumerate(gradient):
        row = form[start + offset]
        position = start + offset + 1
        reached = value + 2 * slope + row[position - 1]
        if left > 1 and position < len(form):
            pairs = zip(gradient[offset + 1 :], row[position:], strict=True)
            moved = [a + b for a, b in pairs]
            reached = _largest_unsigned(form, position, moved, reached, left - 1)
        best = max(best, reached)
    return best


def _largest_signed(
    form: list[list[int]], start: int, gradient: list[int], value: int, left: int
) -> int:
    """Maximise over the ways to add exactly `left` entries ±1 at positions from `start` on."""
    best = 0
    first = start == 0  # nothing is chosen yet
    for offset in range(len(gradient) - left + 1):
        row = form[start + offset]
        position = start + offset + 1
        slope, diagonal = gradient[offset], row[position - 1]
        if left == 1:
            best = max(best, value + 2 * abs(slope) + diagonal)
            continue
        rest, coupling = gradient[offset + 1 :], row[position:]
        plus = [a + b for a, b in zip(rest, coupling, strict=True)]
        reached = value + 2 * slope + diagonal
        best = max(best, _largest_signed(form, position, plus, reached, left - 1))
        if not first:  # x and −x have the same value: the first sign is free
            minus = [a - b for a, b in zip(rest, coupling, strict=True)]
            reached = value - 2 * slope + diagonal
            best = max(best, _largest_signed(form, position, minus, reached, left - 1))
    return best

"""Exact quadratic forms: pivots of a rational matrix, v'Σ⁺v, least eigenvalues, best vertices."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, product
from math import comb, lcm
from typing import Any, Final

from flint import fmpq, fmpq_mat

from dpassay.verifier.checker.arithmetic import largest, least, total
from dpassay.verifier.checker.reals import Real, UnknownError

Rows = Sequence[Sequence[Fraction]]

MOST_VERTICES: Final = 1 << 15
"""Most vertices that are looked at one by one."""


def eliminate(rows: Rows, columns: Sequence[Sequence[Any]]) -> tuple[list[Fraction], Any] | None:
    """Bring (Σ | columns) to upper triangular form; None unless Σ is positive semidefinite.

    Returns the pivots and the columns, which then are L⁻¹v of Σ = L D L'.
    """
    work = [list(row) for row in rows]
    carried = [list(column) for column in columns]
    found = []
    for k, row in enumerate(work):
        pivot = row[k]
        if pivot < 0 or (pivot == 0 and any(row[k + 1 :])):
            return None
        found.append(pivot)
        for i in range(k + 1, len(work)) if pivot else ():
            ratio = work[i][k] / pivot
            if ratio:
                work[i] = [a - ratio * b for a, b in zip(work[i], row, strict=True)]
                for column in carried:
                    column[i] -= ratio * column[k]
    return found, carried


def pivots(rows: Rows) -> list[Fraction] | None:
    """Return the diagonal D of Σ = L D L', or None unless Σ is positive semidefinite."""
    found = eliminate(rows, [])
    return None if found is None else found[0]


def form(rows: Rows, vectors: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Return v'Σ⁺w for all pairs of vectors; raise ValueError if one leaves the range of Σ."""
    used, whitened = _whitened(rows, vectors)
    return [[total([y[i] * z[i] * d for i, d in used]) for z in whitened] for y in whitened]


def norms(rows: Rows, vectors: Sequence[Sequence[Any]]) -> list[Any]:
    """Return v'Σ⁺v for each vector; raise ValueError if one leaves the range of Σ."""
    used, whitened = _whitened(rows, vectors)
    return [total([y[i] * y[i] * d for i, d in used]) for y in whitened]


def _whitened(rows: Rows, vectors: Sequence[Sequence[Any]]) -> tuple[list[Any], Any]:
    """Return the 1/D_i and y = L⁻¹v: v'Σ⁺w is Σ y_i z_i/D_i, and y is 0 at zero pivots."""
    found = eliminate(rows, vectors)
    if found is None:
        raise ValueError("a covariance with a direction of negative variance")
    diagonal, whitened = found
    zeros = [i for i, pivot in enumerate(diagonal) if not pivot]
    if any(column[i] for column in whitened for i in zeros):
        raise outside()
    return [(i, 1 / pivot) for i, pivot in enumerate(diagonal) if pivot], whitened


def outside() -> ValueError:
    """Build the error for a difference without noise."""
    return ValueError("a difference that leaves the range of the covariance")


def least_eigenvalue(rows: Rows) -> Any:
    """Return the least root of the characteristic polynomial, exactly where it is rational."""
    if pivots(rows) is None:
        raise ValueError("a covariance with a direction of negative variance")
    matrix = fmpq_mat([[fmpq(x.numerator, x.denominator) for x in row] for row in rows])
    found: list[Any] = []
    for factor, _ in matrix.charpoly().factor()[1]:
        if factor.degree() == 1:
            root = -factor[0] / factor[1]
            found.append(Fraction(int(root.p), int(root.q)))
        else:
            roots: Any = factor.complex_roots()  # pairs of a root and its multiplicity
            found += [Real(root.real) for root, _ in roots]
    return least(found)


def best_vertex(gram: Rows, sparsity: int, *, signed: bool) -> Any:
    """Return the maximum of x'Wx over x with at most k entries in [0, 1], or in [−1, 1].

    W is positive semidefinite, so x'Wx is convex in the k entries that may differ from 0, and the
    maximum is at entries 0 and 1, or ±1. Gray-code order would be faster; that no vertex is left
    out is plain here.
    """
    unit, exact = Fraction(1), False
    if all(isinstance(entry, Fraction) for row in gram for entry in row):  # integers are faster
        exact = True
        unit = Fraction(1, lcm(*(entry.denominator for row in gram for entry in row)))
        gram = [[int(entry / unit) for entry in row] for row in gram]  # type: ignore[misc]
    values: list[Any] = [Fraction(0)]
    for chosen in _supports(len(gram), sparsity, signed=signed):
        signs = [(1,), *[(1, -1) if signed else (1,)] * (len(chosen) - 1)]  # x and −x agree
        for x in product(*signs):
            terms = [
                a * b * gram[i][j] for i, a in zip(chosen, x, strict=True)
                for j, b in zip(chosen, x, strict=True)
            ]  # fmt: skip
            values.append(sum(terms) if exact else total(terms))
    return unit * largest(values)


def _supports(size: int, sparsity: int, *, signed: bool) -> list[tuple[int, ...]]:
    sizes = [sparsity] if signed else range(1, sparsity + 1)
    vertices = sum(comb(size, k) << (k - 1 if signed else 0) for k in sizes)
    if vertices > MOST_VERTICES:
        raise UnknownError(f"the largest norm over {vertices} vertices")
    return [chosen for k in sizes for chosen in combinations(range(size), k)]

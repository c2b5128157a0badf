"""The largest v'Σ⁻¹v over a described set of differences: the square of μ of N(0, Σ) noise.

N(v, Σ) against N(0, Σ) has the loss N(s/2, s) with s = v'Σ⁻¹v, that of N(√s, 1) against N(0, 1),
and the profile of the latter grows with s; so the largest s is worst, and every v of the space
occurs. The form is convex: over a box, or a union of boxes, it is largest at a vertex.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor
from typing import Any, Final

from dpassay.verifier.checker.arithmetic import largest, total
from dpassay.verifier.checker.mechanisms.arguments import dimension
from dpassay.verifier.checker.mechanisms.quadratic import (
    Rows,
    best_vertex,
    form,
    least_eigenvalue,
    norms,
    outside,
)
from dpassay.verifier.checker.notation import Noise
from dpassay.verifier.checker.reals import UnknownError

_MOST_SUMS: Final = 1 << 16
_MOST_ROWS: Final = 64
_MOST_LISTED: Final = 100_000


def largest_square(space: Noise, covariance: Noise) -> Any:
    """Return the largest v'Σ⁺v over a space; ValueError if a difference leaves Σ's range."""
    match space.name:
        case "FiniteSet":
            return largest(squares(covariance, space["vectors"]))
        case "L2Ball":
            return space["radius"] * space["radius"] / least_variance(covariance)
        case "Box":
            return _over_box(space["bounds"], covariance)
        case "SparseBox":
            unit = _over_sparse(int(space["sparsity"]), covariance, signed=space["signed"])
            return space["bound"] * space["bound"] * unit
        case "DisjointGroups":
            inner = space["space"]
            return largest([largest_square(inner, block) for block in _blocks(space, covariance)])
    raise UnknownError(f"the differences of {space.name}")


def axes(covariance: Noise) -> tuple[Fraction, Fraction] | None:
    """Return the eigenvalues on (1, …, 1) and on its complement, where these are eigenspaces."""
    match covariance.name:
        case "Isotropic":
            return covariance["variance"], covariance["variance"]
        case "Exchangeable" if covariance["dimension"] > 1:
            a, b = covariance["diagonal"], covariance["off_diagonal"]
            return a + (covariance["dimension"] - 1) * b, a - b
    return None


def variances(covariance: Noise) -> list[Fraction]:
    """Return the diagonal of Σ."""
    if dimension(covariance) > _MOST_LISTED:
        raise UnknownError(f"{dimension(covariance)} variances")
    match covariance.name:
        case "Diagonal":
            return list(covariance["variances"])
        case "Matrix":
            return [row[i] for i, row in enumerate(covariance["rows"])]
        case "Isotropic":
            return [covariance["variance"]] * dimension(covariance)
    return [covariance["diagonal"]] * dimension(covariance)


def squares(covariance: Noise, vectors: Sequence[Sequence[Any]]) -> list[Any]:
    """Return v'Σ⁺v for each vector."""
    if covariance.name == "Diagonal":
        return [_independent(covariance["variances"], vector) for vector in vectors]
    both = axes(covariance)
    if both is None:
        return norms(_rows(covariance), vectors)
    found = []
    for vector in vectors:
        whole = total(vector)
        along = whole * whole / len(vector)
        across = total([*(x * x for x in vector), -along])
        parts = [(part, axis) for part, axis in zip((along, across), both, strict=True) if part]
        if not all(axis for _, axis in parts):
            raise outside()
        found.append(total([part / axis for part, axis in parts]))
    return found


def least_variance(covariance: Noise) -> Any:
    """Return the least eigenvalue of Σ; ValueError where it is 0."""
    both = axes(covariance)
    if both is not None:
        found: Any = min(both)
    elif covariance.name == "Matrix":
        found = least_eigenvalue(_rows(covariance))
    else:
        found = min(variances(covariance))
    if not found:
        raise outside()
    return found


def _independent(diagonal: Sequence[Any], vector: Sequence[Any]) -> Any:
    used = [(x, v) for x, v in zip(vector, diagonal, strict=True) if x]
    if not all(v for _, v in used):
        raise outside()
    return total([x * x / v for x, v in used])


def _rows(covariance: Noise) -> Rows:
    """Return the whole matrix."""
    size = dimension(covariance)
    if size > _MOST_ROWS:
        raise UnknownError(f"a norm in {size} dimensions")
    if covariance.name == "Matrix":
        rows: Rows = covariance["rows"]
        return rows
    off = covariance["off_diagonal"] if covariance.name == "Exchangeable" else Fraction(0)
    return [
        [entry if i == j else off for j in range(size)]
        for i, entry in enumerate(variances(covariance))
    ]


def _over_box(bounds: Sequence[Any], covariance: Noise) -> Any:
    """Return the norm of the worst corner.

    With eigenspaces along and across (1, …, 1) it is ‖b‖²/across + (t²/d)(1/along − 1/across),
    t = Σ ±b_j: the largest t counts where along ≤ across, else the least |t| of all sums.
    """
    if covariance.name == "Diagonal":
        return _independent(covariance["variances"], bounds)
    both = axes(covariance)
    if both is not None and 0 not in both:
        along, across = both
        squares = total([b * b for b in bounds])
        worst = total(bounds) if along <= across else _least_sum(bounds)
        bent = worst * worst * ((1 / along - 1 / across) / len(bounds))
        return squares / across + bent
    active = [j for j, bound in enumerate(bounds) if bound]
    units = [[bounds[j] if i == j else Fraction(0) for i in range(len(bounds))] for j in active]
    return best_vertex(form(_rows(covariance), units), len(active), signed=True)


def _least_sum(bounds: Sequence[Any]) -> Any:
    """Return the least |Σ ±b_j|."""
    if all(bound == bounds[0] for bound in bounds):
        return bounds[0] * (len(bounds) % 2)
    if not all(isinstance(bound, Fraction) for bound in bounds):
        raise UnknownError("the least sum of irrational bounds with signs")
    sums = {Fraction(0)}
    for bound in bounds:
        sums = {abs(one + side) for one in sums for side in (bound, -bound)}
        if len(sums) > _MOST_SUMS:
            raise UnknownError("the least sum of bounds with signs")
    return min(sums)


def _over_sparse(k: int, covariance: Noise, *, signed: bool) -> Any:
    """Return the worst norm with at most k entries in [0, 1], or in [−1, 1].

    With two eigenspaces and n entries ±1 of sum t it is n/across + (t²/d)(1/along − 1/across).
    Unsigned, t = n and it is a quadratic in n, largest at an end or beside its peak; signed,
    n = k by convexity and |t| is k or k mod 2.
    """
    size = dimension(covariance)
    both = axes(covariance)
    if both is not None and 0 not in both:
        along, across = both
        bend = (1 / along - 1 / across) / size
        if signed:
            return max(k / across + bend * t * t for t in (k, k % 2))
        ends = {1, k}
        if bend < 0:
            peak = floor(-1 / (2 * bend * across))
            ends |= {min(k, max(1, n)) for n in (peak, peak + 1)}
        return max(n / across + bend * n * n for n in ends)
    diagonal = variances(covariance)
    if covariance.name == "Diagonal":
        if 0 in diagonal:
            raise outside()
        return sum((1 / v for v in sorted(diagonal)[:k]), Fraction(0))
    units = [[Fraction(i == j) for i in range(size)] for j in range(size)]
    return best_vertex(form(_rows(covariance), units), k, signed=signed)


def _blocks(space: Noise, covariance: Noise) -> list[Noise]:
    """Return a covariance for each group whose inverse is the block of Σ⁻¹: given the rest.

    For v in the block, v'Σ⁻¹v is v'Wv with W the block, and W⁻¹ is again a covariance.
    """
    size = dimension(space["space"])
    groups = int(space["groups"])
    if covariance.name == "Isotropic":
        return [Noise("Isotropic", {**covariance.arguments, "dimension": Fraction(size)})]
    if covariance.name == "Diagonal":
        entries = covariance["variances"]
        return [
            Noise("Diagonal", {"variances": entries[j * size : (j + 1) * size]})
            for j in range(groups)
        ]
    whole = _rows(covariance)
    found = []
    for j in range(groups):
        units = [[Fraction(i == j * size + n) for i in range(size * groups)] for n in range(size)]
        block = form(whole, units)
        plain = [[Fraction(i == n) for i in range(size)] for n in range(size)]
        found.append(Noise("Matrix", {"rows": form(block, plain)}))
    return found

"""Check a certificate of an optimal Gaussian shape, in fractions alone.

Upper bound: Σ is positive definite, and v'Σ⁻¹v ≤ 1 over the space (`mechanisms.spaces`), so that
the noise is 1-GDP; its weighted variance is summed. Lower bound: for a law w on vectors of the
space and M = Σ w_v vv', every private Σ has tr(SΣS) ≥ (tr (SMS)^{1/2})² for diagonal S. With any
symmetric B such that SMS − B² is positive semidefinite, (SMS)^{1/2} ⪰ B, so that tr B may take
the place of the trace. B is found in floating point here; that it is small enough is decided in
fractions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from flint import fmpq, fmpq_mat
from mpmath import mp

from dpassay.verifier.checker.mechanisms.arguments import build, dimension
from dpassay.verifier.checker.mechanisms.quadratic import pivots
from dpassay.verifier.checker.mechanisms.spaces import largest_square
from dpassay.verifier.checker.notation import Noise
from dpassay.verifier.checker.optima.rationals import best, gap_problems, number
from dpassay.verifier.checker.outcome import Theorem
from dpassay.verifier.checker.reals import sqrt

Problems = list[tuple[str, str]]
Rows = list[list[Fraction]]
_DIGITS = 90
"""Digits of roots and eigenvalues, which are then proved with room."""
_ROOM = 70
"""Digits of that room: it is far above what 90 digits lose, and far below any claim."""


class Vector(NamedTuple):
    """√square·entries, with rational entries."""

    square: Fraction
    entries: tuple[Fraction, ...]


def gaussian_shape_theorem(data: Mapping[str, Any]) -> Theorem:
    """Say what a certificate without problems proves."""
    asked = data["given"]
    which = "total variance" if asked["objective"] == "total" else "worst variance"
    if set(asked["weights"]) != {"1"}:
        which += f", weighted by [{', '.join(asked['weights'])}],"
    what = f"the least {which} of Gaussian noise that is 1-GDP over {_said(asked['space'])}"
    return best(what, data["optimum"])


def _said(space: Mapping[str, Any]) -> str:
    """Return a space in the notation of mechanisms."""

    def text(value: Any) -> str:
        if isinstance(value, Mapping):
            return _said(value)
        if isinstance(value, list):
            return f"[{', '.join(map(text, value))}]"
        return str(value)

    entries = ", ".join(f"{name}={text(v)}" for name, v in space.items() if name != "type")
    return f"{space['type']}({entries})"


def gaussian_shape_problems(data: Mapping[str, Any]) -> Problems:
    """Return the fields of a certificate that are wrong, and what is wrong with them."""
    given = data["given"]
    space, found = space_of(given["space"]), Problems()
    size = dimension(space)
    weights = [number(text) for text in given["weights"]]
    if len(weights) != size or min(weights) <= 0:
        return [("given.weights", "are not one number > 0 for each coordinate")]
    covariance = [[number(text) for text in row] for row in data["covariance"]]
    lower, upper = (number(data["optimum"][end]) for end in ("lower", "upper"))
    found += gap_problems("optimum", lower, upper)
    if not _is_symmetric(covariance, size) or not is_positive(covariance, strictly=True):
        return [("covariance", "is not symmetric and positive definite")]
    if not largest_square(space, Noise("Matrix", {"rows": covariance})) <= 1:
        found.append(("covariance", "is too small for the space"))
    variances = [weight * covariance[i][i] for i, weight in enumerate(weights)]
    total = given["objective"] == "total"
    if (sum(variances, start=Fraction(0)) if total else max(variances)) > upper:
        found.append(("optimum.upper", "is smaller than what the covariance has"))
    shares = [number(text) for text in data["shares"]]
    if len(shares) != size or min(shares) < 0:
        found.append(("shares", "are not one number >= 0 for each coordinate"))
    elif (shares != [1] * size) if total else sum(shares) > 1:
        found.append(("shares", "are not 1 each" if total else "have a sum above 1"))
    law = [number(text) for text in data["law"]]
    vectors = [
        Vector(number(entry["square"]), tuple(number(text) for text in entry["entries"]))
        for entry in data["vertices"]
    ]
    if len(law) != len(vectors) or min(law) < 0 or sum(law) > 1:
        found.append(("law", "is no law on the vertices"))
    for index, vector in enumerate(vectors):
        if vector.square < 0 or not contains(space, vector):
            found.append((f"vertices[{index}]", "is not in the space"))
    if not found:
        products = [weight * share for weight, share in zip(weights, shares, strict=True)]
        if proved_bound(vectors, law, products) < lower:
            found.append(("optimum.lower", "is larger than what the law proves"))
    return found


def space_of(data: Mapping[str, Any]) -> Noise:
    """Return a space as the mechanisms have it; raise ValueError where it is none."""
    entries = {name: value for name, value in data.items() if name != "type"}
    if "space" in entries:
        entries["space"] = space_of(entries["space"])
    return build(data["type"], [], entries.items())


def contains(space: Noise, vector: Vector) -> bool:
    """Whether the space contains the vector or its negative."""
    squares = [vector.square * entry * entry for entry in vector.entries]
    if len(squares) != dimension(space):
        return False
    match space.name:
        case "Box":
            return all(s <= b * b for s, b in zip(squares, space["bounds"], strict=True))
        case "L2Ball":
            return bool(sum(squares) <= space["radius"] * space["radius"])
        case "SparseBox":
            same = len({entry > 0 for entry in vector.entries if entry}) <= 1
            few = sum(1 for entry in vector.entries if entry) <= space["sparsity"]
            within = max(squares) <= space["bound"] * space["bound"]
            return few and within and (space["signed"] or same)
        case "FiniteSet":
            root = sqrt(vector.square)
            own = [root * entry for entry in vector.entries]
            return any(listed in (own, [-entry for entry in own]) for listed in space["vectors"])
    size = dimension(space["space"])
    blocks = [vector.entries[i : i + size] for i in range(0, len(vector.entries), size)]
    busy = [block for block in blocks if any(block)]
    return len(busy) <= 1 and all(contains(space["space"], Vector(vector.square, b)) for b in busy)


def proved_bound(
    vectors: Sequence[Vector], law: Sequence[Fraction], weights: Sequence[Fraction]
) -> Fraction:
    """Return a rational number that (tr (W^{1/2} M W^{1/2})^{1/2})² is not below."""
    with mp.workdps(_DIGITS):
        roots = [_root_below(weight) for weight in weights]
        used = [i for i, root in enumerate(roots) if root]
        points = [
            (mass * vector.square, [roots[i] * vector.entries[i] for i in used])
            for vector, mass in zip(vectors, law, strict=True)
        ]
        matrix = [
            [sum((w * v[i] * v[j] for w, v in points), Fraction(0)) for j in range(len(used))]
            for i in range(len(used))
        ]
        size = len(used)
        values, axes = mp.eigsy(mp.matrix([[_real(entry) for entry in row] for row in matrix]))
        room = mp.sqrt(max(values)) * mp.mpf(10) ** -_ROOM  # (A^{1/2} − cI)² is below A
        lengths = [mp.sqrt(max(value, mp.mpf(0))) - room for value in values]
        root = [[Fraction(0)] * size for _ in range(size)]
        for i in range(size):
            for j in range(i + 1):
                entry = sum(axes[i, k] * lengths[k] * axes[j, k] for k in range(size))
                root[i][j] = root[j][i] = _rational(entry)
    rest = _rows(_flint(matrix) - _flint(root) * _flint(root))
    trace = sum((root[i][i] for i in range(size)), start=Fraction(0))
    return trace * trace if trace > 0 and is_positive(rest, strictly=False) else Fraction(0)


def is_positive(matrix: Rows, *, strictly: bool) -> bool:
    """Whether a symmetric matrix is positive definite, or semidefinite."""
    found = pivots(matrix)
    return found is not None and (all(found) or not strictly)


def _is_symmetric(matrix: Rows, size: int) -> bool:
    return len(matrix) == size and all(
        len(row) == size and all(row[j] == matrix[j][i] for j in range(size))
        for i, row in enumerate(matrix)
    )


def _flint(matrix: Rows) -> fmpq_mat:
    return fmpq_mat([[fmpq(x.numerator, x.denominator) for x in row] for row in matrix])


def _rows(matrix: fmpq_mat) -> Rows:
    return [[Fraction(int(x.p), int(x.q)) for x in row] for row in matrix.table()]


def _root_below(value: Fraction) -> Fraction:
    """Return a rational number whose square is at most the value, and near it."""
    scale = 10 ** (2 * _DIGITS)
    root = math.isqrt(value.numerator * value.denominator * scale * scale)
    return Fraction(root, value.denominator * scale)


def _real(value: Fraction) -> Any:
    return mp.mpf(value.numerator) / value.denominator


def _rational(value: Any) -> Fraction:
    mantissa, exponent = abs(value).man_exp
    return Fraction(int(mp.sign(value)) * int(mantissa)) * Fraction(2) ** int(exponent)

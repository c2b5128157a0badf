"""Check a certificate of an optimal Gaussian shape, in fractions alone.

Upper bound: Σ is positive definite, and v'Σ⁻¹v ≤ 1 at every vertex v of the space, so that the
noise is 1-GDP; its weighted variance is summed. Lower bound: for a law w on vectors of the space
and M = Σ w_v vv', every private Σ has tr(SΣS) ≥ (tr (SMS)^{1/2})² for diagonal S. With any
symmetric B such that SMS − B² is positive semidefinite, (SMS)^{1/2} ⪰ B, so that tr B may take
the place of the trace. B is found in floating point here; that it is small enough is decided in
fractions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from flint import fmpq, fmpq_mat
from mpmath import mp

from verify.checker.mechanisms.quadratic import pivots
from verify.checker.optima.rationals import best, gap_problems, integer, number, signed_square
from verify.checker.outcome import Theorem

Problems = list[tuple[str, str]]
Rows = list[list[Fraction]]
_DIGITS = 90
"""Digits of roots and eigenvalues, which are then proved with room."""
_ROOM = 70
"""Digits of that room: it is far above what 90 digits lose, and far below any claim."""
_MOST_VERTICES = 1 << 14
"""Vertices that are listed."""


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
    space, found = given["space"], Problems()
    if not _is_sized(space):
        return [("given.space", "has a size that is negative, or no number")]
    size = dimension(space)
    weights = [number(text) for text in given["weights"]]
    if len(weights) != size or min(weights) <= 0:
        return [("given.weights", "are not one number > 0 for each coordinate")]
    covariance = [[number(text) for text in row] for row in data["covariance"]]
    lower, upper = (number(data["optimum"][end]) for end in ("lower", "upper"))
    found += gap_problems("optimum", lower, upper)
    if not _is_symmetric(covariance, size) or not is_positive(covariance, strictly=True):
        return [("covariance", "is not symmetric and positive definite")]
    if not is_private(space, covariance):
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


def _is_sized(space: Mapping[str, Any]) -> bool:
    """Whether bounds and radii are numbers >= 0."""
    if space["type"] == "DisjointGroups":
        return _is_sized(space["space"])
    sizes = [*space.get("bounds", ()), *(space[k] for k in ("bound", "radius") if k in space)]
    return all(signed_square(size) >= 0 for size in sizes)


def dimension(space: Mapping[str, Any]) -> int:
    """Return the number of coordinates of a space."""
    kind = space["type"]
    if kind == "Box":
        return len(space["bounds"])
    if kind == "FiniteSet":
        return len(space["vectors"][0])
    if kind == "DisjointGroups":
        return integer(space["groups"], 1) * dimension(space["space"])
    return integer(space["dimension"], 1)


def is_private(space: Mapping[str, Any], covariance: Rows) -> bool:
    """Whether v'Σ⁻¹v ≤ 1 for all v of the space."""
    if space["type"] == "L2Ball":
        square = signed_square(space["radius"])
        shifted = [
            [entry - (square if i == j else 0) for j, entry in enumerate(row)]
            for i, row in enumerate(covariance)
        ]
        return is_positive(shifted, strictly=False)
    inverse = _rows(_flint(covariance).inv())
    common = math.lcm(*(entry.denominator for row in inverse for entry in row))
    whole = [[int(entry * common) for entry in row] for row in inverse]
    for square, entries in vertices(space):
        unit = math.lcm(*(entry.denominator for entry in entries))
        active = [(i, int(entry * unit)) for i, entry in enumerate(entries) if entry]
        form = sum(a * b * whole[i][j] for i, a in active for j, b in active)
        if square * form > common * unit * unit:
            return False
    return True


def vertices(space: Mapping[str, Any]) -> Iterator[Vector]:
    """Yield vectors of the space whose convex hull, with their negatives, contains it."""
    kind = space["type"]
    if kind == "Box":
        vector = _vector(space["bounds"])
        for signs in _few(itertools.product((1, -1), repeat=len(vector.entries))):
            entries = tuple(s * e for s, e in zip(signs, vector.entries, strict=True))
            yield Vector(vector.square, entries)
    elif kind == "FiniteSet":
        yield from (_vector(entries) for entries in space["vectors"])
    elif kind == "DisjointGroups":
        size, groups = dimension(space["space"]), integer(space["groups"], 1)
        for inner in vertices(space["space"]):
            for group in range(groups):
                before, after = ([Fraction(0)] * (n * size) for n in (group, groups - 1 - group))
                yield Vector(inner.square, (*before, *inner.entries, *after))
    elif kind == "SparseBox":
        size, sparsity = dimension(space), integer(space["sparsity"], 1)
        signed = bool(space["signed"])
        for support, signs in _few(
            (support, signs)
            for ones in range(sparsity if signed else 1, sparsity + 1)
            for support in itertools.combinations(range(size), ones)
            for signs in itertools.product((1, -1) if signed else (1,), repeat=ones)
        ):
            spread = [Fraction(0)] * size
            for index, sign in zip(support, signs, strict=True):
                spread[index] = Fraction(sign)
            yield Vector(signed_square(space["bound"]), tuple(spread))
    else:
        raise ValueError(f"unknown space {str(kind)[:40]!r}")


def contains(space: Mapping[str, Any], vector: Vector) -> bool:
    """Whether the space contains the vector or its negative."""
    kind = space["type"]
    squares = [vector.square * entry * entry for entry in vector.entries]
    if len(squares) != dimension(space):
        return False
    if kind == "Box":
        bounds = [abs(signed_square(text)) for text in space["bounds"]]
        return all(s <= b for s, b in zip(squares, bounds, strict=True))
    if kind == "L2Ball":
        return sum(squares) <= signed_square(space["radius"])
    if kind == "SparseBox":
        bound = signed_square(space["bound"])
        same = len({entry > 0 for entry in vector.entries if entry}) <= 1
        few = sum(1 for entry in vector.entries if entry) <= integer(space["sparsity"], 1)
        return few and max(squares) <= bound and (bool(space["signed"]) or same)
    if kind == "FiniteSet":
        own = [_sign(entry) * square for entry, square in zip(vector.entries, squares, strict=True)]
        other = [-entry for entry in own]
        return any(
            [signed_square(text) for text in entries] in (own, other)
            for entries in space["vectors"]
        )
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


def _vector(entries: Sequence[object]) -> Vector:
    """Write entries as √square times rational ones; raise ValueError where that cannot be."""
    squares = [signed_square(entry) for entry in entries]
    unit = next((abs(square) for square in squares if square), Fraction(1))
    ratios = [_sign(square) * _exact_root(abs(square) / unit) for square in squares]
    return Vector(unit, tuple(ratios))


def _exact_root(square: Fraction) -> Fraction:
    root = Fraction(math.isqrt(square.numerator), math.isqrt(square.denominator))
    if root * root != square:
        raise ValueError("entries of one vector have an irrational ratio")
    return root


def _root_below(value: Fraction) -> Fraction:
    """Return a rational number whose square is at most the value, and near it."""
    scale = 10 ** (2 * _DIGITS)
    root = math.isqrt(value.numerator * value.denominator * scale * scale)
    return Fraction(root, value.denominator * scale)


def _few(choices: Iterator[Any]) -> Iterator[Any]:
    """Yield at most so many; raise ValueError for more."""
    yield from itertools.islice(choices, _MOST_VERTICES)
    if next(choices, None) is not None:
        raise ValueError(f"more than {_MOST_VERTICES} vertices")


def _sign(value: Fraction) -> int:
    return (value > 0) - (value < 0)


def _real(value: Fraction) -> Any:
    return mp.mpf(value.numerator) / value.denominator


def _rational(value: Any) -> Fraction:
    mantissa, exponent = abs(value).man_exp
    return Fraction(int(mp.sign(value)) * int(mantissa)) * Fraction(2) ** int(exponent)

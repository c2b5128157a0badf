"""Gaussian noise for the sum of k-sparse records: axes, the worst record, and that none is better.

Σ/μ² has the eigenvalue a₁ on (1, …, 1) and a₂ on its complement. A vector with n entries ±1, the
others 0, of sum t has w'Σ⁻¹w = (t²/d)/a₁ + (n − t²/d)/a₂: exactly, in a quadratic field.

Records with j ones have P/a₁ + Q/a₂ with P = j²/d and Q = j − P. Of all axes with P/a₁ + Q/a₂ ≤ 1
those of least trace a₁ + (d − 1)a₂ are, by Cauchy and Schwarz, a₁ = √P·S and a₂ = √(Q/(d − 1))·S
with S = √P + √((d − 1)Q), and the trace is S². That is the Count ellipse for j = k. Where no other
record with at most k ones is worse, nothing is better: the other constraints could only cost.

Else two constraints bind, of neighbours j and j + 1: 1/a₁ and 1/a₂ solve two linear equations. The
problem is convex, so weights w ≥ 0 on the two for which the gradients of the trace and of the
weighted constraint are parallel, E[P]/a₁² : E[Q]/a₂² = 1 : d − 1, prove that it is best.

Of all covariances, not only those with two axes: averaging over permutations of the coordinates
keeps every constraint (v'Σ⁻¹v is jointly convex) and the trace.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any, final

from dpassay.verifier.checker.notation import Noise
from dpassay.verifier.checker.reals import UnknownError, sqrt


@final
@dataclass(frozen=True)
class Ellipse:
    """d, a₁ and a₂ for μ = 1."""

    dimension: int
    along: Any
    across: Any

    def square(self, entries: int, total: int) -> Any:
        """Return w'Σ⁻¹w for n entries ±1 of sum t."""
        part = Fraction(total * total, self.dimension)
        return part / self.along + (entries - part) / self.across

    @property
    def query_variance(self) -> Any:
        """The trace over d."""
        return (self.along + (self.dimension - 1) * self.across) / self.dimension


def ellipse(noise: Noise) -> Ellipse:
    """Return the ellipse of a mechanism; UnknownError where none is proved to be the best."""
    d, k = int(noise["dimension"]), int(noise["sparsity"])
    return one_binding(d, k) if noise.name == "CountEllipse" else optimal(d, k)


def one_binding(d: int, j: int) -> Ellipse:
    """Return the ellipse of least trace for records with j ones."""
    if d == 1:
        return Ellipse(1, Fraction(1), Fraction(1))
    root = sqrt(Fraction((d - 1) * j * (d - j)))  # √(PQ(d − 1)) = (j/d)·root
    share = Fraction(j, d)
    return Ellipse(d, share * (j + root), share * (d - j + root / (d - 1)))


def optimal(d: int, k: int) -> Ellipse:
    """Return the ellipse of least trace for k-sparse records, proved to be the best."""
    near = (d + isqrt(d)) // 2
    for j in {min(k, max(1, n)) for n in (near - 1, near, near + 1, near + 2)}:
        found = one_binding(d, j)
        if found.across > 0 and not worst_record(found, k) > 1:
            return found
    for j in range(max(1, near - 2), min(k, near + 3)):
        both = _two_binding(d, j)
        if both is not None and not worst_record(both, k) > 1:
            return both
    raise UnknownError(f"the best ellipse for {k}-sparse records in {d} dimensions")


def _two_binding(d: int, j: int) -> Ellipse | None:
    """Return the ellipse through j and j + 1 ones where weights on the two prove it best."""
    ps = [Fraction(n * n, d) for n in (j, j + 1)]
    qs = [n - p for n, p in zip((j, j + 1), ps, strict=True)]
    determinant = ps[0] * qs[1] - ps[1] * qs[0]
    if not determinant:
        return None
    x, y = (qs[1] - qs[0]) / determinant, (ps[0] - ps[1]) / determinant
    if x <= 0 or y <= 0:
        return None
    excess = [p * x * x * (d - 1) - q * y * y for p, q in zip(ps, qs, strict=True)]
    if excess[0] * excess[1] > 0:  # no weights in [0, 1] make the mean 0
        return None
    return Ellipse(d, 1 / x, 1 / y)


def worst_record(found: Ellipse, k: int) -> Any:
    """Return the largest norm of vectors with at most k ones: a quadratic in their number."""
    ends = {1, k}
    if found.along > found.across:  # at the first n from which the next one is not larger

        def falls(n: int) -> bool:
            return not found.square(n, n) < found.square(n + 1, n + 1)

        ends.add(1 + bisect_left(range(1, k), True, key=falls))
    return max(found.square(n, n) for n in ends)


def worst_difference(found: Ellipse, k: int) -> Any:
    """Return the largest norm of v − v' for vectors with at most k ones each.

    With a ones and b minus ones, a, b ≤ k and a + b ≤ d, it is n/a₂ + (t²/d)(1/a₁ − 1/a₂) for
    n = a + b, t = a − b. Where a₁ < a₂ it is convex in (a, b) and largest at a corner of the
    polygon. Else the least |t| is best for each n, that is n mod 2, and it grows with n, since a
    step of n costs at most (1/d)/a₂ by t: so n = min(2k, d).
    """
    d, most = found.dimension, min(2 * k, found.dimension)
    if found.across > found.along:
        corners = ((k, 0), (k, min(k, d - k)))
        return max(found.square(a + b, a - b) for a, b in corners)
    return found.square(most, most % 2)

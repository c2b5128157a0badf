"""Sensitivity spaces: sets that contain the differences of the true answers on neighbours.

A space is a set of differences v. It may be taken as closed under v → −v, since neighbours are
unordered and all norms here are even. The largest Mahalanobis norm √(v'Σ⁻¹v) over the space is the
exact μ of adding N(0, Σ). The norm is convex, so its maximum over a box is at a vertex.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from flint import arb

from dpassay.accountant.core.validate import (
    Description,
    Instance,
    Integer,
    Positive,
    Read,
    Reals,
    Switch,
    declared,
    rows_of,
)
from dpassay.accountant.errors import InvalidInputError, expected
from dpassay.accountant.geometry.ellipse import (
    Covariance,
    Diagonal,
    Ellipse,
    Isotropic,
    Matrix,
    outside_range,
    require_sparsity,
)
from dpassay.accountant.numbers.exact import ExactReal, Number, exact, inverse, largest_value


@final
@dataclass(frozen=True, slots=True)
class Norm:
    """A norm, as an exact number if one is known, and as a ball at flint's precision."""

    exact: ExactReal | None
    ball: Callable[[], arb]

    @staticmethod
    def of_square(square: ExactReal) -> Norm:
        """Return the norm whose square is an exact number."""
        norm = square.root()
        return Norm(norm, norm.ball)


class Space(Description, ABC):
    """A bounded set of differences, not all of them zero."""

    worst: ClassVar[str]
    """Where the largest norm is attained, in words."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Number of coordinates."""

    @abstractmethod
    def largest_norm(self, covariance: Covariance) -> Norm:
        """Return the largest √(v'Σ⁻¹v) over the space, for a covariance of the same dimension.

        Raises
        ------
        InvalidInputError
            If Σ is singular and a difference is not in its range, or if the maximum requires too
            many vertices.
        """


@declared
class L2Ball(Space):
    """All differences whose ℓ2 norm is at most `radius`."""

    worst = "along the eigenvector of the least variance"

    dimension: Integer = Integer(least=1)
    radius: Positive = Positive(1)

    def largest_norm(self, covariance: Covariance) -> Norm:
        """Return radius/√λ, where λ is the least eigenvalue."""
        if covariance.exact_least_eigenvalue() == 0:
            raise outside_range("a vector of the ball")
        least = covariance.exact_least_eigenvalue()
        if least is not None:
            return Norm.of_square(self.radius.squared.times(1 / least))
        return Norm(None, lambda: self.radius.ball() / covariance.least_eigenvalue().sqrt())


@declared
class Box(Space):
    """All v with |v_j| ≤ bounds[j]."""

    worst = "at a corner of the box"

    bounds: Reals = Reals(least=0)

    def __post_init__(self) -> None:
        if not any(bound.sign for bound in self.bounds):
            raise InvalidInputError("Expected bounds with an entry > 0: nothing would change.")

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return len(self.bounds)

    def largest_norm(self, covariance: Covariance) -> Norm:
        """Return the norm of the worst corner."""
        active = [j for j, bound in enumerate(self.bounds) if bound.sign]
        if covariance.independent is not None:
            return Norm.of_square(_independent_sum(covariance.independent, self.bounds))
        unit, ratios = common_root("bounds", self.bounds)
        if covariance.axes is not None and 0 not in covariance.axes:
            along, across = covariance.axes
            total = sum(ratios, Fraction(0))
            if along > across and len(set(ratios)) == 1:
                total = ratios[0] * (len(ratios) % 2)  # the least |Σ ±b| over all signs
            if along <= across or len(set(ratios)) == 1:
                mean = total**2 / covariance.dimension
                rest = sum((ratio**2 for ratio in ratios), Fraction(0)) - mean
                return Norm.of_square(unit.squared.times(mean / along + rest / across))
        inner = covariance.precision(active)
        scaled = tuple(
            tuple(entry * ratios[i] * ratios[j] for j, entry in zip(active, row, strict=True))
            for i, row in zip(active, inner, strict=True)
        )
        return Norm.of_square(unit.squared.times(largest_value(scaled, len(active), signed=True)))


@declared
class SparseBox(Space):
    """All v with at most k non-zero entries, each in [0, bound] ([−bound, bound] if signed).

    Parameters
    ----------
    dimension, sparsity
        The number of coordinates, and k between 1 and that number.
    bound
        The largest absolute value of an entry, > 0.
    signed
        Whether entries may be negative. Counts under add/remove are not signed; with sparsity =
        dimension the space is then the whole box [0, bound]^d.
    """

    worst = "at a vector of entries 0 and ±bound"

    dimension: Integer = Integer(least=1)
    sparsity: Integer = Integer(least=1)
    bound: Positive = Positive(1)
    signed: Switch = Switch(False)

    def __post_init__(self) -> None:
        require_sparsity(self.dimension, self.sparsity)

    def largest_norm(self, covariance: Covariance) -> Norm:
        """Return the norm of the worst vertex."""
        return Norm.of_square(self.bound.squared.times(self._largest_square(covariance)))

    def _largest_square(self, covariance: Covariance) -> Fraction:
        k = self.sparsity
        if covariance.axes is not None and 0 not in covariance.axes:
            return self._exchangeable_square(*covariance.axes)
        if covariance.independent is not None:
            smallest = sorted(covariance.independent)[:k]
            if not smallest[0]:
                raise outside_range("a change of a coordinate of variance 0")
            return sum((1 / variance for variance in smallest), Fraction(0))
        form = covariance.precision(range(self.dimension))
        return largest_value(form, k, signed=self.signed)

    def _exchangeable_square(self, along: Fraction, across: Fraction) -> Fraction:
        """Return the largest j/across + (t²/d)(1/along − 1/across), t the sum of j entries."""
        curvature = (1 / along - 1 / across) / self.dimension
        k = self.sparsity
        if curvature >= 0:  # k entries of one sign
            return k / across + curvature * k * k
        if self.signed:  # k entries of both signs, with sum 0 or ±1
            return k / across + curvature * (k % 2)
        peak = int(-1 / (2 * curvature * across))  # concave in j: one of the integers at the peak
        candidates = [min(k, max(1, j)) for j in (peak, peak + 1)]
        return max(j / across + curvature * j * j for j in candidates)


@declared
class FiniteSet(Space):
    """The listed differences and their negatives."""

    worst = "at one of the listed differences"

    vectors: Read[tuple[tuple[ExactReal, ...], ...], Sequence[Sequence[Number]]] = Read(rows_of)

    def __post_init__(self) -> None:
        if not any(entry.sign for vector in self.vectors for entry in vector):
            raise InvalidInputError("Expected a vector other than 0: nothing would change.")

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return len(self.vectors[0])

    def largest_norm(self, covariance: Covariance) -> Norm:
        """Return the largest norm of a listed vector."""
        squares = []
        for index, vector in enumerate(self.vectors):
            if not any(entry.sign for entry in vector):
                continue
            unit, ratios = common_root(f"vectors[{index}]", vector)
            norm = covariance.squared_norm(ratios)
            if norm is None:
                raise outside_range(f"vectors[{index}]")
            squares.append(unit.squared.times(norm))
        return Norm.of_square(max(squares))


def space_field() -> Instance[Space]:
    """Return a field that accepts a space."""
    return Instance(
        Space,
        "sensitivity space",
        "Write L2Ball(…), Box(…), SparseBox(…), FiniteSet(…) or DisjointGroups(…).",
    )


@declared
class DisjointGroups(Space):
    """Differences within one of m consecutive blocks; within a block, those of a common space."""

    worst = "in the group where the norm of the inner space is largest"

    groups: Integer = Integer(least=1)
    space: Instance[Space] = space_field()

    @property
    def dimension(self) -> int:
        """Number of coordinates of all blocks together."""
        return self.groups * self.space.dimension

    def largest_norm(self, covariance: Covariance) -> Norm:
        """Return the largest norm over the diagonal blocks of Σ⁻¹."""
        inner = [self.space.largest_norm(block) for block in self._blocks(covariance)]
        known = [norm.exact for norm in inner if norm.exact is not None]
        if len(known) == len(inner):
            largest = max(known)
            return Norm(largest, largest.ball)
        return Norm(None, lambda: functools.reduce(arb.max, [norm.ball() for norm in inner]))

    def _blocks(self, covariance: Covariance) -> list[Covariance]:
        """Return the inverse of each diagonal block of Σ⁻¹: its noise, given all other blocks."""
        size = self.space.dimension
        if isinstance(covariance, Isotropic):
            return [Isotropic(size, covariance.variance)]
        spans = [range(j * size, (j + 1) * size) for j in range(self.groups)]
        variances = covariance.independent
        if variances is not None:
            return [Diagonal([variances[i] for i in span]) for span in spans]
        return [Matrix(inverse(covariance.precision(span))) for span in spans]


def common_root(name: str, entries: Sequence[ExactReal]) -> tuple[ExactReal, list[Fraction]]:
    """Write entries as u·r_i with rational r_i, and return u and the r_i.

    Raises
    ------
    InvalidInputError
        If two entries have an irrational ratio.
    """
    unit = next(entry for entry in entries if entry.sign)
    if unit.rational is not None:
        unit = exact(1)
    ratios = []
    for index, entry in enumerate(entries):
        ratio = (entry / unit).rational
        if ratio is None:
            raise expected(
                f"{name}[{index}]",
                entry,
                f"to be a rational multiple of {unit}",
                "Norms with correlated noise are exact for entries of rational ratios.",
            )
        ratios.append(ratio)
    return unit, ratios


def _independent_sum(variances: Sequence[Fraction], bounds: Sequence[ExactReal]) -> ExactReal:
    """Return Σ bound²/variance over the coordinates with a positive bound."""
    total = exact(0)
    for index, (variance, bound) in enumerate(zip(variances, bounds, strict=True)):
        if bound.sign and not variance:
            raise outside_range(f"a change of coordinate {index}, of variance 0,")
        if bound.sign:
            total += bound.squared.times(1 / variance)
    return total


# --- Proof that an ellipse is private and that no Gaussian has a smaller variance -----------------
# Let w be a law on the records and M = E_w[vv']. A 1-GDP covariance Σ has v'Σ⁻¹v ≤ 1 for every
# record, so tr(Σ⁻¹M) ≤ 1. By the Cauchy-Schwarz inequality,
#
#     (tr M^{1/2})² = (tr Σ^{1/2}·Σ^{−1/2}M^{1/2})² ≤ tr Σ · tr(M^{1/2}Σ⁻¹M^{1/2}) ≤ tr Σ.
#
# Let w be a law on the number of ones j, uniform given j. Then M has the simple eigenvalue
# P = E[j²]/d and the eigenvalue Q/(d−1), Q = E[j] − P, of multiplicity d − 1. The bound is
# (√P + √((d−1)Q))². It holds for every Σ, permutation invariant or not, and for mechanisms that
# release more and post-process linearly. All checks here are exact, and independent of how the
# ellipse was found.


def dual_bound(dimension: int, weights: tuple[tuple[int, Fraction], ...]) -> ExactReal:
    """Return (√P + √((d−1)Q))², a lower bound on the trace of every 1-GDP covariance."""
    mean = sum((weight * j for j, weight in weights), Fraction(0))
    along = sum((weight * j * j for j, weight in weights), Fraction(0)) / dimension
    across = (dimension - 1) * (mean - along)
    return exact(along + across) + ExactReal.of_root(along * across).times(2)


def defects(ellipse: Ellipse) -> tuple[str, ...]:
    """Return what is wrong with the claim that `ellipse` is 1-GDP and optimal; () if nothing.

    Checks that the axes are positive, that every constraint j = 0, …, sparsity holds, that the
    weights are a law on 1, …, sparsity, and that the trace equals the dual bound.
    """
    d, k = ellipse.dimension, ellipse.sparsity
    if not 1 <= k <= d:
        return (f"Expected sparsity={k} between 1 and dimension={d}.",)
    if ellipse.axis_ones.sign <= 0 or ellipse.axis_rest.sign <= 0:
        return ("Expected positive axes.",)
    numbers = [j for j, _ in ellipse.weights]
    if not numbers or not all(1 <= j <= k for j in numbers):
        return (f"Expected weights on numbers of ones {numbers} within 1..{k}.",)
    probabilities = [weight for _, weight in ellipse.weights]
    if any(weight < 0 for weight in probabilities) or sum(probabilities) != 1:
        return (f"Expected weights {probabilities} ≥ 0 that sum to 1.",)
    found = []
    if not _is_private(ellipse, numbers[0]):
        found.append(f"Expected v'Σ⁻¹v ≤ 1 for up to {k} ones.")
    bound = dual_bound(d, ellipse.weights)
    if bound != ellipse.trace:
        found.append(f"Expected trace {ellipse.trace} = dual bound {bound}.")
    return tuple(found)


def _is_private(ellipse: Ellipse, peak: int) -> bool:
    """Decide whether h(j) = quadratic·j² + linear·j ≤ 1 for every integer j in 0..sparsity.

    If h is convex, its maximum is at an end, and h(0) = 0. If h is concave, a `peak` that is no
    lower than its neighbours is the maximum over the integers.
    """
    d, k = ellipse.dimension, ellipse.sparsity
    one = exact(1)
    linear = one / ellipse.axis_rest if d > 1 else exact(0)
    quadratic = (one / ellipse.axis_ones - linear).times(Fraction(1, d))

    def excess(j: int) -> ExactReal:
        return quadratic.times(j * j) + linear.times(j) - one

    if quadratic.sign >= 0:
        return excess(k).sign <= 0
    # h(j+1) − h(j) = quadratic·(2j+1) + linear
    step_down = quadratic.times(2 * peak - 1) + linear
    step_up = quadratic.times(2 * peak + 1) + linear
    is_peak = step_down.sign >= 0 and (peak == k or step_up.sign <= 0)
    return is_peak and excess(peak).sign <= 0

"""Problems of optimal Gaussian shapes, and the vertices of their sensitivity spaces."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, final

from flint import fmpq, fmpq_mat

from dpassay.accountant.core.description import Description
from dpassay.accountant.core.validate import Instance, OneOf, OptionalRationals
from dpassay.accountant.errors import InvalidInputError, NotApplicableError, expected
from dpassay.accountant.geometry.spaces import (
    Box,
    DisjointGroups,
    FiniteSet,
    L2Ball,
    Space,
    SparseBox,
    common_root,
    space_field,
)
from dpassay.accountant.numbers.exact import vertex_count

_MOST_VERTICES = 4096
"""Vertices of a sensitivity space that are listed."""


class Vertex(NamedTuple):
    """The vector √square·entries; only its outer product matters, which is rational."""

    square: Fraction
    entries: tuple[Fraction, ...]


@final
@dataclass(frozen=True, repr=False)
class GaussianShapeProblem(Description):
    """The covariance Σ of least variance with v'Σ⁻¹v ≤ 1 for every difference v of a space.

    N(0, Σ) is then 1-GDP; Σ/μ² is best for any other μ.

    Parameters
    ----------
    space
        `Box`, `SparseBox`, `L2Ball`, `FiniteSet` (which stands for the symmetric polytope with
        these vertices, too) or `DisjointGroups` of these; they span all coordinates.
    objective
        "total" is Σ_i weight_i Σ_ii; "worst" is max_i weight_i Σ_ii.
    weights
        A weight > 0 for each coordinate; all 1 unless given.
    """

    space: Instance[Space] = space_field()
    objective: OneOf = OneOf("total", "worst", default="total")
    weights: OptionalRationals = OptionalRationals(strict=True)

    def __post_init__(self) -> None:
        dimension = self.space.dimension
        if self.weights is not None and len(self.weights) != dimension:
            raise expected("weights", len(self.weights), f"entries to be {dimension}, as the space")
        found = vertices(self.space)
        entries = [[fmpq(e.numerator, e.denominator) for e in v.entries] for v in found]
        rank = fmpq_mat(entries).rref()[1]
        if rank < dimension:
            raise InvalidInputError(
                f"Expected differences that span all {dimension} coordinates, not {rank} "
                "dimensions: some combination of the answers needs no noise. Leave it out."
            )

    def weight_list(self) -> tuple[Fraction, ...]:
        """Return the weights."""
        return self.weights or (Fraction(1),) * self.space.dimension


def vertices(space: Space) -> list[Vertex]:
    """List the differences that decide the norm, one of v and −v.

    Of a ball, which has no vertices, the axes: the best Σ for them is best for the ball as well.

    Raises
    ------
    NotApplicableError
        For a space that is not a polytope with a list of vertices.
    InvalidInputError
        If there are more than 4096, or entries of one vector have an irrational ratio.
    """
    dimension = space.dimension
    if isinstance(space, FiniteSet):
        return [
            Vertex(unit.square, tuple(ratios))
            for index, vector in enumerate(space.vectors)
            if any(entry.sign for entry in vector)
            for unit, ratios in [common_root(f"vectors[{index}]", vector)]
        ]
    if isinstance(space, Box):
        _require_few(1 << (dimension - 1))
        unit, ratios = common_root("bounds", space.bounds)
        signs = itertools.product((1, -1), repeat=dimension - 1)
        return [
            Vertex(unit.square, tuple(s * r for s, r in zip((1, *sign), ratios, strict=True)))
            for sign in signs
        ]
    if isinstance(space, SparseBox):
        k = space.sparsity
        _require_few(vertex_count(dimension, k, signed=space.signed))
        supports = itertools.chain.from_iterable(
            itertools.combinations(range(dimension), ones)
            for ones in ([k] if space.signed else range(1, k + 1))
        )
        return [
            Vertex(space.bound.square, _spread(dimension, support, (1, *sign)))
            for support in supports
            for sign in itertools.product(
                (1, -1) if space.signed else (1,), repeat=len(support) - 1
            )
        ]
    if isinstance(space, L2Ball):
        axes = range(dimension)
        return [Vertex(space.radius.square, _spread(dimension, [axis], [1])) for axis in axes]
    if isinstance(space, DisjointGroups):
        inner, size = vertices(space.space), space.space.dimension
        _require_few(space.groups * len(inner))
        padding = [Fraction(0)] * size
        return [
            Vertex(
                vertex.square,
                (*padding * group, *vertex.entries, *padding * (space.groups - 1 - group)),
            )
            for group in range(space.groups)
            for vertex in inner
        ]
    raise NotApplicableError(
        f"{type(space).__name__} has no list of vertices. Give a Box, a SparseBox, an L2Ball or a "
        "FiniteSet, or DisjointGroups of them."
    )


def _spread(dimension: int, support: Sequence[int], signs: Sequence[int]) -> tuple[Fraction, ...]:
    entries = [Fraction(0)] * dimension
    for index, sign in zip(support, signs, strict=True):
        entries[index] = Fraction(sign)
    return tuple(entries)


def _require_few(count: int) -> None:
    if count > _MOST_VERTICES:
        raise InvalidInputError(
            f"Expected at most {_MOST_VERTICES} vertices, not {count}. Give fewer dimensions; "
            "OptimalEllipse and EllipticalGaussian have closed forms for any number."
        )

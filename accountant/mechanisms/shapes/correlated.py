"""Correlated Gaussian noise: Lebeda's Algorithm 1 and its family."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, TypeVar

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency, require
from dpassay.accountant.core.arrays import np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.validate import Integer, OptionalPositive, Positive, Switch
from dpassay.accountant.mechanisms.shapes.shared_noise import SharedNoise
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.pairs.gaussian import GaussianPair

Real = TypeVar("Real", Fraction, arb)


@declared
class CorrelatedGaussian(SharedNoise):
    """Release d counts with noise η + z_i, and the number of records with noise 2η.

    η ~ N(0, A/(4μ²)) is shared by all counts and z_i ~ N(0, B/(4μ²)) is independent, with
    A = d/C² + 1 and B = d + C². Records lie in {0,1}^d or [0,1]^d. Equivalently
    (Lebeda, Lemmas 3.2 to 3.5): embed a record as x̂ = (2x − 1, C), add N(0, B/μ²) to each
    coordinate of g = Σ x̂, and release (g_i + g_{d+1}/C)/2 and g_{d+1}/C. C = d^{1/4} is
    Algorithm 1: it minimises the query variance (A + B)/(4μ²), to (√d + 1)²/(4μ²).

    Parameters
    ----------
    dimension
        d ≥ 1, the number of counts.
    mu
        μ > 0: the mechanism with the size is exactly μ-GDP under add/remove.
    c
        C > 0; None is d^{1/4}.
    release_size
        Whether the noisy number of records is part of the output, as the last coordinate.

    Notes
    -----
    `mean_squared_error` averages over everything released, the size included; the error of one
    query is the first entry of `variances`.
    """

    example = "CorrelatedGaussian(dimension=9, mu=1)"
    _of_one_count = "Set release_size=False for the quantile of a count."

    dimension: Integer = Integer(least=1)
    mu: Positive = Positive()
    c: OptionalPositive = OptionalPositive()
    release_size: Switch = Switch(True)

    @property
    def c_squared(self) -> ExactReal:
        """C², exactly."""
        if self.c is None:
            return ExactReal.of_root(Fraction(self.dimension))
        return self.c.squared

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return N(μ', 1) against N(0, 1) with the exact μ' of the relation."""
        relation = require(adjacency, self)
        return WorstCase.symmetric(GaussianPair(self, relation), self._reason(relation))

    def _reason(self, relation: Adjacency) -> str:
        convex = "the squared Mahalanobis norm is convex, so the worst records have entries 0 or 1"
        match relation, self.release_size:
            case Adjacency.ADD_REMOVE, True:
                why = "every such record v has (‖2v − 1‖² + C²)/(d + C²) = 1"
            case Adjacency.ADD_REMOVE, False:
                why = "j ones have 4(j/B)(1 − j/B), B = d + C², largest at the j ≤ d nearest B/2"
            case Adjacency.REPLACE_ONE, True:
                why = (
                    "the size is unchanged, w = v − v' has 4‖w‖²/B, at most 4d/B, at w in {−1,1}^d"
                )
            case _:
                why = "w = v − v' has 4(‖w‖² − (Σw)²/B)/B, largest at w in {−1,1}^d with |Σw| ≤ 1"
        return f"In units of μ²: {convex}, and {why}."

    def enclosed_gaussian_mu(self, adjacency: Adjacency | None) -> arb:
        """Return the exact μ' under the named relation.

        Add/remove: μ with the size; without it 2μ√(j(B − j))/B for the worst number of ones j,
        which is μ only where B/2 is an integer. Replace one: 2μ√(d/B) with the size;
        without it 2μ√((d − (d mod 2)/B)/B).
        """
        whole = self.dimension + self.c_squared.ball()
        return self.mu.ball() * self._unit_square(require(adjacency, self), whole).sqrt()

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return the same where C² does not enter, or is rational."""
        relation = require(adjacency, self)
        if relation is Adjacency.ADD_REMOVE and self.release_size:
            return self.mu
        rational = self.c_squared.rational
        if rational is None:
            return None
        return self.mu * ExactReal.of_root(self._unit_square(relation, self.dimension + rational))

    def _unit_square(self, relation: Adjacency, B: Real) -> Real:
        """Return (μ'/μ)² for B = d + C², exact or as a ball (not for add/remove with the size)."""
        d = self.dimension
        if relation is Adjacency.ADD_REMOVE:
            j = self._worst_ones()
            return 4 * j * (B - j) / (B * B)
        if self.release_size:
            return 4 * d / B
        return 4 * (d - d % 2 / B) / B

    def _worst_ones(self) -> int:
        """Return the j in 0..d that maximises j(B − j): the largest with 2j − 1 ≤ B."""
        square = self.c_squared
        floor = math.floor(square)
        return min(self.dimension, (self.dimension + 1 + floor) // 2)

    def worst_shift(self) -> Any:
        """Return a record with every attribute."""
        return np.ones(self.dimension + int(self.release_size))

    def parts(self) -> tuple[arb, arb]:
        """Return A/(4μ²) and B/(4μ²)."""
        square, unit = self.c_squared.ball(), 4 * self.mu.ball() ** 2
        return (self.dimension / square + 1) / unit, (self.dimension + square) / unit

    @property
    def _has_size(self) -> bool:
        return self.release_size

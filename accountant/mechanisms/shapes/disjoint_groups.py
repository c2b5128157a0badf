"""Correlated Gaussian noise for disjoint groups: Lebeda's Algorithm 2."""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.validate import Integer, Positive, Relation, Switch
from dpassay.accountant.mechanisms.shapes.shared_noise import SharedNoise
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.pairs.gaussian import GaussianPair


@declared
class DisjointGroupsGaussian(SharedNoise):
    """Release d counts and a size for each of m groups, each record being in one group.

    Records are m×d matrices in [0,1] with at most one non-zero row. Row j releases
    f_jk + η_j + z_jk for k = 1, …, d, and its number of records + 2η_j.

    ================  =================  ==============
    made for          Var η_j · μ²       Var z_jk · μ²
    ================  =================  ==============
    add-remove        (√d + 1)/4         (d + √d)/4
    replace-one       1 (printed: 4)     d
    ================  =================  ==============

    For replace-one the paper prints η_j ~ N(0, 4/μ²), but its proof (Lemma 4.2, C = √d) derives
    Z_{j,d+1}/(2C), of variance 1/μ²; 4/μ² is the variance of 2η_j. Both are μ-GDP.

    Parameters
    ----------
    groups, dimension
        m ≥ 1 and d ≥ 1.
    mu
        μ > 0.
    adjacency
        The relation that the noise is made for. Questions may name another one; without a name
        they are about this one.
    as_printed
        Use the printed variance of η_j under replace-one.
    """

    example = "DisjointGroupsGaussian(groups=4, dimension=9, mu=1, adjacency='add-remove')"

    groups: Integer = Integer(least=1)
    dimension: Integer = Integer(least=1)
    mu: Positive = Positive()
    adjacency: Relation = Relation()
    as_printed: Switch = Switch(False)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return N(μ', 1) against N(0, 1) with the exact μ' of the relation."""
        relation = self.adjacency if adjacency is None else adjacency
        if relation is Adjacency.ADD_REMOVE:
            why = "one record v has ‖v − ½‖²/Var z + 1/(4 Var η), largest for entries 0 or 1"
        else:
            why = (
                "within a row v − v' has at most d/Var z (for d = 1 a supremum over [0,1]: the "
                "row of an all-zero record is not defined); a change of row adds up the two rows"
            )
        return WorstCase.symmetric(
            GaussianPair(self, relation),
            f"Given the size of a row, its counts carry z alone: {why}.",
        )

    def enclosed_gaussian_mu(self, adjacency: Adjacency | None) -> arb:
        """Return the exact μ' under the named relation, or else the one that it is made for.

        Per row and in units of μ², a record alone has A = d/(4 Var z) + 1/(4 Var η); under
        replace-one the worst of d/Var z (same row), 2A (another row, m ≥ 2) and A (to or from
        an all-zero record).
        """
        # made for add/remove, asked for replace-one: A = 1, and √d is irrational
        within = 4 * self.dimension / (self.dimension + arb(self.dimension).sqrt())
        return self.mu.ball() * within.max(arb(self._moves)).sqrt()

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return the same where √d does not enter, or is an integer."""
        relation = self.adjacency if adjacency is None else adjacency
        d = self.dimension
        if self.adjacency is Adjacency.ADD_REMOVE:
            if relation is Adjacency.ADD_REMOVE:  # d/(d + √d) + 1/(√d + 1) = 1
                return self.mu
            root = math.isqrt(d)
            if root * root != d:
                return None
            square = max(Fraction(4 * d, d + root), Fraction(self._moves))
        else:
            alone = Fraction(1, 4) + (Fraction(1, 16) if self.as_printed else Fraction(1, 4))
            square = (
                alone if relation is Adjacency.ADD_REMOVE else max(Fraction(1), self._moves * alone)
            )
        return self.mu * ExactReal.of_root(square)

    @property
    def _moves(self) -> int:
        """Rows that a replacement can change at most."""
        return min(2, self.groups)

    def parts(self) -> tuple[arb, arb]:
        """Return the variances of η_j and of z_jk."""
        unit, root = 1 / self.mu.ball() ** 2, arb(self.dimension).sqrt()
        if self.adjacency is Adjacency.ADD_REMOVE:
            return unit * (root + 1) / 4, unit * (self.dimension + root) / 4
        return unit * (4 if self.as_printed else 1), unit * self.dimension

    @property
    def _has_size(self) -> bool:
        return True

    @property
    def _groups(self) -> int:
        return self.groups

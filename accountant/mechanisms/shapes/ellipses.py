"""Gaussian noise of least variance: for sparse counts, for a box, and for counts in groups."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency, require
from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.mechanism import GaussianNoise
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.validate import Integer, Positive, Reals, Relation, declared
from dpassay.accountant.errors import InvalidInputError, NotApplicableError
from dpassay.accountant.geometry.ellipse import Ellipse, count_ellipse, optimal_ellipse
from dpassay.accountant.mechanisms.additive.gaussian import normal_quantile
from dpassay.accountant.mechanisms.shapes.correlated import SharedNoise
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.release.lattice import LatticeSampler, LinearNoise, independent


@dataclass(frozen=True, repr=False)
class EllipseMechanism(SharedNoise):
    """Release the sum of k-sparse records plus N(0, Σ/μ²), where Σ is given by an ellipse.

    Records have at most k non-zero entries, which lie in {0,1} or [0,1].
    """

    dimension: Integer = Integer(least=1)
    sparsity: Integer = Integer(least=1)
    mu: Positive = Positive()

    def __post_init__(self) -> None:
        _ = self.ellipse

    @property
    @abstractmethod
    def ellipse(self) -> Ellipse:
        """The covariance for μ = 1, with its dual weights."""

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pair N(μ', 1) and N(0, 1), with the exact μ' of the relation."""
        relation = require(adjacency, self)
        if relation is Adjacency.ADD_REMOVE:
            bound = ", ".join(str(j) for j, _ in self.ellipse.weights)
            why = f"over {{0,1}} vectors with at most k ones it is μ², at {bound} ones"
        else:
            why = (
                "over differences of two such vectors it is largest with min(2k, d) non-zero "
                "entries that sum to 0 or 1, since the noise along (1, …, 1) is the larger one"
            )
        return WorstCase.symmetric(
            GaussianPair(self, relation),
            "The squared Mahalanobis norm is convex, so the worst records have entries 0 or 1; "
            f"{why}.",
        )

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal:
        """Return μ under add/remove, or μ times the largest norm of a difference (replace-one).

        A difference with n non-zero entries ±1 of sum t has the squared norm
        n/a₂² + (t²/d)(1/a₁² − 1/a₂²), where a₁ is the axis along (1, …, 1) and a₂ the other one.
        a₁ ≥ a₂ for every ellipse here, so n = min(2k, d) and t = n mod 2 are worst.
        """
        if require(adjacency, self) is Adjacency.ADD_REMOVE:
            return self.mu
        nonzero = min(2 * self.sparsity, self.dimension)
        return self.mu * self.ellipse.squared_norm(nonzero, nonzero % 2).root()

    def _over_mu_squared(self, value: ExactReal) -> arb:
        return value.times(1 / self.mu.square).ball()

    def worst_shift(self) -> Any:
        """Return a record with k ones, the largest number."""
        shift = np.zeros(self.dimension)
        shift[: self.sparsity] = 1
        return shift

    def parts(self) -> tuple[arb, arb]:
        """Return the variances of the noise that all counts share and of each count's own noise."""
        if self.dimension == 1:
            return arb(0), self.variances()[0]
        shared = self._over_mu_squared(self.ellipse.correlated_variance)
        return shared, self._over_mu_squared(self.ellipse.axis_rest)

    def variances(self) -> list[arb]:
        """Return the variance of a count, which is the same for all."""
        return [self._over_mu_squared(self.ellipse.query_variance)]


@declared
class CountEllipse(EllipseMechanism):
    """Release k-sparse counts with Gaussian noise that is optimal for records with exactly k ones.

    This is the count ellipse of Joseph and Yu. The variance of a count is
    (k + √((d−1) k (d−k)))²/(d²μ²), and (d + 2√(d−1))/(4μ²) at k = d/2 (Lebeda, Lemma 4.3). It is
    the least variance of Gaussian noise for these k.

    Parameters
    ----------
    dimension
        d ≥ 1, the number of counts.
    sparsity
        k, 1 ≤ k ≤ max(1, d/2); use `OptimalEllipse` for larger k.
    mu
        μ > 0; the mechanism is exactly μ-GDP under add/remove.
    """

    example = "CountEllipse(dimension=10, sparsity=3, mu=1)"

    @property
    def ellipse(self) -> Ellipse:
        """The covariance for μ = 1, with its dual weights."""
        return count_ellipse(self.dimension, self.sparsity)


@declared
class OptimalEllipse(EllipseMechanism):
    """Release k-sparse counts with the least variance of a count that Gaussian noise can have.

    `dpassay.accountant.geometry.ellipse` defines the covariance, and
    `dpassay.accountant.geometry.spaces.defects` proves exactly that no covariance is better. For
    k ≤ d/2 this is `CountEllipse`. For k = d it is Lebeda's Algorithm 1 without the size if d is a
    perfect square, and strictly better otherwise.

    Parameters
    ----------
    dimension
        d ≥ 1, the number of counts.
    sparsity
        k, 1 ≤ k ≤ d.
    mu
        μ > 0; the mechanism is exactly μ-GDP under add/remove.
    """

    example = "OptimalEllipse(dimension=10, sparsity=3, mu=1)"

    @property
    def ellipse(self) -> Ellipse:
        """The covariance for μ = 1, with its dual weights."""
        return optimal_ellipse(self.dimension, self.sparsity)


# --- Elliptical Gaussian noise: least total variance for a box of differences ---------------------


@declared
class EllipticalGaussian(GaussianNoise):
    """Release d answers with independent noise N(0, σ_j²), where σ_j² = Δ_j·ΣΔ_i/μ².

    Among all covariances Σ that give μ-GDP for the box |v_j| ≤ Δ_j, this one has the least trace,
    (ΣΔ_j)²/μ². *Proof.* The average of v'Σ⁻¹v over the signs of the corners is
    Σ Δ_j²(Σ⁻¹)_jj ≥ Σ Δ_j²/Σ_jj. So by Cauchy–Schwarz
    (ΣΔ_j)² = (Σ (Δ_j/√Σ_jj)·√Σ_jj)² ≤ μ² tr Σ. Isotropic noise has a trace that is larger by the
    factor d·ΣΔ_j²/(ΣΔ_j)² (Poulsen; Pagh and Lebeda).

    Parameters
    ----------
    sensitivities
        Δ_j > 0: coordinate j of the true answers on two neighbours differs by at most Δ_j, for
        whichever relation it was computed. For sums of vectors with |x_j| ≤ Δ_j/2 this relation is
        replace-one; under add/remove the sensitivities of the same sums are Δ_j/2.
    mu
        μ > 0; the mechanism is exactly μ-GDP if the differences attain the corners of the box.
    """

    example = "EllipticalGaussian(sensitivities=[1, 2, 8], mu=1)"

    noise_argument = "mu"
    noise_grows = False

    sensitivities: Reals = Reals(least=0, strict=True)
    mu: Positive = Positive()

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pair N(μ, 1) and N(0, 1)."""
        return WorstCase.symmetric(
            GaussianPair(self, None),
            "ΣΔ_j²/σ_j² = μ² at the corners of the box of differences, and less inside.",
        )

    @property
    def dimension(self) -> int:
        """The number d of answers."""
        return len(self.sensitivities)

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal:
        """Return μ."""
        return self.mu

    def lattice_sampler(self) -> LatticeSampler:
        """Return a sampler of independent noise, each coordinate on a lattice with its own step."""
        return LatticeSampler(independent(lambda: [entry.sqrt() for entry in self.variances()]))

    def worst_shift(self) -> Any:
        """Return the sensitivities."""
        return np.array([float(entry) for entry in self.sensitivities])

    def variances(self) -> list[arb]:
        """Return σ_j² = Δ_j·ΣΔ_i/μ²."""
        entries = [entry.ball() for entry in self.sensitivities]
        factor = sum(entries, start=arb(0)) / self.mu.ball() ** 2
        return [factor * entry for entry in entries]

    def quantile(self, probability: ExactReal) -> arb:
        """Return the quantile of one coordinate if all sensitivities are equal, else raise."""
        if len(set(self.sensitivities)) > 1:
            raise NotApplicableError(
                "EllipticalGaussian has no common quantile: its coordinates have different laws. "
                "Ask for the variances, which are listed by coordinate."
            )
        return self.variances()[0].sqrt() * normal_quantile(probability)

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` releases, an array of shape (size, d)."""
        deviations = [math.sqrt(float(entry)) for entry in self.variances()]
        return rng.normal(0.0, deviations, (size, self.dimension))


# --- Gaussian noise of least variance for counts in disjoint groups -------------------------------
# A record is in one of m groups and has an arbitrary vector in [0, 1]^d there. Averaging Σ over
# permutations of the groups, and of the attributes in each group, preserves privacy, because
# v'Σ⁻¹v is jointly convex, and the trace. So there is an optimal Σ with eigenvalue α on (1, …, 1),
# β on vectors that are constant in each group and sum to 0, and γ on vectors that sum to 0 in each
# group. Let g = (1/α + (m−1)/β)/(md).
#
# *Add/remove.* A difference is one record. Changing all signs in a group does not change its norm,
# so Σ can be averaged over these sign changes too, which leaves a block per group. Hence
# `optimal_ellipse(d, d)` in each group is optimal, with α = β.
#
# *Replace-one.* By convexity, entries 0 and 1 are worst. A difference inside a group has entries ±1
# of sum t; a difference between two groups has j entries 1 in one group and k entries −1 in the
# other. Their squared norms are
#
#     d/γ + t²(g − 1/(dγ)),      (j + k)/γ + (j² + k²)(g − 1/(dγ)) − 2jk(g − 1/(dβ)).
#
# With β = 2d, γ = d/(1 + h), g = (1 + h)/d² − h, p = d − j and q = d − k these are
#
#     1 + h(1 − t²),      1 + h(p + q)/d − (1 + 2h)pq/d² − h(p − q)².
#
# For h = 0 neither exceeds 1. For odd d, t² ≥ 1, so the first is at most 1 for all h ≥ 0. For
# 0 ≤ h ≤ 1/(2(d − 1)) the second is at most 1 too: if q = 0 because p ≤ p²d, and if p, q ≥ 1
# because 2hd ≤ 1 + 2h and p + q ≤ 2pq. If d is even, or d = 1, or (m + 1)² ≤ 4(d + 1), the least
# trace is at h = 0, where α = 2d/(m + 1) and the variance of each count is d + (m − 1)/(m + 1).
# Otherwise it is at γ = α√(d + 1), by Cauchy's inequality.
#
# *Optimality.* For a law on differences with second-moment matrix M, tr Σ ≥ (tr M^{1/2})²
# (`dpassay.accountant.geometry.spaces`), with equality for Σ = tr M^{1/2}·M^{1/2}. For h = 0 let
# D = (m + 1)(d(m + 1) + m − 1). The law is (1, …, 1) in one group and −(1, …, 1) in another with
# probability 2(m + 2)(m − 1)/D, and otherwise ±1 in one group with
# E t² = 4d²/((d − 1)(m + 1)² + 4), which lies between the least and the largest t². For h > 0 the
# law has t = ±1 with probability w, and the difference between two groups with probability 1 − w,
# where (1 − w)/w = (m − 1)(4(1 + h)²(d + 1) − 1)/(2md²). Releasing more than the counts does not
# lower the bound.

_MOST_TERMS = 4_000_000
"""Limit on the coefficients of the noise of an exact release; as balls they take a gigabyte."""


@declared
class OptimalGroups(GaussianNoise):
    """Release d counts in each of m disjoint groups with Gaussian noise of least variance.

    A record is in one group, where it has an arbitrary vector in {0,1}^d or [0,1]^d. The counts are
    released group by group, without the sizes of the groups. Under replace-one the noise of
    different groups is negatively correlated.

    Parameters
    ----------
    groups, counts
        m ≥ 1, the number of groups, and d ≥ 1, the number of counts in each.
    mu
        μ > 0; the mechanism is exactly μ-GDP under the relation `adjacency`.
    adjacency
        The relation for which the noise is optimal. It is also the default relation of questions,
        which may name the other one.

    Notes
    -----
    `dpassay.accountant.mechanisms.shapes.ellipses` proves that no Gaussian noise has a smaller
    variance. Under replace-one the variance of a count is (d + (m − 1)/(m + 1))/μ², and less if
    d > 1 is odd and (m + 1)² > 4(d + 1). Lebeda's Algorithm 2, which releases the sizes too, has
    (d + 1)/μ² (`DisjointGroupsGaussian`).
    """

    example = "OptimalGroups(groups=4, counts=9, mu=1, adjacency='replace-one')"

    noise_argument = "mu"
    noise_grows = False

    groups: Integer = Integer(least=1)
    counts: Integer = Integer(least=1)
    mu: Positive = Positive()
    adjacency: Relation = Relation()

    @property
    def dimension(self) -> int:
        """The number of counts in all groups, md."""
        return self.groups * self.counts

    @property
    def axes(self) -> tuple[ExactReal, ExactReal, ExactReal]:
        """The eigenvalues α, β and γ of Σ for μ = 1."""
        m, d = self.groups, self.counts
        if self.adjacency is Adjacency.ADD_REMOVE:
            ellipse = optimal_ellipse(d, d)
            return ellipse.axis_ones, ellipse.axis_ones, ellipse.axis_rest
        if d % 2 == 0 or d == 1 or (m + 1) ** 2 <= 4 * (d + 1):
            return exact(Fraction(2 * d, m + 1)), exact(2 * d), exact(d)
        size = m * (d * d - 1)  # γ = d(size + r)/(size + (m + 1)/2) with r = √(d + 1), α = γ/r
        root = ExactReal.of_root(Fraction(d + 1))
        across = (exact(size) + root).times(d / (size + Fraction(m + 1, 2)))
        return across / root, exact(2 * d), across

    def _entries(self) -> tuple[ExactReal, ExactReal, ExactReal]:
        """Return the variance of a count and its covariances with counts in and out of its group.

        For μ = 1, Σ = γ·I + (β − γ)/d·J + (α − β)/(md)·11', where J_ij is 1 if i and j are in the
        same group, else 0.
        """
        along, between, across = self.axes
        m, d = self.groups, self.counts
        out = (along - between).times(Fraction(1, m * d))
        within = (between - across).times(Fraction(1, d)) + out
        return across + within, within, out

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pair N(μ', 1) and N(0, 1), with the exact μ' of the relation."""
        relation = self.adjacency if adjacency is None else adjacency
        why = (
            "the worst record has the worst number of ones in its group"
            if relation is Adjacency.ADD_REMOVE
            else "the worst records differ everywhere in a group, or are in two groups"
        )
        return WorstCase.symmetric(
            GaussianPair(self, relation),
            f"The squared Mahalanobis norm is convex, so entries are 0 or 1, and {why}.",
        )

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal:
        """Return the exact μ' under the given relation; the default is `self.adjacency`."""
        return self.mu * self._square(adjacency).root()

    def _square(self, adjacency: Adjacency | None) -> ExactReal:
        """Return (μ'/μ)² exactly; the comment above the class derives the norms."""
        relation = self.adjacency if adjacency is None else adjacency
        m, d = self.groups, self.counts
        if relation is self.adjacency:
            return exact(1)
        along, between, across = self.axes
        if relation is Adjacency.REPLACE_ONE:  # noise has a block per group: ±1 in one, or in two
            inside = optimal_ellipse(d, d).squared_norm(d, d % 2)
            moved = exact(min(2, m))
            return max(inside, moved)
        mean = exact(1) / along + exact(m - 1) / between
        record = Ellipse(d, d, exact(m) / mean, across, ())
        bend = mean.times(Fraction(1, m * d)) - exact(Fraction(1, d)) / across  # −h
        peak = d if bend.sign >= 0 else int(-0.5 / float(across.ball() * bend.ball()))
        best = record.squared_norm(d, d)  # concave in the number of ones, so try those at the peak
        for ones in range(max(1, peak - 1), min(d, peak + 2) + 1):
            norm = record.squared_norm(ones, ones)
            best = max(norm, best)
        return best

    def lattice_sampler(self) -> LatticeSampler:
        """Return a sampler: each count's own noise minus its group mean, plus a mean per group."""
        m, d = self.groups, self.counts
        if m * d * (m + d) > _MOST_TERMS:
            raise InvalidInputError(
                f"Expected groups·counts·(groups + counts) = {m * d * (m + d)} to be at most "
                f"{_MOST_TERMS} for an exact release. Release fewer groups at a time, or simulate "
                "with sample."
            )

        def rows() -> list[list[tuple[int, arb]]]:
            own, each, common = self._scales()
            found = []
            for group in range(m):
                means = [(m * d + k, common + (each if k == group else 0)) for k in range(m)]
                cells = range(group * d, (group + 1) * d)
                found += [
                    [(k, own * (int(k == cell) - arb(1) / d)) for k in cells] + means
                    for cell in cells
                ]
            return found

        return LatticeSampler(LinearNoise(rows, m * d + m))

    def worst_shift(self) -> Any:
        """Return a difference of norm μ in the first group.

        It is a record with the worst number of ones under add/remove, else signs of sum 0 or 1.
        """
        d = self.counts
        shift = np.zeros(self.dimension)
        if self.adjacency is Adjacency.ADD_REMOVE:
            shift[: optimal_ellipse(d, d).weights[0][0]] = 1
        else:
            shift[:d] = 1 - 2 * (np.arange(d) % 2)
        return shift

    def _scales(self) -> tuple[arb, arb, arb]:
        """Return √γ, √(β/d) and (√(α/d) − √(β/d))/m, divided by μ: the scales in `sample`."""
        along, between, across = (axis.ball().sqrt() / self.mu.ball() for axis in self.axes)
        root = arb(self.counts).sqrt()
        return across, between / root, (along - between) / (root * self.groups)

    def variances(self) -> list[arb]:
        """Return the variance of a count, which is the same for all."""
        return [self._entries()[0].ball() / self.mu.ball() ** 2]

    def covariance_matrix(self) -> list[list[arb]]:
        """Return Σ/μ², which has one variance and a covariance inside and between groups."""
        own, within, out = (entry.ball() / self.mu.ball() ** 2 for entry in self._entries())
        d, size = self.counts, self.counts * self.groups
        return [
            [own if i == j else within if i // d == j // d else out for j in range(size)]
            for i in range(size)
        ]

    def quantile(self, probability: ExactReal) -> arb:
        """Return the quantile of the noise of one count."""
        return self.variances()[0].sqrt() * normal_quantile(probability)

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` releases, an array of shape (size, md), group by group."""
        own, each, common = (float(scale) for scale in self._scales())
        cells = rng.normal(0.0, own, (size, self.groups, self.counts))
        means = rng.normal(0.0, 1.0, (size, self.groups, 1))
        shared = each * means + common * means.sum(axis=1, keepdims=True)
        noise: Array = cells - cells.mean(axis=2, keepdims=True) + shared
        return noise.reshape(size, -1)

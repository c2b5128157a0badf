"""Correlated Gaussian noise for counts and sums, in groups or with an estimate of their size."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, ClassVar

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency, require
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.mechanism import GaussianNoise, Mechanism
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import (
    Integer,
    OptionalPositive,
    Positive,
    Rational,
    Reals,
    Relation,
    Switch,
    declared,
)
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms.additive.gaussian import normal_quantile
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.theta import variance
from dpassay.accountant.pairs.discrete import DiscreteGaussianPair
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.release import sampling
from dpassay.accountant.release.lattice import (
    LatticeSampler,
    LinearNoise,
    independent,
    integers,
    shared,
)

# --- Base class: Gaussian noise on counts with a common part, and on the number of records --------


class SharedNoise(GaussianNoise, ABC):
    """Release d counts with noise η + z_j and, optionally, the number of records with noise 2η.

    η and all z_j are independent normal variables. If there are several groups of counts, each has
    its own η. The output lists the groups in turn, each with its number of records last.
    """

    noise_argument = "mu"
    noise_grows = False
    _of_one_count: ClassVar[str] = ""
    """How to obtain the quantile of a count although the number of records is released."""

    dimension: Integer

    @abstractmethod
    def parts(self) -> tuple[arb, arb]:
        """Return Var η and Var z."""

    @property
    def _has_size(self) -> bool:
        """Whether the number of records is released."""
        return False

    @property
    def _groups(self) -> int:
        return 1

    def lattice_sampler(self) -> LatticeSampler:
        """Return a sampler of η + z_j and 2η for all groups, each coordinate on a lattice."""

        def scales() -> tuple[arb, arb, arb | None]:
            eta, own = (part.sqrt() for part in self.parts())
            return eta, own, 2 * eta if self._has_size else None

        if self.parts()[0].is_zero():
            return LatticeSampler(independent(lambda: [scales()[1]] * self.dimension))
        return LatticeSampler(shared(self.dimension, scales, self._groups))

    def variances(self) -> list[arb]:
        """Return Var η + Var z for each count of a group, then 4 Var η for its size if released."""
        eta, own = self.parts()
        if not self._has_size:
            return [eta + own]
        return ([eta + own] * self.dimension + [4 * eta]) * self._groups

    def covariance_matrix(self) -> list[list[arb]]:
        """Return the covariance, with one block per group.

        In a block it is Var η between two counts and 2 Var η between a count and the size.
        """
        eta, own = self.parts()
        d, zero = self.dimension, arb(0)
        block = d + self._has_size
        counts, size_too, sizes, variance = eta, 2 * eta, 4 * eta, eta + own

        def entry(i: int, j: int) -> arb:
            if i // block != j // block:
                return zero
            if i == j:
                return variance if i % block < d else sizes
            return counts if i % block < d and j % block < d else size_too

        size = block * self._groups
        return [[entry(i, j) for j in range(size)] for i in range(size)]

    def quantile(self, probability: ExactReal) -> arb:
        """Return the quantile of the noise of a count; raise if sizes are released."""
        if not self._has_size:
            return self.variances()[0].sqrt() * normal_quantile(probability)
        if not self._of_one_count:
            return super().quantile(probability)
        raise NotApplicableError(
            f"{type(self).__name__} releases counts and a size of different laws: it has no common "
            f"quantile. {self._of_one_count}"
        )

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` releases, one per row: the counts and the size of each group."""
        eta_spread, spread = (math.sqrt(float(part)) for part in self.parts())
        eta = rng.normal(0.0, eta_spread, (size, self._groups, 1))
        drawn = eta + rng.normal(0.0, spread, (size, self._groups, self.dimension))
        if self._has_size:
            drawn = np.concatenate([drawn, 2 * eta], axis=2)
        return drawn.reshape(size, -1)


# --- Correlated Gaussian noise: Lebeda's Algorithm 1 and its family -------------------------------


@declared
class CorrelatedGaussian(SharedNoise):
    """Release d counts with noise η + z_i, and the number of records with noise 2η.

    η ~ N(0, A/(4μ²)) is shared by all counts and the z_i ~ N(0, B/(4μ²)) are independent, with
    A = d/C² + 1 and B = d + C². Records lie in {0,1}^d or [0,1]^d. Equivalently (Lebeda, Lemmas 3.2
    to 3.5), embed a record x as x̂ = (2x − 1, C), add N(0, B/μ²) to each coordinate of g = Σ x̂, and
    release (g_i + g_{d+1}/C)/2 and g_{d+1}/C. C = d^{1/4} is Algorithm 1, which minimises the
    variance (A + B)/(4μ²) of a count; the minimum is (√d + 1)²/(4μ²).

    Parameters
    ----------
    dimension
        d ≥ 1, the number of counts.
    mu
        μ > 0; with the size, the mechanism is exactly μ-GDP under add/remove.
    c
        C > 0. The default, None, means d^{1/4}.
    release_size
        Whether to release the noisy number of records, as the last coordinate.

    Notes
    -----
    `mean_squared_error` averages over all that is released, including the size. The error of a
    count is the first entry of `variances`.
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
        """Return the pair N(μ', 1) and N(0, 1), with the exact μ' of the relation."""
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

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal:
        """Return the exact μ' under the given relation, with B = d + C².

        Add/remove: μ with the size, and without it 2μ√(j(B − j))/B for the worst number of ones j;
        this is μ only if B/2 is an integer. Replace-one: 2μ√(d/B) with the size, and
        2μ√((d − (d mod 2)/B)/B) without it.
        """
        d, whole = self.dimension, exact(self.dimension) + self.c_squared
        if require(adjacency, self) is Adjacency.REPLACE_ONE:
            lost = exact(0 if self.release_size else d % 2) / whole
            return self.mu * ((exact(d) - lost).times(4) / whole).root()
        if self.release_size:
            return self.mu
        j = min(d, (1 + math.floor(whole)) // 2)  # j(B − j) is largest at the last 2j − 1 ≤ B
        return self.mu * ((whole - exact(j)).times(4 * j)).root() / whole

    def worst_shift(self) -> Any:
        """Return the change due to a record of d ones, and 1 for the size if it is released."""
        return np.ones(self.dimension + int(self.release_size))

    def parts(self) -> tuple[arb, arb]:
        """Return A/(4μ²) and B/(4μ²)."""
        square, unit = self.c_squared.ball(), 4 * self.mu.ball() ** 2
        return (self.dimension / square + 1) / unit, (self.dimension + square) / unit

    @property
    def _has_size(self) -> bool:
        return self.release_size


# --- Correlated discrete Gaussian noise: Algorithm 1 on integers ----------------------------------


@declared
class DiscreteCorrelatedGaussian(Mechanism):
    """Release d counts and the number of records, from integers with discrete Gaussian noise.

    Records lie in {0,1}^d. Let f be the counts, n the number of records, C = p/q in lowest terms,
    and v = (d + C²)/μ². Add discrete Gaussian noise Z_i of parameter v and W of parameter q²v:

        g_i = 2f_i − n + Z_i  (i = 1, …, d),    g_{d+1} = pn + W.

    Release the counts (g_i + g_{d+1}/p)/2 and the size g_{d+1}/p (Lebeda, "note for
    practitioners"). The mechanism is exactly (μ²/2)-zCDP under add/remove. It is *not* μ-GDP: its
    Kullback–Leibler divergence, which is an integral of the profile with positive weights, equals
    that of N(μ, 1) and N(0, 1), μ²/2. Since its loss is discrete, the two profiles differ, so at
    some ε its profile is the larger one.

    Parameters
    ----------
    dimension
        d ≥ 1, the number of counts.
    mu
        μ > 0, the parameter of the continuous mechanism with the same parameters.
    c
        C > 0, rational; values near d^{1/4} minimise the variance of a count.
    """

    example = "DiscreteCorrelatedGaussian(dimension=4, mu=1, c='3/2')"

    # No noise_argument: the profile of discrete Gaussian noise need not be monotone in its
    # parameter. For one integer and ε = 1, δ increases between the parameters 0.5 and 0.56.

    dimension: Integer = Integer(least=1)
    mu: Positive = Positive()
    c: Rational = Rational(least=0, strict=True)

    @property
    def parameter(self) -> Fraction:
        """The parameter v = (d + C²)/μ² of Z_i, as an exact number."""
        return (self.dimension + self.c**2) / self.mu.square

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the product of d + 1 (add/remove) or d (replace-one) discrete Gaussian pairs."""
        relation = require(adjacency, self)
        v, d = ExactReal.of_rational(self.parameter), self.dimension
        if relation is Adjacency.ADD_REMOVE:
            pair = DiscreteGaussianPair(v, 1, d, self.c.denominator, self.c.numerator)
            why = "every record moves each g_i by ±1 and g_{d+1} by p; the laws are symmetric"
        else:
            pair = DiscreteGaussianPair(v, 2, d)
            why = (
                "a replacement moves g_i by −2, 0 or 2 and leaves n; dropping coordinates is "
                "post-processing, so moving all of them is worst"
            )
        return WorstCase.symmetric(pair, f"One pair up to reflection of coordinates: {why}.")

    def exact_rho(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return the tight ρ: μ²/2 under add/remove, 2dμ²/(d + C²) under replace-one."""
        if require(adjacency, self) is Adjacency.ADD_REMOVE:
            return ExactReal.of_rational(self.mu.square / 2)
        return ExactReal.of_rational(2 * self.dimension / self.parameter)

    def _parts(self) -> tuple[arb, arb]:
        """Return the variances of Z_i and of W/p."""
        q, p = self.c.denominator, self.c.numerator
        v = ExactReal.of_rational(self.parameter)
        return variance(v), variance(v * ExactReal.of_rational(q * q)) / p**2

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Draw `times` releases of an array of d counts and, last, the size, all integers.

        Released counts are integers divided by 2p, and the released size is an integer divided by
        p. The numerators are computed exactly from the noisy integers. Each quotient is rounded
        once, which is post-processing.
        """
        d, q, p = self.dimension, self.c.denominator, self.c.numerator
        answer = integers(value, coordinates=d + 1)
        z = sampling.discrete_gaussian(self.parameter, times * d, rng=rng).reshape(times, d)
        w = sampling.discrete_gaussian(self.parameter * q * q, times, rng=rng).reshape(times, 1)
        counts = (2 * p * answer[:d] + (p * z + w)) / (2 * p)
        released: Array = np.hstack([counts, (p * answer[d:] + w) / p]).astype(float)
        return released

    def variances(self) -> list[arb]:
        """Return (Var Z + Var W/p²)/4 for the counts, then Var W/p² for the size."""
        each, size = self._parts()
        return [(each + size) / 4] * self.dimension + [size]

    def covariance_matrix(self) -> list[list[arb]]:
        """Return the covariance of the counts and, last, the size."""
        each, size = self._parts()
        d, own, common, with_size = self.dimension, (each + size) / 4, size / 4, size / 2
        rows = [[*(own if i == j else common for j in range(d)), with_size] for i in range(d)]
        return [*rows, [with_size] * d + [size]]

    def sample(self, size: int, *, rng: Randomness) -> Array:
        """Draw the noise of the counts and, last, the size, one release per row.

        The integers Z and W are drawn exactly. Only the final quotients are rounded.
        """
        return self.releases([0] * (self.dimension + 1), size, rng)


# --- Correlated Gaussian noise for disjoint groups: Lebeda's Algorithm 2 --------------------------


@declared
class DisjointGroupsGaussian(SharedNoise):
    """Release d counts and a size for each of m groups, where each record is in one group.

    Records are m×d matrices with entries in [0,1] and at most one non-zero row. For each group j
    the release is f_jk + η_j + z_jk for k = 1, …, d, and the number of records plus 2η_j.

    ================  =================  ==============
    adjacency         Var η_j · μ²       Var z_jk · μ²
    ================  =================  ==============
    add-remove        (√d + 1)/4         (d + √d)/4
    replace-one       1 (printed: 4)     d
    ================  =================  ==============

    For replace-one the paper (Lebeda, Algorithm 2) prints η_j ~ N(0, 4/μ²). Its proof (Lemma 4.2,
    C = √d) derives η_j = Z_{j,d+1}/(2C), which has variance 1/μ²; 4/μ² is the variance of 2η_j.
    Both are μ-GDP.

    Parameters
    ----------
    groups, dimension
        m ≥ 1, the number of groups, and d ≥ 1, the number of counts in each.
    mu
        μ > 0; the mechanism is μ-GDP under the relation `adjacency`.
    adjacency
        The relation that determines the noise. It is also the default relation of questions, which
        may name the other one.
    as_printed
        Whether to use the printed variance of η_j under replace-one.
    """

    example = "DisjointGroupsGaussian(groups=4, dimension=9, mu=1, adjacency='add-remove')"

    groups: Integer = Integer(least=1)
    dimension: Integer = Integer(least=1)
    mu: Positive = Positive()
    adjacency: Relation = Relation()
    as_printed: Switch = Switch(False)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pair N(μ', 1) and N(0, 1), with the exact μ' of the relation."""
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

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal:
        """Return the exact μ' under the given relation; the default is `self.adjacency`.

        In units of μ², a single record has the squared norm A = d/(4 Var z) + 1/(4 Var η). Under
        replace-one the largest of these is attained: d/Var z (both records in the same row), 2A
        (different rows, m ≥ 2), and A (one of the records is zero).
        """
        relation, d = adjacency or self.adjacency, self.dimension
        alone, within = Fraction(1), exact(1)  # A of add/remove: d/(d + √d) + 1/(√d + 1) = 1
        if self.adjacency is Adjacency.REPLACE_ONE:
            alone = Fraction(1, 4) + (Fraction(1, 16) if self.as_printed else Fraction(1, 4))
        else:
            within = exact(4 * d) / (exact(d) + ExactReal.of_root(Fraction(d)))
        moved = relation is Adjacency.REPLACE_ONE
        rows = min(2, self.groups)  # the largest number that a replacement changes
        square = max(within, exact(rows * alone)) if moved else exact(alone)
        return self.mu * square.root()

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


# --- Counts with a public or released estimate of the number of records ---------------------------


@declared
class KnownSizeGaussian(SharedNoise):
    """Release f − n/2 + ñ/2 + N(0, d/(4μ²)·I) for d counts f of n records; ñ estimates n.

    Lebeda, Lemma 3.6. The mechanism is exactly μ-GDP under add/remove if ñ is a public number that
    is the same for both neighbours. If ñ = n, the release is f + N(0, d/(4μ²)·I), which is exactly
    2μ-GDP. If ñ = n + N(0, 1/μ₀²) is released too, the whole is exactly √(μ² + μ₀²)-GDP.

    Parameters
    ----------
    dimension
        d ≥ 1, the number of counts; records lie in {0,1}^d or [0,1]^d.
    mu
        μ > 0, the parameter for a public ñ.
    size_mu
        μ₀ > 0 if this mechanism releases ñ, as the last coordinate. None, the default, means that ñ
        is public. Variances and quantiles are then those of the noise alone, and exclude the fixed
        error (ñ − n)/2 of each count.
    """

    example = "KnownSizeGaussian(dimension=9, mu=1)"
    _of_one_count = "Leave size_mu out for the quantile of a count given a public size."

    dimension: Integer = Integer(least=1)
    mu: Positive = Positive()
    size_mu: OptionalPositive = OptionalPositive()

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pair N(μ', 1) and N(0, 1), with the exact μ' of the relation."""
        relation = require(adjacency, self)
        if relation is Adjacency.ADD_REMOVE:
            why = "f − n/2 moves by v − ½, and every {0,1} record v has ‖v − ½‖² = d/4"
            if self.size_mu is not None:
                why += "; ñ moves by 1, and given ñ the counts carry independent noise"
        else:
            why = "n stays, and f moves by v − v', at most ‖v − v'‖² = d, at v' = 1 − v"
        return WorstCase.symmetric(
            GaussianPair(self, relation),
            f"The squared norm is convex, so the worst records have entries 0 or 1: {why}.",
        )

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal:
        """Return √(μ² + μ₀²), or μ for a public ñ, under add/remove; 2μ under replace-one."""
        if require(adjacency, self) is Adjacency.REPLACE_ONE:
            return ExactReal.of_rational(2) * self.mu
        if self.size_mu is None:
            return self.mu
        return (self.mu.squared + self.size_mu.squared).root()

    def parts(self) -> tuple[arb, arb]:
        """Return 1/(4μ₀²), or 0 for a public ñ, and d/(4μ²)."""
        known = arb(0) if self.size_mu is None else 1 / self.size_mu.ball() ** 2
        return known / 4, self.dimension / self.mu.ball() ** 2 / 4

    @property
    def _has_size(self) -> bool:
        return self.size_mu is not None


# --- Correlated Gaussian noise for sums of records with non-negative entries ----------------------


@declared
class OneSidedGaussian(GaussianNoise):
    """Release the sum of records in [0, Δ_1] × … × [0, Δ_d] and their number, with shared noise.

    Let |Δ| = √(ΣΔ_j²) and S = ΣΔ_j + |Δ|. The noise of the number of records is
    η ~ N(0, S/(|Δ|μ²)), and the noise of sum j is Δ_j·η/2 + z_j with z_j ~ N(0, Δ_j·S/(4μ²)). All
    z_j and η are independent.

    Parameters
    ----------
    bounds
        Δ_j > 0: entry j of a record lies in [0, Δ_j].
    mu
        μ > 0; the mechanism is exactly μ-GDP under add/remove.

    Notes
    -----
    Subtracting Δ_j/2 times the noisy number from sum j leaves Σ(x_j − Δ_j/2) + z_j, which does not
    contain η. So a record moves independent outputs by x_j − Δ_j/2 and 1, and
    μ² = Σ Δ_j²/(4 Var z_j) + 1/Var η at every corner of the box, and less inside. A replacement
    does not change the number, and moves sum j by up to ±Δ_j.

    *Optimality.* Let u = μ² − 1/Var η. For any variances of z and η with this μ, the total variance
    of the sums is at least (ΣΔ_j)²/(4u) + |Δ|²/(4(μ² − u)) by Cauchy's inequality. This is at least
    S²/(4μ²), the total variance here. The least total variance of independent noise is (ΣΔ_j)²/μ²
    (`EllipticalGaussian`), up to four times as much. With equal bounds this is Lebeda's Algorithm 1
    (`CorrelatedGaussian`). `mean_squared_error` averages over all that is released.
    """

    example = "OneSidedGaussian(bounds=[1, 2, 8], mu=1)"

    noise_argument = "mu"
    noise_grows = False

    bounds: Reals = Reals(least=0, strict=True)
    mu: Positive = Positive()

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pair N(μ', 1) and N(0, 1), with the exact μ' of the relation."""
        relation = require(adjacency, self)
        why = (
            "in units of μ² every corner of the box has (ΣΔ_j + |Δ|)/S = 1, and what is inside less"
            if relation is Adjacency.ADD_REMOVE
            else "the number stays, and a difference with entries ±Δ_j has 4ΣΔ_j/S in units of μ²"
        )
        return WorstCase.symmetric(
            GaussianPair(self, relation), f"The squared Mahalanobis norm is convex: {why}."
        )

    @property
    def dimension(self) -> int:
        """The number d of sums."""
        return len(self.bounds)

    def enclosed_gaussian_mu(self, adjacency: Adjacency | None) -> arb:
        """Return 2μ√(ΣΔ_j/S), under replace-one."""
        total, norm = self._norms()
        return 2 * self.mu.ball() * (total / (total + norm)).sqrt()

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return μ under add/remove; under replace-one, None unless |Δ| is rational."""
        if require(adjacency, self) is Adjacency.ADD_REMOVE:
            return self.mu
        rationals = [entry.rational for entry in self.bounds]
        entries = [entry for entry in rationals if entry is not None]
        norm = ExactReal.of_root(sum((entry**2 for entry in entries), Fraction(0))).rational
        if norm is None or len(entries) < len(rationals):
            return None
        total = sum(entries, Fraction(0))
        return self.mu * ExactReal.of_root(4 * total / (total + norm))

    def lattice_sampler(self) -> LatticeSampler:
        """Return a sampler of the noise, each coordinate on a lattice with its own step."""

        def rows() -> list[list[tuple[int, arb]]]:
            shared, own = self._parts()
            eta = shared.sqrt()
            counted = [
                [(0, bound.ball() * eta / 2), (j, variance.sqrt())]
                for j, (bound, variance) in enumerate(zip(self.bounds, own, strict=True), start=1)
            ]
            return [*counted, [(0, eta)]]

        return LatticeSampler(LinearNoise(rows, self.dimension + 1))

    def worst_shift(self) -> Any:
        """Return the change due to a record (Δ_1, …, Δ_d), and 1 for the number."""
        return np.array([*(float(entry) for entry in self.bounds), 1.0])

    def variances(self) -> list[arb]:
        """Return S(Δ_j + Δ_j²/|Δ|)/(4μ²) for the sums, then S/(|Δ|μ²) for the number of records."""
        shared, own = self._parts()
        sums = [
            variance + bound.ball() ** 2 * shared / 4
            for bound, variance in zip(self.bounds, own, strict=True)
        ]
        return [*sums, shared]

    def covariance_matrix(self) -> list[list[arb]]:
        """Return the covariance of the sums and, last, the number of records."""
        shared, own = self._parts()
        halves = [bound.ball() / 2 for bound in self.bounds]
        rows = [
            [a * b * shared + (own[i] if i == j else 0) for j, b in enumerate(halves)]
            + [a * shared]
            for i, a in enumerate(halves)
        ]
        return [*rows, [*(a * shared for a in halves), shared]]

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` releases, one per row: the sums and, last, the number."""
        shared, own = self._parts()
        eta = rng.normal(0.0, math.sqrt(float(shared)), (size, 1))
        halves = np.array([float(entry) / 2 for entry in self.bounds])
        alone = rng.normal(0.0, [math.sqrt(float(each)) for each in own], (size, self.dimension))
        return np.hstack([eta * halves + alone, eta])

    def _norms(self) -> tuple[arb, arb]:
        """Return ΣΔ_j and |Δ|."""
        entries = [entry.ball() for entry in self.bounds]
        squares = sum((ExactReal.ball(entry * entry) for entry in self.bounds), start=arb(0))
        return sum(entries, start=arb(0)), squares.sqrt()

    def _parts(self) -> tuple[arb, list[arb]]:
        """Return the variance of η and those of the z_j."""
        total, norm = self._norms()
        scale = (total + norm) / self.mu.ball() ** 2
        return scale / norm, [scale * entry.ball() / 4 for entry in self.bounds]

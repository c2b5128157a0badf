"""Correlated Gaussian noise for counts: shared, in groups, of known size, one-sided."""

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

# --- Gaussian noise on counts of which a part is shared, and on the number of records beside them


class SharedNoise(GaussianNoise, ABC):
    """Release d counts with noise η + z_j, and with 2η the number of records, if that is released.

    η is normal, one for each group of counts, and all z_j are normal and independent. The groups
    follow each other, each with its number of records last.
    """

    noise_argument = "mu"
    noise_grows = False
    _of_one_count: ClassVar[str] = ""
    """How to ask for the quantile of a count, where the number of records is released."""

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
        """Return the noise η + z_j and 2η of all groups, each coordinate on a lattice."""

        def scales() -> tuple[arb, arb, arb | None]:
            eta, own = (part.sqrt() for part in self.parts())
            return eta, own, 2 * eta if self._has_size else None

        if self.parts()[0].is_zero():
            return LatticeSampler(independent(lambda: [scales()[1]] * self.dimension))
        return LatticeSampler(shared(self.dimension, scales, self._groups))

    def variances(self) -> list[arb]:
        """Return Var η + Var z for the counts of a group, then 4 Var η for its size if released."""
        eta, own = self.parts()
        if not self._has_size:
            return [eta + own]
        return ([eta + own] * self.dimension + [4 * eta]) * self._groups

    def mean_squared_error(self) -> arb:
        """Return the average over the counts and, where they are released, the sizes."""
        entries = self.variances()
        if not self._has_size:
            return entries[0]
        return (self.dimension * entries[0] + entries[-1]) / (self.dimension + 1)

    def covariance_matrix(self) -> list[list[arb]]:
        """Return blocks: Var η between counts of a group, 2 Var η between a count and its size."""
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
        """Return the quantile of the noise of a count, where sizes are not released."""
        if not self._has_size:
            return self.variances()[0].sqrt() * normal_quantile(probability)
        if not self._of_one_count:
            return super().quantile(probability)
        raise NotApplicableError(
            f"{type(self).__name__} releases counts and a size of different laws: it has no common "
            f"quantile. {self._of_one_count}"
        )

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` releases, one row each: every group's counts, and its size."""
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

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal:
        """Return the exact μ' under the named relation, with B = d + C².

        Add/remove: μ with the size; without it 2μ√(j(B − j))/B for the worst number of ones j,
        which is μ only where B/2 is an integer. Replace one: 2μ√(d/B) with the size;
        without it 2μ√((d − (d mod 2)/B)/B).
        """
        d, whole = self.dimension, exact(self.dimension) + self.c_squared
        if require(adjacency, self) is Adjacency.REPLACE_ONE:
            lost = exact(0 if self.release_size else d % 2) / whole
            return self.mu * ((exact(d) - lost).times(4) / whole).root()
        if self.release_size:
            return self.mu
        j = self._worst_ones()
        return self.mu * ((whole - exact(j)).times(4 * j)).root() / whole

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


# --- Correlated discrete Gaussian noise: the embedding of Algorithm 1 on integers -----------------


@declared
class DiscreteCorrelatedGaussian(Mechanism):
    """Release d counts and the number of records from integers with discrete Gaussian noise.

    Records lie in {0,1}^d. With C = p/q in lowest terms and v = (d + C²)/μ², release

        g_i = 2f_i − n + Z_i  (i = 1, …, d),    g_{d+1} = pn + W,

    Z_i discrete Gaussian of parameter v and W of parameter q²v, and from these the counts
    (g_i + g_{d+1}/p)/2 and the size g_{d+1}/p (Lebeda, "note for practitioners"). It is exactly
    μ²/2-zCDP under add/remove. It is *not* μ-GDP: its Kullback–Leibler divergence, an integral of
    the profile with positive weights, is μ²/2 as for N(μ, 1) against N(0, 1), but its loss is
    discrete; so at some ε the profile exceeds the Gaussian one.

    Parameters
    ----------
    dimension
        d ≥ 1.
    mu
        μ > 0 of the continuous noise with the same parameters.
    c
        C > 0, rational; near d^{1/4} for the least query variance.
    """

    example = "DiscreteCorrelatedGaussian(dimension=4, mu=1, c='3/2')"

    # no noise_argument: the profile of discrete Gaussian noise need not be monotone in its
    # parameter (one integer, ε = 1: δ rises between parameters 0.5 and 0.56)

    dimension: Integer = Integer(least=1)
    mu: Positive = Positive()
    c: Rational = Rational(least=0, strict=True)

    @property
    def parameter(self) -> Fraction:
        """The parameter v = (d + C²)/μ² of Z_i, exactly."""
        return (self.dimension + self.c**2) / self.mu.square

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the product of d + 1 (add/remove) or d (replace-one) discrete pairs."""
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
        """Release the counts and, last, the size: integers that are given exactly.

        Up to the noise a count is a fraction over 2p and the size one over p. The numerators are
        released integers; each quotient is rounded once, which looks at nothing else.
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
        """Return the covariance of the counts and the size."""
        each, size = self._parts()
        d, own, common, with_size = self.dimension, (each + size) / 4, size / 4, size / 2
        rows = [[*(own if i == j else common for j in range(d)), with_size] for i in range(d)]
        return [*rows, [with_size] * d + [size]]

    def sample(self, size: int, *, rng: Randomness) -> Array:
        """Draw the noise of the counts and the size, one release per row.

        The integers Z and W are drawn exactly; only their final quotient is rounded.
        """
        d, q, p = self.dimension, self.c.denominator, self.c.numerator
        z = sampling.discrete_gaussian(self.parameter, size * d, rng=rng).reshape(size, d)
        w = sampling.discrete_gaussian(self.parameter * q * q, size, rng=rng).reshape(size, 1)
        result: Array = np.hstack([(p * z + w) / (2 * p), w / p]).astype(float)
        return result


# --- Correlated Gaussian noise for disjoint groups: Lebeda's Algorithm 2 --------------------------


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

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal:
        """Return the exact μ' under the named relation, or else the one that it is made for.

        Per row and in units of μ², a record alone has A = d/(4 Var z) + 1/(4 Var η); under
        replace-one the worst of d/Var z (same row), 2A (another row, m ≥ 2) and A (to or from
        an all-zero record).
        """
        relation, d = adjacency or self.adjacency, self.dimension
        alone, within = Fraction(1), exact(1)  # A of add/remove: d/(d + √d) + 1/(√d + 1) = 1
        if self.adjacency is Adjacency.REPLACE_ONE:
            alone = Fraction(1, 4) + (Fraction(1, 16) if self.as_printed else Fraction(1, 4))
        else:
            within = exact(4 * d) / (exact(d) + ExactReal.of_root(Fraction(d)))
        moved = relation is Adjacency.REPLACE_ONE
        square = max(within, exact(self._moves * alone)) if moved else exact(alone)
        return self.mu * square.root()

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


# --- Counts together with a public or released estimate of the number of records ------------------


@declared
class KnownSizeGaussian(SharedNoise):
    """Release f − n/2 + ñ/2 + N(0, d/(4μ²)·I) for d counts f of n records, given an estimate ñ.

    Lebeda, Lemma 3.6. It is exactly μ-GDP under add/remove when ñ is one fixed public number for
    both neighbours. Setting ñ = n instead releases f + N(0, d/(4μ²)·I), which is 2μ-GDP and no
    better; with ñ = n + N(0, 1/μ₀²) released too, the whole is exactly √(μ² + μ₀²)-GDP.

    Parameters
    ----------
    dimension
        d ≥ 1; records lie in {0,1}^d or [0,1]^d.
    mu
        μ > 0.
    size_mu
        μ₀ > 0 where ñ is released by this mechanism, as the last coordinate; None where it is
        public. The laws below are then those of the noise alone: in addition there is the fixed
        error (ñ − n)/2 of every count.
    """

    example = "KnownSizeGaussian(dimension=9, mu=1)"
    _of_one_count = "Leave size_mu out for the quantile of a count given a public size."

    dimension: Integer = Integer(least=1)
    mu: Positive = Positive()
    size_mu: OptionalPositive = OptionalPositive()

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return N(μ', 1) against N(0, 1) with the exact μ' of the relation."""
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
        """Return √(μ² + μ₀²) under add/remove (μ for a public ñ), and 2μ under replace-one."""
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


# --- Correlated Gaussian noise for sums of records that have no negative entries ------------------


@declared
class OneSidedGaussian(GaussianNoise):
    """Release a sum of records in [0, Δ_1] × … × [0, Δ_d] and their number, noise being shared.

    With |Δ| = √(ΣΔ_j²) and S = ΣΔ_j + |Δ|, the number has noise η ~ N(0, S/(|Δ|μ²)) and sum j has
    Δ_j·η/2 + z_j, z_j ~ N(0, Δ_j·S/(4μ²)), all independent.

    Parameters
    ----------
    bounds
        Δ_j > 0: entry j of a record lies in [0, Δ_j].
    mu
        μ > 0: the mechanism is exactly μ-GDP under add/remove.

    Notes
    -----
    Subtracting Δ_j/2 times the noisy number from sum j leaves Σ(x_j − Δ_j/2) + z_j, free of η. So a
    record moves independent outputs by x_j − Δ_j/2 and 1, and μ² = Σ Δ_j²/(4 Var z_j) + 1/Var η at
    every corner, less inside. A replacement leaves the number, and moves sum j by up to ±Δ_j.

    For any variances of z and η with that μ the total variance of the sums is at least
    (ΣΔ_j)²/(4u) + |Δ|²/(4(μ² − u)), u = μ² − 1/Var η, by Cauchy's inequality, and that at least
    S²/(4μ²), which is what this law has. Independent noise of least total variance has (ΣΔ_j)²/μ²
    (`EllipticalGaussian`), which is up to four times as much. Equal bounds are Lebeda's Algorithm 1
    (`CorrelatedGaussian`). `mean_squared_error` averages over all that is released.
    """

    example = "OneSidedGaussian(bounds=[1, 2, 8], mu=1)"

    noise_argument = "mu"
    noise_grows = False

    bounds: Reals = Reals(least=0, strict=True)
    mu: Positive = Positive()

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return N(μ', 1) against N(0, 1) with the exact μ' of the relation."""
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
        """Number of sums."""
        return len(self.bounds)

    def gaussian_mu(self, adjacency: Adjacency | None) -> arb:
        """Return μ under add/remove, and 2μ√(ΣΔ_j/S) when a record is replaced."""
        if require(adjacency, self) is Adjacency.ADD_REMOVE:
            return self.mu.ball()
        total, norm = self._norms()
        return 2 * self.mu.ball() * (total / (total + norm)).sqrt()

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return μ under add/remove; else it is known where |Δ| is rational only."""
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
        """Return the noise, each coordinate on a lattice of its own step."""

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
        """Return what a record at the far corner adds."""
        return np.array([*(float(entry) for entry in self.bounds), 1.0])

    def variances(self) -> list[arb]:
        """Return S(Δ_j + Δ_j²/|Δ|)/(4μ²) for the sums, then S/(|Δ|μ²) for their number."""
        shared, own = self._parts()
        sums = [
            variance + bound.ball() ** 2 * shared / 4
            for bound, variance in zip(self.bounds, own, strict=True)
        ]
        return [*sums, shared]

    def mean_squared_error(self) -> arb:
        """Return the average over the d sums and the number."""
        total, norm = self._norms()
        shared, _ = self._parts()
        sums = ((total + norm) / self.mu.ball()) ** 2 / 4
        return (sums + shared) / (self.dimension + 1)

    def covariance_matrix(self) -> list[list[arb]]:
        """Return the covariance of the sums and, last, of their number."""
        shared, own = self._parts()
        halves = [bound.ball() / 2 for bound in self.bounds]
        rows = [
            [a * b * shared + (own[i] if i == j else 0) for j, b in enumerate(halves)]
            + [a * shared]
            for i, a in enumerate(halves)
        ]
        return [*rows, [*(a * shared for a in halves), shared]]

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` releases, one row each, that of the number last."""
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
        """Return the variances of η and of every z_j."""
        total, norm = self._norms()
        scale = (total + norm) / self.mu.ball() ** 2
        return scale / norm, [scale * entry.ball() / 4 for entry in self.bounds]

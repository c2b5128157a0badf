"""Counters: mechanisms that compute prefix sums from noisy measured sums."""

from __future__ import annotations

import dataclasses
import functools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

from flint import arb, fmpq, fmpq_mat

from dpassay.accountant.composition.exact.laplace_product import of_distances
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.mechanism import SymmetricDensity
from dpassay.accountant.core.pair import Pair, WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import (
    Integer,
    Integers,
    OneOf,
    OptionalPositive,
    Positive,
    Switch,
    declared,
)
from dpassay.accountant.counting.grids import (
    Digits,
    Grids,
    Rows,
    Tree,
    bridged,
    bridged_at_least,
    factorisation,
    nodes,
    parent,
)
from dpassay.accountant.errors import InvalidInputError, NotApplicableError, expected
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.wrappers.channel import Tabulated
from dpassay.accountant.mechanisms.wrappers.composed import Guaranteed
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import ball
from dpassay.accountant.pairs.between import Between
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.release.lattice import LatticeSampler, combined, release_stream

# --- Common part of the mechanisms for continual counting: A = L R, with noise in between ---------

MOST_LISTED = 100_000
"""Most outputs whose variances are listed individually."""
_MOST_ENTRIES = 4_000_000
"""Most entries of L: 32 MB as floats, and more as exact numbers."""


class LinearCounter(SymmetricDensity, ABC):
    """Release A x + L z: the n prefix sums of a stream x in [0, 1]ⁿ, with independent noise z.

    A is the lower triangle of ones, so A x are the prefix sums, and L R = A. The outputs are L
    times the measured sums R x + z; they reveal as much as these, or less (`BridgedTree`).
    Neighbouring streams differ in one input, which changes R x by at most a column of R, of ℓ1 norm
    at most Δ₁ and ℓ2 norm at most Δ₂. With `contributions` = c a person has at most c positions,
    and both bounds are multiplied by c (for Δ₂ this is not tight if columns have disjoint
    supports). If `worst_positions` are known, μ is exact for Gaussian noise, and for Laplace noise
    the largest loss is exact and δ(ε) is bounded on both sides. Otherwise there is no exact
    profile, and the error names a mechanism that bounds it.

    * `epsilon`: z is Laplace noise of scale cΔ₁/ε, and the release is ε-DP.
    * `mu`: z is Gaussian noise of standard deviation cΔ₂/μ, and the release is μ-GDP.

    For ε-DP the inputs may depend on earlier outputs, although L need not be lower triangular. Let
    the streams differ in position i. The outputs before i for z on one stream equal those for
    z + R e_i on the other, since the rows of L R = A before i are zero at i. So z ↦ z + R e_i maps
    the noise on one stream to noise with the same outputs on the other, and changes the density by
    a factor of at most e^{Δ₁/b}, where b is the scale.

    Variances are counted in units: the variance of an output is that of one noise variable times
    the sum of the squares in its row of L. These numbers of units are exact.
    """

    noise_argument = "epsilon"
    noise_grows = False
    gaussian_noise_argument: ClassVar[str | None] = "mu"

    steps: Integer
    epsilon: OptionalPositive
    mu: OptionalPositive
    contributions: Integer

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.mu is None):
            raise InvalidInputError(
                f"Expected {type(self).__name__} to have epsilon (Laplace noise) or mu (Gaussian "
                "noise), and not both. Give one; calibrate finds the mu of an (epsilon, delta)."
            )

    @property
    def dimension(self) -> int:
        """The number of steps n."""
        return self.steps

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Release all n estimates for a stream of n inputs in [0, 1], on one lattice."""
        return release_stream(self.lattice_sampler(), value, times, rng=rng)

    @property
    @abstractmethod
    def distances(self) -> tuple[ExactReal, ...]:
        """The absolute values of the worst column of R, without zeros."""

    @abstractmethod
    def units(self) -> Fraction:
        """Return the squared Frobenius norm of L, the number of units of all outputs together."""

    @abstractmethod
    def output_units(self) -> Sequence[Fraction]:
        """Return the number of units of every output, for moderate n."""

    @abstractmethod
    def factorisation(self) -> tuple[Rows, Rows]:
        """Return (L, R) with L R = A exactly, for small n."""

    @property
    def l1_sensitivity(self) -> ExactReal:
        """Δ₁ for one position: the largest ℓ1 norm of a column of R."""
        total = Fraction(0)
        for distance in self.distances:
            assert distance.rational is not None  # every factorisation here is rational
            total += distance.rational
        return ExactReal.of_rational(total)

    @property
    def l2_sensitivity(self) -> ExactReal:
        """Δ₂ for one position: the largest ℓ2 norm of a column of R."""
        return ExactReal.of_root(sum((d.square for d in self.distances), start=Fraction(0)))

    @property
    def scale(self) -> ExactReal:
        """The scale cΔ₁/ε of Laplace noise, or the standard deviation cΔ₂/μ of Gaussian noise."""
        times = ExactReal.of_rational(self.contributions)
        if self.epsilon is not None:
            return times * self.l1_sensitivity / self.epsilon
        assert self.mu is not None
        return times * self.l2_sensitivity / self.mu

    @property
    def unit_variance(self) -> ExactReal:
        """The variance of one noise variable, exact; it is rational if ε² or μ² is."""
        return self.scale.squared.times(2 if self.epsilon is not None else 1)

    @property
    def spread(self) -> float:
        """The scale in floats, for samplers."""
        return float(self.scale)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pair of the measured sums, for every relation.

        Raises NotApplicableError for several contributions if the worst positions are not known.
        """
        if self.contributions > 1 and self.mu is None:
            distances = [ExactReal.of_rational(d) / self.scale for d in self._worst_positions()]
            attaining = of_distances(distances)
            largest = attaining.known.max_loss()
            assert largest is not None  # distances have rational ratios
            (most,) = Guaranteed(largest).worst_case(adjacency).remove
            return WorstCase.symmetric(
                Between((attaining,), most, "which positions of a person are worst"),
                "R has no negative entry, so the ℓ1 norms of the columns of a person's positions "
                "add up, and no other positions have a larger sum. Lower bound: the pair of those "
                "positions. Upper bound: their largest loss.",
            )
        if self.mu is not None:
            return WorstCase.symmetric(
                GaussianPair(self, None),
                "A person moves the measured sums by at most the largest norm of a sum of columns "
                "of R.",
            )
        return WorstCase.symmetric(
            of_distances([d / self.scale for d in self.distances]),
            "One position moves the measured sums by a column of R, each entry in units of the "
            "noise scale; no column exceeds this one, and smaller differences are a "
            "post-processing of larger ones.",
        )

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return the μ of Gaussian noise; it is below `mu` if c worst columns are not parallel.

        Raises NotApplicableError if the worst of several positions are not known.
        """
        if self.mu is None or self.contributions == 1:
            return self.mu
        square = sum((d * d for d in self._worst_positions()), start=Fraction(0))
        return ExactReal.of_root(square) / self.scale

    def worst_positions(self) -> tuple[Fraction, ...] | None:
        """Return the change of the measured sums by a person in the worst c positions.

        No set of as many positions has a larger ℓ1 or ℓ2 norm. None if they are not known.
        """
        return None

    @property
    def only_alone(self) -> str:
        """What to compose instead, if several positions have only a lower and an upper bound."""
        if self.contributions == 1 or self.mu is not None or self.worst_positions() is None:
            return ""
        return (
            f"The profile of {self!r} is only known between two bounds. Ask about "
            f"Guaranteed(epsilon={self.epsilon}), which is at most as private."
        )

    def _worst_positions(self) -> tuple[Fraction, ...]:
        found = self.worst_positions()
        if found is None:
            bound = f"Guaranteed(epsilon={self.epsilon})"
            if self.mu is not None:
                bound = f"Gaussian(standard_deviation=1, l2_sensitivity={self.mu})"
            raise NotApplicableError(
                f"The exact profile of {self!r} is not known: it depends on the "
                f"{self.contributions} positions of a person, the worst of which is not known. "
                f"It is at most that of {bound}: ask about that."
            )
        return found

    def variances(self) -> list[arb]:
        """Return the variance of every output."""
        self.require(MOST_LISTED, "to list every variance")
        unit = self.unit_variance.ball()
        return [unit * _ball(count) for count in self.output_units()]

    def exact_mean_squared_error(self) -> ExactReal:
        """Return the average variance of the n outputs, as an exact number."""
        return self.unit_variance * ExactReal.of_rational(self.units() / self.steps)

    def mean_squared_error(self) -> arb:
        """Return the average variance of the n outputs, as a ball."""
        return self.exact_mean_squared_error().ball()

    def covariance_matrix(self) -> list[list[arb]]:
        """Return L Lᵀ times the variance of one noise variable."""
        left = fmpq_mat(
            [[fmpq(c.numerator, c.denominator) for c in row] for row in self.factorisation()[0]]
        )
        unit = self.unit_variance.ball()
        return [[unit * entry for entry in row] for row in (left * left.transpose()).tolist()]

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise L z of `size` whole streams, one per row (all at once: for small n)."""
        left = np.array(self.factorisation()[0], dtype=np.float64)
        shape, spread = (size, left.shape[1]), self.spread
        draw = rng.normal if self.epsilon is None else rng.laplace
        return np.asarray(draw(0.0, spread, shape) @ left.T)

    def lattice_sampler(self) -> LatticeSampler:
        """Return the noise L z of a whole stream, on one lattice that holds the integers."""
        law = "normal" if self.epsilon is None else "laplace"
        noise = combined(self.factorisation()[0], self.scale.ball, law)
        return LatticeSampler(noise, common=True)

    def require(self, most: int, purpose: str) -> None:
        """Raise InvalidInputError if there are more than `most` steps."""
        if self.steps > most:
            raise expected(
                "steps",
                self.steps,
                f"at most {most} {purpose}",
                "The mean squared error has a formula, for any number of steps.",
            )

    def require_entries(self, columns: int) -> None:
        """Raise InvalidInputError if the factorisation is too large to be written out."""
        if self.steps * columns > _MOST_ENTRIES:
            raise expected(
                "steps", self.steps, f"to need at most {_MOST_ENTRIES} matrix entries in L"
            )


def _ball(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


# --- Continual counting with a binary or k-ary tree -----------------------------------------------


class TreeCounter(LinearCounter, ABC):
    """A counter that measures the vertices of a tree."""

    @property
    @abstractmethod
    def tree(self) -> Tree:
        """The tree above the inputs."""

    @property
    def distances(self) -> tuple[ExactReal, ...]:
        """A distance of 1 for each level: the first input lies below one used vertex of each."""
        return (ExactReal.of_rational(1),) * self.tree.height

    def units(self) -> Fraction:
        """Return Σ_t Σ|d_i(t)|, by counting digits."""
        return Fraction(self.tree.vertices())

    def output_units(self) -> list[Fraction]:
        """Return Σ|d_i(t)| for every step t."""
        self.require(MOST_LISTED, "to list every output")
        return list(_digit_sums(self.tree))

    def factorisation(self) -> tuple[Rows, Rows]:
        """Return L, with entries 0 and 1, and R, with entries 0 and ±1."""
        self.require_entries(len(nodes(self.tree)))
        return factorisation(self.tree)

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise of `size` whole streams, one per row (all at once: for moderate n)."""
        tree, spread, noise = self.tree, self.spread, {0: np.zeros(size)}
        draw = rng.laplace if self.mu is None else rng.normal
        for node in nodes(tree):
            noise[node] = noise[parent(tree, node)] + draw(0.0, spread, size)
        return np.stack([noise[step] for step in range(1, self.steps + 1)], axis=1)


@lru_cache(maxsize=4)
def _digit_sums(tree: Tree) -> tuple[Fraction, ...]:
    """Return Σ|d_i(t)| for every step t, cached because each variance is requested separately."""
    return tuple(Fraction(sum(map(abs, tree.written(t)))) for t in range(1, tree.steps + 1))


@declared
class KaryTree(TreeCounter):
    """Release the n prefix sums of a stream in [0, 1]ⁿ, each when its last input arrives.

    Andersson, Pagh and Torkamani, "Count on Your Elders": Algorithm 1 without subtraction,
    Algorithm 2 (equivalently 3) with it, and Appendix C for even k. Every vertex of a k-ary tree
    of height h above the inputs has one noise variable Lap(h/ε), with h as in `Tree.height`. A
    prefix sum adds vertices, or with `subtraction` also subtracts some, as given by the digits of
    its time step. The binary tree mechanism is `KaryTree(steps, 2, epsilon, subtraction=False)`.

    Neighbouring streams differ in one input. An input lies below at most one used vertex of each
    of the h levels and changes each of those sums by at most 1. So the release is a post-processing
    of h Laplace laws at distances at most ε/h, and their product at the distances ε/h dominates.
    It is attained if n ≥ k^{h−1}: each of the outputs at 1, k, …, k^{h−1} is the first inputs'
    vertex of a single level, with independent noise, and the first input changes all of them by 1.
    That covers every n without subtraction. With subtraction, the vertex of k^{h−1} is used as soon
    as n exceeds the capacity of h − 1 levels; for n between that and k^{h−1} it never appears
    without further noise. The release is then ε-DP and the product still dominates, but it may not
    be tight, so no exact profile is given.

    Parameters
    ----------
    steps
        n ≥ 1, the number of inputs and outputs.
    arity
        k ≥ 2.
    epsilon
        ε > 0: the release is ε-DP.
    subtraction
        Whether vertices may be subtracted: digits −⌊(k−1)/2⌋..⌊k/2⌋ instead of 0..k−1.
    contributions
        c ≥ 1: a person has at most c positions, which multiplies the sensitivity and the noise.
    """

    example = "KaryTree(steps=27, arity=3, epsilon=1)"

    gaussian_noise_argument = None
    mu = None  # the noise is always Laplace

    steps: Integer = Integer(least=1)
    arity: Integer = Integer(least=2)
    epsilon: Positive = Positive()
    subtraction: Switch = Switch(True)
    contributions: Integer = Integer(1, least=1)

    @property
    def tree(self) -> Tree:
        """The tree above the inputs."""
        return Tree(self.arity, self.steps, Digits.SIGNED if self.subtraction else Digits.PLAIN)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the product of h Laplace laws at distance ε/h, for every relation.

        Raises NotApplicableError for several contributions, and for numbers of steps at which the
        product is not attained.
        """
        least = self.tree.arity ** (self.tree.height - 1)
        if self.contributions == 1 and self.steps < least:
            raise NotApplicableError(
                f"The exact profile of {self!r} is not known: it is {self.epsilon}-DP, and its "
                f"profile is at most that of steps={least}, which adds the same noise. Ask for "
                f"steps={least}, or for steps={self.tree.capacity(self.tree.height - 1)} with less "
                "noise."
            )
        return super().worst_case(adjacency)

    def worst_shift(self) -> Any:
        """Return the change by a person who is counted in the first step."""
        return np.ones(self.steps)


@declared
class BinaryTree(TreeCounter):
    """Count with the binary tree of Dwork, Naor, Pitassi and Rothblum, and Chan, Shi and Song.

    Every vertex of the h = ⌈lg(n + 1)⌉ levels below the root is measured; an output adds the
    vertices of the ones in the binary digits of its time step. With Laplace noise it is
    `KaryTree(steps, 2, epsilon, subtraction=False)`; here the noise may also be Gaussian.

    Parameters
    ----------
    steps
        n ≥ 1, the number of inputs and outputs.
    epsilon, mu, contributions
        As in `LinearCounter`; exactly one of `epsilon` and `mu` is required.
    """

    example = "BinaryTree(steps=15, epsilon=1)"

    steps: Integer = Integer(least=1)
    epsilon: OptionalPositive = OptionalPositive()
    mu: OptionalPositive = OptionalPositive()
    contributions: Integer = Integer(1, least=1)

    @property
    def tree(self) -> Tree:
        """The tree above the inputs."""
        return Tree(2, self.steps, Digits.PLAIN)


# --- Continual counting with a tree in which each level is interpolated between the ones above ----

_MOST_CELLS = 10_000
"""Most cells with a position of a person that are listed."""
_UNKNOWN = "what the outputs alone reveal"


@declared
class BridgedTree(LinearCounter):
    """Count with grids that refine each other; the cells of a parent also measure the parent.

    Every cell of every level is measured. If the sum of a parent's cells differs from the parent,
    the difference is spread evenly over the cells: at each level the noise is a bridge between two
    known ends (`dpassay.accountant.counting.grids` proves L R = A). For equal arities k the mean
    squared error is (1 + o(1)) (k − 1)/(3 lg³k) lg³n/ε², least at k = 17 with the constant 0.0781.
    The constant of Algorithm 2 of "Count on Your Elders" is 0.1236, and Honaker's is 0.5.

    Parameters
    ----------
    steps
        n ≥ 1, the number of inputs and outputs.
    arities
        The number of cells into which each level divides a cell of the level above, first level
        first; their product is at least n.
    epsilon, mu, contributions
        As in `LinearCounter`; exactly one of `epsilon` and `mu` is required.
    pooled
        r ≥ 0: a cell is estimated from its own measurement and those of r generations of cells in
        it, at no privacy cost. r = 1 gives nearly all of the gain, a reduction of the error by
        about 1/(k + 1), and a stream stores about k² numbers per level. r = h − 1 is least squares
        on all measurements, and stores n numbers.
    released
        What is released: the "outputs", A x + L z, or the "measurements", R x + z. The outputs are
        a function of the measurements, so they are at least as private. The privacy of the outputs
        is known exactly for Gaussian noise (`dpassay.accountant.counting.grids`). For Laplace noise
        it lies between that of a measured sum that is an output and that of all measured sums; the
        largest loss is that of all.
    """

    example = "BridgedTree(steps=16, arities=[4, 4], mu=1)"

    steps: Integer = Integer(least=1)
    arities: Integers = Integers(least=1)
    epsilon: OptionalPositive = OptionalPositive()
    mu: OptionalPositive = OptionalPositive()
    contributions: Integer = Integer(1, least=1)
    pooled: Integer = Integer(0, least=0)
    released: OneOf = OneOf("outputs", "measurements", default="outputs")

    def __post_init__(self) -> None:
        super().__post_init__()
        Grids(self.arities, self.steps)

    @property
    def grids(self) -> Grids:
        """The grids above the inputs."""
        return Grids(self.arities, self.steps, self.pooled)

    @property
    def distances(self) -> tuple[ExactReal, ...]:
        """A distance of 1 for each level: an input lies in one cell of each."""
        return (ExactReal.of_rational(1),) * self.grids.height

    def worst_positions(self) -> tuple[Fraction, ...] | None:
        """Return how many of the first c positions each cell contains.

        In each grid the first c positions fill as many cells as c positions can, and one cell holds
        the rest. No other positions have a larger sum of squares in any grid, and the sum of counts
        is c for all.
        """
        c = min(self.contributions, self.steps)
        if c * self.grids.height > _MOST_CELLS:
            return None
        return tuple(count for level in self._moved(c) for count in level)

    def _moved(self, positions: int) -> list[list[Fraction]]:
        """Return how many of the first positions each cell contains, level by level."""
        return [
            [Fraction(c) for c in [size] * (positions // size) + [positions % size] if c]
            for size in self.grids.cell_sizes()
        ]

    def shown(self) -> list[Fraction]:
        """Return the squared distance visible in the outputs, in units of the noise, or two bounds.

        The first positions are worst. The outputs reveal a cell of the first level if it ends by
        the last step; otherwise they reveal at least a part of it.
        """
        grids = self.grids
        size, c = grids.cell_sizes()[0], min(self.contributions, self.steps)
        seen = min(c, self.steps // size * size)
        high = bridged(grids, self._moved(c))
        if -(-c // size) * size <= self.steps:
            return [high]
        low = bridged(grids, self._moved(seen)) if seen else bridged_at_least(grids)
        return [low, high]

    @property
    def _shows_first_cell(self) -> bool:
        return self.steps >= self.grids.cell_sizes()[0]

    @property
    def _shows_a_sum(self) -> bool:
        """Whether a measured sum is an output: the first cell, if nothing is pooled into it."""
        return self._shows_first_cell and (not self.pooled or self.grids.height == 1)

    def releasing(self, what: str) -> BridgedTree:
        """Return the same counter with `released` set to "outputs" or "measurements"."""
        return dataclasses.replace(self, released=what)

    @property
    def _hides(self) -> bool:
        """Whether the outputs are released, and reveal less than the measured sums."""
        known = self.contributions == 1 or self.worst_positions() is not None
        return self.released == "outputs" and known and self._shows_a_sum < self.grids.height

    @property
    def _is_open(self) -> bool:
        """Whether only a lower and an upper bound are known."""
        return self._hides and (self.mu is None or len(self.shown()) > 1)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pair of what is released, for every relation.

        Raises NotApplicableError as `LinearCounter` does.
        """
        if not self._hides:
            return super().worst_case(adjacency)
        if self.mu is None:
            (most,) = self.releasing("measurements").worst_case(adjacency).remove
            least: Pair = of_distances([ExactReal.of_rational(1) / self.scale])
            if not self._shows_a_sum:
                (least,) = Tabulated(["1"], ["1"]).worst_case(None).remove
            # one input in the first cell is fully visible (`dpassay.accountant.counting.grids`)
            shows_most = self._shows_first_cell and self.contributions == 1
            largest = most.known.max_loss() if shows_most else None
            return WorstCase.symmetric(
                Between((least,), most, _UNKNOWN, largest),
                "Upper bound: the pair of the measured sums, of which the outputs are a function. "
                "Lower bound: a measured sum that is itself an output, if there is one.",
            )
        pair: Pair = GaussianPair(self, None)
        if self._is_open:
            ends = [Gaussian(self.scale, ExactReal.of_root(end)) for end in self.shown()]
            low, high = (GaussianPair(end, None) for end in ends)
            pair = Between((low,), high, _UNKNOWN)
        return WorstCase.symmetric(
            pair,
            "A person moves the outputs A x + L z by A e; μ² = (A e)'(L L')^-1(A e) is largest at "
            "the worst positions.",
        )

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return the μ of what is released; None if only two bounds are known."""
        if self.mu is None or not self._hides:
            return super().exact_gaussian_mu(adjacency)
        first, *other = self.shown()
        return None if other else ExactReal.of_root(first) / self.scale

    def enclosed_gaussian_mu(self, adjacency: Adjacency | None) -> arb:
        """Return the μ of what is released as a ball, which contains both bounds on it."""
        if self.mu is None:
            return super().enclosed_gaussian_mu(adjacency)
        return functools.reduce(arb.union, map(ball, self.shown())).sqrt() / self.scale.ball()

    @property
    def only_alone(self) -> str:
        """What to compose instead, if only two bounds are known."""
        if not self._is_open:
            return super().only_alone
        return (
            f"The profile of the outputs of {self!r} is only known between two bounds. Ask about "
            f"{self.releasing('measurements')!r}, which is at most as private."
        )

    def units(self) -> Fraction:
        """Return the number of units of all outputs, by summing powers."""
        return self.grids.units()

    def output_units(self) -> list[Fraction]:
        """Return the number of units of every output."""
        grids = self.grids
        return [grids.output_units(step) for step in range(1, self.steps + 1)]

    def factorisation(self) -> tuple[Rows, Rows]:
        """Return L, the weights of the cells, and R, the cells, in the order of `Grids.cells`."""
        grids = self.grids
        cells = list(grids.cells())
        self.require_entries(len(cells))
        steps = range(1, self.steps + 1)
        left = [
            [grids.coefficient(step, level, first) for level, first, _ in cells] for step in steps
        ]
        right = [[Fraction(low < step <= high) for step in steps] for _, low, high in cells]
        return left, right

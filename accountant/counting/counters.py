"""Counters: prefix sums from noisy measured sums."""

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

# --- What the mechanisms for continual counting share: A = L R, and noise between the two ---------

MOST_LISTED = 100_000
"""Most outputs whose variances are listed one by one."""
_MOST_ENTRIES = 4_000_000
"""Entries of L: 32 MB as floats, and more as exact numbers."""


class LinearCounter(SymmetricDensity, ABC):
    """Release A x + L z: the n prefix sums of a stream x in [0, 1]ⁿ, with independent noise z.

    A x are the prefix sums (A is the lower triangle of ones) and L R = A. The outputs are the
    function L of the measured sums R x + z, and tell as much, or less (`BridgedTree`). Neighbouring
    streams differ in one input, which moves R x by a column of R, of ℓ1 norm at most Δ₁ and ℓ2 norm
    at most Δ₂. With `contributions` = c a person is in at most c positions, and both are c times as
    large (an upper bound for Δ₂ where columns have disjoint supports). Where `worst_positions` are
    known, μ is exact, and so is the largest loss of Laplace noise, of which δ(ε) has two ends. Else
    there is no exact profile, and the refusal names what bounds it.

    * `epsilon`: z is Laplace noise of scale cΔ₁/ε, and the release is ε-DP.
    * `mu`: z is Gaussian noise of standard deviation cΔ₂/μ, and the release is μ-GDP.

    For ε-DP the inputs may be chosen after seeing earlier outputs, although L need not be lower
    triangular: when the position i of the difference is fixed, the outputs before i are those of
    z + R e_i on the other stream as well, since rows of L R = A before i are zero at i. So
    z ↦ z + R e_i maps the noise of one to that of the other with the same outputs, and the density
    changes by a factor of at most e^{Δ₁/b}.

    Numbers of units are exact: the variance of an output is that of one noise variable times the
    sum of the squares of its row of L.
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
        """The absolute values of the column of R that is worst, without zeros."""

    @abstractmethod
    def units(self) -> Fraction:
        """Return the squared Frobenius norm of L, the units of all outputs together."""

    @abstractmethod
    def output_units(self) -> Sequence[Fraction]:
        """Return the units of every output, for moderate n."""

    @abstractmethod
    def factorisation(self) -> tuple[Rows, Rows]:
        """Return (L, R) with L R = A exactly, for small n."""

    @property
    def l1_sensitivity(self) -> ExactReal:
        """Δ₁ of one position: the largest ℓ1 norm of a column of R."""
        total = Fraction(0)
        for distance in self.distances:
            assert distance.rational is not None  # every factorisation here is rational
            total += distance.rational
        return ExactReal.of_rational(total)

    @property
    def l2_sensitivity(self) -> ExactReal:
        """Δ₂ of one position: the largest ℓ2 norm of a column of R."""
        return ExactReal.of_root(sum((d.square for d in self.distances), start=Fraction(0)))

    @property
    def scale(self) -> ExactReal:
        """The scale cΔ₁/ε of Laplace, or the standard deviation cΔ₂/μ of Gaussian noise."""
        times = ExactReal.of_rational(self.contributions)
        if self.epsilon is not None:
            return times * self.l1_sensitivity / self.epsilon
        assert self.mu is not None
        return times * self.l2_sensitivity / self.mu

    @property
    def unit_variance(self) -> ExactReal:
        """The variance of one noise variable: exact, rational for every rational ε² or μ²."""
        return self.scale.squared.times(2 if self.epsilon is not None else 1)

    @property
    def spread(self) -> float:
        """The scale as a float, for samplers."""
        return float(self.scale)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pair of the measured sums; no matter which relation.

        Raises NotApplicableError for several contributions, where it is not known which positions
        are worst.
        """
        if self.contributions > 1 and self.mu is None:
            distances = [ExactReal.of_rational(d) / self.scale for d in self._worst_positions()]
            attaining = of_distances(distances)
            largest = attaining.known.max_loss()
            assert largest is not None  # distances have rational ratios
            (most,) = Guaranteed(largest).worst_case(adjacency).remove
            return WorstCase.symmetric(
                Between((attaining,), most, "which positions of a person are worst"),
                "R has no negative entry: the ℓ1 norms of the columns of a person's positions add "
                "up, and no others have a larger sum. Below: those positions. Above: that loss.",
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
        """Return μ for Gaussian noise, and less where c columns are not parallel.

        Raises NotApplicableError where the worst of several positions are not known.
        """
        if self.mu is None or self.contributions == 1:
            return self.mu
        square = sum((d * d for d in self._worst_positions()), start=Fraction(0))
        return ExactReal.of_root(square) / self.scale

    def worst_positions(self) -> tuple[Fraction, ...] | None:
        """Return by how much a person in the worst positions moves the measured sums at most.

        No other set of as many positions has a larger ℓ1 or ℓ2 norm. None where that is not known.
        """
        return None

    @property
    def only_alone(self) -> str:
        """Say what to compose where several positions have two ends."""
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
        """Return the same as a ball."""
        return self.exact_mean_squared_error().ball()

    def covariance_matrix(self) -> list[list[arb]]:
        """Return L Lᵀ times the variance of one noise variable."""
        left = fmpq_mat(
            [[fmpq(c.numerator, c.denominator) for c in row] for row in self.factorisation()[0]]
        )
        unit = self.unit_variance.ball()
        return [[unit * entry for entry in row] for row in (left * left.transpose()).tolist()]

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Draw the noise L z of `size` whole streams, one row each (all at once: for small n)."""
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
        """Raise InvalidInputError where there are too many steps for a purpose."""
        if self.steps > most:
            raise expected(
                "steps",
                self.steps,
                f"at most {most} {purpose}",
                "The mean squared error has a formula, for any number of steps.",
            )

    def require_entries(self, columns: int) -> None:
        """Raise InvalidInputError where the factorisation is too large to write out."""
        if self.steps * columns > _MOST_ENTRIES:
            raise expected(
                "steps", self.steps, f"to need at most {_MOST_ENTRIES} matrix entries in L"
            )


def _ball(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


# --- Continual counting with a tree: binary or k-ary ----------------------------------------------


class TreeCounter(LinearCounter, ABC):
    """A counter that measures the vertices of a tree."""

    @property
    @abstractmethod
    def tree(self) -> Tree:
        """The tree above the inputs."""

    @property
    def distances(self) -> tuple[ExactReal, ...]:
        """One in each level: the first input lies below one used vertex of each."""
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
        """Draw the noise of `size` whole streams, one row each (all at once: for moderate n)."""
        tree, spread, noise = self.tree, self.spread, {0: np.zeros(size)}
        draw = rng.laplace if self.mu is None else rng.normal
        for node in nodes(tree):
            noise[node] = noise[parent(tree, node)] + draw(0.0, spread, size)
        return np.stack([noise[step] for step in range(1, self.steps + 1)], axis=1)


@lru_cache(maxsize=4)
def _digit_sums(tree: Tree) -> tuple[Fraction, ...]:
    """Return Σ|d_i(t)| for every step: each variance is asked for on its own."""
    return tuple(Fraction(sum(map(abs, tree.written(t)))) for t in range(1, tree.steps + 1))


@declared
class KaryTree(TreeCounter):
    """Release the n prefix sums of a stream in [0, 1]ⁿ, each when its last input arrives.

    Andersson, Pagh and Torkamani, "Count on Your Elders": Algorithm 1 without subtraction,
    Algorithm 2 (equivalently 3) with it, and Appendix C for even k. Every vertex of a k-ary tree
    of height h above the inputs carries one variable Lap(h/ε), h as in `Tree.height`; a prefix sum
    adds, or with `subtraction` also subtracts, vertices as the digits of its time step say. The
    binary tree mechanism is `KaryTree(steps, 2, epsilon, subtraction=False)`.

    Neighbouring streams differ in one input. An input lies under at most one used vertex of each
    of the h levels and moves each of those sums by at most 1, so the release is a post-processing
    of h Laplace laws at distances at most ε/h: their product at the distances ε/h dominates.
    It is attained whenever n ≥ k^{h−1}: the outputs at 1, k, …, k^{h−1} each consist of the first
    inputs' vertex of one level alone, with independent noise, and the first input moves all of
    them by 1. That covers every n without subtraction. With subtraction the vertex of
    k^{h−1} is used as soon as n exceeds the capacity of h − 1 levels; for the n between that and
    k^{h−1} it is never seen without further noise. The release is ε-DP and the product still
    dominates, but it may be worse than the truth, so no exact profile is given.

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
        c ≥ 1: a person is in at most c positions, which multiplies the sensitivity and the noise.
    """

    example = "KaryTree(steps=27, arity=3, epsilon=1)"

    gaussian_noise_argument = None
    mu = None  # there is Laplace noise alone

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
        """Return the product of h Laplace laws at distance ε/h; no matter which relation.

        Raises NotApplicableError for the numbers of steps at which the product is not attained, and
        for several contributions.
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
        """Return a person who is counted in the first step."""
        return np.ones(self.steps)


@declared
class BinaryTree(TreeCounter):
    """Count with the binary tree of Dwork, Naor, Pitassi and Rothblum, and Chan, Shi and Song.

    Every vertex below the root, of height h = ⌈lg(n + 1)⌉, is measured; an output adds those of
    the ones in the binary digits of its time step. With Laplace noise it is
    `KaryTree(steps, 2, epsilon, subtraction=False)`; here the noise may be Gaussian too.

    Parameters
    ----------
    steps
        n ≥ 1, the number of inputs and outputs.
    epsilon, mu, contributions
        As in `LinearCounter`: exactly one of the first two.
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


# --- Continual counting with a tree whose levels are interpolated between those above -------------

_MOST_CELLS = 10_000
"""Cells with a position of a person that are listed."""
_UNKNOWN = "what the outputs alone tell"


@declared
class BridgedTree(LinearCounter):
    """Count with grids that refine each other; the cells of a parent also measure the parent.

    Every cell of every level is measured. Where the sum of a parent's cells differs from the
    parent, the difference is spread evenly over the cells: at each level the noise is a bridge
    between two known ends (see `dpassay.accountant.counting.grids`, which proves L R = A). For
    equal arities k the mean squared error is (1 + o(1)) (k − 1)/(3 lg³k) lg³n/ε², least at k = 17
    with the constant 0.0781; that of Algorithm 2 of "Count on Your Elders" is 0.1236, and
    Honaker's is 0.5.

    Parameters
    ----------
    steps
        n ≥ 1, the number of inputs and outputs.
    arities
        How many cells each level cuts a cell of the level above into, the first level first;
        their product is at least n.
    epsilon, mu, contributions
        As in `LinearCounter`: exactly one of the first two.
    pooled
        r ≥ 0: a cell is estimated from its own measurement and those of r generations of cells in
        it, which takes no budget. r = 1 has nearly all of the gain, about a share 1/(k + 1) of the
        error, and a stream stores about k² numbers for each level; r = h − 1 is least squares on
        all measurements, and stores n.
    released
        What counts as released: the "outputs", A x + L z, or the "measurements", R x + z, of which
        the outputs are a function: no less private, and attained. What the outputs tell of Gaussian
        noise is exact (`dpassay.accountant.counting.grids`). Of Laplace noise it lies between a
        measured sum that is an output and all of them; the largest loss is that of all.
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
        """One in each level: an input lies in one cell of each."""
        return (ExactReal.of_rational(1),) * self.grids.height

    def worst_positions(self) -> tuple[Fraction, ...] | None:
        """Return how many of the first c positions each cell holds.

        Each grid has as many full cells as c positions can fill, and one with the rest: no others
        have a larger sum of squares in any grid, and all have c in each.
        """
        c = min(self.contributions, self.steps)
        if c * self.grids.height > _MOST_CELLS:
            return None
        return tuple(count for level in self._moved(c) for count in level)

    def _moved(self, positions: int) -> list[list[Fraction]]:
        """Return how many of the first positions each cell holds, level by level."""
        return [
            [Fraction(c) for c in [size] * (positions // size) + [positions % size] if c]
            for size in self.grids.cell_sizes()
        ]

    def shown(self) -> list[Fraction]:
        """Return the squared distance that outputs show, in units of the noise, or its two ends.

        Worst are the first positions. The outputs show a cell of the first level if it ends before
        they do; else at least a part of it.
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
        """Whether a measured sum is an output: the first cell, where nothing is pooled into it."""
        return self._shows_first_cell and (not self.pooled or self.grids.height == 1)

    def releasing(self, what: str) -> BridgedTree:
        """Return the same counter with its "outputs", or its "measurements"."""
        return dataclasses.replace(self, released=what)

    @property
    def _hides(self) -> bool:
        """Whether the outputs are asked about, and tell less than the measured sums."""
        known = self.contributions == 1 or self.worst_positions() is not None
        return self.released == "outputs" and known and self._shows_a_sum < self.grids.height

    @property
    def _is_open(self) -> bool:
        """Whether only two ends are known."""
        return self._hides and (self.mu is None or len(self.shown()) > 1)

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pair of what is released; no matter which relation.

        Raises NotApplicableError as `LinearCounter` does.
        """
        if not self._hides:
            return super().worst_case(adjacency)
        if self.mu is None:
            (most,) = self.releasing("measurements").worst_case(adjacency).remove
            least: Pair = of_distances([ExactReal.of_rational(1) / self.scale])
            if not self._shows_a_sum:
                (least,) = Tabulated(["1"], ["1"]).worst_case(None).remove
            # the first cell is seen, of one input (`dpassay.accountant.counting.grids`)
            shows_most = self._shows_first_cell and self.contributions == 1
            largest = most.known.max_loss() if shows_most else None
            return WorstCase.symmetric(
                Between((least,), most, _UNKNOWN, largest),
                "The outputs are a function of the measured sums, whose pair is above. Below: a "
                "measured sum that is an output by itself, or nothing.",
            )
        pair: Pair = GaussianPair(self, None)
        if self._is_open:
            ends = [Gaussian(self.scale, ExactReal.of_root(end)) for end in self.shown()]
            low, high = (GaussianPair(end, None) for end in ends)
            pair = Between((low,), high, _UNKNOWN)
        return WorstCase.symmetric(
            pair,
            "A person moves the outputs A x + L z by A e, of which Gaussian noise hides "
            "(A e)'(L L')^-1(A e) least for the worst positions.",
        )

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return μ of what is released; None where only two ends of it are known."""
        if self.mu is None or not self._hides:
            return super().exact_gaussian_mu(adjacency)
        first, *other = self.shown()
        return None if other else ExactReal.of_root(first) / self.scale

    def enclosed_gaussian_mu(self, adjacency: Adjacency | None) -> arb:
        """Return the same as a ball, around both ends where there are two."""
        if self.mu is None:
            return super().enclosed_gaussian_mu(adjacency)
        return functools.reduce(arb.union, map(ball, self.shown())).sqrt() / self.scale.ball()

    @property
    def only_alone(self) -> str:
        """Say what to compose where there are two ends."""
        if not self._is_open:
            return super().only_alone
        return (
            f"The profile of the outputs of {self!r} is only known between two bounds. Ask about "
            f"{self.releasing('measurements')!r}, which is at most as private."
        )

    def units(self) -> Fraction:
        """Return the units of all outputs, by summing powers."""
        return self.grids.units()

    def output_units(self) -> list[Fraction]:
        """Return the units of every output."""
        grids = self.grids
        return [grids.output_units(step) for step in range(1, self.steps + 1)]

    def factorisation(self) -> tuple[Rows, Rows]:
        """Return L, with the weights of the cells, and R, the cells; both as `Grids.cells`."""
        grids = self.grids
        cells = list(grids.cells())
        self.require_entries(len(cells))
        steps = range(1, self.steps + 1)
        left = [
            [grids.coefficient(step, level, first) for level, first, _ in cells] for step in steps
        ]
        right = [[Fraction(low < step <= high) for step in steps] for _, low, high in cells]
        return left, right

"""Continual counting with a tree: binary or k-ary, of real or of integer noise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.arrays import Array, ArrayLike, np
from dpassay.accountant.core.description import declared
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import WorstCase
from dpassay.accountant.core.randomness import Randomness
from dpassay.accountant.core.validate import Integer, OptionalPositive, Positive, Rational, Switch
from dpassay.accountant.counting.tree import Digits, Tree
from dpassay.accountant.counting.tree_walk import Rows, factorisation, nodes, parent
from dpassay.accountant.errors import NotApplicableError, expected
from dpassay.accountant.mechanisms.additive.discrete_laplace import DiscreteLaplace
from dpassay.accountant.mechanisms.counting.linear_counter import MOST_LISTED, LinearCounter
from dpassay.accountant.mechanisms.wrappers.composed import Composed
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.release.lattice import integers
from dpassay.accountant.release.sampling import discrete_laplace


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


@declared
class DiscreteKaryTree(Mechanism):
    """Release the n prefix sums of a stream of zeros and ones, as integers.

    `KaryTree` with noise p(z) ∝ e^{−|z| ε/h} on the integers for each vertex, sampled exactly:
    outputs are integers, and the guarantee is that of the program, not of real numbers. An input
    moves at most h vertex sums by 1, so the release is ε-DP, and h discrete Laplace laws dominate
    it; they are attained for the same n as those of `KaryTree`.

    Parameters
    ----------
    steps, arity, subtraction
        As in `KaryTree`.
    epsilon
        A rational ε > 0.
    """

    example = "DiscreteKaryTree(steps=27, arity=3, epsilon=1)"

    noise_argument = "epsilon"
    noise_grows = False

    steps: Integer = Integer(least=1)
    arity: Integer = Integer(least=2)
    epsilon: Rational = Rational(least=0, strict=True)
    subtraction: Switch = Switch(True)

    @property
    def continuous(self) -> KaryTree:
        """The same tree with Laplace noise."""
        return KaryTree(self.steps, self.arity, self.epsilon, self.subtraction)

    @property
    def noise(self) -> DiscreteLaplace:
        """The law of every noise variable."""
        return DiscreteLaplace(scale=self.scale)

    @property
    def scale(self) -> Fraction:
        """The scale h/ε."""
        return self.continuous.tree.height / self.epsilon

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the pair of h discrete Laplace laws at distance 1.

        Raises NotApplicableError for the numbers of steps at which `KaryTree` does.
        """
        self.continuous.worst_case(adjacency)
        return Composed(self.noise, self.continuous.tree.height).worst_case(adjacency)

    @property
    def dimension(self) -> int:
        """The number of steps n."""
        return self.steps

    def sample(self, size: int, *, rng: Randomness) -> Array:
        """Draw the noise of `size` whole streams, one row each (all at once: for moderate n)."""
        tree, order = self.continuous.tree, nodes(self.continuous.tree)
        drawn = discrete_laplace(self.scale, size * len(order), rng=rng).reshape(-1, size)
        noise = {0: np.zeros(size, dtype=drawn.dtype)}
        for node, own in zip(order, drawn, strict=True):
            noise[node] = noise[parent(tree, node)] + own
        return np.stack([noise[step] for step in range(1, self.steps + 1)], axis=1)

    def releases(self, value: ArrayLike, times: int, rng: Randomness) -> Array:
        """Release all n estimates for a stream of n inputs, 0 or 1 each: exact integers."""
        inputs = integers(value, coordinates=self.steps)
        if not ((inputs == 0) | (inputs == 1)).all():
            place = int(np.argmax((inputs != 0) & (inputs != 1)))
            raise expected(f"value[{place}]", inputs[place], "to be 0 or 1")
        noise = self.sample(times, rng=rng)
        released: Array = np.cumsum(inputs) + noise
        return released

    def variances(self) -> list[arb]:
        """Return the variance of one noise variable times Σ|d_i(t)| for every step t."""
        return [self._ratio() * entry for entry in self.continuous.variances()]

    def mean_squared_error(self) -> arb:
        """Return the average variance of the n outputs, by counting digits."""
        return self._ratio() * self.continuous.mean_squared_error()

    def covariance_matrix(self) -> list[list[arb]]:
        """Return the variance of one noise variable times the number that two outputs share."""
        ratio = self._ratio()
        return [[ratio * entry for entry in row] for row in self.continuous.covariance_matrix()]

    def _ratio(self) -> arb:
        """Return the variance of a noise variable over that of the Laplace law."""
        return self.noise.variances()[0] / (2 * ExactReal.of_rational(self.scale).ball() ** 2)

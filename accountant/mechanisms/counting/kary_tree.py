"""Continual counting with a k-ary tree of Laplace noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, final

from flint import arb

from accountant.composition.exact.laplace_product import of_counts
from accountant.core.adjacency import Adjacency
from accountant.core.pair import WorstCase
from accountant.core.validate import Integer, Positive, Switch
from accountant.counting.tree import Digits, Tree
from accountant.counting.tree_walk import nodes, parent, path
from accountant.errors import NotApplicableError, expected
from accountant.mechanisms.counting.linear_counter import StreamNoise, unknown_positions
from accountant.numbers.exact import ExactReal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from accountant.release.lattice import LatticeSampler

_MOST_LISTED = 100_000
"""Steps whose variances are listed: more fill pages."""
_MOST_CORRELATED = 2000
"""Steps of a matrix of covariances: 4 million exact numbers."""


@final
@dataclass(frozen=True, repr=False)
class KaryTree(StreamNoise):
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

    noise_argument = "epsilon"
    noise_grows = False

    steps: Integer = Integer(least=1)
    arity: Integer = Integer(least=2)
    epsilon: Positive = Positive()
    subtraction: Switch = Switch(True)
    contributions: Integer = Integer(1, least=1)

    @property
    def tree(self) -> Tree:
        """The tree above the inputs."""
        return Tree(self.arity, self.steps, Digits.SIGNED if self.subtraction else Digits.PLAIN)

    @property
    def scale(self) -> ExactReal:
        """The scale ch/ε of every noise variable; ch is the ℓ1 sensitivity of the vertex sums."""
        return ExactReal.of_rational(self.contributions * self.tree.height) / self.epsilon

    def worst_case(self, adjacency: Adjacency | None) -> WorstCase:
        """Return the product of h Laplace laws at distance ε/h; no matter which relation.

        Raises NotApplicableError for the numbers of steps at which the product is not attained, and
        for several contributions.
        """
        if self.contributions > 1:
            bound = f"Guaranteed(epsilon={self.epsilon})"
            raise unknown_positions(self, self.contributions, bound)
        tree = self.tree
        height = tree.height
        least = tree.arity ** (height - 1)
        if self.steps < least:
            raise NotApplicableError(
                f"The exact profile of {self!r} is not known: it is {self.epsilon}-DP, and its "
                f"profile is at most that of steps={least}, which adds the same noise. Ask for "
                f"steps={least}, or for steps={tree.capacity(height - 1)} with less noise."
            )
        unit = self.epsilon / ExactReal.of_rational(height)
        return WorstCase.symmetric(
            of_counts({unit: height}),
            f"One input lies under at most one vertex of each of the {height} levels and moves "
            f"each by at most 1, in units of 1/{height} epsilon of its noise. The first input "
            "moves the outputs at the powers of the arity, which are one vertex each, all by 1.",
        )

    def sample(self, size: int, *, rng: np.random.Generator) -> NDArray[Any]:
        """Draw the noise of `size` whole streams, one row each (all at once: for moderate n)."""
        import numpy as np

        tree, spread = self.tree, float(self.scale)
        noise = {0: np.zeros(size)}
        for node in nodes(tree):
            noise[node] = noise[parent(tree, node)] + rng.laplace(0.0, spread, size)
        return np.stack([noise[step] for step in range(1, self.steps + 1)], axis=1)

    def lattice_sampler(self) -> LatticeSampler:
        """Return the noise of a whole stream, on one lattice that holds the integers."""
        from accountant.release.lattice import LatticeSampler
        from accountant.release.lattice_noise import walks

        order = nodes(self.tree)
        place = {node: index for index, node in enumerate(order)}
        paths = [
            [place[node] for node in path(self.tree, step)] for step in range(1, self.steps + 1)
        ]
        return LatticeSampler(walks(paths, self.scale.ball), common=True)

    def worst_shift(self) -> Any:
        """Return a person who is counted in the first step."""
        import numpy as np

        return np.ones(self.steps)

    def variances(self) -> list[arb]:
        """Return 2h²/ε² times Σ|d_i(t)| for every step t."""
        if self.steps > _MOST_LISTED:
            raise expected(
                "steps",
                self.steps,
                f"at most {_MOST_LISTED} to list every variance",
                "The mean squared error is found by counting, for any number of steps.",
            )
        unit, sums = 2 * self.scale.ball() ** 2, _digit_sums(self.tree)
        multiples = [unit * count for count in range(max(sums) + 1)]
        return [multiples[count] for count in sums]

    def mean_squared_error(self) -> arb:
        """Return the average variance of the n outputs, by counting digits."""
        return self.exact_mean_squared_error().ball()

    def exact_mean_squared_error(self) -> ExactReal:
        """Return the same as an exact number: rational for every rational ε²."""
        units: Fraction = self.contributions**2 * self.tree.mean_squared_error()
        return ExactReal.of_rational(units / self.epsilon.square)

    def covariance_matrix(self) -> list[list[arb]]:
        """Return 2h²/ε² times the number of noise variables that two outputs share."""
        if self.steps > _MOST_CORRELATED:
            raise expected(
                "steps",
                self.steps,
                f"at most {_MOST_CORRELATED} for a matrix",
                "Ask for the variances.",
            )
        tree, unit = self.tree, 2 * self.scale.ball() ** 2
        used = [frozenset(path(tree, t)) for t in range(1, self.steps + 1)]
        return [[unit * len(one & other) for other in used] for one in used]


@lru_cache(maxsize=4)
def _digit_sums(tree: Tree) -> tuple[int, ...]:
    """Return Σ|d_i(t)| for every step: each variance is asked for on its own."""
    return tuple(sum(map(abs, tree.written(t))) for t in range(1, tree.steps + 1))

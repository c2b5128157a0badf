"""Continual counting of bits with a k-ary tree of integer noise."""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from accountant.core.adjacency import Adjacency
from accountant.core.arrays import Array, ArrayLike, np
from accountant.core.description import declared
from accountant.core.mechanism import Mechanism
from accountant.core.pair import WorstCase
from accountant.core.randomness import Randomness
from accountant.core.validate import Integer, Rational, Switch
from accountant.counting.tree_walk import nodes, parent
from accountant.errors import expected
from accountant.mechanisms.additive.discrete_laplace import DiscreteLaplace
from accountant.mechanisms.counting.kary_tree import KaryTree
from accountant.mechanisms.wrappers.composed import Composed
from accountant.numbers.exact import ExactReal
from accountant.release.lattice import integers
from accountant.release.sampling import discrete_laplace


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

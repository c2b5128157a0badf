"""Several epochs of random allocation, alone or with Gaussian noise: one sum on a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from flint import arb

from accountant.composition.joint import Factor, JointPair
from accountant.core.pair import Tails
from accountant.numbers.exact import ExactReal
from accountant.numbers.precision import cached_property
from accountant.pairs.allocation_sum import AllocationSum
from accountant.pairs.gaussian import GaussianPair
from accountant.pairs.random_allocation import RandomAllocationPair


@final
@dataclass(frozen=True)
class AllocationsPair(JointPair):
    """A product of random allocations in one direction, and of Gaussian pairs."""

    allocations: tuple[tuple[RandomAllocationPair, int], ...]
    normals: tuple[tuple[GaussianPair, int], ...] = ()

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The pairs and their counts."""
        return *self.allocations, *self.normals

    @cached_property
    def _sum(self) -> AllocationSum:
        means = tuple((pair.mean, count) for pair, count in self.allocations)
        return AllocationSum(means, self.normals)

    @property
    def _mixed_first(self) -> bool:
        return self.allocations[0][0].mixed_first

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return H(ε) for any real ε."""
        return self._sum.hockey_stick(epsilon, mixed_first=self._mixed_first)

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the tails: to the precision, but not relative to themselves."""
        return self._sum.tails(epsilon, mixed_first=self._mixed_first)

    def bound(self, epsilon: ExactReal) -> arb:
        """Return a bound from the moments of the likelihood ratio."""
        return self._sum.bound(epsilon, mixed_first=self._mixed_first)

    def estimate_log_delta(self, epsilon: float) -> float | None:
        """Return ln H(ε) from few bits, or None where they are lost."""
        return self._sum.estimate_log_delta(epsilon, mixed_first=self._mixed_first)

    def estimate_epsilon(self, log_delta: float) -> float | None:
        """Return the ε ≥ 0 with ln H(ε) = log_delta from few bits."""
        return self._sum.estimate_epsilon(log_delta, mixed_first=self._mixed_first)

    def reverse(self) -> AllocationsPair:
        """Return the product of the reversed pairs."""
        turned = tuple((pair.reverse(), count) for pair, count in self.allocations)
        return AllocationsPair(turned, self.normals)


def together(factors: Sequence[Factor]) -> list[Factor]:
    """Put random allocations and Gaussian pairs together, where there are several."""
    allocations = [(pair, n) for pair, n in factors if isinstance(pair, RandomAllocationPair)]
    normals = [(pair, n) for pair, n in factors if isinstance(pair, GaussianPair)]
    directions = {pair.mixed_first for pair, _ in allocations}
    if len(directions) != 1 or sum(n for _, n in [*allocations, *normals]) == 1:
        return list(factors)
    rest = [
        each for each in factors if not isinstance(each[0], (RandomAllocationPair, GaussianPair))
    ]
    return [(AllocationsPair(tuple(allocations), tuple(normals)), 1), *rest]

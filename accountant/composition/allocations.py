"""Products of random allocations and Gaussian releases: the sum of their losses is one law.

The losses of random allocations in one direction, ln W for each epoch, add up to a sum on a line
(`dpassay.accountant.pairs.allocation`). Gaussian losses are added to it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from flint import arb

from dpassay.accountant.composition.product import Engine, Factor, Product
from dpassay.accountant.core.pair import Tails
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.pairs.allocation import AllocationSum, RandomAllocationPair
from dpassay.accountant.pairs.gaussian import GaussianPair


@final
@dataclass(frozen=True)
class Allocations(Engine):
    """An engine for a product of random allocations in one direction and of Gaussian pairs."""

    def profile(self, product: Product, epsilon: ExactReal) -> arb:
        """Return H(ε) for any real ε."""
        return _random_sum(product).hockey_stick(epsilon, mixed_first=_mixed_first(product))

    def tails(self, product: Product, epsilon: ExactReal) -> Tails:
        """Return the tails; their errors are small absolutely, not relative to the tails."""
        return _random_sum(product).tails(epsilon, mixed_first=_mixed_first(product))

    def bound(self, product: Product, epsilon: ExactReal) -> arb:
        """Return an upper bound on H(ε) from the moments of the likelihood ratio."""
        return _random_sum(product).bound(epsilon, mixed_first=_mixed_first(product))

    def estimate_log_delta(self, product: Product, epsilon: float) -> float | None:
        """Return ln H(ε) at low precision, or None if cancellation is too large."""
        return _random_sum(product).estimate_log_delta(epsilon, mixed_first=_mixed_first(product))

    def estimate_epsilon(self, product: Product, log_delta: float) -> float | None:
        """Return the ε ≥ 0 with ln H(ε) = log_delta, at low precision."""
        return _random_sum(product).estimate_epsilon(log_delta, mixed_first=_mixed_first(product))


def _split(
    factors: Sequence[Factor],
) -> tuple[list[tuple[RandomAllocationPair, int]], list[tuple[GaussianPair, int]]]:
    allocations = [(pair, n) for pair, n in factors if isinstance(pair, RandomAllocationPair)]
    return allocations, [(pair, n) for pair, n in factors if isinstance(pair, GaussianPair)]


@functools.lru_cache(maxsize=64)
def _random_sum(product: Product) -> AllocationSum:
    allocations, normals = _split(product.factors)
    return AllocationSum(tuple((pair.mean, count) for pair, count in allocations), tuple(normals))


def _mixed_first(product: Product) -> bool:
    return _split(product.factors)[0][0][0].mixed_first


def together(factors: Sequence[Factor]) -> list[Factor]:
    """Combine random allocations and Gaussian pairs into one factor if there are several."""
    allocations, normals = _split(factors)
    directions = {pair.mixed_first for pair, _ in allocations}
    if len(directions) != 1 or sum(n for _, n in [*allocations, *normals]) == 1:
        return list(factors)
    kinds = (RandomAllocationPair, GaussianPair)
    rest = [each for each in factors if not isinstance(each[0], kinds)]
    return [(Product((*allocations, *normals), Allocations()), 1), *rest]

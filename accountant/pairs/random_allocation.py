"""A record in one of t Gaussian steps, chosen uniformly, against none.

W = dP/dQ = (1/t) Σ_j e^{μ Z_j − μ²/2} for P = (1/t) Σ_j N(μ e_j, I) and Q = N(0, I), with
independent standard normal Z_j under Q. Its profile and that of several epochs, whose losses ln W
add up, are integrals of its moments (`dpassay.accountant.pairs.allocation_sum`): those of several
epochs, alone or with Gaussian noise, are one sum on a line (`Allocations`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from flint import arb

from dpassay.accountant.composition.product import Engine, Factor, Product
from dpassay.accountant.core.pair import Pair, Tails
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import COMPOSED_WIDTH
from dpassay.accountant.numbers.precision import cached_property
from dpassay.accountant.pairs.allocation_sum import AllocationSum
from dpassay.accountant.pairs.gaussian import GaussianPair
from dpassay.accountant.pairs.mean_lognormal import MeanLognormal

_MOST_ORDER = 400
"""Largest order whose moment is a coefficient of a power series."""


@final
@dataclass(frozen=True)
class RandomAllocationPair(Pair):
    """P = (1/t) Σ N(μ e_j, I) against Q = N(0, I), t ≥ 2; or the reverse, with the mixture last."""

    law_name = "random-allocation"

    mu: ExactReal
    steps: int
    mixed_first: bool = True

    @property
    def mean(self) -> MeanLognormal:
        """W under Q."""
        return MeanLognormal(self.mu, self.steps)

    @cached_property
    def _sum(self) -> AllocationSum:
        return AllocationSum(((self.mean, 1),))

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return E(W − e^ε)⁺, or E(1 − e^ε W)⁺ with the mixture last, for any real ε."""
        return self._sum.hockey_stick(epsilon, mixed_first=self.mixed_first)

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the tails of ±ln W: to the precision, but not relative to themselves."""
        return self._sum.tails(epsilon, mixed_first=self.mixed_first)

    def bound(self, epsilon: ExactReal) -> arb:
        """Return a bound from the moments of W."""
        return self._sum.bound(epsilon, mixed_first=self.mixed_first)

    def estimate_log_delta(self, epsilon: float) -> float | None:
        """Return ln H(ε) from few bits, or None where they are lost."""
        return self._sum.estimate_log_delta(epsilon, mixed_first=self.mixed_first)

    def estimate_epsilon(self, log_delta: float) -> float | None:
        """Return the ε ≥ 0 with ln H(ε) = log_delta from few bits."""
        return self._sum.estimate_epsilon(log_delta, mixed_first=self.mixed_first)

    def renyi(self, order: arb) -> arb:
        """Return ln E_Q W^a/(a − 1) at an integer a ≥ 2, mixture first.

        Raises NotApplicableError elsewhere.
        """
        whole = order.unique_fmpz() if order.is_exact() else None
        if not self.mixed_first or whole is None or not 2 <= whole <= _MOST_ORDER:
            raise NotApplicableError(
                "The Rényi divergence of a random allocation is computed at integer orders from 2 "
                f"to {_MOST_ORDER} in direction REMOVE. Ask for delta, epsilon or the trade-off "
                "function, which are known in both directions."
            )
        a = int(whole)
        return self.mean.moments(a)[a].log() / (a - 1)

    def kullback_leibler(self) -> arb:
        """Raise NotApplicableError."""
        raise NotApplicableError(
            "The Kullback–Leibler divergence of a random allocation has no closed form. Ask for "
            "delta, epsilon, the trade-off function or a Rényi divergence of integer order."
        )

    def closed_rho(self) -> arb | None:
        """Return μ²/2, mixture first: t^{1−a} e^{a(a−1)μ²/2} ≤ E W^a ≤ e^{a(a−1)μ²/2}."""
        return self.rho_bound() if self.mixed_first else None

    def rho_bound(self) -> arb:
        """Return μ²/2, that of one step: Rényi divergences are jointly quasi-convex."""
        return self.mu.ball() ** 2 / 2

    usual_width: ClassVar = COMPOSED_WIDTH
    """Relative width of answers for which none is named: what comes within about a second."""

    def max_loss(self) -> arb:
        """Return infinity: W takes all positive values."""
        return arb.pos_inf()

    def reverse(self) -> RandomAllocationPair:
        """Return (Q, P)."""
        return RandomAllocationPair(self.mu, self.steps, not self.mixed_first)

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe {L > ε}."""
        sign = ">" if self.mixed_first else "<"
        at = epsilon if self.mixed_first else -epsilon
        return f"the outputs with (1/{self.steps})*sum(exp(mu*z_j - mu^2/2)) {sign} exp({at})"


@final
@dataclass(frozen=True)
class Allocations(Engine):
    """One sum for a product of random allocations in one direction, and of Gaussian pairs."""

    def profile(self, product: Product, epsilon: ExactReal) -> arb:
        """Return H(ε) for any real ε."""
        return _sum(product).hockey_stick(epsilon, mixed_first=_mixed_first(product))

    def tails(self, product: Product, epsilon: ExactReal) -> Tails:
        """Return the tails: to the precision, but not relative to themselves."""
        return _sum(product).tails(epsilon, mixed_first=_mixed_first(product))

    def bound(self, product: Product, epsilon: ExactReal) -> arb:
        """Return a bound from the moments of the likelihood ratio."""
        return _sum(product).bound(epsilon, mixed_first=_mixed_first(product))

    def estimate_log_delta(self, product: Product, epsilon: float) -> float | None:
        """Return ln H(ε) from few bits, or None where they are lost."""
        return _sum(product).estimate_log_delta(epsilon, mixed_first=_mixed_first(product))

    def estimate_epsilon(self, product: Product, log_delta: float) -> float | None:
        """Return the ε ≥ 0 with ln H(ε) = log_delta from few bits."""
        return _sum(product).estimate_epsilon(log_delta, mixed_first=_mixed_first(product))


def _split(
    factors: Sequence[Factor],
) -> tuple[list[tuple[RandomAllocationPair, int]], list[tuple[GaussianPair, int]]]:
    allocations = [(pair, n) for pair, n in factors if isinstance(pair, RandomAllocationPair)]
    return allocations, [(pair, n) for pair, n in factors if isinstance(pair, GaussianPair)]


@functools.lru_cache(maxsize=64)
def _sum(product: Product) -> AllocationSum:
    allocations, normals = _split(product.factors)
    return AllocationSum(tuple((pair.mean, count) for pair, count in allocations), tuple(normals))


def _mixed_first(product: Product) -> bool:
    return _split(product.factors)[0][0][0].mixed_first


def together(factors: Sequence[Factor]) -> list[Factor]:
    """Put random allocations and Gaussian pairs together, where there are several."""
    allocations, normals = _split(factors)
    directions = {pair.mixed_first for pair, _ in allocations}
    if len(directions) != 1 or sum(n for _, n in [*allocations, *normals]) == 1:
        return list(factors)
    kinds = (RandomAllocationPair, GaussianPair)
    rest = [each for each in factors if not isinstance(each[0], kinds)]
    return [(Product((*allocations, *normals), Allocations()), 1), *rest]
